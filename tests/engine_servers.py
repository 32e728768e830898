"""The servers of distributed engines for the tests: Temporal and Restate, one process for each test that uses one.

tests/install-temporal and tests/install-restate provide the programs; a test without its program is skipped.
POINTSMAN_TEST_TEMPORAL=/path/to/temporal, POINTSMAN_TEST_RESTATE=/path/to/restate-server: use these programs instead
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.server.processes import free_port

STARTS_IN_S: Final = 60.0
CONNECT_S: Final = 1.0
LOG_CHARS_MAX: Final = 4_000
TESTS: Final = Path(__file__).parent


def program(engine: str, name: str) -> Path | None:
    """Return the program of an engine: the configured one, or that of `tests/install-ENGINE`."""
    configured = os.environ.get(f"POINTSMAN_TEST_{engine.upper()}")
    if configured:
        return Path(configured)
    installer = (TESTS / f"install-{engine}").read_text("utf-8")
    version = next(line.removeprefix("version=") for line in installer.splitlines() if line.startswith("version="))
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    found = Path(cache) / "pointsman" / f"{engine}-{version}" / name
    return found if found.exists() else None


TEMPORAL: Final = program("temporal", "temporal")
RESTATE: Final = program("restate", "restate-server")
"""Computed before any test changes the environment."""


class EngineServer(Protocol):
    """The command of a server that stores its data in a folder, and the condition of its readiness."""

    @property
    def name(self) -> str: ...

    @property
    def url(self) -> str:
        """Value of `--runtime`."""
        ...

    def command(self) -> list[str]: ...

    def environment(self) -> dict[str, str]:
        """Return the variables that it needs besides those of this process."""
        ...

    def is_ready(self) -> bool: ...


class EngineProcess:
    """A server in its own process: a test can kill, stop, continue and restart it. Its data outlive the process."""

    def __init__(self, server: EngineServer, folder: Path) -> None:
        self.server = server
        self.log = folder / f"{server.name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def log_tail(self) -> str:
        """Return the end of its log, which a failed test shows."""
        return self.log.read_text(errors="replace")[-LOG_CHARS_MAX:]

    def start(self) -> None:
        """Start it, with the data of an earlier start if there was one; return when it accepts requests."""
        with self.log.open("ab") as log:
            environment = {**os.environ, **self.server.environment()}
            self.process = subprocess.Popen(self.server.command(), stdout=log, stderr=log, env=environment)
        until = time.monotonic() + STARTS_IN_S
        while not self.server.is_ready():
            if self.process.poll() is not None or time.monotonic() > until:
                pytest.fail(f"the server of {self.server.name} did not start:\n{self.log_tail}")
            time.sleep(0.05)  # It has no notification.

    def kill(self) -> None:
        """End it as a crash does (SIGKILL)."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(20)

    def stop(self) -> None:
        """Let it hang (SIGSTOP): its connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let a stopped server continue."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self.process is not None, "start it first"
        self.process.send_signal(number)


def accepts(url: str) -> bool:
    """Return whether an HTTP address answers with success."""
    try:
        with urlopen(url, timeout=CONNECT_S):
            return True
    except (URLError, OSError):
        return False


class TemporalServer:
    """Temporal's development server, with its data in one SQLite file."""

    name = "temporal"

    def __init__(self, program: Path, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self.port = free_port()
        self._metrics = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.url = f"temporal://{self.address}"

    def command(self) -> list[str]:
        options = {
            "ip": "127.0.0.1",
            "port": str(self.port),
            "metrics-port": str(self._metrics),
            "db-filename": str(self._folder / "temporal.db"),
            "log-level": "warn",
        }
        given = [part for name, value in options.items() for part in (f"--{name}", value)]
        fair = [f"matching.{name}=true" for name in ("useNewMatcher", "enableFairness")]
        given += [part for value in fair for part in ("--dynamic-config-value", value)]
        return [str(self._program), "server", "start-dev", "--headless", *given]

    def environment(self) -> dict[str, str]:
        return {"TEMPORAL_CLI_DISABLE_UPDATE_CHECK": "1"}

    def is_ready(self) -> bool:
        command = [str(self._program), "operator", "namespace", "describe", "default", "--address", self.address]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0


class RestateServer:
    """A Restate server of one node: `ingress` accepts calls of handlers, `admin` registers workers."""

    name = "restate"

    def __init__(self, program: Path, folder: Path) -> None:
        self._program = program
        self._folder = folder
        ingress, admin, node = free_port(), free_port(), free_port()
        self.ingress = f"http://127.0.0.1:{ingress}"
        self.admin = f"http://127.0.0.1:{admin}"
        self.url = f"restate://127.0.0.1:{ingress}?admin={admin}&listen=127.0.0.1:{free_port()}"
        self._bound = {"INGRESS__": f"127.0.0.1:{ingress}", "ADMIN__": f"127.0.0.1:{admin}", "": f"127.0.0.1:{node}"}

    def command(self) -> list[str]:
        return [str(self._program), "--no-logo", "--node-name", "tests", "--base-dir", str(self._folder / "restate")]

    def environment(self) -> dict[str, str]:
        return {
            **{f"RESTATE_{part}BIND_ADDRESS": address for part, address in self._bound.items()},
            "RESTATE_LISTEN_MODE": "tcp",
            "RESTATE_DEFAULT_NUM_PARTITIONS": "4",
            "RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE": "256 MiB",
            "RESTATE_WORKER__INVOKER__HTTP2_KEEP_ALIVE_INTERVAL": "4s",
            "RESTATE_WORKER__INVOKER__HTTP2_KEEP_ALIVE_TIMEOUT": "4s",
            "RESTATE_DISABLE_TELEMETRY": "true",
            "RESTATE_LOG_DISABLE_ANSI_CODES": "true",
        }

    def is_ready(self) -> bool:
        return accepts(f"{self.ingress}/restate/health") and accepts(f"{self.admin}/health")


@contextmanager
def running(server: EngineServer, folder: Path) -> Generator[EngineProcess, None, None]:
    """Run a server, and kill it behind the block."""
    process = EngineProcess(server, folder)
    process.start()
    try:
        yield process
    finally:
        process.kill()


def temporal(folder: Path) -> Iterator[EngineProcess]:
    """Run Temporal with its data in `folder`. Skips the test if there is no program."""
    if TEMPORAL is None:
        pytest.skip("no Temporal server is built (tests/install-temporal builds one with Go)")
    with running(TemporalServer(TEMPORAL, folder), folder) as process:
        yield process


def restate(folder: Path) -> Iterator[EngineProcess]:
    """Run Restate with its data in `folder`. Skips the test if there is no program."""
    if RESTATE is None:
        pytest.skip("no Restate server is installed (tests/install-restate fetches one with npm)")
    with running(RestateServer(RESTATE, folder), folder) as process:
        yield process
