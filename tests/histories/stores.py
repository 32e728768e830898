"""Frozen stores: what a release wrote, as an SQLite file and as a PostgreSQL dump. They never change.

Each contains: two `letter` executions that wait for Ada (one is called by `parent`), `waits` that waits for the event
`knock`, `nap` that sleeps for ten years, `chain` and `fans` that ended; `letter` in two revisions, a deleted `waits`;
memory, a closed conversation, a schedule, and a deleted execution.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, LiteralString, cast

import psycopg
import zstandard

from pointsman.store.postgres.connections import address_of

FOLDER: Final = Path(__file__).parent / "stores"
SCHEMA: Final = "pointsman"
"""Schema of the dumps."""


def releases() -> list[str]:
    return sorted(path.name.removesuffix(".sqlite.zst") for path in FOLDER.glob("*.sqlite.zst"))


def thaw_file(release: str, path: Path) -> str:
    """Write the file and return its address."""
    packed = (FOLDER / f"{release}.sqlite.zst").read_bytes()
    path.write_bytes(zstandard.ZstdDecompressor().decompress(packed))
    return f"sqlite:///{path}"


def thaw_dump(release: str, url: str) -> str:
    """Load the dump into the schema of this address."""
    address = address_of(url)
    text = (FOLDER / f"{release}.sql").read_text()
    own = re.sub(rf"\b{SCHEMA}\.", f"{address.schema}.", text).replace(f"SCHEMA {SCHEMA};", f"SCHEMA {address.schema};")
    with psycopg.connect(address.conninfo, autocommit=True) as connection:
        connection.execute(cast("LiteralString", own))
    return url
