"""Contents by their hash, and who uses them.

    blobs ◀── blob_uses (execution, hash) ── written with the row or effect that needs the content
      └─ held_until: nobody may use it yet (a definition is kept before the execution that runs it has begun)

A content without uses whose hold has expired may be deleted.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable

from pointsman.store.blob_references import HOLD_S
from pointsman.store.compression import content_hash, squeezed
from pointsman.store.errors import StoreDamaged
from pointsman.store.sql.work import plain_content


def put_blob(connection: sqlite3.Connection, digest: bytes, content: bytes, *, held_until: float = 0.0) -> int:
    """Store content under its hash, once, compressed if that helps. Return the bytes written."""
    found = connection.execute("SELECT held_until FROM blobs WHERE hash = ?", (digest,)).fetchone()
    if found is None:
        form, data = squeezed(content)
        connection.execute(
            "INSERT INTO blobs (hash, form, data, held_until) VALUES (?, ?, ?, ?)",
            (digest, int(form), data, held_until),
        )
        return len(data)
    # Not at every start of one workflow: half of the time is enough.
    if found[0] < held_until - HOLD_S / 2:
        connection.execute("UPDATE blobs SET held_until = ? WHERE hash = ?", (held_until, digest))
    return 0


def hold_blob(connection: sqlite3.Connection, content: bytes) -> bytes:
    """Store content that is about to be used, and return its hash."""
    digest = content_hash(content)
    put_blob(connection, digest, content, held_until=time.time() + HOLD_S)
    return digest


def use_blobs(connection: sqlite3.Connection, no: int, digests: Iterable[bytes]) -> None:
    """Record that the execution with that number uses these contents."""
    connection.executemany(
        "INSERT OR IGNORE INTO blob_uses (execution, hash) VALUES (?, ?)", ((no, digest) for digest in digests)
    )


def read_content(connection: sqlite3.Connection, digest: bytes) -> bytes:
    """Return the plain content of a blob that must be there. Raises `StoreDamaged`."""
    found = connection.execute("SELECT form, data FROM blobs WHERE hash = ?", (digest,)).fetchone()
    if found is None:
        raise StoreDamaged(f"the blob {digest.hex()} is missing", hint="Restore a backup.")
    return plain_content(digest, *found)
