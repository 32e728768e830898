"""Contents by their hash, and recorded answers of effects, which may refer to contents.

    blobs ◀── blob_uses (execution, hash) ── written with the row or effect that needs the content
      └─ held_until: not used yet (a definition is stored before the execution that runs it has begun)

A content without uses whose hold has expired may be deleted. A writer that needs an existing content extends its hold:
a concurrent deletion then waits, checks again, and leaves it. Answers of many steps are written in one round trip.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Final, LiteralString

from pointsman.store.codec import moved
from pointsman.store.compression import HOLD_S, Packed, content_hash, squeezed
from pointsman.store.postgres.claims import PostgresClaims
from pointsman.store.postgres.connections import Connection, Connections
from pointsman.store.postgres.write_batcher import FENCE, BatchedRequest, StatementSender, WriteBatcher
from pointsman.store.sql.tables import SqlEffects, packed_value
from pointsman.store.sql.work import Database, find_content
from pointsman.values import ExecutionId, Json

KEEP_BLOBS: Final = (
    "INSERT INTO blobs (hash, form, data, held_until)"
    " SELECT g.*, extract(epoch FROM clock_timestamp()) + 600 FROM unnest(%b::bytea[], %b::int2[], %b::bytea[]) AS g"
    " ON CONFLICT (hash) DO UPDATE SET held_until = greatest(blobs.held_until, excluded.held_until)"
)
USE_BLOBS: Final = (
    "INSERT INTO blob_uses (execution, hash) SELECT g.* FROM unnest(%b::text[], %b::bytea[]) AS g"
    " ON CONFLICT DO NOTHING"
)


KNOWN_MAX: Final = 10_000


class RecentBlobs:
    """Contents that this process has recently stored or confirmed: they are not sent again while the store holds
    them."""

    def __init__(self) -> None:
        self._until: dict[bytes, float] = {}

    def note(self, digests: Iterable[bytes]) -> None:
        """Record that these contents are stored and held."""
        until = time.monotonic() + HOLD_S / 2
        for digest in digests:
            if len(self._until) >= KNOWN_MAX:
                del self._until[next(iter(self._until))]
            self._until[digest] = until

    def missing(self, contents: Mapping[bytes, bytes]) -> list[tuple[bytes, int, bytes]]:
        """Return hash, form and data of the contents to send, in the order of their hashes."""
        now = time.monotonic()
        digests = sorted(digest for digest in contents if self._until.get(digest, 0.0) < now)
        packed = ((digest, squeezed(contents[digest])) for digest in digests)
        return [(digest, int(form), data) for digest, (form, data) in packed]


class PostgresBlobs:
    """Each content is stored once, whatever its sender."""

    def __init__(self, connections: Connections, database: Database, recent: RecentBlobs) -> None:
        self._connections = connections
        self._database = database
        self._recent = recent

    async def put(self, content: bytes) -> str:
        digest = content_hash(content)
        await self.keep({digest: content})
        return digest.hex()

    async def get(self, digest: str) -> bytes | None:
        return await self._database.read(partial(find_content, bytes.fromhex(digest)))

    async def keep(self, contents: Mapping[bytes, bytes], *, user: ExecutionId | None = None) -> None:
        """Store contents under their hashes and hold them for a while; `user` uses them permanently."""
        missing = self._recent.missing(contents)

        async def work(connection: Connection) -> None:
            if missing:
                await send_blobs(connection, missing)
            if user is not None:
                await connection.execute(USE_BLOBS, ([user] * len(contents), [*contents]))

        if missing or user is not None:
            await self._connections.write(work)
            self._recent.note(contents)


async def send_blobs(connection: Connection, rows: list[tuple[bytes, int, bytes]]) -> None:
    await connection.execute(KEEP_BLOBS, [[*column] for column in zip(*rows, strict=True)])


async def keep_blobs(connection: Connection, contents: Mapping[bytes, bytes], *, user: ExecutionId) -> None:
    """Store contents permanently, in the transaction of the connection."""
    await send_blobs(connection, RecentBlobs().missing(contents))
    await connection.execute(USE_BLOBS, ([user] * len(contents), [*contents]))


TOGETHER_MAX: Final = 500


class Effect(BatchedRequest):
    """The answer of one effect, being written."""

    __slots__ = ("attempt", "execution", "number", "packed", "token")

    def __init__(self, execution: ExecutionId, attempt: str, number: int, packed: Packed, token: int) -> None:
        super().__init__()
        self.execution = execution
        self.attempt = attempt
        self.number = number
        self.packed = packed
        self.token = token


class PostgresEffects:
    """Recorded answers of paid calls, by execution and attempt."""

    def __init__(
        self, connections: Connections, database: Database, blobs: PostgresBlobs, claims: PostgresClaims
    ) -> None:
        self._claims = claims
        self._connections = connections
        self._recorded = SqlEffects(database)
        self._blobs = blobs
        self._sender = StatementSender(connections)
        self._lane = WriteBatcher(self._carry, together_max=TOGETHER_MAX)

    async def record(self, execution: ExecutionId, attempt: str, number: int, value: Json) -> None:
        self._connections.check_open()
        if not self._claims.effect_token(execution):
            self._connections.fence.check()
        packed = packed_value(value)
        if packed.blobs:
            await self._blobs.keep(packed.blobs, user=execution)
        await self._lane.put(Effect(execution, attempt, number, packed, self._claims.effect_token(execution)))

    async def recorded(self, execution: ExecutionId, attempt: str) -> dict[int, Json]:
        return await self._recorded.recorded(execution, attempt)

    async def attempts(self, execution: ExecutionId) -> list[str]:
        return await self._recorded.attempts(execution)

    async def close(self) -> None:
        await self._lane.close()
        await self._sender.close()

    async def _carry(self, group: Sequence[Effect]) -> None:
        epoch = None if all(effect.token for effect in group) else self._connections.fence.epoch
        rows = [
            (effect.execution, effect.attempt, effect.number, int(effect.packed.form), effect.packed.data, effect.token)
            for effect in group
        ]
        values: list[object] = [*([*column] for column in zip(*rows, strict=True)), self._claims.me]
        reply = await self._sender.send(record(fenced=epoch is not None), values if epoch is None else [epoch, *values])
        ((may_write, refused),) = reply.rows
        if not may_write:
            raise self._connections.fence.broken()
        for request in group:
            if request.execution in refused:
                request.refuse(moved(request.execution, 0, None))
            else:
                request.done()


@cache
def record(*, fenced: bool) -> LiteralString:
    """Return the statement that records effects unless recorded before. It returns whether this process may write, and
    the executions that another runtime owns now."""
    rows: LiteralString = (
        "given AS MATERIALIZED (SELECT g.* FROM unnest(%b::text[], %b::text[], %b::int4[], %b::int2[], %b::bytea[],"
        " %b::int8[]) AS g (execution, attempt, number, form, data, token)"
    )
    rest: LiteralString = (
        "proven AS MATERIALIZED (SELECT e.id FROM executions AS e"
        " JOIN (SELECT DISTINCT execution, token FROM given) AS g ON e.id = g.execution"
        " AND (e.token = g.token AND (g.token = 0 OR e.owner = %b::int8)"
        " OR g.token < 0 AND EXISTS (SELECT FROM placed_steps AS p WHERE p.execution = e.id AND p.owner = -g.token))"
        " FOR SHARE OF e),"
        " lost AS MATERIALIZED (SELECT DISTINCT g.execution FROM given AS g"
        " JOIN executions AS e ON e.id = g.execution WHERE g.execution NOT IN (SELECT id FROM proven)),"
        " recorded AS (INSERT INTO effects (execution, attempt, number, form, data)"
        " SELECT g.execution, g.attempt, g.number, g.form, g.data FROM given AS g"
        " WHERE NOT EXISTS (SELECT FROM lost WHERE lost.execution = g.execution) ON CONFLICT DO NOTHING)"
    )
    if not fenced:
        return f"WITH {rows}), {rest} SELECT 1, ARRAY(SELECT execution FROM lost)"
    return (
        f"WITH {FENCE}, {rows}, fence), {rest} SELECT (SELECT count(*) FROM fence), ARRAY(SELECT execution FROM lost)"
    )
