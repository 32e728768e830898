"""Starts Python processes as forks of one process that has imported Pointsman: a start takes a tenth of the processor
time.

    with quick_starts():
        process = subprocess.Popen([sys.executable, "-m", "pointsman", ...])  # or subprocess.run, or that of asyncio

    this process ── arguments, environment, folder, streams ──▶ fork server ── fork ──▶ (ends at once) ── fork ──▶ it
         └────────────────────────────────────── becomes its parent ───────────────────────────────────────────────┘

Such a process is a child of this process, with its own signals, streams, environment, folder and exit. It differs from
one that starts afresh only in that modules are imported already: tests of imports and of starts do not use it. Linux
only; elsewhere processes start afresh.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import functools
import gc
import importlib
import io
import os
import pickle
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import pointsman.cli

ROOT: Final = Path(__file__).parents[1]
PARTS: Final = (
    "server.application",
    "server.serving",
    "mcp.stdio",
    "dialects.native",
    "store.sqlite",
    "store.postgres.database",
    "models.exchange",
)
"""Modules that import most of what commands and servers use, besides those of the commands."""
PEERS: Final = "mcp.server"
"""Imported by the servers that tests start as peers."""
REQUEST_BYTES_MAX: Final = 100_000
"""A larger request does not fit into the socket: such a process starts afresh."""
PR_SET_CHILD_SUBREAPER: Final = 36
_fresh: Final[Any] = getattr(subprocess, "_fork_exec", None)


@dataclass(frozen=True, slots=True)
class Start:
    """A process to start: the arguments of Python, which `is_quick` accepts, and its surroundings."""

    arguments: list[str]
    environment: dict[str, str]
    folder: str
    has_own_session: bool


@contextmanager
def quick_starts(*, is_ready: bool = True) -> Generator[None, None, None]:
    """Make the processes that the block starts forks, if they are `python -m module`, `python [-P] -c code` or
    `python file.py`. With `is_ready` the imports of the fork server do not count as time of the block.
    """
    if sys.platform != "linux":
        yield
        return
    if is_ready:
        _server()
    with patch.object(subprocess, "_fork_exec", _forked):
        yield


@contextmanager
def fresh_starts() -> Generator[None, None, None]:
    """Make the processes that the block starts start afresh, although `quick_starts` is around it."""
    with patch.object(subprocess, "_fork_exec", _fresh):
        yield


def run_module(module: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a module of the tests in a process that imports the packages of this checkout."""
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    with quick_starts():
        return subprocess.run(
            [sys.executable, "-m", module, *words],
            check=False,
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": paths},
        )


def is_quick(arguments: Sequence[str]) -> bool:
    """Return whether a process with these arguments of Python may be a fork."""
    first = arguments[0] if arguments else ""
    return first in ("-m", "-c") or first.endswith(".py") or (first == "-P" and arguments[1] == "-c")


def _forked(
    args: Sequence[Any],
    executables: Any,
    close_fds: bool,
    kept: tuple[int, ...],
    folder: Any,
    environment: list[bytes] | None,
    *more: Any,
) -> int:
    """Start a process like `_posixsubprocess.fork_exec` and return its id."""
    stdin, _, _, stdout, _, stderr, _, problem, _, has_own_session, *_ = more
    words = [os.fsdecode(word) for word in args]
    if words[0] == sys.executable and is_quick(words[1:]) and kept == (problem,):
        pairs = (os.fsdecode(one).partition("=") for one in environment or ())
        own = dict(os.environ) if environment is None else {name: value for name, _, value in pairs}
        start = pickle.dumps(Start(words[1:], own, os.fspath(folder or Path.cwd()), bool(has_own_session)))
        if len(start) <= REQUEST_BYTES_MAX:
            streams = [number if given == -1 else given for number, given in enumerate((stdin, stdout, stderr))]
            return _server().start(start, streams)
    return int(_fresh(args, executables, close_fds, kept, folder, environment, *more))


class ForkServer:
    """The process that forks. It ends with this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
        command = [sys.executable, "-m", "tests.quick_starts", str(theirs.fileno())]
        with theirs, fresh_starts():
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=environment, cwd=ROOT
            )
        atexit.register(self.close)

    def close(self) -> None:
        """End the process."""
        self._socket.close()
        self._process.wait()

    def start(self, start: bytes, streams: list[int]) -> int:
        """Start a process as a child of this one, and return its id."""
        libc = ctypes.CDLL(None)
        with self._lock:
            libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
            try:
                socket.send_fds(self._socket, [start], streams)
                return int(self._socket.recv(16))
            finally:
                libc.prctl(PR_SET_CHILD_SUBREAPER, 0)


_server: Final = functools.cache(ForkServer)


def serve(requests: socket.socket) -> Start | None:
    """Fork a process for each request; return its start in that process, and None when nobody asks any more."""
    while True:
        request, streams, _, _ = socket.recv_fds(requests, REQUEST_BYTES_MAX, 3)
        if not request:
            return None
        reading, writing = os.pipe()
        between = os.fork()
        if between == 0:
            here = os.getpid()
            process = os.fork()
            if process != 0:
                os.write(writing, str(process).encode())
                os._exit(0)
            for one in (reading, writing, requests.detach()):
                os.close(one)
            while os.getppid() == here:
                time.sleep(0.0005)
            start: Start = pickle.loads(request)  # noqa: S301 - from the process that started this one
            surround(start, streams)
            return start
        os.waitpid(between, 0)
        requests.send(os.read(reading, 16))
        for one in (reading, writing, *streams):
            os.close(one)


def surround(start: Start, streams: Sequence[int]) -> None:
    """Give this process the surroundings of a start."""
    for number, one in enumerate(streams):
        os.dup2(one, number)
    for one in streams:
        os.close(one)
    if start.has_own_session:
        os.setsid()
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(start.folder)
    before = os.environ["PYTHONPATH"].split(os.pathsep)
    os.environ.clear()
    os.environ.update(start.environment)
    time.tzset()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # A runner under `nohup` ignores it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    paths = start.environment.get("PYTHONPATH", "").split(os.pathsep)
    installed = [one for one in sys.path if one not in before]
    match start.arguments[0]:
        case "-m":
            own = [start.folder]
        case "-c":
            own = [""]
        case "-P":
            own = []
        case file:
            own = [os.path.dirname(os.path.abspath(file))]
    sys.path[:] = [*own, *filter(None, paths), *installed[1:]]
    importlib.invalidate_caches()
    encoding, _, errors = start.environment.get("PYTHONIOENCODING", "").partition(":")
    is_unbuffered = bool(start.environment.get("PYTHONUNBUFFERED"))

    def stream(number: int, mode: str, default: str) -> io.TextIOWrapper:
        buffering = 0 if is_unbuffered and number else -1
        raw = open(number, mode, closefd=False, buffering=buffering)  # noqa: SIM115 - it stays open
        is_by_line = number == 2 or os.isatty(number)
        return io.TextIOWrapper(
            raw, encoding or None, errors or default, line_buffering=is_by_line, write_through=is_unbuffered
        )

    sys.stdin = sys.__stdin__ = stream(0, "rb", "strict")
    sys.stdout = sys.__stdout__ = stream(1, "wb", "strict")
    sys.stderr = sys.__stderr__ = stream(2, "wb", "backslashreplace")


def run(start: Start) -> None:
    """Run the module, the code or the file of a start as `__main__`."""
    sys.orig_argv = [sys.executable, *start.arguments]
    kind, *rest = start.arguments[1:] if start.arguments[0] == "-P" else start.arguments
    if kind.endswith(".py"):
        sys.argv = [kind, *rest]
        runpy.run_path(kind, run_name="__main__")
        return
    what, *arguments = rest
    if kind == "-m":
        sys.argv = ["-m", *arguments]
        runpy.run_module(what, run_name="__main__", alter_sys=True)
        return
    sys.argv = ["-c", *arguments]
    main = type(sys)("__main__")
    sys.modules["__main__"] = main
    exec(compile(what, "<string>", "exec"), main.__dict__)  # noqa: S102 - what `python -c` does


if __name__ == "__main__":
    for name in (*PARTS, *(f"cli.{one.name}" for one in pkgutil.iter_modules(pointsman.cli.__path__))):
        importlib.import_module(f"pointsman.{name}")
    importlib.import_module(PEERS)
    gc.collect()
    gc.freeze()
    started = serve(socket.socket(fileno=int(sys.argv[1])))
    if started is not None:
        run(started)
