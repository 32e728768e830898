"""A disk that records the order of operations: writes, truncations, deletions and syncs of SQLite, and
acknowledgements.

SQLite works through a table of functions per file. This module wraps the functions that change files, in the library
that Python's sqlite3 uses; each records its arguments and then calls the original. From the record, the disk after a
power cut at any moment can be constructed, as often as needed:

    write ─ write ─ sync ─ write ─ "row 7 is durable" ─ write ─╳   synced data is there; of the rest, any part
"""

from __future__ import annotations

import _sqlite3
import ctypes
import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final, TypeAlias

from tests.reliability.findings import NotHere

SECTOR: Final = 512
"""A disk writes this many bytes atomically; SQLite assumes no more."""
WRITE_REFUSED: Final = 778
"""`SQLITE_IOERR_WRITE`: SQLite's code for the system errors `EROFS` and `EIO`."""


@dataclass(frozen=True, slots=True)
class Written:
    file: str
    at: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncated:
    file: str
    size: int


@dataclass(frozen=True, slots=True)
class Synced:
    file: str


@dataclass(frozen=True, slots=True)
class Deleted:
    file: str


@dataclass(frozen=True, slots=True)
class Said:
    """An acknowledgement: a caller learned that this is durable."""

    what: str


Deed: TypeAlias = Written | Truncated | Synced | Deleted | Said
Function: TypeAlias = Callable[..., int]

_OPEN: Final = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p
)
"""Names are pointers: SQLite keeps them, and stores more behind their ends."""
_DELETE: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
_CLOSE: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_WRITE: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64)
_TRUNCATE: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64)
_SYNC: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


class _Vfs(ctypes.Structure):
    """The struct `sqlite3_vfs`, as it begins in every version since 3.7.6."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("size_of_file", ctypes.c_int),
        ("path_max", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("open", ctypes.c_void_p),
        ("delete", ctypes.c_void_p),
        ("others", ctypes.c_void_p * 14),
    )


class _Methods(ctypes.Structure):
    """The struct `sqlite3_io_methods`, version 3."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("close", ctypes.c_void_p),
        ("read", ctypes.c_void_p),
        ("write", ctypes.c_void_p),
        ("truncate", ctypes.c_void_p),
        ("sync", ctypes.c_void_p),
        ("others", ctypes.c_void_p * 13),
    )


def _library() -> Any:
    """Return the SQLite library of this Python, and not another one of the machine."""
    place = getattr(_sqlite3, "__file__", None)
    library = ctypes.CDLL(place)
    try:
        library.sqlite3_vfs_find.restype = ctypes.c_void_p
        library.sqlite3_libversion.restype = ctypes.c_char_p
    except AttributeError as why:
        raise NotHere("the SQLite inside this Python hides its functions") from why
    if library.sqlite3_libversion().decode() != sqlite3.sqlite_version:
        raise NotHere("the SQLite inside this Python cannot be told from another one")
    return library


class RecordingDisk:
    """The record, and the functions that fill it. While it is registered, all files that SQLite opens are recorded."""

    def __init__(self) -> None:
        self.deeds: list[Deed] = []
        self.room: int | None = None
        """No file may grow beyond this many bytes: the disk is full. None: there is space."""
        self.refuses = False
        """Refuse all writes: the disk is read-only or broken."""
        self._library = _library()
        self._real: Any = _Vfs.from_address(self._library.sqlite3_vfs_find(None))
        self._vfs = _Vfs()
        ctypes.pointer(self._vfs)[0] = self._real
        self._vfs.name = b"recording"
        self._open, self._delete = _OPEN(self._opened), _DELETE(self._deleted)
        self._vfs.open = ctypes.cast(self._open, ctypes.c_void_p).value
        self._vfs.delete = ctypes.cast(self._delete, ctypes.c_void_p).value
        self._names: dict[int, str] = {}
        self._tables: dict[int, tuple[_Methods, int]] = {}
        """Address of the original functions of a kind of file -> the wrapping functions."""
        self._methods: dict[int, Any] = {}
        """File -> the original functions."""
        self._ours: list[object] = [
            _CLOSE(self._closed),
            _WRITE(self._wrote),
            _TRUNCATE(self._cut),
            _SYNC(self._synced),
        ]

    def say(self, what: str) -> None:
        """Record an acknowledgement."""
        self.deeds.append(Said(what))

    @contextmanager
    def registered(self) -> Generator[RecordingDisk, None, None]:
        """Record every SQLite connection that is opened in this block; close all of them before it ends."""
        self._library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1)
        try:
            yield self
        finally:
            self._library.sqlite3_vfs_unregister(ctypes.byref(self._vfs))

    # Called by SQLite ----------------------------------------------------------------------------------------------

    def _opened(self, _: int, name: int | None, file: int, flags: int, out: int) -> int:
        code = _OPEN(self._real.open)(ctypes.addressof(self._real), name, file, flags, out)
        real = ctypes.c_void_p.from_address(file).value
        if code == 0 and real is not None and name is not None:
            self._names[file] = _file_at(name)
            self._methods[file] = _Methods.from_address(real)
            ctypes.c_void_p.from_address(file).value = self._table_for(real)
        return code

    def _table_for(self, real: int) -> int:
        if real not in self._tables:
            ours = _Methods()
            ctypes.memmove(ctypes.byref(ours), real, ctypes.sizeof(_Methods))
            for field, function in zip(("close", "write", "truncate", "sync"), self._ours, strict=True):
                setattr(ours, field, ctypes.cast(function, ctypes.c_void_p).value)  # pyright: ignore[reportArgumentType] - ctypes does not say that functions are pointers
            self._tables[real] = ours, ctypes.addressof(ours)
        return self._tables[real][1]

    def _wrote(self, file: int, data: int, size: int, at: int) -> int:
        if self.refuses:
            return WRITE_REFUSED
        if self.room is not None and at + size > self.room:
            return sqlite3.SQLITE_FULL
        self.deeds.append(Written(self._names[file], at, ctypes.string_at(data, size)))
        return _WRITE(self._methods[file].write)(file, data, size, at)

    def _cut(self, file: int, size: int) -> int:
        self.deeds.append(Truncated(self._names[file], size))
        return _TRUNCATE(self._methods[file].truncate)(file, size)

    def _synced(self, file: int, flags: int) -> int:
        code = _SYNC(self._methods[file].sync)(file, flags)
        if code == 0:
            self.deeds.append(Synced(self._names[file]))
        return code

    def _closed(self, file: int) -> int:
        self._names.pop(file, None)
        return _CLOSE(self._methods.pop(file).close)(file)

    def _deleted(self, _: int, name: int, sync_directory: int) -> int:
        self.deeds.append(Deleted(_file_at(name)))
        return _DELETE(self._real.delete)(ctypes.addressof(self._real), name, sync_directory)


def _file_at(name: int) -> str:
    return Path(ctypes.string_at(name).decode()).name


def disk_after(deeds: list[Deed], random: Random) -> dict[str, bytes]:
    """Return the files as a power cut after these operations may leave them: all synced data, and any part of the
    rest."""
    safe: dict[str, bytearray] = {}
    loose: dict[str, list[Written | Truncated]] = {}
    for deed in deeds:
        match deed:
            case Written() | Truncated():
                loose.setdefault(deed.file, []).append(deed)
            case Synced():
                _apply(safe, deed.file, loose.pop(deed.file, []))
            case Deleted():
                loose.pop(deed.file, None)
                safe.pop(deed.file, None)
            case Said():
                pass
    for file, waiting in sorted(loose.items()):
        # Sometimes nothing or everything reaches the disk: a plain crash is a power cut too.
        share = random.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        _apply(safe, file, [part for deed in waiting for part in _sectors(deed) if random.random() < share])
    return {file: bytes(content) for file, content in safe.items()}


def _sectors(deed: Written | Truncated) -> list[Written | Truncated]:
    """Split a write into sectors, which reach the disk independently."""
    if isinstance(deed, Truncated):
        return [deed]
    parts: list[Written | Truncated] = []
    position = 0
    while position < len(deed.data):
        length = SECTOR - (deed.at + position) % SECTOR
        parts.append(Written(deed.file, deed.at + position, deed.data[position : position + length]))
        position += length
    return parts


def _apply(disk: dict[str, bytearray], file: str, deeds: list[Written | Truncated]) -> None:
    content = disk.setdefault(file, bytearray())
    for deed in deeds:
        if isinstance(deed, Truncated):
            del content[deed.size :]
            content.extend(bytes(max(0, deed.size - len(content))))
        else:
            content.extend(bytes(max(0, deed.at - len(content))))
            content[deed.at : deed.at + len(deed.data)] = deed.data
