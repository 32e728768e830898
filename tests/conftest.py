"""Rules for all tests: no network beyond this machine, and no marks of unknown requirements."""

from __future__ import annotations

import functools
import gc
import ipaddress
import os
import platform
import signal
import socket
from collections.abc import Generator, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import httpcore2
import pytest
from hypothesis import HealthCheck, settings

from pointsman.executors import registry as executor_registry
from pointsman.tools import registry as tool_registry
from tests import engine_servers, postgres, tiers
from tests.house.requirements import REQUIREMENTS
from tests.local_model import server as model_server
from tests.quick_starts import quick_starts

settings.register_profile(
    "patient",
    max_examples=1_000 if os.environ.get("POINTSMAN_LONG") else 50,
    deadline=None,
    derandomize=not os.environ.get("POINTSMAN_LONG"),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("patient")
"""The time of an example depends more on the machine than on the code, and all changes are tested with the same
examples. `POINTSMAN_LONG=1` uses new examples each time, and many more.
"""

os.environ.setdefault("POINTSMAN_MODEL", "scripted")
"""Tests ask for the scripted model, also in processes that they start. Tests of other models unset it."""

platform.processor()
"""Computed here, once: the first access starts `uname -p`, and a client of a model reads it within a unit test."""

gc.set_threshold(100_000, 50, 100)
"""Collecting after each 700 new objects costs a tenth of the time of tests that parse or generate much."""

WATCH = tiers.Watch()

LOOPBACK_NAMES = {"localhost", "", "::1", "127.0.0.1"}


class NetworkUsed(AssertionError):
    """A test used the network. Use a scripted model, a fake, or a server on loopback."""


def is_loopback(host: str) -> bool:
    try:
        return host in LOOPBACK_NAMES or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@pytest.fixture(autouse=True, scope="session")
def shut_sockets() -> Any:
    """Let sockets connect to this machine only. The classes of `socket` are patched: every client ends there."""
    connect, connect_ex, getaddrinfo = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def check(family: int, address: Any) -> None:
        if family in (socket.AF_INET, socket.AF_INET6) and not is_loopback(str(address[0])):
            raise NetworkUsed(f"a test connected to {address!r}")

    def guarded_connect(self: socket.socket, address: Any) -> None:
        check(self.family, address)
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        check(self.family, address)
        return connect_ex(self, address)

    def guarded_getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host or ""
        if not is_loopback(name) and name not in (socket.gethostname(), "0.0.0.0", "::"):
            raise NetworkUsed(f"a test looked up {host!r}")
        return getaddrinfo(host, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded_connect)
        patch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
        patch.setattr(socket, "getaddrinfo", guarded_getaddrinfo)
        yield


@pytest.fixture(autouse=True, scope="session")
def certificates_read_once() -> Iterator[None]:
    """Share the parsed certificates of this machine among all HTTP clients: parsing them takes 25 ms per client."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpcore2, "default_ssl_context", functools.cache(httpcore2.default_ssl_context))
        yield


@pytest.fixture(autouse=True, scope="session")
def entry_points_read_once() -> Iterator[None]:
    """Share the entry points of installed packages among all apps: reading them takes 7 ms per app."""
    read = functools.cache(entry_points)
    with pytest.MonkeyPatch.context() as patch:
        for reader in (tool_registry, executor_registry):
            patch.setattr(reader, "entry_points", read)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    browser = parser.getgroup("browser", "how steady the tests of the web app are")
    browser.addoption("--weak", type=float, nargs="?", const=6.0, default=0.0, help="a browser so many times slower")
    browser.addoption("--late", type=float, nargs="?", const=300.0, default=0.0, help="so many ms before each deed")
    group = parser.getgroup("tiers", "which tests run")
    group.addoption(
        "--tier",
        choices=("unit", "all", "scale"),
        default="all",
        help="unit: pure, in memory; all: unit and integration; scale: distributed engines and several servers",
    )
    group.addoption("--size", choices=("ci", "full"), default="ci", help="full: with the long tests of the scale tier")


def pytest_configure() -> None:
    # A shell ignores SIGINT for its background jobs, and processes inherit that: tests press Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    postgres.announce()


def pytest_unconfigure() -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        postgres.take_down()


@pytest.fixture
def postgres_url() -> str:
    """A new PostgreSQL store of this test."""
    return postgres.address(f"test_{uuid4().hex}")


@pytest.fixture(autouse=True, scope="session")
def processes_are_forks() -> Iterator[None]:
    """Make the Python processes that tests start, also through the product, forks of one that has imported it. Tests of
    imports and of memory use `fresh_starts`.
    """
    with quick_starts(is_ready=False):
        yield


@pytest.fixture
def ready_forks() -> Iterator[None]:
    """Exclude the imports of the fork server from the time of a test that measures it."""
    with quick_starts():
        yield


@pytest.fixture(scope="session")
def local_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[model_server.ModelServer]:
    """A real model server on this machine."""
    yield from model_server.running(tmp_path_factory.mktemp("model"))


@pytest.fixture
def cluster() -> Iterator[postgres.Cluster]:
    """A PostgreSQL server of this test, which may stop and start it."""
    yield from postgres.own_cluster()


@pytest.fixture
def temporal_server(tmp_path: Path) -> Iterator[engine_servers.EngineProcess]:
    """A Temporal server of this test, which may kill, stop and restart it."""
    yield from engine_servers.temporal(tmp_path)


@pytest.fixture
def restate_server(tmp_path: Path) -> Iterator[engine_servers.EngineProcess]:
    """A Restate server of this test, which may kill, stop and restart it."""
    yield from engine_servers.restate(tmp_path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the output of the servers that a failed test used to its report."""
    report = yield
    if report.failed:
        used: dict[str, object] = getattr(item, "funcargs", {})
        kinds = (model_server.ModelServer, engine_servers.EngineProcess)
        servers = {name: one for name, one in used.items() if isinstance(one, kinds)}
        report.sections += [(f"log of {name}", one.log_tail) for name, one in servers.items()]
    return report


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the folders of the integration tier where it does not run."""
    if config.getoption("tier") != "unit" or collection_path.parent != tiers.TESTS:
        return None
    return collection_path.name in tiers.FOLDERS or None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Enforce the rules of the unit tier on a unit test."""
    if tiers.is_integration(item):
        return (yield)
    with WATCH.watching():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the garbage collector, and exempt the collected items and modules from it: no test frees them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    check_requirements(items)
    tier, size = str(config.getoption("tier")), str(config.getoption("size"))
    left = [item for item in items if not tiers.selected(item, tier, size)]
    if left:
        items[:] = [item for item in items if tiers.selected(item, tier, size)]
        config.hook.pytest_deselected(items=left)
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


LONGEST: Final = ("tests/web/test_every_page.py", "tests/server/test_fuzzing.py", "tests/reliability/test_scorecard.py")
"""Tests that begin first, so that no process runs a long one alone at the end. The first process runs all of them:
together they must not take longer than the rest.
"""


def check_requirements(items: list[pytest.Item]) -> None:
    """Refuse marks of requirements that do not exist."""
    unknown = {
        f"{item.nodeid}: {identifier!r}"
        for item in items
        for mark in item.iter_markers("requirement")
        for identifier in mark.args
        if identifier not in REQUIREMENTS
    }
    if unknown:
        known = "docs/reference/requirements.toml"
        raise pytest.UsageError(f"markers name requirements that {known} does not have:\n" + "\n".join(sorted(unknown)))
