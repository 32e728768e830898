"""What a name that is none may have meant, as far as its reader may know: what is hidden is never suggested.

    a misspelled name ─▶ the saved workflows spelled most like it ─▶ those that the reader sees

Whoever forgets to say who reads loses a suggestion, and tells no name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from pointsman.auth.callers import Caller
from pointsman.auth.policy import visible
from pointsman.auth.subjects import UnknownWorkflow
from pointsman.context import AppContext
from pointsman.definition.problems import near_to
from pointsman.store.records import WorkflowEntry

ANYBODY: Final = Caller(name="", role="viewer")
"""Nobody said who reads: only what everybody sees is named."""
NEAR_MAX: Final = 5
NAMES_MAX: Final = 50
"""Of more names that are none nothing is suggested: a document full of them is not misspelled."""


async def meant(app: AppContext, reader: Caller, names: Iterable[str], known: Mapping[str, WorkflowEntry]) -> list[str]:
    """Those of the `known` names that the others may have meant and whose workflow the reader sees."""
    wrong = sorted({*names})[:NAMES_MAX]
    near = {one for name in wrong for one in near_to(name, known, most=NEAR_MAX) if one not in wrong}
    return [name for name in sorted(near) if await _sees(app, reader, known[name])]


async def _sees(app: AppContext, reader: Caller, entry: WorkflowEntry) -> bool:
    with suppress(UnknownWorkflow):  # It was deleted meanwhile.
        return await visible(app, reader, f"{entry.id}@{entry.revision}")
    return False
