"""Bytes in SQLite: blobs by their hash, and the answers of effects."""

from __future__ import annotations

import sqlite3

from pointsman.store.codec import decode_json, encode_json
from pointsman.store.compression import PACKED_BYTES_MAX, large_values, unpack
from pointsman.store.sqlite.blobs import read_content
from pointsman.store.sqlite.reader import Reader
from pointsman.store.sqlite.transaction import Transaction
from pointsman.store.sqlite.writer import Writer
from pointsman.values import ExecutionId, Json


class SqliteBlobs:
    """The table that large rows use too: the same content is kept once, whoever brought it."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._submit = writer.submit
        self._read = reader.run

    async def put(self, content: bytes) -> str:
        return (await self._submit(lambda transaction: transaction.hold(content))).hex()

    async def get(self, digest: str) -> bytes | None:
        return await self._read(lambda connection: find_content(connection, bytes.fromhex(digest)))


class SqliteEffects:
    """What was paid for, by execution and attempt."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._submit = writer.submit
        self._read = reader.run

    async def record(self, execution: ExecutionId, attempt: str, number: int, value: Json) -> None:
        plain = encode_json(value)
        large = large_values((value,)) if len(plain) > PACKED_BYTES_MAX else ()

        def apply(transaction: Transaction) -> None:
            packed = transaction.pack(execution, plain, large)
            transaction.execute(
                "INSERT INTO effects (execution, attempt, number, form, data) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                (execution, attempt, number, int(packed.form), packed.data),
            )

        await self._submit(apply)

    async def recorded(self, execution: ExecutionId, attempt: str) -> dict[int, Json]:
        return await self._read(lambda connection: read_effects(connection, execution, attempt))

    async def attempts(self, execution: ExecutionId) -> list[str]:
        statement = "SELECT DISTINCT attempt FROM effects WHERE execution = ? ORDER BY attempt"
        return await self._read(lambda connection: [one for (one,) in connection.execute(statement, (execution,))])


def find_content(connection: sqlite3.Connection, digest: bytes) -> bytes | None:
    known = connection.execute("SELECT 1 FROM blobs WHERE hash = ?", (digest,)).fetchone()
    return None if known is None else read_content(connection, digest)


def read_effects(connection: sqlite3.Connection, execution: ExecutionId, attempt: str) -> dict[int, Json]:
    rows: list[tuple[int, int, bytes]] = connection.execute(
        "SELECT number, form, data FROM effects WHERE execution = ? AND attempt = ? ORDER BY number",
        (execution, attempt),
    ).fetchall()
    return {
        number: decode_json(unpack(form, data, lambda digest: read_content(connection, digest)))
        for number, form, data in rows
    }
