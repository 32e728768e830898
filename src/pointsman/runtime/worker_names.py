"""Worker names: identify the runtime of a process that drives an execution, and whether that process is gone.

A name is `host/process/start/number`. Process ids are reused, so a name also holds the process's start time (in clock
ticks since boot, where the system reports it). `number` separates runtimes of one process. Only processes of this
machine can be checked; those of other machines count as alive.
"""

from __future__ import annotations

import os
import socket
from itertools import count
from pathlib import Path
from typing import Final

_LIVE: Final[set[str]] = set()
"""The names of the open runtimes of this process."""
_NUMBERS: Final = count(1)
_STATE, _STARTED = 0, 19
"""Positions in `/proc/PID/stat` after the program name."""


def open_worker() -> str:
    """Return the name of a new runtime in this process."""
    pid = os.getpid()
    name = f"{socket.gethostname()}/{pid}/{_started(pid) or ''}/{next(_NUMBERS)}"
    _LIVE.add(name)
    return name


def close_worker(name: str) -> None:
    """Mark a runtime as closed; it drives nothing any more."""
    _LIVE.discard(name)


def is_gone(name: str) -> bool:
    """Return whether the runtime with this name is known to have ended."""
    host, _, rest = name.partition("/")
    pid, _, rest = rest.partition("/")
    if host != socket.gethostname() or not pid.isdigit():
        return False
    if _started(int(pid)) != rest.partition("/")[0]:
        return True
    return int(pid) == os.getpid() and name not in _LIVE


def _started(pid: int) -> str | None:
    """Return when a process of this machine started, empty if the system does not report it; None: no such process."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "" if _is_there(pid) else None
    fields = told.rpartition(")")[2].split()
    return None if fields[_STATE] in ("Z", "X") else fields[_STARTED]


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
