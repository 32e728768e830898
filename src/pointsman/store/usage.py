"""Usage of time, tokens and money: stored for each execution and day, and added up in the same transaction.

    a record ── put ──▶ usage        a row for each node, model and key of an execution and day
                 └────▶ usage_sums   the same without the execution: grows with days and names, never with executions

Amounts are whole numbers, so sums do not depend on their order: both tables agree exactly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal, LiteralString, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from pointsman.values import ExecutionId

MICROS: Final = 1_000_000
"""Of a second."""
NANOS: Final = 1_000_000_000
"""Of a dollar."""


class UsagePlace(NamedTuple):
    """The subject of an entry. `model` and `key` are empty for the steps of the node."""

    node: str
    model: str = ""
    key: str = ""


class UsageAmounts(Struct):
    """The amounts of one entry."""

    steps: int = 0
    retries: int = 0
    failures: int = 0
    cached: int = 0
    micros: int = 0
    """Duration of the steps in microseconds."""
    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    nanos: int = 0
    """Cost in billionths of a dollar."""
    priced_calls: int = 0
    """Calls of models whose price is known."""
    unpriced_calls: int = 0
    """Calls of models whose price is unknown."""
    scripted_calls: int = 0
    """Calls of the scripted model, which calls no provider and has no price."""

    def add(self, other: UsageAmounts) -> None:
        """Add the amounts of another one."""
        for name in AMOUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class UsageRecord(Struct, frozen=True, kw_only=True):
    """The usage of one execution on one day (UTC)."""

    day: str
    execution: ExecutionId
    workflow: str
    revision: int
    owner: str = ""
    """The user who started it; empty: unknown."""
    entries: tuple[tuple[UsagePlace, UsageAmounts], ...] = ()
    """Each place occurs once."""


UsageName: TypeAlias = Literal["day", "execution", "workflow", "revision", "owner", "node", "model", "key"]
"""A field by which amounts are grouped."""
About: TypeAlias = tuple[str | int, ...]
"""A value for each field of the query."""


class UsageQuery(Struct, frozen=True, kw_only=True):
    """Which amounts to add up, and how to group them."""

    by: tuple[UsageName, ...]
    since: str = ""
    """From this day to `until`, both included; empty: unbounded."""
    until: str = ""
    of: Mapping[UsageName, str] = {}
    """Only entries with these values."""

    @property
    def of_executions(self) -> bool:
        """Return whether the query needs executions or their owners, which the sums do not have."""
        return not OF_EXECUTIONS.isdisjoint({*self.by, *self.of})


OF_EXECUTIONS: Final[frozenset[UsageName]] = frozenset({"execution", "owner"})
ENTRY_MAX: Final = 1 << 50
"""The largest amount: stores add up integers of eight bytes, whatever a provider reports."""
AMOUNTS: Final = UsageAmounts.__struct_fields__

AMOUNT_COLUMNS: Final[LiteralString] = (
    "steps, retries, failures, cached, micros, model_calls, tool_calls, input_tokens, output_tokens, cache_read_tokens,"
    " nanos, priced_calls, unpriced_calls, scripted_calls"
)
"""`AMOUNTS` as a text for statements."""
COLUMNS: Final[tuple[LiteralString, ...]] = (
    *("day", "execution", "workflow", "revision", "owner", "node", "model", "key", "place"),
    *AMOUNT_COLUMNS.split(", "),
)
"""The columns of `usage`; `place` is a digest: names may be too long for an index."""
INSERT_ENTRY: Final[LiteralString] = (
    f"INSERT INTO usage (day, execution, workflow, revision, owner, node, model, key, place, {AMOUNT_COLUMNS})"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
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
ADD_UP: Final = f"""
    INSERT INTO usage_sums ({SUM_NAMES}, entries, {AMOUNT_COLUMNS})
    SELECT {SUM_NAMES}, count(*), {_SUMMED} FROM usage GROUP BY {SUM_NAMES}
"""
"""Compute all sums from the entries."""
_ENTRIES_SAY: Final[LiteralString] = f"SELECT {SUM_NAMES}, count(*), {_SUMMED} FROM usage GROUP BY {SUM_NAMES}"
_SUMS_SAY: Final[LiteralString] = f"SELECT {SUM_NAMES}, entries, {AMOUNT_COLUMNS} FROM usage_sums"
DIFFERENT: Final[tuple[LiteralString, LiteralString]] = (
    f"SELECT count(*) FROM ({_ENTRIES_SAY} EXCEPT {_SUMS_SAY}) AS missing",
    f"SELECT count(*) FROM ({_SUMS_SAY} EXCEPT {_ENTRIES_SAY}) AS unfounded",
)
"""Count the sums that differ from the entries; both are zero in an undamaged store."""


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


def place_of(taking: UsageRecord, place: UsagePlace) -> bytes:
    return hashlib.sha256(msgspec.msgpack.encode((taking.workflow, taking.revision, *place))).digest()


def added_up(takings: Collection[UsageRecord], query: UsageQuery) -> list[tuple[About, UsageAmounts]]:
    """Add up records in memory, for the store without tables."""
    found: dict[About, UsageAmounts] = {}
    for taking in takings:
        if (query.since or taking.day) <= taking.day <= (query.until or taking.day):
            known = {name: getattr(taking, name) for name in ("day", "execution", "workflow", "revision", "owner")}
            for place, taken in taking.entries:
                about = known | place._asdict()
                if all(str(about[name]) == wanted for name, wanted in query.of.items()):
                    found.setdefault(tuple(about[name] for name in query.by), UsageAmounts()).add(taken)
    return [*found.items()]
