"""Interpreter for code nodes: runs Python without files, sockets or programs, in a sandboxed worker process.

    run(code of execution A) ─▶ semaphore, thread ─▶ worker of A, or a new one ─▶ result ─▶ worker kept for A's next run
                                                                               └─ failure ─▶ worker ends

A worker serves one execution only, so that code which escapes the interpreter finds no data of another execution.
Three layers limit the code: the interpreter (pydantic-monty, with its own time and memory limits), the sandbox around
its process, and the parent, which kills the process after the deadline or when the caller stops waiting.

Results are measured while they are read, because a small structure can be a large text:

    a = [0] * 10
    for _ in range(20): a = [a] * 10        # a few hundred bytes in memory, 10²⁰ numbers as text
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import shlex
import shutil
import signal
import sys
import sysconfig
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, cast

from msgspec import Struct

from pointsman.engine.failures import Failure
from pointsman.errors import AuthorError
from pointsman.extras import install_hint
from pointsman.json_meter import DIGITS_MAX
from pointsman.redaction import head, masked, tail
from pointsman.tools.sandbox.limits import Job, Preference, SandboxLimits
from pointsman.tools.sandbox.process import SandboxMissing, not_linux, sandbox_for
from pointsman.values import Bytes, Json, JsonObject, Seconds

if TYPE_CHECKING:
    from pydantic_monty import Frame, Monty, MontyRuntimeError, MontySession, MontySyntaxError, ResourceLimits


PRINTED_BYTES_MAX: Final = 100_000
"""Maximum size of the printed output of one run."""
MESSAGE_CHARS_MAX: Final = 500
TOO_LATE: Final = "timeout"
SLACK_S: Final = 0.05
"""Added to the deadline before the parent kills the process: the message of the interpreter has more detail."""
_OVER_TIME: Final = re.compile(r"(sleep|feed time) limit exceeded: ")
GRACE_S: Final = 2.0
"""Time after the deadline until the parent kills an interpreter that has not ended; includes its start."""
PRINTED_CHARS_SHOWN: Final = 2_000
"""Length of the end of the printed output that a failure contains."""
FRAMES_SHOWN_MAX: Final = 20
"""Longer tracebacks show only the first and the last frames."""
LINE_CHARS_SHOWN_MAX: Final = 200


class CodeFailed(AuthorError):
    """Raised when code does not produce a result. `failure` is the failure of its step."""

    code: ClassVar[str] = "code-failed"

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, hint=failure.hint)
        self.failure = failure


class CodeLimits(Struct, frozen=True, kw_only=True):
    """Resource limits of one run of code."""

    seconds: Seconds = Seconds(10.0)
    memory_bytes: Bytes = Bytes(128_000_000)
    result_bytes: Bytes = Bytes(1_000_000)
    at_once: int = 0
    """Maximum number of concurrent runs; 0: one per processor."""


class CodeResult(Struct, frozen=True, kw_only=True):
    """Result of a run: its value and what it printed."""

    value: Json
    printed: str


class _Call:
    """One run of code, which another thread may give up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: int | None = None
        self._handle: int | None = None
        self._timer: threading.Timer | None = None
        self._deadline: float | None = None
        self.given_up = False
        self.is_late = False
        """The code exceeded its time limit."""

    def begun(self, pid: int | None, seconds: Seconds) -> None:
        """Start the deadline of the process `pid`. Raises `ProcessLookupError` if the call was given up before, or if
        the process no longer exists."""
        with self._lock:
            self._timer = threading.Timer(seconds + SLACK_S, self._late)
            self._timer.daemon = True
            self._deadline = time.monotonic() + seconds
            if self.given_up or pid is None:
                raise ProcessLookupError
            assert sys.platform == "linux"  # `interpreter` refuses other systems.
            self._process = pid
            # The system can reuse a process id but not a handle. Some builds of Python have no `pidfd_open`.
            self._handle = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
            self._timer.start()

    def _late(self) -> None:
        self.is_late = True
        self.give_up()

    def over(self) -> None:
        """Stop the deadline and release the process, which may then run other code."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            # The interpreter limits computation and sleep separately; the time limit applies to their sum.
            self.is_late = self.is_late or (self._deadline is not None and time.monotonic() > self._deadline)
            self._deadline = None
            if self._handle is not None:
                os.close(self._handle)
            self._process = self._handle = None

    def give_up(self) -> None:
        """Kill the process now, or as soon as it starts."""
        with self._lock, suppress(ProcessLookupError):
            self.given_up = True
            if self._process is None:
                return
            assert sys.platform == "linux"  # As in `begun`.
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            else:
                os.kill(self._process, signal.SIGKILL)


class Interpreter:
    """Runs code in sandboxed worker processes. The first worker starts with the first run."""

    def __init__(self, limits: CodeLimits, *, sandbox: Preference = "auto") -> None:
        self._limits = limits
        self._at_once = limits.at_once or os.cpu_count() or 1
        self._room = asyncio.Semaphore(self._at_once)
        self._threads: ThreadPoolExecutor | None = None
        self._workers = Workers(memory_bytes=limits.memory_bytes, most=self._at_once, sandbox=sandbox)

    async def run(self, source: str, inputs: Mapping[str, Json], *, execution: str = "") -> CodeResult:
        """Run code and return its result. Cancelling the call kills the process. Raises `CodeFailed`,
        `ResultUnusable`, `SandboxMissing`."""
        async with self._room:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._at_once, thread_name_prefix="code")
            call = _Call()
            running = asyncio.get_running_loop().run_in_executor(
                self._threads, self._run, call, source, {**inputs}, execution
            )
            running.add_done_callback(_retrieve_exception)
            try:
                await asyncio.wait([running], timeout=self._limits.seconds + GRACE_S)
            finally:
                if not running.done():
                    call.give_up()
                    await asyncio.wait([running])
            return running.result()

    async def close(self) -> None:
        """End all workers. A later run starts new ones."""
        threads, self._threads = self._threads, None
        if threads is not None:
            await asyncio.to_thread(threads.shutdown)
        self._workers.close()

    def _run(self, call: _Call, source: str, inputs: JsonObject, execution: str) -> CodeResult:
        """Run code in a worker; called in a thread, because the client of the interpreter blocks."""
        worker = self._workers.take(execution)
        from pydantic_monty import CollectString  # Missing if the extra `code` is not installed: `take` checks that.

        printed = CollectString(PRINTED_BYTES_MAX)
        limits: ResourceLimits = {
            "max_feed_duration_secs": self._limits.seconds,
            "max_total_sleep_secs": self._limits.seconds,
            "max_memory": self._limits.memory_bytes,
        }
        result: CodeResult | None = None
        try:
            with worker.pool.checkout(limits=limits) as session:
                call.begun(session.worker_pid, self._limits.seconds)
                value = session.feed_run(source, inputs=inputs, print_callback=printed)
                if value is None:
                    value = _variable(session)
                call.over()
            if call.is_late:
                raise TimeoutError
            result = CodeResult(value=ResultMeter(self._limits.result_bytes).read(value), printed=printed.output)
            return result
        except BaseException as why:  # Nothing else interrupts this thread; a panic of the client arrives here too.
            is_late = call.is_late or call.given_up
            raise failed(why, is_late=is_late, seconds=self._limits.seconds, printed=printed.output) from None
        finally:
            call.over()
            if result is None or call.given_up:
                worker.end()
            else:
                self._workers.keep(worker)


def _retrieve_exception(running: asyncio.Future[CodeResult]) -> None:
    """Retrieve the exception of an abandoned run, so that asyncio does not log it."""
    if not running.cancelled():
        running.exception()


def _variable(session: MontySession) -> object:
    """Return the variable `result` of the code, or None if it is not defined."""
    from pydantic_monty import MontyRuntimeError

    try:
        return session.feed_run("result")
    except MontyRuntimeError as why:
        if isinstance(why.exception(), NameError):
            return None
        raise


def failed(why: BaseException, *, is_late: bool, seconds: Seconds, printed: str) -> CodeFailed | ResultUnusable:
    """Return the failure of a step. Messages of the code are shortened; internal messages are left out."""
    from pydantic_monty import MontyCrashedError, MontyRuntimeError, MontySyntaxError

    code, message, hint, retryable = "code-crashed", f"its interpreter ended: {type(why).__name__}", "", True
    match why:
        case ResultUnusable():
            return why
        case ValueError() | OverflowError() | RecursionError():
            return ResultUnusable("the result cannot be transferred from the sandbox", hint="Return a smaller result.")
        case _ if is_late or (isinstance(why, MontyCrashedError) and why.timed_out):
            code, message, retryable = TOO_LATE, f"the code took longer than {seconds:g} s", False
            hint = "Do less in one step, or raise `timeout` under [sandbox] in the settings."
        case MontySyntaxError():
            code, message, retryable = "code-failed", f"{_error_text(why)}", False
        case MontyRuntimeError() if _OVER_TIME.match(str(why.exception())):
            code, message, retryable = TOO_LATE, f"the code took longer than {seconds:g} s: {_error_text(why)}", False
            hint = "Do less in one step, or raise `timeout` under [sandbox] in the settings."
        case MontyRuntimeError():
            over = isinstance(why.exception(), MemoryError | TimeoutError | RecursionError)
            code, message, retryable = "code-over-limit" if over else "code-failed", _error_text(why), False
        case _:
            pass
    if code == "code-over-limit":
        hint = "Do less in one step, or raise `memory` under [sandbox] in the settings."
    details: JsonObject = {}
    if isinstance(why, MontySyntaxError | MontyRuntimeError):
        details |= _stack_of(why)
    if printed:
        details["output"] = tail(printed, PRINTED_CHARS_SHOWN)
    return CodeFailed(Failure(code=code, message=message, hint=hint, retryable=retryable, details=details or None))


def _stack_of(why: MontySyntaxError | MontyRuntimeError) -> JsonObject:
    """Return the traceback of the author's code in Python's format, and the location of its last frame."""
    frames = why.traceback()
    if not frames:
        return {}
    left_out = max(0, len(frames) - FRAMES_SHOWN_MAX)
    shown = [*frames[: FRAMES_SHOWN_MAX // 2], *frames[len(frames) - FRAMES_SHOWN_MAX // 2 :]] if left_out else frames
    lines: list[str] = []
    for number, frame in enumerate(shown):
        if left_out and number == FRAMES_SHOWN_MAX // 2:
            lines.append(f"  … {left_out} frames …")
        lines.append(f"  {_place_of(frame)}")
        if frame.source_line:
            lines.append(f"    {head(frame.source_line.strip(), LINE_CHARS_SHOWN_MAX)}")
    raised = f"{type(why.exception()).__name__}: {head(str(why.exception()), MESSAGE_CHARS_MAX)}"
    text = "\n".join(["Traceback (most recent call last):", *lines, raised])
    return {"traceback": text, "where": _place_of(frames[-1])}


def _place_of(frame: Frame) -> str:
    function = "" if frame.function_name in (None, "", "<module>") else f", in {frame.function_name}"
    return f"line {frame.line} of the code{function}"


def _error_text(why: MontySyntaxError | MontyRuntimeError) -> str:
    """Return type, message and line: `ValueError: no such thing (line 3)`."""
    message = masked(f"{type(why.exception()).__name__}: {why.exception()}")
    message = message if len(message) <= MESSAGE_CHARS_MAX else f"{message[:MESSAGE_CHARS_MAX]}…"
    frames = why.traceback()
    return f"{message} (line {frames[-1].line})" if frames else message


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

    def __init__(self, *, memory_bytes: int, most: int, sandbox: Preference) -> None:
        """`most`: maximum number of idle workers."""
        self._memory_bytes = memory_bytes
        self._most = most
        self._sandbox: Preference = sandbox
        self._lock = threading.Lock()
        self._waiting: list[Worker] = []
        self._start: Path | None = None

    def take(self, execution: str) -> Worker:
        """Return the idle worker of an execution, or a new one. Raises `SandboxMissing`."""
        with self._lock:
            waiting = next((one for one in self._waiting if one.execution == execution), None)
            if waiting is not None:
                self._waiting.remove(waiting)
                return waiting
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
        line = shlex.join(sandbox_for(job, self._sandbox).command_line(job))
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
    if sys.platform != "linux":
        raise not_linux()  # First: the extra installs nothing there.
    beside = Path(sysconfig.get_path("scripts")) / PROGRAM
    program = str(beside) if beside.is_file() else shutil.which(PROGRAM)
    if program is None:
        raise SandboxMissing("the interpreter of code nodes is not installed", hint=install_hint("code"))
    return str(Path(program).resolve())


def hand_nothing_on() -> None:
    """Mark files inherited from this process's parent as not inheritable. Python's own files already are."""
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        try:
            if number > 2 and os.get_inheritable(number):
                os.set_inheritable(number, False)  # noqa: FBT003 - it has no names
        except OSError:
            continue  # The descriptor of the directory listing itself is already closed.


DEPTH_MAX: Final = 100
TOO_LONG: Final = 10**DIGITS_MAX
"""The smallest integer with too many digits."""


class ResultUnusable(AuthorError):
    """Raised when the result of code is not JSON, or is too large."""

    code: ClassVar[str] = "code-result"


class ResultMeter:
    """Reads one result and limits its approximate size as JSON text."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._left = bytes_max

    def read(self, value: object, depth: int = 0) -> Json:
        """Return the value as JSON; tuples become lists. Raises `ResultUnusable`."""
        if depth > DEPTH_MAX:
            raise ResultUnusable(
                f"the result is nested deeper than {DEPTH_MAX} levels", hint="Return a smaller result."
            )
        self._count(1)
        match value:
            case None | bool():
                return value
            case str():
                self._count(len(value))
                return value
            case float() if math.isfinite(value):
                return value
            case int() if -TOO_LONG < value < TOO_LONG:
                self._count(value.bit_length() // 4)
                return value
            case list() | tuple():
                return [self.read(element, depth + 1) for element in cast("list[object]", value)]
            case dict():
                return self._object(cast("dict[object, object]", value), depth)
            case _:
                hint = "Convert it to texts, numbers, lists, and objects with text keys."
                raise ResultUnusable(f"the result contains {_kind_of(value)}, which is not JSON", hint=hint)

    def _object(self, value: dict[object, object], depth: int) -> JsonObject:
        result: JsonObject = {}
        for key, member in value.items():
            if not isinstance(key, str):
                raise ResultUnusable(f"the result has the key {key!r:.50}", hint="Use texts as keys: str(key).")
            self._count(len(key))
            result[key] = self.read(member, depth + 1)
        return result

    def _count(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise ResultUnusable(
                f"the result has more than {self._bytes_max} bytes",
                hint="Return a smaller result, or raise `result` under [sandbox] in the settings.",
            )


def _kind_of(value: object) -> str:
    match value:
        case float():
            return f"the number {value}"
        case int():
            return f"a number with more than {DIGITS_MAX} digits"
        case _:
            name = type(value).__name__
            return "an instance of a class" if name.startswith("Monty") else f"a {name}"
