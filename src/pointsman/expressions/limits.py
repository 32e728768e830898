"""How large a formula, its work and its result may be. Each bound has its own error code (`failures.py`)."""

from __future__ import annotations

from typing import Final

SOURCE_CHARS_MAX: Final = 4_096
TOKENS_MAX: Final = 512
DEPTH_MAX: Final = 32
"""Nesting of brackets, calls, prefix operators and choices in one expression."""

VISITS_MAX: Final = 20_000
"""Elements one evaluation may touch, wherever it touches them: lambdas, `==`, `in`, `+`, slices, wildcards."""

INTEGER_BITS_MAX: Final = 256
TEXT_CHARS_MAX: Final = 1_000_000
"""Characters of one text that a formula builds. Texts it only passes on are not measured."""

RESULT_NODES_MAX: Final = 50_000
RESULT_CHARS_MAX: Final = 10_000_000
"""Characters in all texts of a result that a formula built: one shared text may stand in it many times."""

TEMPLATE_CHARS_MAX: Final = 1_000_000

JSONPATH_SEGMENTS_MAX: Final = 32
JSONPATH_VISITS_MAX: Final = 200_000

COMPILED_MAX: Final = 4_096
"""Compiled formulas kept per kind; a document repeats few of them many times."""
