"""The journal in PostgreSQL: a group of appended rows is one statement, one round trip and one commit.

    requested rows ─▶ chained to the last known ones ─▶ INSERT … ON CONFLICT DO NOTHING RETURNING ─▶ result per row

A row that is not returned existed already: another process was faster (`JournalMoved`), or this very row was committed
by a statement whose answer got lost. Its hash distinguishes the two. Rows are read page by page.

Deletion removes an execution in one transaction that blocks no other, then the blobs that only it used. The place
behind its last row stays taken for ever.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from functools import cache, partial
from typing import Final, LiteralString, NamedTuple, TypeAlias

import psycopg
from msgspec.structs import replace

from pointsman.engine.events.steps import Event
from pointsman.ports import Row
from pointsman.store.codec import (
    Codec,
    EncodedRow,
    Head,
    Heads,
    check_summary,
    encoded_row,
    first_hash,
    moved,
    row_hash,
)
from pointsman.store.compression import Form, Packed, blobs_behind, pack, unpack
from pointsman.store.coordination import DECIDED_MAIL
from pointsman.store.errors import JournalMoved
from pointsman.store.postgres.blobs import KEEP_BLOBS, RecentBlobs
from pointsman.store.postgres.claims import PostgresClaims
from pointsman.store.postgres.connections import Connection, Connections
from pointsman.store.postgres.database import LAST, PUT_COLUMNS, PUT_NAMES, REPLACED, put_values_of
from pointsman.store.postgres.write_batcher import FENCE, BatchedRequest, StatementSender, WriteBatcher
from pointsman.store.records import EffectRecord, Summary, SweepResult
from pointsman.store.sql.executions import ANSWER_COLUMNS, KEPT_ANSWER, answer_values
from pointsman.store.sql.tables import packed_value
from pointsman.store.sql.work import Database, opened
from pointsman.values import ExecutionId

TAKE_PLACE: Final = """
    INSERT INTO rows (execution, seq, at, shape, form, data, hash) VALUES (%s, %s, 0, 0, %s, '', '')
    ON CONFLICT DO NOTHING
"""
BY_NAME: Final[tuple[LiteralString, ...]] = (
    "DELETE FROM summaries WHERE execution = %s",
    "DELETE FROM answers WHERE execution = %s",
    "DELETE FROM effects WHERE execution = %s",
    "DELETE FROM blob_uses WHERE execution = %s",
    "DELETE FROM mailbox WHERE execution = %s",
    "DELETE FROM placed_steps WHERE execution = %s",
)
UNUSED: Final = """
    blobs AS b WHERE held_until < extract(epoch FROM clock_timestamp())
        AND NOT EXISTS (SELECT FROM blob_uses WHERE hash = b.hash)
"""
TABLES: Final[tuple[LiteralString, ...]] = ("rows", "blobs", "blob_uses", "effects", "summaries", "messages", "memory")
SIZE: Final = "SELECT sum(pg_total_relation_size(name::regclass))::int8 FROM unnest(%s::text[]) AS t (name)"


class PostgresRemoval:
    """The PostgreSQL implementation of `Removal`."""

    def __init__(self, connections: Connections, appender: Appender) -> None:
        self._connections = connections
        self._forget = appender.forget

    async def remove(self, execution: ExecutionId, *, at: int) -> bool:
        async def work(connection: Connection) -> bool:
            heads = await read_heads(connection, [execution])
            head = heads.get(execution, Head(0, b""))
            if head.seq != at:
                raise moved(execution, at + 1, head.seq)
            if head.no:
                await take_away(connection, execution, head)
            deleted = [(await connection.execute(statement, (execution,))).rowcount for statement in BY_NAME]
            return bool(head.no) or any(deleted)

        removed = await self._connections.write(work)
        self._forget(execution)
        await self.sweep()
        return removed

    async def sweep(self, *, dry_run: bool = False) -> SweepResult:
        statement: LiteralString = f"DELETE FROM {UNUSED} RETURNING octet_length(b.data)"
        if dry_run:
            statement = f"SELECT octet_length(b.data) FROM {UNUSED}"

        async def work(connection: Connection) -> SweepResult:
            sizes = [size for (size,) in await (await connection.execute(statement)).fetchall()]
            return SweepResult(blobs=len(sizes), bytes=sum(sizes))

        return await (self._connections.read(work) if dry_run else self._connections.write(work))

    async def compact(self) -> int:
        """Free space at the end of the tables and return its bytes; the server reuses gaps in between."""

        async def work(connection: Connection) -> int:
            before = await size_of(connection)
            await connection.execute("SET statement_timeout = 0")
            try:
                await connection.execute(f"VACUUM {', '.join(TABLES)}")
            finally:
                await connection.execute("RESET statement_timeout")
            return max(0, before - await size_of(connection))

        return await self._connections.read(work, limit_s=None)


async def take_away(connection: Connection, execution: ExecutionId, head: Head) -> None:
    """Delete the name and the rows of an execution."""
    result = await connection.execute(TAKE_PLACE, (head.no, head.seq + 1, int(Form.GONE)))
    if result.rowcount == 0:
        raise moved(execution, head.seq + 1, None)
    await connection.execute("UPDATE executions SET id = '/deleted/' || no WHERE no = %s", (head.no,))
    await connection.execute("DELETE FROM rows WHERE execution = %s AND seq <= %s", (head.no, head.seq))


async def size_of(connection: Connection) -> int:
    """Return the bytes of the growing tables with their indexes."""
    row = await (await connection.execute(SIZE, ([*TABLES],))).fetchone()
    assert row is not None, "an aggregate always has a row"
    return row[0]


PAGE_ROWS: Final = 1000
PAGE_BYTES: Final = 4 * 1024 * 1024
"""Bytes held in memory by one step of reading, packed; a single larger row is read alone."""
PAGE: Final = """
    SELECT seq, at, shape, form, data FROM (
        SELECT seq, at, shape, form, data, sum(octet_length(data)) OVER (ORDER BY seq) - octet_length(data) AS before
        FROM (
            SELECT * FROM rows WHERE execution = (SELECT no FROM executions WHERE id = %b) AND seq > %b::int4
            ORDER BY seq LIMIT %b::int4
        ) AS near
    ) AS sized WHERE before < %b::int8 ORDER BY seq
"""
SEQ_MAX: Final = 2**31 - 1
NO_MAIL: Final[list[int]] = []


class PostgresJournal:
    """Encodes rows in the calling task, so that the caller gets the error of a bad value at once."""

    def __init__(self, connections: Connections, database: Database, appender: Appender, codec: Codec[Event]) -> None:
        self._connections = connections
        self._database = database
        self._appender = appender
        self._codec = codec

    async def append(
        self,
        execution: ExecutionId,
        *rows: Row,
        summary: Summary | None = None,
        effects: Sequence[EffectRecord] = (),
    ) -> None:
        if summary is not None:
            check_summary(summary)
        answers = [PackedEffect(effect.attempt, effect.number, packed_value(effect.value)) for effect in effects]
        encoded = [encoded_row(row, self._codec) for row in rows]
        await self._appender.append(self._appender.request(execution, encoded, summary, answers))

    async def read(self, execution: ExecutionId, *, after: int = 0) -> AsyncIterator[Row]:
        while page := await self._page(execution, after):
            for seq, at, shape, form, data in page:
                after = seq
                plain = data if form == Form.PLAIN else await self._plain(form, data)
                content = self._codec.decode(plain, shape)
                yield Row(seq, at, content.events, content.cause)

    async def last(self, execution: ExecutionId) -> int:
        async def query(connection: Connection) -> int:
            row = await (await connection.execute(LAST, (execution,))).fetchone()
            assert row is not None, "an aggregate always has a row"
            return row[0]

        return await self._connections.read(query)

    async def _page(self, execution: ExecutionId, after: int) -> list[tuple[int, float, int, int, bytes]]:
        async def query(connection: Connection) -> list[tuple[int, float, int, int, bytes]]:
            cursor = connection.cursor(binary=True)
            await cursor.execute(PAGE, (execution, min(after, SEQ_MAX), PAGE_ROWS, PAGE_BYTES))
            return [*await cursor.fetchall()]

        return await self._connections.read(query)

    async def _plain(self, form: int, data: bytes) -> bytes:
        if not blobs_behind(form, data):
            return unpack(form, data, lambda _: b"")
        return await self._database.read(partial(opened, form, data))


TOGETHER_MAX: Final = 500
"""Maximum requests in one statement: limits the duration of one commit."""
PROVEN: Final = (
    "proven AS MATERIALIZED (SELECT e.no FROM executions AS e JOIN unnest(%b::int8[], %b::int8[]) AS g (no, token)"
    " ON e.no = g.no AND e.token = g.token AND (g.token = 0 OR e.owner = %b::int8) FOR SHARE OF e)"
)
"""The executions that this runtime still owns under these tokens: two runtimes that began one id both have token 1. A
claim by another runtime waits until this statement is committed."""
HEADS: Final = """
    SELECT e.id, e.no, r.seq, r.hash FROM executions AS e
    CROSS JOIN LATERAL (SELECT seq, hash FROM rows WHERE execution = e.no ORDER BY seq DESC LIMIT 1) AS r
    WHERE e.id = ANY(%b::text[])
"""
STORED: Final = """
    SELECT g.id, g.seq, r.hash FROM unnest(%b::text[], %b::int4[]) AS g (id, seq)
    JOIN executions AS e USING (id) JOIN rows AS r ON r.execution = e.no AND r.seq = g.seq
"""
Wrote: TypeAlias = Callable[[Sequence[ExecutionId]], None]


class PartialAppend(Exception):
    """Only later rows of an execution would have been written; nothing was written."""


class PackedEffect(NamedTuple):
    """The answer of an effect, packed."""

    attempt: str
    number: int
    packed: Packed


class AppendRequest(BatchedRequest):
    """Encoded rows of one execution, and answers of effects, that are added together."""

    __slots__ = ("effects", "execution", "mail", "rows", "settled_by", "summary", "token")

    def __init__(
        self,
        execution: ExecutionId,
        rows: Sequence[EncodedRow],
        summary: Summary | None,
        effects: Sequence[PackedEffect] = (),
        *,
        token: int = 0,
        mail: int | None = None,
        settled_by: PostgresClaims | None = None,
    ) -> None:
        """`token`: of the claim under which it is written; 0: the execution was never claimed. `mail`: the report that
        its last row decides. `settled_by`: the claims that the outcome concerns, because the execution begins."""
        super().__init__()
        self.settled_by = settled_by
        self.token = token
        self.mail = mail
        self.execution = execution
        self.rows = rows
        self.summary = summary
        self.effects = effects

    def done(self) -> None:
        super().done()
        if self.settled_by is not None:
            self.settled_by.begun(self.execution)

    def refuse(self, why: Exception) -> None:
        super().refuse(why)
        if self.settled_by is not None:
            self.settled_by.begun(self.execution, refused=isinstance(why, JournalMoved))

    def follows(self, seq: int) -> bool:
        """Return whether the rows continue a journal that ends at `seq`."""
        return all(row.seq == seq + number for number, row in enumerate(self.rows, start=1))


class Appender:
    """The writer of journal rows of this process."""

    def __init__(self, connections: Connections, recent: RecentBlobs, wrote: Wrote, claims: PostgresClaims) -> None:
        """`wrote` is called with the executions whose rows were committed."""
        self._connections = connections
        self._fence = connections.fence
        self._sender = StatementSender(connections)
        self._kept = recent
        self._wrote = wrote
        self._claims = claims
        self._heads = Heads()
        self._lane = WriteBatcher(self._carry, together_max=TOGETHER_MAX)

    def request(
        self,
        execution: ExecutionId,
        rows: Sequence[EncodedRow],
        summary: Summary | None,
        effects: Sequence[PackedEffect],
    ) -> AppendRequest:
        """Return the request under the claim that this process has now."""
        decided = DECIDED_MAIL.get(NO_MAIL)
        mail = decided.pop() if decided else None
        token, settled_by = self._claims.token(execution), None
        if token and rows[0].seq == 1:
            settled_by = self._claims
            settled_by.begins(execution)
        return AppendRequest(execution, rows, summary, effects, token=token, mail=mail, settled_by=settled_by)

    async def append(self, request: AppendRequest) -> None:
        self._connections.check_open()
        if not request.token:
            self._fence.check()
        await self._lane.put(request)

    def forget(self, execution: ExecutionId) -> None:
        """Forget the cached end of a journal, because it has changed."""
        self._heads.pop(execution, None)

    async def close(self) -> None:
        await self._lane.close()
        await self._sender.close()

    async def _carry(self, requests: Sequence[AppendRequest]) -> None:
        await self._look_up(requests)
        group = RowGroup()
        batch: list[AppendRequest] = []
        for request in requests:
            execution = request.execution
            head = group.heads.get(execution) or self._heads.get(execution) or Head(0, first_hash(execution))
            if request.follows(head.seq):
                group.add(execution, request.rows, head, request.summary, request.token)
                group.add_effects(execution, request.effects, head)
                if request.mail is not None:
                    group.mail.append((request.mail, head.no or None, request.rows[-1].seq))
                batch.append(request)
            else:
                request.refuse(moved(execution, request.rows[0].seq, head.seq))
        if batch:
            await self._write(group, batch)

    async def _look_up(self, requests: Sequence[AppendRequest]) -> None:
        """Read the ends of journals that are unknown or do not precede these rows.

        A first row needs no lookup: if the journal is not empty, the row is not returned.
        """
        executions: dict[ExecutionId, None] = {}
        ends: dict[ExecutionId, int] = {}
        for request in requests:
            cached_head = self._heads.get(request.execution)
            end = ends.get(request.execution, cached_head.seq if cached_head else 0)
            if request.rows[0].seq != end + 1:
                executions[request.execution] = None
            ends[request.execution] = request.rows[-1].seq
        if executions:
            heads = await self._connections.read(lambda connection: read_heads(connection, [*executions]))
            for execution in executions:
                self._heads.pop(execution, None)
            for execution, head in heads.items():
                self._heads.keep(execution, head)

    async def _write(self, group: RowGroup, requests: Sequence[AppendRequest]) -> None:
        # A claim proves more than the epoch of the leader: what a former leader owns stays its own.
        epoch = None if all(entry.token for entry in requests) else self._fence.epoch
        try:
            reply = await self._sender.send(*statement_for(group, epoch, self._kept, self._claims.me))
        except BaseException as why:
            for execution in group.heads:
                self.forget(execution)
            if not isinstance(why.__cause__, psycopg.errors.DivisionByZero):
                raise
            if len(requests) > 1:
                raise PartialAppend from why
            # It was alone and still not complete: another process wrote its first row.
            raise moved(requests[0].execution, requests[0].rows[0].seq, None) from why
        numbers = {head.no: execution for execution, head in group.heads.items()}
        numbers.update((no, execution) for no, _, execution in reply.rows if execution is not None)
        new_numbers = {execution: no for no, _, execution in reply.rows if execution is not None}
        written: set[Place] = {(numbers[no], seq) for no, seq, _ in reply.rows}
        refused = [row.place for row in group.rows if row.place not in written]
        if refused and reply.again:
            written |= await self._committed_before(group)
        superseded = bool(refused) and epoch is not None and not await self._is_leader()
        for request in requests:
            place = request.execution, request.rows[-1].seq
            if place in written:
                request.done()
            else:
                request.refuse(
                    self._fence.broken() if superseded else moved(request.execution, request.rows[0].seq, None)
                )
        for execution, head in group.heads.items():
            if (execution, head.seq) in written:
                self._heads.keep(execution, replace(head, no=new_numbers.get(execution, head.no)))
            else:
                self.forget(execution)
        self._kept.note(group.blobs)
        self._wrote([*{execution for execution, _ in written}])

    async def _committed_before(self, group: RowGroup) -> set[Place]:
        """Return the rows that exist exactly as this process would have written them."""
        stored = await self._connections.read(
            lambda connection: read_hashes(connection, [row.place for row in group.rows])
        )
        return {row.place for row in group.rows if stored.get(row.place) == row.hash}

    async def _is_leader(self) -> bool:
        async def query(connection: Connection) -> bool:
            cursor = await connection.execute("SELECT 1 FROM leader WHERE epoch = %s", (self._fence.epoch,))
            return await cursor.fetchone() is not None

        return await self._connections.read(query)


async def read_heads(connection: Connection, executions: list[ExecutionId]) -> dict[ExecutionId, Head]:
    """Return the ends of journals; executions without rows are left out."""
    cursor = connection.cursor(binary=True)
    await cursor.execute(HEADS, (executions,))
    return {ExecutionId(execution): Head(seq, hashed, no) for execution, no, seq, hashed in await cursor.fetchall()}


async def read_hashes(connection: Connection, places: Sequence[Place]) -> dict[Place, bytes]:
    cursor = connection.cursor(binary=True)
    await cursor.execute(STORED, ([execution for execution, _ in places], [seq for _, seq in places]))
    return {(execution, seq): hashed for execution, seq, hashed in await cursor.fetchall()}


SUMMARY_VALUES: Final = ", ".join([f"g.{column.name}{'::jsonb' if column.json else ''}" for column in PUT_COLUMNS])
TYPES: Final = ", ".join([f"%b::{column.type}[]" for column in PUT_COLUMNS])
"""Types of the summary columns, as lists."""
RECORDED: Final = (
    "recorded AS (INSERT INTO effects (execution, attempt, number, form, data)"
    " SELECT g.execution, g.attempt, g.number, g.form, g.data FROM unnest(%b::int8[], %b::int4[], %b::text[],"
    " %b::text[], %b::int4[], %b::int2[], %b::bytea[]) AS g (no, seq, execution, attempt, number, form, data)"
)
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
        self.begun: list[tuple[ExecutionId, int]] = []
        """Names of new executions, with the tokens of the claims under which they begin."""
        self.tokens: dict[int, int] = {}
        """Number -> token that the rows prove, for existing executions."""
        self.firsts: dict[int, int] = {}
        """Number -> seq of the first row, for existing executions."""
        self.in_runs = False
        """Whether any of these gets several rows."""
        self.blobs: dict[bytes, bytes] = {}
        self.uses: set[tuple[int | None, ExecutionId, int, bytes]] = set()
        self.summaries: dict[ExecutionId, tuple[int | None, int, Summary]] = {}
        self.mail: list[tuple[int, int | None, int]] = []
        """Reports, with the rows that decide them."""
        self.effects: list[tuple[int | None, int, ExecutionId, str, int, int, bytes]] = []
        """Number and seq of the row that each answer is committed with, then the answer."""

    def add(
        self, execution: ExecutionId, rows: Sequence[EncodedRow], head: Head, summary: Summary | None, token: int
    ) -> None:
        """Chain rows to the end of their journal."""
        no = head.no or None
        if no is not None:
            self.tokens[no] = token
            self.in_runs = self.in_runs or len(rows) > 1 or no in self.firsts
            self.firsts.setdefault(no, rows[0].seq)
        elif head.seq == 0:
            self.begun.append((execution, token))
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
            before = self.summaries.get(execution)
            self.summaries[execution] = no, head.seq, summary.after(None if before is None else before[2])

    def add_effects(self, execution: ExecutionId, effects: Sequence[PackedEffect], head: Head) -> None:
        """Add answers of effects to the rows just added. `head`: the end of the journal before them."""
        no, seq = head.no or None, self.heads[execution].seq
        for attempt, number, packed in effects:
            self.effects.append((no, seq, execution, attempt, number, int(packed.form), packed.data))
            self.blobs.update(packed.blobs)
            self.uses.update((no, execution, seq, digest) for digest in packed.blobs)


def statement_for(
    group: RowGroup, epoch: int | None, recent: RecentBlobs, me: int | None
) -> tuple[LiteralString, list[object]]:
    """Return the statement that writes a group, and its values."""
    blobs = recent.missing(group.blobs)
    values: list[object] = [] if epoch is None else [epoch]
    # Sorted everywhere, so that two processes that write the same rows do not deadlock.
    if group.tokens:
        values += [*columns(sorted(group.tokens.items())), me]
    if blobs:
        values += columns(blobs)
    if group.begun:
        values += columns([(name, me if token else None, token) for name, token in sorted(group.begun)])
    rows = sorted(group.rows, key=lambda row: row.place)
    values += columns(rows) if len(rows) > 1 else rows[0]
    if group.uses:
        uses = sorted(group.uses, key=lambda use: use[1:])
        values += columns(uses)
    if group.summaries:
        listed = [group.summaries[execution] for execution in sorted(group.summaries)]
        values += columns([(no, seq, *put_values_of(summary)) for no, seq, summary in listed])
    answers = [
        (no, seq, *answer_values(answer)) for no, seq, summary in group.summaries.values() for answer in summary.answers
    ]
    if answers:
        values += columns(sorted(answers, key=lambda answer: answer[2:5]))
    if group.effects:
        values += columns(sorted(group.effects, key=lambda effect: effect[2:5]))
    if group.mail:
        values += columns(sorted(group.mail))
    if group.in_runs:
        values += columns(sorted(group.firsts.items()))
    text = statement(
        fenced=epoch is not None,
        claimed=bool(group.tokens),
        alone=len(rows) == 1,
        blobs=bool(blobs),
        begins=bool(group.begun),
        uses=bool(group.uses),
        summaries=bool(group.summaries),
        answers=bool(answers),
        effects=bool(group.effects),
        mail=bool(group.mail),
        in_runs=group.in_runs,
    )
    return text, values


def columns(rows: Sequence[tuple[object, ...]]) -> list[object]:
    return [list(column) for column in zip(*rows, strict=True)]


@cache
def statement(
    *,
    fenced: bool,
    claimed: bool,
    alone: bool,
    blobs: bool,
    begins: bool,
    uses: bool,
    summaries: bool,
    answers: bool,
    effects: bool,
    mail: bool,
    in_runs: bool,
) -> LiteralString:
    """Return the SQL text, composed only of literals in this module.

    The first row of an execution assigns its number; if it has one already, its rows are not written. A single row is
    passed
    as plain values: eight lists of one element take the driver longer than everything else.
    """
    row: LiteralString = "(VALUES (%b::int8, %b::text, %b::int4, %b::float8, %b::int4, %b::int2, %b::bytea, %b::bytea))"
    many: LiteralString = (
        "unnest(%b::int8[], %b::text[], %b::int4[], %b::float8[], %b::int4[], %b::int2[], %b::bytea[], %b::bytea[])"
    )
    behind: LiteralString = ", fence" if fenced else ""
    joined: LiteralString = " LEFT JOIN begun AS b ON b.id = g.execution" if begins else ""
    number: LiteralString = "coalesce(g.no, b.no)" if begins else "g.no"
    parts: list[LiteralString] = [FENCE] if fenced else []
    owned: LiteralString = ""
    proved: LiteralString = f"{number} IS NOT NULL"
    if claimed:
        parts.append(PROVEN)
        owned = " LEFT JOIN proven AS p ON p.no = g.no"
        proved = "coalesce(p.no, b.no) IS NOT NULL" if begins else "p.no IS NOT NULL"
    if blobs:
        parts.append(f"kept AS ({KEEP_BLOBS})")
    if begins:
        parts.append(
            f"begun AS (INSERT INTO executions (id, owner, token)"
            f" SELECT g.* FROM unnest(%b::text[], %b::int8[], %b::int8[]) AS g{behind}"
            " ON CONFLICT DO NOTHING RETURNING no, id)"
        )
    parts.append(
        f"written AS (INSERT INTO rows (execution, seq, at, shape, form, data, hash)"
        f" SELECT {number}, g.seq, g.at, g.shape, g.form, g.data, g.hash FROM {row if alone else many}"
        f" AS g (no, execution, seq, at, shape, form, data, hash){joined}{owned}{behind}"
        f" WHERE {proved} ON CONFLICT DO NOTHING RETURNING execution, seq)"
    )
    parts += derived_parts(number, joined, uses=uses, summaries=summaries, answers=answers, effects=effects, mail=mail)
    return f"WITH {', '.join(parts)} {select_written(begun=begins, in_runs=in_runs)}"


def derived_parts(
    number: LiteralString,
    joined: LiteralString,
    *,
    uses: bool,
    summaries: bool,
    answers: bool,
    effects: bool,
    mail: bool,
) -> list[LiteralString]:
    """Return the parts that write what belongs to the written rows."""
    parts: list[LiteralString] = []
    if uses:
        parts.append(
            "used AS (INSERT INTO blob_uses (execution, hash) SELECT DISTINCT g.execution, g.hash"
            " FROM unnest(%b::int8[], %b::text[], %b::int4[], %b::bytea[]) AS g (no, execution, seq, hash)"
            f"{joined} JOIN written AS w ON w.execution = {number} AND w.seq = g.seq ON CONFLICT DO NOTHING)"
        )
    if summaries:
        parts.append(
            f"listed AS (INSERT INTO summaries ({PUT_NAMES}) SELECT {SUMMARY_VALUES}"
            f" FROM unnest(%b::int8[], %b::int4[], {TYPES}) AS g (no, seq, {PUT_NAMES}){joined}"
            f" JOIN written AS w ON w.execution = {number} AND w.seq = g.seq"
            f" ON CONFLICT (execution) DO UPDATE SET {REPLACED})"
        )
    if answers:
        parts.append(
            f"answered AS (INSERT INTO answers ({ANSWER_COLUMNS})"
            " SELECT g.execution, g.gate, g.person, g.at, g.workflow, g.data FROM unnest(%b::int8[], %b::int4[],"
            " %b::text[], %b::text[], %b::text[], %b::float8[], %b::text[], %b::bytea[])"
            f" AS g (no, seq, {ANSWER_COLUMNS}){joined}"
            f" JOIN written AS w ON w.execution = {number} AND w.seq = g.seq {KEPT_ANSWER})"
        )
    if effects:
        parts.append(
            f"{RECORDED}{joined} JOIN written AS w ON w.execution = {number} AND w.seq = g.seq ON CONFLICT DO NOTHING)"
        )
    if mail:
        parts.append(
            "decided AS (UPDATE mailbox AS m SET seq = w.seq FROM unnest(%b::int8[], %b::int8[], %b::int4[])"
            " AS g (mail, no, seq) JOIN written AS w ON w.execution = g.no AND w.seq = g.seq WHERE m.no = g.mail)"
        )
    return parts


def select_written(*, begun: bool, in_runs: bool) -> LiteralString:
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
