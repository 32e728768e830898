"""The processes that interpret code: each in the box, each for one execution."""

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

from pointsman.tools.sandbox.limits import Job, Preference, SandboxLimits
from pointsman.tools.sandbox.selection import SandboxMissing, box_for
from pointsman.values import Bytes, Seconds

if TYPE_CHECKING:
    from pydantic_monty import Monty

PROGRAM: Final = "monty"
BESIDE_BYTES: Final = 300_000_000
"""Address space of the interpreter beside the memory of the code."""
LIFE: Final = Seconds(3600.0)
"""Work of one process."""


class Worker(Struct, eq=False):
    """A process with an interpreter, and whose it is."""

    pool: Monty
    execution: str

    def end(self) -> None:
        self.pool.__exit__(None, None, None)


class Workers:
    """Those that wait for more code of their execution. Used by several threads."""

    def __init__(self, *, memory_bytes: int, most: int, box: Preference) -> None:
        """`most`: how many wait."""
        self._memory_bytes = memory_bytes
        self._most = most
        self._box: Preference = box
        self._lock = threading.Lock()
        self._waiting: list[Worker] = []
        self._start: Path | None = None

    def take(self, execution: str) -> Worker:
        """One that served this execution, or a new one. Raises `SandboxMissing`."""
        with self._lock:
            known = next((one for one in self._waiting if one.execution == execution), None)
            if known is not None:
                self._waiting.remove(known)
                return known
            start = self._start = self._start or self._launcher()
        return Worker(_pool(start), execution)

    def keep(self, worker: Worker) -> None:
        """It waits for more; the one that has waited longest ends, where there are too many."""
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
        """A program that goes into the box and becomes the interpreter: the client starts it by one path alone."""
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
    """Where it is. Raises `SandboxMissing`."""
    beside = Path(sysconfig.get_path("scripts")) / PROGRAM
    found = str(beside) if beside.is_file() else shutil.which(PROGRAM)
    if found is None:
        raise SandboxMissing(
            "the interpreter of code nodes is not installed", hint="Install it: pip install pydantic-monty."
        )
    return str(Path(found).resolve())


def hand_nothing_on() -> None:
    """Files this process was given by its own parent are not for those it starts. Python's own never are."""
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        try:
            if number > 2 and os.get_inheritable(number):
                os.set_inheritable(number, False)  # noqa: FBT003 - it has no names
        except OSError:
            continue  # It was the listing itself.
