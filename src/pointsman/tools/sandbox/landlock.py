"""Sandbox without namespaces: Landlock for files, and a stricter seccomp filter for everything else.

For containers and machines without bubblewrap. Programs can see which processes and files exist, but cannot access
them. They have no private files and cannot start other programs.
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
from pointsman.tools.sandbox.seccomp import Machine, filter_for

DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/urandom")
ABI_MIN: Final = 3
"""Earlier versions cannot prevent truncation of a file that is not writable."""


class Landlock:
    """Landlock sandbox, made by `find_sandbox`."""

    name = "landlock"
    complaints = (b"not confined: ",)

    def __init__(self, machine: Machine) -> None:
        program = filter_for(machine, may_start=False, among_others=True)
        self._filter = base64.b64encode(program).decode()

    def lacks(self, job: Job) -> str:
        """Return what the job requires and this sandbox cannot provide; empty: nothing."""
        if job.bounds.processes > 1:
            return "a program that starts others"
        if job.bounds.files_bytes:
            return "files of its own"
        return ""

    def user(self, job: Job) -> int | None:
        """Return None: the program runs as the present user."""
        return None

    def command_line(self, job: Job) -> list[str]:
        """Return the command line, for an empty environment."""
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
    """Return the Landlock version of this kernel; 0: none."""
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, libc.syscall(confine.CREATE_RULESET, None, 0, confine.VERSION))
