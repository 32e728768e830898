""" "Did you mean" suggestions, limited to names that the reader may see.

    a misspelled name ─▶ saved workflows with similar names ─▶ those that the reader may see

Without a given reader, suggestions contain only what everybody may see.
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
"""The reader where none is given: may see only what everybody may see."""
NEAR_MAX: Final = 5
NAMES_MAX: Final = 50
"""Unknown names for which suggestions are made; further ones get none."""


async def meant(app: AppContext, reader: Caller, names: Iterable[str], known: Mapping[str, WorkflowEntry]) -> list[str]:
    """Return the `known` names that are similar to one of `names` and whose workflow the reader may see."""
    wrong = sorted({*names})[:NAMES_MAX]
    near = {one for name in wrong for one in near_to(name, known, most=NEAR_MAX) if one not in wrong}
    return [name for name in sorted(near) if await _sees(app, reader, known[name])]


async def _sees(app: AppContext, reader: Caller, entry: WorkflowEntry) -> bool:
    with suppress(UnknownWorkflow):  # Deleted meanwhile.
        return await visible(app, reader, f"{entry.id}@{entry.revision}")
    return False
