"""Select the sandbox of this machine, and run a program in it to its end, with limits on time and output.

    find_sandbox: bubblewrap, then landlock, each tried ─▶ Sandbox ── bounded(Job) ──▶ ProcessResult

No process is left behind: the process group is killed and waited for, also when the caller is cancelled.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import ClassVar, Final, Protocol

from msgspec import Struct

from pointsman.deadlines import wait_uninterrupted
from pointsman.errors import CallerError, OperatorError
from pointsman.redaction import head
from pointsman.tools.sandbox.limits import Job, Preference, SandboxLimits
from pointsman.tools.sandbox.seccomp import MACHINES, Machine
from pointsman.values import Seconds

HINT: Final = "On Debian and Ubuntu: apt-get install bubblewrap. `pointsman doctor` shows the details."
READS: Final = 42
HELD: Final = 7
TRIAL: Final = f'read line <"$1" && exit {READS}; exit {HELD}'
"""Trial script: attempts to read a file that the sandbox must hide."""
TRIAL_S: Final = Seconds(10.0)


class SandboxMissing(OperatorError):
    """Raised when no sandbox is available, or none that meets the limits. Nothing runs without a sandbox."""

    code: ClassVar[str] = "sandbox-missing"


class SandboxUnavailable(Exception):
    """Raised when one kind of sandbox is not available; the message is the reason."""


class Sandbox(Protocol):
    """A kind of sandbox."""

    @property
    def name(self) -> str: ...

    @property
    def complaints(self) -> tuple[bytes, ...]:
        """How its error messages begin if the program was not started."""
        ...

    def lacks(self, job: Job) -> str:
        """Return what the job requires and this sandbox cannot provide; empty: nothing."""
        ...

    def user(self, job: Job) -> int | None:
        """Return the user id that the process must have; None: the present user."""
        ...

    def command_line(self, job: Job) -> list[str]:
        """Return the command line that starts the program, for an empty environment and a new session."""
        ...


@cache
def find_sandbox(preference: Preference = "auto") -> Sandbox:
    """Return the sandbox of this machine. The first call takes about 30 ms; the result is cached. Raises
    `SandboxMissing`, which is not cached: a sandbox may be installed meanwhile."""
    if not sys.platform.startswith("linux"):
        raise SandboxMissing(
            f"sandboxes are not supported on {sys.platform!r}", hint="Run Pointsman on Linux, or in a Linux container."
        )
    machine = MACHINES.get(os.uname().machine)
    if machine is None:
        raise SandboxMissing(
            f"sandboxes are not supported on the processor {os.uname().machine!r}",
            hint=f"Supported: {', '.join(MACHINES)}.",
        )
    tried: list[str] = []
    for name, find in FINDERS.items():
        if preference in ("auto", name):
            try:
                return find(machine)
            except SandboxUnavailable as why:
                tried.append(f"{name}: {why}")
    raise SandboxMissing(f"no sandbox is available on this machine ({'; '.join(tried)})", hint=HINT)


def sandbox_for(job: Job, preference: Preference = "auto") -> Sandbox:
    """Return the sandbox if it can do the job. Raises `SandboxMissing`."""
    sandbox = find_sandbox(preference)
    if lacking := sandbox.lacks(job):
        raise SandboxMissing(f"the sandbox {sandbox.name!r} does not support {lacking}", hint=HINT)
    return sandbox


def _bubblewrap(machine: Machine) -> Sandbox:
    from pointsman.tools.sandbox.bubblewrap import Bubblewrap  # Import only if programs run in a sandbox.

    program = shutil.which("bwrap")
    if program is None:
        raise SandboxUnavailable("`bwrap` is not installed")
    return _tried(Bubblewrap(program, machine))


def _landlock(machine: Machine) -> Sandbox:
    from pointsman.tools.sandbox.landlock import ABI_MIN, Landlock, landlock_abi  # As above.

    abi = landlock_abi()
    if abi < ABI_MIN:
        raise SandboxUnavailable(
            f"the kernel has version {abi} of it, but {ABI_MIN} is required"
            if abi
            else "the kernel does not support it"
        )
    return _tried(Landlock(machine))


FINDERS: Final[dict[str, Callable[[Machine], Sandbox]]] = {"bubblewrap": _bubblewrap, "landlock": _landlock}


def _tried(sandbox: Sandbox) -> Sandbox:
    """Return the sandbox after a trial run. Raises `SandboxUnavailable` if the program fails or is not confined."""
    with tempfile.NamedTemporaryFile("w", prefix="pointsman-trial-") as file:
        file.write("not for a program in a box\n")
        file.flush()
        job = Job(program="/bin/sh", arguments=("-c", TRIAL, "trial", file.name), bounds=SandboxLimits(seconds=TRIAL_S))
        try:
            ended = subprocess.run(
                sandbox.command_line(job),
                env={},
                cwd="/",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TRIAL_S,
            )
        except (OSError, subprocess.TimeoutExpired) as why:
            raise SandboxUnavailable(str(why)) from None
    if ended.returncode == READS:
        raise SandboxUnavailable("a program in it can read files that must be hidden")
    if ended.returncode != HELD:
        lines = ended.stderr.decode(errors="replace").strip().splitlines()
        raise SandboxUnavailable(head(lines[0], 200) if lines else f"it ended with {ended.returncode}")
    return sandbox


STOPPED: Final = frozenset({"T", "t", "Z", "X", ""})
"""States of a process that starts no child any more."""
STOP_LOOK_S: Final = 0.001
CHUNK: Final = 65_536
BY_SIGNAL: Final = 128
"""Added by shells to the number of the signal that ended a program."""


class OutputTooLarge(CallerError):
    """Raised when a program exceeds its output limit; the program is killed."""

    code: ClassVar[str] = "output-too-large"


class SandboxTimeout(CallerError):
    """Raised when a program exceeds its time limit; the program is killed."""

    code: ClassVar[str] = "sandbox-timeout"


class SandboxFailed(OperatorError):
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
                raise OutputTooLarge(
                    f"it printed more than {self._most} bytes", hint="Request less output, or raise the limit."
                )
            parts.append(part)
        return b"".join(parts)


async def bounded(sandbox: Sandbox, job: Job, stdin: bytes = b"") -> ProcessResult:
    """Run a program with `stdin` as its standard input. Raises `SandboxFailed`, `OutputTooLarge`, `SandboxTimeout`."""
    process = await _start(sandbox, job, stdin)
    bound = asyncio.timeout(job.bounds.seconds)
    try:
        async with bound:
            ended = await _result_of(process, _Room(job.bounds.output_bytes), stdin)
    except TimeoutError:
        if not bound.expired():
            raise
        raise SandboxTimeout(f"it did not end within {job.bounds.seconds:g} s", hint="Give it more time.") from None
    finally:
        await _end(process)
    # A program that prints such a message itself also counts as not started: it looks like the sandbox's own.
    if ended.code != 0 and ended.errors.startswith(sandbox.complaints):
        first_line = ended.errors.decode(errors="replace").partition("\n")[0]
        raise SandboxFailed(
            f"the sandbox {sandbox.name!r} did not start the program: {first_line}",
            hint="`pointsman doctor` shows the state of the sandbox.",
        )
    return ended


async def _start(sandbox: Sandbox, job: Job, stdin: bytes) -> Process:
    """Start a program. A cancellation waits for the start: only a program that has started can be ended completely."""
    user = sandbox.user(job)
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *sandbox.command_line(job),
            stdin=PIPE if stdin else DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            env={},
            cwd="/",
            start_new_session=True,
            user=user,
            group=user,
            extra_groups=None if user is None else (),
        )
    )
    try:
        await wait_uninterrupted(lambda: asyncio.wait({starting}))
    except asyncio.CancelledError:
        if not starting.cancelled() and starting.exception() is None:
            await _end(starting.result())
        raise
    return starting.result()


async def _result_of(process: Process, room: _Room, stdin: bytes) -> ProcessResult:
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.TaskGroup() as group:
            output = group.create_task(room.read(process.stdout))
            errors = group.create_task(room.read(process.stderr))
            group.create_task(_write_input(process, stdin))
            code = await process.wait()
    except ExceptionGroup as why:
        raise why.exceptions[0] from None
    return ProcessResult(
        code=code if code <= BY_SIGNAL else BY_SIGNAL - code, output=output.result(), errors=errors.result()
    )


async def _write_input(process: Process, stdin: bytes) -> None:
    if process.stdin is None:
        return
    with suppress(BrokenPipeError, ConnectionResetError):  # The program need not read its input.
        process.stdin.write(stdin)
        await process.stdin.drain()
    process.stdin.close()


async def _end(process: Process) -> None:
    """Kill the process group. With namespaces, every process in the sandbox ends with the first one."""

    async def ended() -> None:
        await _kill_group(process)
        await _wait_for_exit(process)

    await wait_uninterrupted(ended)


async def _kill_group(process: Process) -> None:
    """Kill a process group, and the children of its leader that have left the group.

    bubblewrap starts its child in a session of its own. Early on, this child has not yet asked the kernel to end with
    its parent. A leader that has stopped starts no further children.
    """
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGSTOP)
        while _state(process.pid) not in STOPPED:  # noqa: ASYNC110 - the kernel sends no event
            await asyncio.sleep(STOP_LOOK_S)
        for child in _children(process.pid):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        os.killpg(process.pid, signal.SIGKILL)


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


async def _wait_for_exit(process: Process) -> None:
    """Wait for the process. Its remaining output is read and dropped: otherwise it would not count as ended."""
    for stream in (process.stdout, process.stderr):
        while stream is not None and await stream.read(CHUNK):
            pass
    await process.wait()
