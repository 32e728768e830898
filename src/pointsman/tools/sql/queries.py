"""Databases that may be read, and the queries on them: settings, results as JSON within limits, failures.

[sql.shop]
url = "postgresql://reader@db.example.org/shop"      or sqlite:///shop.db; or a handle `secret.SHOP_URL`
"""

from __future__ import annotations

import base64
import math
from decimal import Decimal
from pathlib import Path
from typing import Final, Literal
from urllib.parse import unquote

import msgspec
from pydantic import BaseModel, ConfigDict, Field, model_validator

from pointsman.definition.model.base import Duration
from pointsman.engine.failures import Failure
from pointsman.tools.tool import ToolFailed
from pointsman.values import Json, JsonObject, Seconds

NAME: Final = r"^[A-Za-z_][\w-]{0,63}$"
_HANDLE: Final = "secret."
_SQLITE: Final = "sqlite:///"
_POSTGRES: Final = ("postgresql://", "postgres://")


class DatabaseDescription(BaseModel):
    """One database."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    url: str = Field(repr=False)
    description: str = ""
    """Description of its contents, for models."""
    timeout: Duration = Duration(Seconds(10.0))
    """Time limit of a query, including the connection."""
    rows_max: int = Field(default=200, ge=1, le=100_000)
    bytes_max: int = Field(default=100_000, ge=1, le=10_000_000)
    """Maximum size of all rows of an answer, as JSON."""

    @model_validator(mode="after")
    def _is_known(self) -> DatabaseDescription:
        if not self.url.startswith((_SQLITE, *_POSTGRES, _HANDLE)) or self.url == _SQLITE:
            raise ValueError("`url` must be sqlite:///file.db, postgresql://… or a handle secret.NAME")
        return self


def engine_of(url: str) -> Literal["SQLite", "PostgreSQL"] | None:
    """Return the database system of an address; None: it is not supported."""
    if url.startswith(_SQLITE):
        return "SQLite"
    return "PostgreSQL" if url.startswith(_POSTGRES) else None


def file_of(url: str) -> Path:
    """Return the file of a SQLite address."""
    return Path(unquote(url.removeprefix(_SQLITE))).expanduser().absolute()


FETCHED: Final = 20
"""Number of rows per fetch."""


class SqlQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query and its limits."""

    database: str
    url: str
    query: str
    parameters: tuple[Json, ...]
    """Values of `$1`, `$2` … in the query."""
    bounds: DatabaseDescription


class Table:
    """The result of a query, built row by row."""

    def __init__(self, columns: list[str], bounds: DatabaseDescription) -> None:
        self._columns = columns
        self._bounds = bounds
        self._rows: list[Json] = []
        self._bytes = 0
        self._cut = ""

    def add(self, row: list[Json]) -> bool:
        """Add a row. Returns False if the table is full and the row was left out."""
        size = len(msgspec.json.encode(row))
        if len(self._rows) >= self._bounds.rows_max:
            self._cut = f"only the first {len(self._rows)} rows were returned"
        elif self._bytes + size > self._bounds.bytes_max:
            self.too_large()
        else:
            self._rows.append(row)
            self._bytes += size
            return True
        return False

    def too_large(self) -> None:
        """Note that the next row does not fit."""
        self._cut = (
            f"only the first {len(self._rows)} rows were returned, because the maximum is "
            f"{self._bounds.bytes_max} bytes"
        )

    def to_json(self) -> JsonObject:
        result: JsonObject = {"columns": [*self._columns], "rows": self._rows}
        return {**result, "truncated": f"{self._cut}. Select less."} if self._cut else result


def cell(value: object) -> Json:
    """Return a value of a row as JSON: bytes as base64, numbers that JSON cannot represent as text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            near = float(value)
            return near if math.isfinite(near) and Decimal(repr(near)) == value else str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            return str(value)


def failed(code: str, message: str, *, hint: str = "", retryable: bool = False) -> ToolFailed:
    return ToolFailed(Failure(code=code, message=message, hint=hint, retryable=retryable))


def refused(question: SqlQuery, why: str) -> ToolFailed:
    """Return the failure of a statement that does more than read."""
    return failed(
        "sql-refused",
        f"the database {question.database!r} is read-only for queries: {why}",
        hint="Use a single SELECT.",
    )


def too_slow(question: SqlQuery) -> ToolFailed:
    seconds = question.bounds.timeout.seconds
    message = f"the database {question.database!r} did not answer within {seconds:g} s"
    return failed("tool-timeout", message, hint="Select less.", retryable=True)


def unreachable(question: SqlQuery, why: str) -> ToolFailed:
    return failed("sql-unreachable", f"the database {question.database!r} cannot be opened: {why}", retryable=True)
