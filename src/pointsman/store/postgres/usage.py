"""What work took and paid for, in PostgreSQL: entries and their sums, in one transaction."""

from __future__ import annotations

from typing import Final, LiteralString

from pointsman.store.postgres.connections import Connection, Connections, alone
from pointsman.store.usage import (
    ADD,
    DROP_EMPTY,
    FORGET,
    INSERT_ENTRY,
    IS_KNOWN,
    TAKE_OFF,
    About,
    Taken,
    Taking,
    UsageQuery,
    found_in,
    rows_of,
    select,
)


def marked(statement: LiteralString) -> LiteralString:
    """With the marks of this driver."""
    return statement.replace("?", "%s")


INSERT: Final = marked(INSERT_ENTRY)


class PostgresUsage:
    """Whoever puts a taking changes the sums by what it differs from the one before; one after the other."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def put(self, taking: Taking, *, unless_known: bool = False) -> None:
        async def work(connection: Connection) -> None:
            await alone(connection, "usage")
            await put(connection, taking, unless_known=unless_known)

        await self._connections.write(work)

    async def sums(self, query: UsageQuery) -> list[tuple[About, Taken]]:
        statement, values = select(query)

        async def work(connection: Connection) -> list[tuple[About, Taken]]:
            cursor = await connection.execute(marked(statement), values)
            return [found_in(query, row) for row in await cursor.fetchall()]

        return await self._connections.read(work)


async def put(connection: Connection, taking: Taking, *, unless_known: bool) -> None:
    whose = taking.day, taking.execution
    known = await (await connection.execute(marked(IS_KNOWN), whose)).fetchone() is not None
    if known:
        if unless_known:
            return
        await connection.execute(marked(TAKE_OFF), (*whose, taking.day))
        await connection.execute(marked(FORGET), whose)
    async with connection.cursor() as cursor:
        await cursor.executemany(INSERT, rows_of(taking))
    await connection.execute(marked(ADD), whose)
    if known:
        await connection.execute(marked(DROP_EMPTY), (taking.day,))
