"""CSV tables for spreadsheets."""

from __future__ import annotations

import csv
import io
from typing import Final

from pointsman.values import Json, JsonObject

FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")


def csv_of(rows: list[JsonObject]) -> str:
    """Return the rows as CSV with a header; lines end as in RFC 4180. Texts that a spreadsheet would evaluate as
    formulas are escaped with an apostrophe."""
    if not rows:
        return ""
    told = io.StringIO()
    writer = csv.writer(told)
    writer.writerow(rows[0])
    writer.writerows([_cell(value) for value in row.values()] for row in rows)
    return told.getvalue()


def _cell(value: Json) -> Json:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value
