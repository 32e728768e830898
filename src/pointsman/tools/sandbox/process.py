"""Select the sandbox of this machine, and run a program in it to its end, with limits on time and output.

find_sandbox: bubblewrap, then landlock, each tried ─▶ Sandbox ── bounded(Job) ──▶ ProcessResult
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from typing import ClassVar, Final, Protocol

from pointsman.errors import CallerError, OperatorError
from pointsman.redaction import head
from pointsman.tools.sandbox.limits import Job, Preference, ProcessResult, SandboxLimits
from pointsman.tools.sandbox.seccomp import MACHINES, Machine
from pointsman.values import Seconds

HINT: Final = "On Debian and Ubuntu: apt-get install bubblewrap. `pointsman doctor` shows the details."
ONLY_LINUX: Final = "Run Pointsman on Linux, in a Linux container, or in WSL."
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


def not_linux() -> SandboxMissing:
    """Return the error of other systems: a sandbox is made of features of the Linux kernel."""
    system = {"win32": "Windows", "darwin": "macOS"}.get(sys.platform, sys.platform)
    return SandboxMissing(f"sandboxes are not supported on {system}", hint=ONLY_LINUX)


@cache
def find_sandbox(preference: Preference = "auto") -> Sandbox:
    """Return the sandbox of this machine. The first call takes about 30 ms; the result is cached. Raises
    `SandboxMissing`, which is not cached: a sandbox may be installed meanwhile."""
    if sys.platform != "linux":
        raise not_linux()
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
    assert sys.platform == "linux"  # `find_sandbox` refuses other systems.
    from pointsman.tools.sandbox.bubblewrap import Bubblewrap  # Import only if programs run in a sandbox.

    program = shutil.which("bwrap")
    if program is None:
        raise SandboxUnavailable("`bwrap` is not installed")
    return _tried(Bubblewrap(program, machine))


def _landlock(machine: Machine) -> Sandbox:
    assert sys.platform == "linux"  # As above.
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


class SandboxTimeout(CallerError):
    """Raised when a program exceeds its time limit; the program is killed."""

    code: ClassVar[str] = "sandbox-timeout"


class SandboxFailed(OperatorError):
    """Raised when the sandbox cannot be set up. The program was not run."""

    code: ClassVar[str] = "sandbox-failed"


async def bounded(sandbox: Sandbox, job: Job, stdin: bytes = b"") -> ProcessResult:
    """Run a program with `stdin` as its standard input. Raises `SandboxFailed`, `OutputTooLarge`, `SandboxTimeout`."""
    assert sys.platform == "linux"  # As above.
    from pointsman.tools.sandbox.program import Program, run_program

    program = Program(
        command=sandbox.command_line(job),
        stdin=stdin,
        output_bytes=job.bounds.output_bytes,
        cwd="/",
        user=sandbox.user(job),
    )
    try:
        ended = await run_program(program, job.bounds.seconds)
    except TimeoutError:
        raise SandboxTimeout(f"it did not end within {job.bounds.seconds:g} s", hint="Give it more time.") from None
    # A program that prints such a message itself also counts as not started: it looks like the sandbox's own.
    if ended.code != 0 and ended.errors.startswith(sandbox.complaints):
        first_line = ended.errors.decode(errors="replace").partition("\n")[0]
        raise SandboxFailed(
            f"the sandbox {sandbox.name!r} did not start the program: {first_line}",
            hint="`pointsman doctor` shows the state of the sandbox.",
        )
    return ended
