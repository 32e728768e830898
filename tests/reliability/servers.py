"""A PostgreSQL server for one experiment."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from tests import postgres
from tests.reliability.findings import NotHere


@contextmanager
def server() -> Generator[postgres.Cluster, None, None]:
    """Start a server, and delete it at the end. Raises `NotHere` if PostgreSQL is not installed."""
    if postgres.binaries() is None:
        raise NotHere("no PostgreSQL server is installed (apt-get install postgresql)")
    yield from postgres.own_cluster()
