"""Looking for damage: the chains of the rows, the contents of the blobs. Reads everything.

What a chain cannot tell is that rows were taken off its very end: compare with a backup for that. The pages of the
tables are the server's: `initdb --data-checksums` and `pg_amcheck` watch over them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, LiteralString

from pointsman.store.chain import first_hash, row_hash
from pointsman.store.compression import Form, content_hash, needed
from pointsman.store.errors import StoreFailed
from pointsman.store.postgres.blobs import find_content
from pointsman.store.postgres.connections import Connection
from pointsman.store.usage import DIFFERENT
from pointsman.values import ExecutionId

AT_A_TIME: Final = 500
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
    """Every contradiction in the tables, as they are at one moment."""
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
    """Follow every chain. After a break it is taken up again, so that each damaged row is told once."""
    followed, previous, expected = "", b"", 1
    async with connection.cursor("rows_to_verify", binary=True) as cursor:
        cursor.itersize = AT_A_TIME
        await cursor.execute(ROWS)
        async for execution, seq, at, shape, form, data, stored in cursor:
            if execution != followed:
                followed, previous, expected = execution, first_hash(ExecutionId(execution)), 1
            if seq != expected:
                yield f"execution {execution!r}: row {expected} is missing"
            elif row_hash(previous, seq, at, shape, form, data) != stored:
                yield f"execution {execution!r}: row {seq} is not what was written"
            previous, expected = stored, seq + 1


async def find_false_blobs(connection: Connection) -> AsyncIterator[str]:
    cursor = connection.cursor(binary=True)
    await cursor.execute("SELECT hash FROM blobs ORDER BY hash")
    known: list[bytes] = [digest for (digest,) in await cursor.fetchall()]
    for table, statement in PACKED:
        await cursor.execute(statement, ([int(Form.BLOB), int(Form.PIECES)],))
        packed = [needed(form, data) for form, data in await cursor.fetchall()]
        lost = sum(not {*known}.issuperset(needs) for needs in packed if needs is not None)
        if lost:
            yield f"the blobs of {lost} {table} are missing"
    for digest in known:
        try:
            content = await find_content(connection, digest)
        except StoreFailed as why:
            yield f"blob {digest.hex()} cannot be unpacked: {why}"
            continue
        if content is None or content_hash(content) != digest:
            yield f"blob {digest.hex()} is not what was written"
