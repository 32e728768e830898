"""The tool `sql`: lets a model or a tool node read databases of the operator; and queries on SQLite.

A file of SQLite is opened read-only, and an authorizer refuses all other operations before they run. Queries run in a
thread. A cancelled caller sets `stop`; the deadline ends the query in any case.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final, cast

from pointsman.extras import need
from pointsman.ports import ToolSpec
from pointsman.tools.sql.queries import (
    DatabaseDescription,
    SqlQuery,
    Table,
    cell,
    engine_of,
    failed,
    file_of,
    refused,
    too_slow,
    unreachable,
)
from pointsman.tools.tool import ToolContext, ToolLimits
from pointsman.values import Bytes, Json, JsonObject

READING: Final = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
FUNCTIONS: Final = frozenset({"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer", "sqlite_log"})
"""Functions with side effects, in some builds of SQLite."""
QUERY_BYTES_MAX: Final = 100_000
VALUE_BYTES_MAX: Final = 16_000_000
"""Maximum size of one text or blob during evaluation."""
LOOKS_EACH: Final = 10_000
"""Virtual machine instructions between two checks of the deadline."""
WAIT_S: Final = 2.0
"""Time to wait for a writer's lock."""
DENIED: Final = ("not authorized", "authorization denied", "prohibited")


async def ask_sqlite(question: SqlQuery) -> JsonObject:
    """Run a query and return its rows. Raises `ToolFailed`."""
    stop = threading.Event()
    try:
        return await asyncio.to_thread(_ask, question, stop)
    finally:
        stop.set()


def _ask(question: SqlQuery, stop: threading.Event) -> JsonObject:
    ends = time.monotonic() + question.bounds.timeout.seconds
    connection = _opened(question)
    try:
        # The query is interrupted as soon as the handler returns true.
        connection.set_progress_handler(lambda: stop.is_set() or time.monotonic() >= ends, LOOKS_EACH)
        return _answer(connection, question)
    except (sqlite3.Error, sqlite3.Warning) as why:
        if isinstance(why, sqlite3.OperationalError) and str(why) == "interrupted":
            raise too_slow(question) from why
        if any(word in str(why) for word in DENIED):
            raise refused(question, str(why)) from why
        if "one statement" in str(why):
            raise refused(question, "several statements at once") from why
        raise failed("sql-failed", f"{question.database!r}: {why}", hint="Correct the query.") from why
    except (OverflowError, UnicodeEncodeError) as why:
        raise failed("sql-failed", f"the database {question.database!r} cannot accept a parameter: {why}") from why
    finally:
        connection.close()


def _opened(question: SqlQuery) -> sqlite3.Connection:
    path = file_of(question.url)
    if not path.is_file():
        raise unreachable(question, "the file does not exist")
    try:
        connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=WAIT_S)
    except sqlite3.Error as why:
        raise unreachable(question, str(why)) from why
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
    except sqlite3.Error as why:
        connection.close()
        raise unreachable(question, str(why)) from why
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, QUERY_BYTES_MAX)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.set_authorizer(_authorize)
    # Bytes that are not UTF-8 are replaced.
    connection.text_factory = _text
    return connection


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _authorize(action: int, one: str | None, other: str | None, database: str | None, trigger: str | None) -> int:
    if action not in READING or (action == sqlite3.SQLITE_FUNCTION and (other or "").lower() in FUNCTIONS):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _answer(connection: sqlite3.Connection, question: SqlQuery) -> JsonObject:
    parameters = {str(number): value for number, value in enumerate(question.parameters, start=1)}
    cursor = connection.execute(question.query, parameters)
    described = cast("tuple[tuple[str, ...], ...] | None", cursor.description)
    if described is None:
        raise refused(question, "the statement returns no rows")
    table = Table([column[0] for column in described], question.bounds)
    while (row := cast("tuple[object, ...] | None", cursor.fetchone())) is not None:
        if not table.add([cell(value) for value in row]):
            break
    return table.to_json()


NAME: Final = "sql"
DESCRIPTION: Final = "Read a database with one SELECT. Values go to `parameters` ($1, $2 …), not into the query."
COLUMNS_BYTES: Final = 200_000
"""Space for the names of columns, in addition to the rows."""


class SqlTool:
    """One tool for all databases; with several, an argument selects one."""

    def __init__(self, databases: Mapping[str, DatabaseDescription], *, resolved: Callable[[str], str | None]) -> None:
        """`resolved` returns the address of a handle."""
        self.name = NAME
        self._databases = databases
        self._resolved = resolved
        most = max(database.bytes_max for database in databases.values())
        self.limits = ToolLimits(output_bytes_max=Bytes(most + COLUMNS_BYTES))
        self.spec = ToolSpec(
            name=NAME, description=self._described(), parameters=_parameters(databases), idempotent=True
        )

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Run a query; return {"columns", "rows", "truncated"?}. Raises `ToolFailed`."""
        question = self._question(arguments)
        if engine_of(question.url) == "SQLite":
            return await ask_sqlite(question)
        need("postgres", f"The database {question.database!r}")
        from pointsman.tools.sql.postgres import ask_postgres

        return await ask_postgres(question)

    def _question(self, arguments: JsonObject) -> SqlQuery:
        name = str(arguments.get("database") or next(iter(self._databases)))
        bounds = self._databases[name]
        url = self._resolved(bounds.url)
        if url is None or engine_of(url) is None:
            message = f"the database {name!r} has no usable address"
            raise failed(
                "secret-missing", message, hint=f"`sql.{name}.url` names a secret: set it to a database address."
            )
        parameters = arguments.get("parameters")
        return SqlQuery(
            database=name,
            url=url,
            query=str(arguments.get("query")),
            parameters=tuple(parameters) if isinstance(parameters, list) else (),
            bounds=bounds,
        )

    def _described(self) -> str:
        databases = [
            f"{name} ({engine_of(self._resolved(database.url) or '') or 'unknown'}"
            f"{': ' if database.description else ''}{database.description})"
            for name, database in self._databases.items()
        ]
        where = "Tables are listed in sqlite_master or information_schema.tables."
        return f"{DESCRIPTION} Databases: {', '.join(databases)}. {where}"


def _parameters(databases: Mapping[str, DatabaseDescription]) -> JsonObject:
    names: list[Json] = [*databases]
    several = len(names) > 1
    return {
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "description": "One SELECT."},
            "parameters": {
                "type": "array",
                "maxItems": 1000,
                "items": {"type": ["string", "number", "boolean", "null"]},
                "description": "Values of $1, $2 … in the query.",
            },
            "database": {"type": "string", "enum": names},
        },
        "required": ["query", "database"] if several else ["query"],
        "additionalProperties": False,
    }
