"""Usage by execution and day, and its sums: both are written in one transaction."""

from __future__ import annotations

from functools import partial

from pointsman.store.sql.work import Database, Lock, Many, Statement, Work, first
from pointsman.store.usage import (
    ADD,
    DROP_EMPTY,
    FORGET,
    INSERT_ENTRY,
    IS_KNOWN,
    TAKE_OFF,
    About,
    UsageAmounts,
    UsageQuery,
    UsageRecord,
    found_in,
    rows_of,
    select,
)


class SqlUsage:
    """`UsageSums` of the SQL stores: each put changes the sums by the difference from the entries before it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, taking: UsageRecord) -> None:
        await self._database.write(partial(put, taking))

    async def sums(self, query: UsageQuery) -> list[tuple[About, UsageAmounts]]:
        return await self._database.read(partial(sums, query))


def sums(query: UsageQuery) -> Work[list[tuple[About, UsageAmounts]]]:
    found = yield Statement(*select(query))
    return [found_in(query, row) for row in found.rows]


def put(taking: UsageRecord) -> Work[None]:
    yield Lock(("usage",))
    key = taking.day, taking.execution
    known = yield from first(IS_KNOWN, *key)
    if known is not None:
        yield Statement(TAKE_OFF, (*key, taking.day))
        yield Statement(FORGET, key)
    yield Many(INSERT_ENTRY, rows_of(taking))
    yield Statement(ADD, key)
    if known is not None:
        yield Statement(DROP_EMPTY, (taking.day,))
