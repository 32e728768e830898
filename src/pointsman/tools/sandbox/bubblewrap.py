"""Sandbox made by bubblewrap: an empty root with bind mounts, and its own namespaces.

A shell sets the resource limits, opens the filter and is then replaced; bubblewrap starts with an empty environment,
because a program can read the environment of its first process.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pointsman.tools.sandbox.limits import FILES_OPEN_MAX, Job
from pointsman.tools.sandbox.seccomp import Machine, filter_for

NOBODY: Final = "65534"
WORK: Final = "/tmp"
"""Private directory for files; the sandbox has its own."""
ENVIRONMENT: Final[Mapping[str, str]] = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": WORK,
    "TMPDIR": WORK,
    "LANG": "C.UTF-8",
}
"""The complete environment of a program in a sandbox."""

LIBRARIES: Final = ("/lib", "/lib64", "/lib32", "/usr/lib", "/usr/lib64", "/usr/libexec", "/etc/ld.so.cache")
SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/etc/ld.so.cache", "/etc/alternatives")

START: Final = (
    "ulimit -c 0; ulimit -v $1; ulimit -t $2; ulimit -n $3; ulimit -f $4; exec 9<$5; shift 5; "
    'cd / && unset PWD OLDPWD && exec "$@"'
)
MAKE_ROOM: Final = (
    'o=$1; d=$2; shift 2; mount -t tmpfs -o "$o" none "$d" 2>/dev/null'
    ' || { echo "box: no file system can be mounted for its files" >&2; exit 126; }; exec "$@"'
)
"""Run in a separate namespace around the sandbox: bubblewrap cannot limit the number of files of a file system."""
HOLD_PROCESSES: Final = 'n=$1; shift; { ulimit -u $n || ulimit -p $n; } 2>/dev/null || exit 126; exec "$@"'
"""Run inside the sandbox, where only its own processes count. The name of the option depends on the shell."""


class Bubblewrap:
    """Bubblewrap sandbox, made by `find_sandbox`."""

    name = "bubblewrap"
    complaints = (b"bwrap: ", b"box: ", b"unshare: ")

    def __init__(self, program: str, machine: Machine) -> None:
        self._program = program
        self._filters = Filters(machine)

    def lacks(self, job: Job) -> str:
        """Return which program of util-linux is missing for private files (`unshare`, `mount`); empty: none."""
        missing = [name for name in ("unshare", "mount") if job.bounds.files_bytes and shutil.which(name) is None]
        return f"room for files: `{missing[0]}` of util-linux is not installed" if missing else ""

    def user(self, job: Job) -> int | None:
        """Return user `nobody` if root must limit processes: the kernel does not count root's. None: present user."""
        assert sys.platform == "linux"  # `find_sandbox` refuses other systems.
        return int(NOBODY) if job.bounds.processes > 1 and os.geteuid() == 0 else None

    def command_line(self, job: Job) -> list[str]:
        """Return the command line, for an empty environment."""
        bounds = job.bounds
        kilobytes = max(1, bounds.memory_bytes // 1024)
        blocks = -(-bounds.files_bytes // 512)
        limits = [str(number) for number in (kilobytes, bounds.cpu_s, FILES_OPEN_MAX, blocks)]
        program = [job.program, *job.arguments]
        if bounds.processes > 1:
            program = ["/bin/sh", "-c", HOLD_PROCESSES, "box", str(bounds.processes), *program]
        filter_file = self._filters.file(may_start=bounds.processes > 1)
        work = self._filters.work()
        box = [self._program, *_arguments(job, work), "--", *program]
        if bounds.files_bytes:
            options = f"size={bounds.files_bytes},nr_inodes={bounds.files_max + 1},mode=0700,nosuid,nodev"
            box = ["unshare", "-U", "-r", "-m", "--", "/bin/sh", "-c", MAKE_ROOM, "box", options, work, *box]
        return ["/bin/sh", "-c", START, "box", *limits, filter_file, *box]


class Filters:
    """Seccomp filters as files, written on first use, because a shell cannot build them."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._directory: Path | None = None

    def work(self) -> str:
        """Return an empty directory, over which each sandbox mounts its files."""
        path = self._made() / "work"
        path.mkdir(mode=0o755, exist_ok=True)
        return str(path)

    def _made(self) -> Path:
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="pointsman-box-"))
            self._directory.chmod(0o755)  # Programs may run as another user.
            weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)
        return self._directory

    def file(self, *, may_start: bool) -> str:
        path = self._made() / ("many" if may_start else "one")
        if not path.exists():
            path.write_bytes(filter_for(self._machine, may_start=may_start, among_others=False))
        return str(path)


def _arguments(job: Job, work: str) -> Iterator[str]:
    yield from ("--unshare-user", "--unshare-all", "--uid", NOBODY, "--gid", NOBODY, "--hostname", "box")
    yield from ("--cap-drop", "ALL", "--new-session", "--die-with-parent", "--seccomp", "9", "--clearenv")
    for name, value in ENVIRONMENT.items():
        yield from ("--setenv", name, value)
    if job.bounds.files_bytes:
        yield from ("--bind", work, WORK)
    for path in LIBRARIES if job.only_libraries else SYSTEM:
        yield from ("--ro-bind-try", path, path)
    for path in (job.program, *job.readable):
        yield from ("--ro-bind", path, path)
    if not job.only_libraries:
        # Root could change kernel settings through /proc, whatever user id it has in the sandbox.
        yield from ("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--remount-ro", "/dev")
    yield from ("--chdir", WORK if job.bounds.files_bytes else "/", "--remount-ro", "/")
