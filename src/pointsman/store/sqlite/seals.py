"""Seals: a hash beside each value that no chain and no content hash covers, so that a changed one is found.

The tables seal their rows themselves (triggers), so every writer seals; writing needs the function `seal`. Summaries
need no seal: they are compared with the journals.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Final, LiteralString

import msgspec

from pointsman.store.usage import AMOUNT_COLUMNS
from pointsman.values import Json

SEALED: Final[Mapping[LiteralString, LiteralString]] = {
    "effects": "execution, attempt, number, form, data",
    "messages": "session, number, message",
    "memory": "scope, namespace, key, value, changed, expires",
    "entries": "kind, key, value",
    "usage": f"day, execution, workflow, revision, owner, node, model, key, place, {AMOUNT_COLUMNS}",
    "workflows": "id, revision, version, name, dialect, created, author, digest, text, native",
}
"""Table -> the columns under its seal. A new column needs a migration with new triggers."""


def triggers(table: LiteralString) -> tuple[LiteralString, LiteralString]:
    """Return the statements that make a table seal its rows."""
    columns = SEALED[table]
    new: LiteralString = ", ".join([f"NEW.{column}" for column in columns.split(", ")])
    seal: LiteralString = f"BEGIN UPDATE {table} SET seal = seal({new}) WHERE rowid = NEW.rowid; END"
    return (
        f"CREATE TRIGGER {table}_sealed AFTER INSERT ON {table} {seal}",
        f"CREATE TRIGGER {table}_resealed AFTER UPDATE OF {columns} ON {table} {seal}",
    )


def seal(*values: Json | bytes) -> bytes:
    return hashlib.sha256(msgspec.msgpack.encode(values)).digest()


def add_seal_function(connection: sqlite3.Connection) -> None:
    """Let a connection write sealed tables."""
    connection.create_function("seal", -1, seal, deterministic=True)


def find_broken_seals(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield one sentence for each table with values that are not what was written."""
    for table, columns in SEALED.items():
        rows = connection.execute(f"SELECT seal, {columns} FROM {table}")
        broken = sum(stored != seal(*values) for stored, *values in rows)
        if broken:
            yield f"{broken} rows of {table} are not what was written"
