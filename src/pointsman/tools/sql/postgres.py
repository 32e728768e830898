"""Questions to PostgreSQL, in a transaction that only reads and is rolled back, on a connection of their own.

    DECLARE … FOR query          the server takes nothing here but one statement that gives rows
    DECLARE … FOR SELECT json    the same, each row as JSON on the server: what is too large is never sent
            FROM (query)         what is a whole statement cannot leave its parentheses

A role that may read the files of the server, run programs there or is above all rules is refused: functions called by
a SELECT would do so.
"""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Final, LiteralString, cast

import msgspec
import psycopg
from psycopg.rows import TupleRow

from pointsman.tools.sql.results import FETCHED, SqlQuery, Table, cell, failed, refused, too_slow, unreachable
from pointsman.values import JsonObject

Cursor = psycopg.AsyncRawCursor[TupleRow]

MIGHTY: Final = ("pg_read_server_files", "pg_write_server_files", "pg_execute_server_program", "pg_signal_backend")
IS_MIGHTY: Final = "SELECT rolsuper OR {} FROM pg_roles WHERE rolname = current_user"
BOUNDS: Final = (
    "SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $1, false), "
    "set_config('idle_in_transaction_session_timeout', $1, false)"
)
CANCEL_S: Final = 2.0
"""How long the server has to hear that nobody waits any more."""

_NUMBERS: Final = msgspec.json.Decoder(dict[str, object], float_hook=Decimal)


async def ask_postgres(question: SqlQuery) -> JsonObject:
    """Raises `ToolFailed`."""
    try:
        async with asyncio.timeout(question.bounds.timeout.seconds):
            connection = await _connected(question)
            try:
                return await _asked(connection, question)
            finally:
                await _let_go(connection)
    except TimeoutError as why:
        raise too_slow(question) from why
    except psycopg.errors.QueryCanceled as why:
        raise too_slow(question) from why
    except (psycopg.errors.ReadOnlySqlTransaction, psycopg.errors.InvalidCursorDefinition) as why:
        raise refused(question, _said(why)) from why
    except psycopg.Error as why:
        if _is_lost(why):
            raise unreachable(question, _said(why)) from why
        raise failed("sql-failed", f"{question.database!r}: {_said(why)}", hint="Correct the query.") from why
    except UnicodeEncodeError as why:
        raise failed("sql-failed", f"{question.database!r} cannot take this text: {why}") from why


async def _connected(question: SqlQuery) -> psycopg.AsyncConnection[TupleRow]:
    connection = await psycopg.AsyncConnection.connect(
        question.url,
        connect_timeout=max(2, round(question.bounds.timeout.seconds)),
        fallback_application_name="pointsman",
    )
    await connection.set_read_only(True)
    return connection


async def _let_go(connection: psycopg.AsyncConnection[TupleRow]) -> None:
    try:
        await connection.cancel_safe(timeout=CANCEL_S)
    except psycopg.Error:
        pass  # The server ends it by its own clock.
    finally:
        await connection.close()


async def _asked(connection: psycopg.AsyncConnection[TupleRow], question: SqlQuery) -> JsonObject:
    cursor = Cursor(connection)
    # Before anything of the question: what it sets later is too late for the statement that sets it.
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
            "sql-role-too-mighty",
            f"the role of {question.database!r} may do more on the server than read tables",
            hint="Give a role of its own, with SELECT on what may be read: no superuser, no pg_*_server_* roles.",
        )


async def _columns(cursor: Cursor, question: SqlQuery, query: str) -> list[str]:
    """The names of the columns; nothing is worked out yet. Where the statement is another one, the server refuses."""
    try:
        await cursor.execute(_sql(f"DECLARE asked NO SCROLL CURSOR FOR {query}\n"), [*question.parameters])
    except psycopg.errors.SyntaxError as why:
        if "multiple commands" in str(why):
            raise refused(question, "several statements at once") from why
        raise failed(
            "sql-failed", f"{question.database!r}: {_said(why)}", hint="Ask with one SELECT, and correct its syntax."
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
    # The driver wants literals, lest data become code. Here the code is what was asked, and the server holds it.
    return cast("LiteralString", text)


def _is_lost(why: psycopg.Error) -> bool:
    """No server, or no more. Of the class 08 one code means a question with too few parameters."""
    if why.sqlstate is None:
        return isinstance(why, psycopg.OperationalError)
    return why.sqlstate.startswith(("08", "57")) and why.sqlstate != "08P01"


def _said(why: psycopg.Error) -> str:
    """What the server says, without the statement."""
    return (why.diag.message_primary or str(why).partition("\n")[0]).strip() or type(why).__name__
