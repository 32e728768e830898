"""The box that needs no namespaces: Landlock for files, a stricter seccomp filter for all else.

For containers and machines where bubblewrap cannot be had. Its programs can tell which processes and files the machine
has, and reach neither. There is no room for files of their own, and they start no other program.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import sys
from pathlib import Path
from typing import Final

from pointsman.tools.sandbox import confine
from pointsman.tools.sandbox.bubblewrap import ENVIRONMENT, LIBRARIES, SYSTEM
from pointsman.tools.sandbox.limits import FILES_OPEN_MAX, Job
from pointsman.tools.sandbox.seccomp_filter import filter_for
from pointsman.tools.sandbox.syscalls import Machine

DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/urandom")
ABI_MIN: Final = 3
"""Before it, a file that may not be written could still be cut off."""


class Landlock:
    """Made by `find_box`."""

    name = "landlock"
    complaints = (b"not confined: ",)

    def __init__(self, machine: Machine) -> None:
        program = filter_for(machine, may_start=False, among_others=True)
        self._filter = base64.b64encode(program).decode()

    def lacks(self, job: Job) -> str:
        """What it cannot give, in words; empty: it can do the job."""
        if job.bounds.processes > 1:
            return "a program that starts others"
        if job.bounds.files_bytes:
            return "files of its own"
        return ""

    def user(self, job: Job) -> int | None:
        """Whoever we are."""
        return None

    def command_line(self, job: Job) -> list[str]:
        """Run it with an empty environment."""
        bounds = job.bounds
        system = LIBRARIES if job.only_libraries else SYSTEM
        plan = {
            "filter": self._filter,
            "memory": bounds.memory_bytes,
            "cpu": bounds.cpu_s,
            "files": FILES_OPEN_MAX,
            "run": [path for path in (*system, job.program) if Path(path).exists()],
            "read": [path for path in job.readable if Path(path).exists()],
            "devices": [] if job.only_libraries else [*DEVICES],
            "parent": os.getpid(),
            "environment": {**ENVIRONMENT, "HOME": "/", "TMPDIR": "/"},
        }
        return [sys.executable, "-I", "-S", confine.__file__, json.dumps(plan), job.program, *job.arguments]


def landlock_abi() -> int:
    """The version that this kernel speaks; 0: none."""
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, libc.syscall(confine.CREATE_RULESET, None, 0, confine.VERSION))
