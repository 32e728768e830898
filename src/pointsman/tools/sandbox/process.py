"""Run a program in a sandbox to its end, with limits on time and output.

No process is left behind: the process group is killed and waited for, also when the caller is cancelled.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from typing import ClassVar, Final

from msgspec import Struct

from pointsman.errors import CallerError, OperatorError
from pointsman.tools.sandbox.limits import Job
from pointsman.tools.sandbox.selection import Sandbox

CHUNK: Final = 65_536
BY_SIGNAL: Final = 128
"""Added by shells to the number of the signal that ended a program."""


class OutputTooLarge(CallerError):
    """Raised when a program exceeds its output limit; the program is killed."""

    code: ClassVar[str] = "output-too-large"


class TookTooLong(CallerError):
    """Raised when a program exceeds its time limit; the program is killed."""

    code: ClassVar[str] = "took-too-long"


class BoxFailed(OperatorError):
    """Raised when the sandbox cannot be set up. The program was not run."""

    code: ClassVar[str] = "sandbox-failed"


class ProcessResult(Struct, frozen=True, kw_only=True):
    """Exit code and output of a program."""

    code: int
    """0 to 255; negative: the number of the signal that ended the program."""
    output: bytes
    errors: bytes


class _Room:
    """Remaining output limit, shared by both streams."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most

    async def read(self, stream: asyncio.StreamReader) -> bytes:
        """Read a stream to its end. Raises `OutputTooLarge`."""
        parts: list[bytes] = []
        while part := await stream.read(CHUNK):
            self._left -= len(part)
            if self._left < 0:
                raise OutputTooLarge(f"it said more than {self._most} bytes", hint="Ask for less, or allow more.")
            parts.append(part)
        return b"".join(parts)


async def bounded(box: Sandbox, job: Job, given: bytes = b"") -> ProcessResult:
    """Run a program with `given` as its standard input. Raises `BoxFailed`, `OutputTooLarge`, `TookTooLong`."""
    user = box.user(job)
    process = await asyncio.create_subprocess_exec(
        *box.command_line(job),
        stdin=PIPE if given else DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        env={},
        cwd="/",
        start_new_session=True,
        user=user,
        group=user,
        extra_groups=None if user is None else (),
    )
    bound = asyncio.timeout(job.bounds.seconds)
    try:
        async with bound:
            ended = await _heard(process, _Room(job.bounds.output_bytes), given)
    except TimeoutError:
        if not bound.expired():
            raise
        raise TookTooLong(f"it did not end within {job.bounds.seconds:g} s", hint="Give it more time.") from None
    finally:
        await _end(process)
    # A program that prints such a message itself also counts as not started: it looks like the sandbox's own.
    if ended.code != 0 and ended.errors.startswith(box.complaints):
        said = ended.errors.decode(errors="replace").partition("\n")[0]
        raise BoxFailed(f"the sandbox {box.name!r} did not let the program in: {said}", hint="See `pointsman doctor`.")
    return ended


async def _heard(process: Process, room: _Room, given: bytes) -> ProcessResult:
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.TaskGroup() as group:
            output = group.create_task(room.read(process.stdout))
            errors = group.create_task(room.read(process.stderr))
            group.create_task(_tell(process, given))
            code = await process.wait()
    except ExceptionGroup as why:
        raise why.exceptions[0] from None
    return ProcessResult(
        code=code if code <= BY_SIGNAL else BY_SIGNAL - code, output=output.result(), errors=errors.result()
    )


async def _tell(process: Process, given: bytes) -> None:
    if process.stdin is None:
        return
    with suppress(BrokenPipeError, ConnectionResetError):  # The program need not read its input.
        process.stdin.write(given)
        await process.stdin.drain()
    process.stdin.close()


async def _end(process: Process) -> None:
    """Kill the process group. With namespaces, every process in the sandbox ends with the first one."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    await asyncio.shield(_gone(process))


async def _gone(process: Process) -> None:
    """Wait for the process. Its remaining output is read and dropped: otherwise it would not count as ended."""
    for stream in (process.stdout, process.stderr):
        while stream is not None and await stream.read(CHUNK):
            pass
    await process.wait()
