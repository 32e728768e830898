"""Cache of long rows that are being paged through: read and decoded once, not again for each page.

    page 1 ── the row, decoded ──▶ cached ──▶ page 2, 3, … ──▶ the last page drops it

One decision may be 100 000 events in one row, and a page holds some thousands. A stored row never changes, so the cache
is never stale. A row is dropped when it was read to its end, when other rows displace it, or when reading stops.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import Final

from pointsman.context import AppContext, Part
from pointsman.ports import Row
from pointsman.values import ExecutionId

LONG: Final = 1000
"""Rows with fewer events are decoded as quickly as they are found."""
KEPT_MAX: Final = 2
"""Rows per installation at a time: one may take some hundred megabytes."""
KEPT_S: Final = 60.0
"""Seconds since the last request."""


class RowCache:
    """The partly read long rows of one installation."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[ExecutionId, int], tuple[Row, asyncio.TimerHandle]] = OrderedDict()

    @property
    def rows(self) -> list[Row]:
        """The cached rows, the most recently used last."""
        return [row for row, _ in self._kept.values()]

    def find(self, execution: ExecutionId, seq: int) -> Row | None:
        found = self._kept.get((execution, seq))
        return None if found is None else found[0]

    def leave(self, execution: ExecutionId, row: Row, *, told: int) -> None:
        """Cache a row in which a page ended after `told` of its events."""
        self._drop((execution, row.seq))
        if told < len(row.events) and len(row.events) > LONG:
            key = (execution, row.seq)
            self._kept[key] = (row, asyncio.get_running_loop().call_later(KEPT_S, self._drop, key))
            while len(self._kept) > KEPT_MAX:
                self._drop(next(iter(self._kept)))

    def _drop(self, key: tuple[ExecutionId, int]) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            kept[1].cancel()


async def rows_on(app: AppContext, execution: ExecutionId, seq: int) -> AsyncIterator[Row]:
    """Yield the rows of a journal from row `seq` on."""
    found = begun_in(app).find(execution, seq)
    if found is not None:
        yield found
    async for row in app.store.journal.read(execution, after=max(seq - 1, 0) if found is None else seq):
        yield row


def begun_in(app: AppContext) -> RowCache:
    return app[BEGUN]


BEGUN: Final = Part[RowCache]("long rows", lambda _: RowCache())
