"""Usage by execution and day, and its sums: both are written in one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, LiteralString

import msgspec

from pointsman.store.sql.work import Database, Lock, Many, Statement, Work, first, marks
from pointsman.store.usage import (
    AMOUNT_COLUMNS,
    COLUMNS,
    About,
    UsageAmounts,
    UsageName,
    UsagePosition,
    UsageQuery,
    UsageRecord,
)

INSERT_ENTRY: Final = f"INSERT INTO usage ({', '.join(COLUMNS)}) VALUES ({marks(len(COLUMNS))})"
SUM_NAMES: Final[LiteralString] = "day, place, workflow, revision, node, model, key"
_SUMMED: Final[LiteralString] = ", ".join(f"sum({one})" for one in AMOUNT_COLUMNS.split(", "))
_ADDED: Final[LiteralString] = ", ".join(
    f"{one} = usage_sums.{one} + excluded.{one}" for one in f"{AMOUNT_COLUMNS}, entries".split(", ")
)
_TAKEN_OFF: Final[LiteralString] = ", ".join(
    f"{one} = usage_sums.{one} - u.{one}" for one in AMOUNT_COLUMNS.split(", ")
)

IS_KNOWN: Final = "SELECT 1 FROM usage WHERE day = %s AND execution = %s LIMIT 1"
TAKE_OFF: Final = f"""
    UPDATE usage_sums SET {_TAKEN_OFF}, entries = usage_sums.entries - 1
    FROM (SELECT place, {AMOUNT_COLUMNS} FROM usage WHERE day = %s AND execution = %s) AS u
    WHERE usage_sums.day = %s AND usage_sums.place = u.place
"""
"""Subtract the previous entries from the sums: the first of four statements that put a record."""
FORGET: Final = "DELETE FROM usage WHERE day = %s AND execution = %s"
ADD: Final = f"""
    INSERT INTO usage_sums ({SUM_NAMES}, entries, {AMOUNT_COLUMNS})
    SELECT {SUM_NAMES}, 1, {AMOUNT_COLUMNS} FROM usage WHERE day = %s AND execution = %s
    ON CONFLICT (day, place) DO UPDATE SET {_ADDED}
"""
DROP_EMPTY: Final = "DELETE FROM usage_sums WHERE day = %s AND entries = 0"
"""Sums without entries are deleted."""
_OF_ENTRIES: Final[LiteralString] = f"SELECT {SUM_NAMES}, count(*), {_SUMMED} FROM usage GROUP BY {SUM_NAMES}"
ADD_UP: Final[LiteralString] = f"INSERT INTO usage_sums ({SUM_NAMES}, entries, {AMOUNT_COLUMNS}) {_OF_ENTRIES}"
"""Compute all sums from the entries."""
_STORED: Final[LiteralString] = f"SELECT {SUM_NAMES}, entries, {AMOUNT_COLUMNS} FROM usage_sums"
DIFFERENT: Final[tuple[LiteralString, LiteralString]] = (
    f"SELECT count(*) FROM ({_OF_ENTRIES} EXCEPT {_STORED}) AS missing",
    f"SELECT count(*) FROM ({_STORED} EXCEPT {_OF_ENTRIES}) AS unfounded",
)
"""Count the sums that differ from the entries; both are zero in an undamaged store."""


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


def select(query: UsageQuery) -> tuple[LiteralString, list[str]]:
    """Return a statement and its values. Every value is bound; only names of columns enter the statement."""
    names: LiteralString = ", ".join(_COLUMN[one] for one in query.by)
    conditions: list[LiteralString] = ["1 = 1"]
    values: list[str] = []
    if query.since:
        conditions.append("day >= %s")
        values.append(query.since)
    if query.until:
        conditions.append("day <= %s")
        values.append(query.until)
    for name, wanted in query.of.items():
        conditions.append(f"{_COLUMN[name]} = %s")
        values.append(wanted)
    table: LiteralString = "usage" if query.of_executions else "usage_sums"
    summed: LiteralString = ", ".join(f"CAST(sum({one}) AS BIGINT)" for one in AMOUNT_COLUMNS.split(", "))
    where: LiteralString = " AND ".join(conditions)
    return f"SELECT {names}, {summed} FROM {table} WHERE {where} GROUP BY {names}", values


_COLUMN: Final[Mapping[UsageName, LiteralString]] = {
    "day": "day",
    "execution": "execution",
    "workflow": "workflow",
    "revision": "revision",
    "owner": "owner",
    "node": "node",
    "model": "model",
    "key": "key",
}


def found_in(query: UsageQuery, row: Sequence[str | int]) -> tuple[About, UsageAmounts]:
    """Return the group and the amounts of a row of that statement."""
    count = len(query.by)
    return tuple(row[:count]), UsageAmounts(*(int(one) for one in row[count:]))


def rows_of(taking: UsageRecord) -> list[tuple[str | int | bytes, ...]]:
    """Return the rows of a record, in the order of `COLUMNS`."""
    return [
        (
            *(taking.day, taking.execution, taking.workflow, taking.revision, taking.owner),
            *(name.replace("\0", "\ufffd") for name in place),  # PostgreSQL stores no NUL.
            place_of(taking, place),
            *msgspec.structs.astuple(taken),
        )
        for place, taken in taking.entries
    ]


def place_of(taking: UsageRecord, place: UsagePosition) -> bytes:
    return hashlib.sha256(msgspec.msgpack.encode((taking.workflow, taking.revision, *place))).digest()
