"""`sql`: lets a model or a tool node read databases of the operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pointsman.extras import need
from pointsman.ports import ToolSpec
from pointsman.tools.sql.config import DatabaseDescription, engine_of
from pointsman.tools.sql.results import SqlQuery, failed
from pointsman.tools.tool import ToolContext, ToolLimits
from pointsman.values import Bytes, Json, JsonObject

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
        most = max(one.bytes_max for one in databases.values())
        self.limits = ToolLimits(output_bytes_max=Bytes(most + COLUMNS_BYTES))
        self.spec = ToolSpec(
            name=NAME, description=self._described(), parameters=_parameters(databases), idempotent=True
        )

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Run a query; return {"columns", "rows", "truncated"?}. Raises `ToolFailed`."""
        question = self._question(arguments)
        if engine_of(question.url) == "SQLite":
            from pointsman.tools.sql.sqlite import ask_sqlite

            return await ask_sqlite(question)
        need("postgres", f"The database {question.database!r}")
        from pointsman.tools.sql.postgres import ask_postgres

        return await ask_postgres(question)

    def _question(self, arguments: JsonObject) -> SqlQuery:
        name = str(arguments.get("database") or next(iter(self._databases)))
        bounds = self._databases[name]
        url = self._resolved(bounds.url)
        if url is None or engine_of(url) is None:
            message = f"there is no usable address of the database {name!r}"
            raise failed("secret-missing", message, hint=f"`sql.{name}.url` names a secret: set it to an address.")
        given = arguments.get("parameters")
        return SqlQuery(
            database=name,
            url=url,
            query=str(arguments.get("query")),
            parameters=tuple(given) if isinstance(given, list) else (),
            bounds=bounds,
        )

    def _described(self) -> str:
        told = [
            f"{name} ({engine_of(self._resolved(one.url) or '') or 'unknown'}{': ' if one.description else ''}"
            f"{one.description})"
            for name, one in self._databases.items()
        ]
        where = "Tables are listed in sqlite_master or information_schema.tables."
        return f"{DESCRIPTION} Databases: {', '.join(told)}. {where}"


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
