"""Exclusive locks of files between processes, on POSIX and on Windows. The end of a process releases its locks."""

from __future__ import annotations

import os
import sys
from typing import Final

LOCK_OFFSET: Final = 2**30
"""On Windows a lock covers a range of bytes, which other processes cannot read: this one is behind the content."""
OPEN_FLAGS: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Flags for files of this program: not inherited by child processes, without conversion of line ends."""
NO_SYMLINK: Final = getattr(os, "O_NOFOLLOW", 0)
"""Do not follow a symbolic link, where the system can refuse that."""

if sys.platform == "win32":
    import msvcrt

    def lock_file(file: int) -> bool:
        """Lock an open file without waiting. False: another process holds its lock."""
        position = os.lseek(file, 0, os.SEEK_CUR)
        os.lseek(file, LOCK_OFFSET, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(file, position, os.SEEK_SET)
        return True

    def write_at_start(file: int, data: bytes) -> None:
        """Replace the first bytes of an open file."""
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, data)

    def sync_directory(directory: str | os.PathLike[str]) -> None:
        """Write a directory to disk: Windows does that with the file, and opens no directory."""
else:
    import fcntl

    def lock_file(file: int) -> bool:
        """Lock an open file without waiting. False: another process holds its lock."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def write_at_start(file: int, data: bytes) -> None:
        """Replace the first bytes of an open file."""
        os.pwrite(file, data, 0)

    def sync_directory(directory: str | os.PathLike[str]) -> None:
        """Write a directory to disk, so that the names of its files survive a power failure."""
        folder = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
