"""Run a program to its end, with limits on time and output.

    run_program ──▶ a thread: start, exchange input and output, wait ──▶ ProcessResult
        └─ deadline, cancellation: kill the process group, wait for the thread

A thread and not asyncio, because the end of an event loop cancels asyncio's own tasks too: a program that asyncio is
just starting then counts as running for ever. A blocked thread costs no more than the one in which asyncio waits.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from pointsman.deadlines import wait_uninterrupted
from pointsman.tools.sandbox.limits import OutputTooLarge, ProcessResult

assert sys.platform == "linux"  # `find_sandbox` refuses other systems.

CHUNK: Final = 65_536
STOPPED: Final = frozenset({"T", "t", "Z", "X", ""})
"""States of a process that starts no child any more."""
STOP_LOOK_S: Final = 0.001
BY_SIGNAL: Final = 128
"""Added by shells to the number of the signal that ended a program."""


class Program(Struct, frozen=True, kw_only=True):
    """A program, which starts in a session of its own with an empty environment."""

    command: Sequence[str]
    stdin: bytes = b""
    output_bytes: int
    """Limit of both outputs together."""
    cwd: str | None = None
    """None: the present directory."""
    user: int | None = None
    """User and group; None: the present ones."""


async def run_program(program: Program, seconds: float) -> ProcessResult:
    """Run a program. No process of it is left behind, also when the caller is cancelled. Raises `OSError` if it cannot
    be started, `OutputTooLarge`, `TimeoutError`."""
    running = _RunningProgram(program)
    try:
        async with asyncio.timeout(seconds):
            await asyncio.wait({running.ended})
    finally:
        await wait_uninterrupted(running.end)
    return running.ended.result()


class _RunningProgram:
    """A program and its thread. Only the thread reads its outputs and waits for it."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._loop = asyncio.get_running_loop()
        self._process: subprocess.Popen[bytes] | None = None
        self._reaped = threading.Lock()
        """Held while the process is signalled or reaped: the number of a reaped process may belong to another one."""
        self.started = self._loop.create_future()
        self.ended: asyncio.Future[ProcessResult] = self._loop.create_future()
        threading.Thread(target=self._run, name="pointsman-program", daemon=True).start()

    async def end(self) -> None:
        """Kill the program if it runs, and wait for it."""
        if not self.ended.done():
            await asyncio.wait({self.started})
            await self._kill()
            await asyncio.wait({self.ended})
        self.ended.exception()  # Nobody may ask for the result; asyncio would log its exception.

    async def _kill(self) -> None:
        """Kill the process group, and the children of its leader that have left the group.

        bubblewrap starts its child in a session of its own. Early on, this child has not yet asked the kernel to end
        with its parent. A leader that has stopped starts no further children.
        """
        if self._process is None:  # It could not be started.
            return
        leader = self._process.pid
        self._signal(signal.SIGSTOP)
        while _state(leader) not in STOPPED:  # noqa: ASYNC110 - the kernel sends no event
            await asyncio.sleep(STOP_LOOK_S)
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        process = self._process
        with self._reaped:
            if process is None or process.returncode is not None:
                return
            for child in _children(process.pid) if number == signal.SIGKILL else ():
                with suppress(ProcessLookupError):
                    os.kill(child, number)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)

    def _run(self) -> None:
        try:
            process = self._start()
        except BaseException as why:
            failure = why
            self._report(lambda: (self.started.set_result(None), self.ended.set_exception(failure)))
            return
        self._report(lambda: self.started.set_result(None))
        try:
            output, errors = self._exchange(process)
        except BaseException as why:
            failure = why
            self._signal(signal.SIGKILL)
            self._wait(process)
            self._report(lambda: self.ended.set_exception(failure))
            return
        code = self._wait(process)
        result = ProcessResult(code=code, output=output, errors=errors)
        self._report(lambda: self.ended.set_result(result))

    def _report(self, report: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # The event loop is closed: nothing waits.
            self._loop.call_soon_threadsafe(report)

    def _start(self) -> subprocess.Popen[bytes]:
        program = self._program
        self._process = subprocess.Popen(
            program.command,
            stdin=subprocess.PIPE if program.stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={},
            cwd=program.cwd,
            start_new_session=True,
            user=program.user,
            group=program.user,
            extra_groups=None if program.user is None else (),
        )
        return self._process

    def _exchange(self, process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
        """Write the input, and read both outputs to their ends. Raises `OutputTooLarge`."""
        assert process.stdout is not None
        assert process.stderr is not None
        parts: dict[int, list[bytes]] = {process.stdout.fileno(): [], process.stderr.fileno(): []}
        left = self._program.output_bytes
        unsent = memoryview(self._program.stdin)
        with selectors.DefaultSelector() as selector:
            for output in parts:
                selector.register(output, selectors.EVENT_READ)
            if process.stdin is not None:
                os.set_blocking(process.stdin.fileno(), False)
                selector.register(process.stdin.fileno(), selectors.EVENT_WRITE)
            while selector.get_map():
                for key, _ in selector.select():
                    if key.fd not in parts:
                        assert process.stdin is not None
                        unsent = _write(key.fd, unsent)
                        if not unsent:
                            selector.unregister(key.fd)
                            process.stdin.close()
                    elif part := os.read(key.fd, CHUNK):
                        parts[key.fd].append(part)
                        left -= len(part)
                        if left < 0:
                            raise OutputTooLarge(
                                f"it printed more than {self._program.output_bytes} bytes",
                                hint="Request less output, or raise the limit.",
                            )
                    else:
                        selector.unregister(key.fd)
        output, errors = (b"".join(one) for one in parts.values())
        return output, errors

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        """Wait for the process and reap it. Returns its exit code."""
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with self._reaped:
            code = process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        return code if code <= BY_SIGNAL else BY_SIGNAL - code


def _write(to: int, unsent: memoryview) -> memoryview:
    """Write what the pipe takes. Returns the rest; a program need not read its input."""
    try:
        return unsent[os.write(to, unsent) :]
    except BlockingIOError:
        return unsent
    except (BrokenPipeError, ConnectionResetError):
        return unsent[:0]


def _state(process: int) -> str:
    """Return the state letter of a process; empty if it is gone, or where the system has no /proc."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _children(process: int) -> list[int]:
    """Return the children of a process with one thread; none where the system does not list them."""
    try:
        return [*map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())]
    except OSError:
        return []
