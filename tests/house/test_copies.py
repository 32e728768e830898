"""A backup is complete: every table and column is copied, or excluded for a reason."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from msgspec.structs import fields

from pointsman.store.records import BudgetUsage, Summary
from pointsman.store.sql.executions import SUMMARY_COLUMNS
from pointsman.store.sqlite.schema import add_seal_function, migrate
from pointsman.store.transfer import COPIED, LEFT_OUT

OWN_WAYS = {"rows", "blob_uses", "summaries"}
"""Tables with their own functions for reading and writing."""
DERIVED = {"seal", "no"}


def tables() -> dict[str, set[str]]:
    """Return every table of a new store with its columns."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        add_seal_function(connection)
        migrate(connection)
        names = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            " AND name NOT LIKE 'memory_words_%'"
        ).fetchall()
        return {name: {row[1] for row in connection.execute(f"PRAGMA table_info({name})")} for (name,) in names}


def test_every_table_of_a_store_is_copied_or_left_out_for_a_reason() -> None:
    known = {*COPIED, *LEFT_OUT}
    assert set(tables()) - known == set(), (
        "add it to COPIED or LEFT_OUT in store/transfer.py, and to the transfer.py of both stores"
    )
    assert all(len(why) > 10 for why in LEFT_OUT.values())


def test_every_column_of_a_table_that_is_copied_is_copied() -> None:
    there = {name: columns - DERIVED for name, columns in tables().items() if name in COPIED and name not in OWN_WAYS}
    copied = {name: set(columns) for name, columns in COPIED.items() if name in there}
    assert there == copied, "add the column to COPIED in store/transfer.py"


def test_every_field_of_a_summary_has_a_column() -> None:
    no_columns = {"spent", "gates", "answers"}
    wanted = {field.encode_name for kind in (Summary, BudgetUsage) for field in fields(kind)} - no_columns
    columns = {column.name for column in SUMMARY_COLUMNS}
    assert columns == wanted, "add it to SUMMARY_COLUMNS, summary_values and summary_of in store/sql/executions.py"
    assert columns == tables()["summaries"], "append a migration as store/sql/schema.py describes"
