"""What executions of earlier releases have spent: added up from their journals, once, and said where lists say it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from pointsman.runtime.local import UnknownExecution
from pointsman.runtime.summary import spent_of
from pointsman.store.budget_usage import Spent
from pointsman.store.records import ExecutionQuery

if TYPE_CHECKING:
    from pointsman.app import Pointsman
    from pointsman.values import ExecutionId

AT_ONCE: Final = 50
"""So many are read and said together: one commit is enough for them."""


async def count_spent(app: Pointsman) -> int:
    """How many that were. Safe to do twice, or by two at once; costs one look where none is left."""
    count = 0
    while some := await app.store.executions.list(ExecutionQuery(uncounted=True, limit=AT_ONCE)):
        await asyncio.gather(*(_count(app, one.execution) for one in some))
        count += len(some)
    return count


async def _count(app: Pointsman, execution: ExecutionId) -> None:
    """One without a journal, of which only the list knows, spent nothing."""
    try:
        spent = spent_of((await app.runtime.load(execution)).usage)
    except UnknownExecution:
        spent = Spent()
    await app.store.executions.count(execution, spent)
