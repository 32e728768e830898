"""Looking for damage: the file's pages, the chains of the rows, contents, seals. Reads everything.

What a chain cannot tell is that rows were taken off its very end: compare with a backup for that.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator

from pointsman.store.chain import first_hash, row_hash
from pointsman.store.compression import Form, content_hash, needed
from pointsman.store.errors import StoreFailed
from pointsman.store.sqlite.blobs import read_content
from pointsman.store.sqlite.seals import find_broken_seals
from pointsman.store.sqlite.transaction import SEQ_BITS, SEQ_MASK
from pointsman.store.usage import DIFFERENT
from pointsman.values import ExecutionId


def find_damage(connection: sqlite3.Connection) -> list[str]:
    """Every contradiction in the file: its pages, the chains of the rows, the contents of the blobs."""
    damage = [f"the file: {line}" for (line,) in connection.execute("PRAGMA integrity_check(20)") if line != "ok"]
    listed = connection.execute("SELECT no, id FROM executions WHERE id NOT LIKE '/deleted/%'").fetchall()
    for no, execution in listed:
        damage.extend(find_breaks(connection, no, ExecutionId(execution)))
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


def find_breaks(connection: sqlite3.Connection, no: int, execution: ExecutionId) -> Iterator[str]:
    """Follow one chain. After a break it is taken up again, so that each damaged row is told once."""
    previous, expected = first_hash(execution), 1
    cursor = connection.execute(
        "SELECT place, at, shape, form, data, hash FROM rows WHERE place BETWEEN ? AND ? ORDER BY place",
        (no << SEQ_BITS, no << SEQ_BITS | SEQ_MASK),
    )
    for number, at, shape, form, data, stored in cursor:
        seq = number & SEQ_MASK
        if seq != expected:
            yield f"execution {execution!r}: row {expected} is missing"
        elif not is_written(previous, seq, (at, shape, form, data), stored):
            yield f"execution {execution!r}: row {seq} is not what was written"
        previous, expected = stored, seq + 1


def is_written(previous: bytes, seq: int, row: tuple[float, int, int, bytes], stored: bytes) -> bool:
    """Columns hold any type: a flipped bit makes text of a number."""
    try:
        return row_hash(previous, seq, *row) == stored
    except (struct.error, TypeError):
        return False


def find_unused_needs(connection: sqlite3.Connection) -> Iterator[str]:
    """Contents that a row needs and nobody is said to use would be deleted as unused."""
    used: dict[int, set[bytes]] = {}
    for no, digest in connection.execute("SELECT execution, hash FROM blob_uses"):
        used.setdefault(no, set()).add(digest)
    held = {digest for (digest,) in connection.execute("SELECT hash FROM blobs WHERE held_until > 9e98")}
    packed = connection.execute(
        "SELECT place, form, data FROM rows WHERE form IN (?, ?)", (int(Form.BLOB), int(Form.PIECES))
    )
    for place, form, data in packed:
        if not set(needed(form, data) or ()) <= used.get(place >> SEQ_BITS, set()) | held:
            yield f"row {place & SEQ_MASK} of execution number {place >> SEQ_BITS} needs contents it is not said to use"


def find_false_blobs(connection: sqlite3.Connection) -> Iterator[str]:
    known: set[bytes] = {digest for (digest,) in connection.execute("SELECT hash FROM blobs")}
    for table in ("rows", "effects"):
        packed = connection.execute(f"SELECT form, data FROM {table} WHERE form IN (?, ?)", (Form.BLOB, Form.PIECES))
        lost = sum(not known.issuperset(needs) for form, data in packed if (needs := needed(form, data)) is not None)
        if lost:
            yield f"the blobs of {lost} {table} are missing"
    for digest in sorted(known):
        try:
            true = content_hash(read_content(connection, digest)) == digest
        except StoreFailed as why:
            yield f"blob {digest.hex()} cannot be unpacked: {why}"
            continue
        if not true:
            yield f"blob {digest.hex()} is not what was written"
