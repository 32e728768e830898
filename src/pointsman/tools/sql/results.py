"""Results of database queries: columns and rows as JSON, truncated at the limits; and their failures."""

from __future__ import annotations

import base64
import math
from decimal import Decimal
from typing import Final

import msgspec

from pointsman.engine.failures import Failure
from pointsman.tools.failures import ToolFailed
from pointsman.tools.sql.config import DatabaseDescription
from pointsman.values import Json, JsonObject

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
            self._cut = f"only the first {len(self._rows)} rows are here"
        elif self._bytes + size > self._bounds.bytes_max:
            self.too_large()
        else:
            self._rows.append(row)
            self._bytes += size
            return True
        return False

    def too_large(self) -> None:
        """Note that the next row does not fit."""
        self._cut = f"only the first {len(self._rows)} rows are here: {self._bounds.bytes_max} bytes is the most"

    def to_json(self) -> JsonObject:
        found: JsonObject = {"columns": [*self._columns], "rows": self._rows}
        return {**found, "truncated": f"{self._cut}. Ask for less."} if self._cut else found


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
    return failed("sql-refused", f"{question.database!r} is only read: {why}", hint="Ask with one SELECT.")


def too_slow(question: SqlQuery) -> ToolFailed:
    seconds = question.bounds.timeout.seconds
    message = f"{question.database!r} did not answer within {seconds:g} s"
    return failed("tool-timeout", message, hint="Ask for less.", retryable=True)


def unreachable(question: SqlQuery, why: str) -> ToolFailed:
    return failed("sql-unreachable", f"the database {question.database!r} cannot be opened: {why}", retryable=True)
