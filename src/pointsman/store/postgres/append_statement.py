"""A group of rows, and the statement that writes it with everything committed together with it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, LiteralString, NamedTuple, TypeAlias

from msgspec.structs import replace

from pointsman.store.chain import Head, row_hash
from pointsman.store.compression import pack
from pointsman.store.postgres.blobs import KEEP_BLOBS, RecentBlobs
from pointsman.store.postgres.database import PUT_COLUMNS, REPLACED, put_values_of
from pointsman.store.postgres.statement_sender import FENCE
from pointsman.store.records import Summary
from pointsman.store.row_encoding import EncodedRow
from pointsman.values import ExecutionId

GIVEN: Final = (
    "g.execution, g.workflow, g.revision, g.status, g.started, g.updated, g.parent, g.session, g.owner, g.wakes,"
    " g.worker, g.scripted, g.tokens, g.model_calls, g.tool_calls, g.cost_usd, g.needs::jsonb, g.awaits::jsonb,"
    " g.gates::jsonb"
)
TYPES: Final = (
    "%b::text[], %b::text[], %b::int4[], %b::text[], %b::float8[], %b::float8[], %b::text[], %b::text[], %b::text[],"
    " %b::float8[], %b::text[], %b::bool[], %b::int8[], %b::int8[], %b::int8[], %b::float8[], %b::text[], %b::text[],"
    " %b::text[]"
)
"""Types of the summary columns, as lists."""
Place: TypeAlias = tuple[ExecutionId, int]
"""Execution and seq."""


class ChainedRow(NamedTuple):
    """A row as stored in the table, after the number and the name of its execution."""

    no: int | None
    """None: the execution begins with this group."""
    execution: ExecutionId
    seq: int
    at: float
    shape: int
    form: int
    data: bytes
    hash: bytes

    @property
    def place(self) -> Place:
        return self.execution, self.seq


class RowGroup:
    """The content of one statement."""

    def __init__(self) -> None:
        self.rows: list[ChainedRow] = []
        self.heads: dict[ExecutionId, Head] = {}
        """The ends of the journals after this group."""
        self.begun: list[ExecutionId] = []
        self.firsts: dict[int, int] = {}
        """Number -> seq of the first row, for existing executions."""
        self.in_runs = False
        """Whether any of these gets several rows."""
        self.blobs: dict[bytes, bytes] = {}
        self.uses: set[tuple[int | None, ExecutionId, int, bytes]] = set()
        self.summaries: dict[ExecutionId, tuple[int | None, int, Summary]] = {}

    def add(self, execution: ExecutionId, rows: Sequence[EncodedRow], head: Head, summary: Summary | None) -> None:
        """Chain rows to the end of their journal."""
        no = head.no or None
        if no is not None:
            self.in_runs = self.in_runs or len(rows) > 1 or no in self.firsts
            self.firsts.setdefault(no, rows[0].seq)
        elif head.seq == 0:
            self.begun.append(execution)
        for row in rows:
            packed = pack(row.plain, row.large)
            form = int(packed.form)
            chained = row_hash(head.hash, row.seq, row.at, row.shape, form, packed.data)
            self.rows.append(ChainedRow(no, execution, row.seq, row.at, row.shape, form, packed.data, chained))
            head = Head(row.seq, chained, head.no)
            if packed.blobs or row.names:
                self.blobs.update(packed.blobs)
                self.uses.update((no, execution, row.seq, digest) for digest in (*packed.blobs, *row.names))
        self.heads[execution] = head
        if summary is not None:
            self.summaries[execution] = no, head.seq, with_gates_of(self.summaries.get(execution), summary)


def with_gates_of(before: tuple[int | None, int, Summary] | None, summary: Summary) -> Summary:
    """Return the summary with the open gates of the preceding one, if it does not set them itself."""
    if before is None or summary.gates is not None:
        return summary
    return replace(summary, gates=before[2].gates)


def statement_for(group: RowGroup, epoch: int | None, kept: RecentBlobs) -> tuple[LiteralString, list[object]]:
    """Return the statement that writes a group, and its values."""
    blobs = kept.missing(group.blobs)
    values: list[object] = [] if epoch is None else [epoch]
    # Sorted everywhere, so that two processes that write the same rows do not deadlock.
    if blobs:
        values += columns(blobs)
    if group.begun:
        values.append(sorted(group.begun))
    rows = sorted(group.rows, key=lambda row: row.place)
    values += columns(rows) if len(rows) > 1 else rows[0]
    if group.uses:
        uses = sorted(group.uses, key=lambda use: use[1:])
        values += columns(uses)
    if group.summaries:
        listed = [group.summaries[execution] for execution in sorted(group.summaries)]
        values += columns([(no, seq, *put_values_of(summary)) for no, seq, summary in listed])
    if group.in_runs:
        values += columns(sorted(group.firsts.items()))
    text = statement(
        fenced=epoch is not None,
        alone=len(rows) == 1,
        blobs=bool(blobs),
        begun=bool(group.begun),
        uses=bool(group.uses),
        summaries=bool(group.summaries),
        in_runs=group.in_runs,
    )
    return text, values


def columns(rows: Sequence[tuple[object, ...]]) -> list[object]:
    return [list(column) for column in zip(*rows, strict=True)]


@cache
def statement(
    *, fenced: bool, alone: bool, blobs: bool, begun: bool, uses: bool, summaries: bool, in_runs: bool
) -> LiteralString:
    """Return the SQL text, composed only of literals in this module.

    The first row of an execution assigns its number; if it has one already, its rows are not written. A single row is
    passed
    as plain values: eight lists of one element take the driver longer than everything else.
    """
    one: LiteralString = "(VALUES (%b::int8, %b::text, %b::int4, %b::float8, %b::int4, %b::int2, %b::bytea, %b::bytea))"
    many: LiteralString = (
        "unnest(%b::int8[], %b::text[], %b::int4[], %b::float8[], %b::int4[], %b::int2[], %b::bytea[], %b::bytea[])"
    )
    behind: LiteralString = ", fence" if fenced else ""
    joined: LiteralString = " LEFT JOIN begun AS b ON b.id = g.execution" if begun else ""
    number: LiteralString = "coalesce(g.no, b.no)" if begun else "g.no"
    parts: list[LiteralString] = [FENCE] if fenced else []
    if blobs:
        parts.append(f"kept AS ({KEEP_BLOBS})")
    if begun:
        parts.append(
            f"begun AS (INSERT INTO executions (id) SELECT g.* FROM unnest(%b::text[]) AS g{behind}"
            " ON CONFLICT DO NOTHING RETURNING no, id)"
        )
    parts.append(
        f"written AS (INSERT INTO rows (execution, seq, at, shape, form, data, hash)"
        f" SELECT {number}, g.seq, g.at, g.shape, g.form, g.data, g.hash FROM {one if alone else many}"
        f" AS g (no, execution, seq, at, shape, form, data, hash){joined}{behind}"
        f" WHERE {number} IS NOT NULL ON CONFLICT DO NOTHING RETURNING execution, seq)"
    )
    if uses:
        parts.append(
            "used AS (INSERT INTO blob_uses (execution, hash) SELECT DISTINCT g.execution, g.hash"
            " FROM unnest(%b::int8[], %b::text[], %b::int4[], %b::bytea[]) AS g (no, execution, seq, hash)"
            f"{joined} JOIN written AS w ON w.execution = {number} AND w.seq = g.seq ON CONFLICT DO NOTHING)"
        )
    if summaries:
        parts.append(
            f"listed AS (INSERT INTO summaries ({PUT_COLUMNS}) SELECT {GIVEN}"
            f" FROM unnest(%b::int8[], %b::int4[], {TYPES}) AS g (no, seq, {PUT_COLUMNS}){joined}"
            f" JOIN written AS w ON w.execution = {number} AND w.seq = g.seq"
            f" ON CONFLICT (execution) DO UPDATE SET {REPLACED})"
        )
    return f"WITH {', '.join(parts)} {told(begun=begun, in_runs=in_runs)}"


def told(*, begun: bool, in_runs: bool) -> LiteralString:
    """Return the SELECT of the written rows, by number of their execution, and of the name that got its number here."""
    name: LiteralString = "b.id" if begun else "NULL"
    joined: LiteralString = " LEFT JOIN begun AS b ON b.no = w.execution" if begun else ""
    if not in_runs:
        return f"SELECT w.execution, w.seq, {name} FROM written AS w{joined}"
    # If the first row of a run was rejected, the whole statement is: a division by zero rolls it back.
    return (
        f"SELECT w.execution, w.seq, {name} FROM"
        " (SELECT *, min(seq) OVER (PARTITION BY execution) AS least FROM written) AS w"
        f"{joined} LEFT JOIN unnest(%b::int8[], %b::int4[]) AS f (no, first) ON f.no = w.execution"
        " WHERE 1 / CASE WHEN f.first IS NULL OR w.least = f.first THEN 1 ELSE 0 END = 1"
    )
