"""Files of executions, and the tools `read_file`, `write_file` and `list_files`.

    [files]
    directory = "/var/lib/pointsman/files"

Paths are walked name by name from an open directory, without following links:

    root ─ open ─▶ execution ─ openat ─▶ directory ─ openat ─▶ … ─▶ file: regular, with a single hard link

The checked file is the opened one, so that nothing can be swapped between check and use. Writes are atomic: a file is
written under a temporary name and renamed.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import re
import secrets
import shutil
import stat
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from hashlib import file_digest, sha256
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from pointsman.engine.failures import Failure
from pointsman.file_locks import NO_SYMLINK, OPEN_FLAGS
from pointsman.platforms import need_posix
from pointsman.ports import ToolSpec
from pointsman.redaction import head
from pointsman.tools.tool import ToolContext, ToolFailed, ToolLimits
from pointsman.values import Bytes, Json, JsonObject


class FileSettings(BaseModel):
    """Without a directory there are no files."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    directory: str = Field(min_length=1)
    """Directory with one subdirectory for each execution."""
    file_bytes_max: int = Field(default=500_000, ge=1, le=10_000_000)
    bytes_max: int = Field(default=20_000_000, ge=1)
    """Maximum number of files of an execution."""
    files_max: int = Field(default=500, ge=1, le=100_000)
    """Maximum size of all files of an execution."""


PIECES_MAX: Final = 16
PIECE_BYTES_MAX: Final = 200
INSTEAD: Final = "Remove `files` from the settings, or run Pointsman on Linux or macOS, in WSL, or in a container."
UNFINISHED: Final = ".unfinished-"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}")
_ODD: Final = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
# Windows has none of these flags, and no files of executions.
_SAFE: Final = OPEN_FLAGS | NO_SYMLINK
_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _SAFE
_READ: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _SAFE
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE


class FileEntry(NamedTuple):
    """A file of an execution."""

    path: str
    size: int


class ArtifactFolder:
    """The directory of one execution, created with its first file."""

    def __init__(self, settings: FileSettings, execution: str) -> None:
        """Raises `PlatformUnsupported`."""
        need_posix("A directory for files of executions (`files`)", instead=INSTEAD)
        self._settings = settings
        # An id that is not a plain name is hashed, so that it is never used as a path.
        name = execution if _NAME.fullmatch(execution) else f"x-{sha256(execution.encode()).hexdigest()}"
        self._root = Path(settings.directory).expanduser().absolute()
        self._directory = self._root / name

    def read(self, path: str) -> bytes:
        """Return the content of a file. Raises `ToolFailed`."""
        with self._opened(path) as opened:
            data = opened.read(self._settings.file_bytes_max + 1)
        if len(data) > self._settings.file_bytes_max:
            raise _full(path, f"it has more than {self._settings.file_bytes_max} bytes")
        return data

    def write(self, path: str, data: bytes) -> None:
        """Write or replace a file atomically. Raises `ToolFailed`."""
        names_in(path)
        self._must_have_room(path, len(data))
        self._put(path, BytesIO(data))

    def measured(self, path: str) -> tuple[int, str]:
        """Return size in bytes and SHA-256 of a file of any size. Raises `ToolFailed`."""
        with self._opened(path) as opened:
            digest = file_digest(opened, sha256).hexdigest()
            return opened.tell(), digest

    def take_over(self, other: ArtifactFolder) -> None:
        """Copy all files of another execution, without checking the size limits again. Raises `ToolFailed`."""
        for file in other.files():
            with other._opened(file.path) as opened:
                self._put(file.path, opened)

    @contextmanager
    def _opened(self, path: str) -> Generator[BufferedReader]:
        """Open a regular file for reading."""
        pieces = names_in(path)
        with _os_errors(path), self._folder(pieces[:-1], make=False) as folder:
            file = os.open(pieces[-1], _READ, dir_fd=folder)
            with open(file, "rb") as opened:
                about = os.fstat(file)
                if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1:
                    raise _refused(path, "it is not a plain file")
                yield opened

    def _put(self, path: str, data: BufferedReader | BytesIO) -> None:
        pieces = names_in(path)
        with _os_errors(path), self._folder(pieces[:-1], make=True) as folder:
            self._replaceable(path, pieces[-1], folder)
            unfinished = f"{UNFINISHED}{secrets.token_hex(8)}"
            file = os.open(unfinished, _NEW, 0o600, dir_fd=folder)
            try:
                with open(file, "wb") as opened:
                    shutil.copyfileobj(data, opened)
                    opened.flush()
                    os.fsync(file)
                os.rename(unfinished, pieces[-1], src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(unfinished, dir_fd=folder)
                raise
            os.fsync(folder)

    def files(self) -> list[FileEntry]:
        """Return all regular files, sorted by path. Links and special files are left out."""
        with _os_errors(self._directory.name), suppress(FileNotFoundError), self._folder((), make=False) as folder:
            return sorted(_listed(folder, ""))
        return []

    def remove(self) -> None:
        """Delete all files. Links are removed, not followed. Raises `ToolFailed` if the system refuses."""
        with _os_errors(self._directory.name), suppress(FileNotFoundError):
            shutil.rmtree(self._directory)

    def _must_have_room(self, path: str, size: int) -> None:
        settings, there = self._settings, self.files()
        others = [file for file in there if file.path != path]
        if size > settings.file_bytes_max:
            raise _full(path, f"it has {size} bytes; {settings.file_bytes_max} is the most of one file")
        if len(others) >= settings.files_max:
            raise _full(path, f"there are {len(others)} files already, which is the maximum")
        if sum(file.size for file in others) + size > settings.bytes_max:
            raise _full(path, f"all files together would have more than {settings.bytes_max} bytes")

    def _replaceable(self, path: str, name: str, folder: int) -> None:
        try:
            about = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return
        if not stat.S_ISREG(about.st_mode):
            raise _refused(path, "something other than a plain file has this name")

    @contextmanager
    def _folder(self, pieces: tuple[str, ...], *, make: bool) -> Generator[int]:
        """Open the directory that contains a file."""
        if make:
            self._root.mkdir(parents=True, exist_ok=True)
            self._directory.mkdir(mode=0o700, exist_ok=True)
        folder = os.open(self._directory, _DIRECTORY)
        try:
            for piece in pieces:
                if make:
                    _make(piece, folder)
                inner = os.open(piece, _DIRECTORY, dir_fd=folder)
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)


def _make(piece: str, folder: int) -> None:
    with suppress(FileExistsError):  # If it is not a directory, opening it fails.
        os.mkdir(piece, 0o700, dir_fd=folder)


def _listed(folder: int, before: str, depth: int = 0) -> Iterator[FileEntry]:
    with os.scandir(folder) as entries:
        for entry in entries:
            about = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(about.st_mode) and about.st_nlink == 1 and not entry.name.startswith(UNFINISHED):
                yield FileEntry(before + entry.name, about.st_size)
            elif stat.S_ISDIR(about.st_mode) and depth < PIECES_MAX:
                inner = os.open(entry.name, _DIRECTORY, dir_fd=folder)
                try:
                    yield from _listed(inner, f"{before}{entry.name}/", depth + 1)
                finally:
                    os.close(inner)


def names_in(path: str) -> tuple[str, ...]:
    """Return the names in a path. Raises `ToolFailed` for an invalid name."""
    pieces = tuple(path.split("/"))
    if len(pieces) > PIECES_MAX:
        raise _refused(path, f"it is more than {PIECES_MAX} directories deep")
    for piece in pieces:
        if piece in ("", ".", "..") or _ODD.search(piece) or piece.startswith(UNFINISHED):
            raise _refused(path, f"{head(piece, 50)!r} is not a valid name")
        if len(piece.encode()) > PIECE_BYTES_MAX:
            raise _refused(path, f"a name is longer than {PIECE_BYTES_MAX} bytes")
    return pieces


@contextmanager
def _os_errors(path: str) -> Generator[None]:
    """Convert errors of the operating system to `ToolFailed`."""
    try:
        yield
    except FileNotFoundError as why:
        raise ToolFailed(
            Failure(
                code="file-missing",
                message=f"the file {head(path, 200)!r} does not exist",
                hint="`list_files` lists them.",
            )
        ) from why
    except OSError as why:
        raise _refused(path, os.strerror(why.errno or 0)) from why


def _refused(path: str, why: str) -> ToolFailed:
    hint = "Write a relative path such as notes/report.md."
    return ToolFailed(
        Failure(code="file-refused", message=f"the path {head(path, 200)!r} is refused: {why}", hint=hint)
    )


def _full(path: str, why: str) -> ToolFailed:
    return ToolFailed(Failure(code="file-quota", message=f"{head(path, 200)!r} cannot be written: {why}"))


ESCAPED: Final = 6
"""Maximum number of JSON bytes for one byte of a file."""
_PATH: Final[JsonObject] = {"type": "string", "minLength": 1, "maxLength": 3000}
_ABOUT: Final[dict[str, tuple[str, JsonObject]]] = {
    "read_file": (
        "Read a file of this execution, as text, or as base64 if it is binary.",
        {"properties": {"path": _PATH}, "required": ["path"]},
    ),
    "write_file": (
        "Write a file of this execution, from text or base64. An existing file is replaced.",
        {
            "properties": {"path": _PATH, "text": {"type": "string"}, "base64": {"type": "string"}},
            "oneOf": [{"required": ["path", "text"]}, {"required": ["path", "base64"]}],
        },
    ),
    "list_files": ("List the files of this execution.", {"properties": {}}),
}

FileToolName = Literal["read_file", "write_file", "list_files"]
_writing: Final = threading.Lock()
"""Held from the check of the limits until the file is written."""


class FileTool:
    """One of the three tools."""

    def __init__(self, name: FileToolName, settings: FileSettings) -> None:
        self.name = name
        self._does: FileToolName = name
        self._settings = settings
        self.limits = ToolLimits(output_bytes_max=Bytes(settings.file_bytes_max * ESCAPED + 500 * settings.files_max))
        description, parameters = _ABOUT[name]
        parameters = {"type": "object", "additionalProperties": False, **parameters}
        self.spec = ToolSpec(name=name, description=description, parameters=parameters, idempotent=True, keeps=True)

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Run the operation. Raises `ToolFailed`."""
        folder = ArtifactFolder(self._settings, context.execution)
        path = str(arguments.get("path", ""))
        match self._does:
            case "read_file":
                return _shown(path, await asyncio.to_thread(folder.read, path))
            case "write_file":
                data = _data(arguments)
                await asyncio.to_thread(_write, folder, path, data)
                return {"path": path, "bytes": len(data)}
            case "list_files":
                return [{"path": file.path, "bytes": file.size} for file in await asyncio.to_thread(folder.files)]


def _write(folder: ArtifactFolder, path: str, data: bytes) -> None:
    with _writing:
        folder.write(path, data)


def _shown(path: str, data: bytes) -> JsonObject:
    try:
        return {"path": path, "text": data.decode()}
    except UnicodeDecodeError:
        return {"path": path, "base64": base64.b64encode(data).decode()}


def _data(arguments: JsonObject) -> bytes:
    text = arguments.get("text")
    try:
        if isinstance(text, str):
            return text.encode()
        return base64.b64decode(str(arguments.get("base64")), validate=True)
    except (UnicodeEncodeError, binascii.Error, ValueError) as why:
        failure = Failure(code="tool-arguments", message=f"the content to write is neither text nor base64: {why}")
        raise ToolFailed(failure) from why
