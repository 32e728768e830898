"""A PostgreSQL server to measure with: the one of `POINTSMAN_TEST_POSTGRES`, else one of its own, as tests have it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TypeAlias

from tests.postgres import CONFIGURED, Cluster, binaries

NewAddress: TypeAlias = Callable[[], str]
"""Of a schema where nothing is yet."""


@contextmanager
def a_server() -> Generator[NewAddress | None, None, None]:
    """None: there is none here, and nothing it could be made of."""
    numbers = count(1)
    if configured := os.environ.get(CONFIGURED):
        sign = "&" if "?" in configured else "?"
        yield lambda: f"{configured}{sign}schema=bench_{os.getpid()}_{next(numbers)}"
        return
    if binaries() is None:
        yield None
        return
    folder = Path(tempfile.mkdtemp(prefix="bench-pg-"))
    cluster = Cluster(folder)
    cluster.make()
    try:
        yield lambda: cluster.url(schema=f"bench_{next(numbers)}")
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
