"""What work took and paid for, in SQLite: entries and their sums, in one transaction."""

from __future__ import annotations

from pointsman.store.sqlite.reader import Reader
from pointsman.store.sqlite.transaction import Transaction
from pointsman.store.sqlite.writer import Writer
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


class SqliteUsage:
    """Whoever puts a taking changes the sums by what it differs from the one before."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._submit = writer.submit
        self._read = reader.run

    async def put(self, taking: Taking, *, unless_known: bool = False) -> None:
        await self._submit(lambda transaction: put(transaction, taking, unless_known=unless_known))

    async def sums(self, query: UsageQuery) -> list[tuple[About, Taken]]:
        statement, values = select(query)
        found: list[tuple[str | int, ...]] = await self._read(
            lambda connection: connection.execute(statement, values).fetchall()
        )
        return [found_in(query, row) for row in found]


def put(transaction: Transaction, taking: Taking, *, unless_known: bool) -> None:
    whose = taking.day, taking.execution
    known = transaction.execute(IS_KNOWN, whose).fetchone() is not None
    if known:
        if unless_known:
            return
        transaction.execute(TAKE_OFF, (*whose, taking.day))
        transaction.execute(FORGET, whose)
    transaction.connection.executemany(INSERT_ENTRY, rows_of(taking))
    transaction.execute(ADD, whose)
    if known:
        transaction.execute(DROP_EMPTY, (taking.day,))
