"""CSV tables for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Final

FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")


def csv_of(rows: Sequence[Mapping[str, object]]) -> str:
    """Return the rows as CSV with a header; lines end as in RFC 4180. Texts that a spreadsheet would evaluate as
    formulas are escaped with an apostrophe."""
    if not rows:
        return ""
    told = io.StringIO()
    writer = csv.writer(told)
    writer.writerow(rows[0])
    writer.writerows([_cell(value) for value in row.values()] for row in rows)
    return told.getvalue()


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value
