"""Worker processes that interpret code: each in a sandbox and reserved for one execution."""

from __future__ import annotations

import os
import shlex
import shutil
import sysconfig
import tempfile
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from pointsman.extras import install_hint
from pointsman.tools.sandbox.limits import Job, Preference, SandboxLimits
from pointsman.tools.sandbox.selection import SandboxMissing, box_for
from pointsman.values import Bytes, Seconds

if TYPE_CHECKING:
    from pydantic_monty import Monty

PROGRAM: Final = "monty"
BESIDE_BYTES: Final = 300_000_000
"""Address space of the interpreter, in addition to the memory of the code."""
LIFE: Final = Seconds(3600.0)
"""Time limit of one worker process."""


class Worker(Struct, eq=False):
    """An interpreter process and the execution it is reserved for."""

    pool: Monty
    execution: str

    def end(self) -> None:
        self.pool.__exit__(None, None, None)


class Workers:
    """Pool of idle workers, each waiting for more code of its execution. Thread-safe."""

    def __init__(self, *, memory_bytes: int, most: int, box: Preference) -> None:
        """`most`: maximum number of idle workers."""
        self._memory_bytes = memory_bytes
        self._most = most
        self._box: Preference = box
        self._lock = threading.Lock()
        self._waiting: list[Worker] = []
        self._start: Path | None = None

    def take(self, execution: str) -> Worker:
        """Return the idle worker of an execution, or a new one. Raises `SandboxMissing`."""
        with self._lock:
            known = next((one for one in self._waiting if one.execution == execution), None)
            if known is not None:
                self._waiting.remove(known)
                return known
            start = self._start = self._start or self._launcher()
        return Worker(_pool(start), execution)

    def keep(self, worker: Worker) -> None:
        """Return a worker to the pool. If the pool is full, end the worker that has been idle longest."""
        with self._lock:
            self._waiting.append(worker)
            surplus = self._waiting.pop(0) if len(self._waiting) > self._most else None
        if surplus is not None:
            surplus.end()

    def close(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for worker in waiting:
            worker.end()

    def _launcher(self) -> Path:
        """Write a script that starts the interpreter in the sandbox: its client accepts only a path."""
        bounds = SandboxLimits(seconds=LIFE, memory_bytes=Bytes(self._memory_bytes + BESIDE_BYTES))
        job = Job(program=interpreter(), arguments=("subprocess",), bounds=bounds, only_libraries=True)
        line = shlex.join(box_for(job, self._box).command_line(job))
        hand_nothing_on()
        directory = Path(tempfile.mkdtemp(prefix="pointsman-code-"))
        weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)
        start = directory / "start"
        start.write_text(f"#!/bin/sh\nexec {line} 2>/dev/null\n", encoding="utf-8")
        start.chmod(0o700)
        return start


def _pool(start: Path) -> Monty:
    from pydantic_monty import Monty

    pool = Monty(binary_path=start, min_processes=1, max_processes=1)
    return pool.__enter__()


def interpreter() -> str:
    """Return the path of the interpreter. Raises `SandboxMissing`."""
    beside = Path(sysconfig.get_path("scripts")) / PROGRAM
    found = str(beside) if beside.is_file() else shutil.which(PROGRAM)
    if found is None:
        raise SandboxMissing("the interpreter of code nodes is not installed", hint=install_hint("code"))
    return str(Path(found).resolve())


def hand_nothing_on() -> None:
    """Mark files inherited from this process's parent as not inheritable. Python's own files already are."""
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        try:
            if number > 2 and os.get_inheritable(number):
                os.set_inheritable(number, False)  # noqa: FBT003 - it has no names
        except OSError:
            continue  # The descriptor of the directory listing itself is already closed.
