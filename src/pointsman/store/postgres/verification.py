"""Verification of a PostgreSQL store: the chains of the rows, the contents of the blobs. Reads everything.

The pages of the tables are the server's: `initdb --data-checksums` and `pg_amcheck` check them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, LiteralString

from pointsman.store.compression import Form
from pointsman.store.postgres.connections import Connection
from pointsman.store.sql.verification import ChainCheck, false_blob, lost_blobs
from pointsman.store.usage import DIFFERENT

ROWS_AT_ONCE: Final = 500
BLOBS_AT_ONCE: Final = 8
ROWS: Final = """
    SELECT e.id, r.seq, r.at, r.shape, r.form, r.data, r.hash FROM rows AS r JOIN executions AS e ON e.no = r.execution
    WHERE e.id NOT LIKE '/deleted/%' ORDER BY r.execution, r.seq
"""
STRAYS: Final = "SELECT count(*) FROM rows AS r WHERE NOT EXISTS (SELECT FROM executions WHERE no = r.execution)"
PACKED: Final[tuple[tuple[str, LiteralString], ...]] = (
    ("rows", "SELECT form, data FROM rows WHERE form = ANY(%b::int2[])"),
    ("effects", "SELECT form, data FROM effects WHERE form = ANY(%b::int2[])"),
)


async def find_damage(connection: Connection) -> list[str]:
    """Return every contradiction in the tables, as they are at one moment."""
    async with connection.transaction():
        await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        breaks = [line async for line in find_breaks(connection)]
        strays = await (await connection.execute(STRAYS)).fetchone()
        if strays is not None and strays[0]:
            breaks.append(f"{strays[0]} rows belong to no execution")
        for statement in DIFFERENT:
            wrong = await (await connection.execute(statement)).fetchone()
            if wrong is not None and wrong[0]:
                breaks.append(f"{wrong[0]} sums of usage are not what its entries say")
        return [*breaks, *[line async for line in find_false_blobs(connection)]]


async def find_breaks(connection: Connection) -> AsyncIterator[str]:
    """Follow the chain of each execution."""
    check = ChainCheck()
    async with connection.cursor("rows_to_verify", binary=True) as cursor:
        cursor.itersize = ROWS_AT_ONCE
        await cursor.execute(ROWS)
        async for row in cursor:
            for line in check.breaks(*row):
                yield line


async def find_false_blobs(connection: Connection) -> AsyncIterator[str]:
    cursor = connection.cursor(binary=True)
    await cursor.execute("SELECT hash FROM blobs")
    known = frozenset(digest for (digest,) in await cursor.fetchall())
    for table, statement in PACKED:
        await cursor.execute(statement, ([int(Form.BLOB), int(Form.PIECES)],))
        for line in lost_blobs(table, await cursor.fetchall(), known):
            yield line
    async with connection.cursor("blobs_to_verify", binary=True) as blobs:
        blobs.itersize = BLOBS_AT_ONCE
        await blobs.execute("SELECT hash, form, data FROM blobs ORDER BY hash")
        async for row in blobs:
            for line in false_blob(*row):
                yield line
