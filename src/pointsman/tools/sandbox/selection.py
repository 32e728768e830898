"""Selection of the sandbox of this machine: each is tried, the stronger first."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from typing import ClassVar, Final, Protocol

from pointsman.errors import OperatorError
from pointsman.redaction import head
from pointsman.tools.sandbox.limits import Job, Preference, SandboxLimits
from pointsman.tools.sandbox.syscalls import MACHINES, Machine
from pointsman.values import Seconds

HINT: Final = "On Debian and Ubuntu: apt-get install bubblewrap. `pointsman doctor` says what was tried."
READS: Final = 42
HELD: Final = 7
TRIAL: Final = f'read line <"$1" && exit {READS}; exit {HELD}'
"""Trial script: attempts to read a file that the sandbox must hide."""
TRIAL_S: Final = Seconds(10.0)


class SandboxMissing(OperatorError):
    """Raised when no sandbox is available, or none that meets the limits. Nothing runs without a sandbox."""

    code: ClassVar[str] = "sandbox-missing"


class NoBox(Exception):
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
def find_box(preference: Preference = "auto") -> Sandbox:
    """Return the sandbox of this machine. The first call takes about 30 ms; the result is cached. Raises
    `SandboxMissing`, which is not cached: a sandbox may be installed meanwhile."""
    if not sys.platform.startswith("linux"):
        raise SandboxMissing(
            f"there is no sandbox for {sys.platform!r}", hint="Run Pointsman on Linux, or in a Linux container."
        )
    machine = MACHINES.get(os.uname().machine)
    if machine is None:
        raise SandboxMissing(
            f"there is no sandbox for the processor {os.uname().machine!r}",
            hint=f"There is one for {', '.join(MACHINES)}.",
        )
    tried: list[str] = []
    for name, find in FINDERS.items():
        if preference in ("auto", name):
            try:
                return find(machine)
            except NoBox as why:
                tried.append(f"{name}: {why}")
    raise SandboxMissing(f"this installation has no sandbox ({'; '.join(tried)})", hint=HINT)


def box_for(job: Job, preference: Preference = "auto") -> Sandbox:
    """Return the sandbox if it can do the job. Raises `SandboxMissing`."""
    box = find_box(preference)
    if lacking := box.lacks(job):
        raise SandboxMissing(f"the sandbox {box.name!r} cannot give {lacking}", hint=HINT)
    return box


def _bubblewrap(machine: Machine) -> Sandbox:
    from pointsman.tools.sandbox.bubblewrap import Bubblewrap  # Import only if programs run in a sandbox.

    program = shutil.which("bwrap")
    if program is None:
        raise NoBox("`bwrap` is not installed")
    return _tried(Bubblewrap(program, machine))


def _landlock(machine: Machine) -> Sandbox:
    from pointsman.tools.sandbox.landlock import ABI_MIN, Landlock, landlock_abi  # As above.

    abi = landlock_abi()
    if abi < ABI_MIN:
        raise NoBox(f"the kernel has version {abi} of it, {ABI_MIN} is needed" if abi else "the kernel has none")
    return _tried(Landlock(machine))


FINDERS: Final[dict[str, Callable[[Machine], Sandbox]]] = {"bubblewrap": _bubblewrap, "landlock": _landlock}


def _tried(box: Sandbox) -> Sandbox:
    """Return the sandbox after a trial run. Raises `NoBox` if the program does not run or is not confined."""
    with tempfile.NamedTemporaryFile("w", prefix="pointsman-trial-") as file:
        file.write("not for a program in a box\n")
        file.flush()
        job = Job(program="/bin/sh", arguments=("-c", TRIAL, "trial", file.name), bounds=SandboxLimits(seconds=TRIAL_S))
        try:
            ended = subprocess.run(
                box.command_line(job), env={}, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=TRIAL_S
            )
        except (OSError, subprocess.TimeoutExpired) as why:
            raise NoBox(str(why)) from None
    if ended.returncode == READS:
        raise NoBox("a program in it can read what it should not")
    if ended.returncode != HELD:
        said = ended.stderr.decode(errors="replace").strip().splitlines()
        raise NoBox(head(said[0], 200) if said else f"it ended with {ended.returncode}")
    return box
