"""The tiers of tests: `unit` is pure and in memory, `integration` needs sockets, processes or stores of files, `scale`
needs the server of a distributed engine, or several processes that it kills.

    pytest --tier unit      the unit tier alone: seconds, for every edit
    pytest                  unit and integration
    pytest --tier scale     the scale tier alone, in the size of CI; `--size full` adds the long versions

A test belongs to the unit tier unless its folder, a fixture, a store that it is given, or its mark says otherwise. A
unit test that opens a socket, starts a process or opens a store of files fails, in every run.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parent
MARK: Final = "integration"
SCALE: Final = "scale"

FOLDERS: Final = frozenset(
    {"cli", "client", "deploy", "house", "local_model", "mcp", "reliability", "server", "soak", "web"}
)
"""Folders below `tests` in which every test belongs to the integration tier."""

FIXTURES: Final = frozenset({"cluster", "file_store", "httpserver", "local_model", "postgres_url", "served"})
"""Fixtures that start something."""

ENGINES: Final = frozenset({"temporal_server", "restate_server"})
"""Fixtures that start the server of a distributed engine."""

STORES: Final = frozenset({"postgres", "postgresql", "sqlite"})
"""Parameters of tests that run on several stores, besides `memory`."""

LEAVES: Final = {
    "os.exec": "started a process",
    "os.fork": "started a process",
    "os.posix_spawn": "started a process",
    "os.system": "started a process",
    "subprocess.Popen": "started a process",
    "socket.bind": "opened a socket",
    "socket.connect": "opened a socket",
    "socket.getaddrinfo": "looked up a host",
    "sqlite3.connect": "opened a store of files",
}
"""Audit event -> what a unit test does not do."""


class Watch:
    """Notes what the threads of a running unit test do. Threads that an earlier test left do not count."""

    def __init__(self) -> None:
        self.is_on = False
        self.seen: list[str] = []
        self._others: frozenset[int] = frozenset()
        sys.addaudithook(self._hear)  # It cannot be removed: there is one for the whole run.

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.is_on or event not in LEAVES or threading.get_ident() in self._others:
            return
        if event == "sqlite3.connect" and is_in_memory(arguments[0]):
            return
        self.seen.append(f"{LEAVES[event]} ({event} {arguments[-1]!r:.80})")

    @contextmanager
    def watching(self) -> Generator[None, None, None]:
        """Raise `LeftTheUnitTier` behind the block where something was noted in it."""
        here = threading.get_ident()
        self._others = frozenset(one.ident or 0 for one in threading.enumerate()) - {here}
        self.seen.clear()
        self.is_on = True
        try:
            yield
        finally:
            self.is_on = False
        if self.seen:
            raise LeftTheUnitTier(self.seen[0])


class LeftTheUnitTier(AssertionError):
    """A unit test did what the unit tier does not do."""

    def __init__(self, what: str) -> None:
        super().__init__(f"a unit test {what}: do it in memory, or mark the test with `@pytest.mark.{MARK}`")


def is_in_memory(database: object) -> bool:
    """Whether SQLite opens a database without a file."""
    return database == ":memory:" or "mode=memory" in str(database)


def selected(item: pytest.Item, tier: str, size: str) -> bool:
    """Whether a test runs in a tier (`unit`, `all`, `scale`) and a size of the scale tier (`ci`, `full`)."""
    if is_scale(item):
        return tier == SCALE and (size == "full" or not is_long(item))
    return tier == "all" or (tier == "unit" and not is_integration(item))


def is_scale(item: pytest.Item) -> bool:
    """Whether a test belongs to the scale tier."""
    names = getattr(item, "fixturenames", ())
    return item.get_closest_marker(SCALE) is not None or not ENGINES.isdisjoint(names)


def is_long(item: pytest.Item) -> bool:
    """Whether a test of the scale tier is too long for CI: `@pytest.mark.scale("full")`."""
    return any("full" in mark.args for mark in item.iter_markers(SCALE))


@functools.cache
def is_in_integration_folder(path: Path) -> bool:
    return path.is_relative_to(TESTS) and path.relative_to(TESTS).parts[0] in FOLDERS


def is_integration(item: pytest.Item) -> bool:
    """Whether a test belongs to the integration tier, or to the scale tier."""
    if is_scale(item):
        return True
    if is_in_integration_folder(item.path):
        return True
    if item.get_closest_marker(MARK) or not FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
        return True
    names = item.name.partition("[")[2].removesuffix("]").split("-")
    return not STORES.isdisjoint(names)
