"""A PostgreSQL server for the tests: one per run, started with the system's binaries, shared by all workers.

POINTSMAN_TEST_POSTGRES=postgresql://…    use this one instead; every test gets its own schema there no server binaries
tests that need one are skipped with that reason
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest

CONFIGURED: Final = "POINTSMAN_TEST_POSTGRES"
CLUSTER: Final = "POINTSMAN_TEST_CLUSTER"
"""The directory of this run's server: set before the workers start, so that they share it."""
PREFIX: Final = "pointsman-pg-"
MEMORY: Final = Path("/dev/shm")
MEMORY_BYTES_MIN: Final = 4_000_000_000
"""Free memory for the servers of a run; a server takes 40 MB and the rows of its tests."""


def temporary() -> Path:
    """Return a folder in memory, where a flush costs nothing, if there is enough; otherwise a temporary one.

    Its path is short: paths of sockets must be, and the temporary paths of macOS are not.
    """
    has_memory = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES_MIN
    places = (*([MEMORY] if has_memory else []), Path("/tmp"), Path(tempfile.gettempdir()))
    return next(path for path in places if os.access(path, os.W_OK))


TEMPORARY: Final = temporary()
DEBIAN: Final = Path("/usr/lib/postgresql")
OWNER: Final = "tester"
PASSWORD: Final = "not-so-secret"
"""The password of the user `guarded`."""
SETTINGS: Final = {"listen_addresses": "", "fsync": "on", "max_connections": "200", "shared_buffers": "64MB"}
ACCESS: Final = "local all guarded scram-sha-256\nlocal all,replication all trust\n"


@dataclass
class Environment:
    """The environment at the start of the run."""

    folder: Path = Path()
    configured: str = ""


FOUND: Final = Environment()


def binaries() -> Path | None:
    """Return the directory of `initdb` and `pg_ctl`: on the PATH, or that of Debian's newest version."""
    on_path = shutil.which("initdb")
    if on_path is not None:
        return Path(on_path).resolve().parent
    found = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


def user() -> str | None:
    """Return the user of the server, which refuses to run as root."""
    if os.getuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


class Cluster:
    """A server in its own directory, which also contains its socket."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        found = binaries()
        assert found is not None, "ask `binaries` first"
        self._bin = found

    @property
    def running(self) -> bool:
        return (self.folder / "data" / "postmaster.pid").exists()

    @property
    def alive(self) -> bool:
        """Return whether its process runs: a killed process leaves its file, and its id may be reused."""
        if not self.running or not Path("/proc/self").exists():
            return self.running
        pid = (self.folder / "data" / "postmaster.pid").read_text().partition("\n")[0].strip()
        try:
            return str(self.folder).encode() in Path("/proc", pid, "cmdline").read_bytes()
        except OSError:
            return False

    def make(self) -> None:
        """Initialise and start it."""
        runs_it = user()
        if runs_it is not None:
            shutil.chown(self.folder, runs_it)
        how = ["--no-sync", "--data-checksums", "-U", OWNER, "-A", "trust", "-E", "UTF8", "--locale=C"]
        self._run("initdb", *how, "-D", self._data)
        (self.folder / "data" / "pg_hba.conf").write_text(ACCESS)
        self.start()
        self.sql(f"CREATE ROLE guarded LOGIN PASSWORD '{PASSWORD}'")

    def start(self) -> None:
        options = " ".join(f"-c {name}='{value}'" for name, value in SETTINGS.items())
        self._run(
            "pg_ctl",
            "-D",
            self._data,
            "-w",
            "-l",
            str(self.folder / "log"),
            "-o",
            f"{options} -k {self.folder}",
            "start",
        )

    def copied_to(self, folder: Path) -> Cluster:
        """Return a standby server in that folder: it can be read, and follows this one."""
        runs_it = user()
        if runs_it is not None:
            shutil.chown(folder, runs_it)
        standby = Cluster(folder)
        self._run("pg_basebackup", "-h", str(self.folder), "-U", OWNER, "-D", standby._data, "-R", "-c", "fast")
        standby.start()
        return standby

    def stop(self, *, how: str = "immediate") -> None:
        """`immediate` is a crash, `fast` ends all sessions first."""
        self._run("pg_ctl", "-D", self._data, "-w", "-m", how, "stop")

    def url(self, *, schema: str = "", user: str = OWNER, **more: str) -> str:
        given = {"host": str(self.folder), **({"schema": schema} if schema else {}), **more}
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in given.items())
        return f"postgresql://{user}@/postgres?{query}"

    def sql(self, *statements: str) -> None:
        """Run statements as superuser."""
        for statement in statements:
            self._run("psql", "-X", "-q", "-h", str(self.folder), "-U", OWNER, "-d", "postgres", "-c", statement)

    def value(self, query: str) -> str:
        """Return the result of a query as text."""
        return self._run(
            "psql", "-X", "-At", "-h", str(self.folder), "-U", OWNER, "-d", "postgres", "-c", query
        ).strip()

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def _run(self, program: str, *arguments: str) -> str:
        done = subprocess.run(
            [str(self._bin / program), *arguments],
            check=False,
            user=user(),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if program != "pg_ctl" else subprocess.DEVNULL,
            stderr=subprocess.STDOUT if program != "pg_ctl" else subprocess.DEVNULL,
            text=True,
            env={**os.environ, "LC_ALL": "C"},
        )
        assert done.returncode == 0, f"{program}: {done.stdout}"
        return done.stdout or ""


def announce() -> None:
    """Set the directory of the server before the workers start."""
    if CLUSTER not in os.environ:
        clear_away()
        os.environ[CLUSTER] = str(own_folder())
    # Tests change the environment.
    FOUND.folder, FOUND.configured = Path(os.environ[CLUSTER]), os.environ.get(CONFIGURED, "")


def take_down() -> None:
    """Stop the server after the last test of the run."""
    take_away(FOUND.folder)


def take_away(folder: Path) -> None:
    """Stop the server in a folder, if there is one, and delete the folder, if it belongs to the tests."""
    if not folder.name.startswith(PREFIX):
        raise ValueError(f"{str(folder)!r} is no folder of a server of the tests")
    if binaries() is not None and (cluster := Cluster(folder)).alive:
        cluster.stop()
    shutil.rmtree(folder, ignore_errors=True)


def own_folder() -> Path:
    """Return a new folder whose name contains the process id, and that all users may enter."""
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=TEMPORARY))


def clear_away() -> None:
    """Delete leftovers of killed runs, with their servers."""
    for folder in TEMPORARY.glob(f"{PREFIX}*-*"):
        pid = folder.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdecimal() and not Path("/proc", pid).exists() and Path("/proc/self").exists():
            take_away(folder)


def shared_cluster() -> Cluster:
    """Return the server of this run, started by its first user. Skips the test if there is none."""
    need_binaries()
    assert FOUND.folder.name.startswith(PREFIX), "`announce` says where, before anybody asks"
    cluster = Cluster(FOUND.folder)
    with (cluster.folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not cluster.running:
            cluster.make()
    return cluster


def own_cluster() -> Iterator[Cluster]:
    """Run a server for a test that stops and starts it."""
    need_binaries()
    # Below the system's own directory: the path of a socket must be short.
    folder = own_folder()
    cluster = Cluster(folder)
    try:
        cluster.make()
        yield cluster
    finally:
        if cluster.running:
            cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def need_binaries() -> None:
    if binaries() is None:
        pytest.skip(f"no PostgreSQL server is installed (apt-get install postgresql), and {CONFIGURED} is not set")


def address(name: str) -> str:
    """Return the address of a new schema."""
    if FOUND.configured:
        return f"{FOUND.configured}{'&' if '?' in FOUND.configured else '?'}schema={name}"
    return shared_cluster().url(schema=name)
