"""Seals: a hash beside each value that no chain and no content hash covers, so that a changed one is found.

The tables seal their rows themselves (triggers), whoever writes them; writing needs the function `seal`. What follows
from the journals (summaries, what waits for what) needs no seal: it is compared with them.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from typing import Final

import msgspec

from pointsman.store.usage import COLUMNS
from pointsman.values import Json

SEALED: Final[dict[str, tuple[str, ...]]] = {
    "effects": ("execution", "attempt", "number", "form", "data"),
    "messages": ("session", "number", "message"),
    "memory": ("scope", "namespace", "key", "value", "changed", "expires"),
    "entries": ("kind", "key", "value"),
    "usage": COLUMNS,
    "workflows": (
        "id",
        "revision",
        "version",
        "name",
        "dialect",
        "created",
        "author",
        "digest",
        "text",
        "native",
    ),
}
"""Table -> the columns under its seal. Stores know these: who adds a column adds a migration with new triggers."""


def sealing(table: str, columns: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The statements that make a table seal its rows; `columns`: those it had then. Rows from before have no seal."""
    return (f"ALTER TABLE {table} ADD COLUMN seal BLOB", *_triggers(table, columns or SEALED[table]))


def sealing_more(table: str) -> tuple[str, ...]:
    """The statements that bring the columns of today under the seal, also of the rows there are."""
    dropped = (f"DROP TRIGGER {table}_sealed", f"DROP TRIGGER {table}_resealed")
    first = SEALED[table][0]
    return (*dropped, *_triggers(table, SEALED[table]), f"UPDATE {table} SET {first} = {first} WHERE seal IS NOT NULL")


def _triggers(table: str, columns: tuple[str, ...]) -> tuple[str, str]:
    values, changed = ", ".join(f"NEW.{column}" for column in columns), ", ".join(columns)
    seal = f"BEGIN UPDATE {table} SET seal = seal({values}) WHERE rowid = NEW.rowid; END"
    return (
        f"CREATE TRIGGER {table}_sealed AFTER INSERT ON {table} {seal}",
        f"CREATE TRIGGER {table}_resealed AFTER UPDATE OF {changed} ON {table} {seal}",
    )


def seal(*values: Json | bytes) -> bytes:
    return hashlib.sha256(msgspec.msgpack.encode(values)).digest()


def bring_seal(connection: sqlite3.Connection) -> None:
    """Let a connection write sealed tables."""
    connection.create_function("seal", -1, seal, deterministic=True)


def find_broken_seals(connection: sqlite3.Connection) -> Iterator[str]:
    """One sentence for each table with values that are not what was written."""
    for table, columns in SEALED.items():
        rows = connection.execute(f"SELECT seal, {', '.join(columns)} FROM {table} WHERE seal IS NOT NULL")
        broken = sum(stored != seal(*values) for stored, *values in rows)
        if broken:
            yield f"{broken} rows of {table} are not what was written"
