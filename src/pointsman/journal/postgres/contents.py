"""Bytes in PostgreSQL: blobs by their hash, and the answers of effects."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, LiteralString

from pointsman.journal.codec import Form, Packed, compress, content_hash, decode_json, encode_json, pack, unpack
from pointsman.journal.faults import StoreDamaged
from pointsman.journal.postgres.connections import Connection, Connections
from pointsman.journal.postgres.lane import Lane, Request
from pointsman.journal.postgres.sending import FENCE, Sender
from pointsman.values import ExecutionId, Json

TOGETHER_MAX: Final = 500
PUT_BLOB: Final = "INSERT INTO blobs (hash, form, data) VALUES (%b, %b, %b) ON CONFLICT DO NOTHING"


def shrunk(content: bytes) -> tuple[int, bytes]:
    """How a blob lies in its table: its form, and its data."""
    squeezed = compress(content)
    return (int(Form.ZSTD), squeezed) if len(squeezed) < len(content) else (int(Form.PLAIN), content)


async def read_content(connection: Connection, digest: bytes) -> bytes | None:
    """The plain content of a blob."""
    cursor = connection.cursor(binary=True)
    await cursor.execute("SELECT form, data FROM blobs WHERE hash = %b", (digest,))
    found = await cursor.fetchone()
    if found is None:
        return None
    form, data = found
    return unpack(form, data, lost)


async def opened(connection: Connection, form: int, data: bytes) -> bytes:
    """The plain bytes of a column, wherever they are."""
    if form != Form.BLOB:
        return unpack(form, data, lost)
    content = await read_content(connection, data)
    return lost(data) if content is None else content


async def keep(connections: Connections, digest: bytes, content: bytes) -> None:
    """Have a content under its hash."""
    form, data = shrunk(content)

    async def work(connection: Connection) -> None:
        await connection.execute(PUT_BLOB, (digest, form, data))

    await connections.write(work)


def lost(digest: bytes) -> bytes:
    raise StoreDamaged(f"the blob {digest.hex()} is missing", hint="Restore a backup.")


class PostgresBlobs:
    """The table that large rows use too: the same content is kept once, whoever brought it."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def put(self, content: bytes) -> str:
        digest = content_hash(content)
        await keep(self._connections, digest, content)
        return digest.hex()

    async def get(self, digest: str) -> bytes | None:
        return await self._connections.read(lambda connection: read_content(connection, bytes.fromhex(digest)))


class Effect(Request):
    """The answer of one effect, on its way."""

    __slots__ = ("attempt", "execution", "number", "packed")

    def __init__(self, execution: ExecutionId, attempt: str, number: int, packed: Packed) -> None:
        super().__init__()
        self.execution = execution
        self.attempt = attempt
        self.number = number
        self.packed = packed


class PostgresEffects:
    """What was paid for, by execution and attempt. Those of many steps are recorded in one round trip."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._sender = Sender(connections)
        self._lane = Lane(self._carry, together_max=TOGETHER_MAX)

    async def record(self, execution: ExecutionId, attempt: str, number: int, value: Json) -> None:
        self._connections.check_open()
        await self._lane.put(Effect(execution, attempt, number, pack(encode_json(value))))

    async def recorded(self, execution: ExecutionId, attempt: str) -> dict[int, Json]:
        async def query(connection: Connection) -> dict[int, Json]:
            cursor = connection.cursor(binary=True)
            await cursor.execute(
                "SELECT number, form, data FROM effects WHERE execution = %b AND attempt = %b ORDER BY number",
                (execution, attempt),
            )
            rows = await cursor.fetchall()
            return {number: decode_json(await opened(connection, form, data)) for number, form, data in rows}

        return await self._connections.read(query)

    async def close(self) -> None:
        await self._lane.close()
        await self._sender.close()

    async def _carry(self, group: Sequence[Effect]) -> None:
        for one in group:
            if one.packed.form is Form.BLOB:
                await keep(self._connections, one.packed.data, one.packed.content)
        epoch = self._connections.fence.epoch
        rows = [(one.execution, one.attempt, one.number, int(one.packed.form), one.packed.data) for one in group]
        values = [[*column] for column in zip(*rows, strict=True)]
        sent = await self._sender.send(record(fenced=epoch is not None), [*([] if epoch is None else [epoch]), *values])
        if sent.rows == [(0,)]:
            raise self._connections.fence.broken()
        for one in group:
            one.done()


@cache
def record(*, fenced: bool) -> LiteralString:
    """Record effects; where one is recorded already it stays. Tells whether this opening may still write."""
    insert: LiteralString = (
        "INSERT INTO effects (execution, attempt, number, form, data)"
        " SELECT g.* FROM unnest(%b::text[], %b::text[], %b::int4[], %b::int2[], %b::bytea[]) AS g"
    )
    if not fenced:
        return f"WITH recorded AS ({insert} ON CONFLICT DO NOTHING) SELECT 1"
    return f"WITH {FENCE}, recorded AS ({insert}, fence ON CONFLICT DO NOTHING) SELECT count(*) FROM fence"
