"""Limits for the size of a formula, its work and its result. Each has its own error code (`failures.py`)."""

from __future__ import annotations

from typing import Final

SOURCE_CHARS_MAX: Final = 4_096
TOKENS_MAX: Final = 512
DEPTH_MAX: Final = 32
"""Nesting of brackets, calls, prefix operators and conditionals in one expression."""

VISITS_MAX: Final = 20_000
"""Elements that one evaluation may visit, in any operation: lambdas, `==`, `in`, `+`, slices, wildcards."""

INTEGER_BITS_MAX: Final = 256
TEXT_CHARS_MAX: Final = 1_000_000
"""Characters of one text that a formula builds. Texts that it passes on unchanged are not counted."""

RESULT_NODES_MAX: Final = 50_000
RESULT_CHARS_MAX: Final = 10_000_000
"""Characters in all texts of a result that a formula built: a shared text may occur in it many times."""

TEMPLATE_CHARS_MAX: Final = 1_000_000

JSONPATH_SEGMENTS_MAX: Final = 32
JSONPATH_VISITS_MAX: Final = 200_000

COMPILED_MAX: Final = 4_096
"""Size of the cache of compiled formulas, per kind; a document repeats a few of them many times."""
