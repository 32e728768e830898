"""Programs to run in a sandbox, their limits and results, and the settings of the sandbox."""

from __future__ import annotations

from typing import ClassVar, Final, Literal, TypeAlias

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field

from pointsman.definition.model.base import Duration, Size
from pointsman.errors import CallerError
from pointsman.values import Bytes, Seconds

Preference: TypeAlias = Literal["auto", "bubblewrap", "landlock"]
"""Kind of sandbox; `auto`: the first available one, in this order."""

FILES_OPEN_MAX: Final = 256
"""Maximum number of open files of a program."""

FILES_MAX: Final = 4096
"""Default maximum number of private files. Each takes some kB of kernel memory, even an empty one."""


class SandboxLimits(Struct, frozen=True, kw_only=True):
    """Limits of a program. The kernel enforces all except `seconds` and `output_bytes`, which the parent enforces."""

    seconds: Seconds = Seconds(30.0)
    """Wall-clock time from start to end."""
    memory_bytes: Bytes = Bytes(256_000_000)
    """Address space of each process."""
    output_bytes: Bytes = Bytes(1_000_000)
    """Output on both streams together."""
    files_bytes: Bytes = Bytes(0)
    """Space for private files, which are deleted when the program ends. 0: none."""
    files_max: int = FILES_MAX
    """Number of files, directories and links in that space."""
    processes: int = 1
    """Number of processes; 1: the program cannot start others."""

    @property
    def cpu_s(self) -> int:
        """CPU time in whole seconds after which the kernel kills the program, even if its parent no longer runs."""
        return int(self.seconds) + 2


class Job(Struct, frozen=True, kw_only=True):
    """A program to run in a sandbox."""

    program: str
    """Absolute path."""
    arguments: tuple[str, ...] = ()
    bounds: SandboxLimits = SandboxLimits()
    readable: tuple[str, ...] = ()
    """Absolute paths that it may read, besides the program and the system libraries."""
    only_libraries: bool = False
    """The program sees only shared libraries of the machine: no other programs, devices or process list."""


class ProcessResult(Struct, frozen=True, kw_only=True):
    """Exit code and output of a program."""

    code: int
    """0 to 255; negative: the number of the signal that ended the program."""
    output: bytes
    errors: bytes


class OutputTooLarge(CallerError):
    """Raised when a program exceeds its output limit; the program is killed."""

    code: ClassVar[str] = "output-too-large"


class SandboxSettings(BaseModel):
    """The kind of sandbox, and the limits of the code of code nodes."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    box: Preference = "auto"
    timeout: Duration = Duration(Seconds(10.0))
    """Time limit of one run of code."""
    memory: Size = Size(Bytes(128_000_000))
    result: Size = Size(Bytes(1_000_000))
    """Maximum size of the result of code."""
    at_once: int | None = Field(default=None, ge=1, le=1_000)
    """Maximum number of concurrent runs of code. Absent: one for each processor."""
