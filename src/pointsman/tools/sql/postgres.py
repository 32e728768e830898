"""PostgreSQL queries: each on its own connection, in a read-only transaction that is rolled back.

    DECLARE … FOR query          the server accepts only a single statement that returns rows
    DECLARE … FOR SELECT json    the same, each row as JSON made by the server: rows that are too large are not sent
            FROM (query)         a complete statement cannot escape the parentheses

A superuser, or a role that may read files of the server or run programs there, is refused: functions called by a SELECT
could do so.
"""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Final, LiteralString, cast

import msgspec
import psycopg
from psycopg.rows import TupleRow

from pointsman.platforms import need_posix
from pointsman.tools.sql.queries import FETCHED, SqlQuery, Table, cell, failed, refused, too_slow, unreachable
from pointsman.values import JsonObject

Cursor = psycopg.AsyncRawCursor[TupleRow]

MIGHTY: Final = ("pg_read_server_files", "pg_write_server_files", "pg_execute_server_program", "pg_signal_backend")
IS_MIGHTY: Final = "SELECT rolsuper OR {} FROM pg_roles WHERE rolname = current_user"
BOUNDS: Final = (
    "SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $1, false), "
    "set_config('idle_in_transaction_session_timeout', $1, false)"
)
CANCEL_S: Final = 2.0
"""Time that the server has to accept the cancellation of a query."""

_NUMBERS: Final = msgspec.json.Decoder(dict[str, object], float_hook=Decimal)


async def ask_postgres(question: SqlQuery) -> JsonObject:
    """Run a query and return its rows. Raises `ToolFailed`, `PlatformUnsupported`."""
    need_posix("A query of a database in PostgreSQL")
    try:
        async with asyncio.timeout(question.bounds.timeout.seconds):
            connection = await _connected(question)
            try:
                return await _query(connection, question)
            finally:
                await _close(connection)
    except TimeoutError as why:
        raise too_slow(question) from why
    except psycopg.errors.QueryCanceled as why:
        raise too_slow(question) from why
    except (psycopg.errors.ReadOnlySqlTransaction, psycopg.errors.InvalidCursorDefinition) as why:
        raise refused(question, _message_of(why)) from why
    except psycopg.Error as why:
        if _is_lost(why):
            raise unreachable(question, _message_of(why)) from why
        raise failed("sql-failed", f"{question.database!r}: {_message_of(why)}", hint="Correct the query.") from why
    except UnicodeEncodeError as why:
        raise failed("sql-failed", f"the database {question.database!r} cannot accept this text: {why}") from why


async def _connected(question: SqlQuery) -> psycopg.AsyncConnection[TupleRow]:
    connection = await psycopg.AsyncConnection.connect(
        question.url,
        connect_timeout=max(2, round(question.bounds.timeout.seconds)),
        fallback_application_name="pointsman",
    )
    await connection.set_read_only(True)
    return connection


async def _close(connection: psycopg.AsyncConnection[TupleRow]) -> None:
    try:
        await connection.cancel_safe(timeout=CANCEL_S)
    except psycopg.Error:
        pass  # The server's own statement timeout ends the query.
    finally:
        await connection.close()


async def _query(connection: psycopg.AsyncConnection[TupleRow], question: SqlQuery) -> JsonObject:
    cursor = Cursor(connection)
    # In a statement before the query: a query cannot change the timeout that applies to itself.
    await cursor.execute(BOUNDS, [str(max(1, round(question.bounds.timeout.seconds * 1000)))])
    await _refuse_the_mighty(cursor, question)
    query = question.query.rstrip().removesuffix(";")
    columns = await _columns(cursor, question, query)
    table = Table(columns, question.bounds)
    await cursor.execute(_wrapped(query, len(columns), question.bounds.bytes_max), [*question.parameters])
    while rows := await _fetched(cursor):
        for (text,) in rows:
            if text is None:
                table.too_large()
                return table.to_json()
            row = _NUMBERS.decode(cast("str", text))
            if not table.add([cell(value) for value in row.values()]):
                return table.to_json()
    return table.to_json()


async def _refuse_the_mighty(cursor: Cursor, question: SqlQuery) -> None:
    roles = " OR ".join(f"pg_has_role(current_user, '{role}', 'MEMBER')" for role in MIGHTY)
    await cursor.execute(_sql(IS_MIGHTY.format(roles)))
    if (await cursor.fetchone()) != (False,):
        raise failed(
            "sql-role-privileged",
            f"the role of the database {question.database!r} has more rights on the server than reading tables",
            hint="Use a role of its own with SELECT on the needed tables only: not a superuser, and not a "
            "member of pg_*_server_* roles.",
        )


async def _columns(cursor: Cursor, question: SqlQuery, query: str) -> list[str]:
    """Return the column names without running the query. The server refuses other kinds of statements here."""
    try:
        await cursor.execute(_sql(f"DECLARE asked NO SCROLL CURSOR FOR {query}\n"), [*question.parameters])
    except psycopg.errors.SyntaxError as why:
        if "multiple commands" in str(why):
            raise refused(question, "several statements at once") from why
        raise failed(
            "sql-failed",
            f"{question.database!r}: {_message_of(why)}",
            hint="Use a single SELECT, and correct its syntax.",
        ) from why
    await cursor.execute("FETCH FORWARD 0 FROM asked")
    return [column.name for column in cursor.description or ()]


def _wrapped(query: str, columns: int, bytes_max: int) -> LiteralString:
    names = ", ".join(f"c{number}" for number in range(columns))
    of_a_row = f"SELECT row_to_json(q)::text AS j FROM ({query}\n) AS q({names})" if columns else "SELECT '{}' AS j"
    return _sql(
        f"DECLARE answered NO SCROLL CURSOR FOR "
        f"SELECT CASE WHEN octet_length(j) <= {bytes_max} THEN j END FROM ({of_a_row}) AS r"
    )


async def _fetched(cursor: Cursor) -> list[TupleRow]:
    await cursor.execute(_sql(f"FETCH FORWARD {FETCHED} FROM answered"))
    return await cursor.fetchall()


def _sql(text: str) -> LiteralString:
    # The driver requires literals to prevent injection. Here the query is the input, and the server restricts it.
    return cast("LiteralString", text)


def _is_lost(why: psycopg.Error) -> bool:
    """Return whether the connection failed or was lost. 08P01 is excluded: it also means too few parameters."""
    if why.sqlstate is None:
        return isinstance(why, psycopg.OperationalError)
    return why.sqlstate.startswith(("08", "57")) and why.sqlstate != "08P01"


def _message_of(why: psycopg.Error) -> str:
    """Return the server's message without the statement."""
    return (why.diag.message_primary or str(why).partition("\n")[0]).strip() or type(why).__name__
