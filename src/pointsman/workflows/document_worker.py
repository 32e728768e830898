"""Worker process: performs jobs on documents of callers, one at a time, under limits that the kernel enforces.

    server ── seconds, job ──▶ worker ── outcome ──▶ server

A job is a pickled `(function, arguments)`. Documents travel as text: both ends unpickle only what this program wrote.
The kernel ends the process with SIGPROF when a job exceeds its processor time. A job that exceeds the memory of the
process fails with `JobResult(kind="memory")`. The process ends when its input does. `document_pool` starts it; it
imports some modules before the first job, so that their import does not count against a job.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from io import BufferedReader, BufferedWriter
from typing import Final, Literal

from pointsman.errors import PointsmanError

JOB: Final = struct.Struct("<dQ")
"""Header of a job: its processor time in seconds, and its length in bytes."""
REPLY: Final = struct.Struct("<?Q")
"""Header of a reply: whether the worker continues, and the length in bytes."""
NICE: Final = 5
"""Lets the server's event loop run first when processors are scarce."""
PICKLE_PROTOCOL: Final = 5


@dataclass(frozen=True, slots=True)
class JobResult:
    """The outcome of a job."""

    kind: Literal["value", "refused", "memory", "bug"]
    value: object = None
    """`value`: the result; `refused`: the argument of `rebuilt`; `bug`: the traceback."""
    cpu_s: float = 0.0


def main() -> None:
    memory_bytes, modules = int(sys.argv[1]), sys.argv[2:]
    jobs, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # Output that a library prints must not be read as a reply.
    if sys.platform != "win32":
        os.nice(NICE)
    for name in modules:
        import_module(name)
    gc.collect()
    gc.freeze()
    gc.disable()  # Collecting between jobs is enough.
    _limit_memory(memory_bytes)
    _send(replies, b"", goes_on=True)
    while _perform(jobs, replies, memory_bytes):
        gc.collect()


def _perform(jobs: BufferedReader, replies: BufferedWriter, memory_bytes: int) -> bool:
    """Perform the next job. Return whether the worker can take another one."""
    head = jobs.read(JOB.size)
    if len(head) < JOB.size:
        return False
    seconds, length = JOB.unpack(head)
    job = jobs.read(length)
    _limit_time(seconds)
    try:
        reply, fits = _reply(job), True
    except MemoryError:
        reply, fits = pickle.dumps(JobResult("memory"), PICKLE_PROTOCOL), False
    _limit_time(0)
    # Memory that a large document leaves allocated would count against the next job.
    goes_on = fits and _peak_bytes() < memory_bytes // 2
    _send(replies, reply, goes_on=goes_on)
    return goes_on


if sys.platform == "win32":
    # Windows has no such limits: the server ends a worker that takes too long by the clock.

    def _limit_memory(_: int) -> None: ...

    def _limit_time(_: float) -> None: ...

    def _peak_bytes() -> int:
        return 0
else:
    import resource

    def _limit_memory(memory_bytes: int) -> None:
        """Limit the memory of this process."""
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))

    def _limit_time(seconds: float) -> None:
        """End this process after so many seconds of its processor time; 0 removes the limit."""
        signal.setitimer(signal.ITIMER_PROF, seconds)

    def _peak_bytes() -> int:
        """Return the peak memory of this process. On Linux `getrusage` also counts that of the process that started
        it."""
        with suppress(OSError), open("/proc/self/status", "rb") as status:
            for line in status:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def _reply(job: bytes) -> bytes:
    """Return the pickled outcome of a job. Raises MemoryError."""
    started = time.process_time()
    try:
        function, arguments = pickle.loads(job)  # noqa: S301 - the server wrote it
        value = function(*arguments)
    except PointsmanError as why:
        outcome = JobResult("refused", picklable_error(why))
    except MemoryError:
        raise
    except Exception:
        outcome = JobResult("bug", traceback.format_exc())
    else:
        outcome = JobResult("value", value, time.process_time() - started)
    return pickle.dumps(outcome, PICKLE_PROTOCOL)


def _send(replies: BufferedWriter, reply: bytes, *, goes_on: bool) -> None:
    replies.write(REPLY.pack(goes_on, len(reply)) + reply)
    replies.flush()


def picklable_error(why: PointsmanError) -> tuple[type[PointsmanError], tuple[object, ...], dict[str, object]]:
    """Return an error as data: exceptions with constructor arguments of their own cannot be pickled directly."""
    return type(why), why.args, why.__dict__


def rebuilt(parts: tuple[type[PointsmanError], tuple[object, ...], dict[str, object]]) -> PointsmanError:
    """Return the error that `picklable_error` converted to data."""
    kind, arguments, attributes = parts
    make: Callable[..., PointsmanError] = kind.__new__
    why = make(kind, *arguments)
    why.__dict__.update(attributes)
    return why
