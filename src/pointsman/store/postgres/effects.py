"""Recorded answers of effects in PostgreSQL. Answers of many steps are written in one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, LiteralString

from pointsman.store.compression import Packed
from pointsman.store.postgres.blobs import PostgresBlobs
from pointsman.store.postgres.connections import Connections
from pointsman.store.postgres.statement_sender import FENCE, StatementSender
from pointsman.store.postgres.write_batcher import BatchedRequest, WriteBatcher
from pointsman.store.sql.effects import SqlEffects, packed_value
from pointsman.store.sql.work import Database
from pointsman.values import ExecutionId, Json

TOGETHER_MAX: Final = 500


class Effect(BatchedRequest):
    """The answer of one effect, being written."""

    __slots__ = ("attempt", "execution", "number", "packed")

    def __init__(self, execution: ExecutionId, attempt: str, number: int, packed: Packed) -> None:
        super().__init__()
        self.execution = execution
        self.attempt = attempt
        self.number = number
        self.packed = packed


class PostgresEffects:
    """Recorded answers of paid calls, by execution and attempt."""

    def __init__(self, connections: Connections, database: Database, blobs: PostgresBlobs) -> None:
        self._connections = connections
        self._recorded = SqlEffects(database)
        self._blobs = blobs
        self._sender = StatementSender(connections)
        self._lane = WriteBatcher(self._carry, together_max=TOGETHER_MAX)

    async def record(self, execution: ExecutionId, attempt: str, number: int, value: Json) -> None:
        self._connections.check_open()
        self._connections.fence.check()
        packed = packed_value(value)
        if packed.blobs:
            await self._blobs.keep(packed.blobs, user=execution)
        await self._lane.put(Effect(execution, attempt, number, packed))

    async def recorded(self, execution: ExecutionId, attempt: str) -> dict[int, Json]:
        return await self._recorded.recorded(execution, attempt)

    async def attempts(self, execution: ExecutionId) -> list[str]:
        return await self._recorded.attempts(execution)

    async def close(self) -> None:
        await self._lane.close()
        await self._sender.close()

    async def _carry(self, group: Sequence[Effect]) -> None:
        epoch = self._connections.fence.epoch
        rows = [(one.execution, one.attempt, one.number, int(one.packed.form), one.packed.data) for one in group]
        values: list[object] = [[*column] for column in zip(*rows, strict=True)]
        sent = await self._sender.send(record(fenced=epoch is not None), values if epoch is None else [epoch, *values])
        if sent.rows == [(0,)]:
            raise self._connections.fence.broken()
        for one in group:
            one.done()


@cache
def record(*, fenced: bool) -> LiteralString:
    """Return the statement that records effects unless recorded before, and returns whether this process may write."""
    insert: LiteralString = (
        "INSERT INTO effects (execution, attempt, number, form, data)"
        " SELECT g.* FROM unnest(%b::text[], %b::text[], %b::int4[], %b::int2[], %b::bytea[]) AS g"
    )
    if not fenced:
        return f"WITH recorded AS ({insert} ON CONFLICT DO NOTHING) SELECT 1"
    return f"WITH {FENCE}, recorded AS ({insert}, fence ON CONFLICT DO NOTHING) SELECT count(*) FROM fence"
