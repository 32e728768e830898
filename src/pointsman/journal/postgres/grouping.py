"""A group of rows, and the statement that writes it with everything that must be committed with them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import LiteralString, NamedTuple, TypeAlias

from pointsman.journal.chain import Head, row_hash
from pointsman.journal.packing import pack
from pointsman.journal.postgres.blobs import KEEP_BLOBS, USE_BLOBS, Kept
from pointsman.journal.postgres.sending import FENCE
from pointsman.journal.postgres.summaries import COLUMNS, REPLACED, TYPES, values_of
from pointsman.journal.records import Summary
from pointsman.journal.writing import Written
from pointsman.values import ExecutionId

Place: TypeAlias = tuple[ExecutionId, int]
"""Execution and seq."""


class Chained(NamedTuple):
    """A row as it will lie in the table."""

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


class Group:
    """What goes into one statement."""

    def __init__(self) -> None:
        self.rows: list[Chained] = []
        self.heads: dict[ExecutionId, Head] = {}
        """The ends of the journals, once the group is written."""
        self.firsts: dict[ExecutionId, int] = {}
        self.blobs: dict[bytes, bytes] = {}
        self.uses: set[tuple[ExecutionId, bytes]] = set()
        self.summaries: dict[ExecutionId, Summary] = {}

    def add(self, execution: ExecutionId, rows: Sequence[Written], head: Head, summary: Summary | None) -> None:
        """Chain rows to the end of their journal."""
        self.firsts.setdefault(execution, rows[0].seq)
        for row in rows:
            packed = pack(row.plain, row.large)
            form = int(packed.form)
            chained = row_hash(head.hash, row.seq, row.at, row.shape, form, packed.data)
            self.rows.append(Chained(execution, row.seq, row.at, row.shape, form, packed.data, chained))
            head = Head(row.seq, chained)
            if packed.blobs or row.names:
                self.blobs.update(packed.blobs)
                self.uses.update((execution, digest) for digest in (*packed.blobs, *row.names))
        self.heads[execution] = head
        if summary is not None:
            self.summaries[execution] = summary

    @property
    def in_runs(self) -> bool:
        """Some execution has several rows in it."""
        return len(self.firsts) < len(self.rows)


def statement_for(group: Group, epoch: int | None, kept: Kept) -> tuple[LiteralString, list[object]]:
    """The statement that writes a group, and its values."""
    blobs = kept.missing(group.blobs)
    values: list[object] = [] if epoch is None else [epoch]
    # In one order everywhere: two processes that write the same rows must not wait for each other in a circle.
    if blobs:
        values += columns(blobs)
    if group.uses:
        values += columns(sorted(group.uses))
    values += columns(sorted(group.rows))
    if group.summaries:
        summaries = [group.summaries[execution] for execution in sorted(group.summaries)]
        values += columns([(*values_of(one), group.heads[one.execution].seq) for one in summaries])
    if group.in_runs:
        values += columns(sorted(group.firsts.items()))
    text = statement(
        fenced=epoch is not None,
        blobs=bool(blobs),
        uses=bool(group.uses),
        summaries=bool(group.summaries),
        in_runs=group.in_runs,
    )
    return text, values


def columns(rows: Sequence[tuple[object, ...]]) -> list[object]:
    return [list(column) for column in zip(*rows, strict=True)]


@cache
def statement(*, fenced: bool, blobs: bool, uses: bool, summaries: bool, in_runs: bool) -> LiteralString:
    """Nothing but these texts ever enters it."""
    behind: LiteralString = ", fence" if fenced else ""
    parts: list[LiteralString] = [FENCE] if fenced else []
    if blobs:
        parts.append(f"kept AS ({KEEP_BLOBS})")
    if uses:
        parts.append(f"used AS ({USE_BLOBS})")
    parts.append(
        "written AS (INSERT INTO rows (execution, seq, at, shape, form, data, hash) SELECT g.* FROM unnest("
        "%b::text[], %b::int4[], %b::float8[], %b::int4[], %b::int2[], %b::bytea[], %b::bytea[]"
        f") AS g (execution, seq, at, shape, form, data, hash){behind} ON CONFLICT DO NOTHING RETURNING execution, seq)"
    )
    if summaries:
        parts.append(
            f"listed AS (INSERT INTO summaries ({COLUMNS}) SELECT {COLUMNS}::jsonb FROM unnest({TYPES}, %b::int4[])"
            f" AS g ({COLUMNS}, seq) JOIN written USING (execution, seq)"
            f" ON CONFLICT (execution) DO UPDATE SET {REPLACED})"
        )
    found: LiteralString = "SELECT execution, seq FROM written"
    if in_runs:
        # Where the first row of a run was kept out, the whole statement is: dividing by zero takes it back.
        found = (
            "SELECT w.execution, w.seq FROM (SELECT *, min(seq) OVER (PARTITION BY execution) AS least FROM written)"
            " AS w JOIN unnest(%b::text[], %b::int4[]) AS f (execution, first) USING (execution)"
            " WHERE 1 / CASE WHEN w.least = f.first THEN 1 ELSE 0 END = 1"
        )
    return f"WITH {', '.join(parts)} {found}"
