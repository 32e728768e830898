"""Verification of a SQLite store: the pages of the file, chains of the rows, contents, seals. Reads everything."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from pointsman.store.compression import Form, needed
from pointsman.store.sql.verification import ChainCheck, false_blob, lost_blobs
from pointsman.store.sqlite.seals import find_broken_seals
from pointsman.store.sqlite.transaction import SEQ_BITS, SEQ_MASK
from pointsman.store.usage import DIFFERENT

PACKED = (int(Form.BLOB), int(Form.PIECES))


def find_damage(connection: sqlite3.Connection) -> list[str]:
    """Return every contradiction in the file."""
    damage = [f"the file: {line}" for (line,) in connection.execute("PRAGMA integrity_check(20)") if line != "ok"]
    damage.extend(find_breaks(connection))
    known = "SELECT count(*) FROM rows WHERE place >> 32 NOT IN (SELECT no FROM executions)"
    (strays,) = connection.execute(known).fetchone()
    if strays:
        damage.append(f"{strays} rows belong to no execution")
    damage.extend(find_false_blobs(connection))
    damage.extend(find_broken_seals(connection))
    damage.extend(find_unused_needs(connection))
    if wrong := sum(connection.execute(statement).fetchone()[0] for statement in DIFFERENT):
        damage.append(f"{wrong} sums of usage are not what its entries say")
    return damage


def find_breaks(connection: sqlite3.Connection) -> Iterator[str]:
    """Follow the chain of each execution."""
    check = ChainCheck()
    listed = connection.execute("SELECT no, id FROM executions WHERE id NOT LIKE '/deleted/%'").fetchall()
    for no, execution in listed:
        rows = connection.execute(
            "SELECT place & ?, at, shape, form, data, hash FROM rows WHERE place BETWEEN ? AND ? ORDER BY place",
            (SEQ_MASK, no << SEQ_BITS, no << SEQ_BITS | SEQ_MASK),
        )
        for row in rows:
            yield from check.breaks(execution, *row)


def find_unused_needs(connection: sqlite3.Connection) -> Iterator[str]:
    """Report rows that need contents which are not recorded as used: they would be deleted as unused."""
    used: dict[int, set[bytes]] = {}
    for no, digest in connection.execute("SELECT execution, hash FROM blob_uses"):
        used.setdefault(no, set()).add(digest)
    for place, form, data in connection.execute("SELECT place, form, data FROM rows WHERE form IN (?, ?)", PACKED):
        if not set(needed(form, data) or ()) <= used.get(place >> SEQ_BITS, set()):
            yield f"row {place & SEQ_MASK} of execution number {place >> SEQ_BITS} needs contents it is not said to use"


def find_false_blobs(connection: sqlite3.Connection) -> Iterator[str]:
    known = frozenset(digest for (digest,) in connection.execute("SELECT hash FROM blobs"))
    for table in ("rows", "effects"):
        packed = connection.execute(f"SELECT form, data FROM {table} WHERE form IN (?, ?)", PACKED)
        yield from lost_blobs(table, packed, known)
    for digest, form, data in connection.execute("SELECT hash, form, data FROM blobs ORDER BY hash"):
        yield from false_blob(digest, form, data)
