"""Effects: the recorded answers of an attempt, which a repeated attempt gets again."""

from __future__ import annotations

from functools import partial
from typing import Final

from pointsman.store.codec import decode_json, encode_json
from pointsman.store.compression import PACKED_BYTES_MAX, Packed, large_values, pack
from pointsman.store.sql.work import Database, KeepBlobs, Statement, Work, opened
from pointsman.values import ExecutionId, Json

RECORDED: Final = "SELECT number, form, data FROM effects WHERE execution = %s AND attempt = %s ORDER BY number"
ATTEMPTS: Final = "SELECT DISTINCT attempt FROM effects WHERE execution = %s ORDER BY attempt"
RECORD: Final = (
    "INSERT INTO effects (execution, attempt, number, form, data) VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
)


class SqlEffects:
    """`Effects` of the SQL stores."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, execution: ExecutionId, attempt: str, number: int, value: Json) -> None:
        await self._database.write(partial(record, execution, attempt, number, packed_value(value)))

    async def recorded(self, execution: ExecutionId, attempt: str) -> dict[int, Json]:
        return await self._database.read(partial(recorded, execution, attempt))

    async def attempts(self, execution: ExecutionId) -> list[str]:
        return await self._database.read(partial(attempts, execution))


def packed_value(value: Json) -> Packed:
    """Encode and pack a value. Raises `UnstorableValue`."""
    plain = encode_json(value)
    return pack(plain, large_values((value,)) if len(plain) > PACKED_BYTES_MAX else ())


def record(execution: ExecutionId, attempt: str, number: int, packed: Packed) -> Work[None]:
    """Store the answer of an effect, unless it has one."""
    if packed.blobs:
        yield KeepBlobs(execution, packed.blobs)
    yield Statement(RECORD, (execution, attempt, number, int(packed.form), packed.data))


def recorded(execution: ExecutionId, attempt: str) -> Work[dict[int, Json]]:
    found = yield Statement(RECORDED, (execution, attempt))
    answers: dict[int, Json] = {}
    for number, form, data in found.rows:
        answers[number] = decode_json((yield from opened(form, data)))
    return answers


def attempts(execution: ExecutionId) -> Work[list[str]]:
    found = yield Statement(ATTEMPTS, (execution,))
    return [attempt for (attempt,) in found.rows]
