"""The floor of durable steps: a plain loop that commits one small row at a time. What a database server spends is not
counted, here as there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from bench.spent import Spent

COMMITS: Final = 300
ROW: Final = b"x" * 200


def bare_commits(store: str, address: str, path: Path) -> tuple[float, float]:
    """CPU and wall time of one commit by itself, in µs; nothing where no step waits for one. `path`: a new file."""
    if store == "sqlite":
        return _each(in_sqlite(path))
    return _each(in_postgresql(address)) if store == "postgresql" else (0.0, 0.0)


def _each(connected: AbstractContextManager[Callable[[], object]]) -> tuple[float, float]:
    with connected as commit_one:
        for _ in range(COMMITS // 10):
            commit_one()
        spent = Spent()
        for _ in range(COMMITS):
            commit_one()
        return spent.cpu() / COMMITS, spent.wall() / COMMITS


@contextmanager
def in_sqlite(path: Path) -> Generator[Callable[[], object], None, None]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, data BLOB)")
    yield lambda: connection.execute("INSERT INTO rows (data) VALUES (?)", (ROW,))
    connection.close()


@contextmanager
def in_postgresql(address: str) -> Generator[Callable[[], object], None, None]:
    import psycopg  # Only this store needs it.

    with psycopg.connect(_without_schema(address), autocommit=True) as connection:
        connection.execute("CREATE TABLE bare_rows (id bigserial PRIMARY KEY, data bytea)")
        yield lambda: connection.execute("INSERT INTO bare_rows (data) VALUES (%s)", (ROW,))
        connection.execute("DROP TABLE bare_rows")


def _without_schema(address: str) -> str:
    """The address as other programs know it."""
    parts = urlsplit(address)
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name != "schema"]
    return parts._replace(query=urlencode(kept)).geturl()
