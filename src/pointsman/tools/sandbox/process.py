"""Runs a program in a box to its end, and no longer than its bounds allow.

Whatever happens, nothing of it is left: its group is killed and waited for, also when whoever waits is cancelled.
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
"""What a shell adds to the number of the signal that ended a program."""


class OutputTooLarge(CallerError):
    """A program said more than it may, and was ended."""

    code: ClassVar[str] = "output-too-large"


class TookTooLong(CallerError):
    """A program did not end in time, and was ended."""

    code: ClassVar[str] = "took-too-long"


class BoxFailed(OperatorError):
    """A program was not let into its box. It was not run."""

    code: ClassVar[str] = "sandbox-failed"


class ProcessResult(Struct, frozen=True, kw_only=True):
    """How it ended, and what it said."""

    code: int
    """0 to 255, or less than 0: the number of the signal that ended it."""
    output: bytes
    errors: bytes


class _Room:
    """What may still be said."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most

    async def read(self, stream: asyncio.StreamReader) -> bytes:
        """To its end. Raises `OutputTooLarge`."""
        parts: list[bytes] = []
        while part := await stream.read(CHUNK):
            self._left -= len(part)
            if self._left < 0:
                raise OutputTooLarge(f"it said more than {self._most} bytes", hint="Ask for less, or allow more.")
            parts.append(part)
        return b"".join(parts)


async def bounded(box: Sandbox, job: Job, given: bytes = b"") -> ProcessResult:
    """Run it; `given` is its standard input. Raises `BoxFailed`, `OutputTooLarge`, `TookTooLong`."""
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
    # A program that says the same fails as well: nothing is taken for its success that could be the box's complaint.
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
    with suppress(BrokenPipeError, ConnectionResetError):  # It need not read what it was given.
        process.stdin.write(given)
        await process.stdin.drain()
    process.stdin.close()


async def _end(process: Process) -> None:
    """Its group; in a box with namespaces everything in it ends with the first process."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    await asyncio.shield(_gone(process))


async def _gone(process: Process) -> None:
    """What it still had to say is read and dropped: till then it does not count as ended."""
    for stream in (process.stdout, process.stderr):
        while stream is not None and await stream.read(CHUNK):
            pass
    await process.wait()
