"""How much a program in a box may use, and what it is."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from pointsman.values import Bytes, Seconds

Preference: TypeAlias = Literal["auto", "bubblewrap", "landlock"]
"""Which box; `auto`: the first that can be had, in this order."""

FILES_OPEN_MAX: Final = 256
"""Open files of a program."""

FILES_MAX: Final = 4096
"""Files of its own, unless the operator allows more. Each takes some kB of the kernel's memory, also an empty one."""


class SandboxLimits(Struct, frozen=True, kw_only=True):
    """Each is held by the kernel, except `seconds` and `output_bytes`, which its parent holds."""

    seconds: Seconds = Seconds(30.0)
    """From its start to its end, by the clock on the wall."""
    memory_bytes: Bytes = Bytes(256_000_000)
    """Address space of each of its processes."""
    output_bytes: Bytes = Bytes(1_000_000)
    """What it may say, on both streams together."""
    files_bytes: Bytes = Bytes(0)
    """Room for files of its own, which are gone when it ends. 0: none."""
    files_max: int = FILES_MAX
    """How many files, directories and links it may have there."""
    processes: int = 1
    """1: it starts no other."""

    @property
    def cpu_s(self) -> int:
        """Whole seconds of work after which the kernel ends it, should its parent not live to do so."""
        return int(self.seconds) + 2


class Job(Struct, frozen=True, kw_only=True):
    """A program to be run in a box."""

    program: str
    """Absolute path."""
    arguments: tuple[str, ...] = ()
    bounds: SandboxLimits = SandboxLimits()
    readable: tuple[str, ...] = ()
    """Absolute paths that it may read, beside the program and the libraries of this machine."""
    only_libraries: bool = False
    """It needs nothing of this machine but shared libraries: no other program, no device, no list of processes."""
