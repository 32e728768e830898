"""What remembered values mean, in SQLite: one vector per value and model, compared one by one.

The table is made when it is first asked for; triggers let a vector go with its value, whoever changes that. Where the
extension `sqlite-vec` can be loaded, it compares; else this process does, some four times slower.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from operator import mul
from typing import Final

from pointsman.store.codec import decode_json
from pointsman.store.records import Near, Placed, Unplaced
from pointsman.store.sqlite.memories import PLACE
from pointsman.store.sqlite.reader import Reader
from pointsman.store.sqlite.transaction import Transaction
from pointsman.store.sqlite.writer import Writer
from pointsman.store.vectors import check_length, mark_of, normalized

NUMBER_BYTES: Final = 4
MAKE: Final = (
    """
    CREATE TABLE IF NOT EXISTS memory_vectors (
        no INTEGER NOT NULL,   -- memory.no
        model TEXT NOT NULL,
        vector BLOB NOT NULL,  -- 32-bit floats, of length 1; empty: it cannot be said of this value
        PRIMARY KEY (no, model)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TRIGGER IF NOT EXISTS memory_forgotten AFTER DELETE ON memory
    BEGIN DELETE FROM memory_vectors WHERE no = OLD.no; END
    """,
    """
    CREATE TRIGGER IF NOT EXISTS memory_changed AFTER UPDATE OF value ON memory WHEN NEW.value IS NOT OLD.value
    BEGIN DELETE FROM memory_vectors WHERE no = NEW.no; END
    """,
)
MISSING: Final = """
    SELECT m.key, m.value FROM memory AS m
    WHERE m.scope = ? AND m.namespace = ? AND (m.expires IS NULL OR m.expires > ?)
        AND NOT EXISTS (SELECT 1 FROM memory_vectors AS v WHERE v.no = m.no AND v.model = ?)
    ORDER BY m.key LIMIT ?
"""
LENGTHS: Final = """
    SELECT DISTINCT length(v.vector) FROM memory AS m JOIN memory_vectors AS v ON v.no = m.no
    WHERE m.scope = ? AND m.namespace = ? AND v.model = ?
"""
NEAREST: Final = """
    WITH near AS (
        SELECT m.no, m.key, {similarity} AS similarity FROM memory AS m JOIN memory_vectors AS v ON v.no = m.no
        WHERE m.scope = ?2 AND m.namespace = ?3 AND v.model = ?4 AND length(v.vector) > 0
            AND substr(m.key, 1, length(?1)) = ?1 AND (m.expires IS NULL OR m.expires > ?5)
        ORDER BY similarity DESC, m.key LIMIT ?6
    )
    SELECT near.key, m.value, near.similarity FROM near JOIN memory AS m ON m.no = near.no
    ORDER BY near.similarity DESC, near.key
"""
BY_THE_EXTENSION: Final = "1 - vec_distance_cosine(v.vector, ?7)"
BY_THIS_PROCESS: Final = "similarity(v.vector)"


class SqliteVectors:
    """Each value has at most one vector of a model."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._submit = writer.submit
        self._read = reader.run
        self._made = False

    async def missing(self, scope: str, namespace: str, model: str, *, limit: int, at: float) -> list[Unplaced]:
        await self._make()
        values = (scope, namespace, at, model, limit)
        found: list[tuple[str, bytes]] = await self._read(
            lambda connection: connection.execute(MISSING, values).fetchall()
        )
        return [Unplaced(key, decode_json(data), mark_of(data)) for key, data in found]

    async def place(self, scope: str, namespace: str, model: str, placed: Sequence[Placed]) -> None:
        await self._make()
        await self._submit(lambda transaction: place(transaction, (scope, namespace), model, placed))

    async def nearest(
        self, scope: str, namespace: str, model: str, vector: Sequence[float], *, limit: int, within: str, at: float
    ) -> list[Near]:
        await self._make()
        wanted, values = normalized(vector), (within, scope, namespace, model, at, limit)
        found = await self._read(lambda connection: nearest(connection, wanted, values))
        return [Near(key, decode_json(data), similarity) for key, data, similarity in found]

    async def clear(self) -> int:
        await self._make()
        return await self._submit(lambda transaction: transaction.execute("DELETE FROM memory_vectors").rowcount)

    async def _make(self) -> None:
        if not self._made:
            await self._submit(make)
            self._made = True


def make(transaction: Transaction) -> None:
    for statement in MAKE:
        transaction.execute(statement)


def place(transaction: Transaction, owner: tuple[str, str], model: str, placed: Sequence[Placed]) -> None:
    lengths = lengths_of(transaction.connection, owner, model)
    for one in placed:
        check_length(model, lengths, len(one.vector))
        found = transaction.execute(f"SELECT no, value FROM memory WHERE {PLACE} AND key = ?", (*owner, one.key))
        value: tuple[int, bytes] | None = found.fetchone()
        if value is not None and mark_of(value[1]) == one.mark:
            statement = "INSERT OR REPLACE INTO memory_vectors (no, model, vector) VALUES (?, ?, ?)"
            transaction.execute(statement, (value[0], model, normalized(one.vector).tobytes()))


def lengths_of(connection: sqlite3.Connection, owner: tuple[str, str], model: str) -> list[int]:
    """In numbers."""
    return [length // NUMBER_BYTES for (length,) in connection.execute(LENGTHS, (*owner, model)).fetchall()]


def nearest(
    connection: sqlite3.Connection, wanted: array[float], values: tuple[str, str, str, str, float, int]
) -> list[tuple[str, bytes, float]]:
    _, scope, namespace, model, _, _ = values
    check_length(model, lengths_of(connection, (scope, namespace), model), len(wanted))
    if bring_extension(connection):
        similarity, values_ = BY_THE_EXTENSION, (*values, wanted.tobytes())
    else:
        similarity, values_ = BY_THIS_PROCESS, values
        connection.create_function("similarity", 1, comparing(wanted))
    return connection.execute(NEAREST.format(similarity=similarity), values_).fetchall()


def comparing(wanted: array[float]) -> Callable[[bytes], float]:
    # Numbers are read off the bytes as they lie: an array of its own would have to be filled first.
    return lambda data: float(sum(map(mul, memoryview(data).cast("f"), wanted)))


def bring_extension(connection: sqlite3.Connection) -> bool:
    """Whether `sqlite-vec` compares. Many builds of Python load no extensions of SQLite."""
    if not hasattr(connection, "enable_load_extension") or find_spec("sqlite_vec") is None:
        return False
    known = "SELECT 1 FROM pragma_function_list WHERE name = 'vec_distance_cosine'"
    if connection.execute(known).fetchone() is None:
        import sqlite_vec  # An extra.

        connection.enable_load_extension(True)  # noqa: FBT003 - positional only
        try:
            sqlite_vec.load(connection)
        finally:
            connection.enable_load_extension(False)  # noqa: FBT003 - positional only
    return True
