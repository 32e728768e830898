"""Platforms: what differs between operating systems, and the error of features that one of them does not support."""

from __future__ import annotations

import os
import sys
from typing import ClassVar, Final

from pointsman.errors import OperatorError

INSTEAD: Final = "Run Pointsman on Linux or macOS, in WSL, or in a Linux container."
STARTS: Final = ("SYSTEMROOT",) if sys.platform == "win32" else ()
"""Environment variables without which Python does not start."""


class PlatformUnsupported(OperatorError):
    """A feature was used that does not exist on this operating system."""

    code: ClassVar[str] = "platform-unsupported"


def need_posix(feature: str, *, instead: str = INSTEAD) -> None:
    """Raise `PlatformUnsupported` on Windows. `feature` begins the sentence: "The server"."""
    if sys.platform == "win32":
        raise PlatformUnsupported(f"{feature} is not supported on Windows", hint=instead)


def least_environment() -> dict[str, str]:
    """Return the environment of a program that gets no variable it can do without; empty on POSIX."""
    return {name: os.environ[name] for name in STARTS if name in os.environ}


if sys.platform == "win32":
    import _winapi

    _NO_SUCH_PROCESS: Final = 87

    def process_exists(pid: int) -> bool:
        """Return whether a process of this machine runs. `os.kill(pid, 0)` would send it Ctrl-C."""
        try:
            process = _winapi.OpenProcess(_winapi.SYNCHRONIZE, False, pid)  # noqa: FBT003 - it has no names
        except OSError as why:
            return why.winerror != _NO_SUCH_PROCESS
        try:
            return _winapi.WaitForSingleObject(process, 0) == _winapi.WAIT_TIMEOUT
        finally:
            _winapi.CloseHandle(process)
else:

    def process_exists(pid: int) -> bool:
        """Return whether a process of this machine exists; one that has ended exists until it is reaped."""
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            return True
        return True
