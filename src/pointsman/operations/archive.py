"""File format of exports: JSON Lines, one record per line, verifiable without a store.

    {"pointsman": "export", "format": 1, "executions": [id, …]}       the execution first, then its sub-workflows
    {"blob": digest, "text": …} or {"blob": digest, "base64": …}      definitions, scripts
    {"execution", "seq", "at", "shape", "events", "hash"}             a row; its hash chains it to the row before it
    {"execution", "attempt", "number", "value"}                       the answer of an effect
    {"execution", "scope", "key", "value"}                            memory that belongs to this execution only
    {"execution", "file", "bytes", "sha256", "text" or "base64"}      a file; without content if it was left out
    {"end": lines, "hash": …}                                         SHA-256 of all bytes before this line

hash of a row = SHA-256(hash of the row before it, seq, at, shape, 0, text of its events); of row 0: of the id.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import ClassVar, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw, Struct

from pointsman.context import AppContext
from pointsman.errors import CallerError
from pointsman.settings import Settings
from pointsman.store.codec import first_hash, row_hash
from pointsman.store.compression import Form
from pointsman.tools.files import ArtifactFolder, names_in
from pointsman.tools.tool import ToolFailed
from pointsman.values import ExecutionId, Json
from pointsman.workflows.sources import FileUnreadable

FORMAT: Final = 1
WITH_FILES: Final = 2
"""Format of exports with files: a version without support for them must not import the execution without them."""
LINE_BYTES_MAX: Final = 512 * 1024 * 1024
"""Bound of a line, which is held in memory as a whole; no real row is as long."""
EXECUTIONS_MAX: Final = 100_000


class ImportRefused(CallerError):
    """The file is not an export, or was altered."""

    code: ClassVar[str] = "import-refused"


class HeaderLine(Struct, frozen=True, forbid_unknown_fields=True):
    pointsman: str
    format: int
    executions: tuple[str, ...]


class BlobLine(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    blob: str
    text: str | None = None
    base64: str | None = None


class RowLine(Struct, frozen=True, forbid_unknown_fields=True):
    execution: str
    seq: int
    at: float
    shape: int
    events: Raw
    """The encoded row: its events and its cause; in old files a list of its events."""
    hash: str


class EffectLine(Struct, frozen=True, forbid_unknown_fields=True):
    execution: str
    attempt: str
    number: int
    value: Json


class MemoryLine(Struct, frozen=True, forbid_unknown_fields=True):
    execution: str
    scope: str
    key: str
    value: Json
    changed: float = 0.0
    expires: float | None = None


class FileLine(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    execution: str
    file: str
    bytes: int
    sha256: str
    text: str | None = None
    base64: str | None = None
    """Neither `text` nor `base64`: the content was left out."""


class EndLine(Struct, frozen=True, forbid_unknown_fields=True):
    end: int
    hash: str


Line: TypeAlias = HeaderLine | BlobLine | RowLine | EffectLine | MemoryLine | FileLine
KINDS: Final[dict[str, type[Line | EndLine]]] = {
    "pointsman": HeaderLine,
    "blob": BlobLine,
    "seq": RowLine,
    "attempt": EffectLine,
    "scope": MemoryLine,
    "file": FileLine,
    "end": EndLine,
}
"""Member that identifies the kind of a line."""


class Chains:
    """Hash chains of the rows, by execution."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, bytes]] = {}

    def next(self, execution: str, seq: int, at: float, shape: int, events: bytes) -> str:
        """Return the hash of the next row. Raises `ImportRefused` if `seq` does not follow the row before."""
        last, before = self._last.get(execution) or (0, first_hash(ExecutionId(execution)))
        if seq != last + 1:
            raise ImportRefused(f"row {seq} of {execution!r} does not follow row {last}", hint=DAMAGED)
        hashed = row_hash(before, seq, at, shape, Form.PLAIN, events)
        self._last[execution] = seq, hashed
        return hashed.hex()


DAMAGED: Final = "Export it again: the file was changed or truncated."


class Tally:
    """Line count and hash of all bytes."""

    def __init__(self) -> None:
        self.lines = 0
        self._digest = hashlib.sha256()

    def add(self, line: bytes) -> bytes:
        self.lines += 1
        self._digest.update(line)
        return line

    @property
    def end(self) -> EndLine:
        return EndLine(self.lines, self._digest.hexdigest())


def line_of(value: Line | EndLine) -> bytes:
    return msgspec.json.encode(value) + b"\n"


def blob_line(digest: bytes, content: bytes) -> BlobLine:
    text, packed = _packed(content)
    return BlobLine(digest.hex(), text=text, base64=packed)


def file_line(execution: str, path: str, content: bytes) -> FileLine:
    text, packed = _packed(content)
    return FileLine(execution, path, len(content), hashlib.sha256(content).hexdigest(), text=text, base64=packed)


def _packed(content: bytes) -> tuple[str | None, str | None]:
    """Return the content as text, or in base64 if it is not UTF-8."""
    try:
        return content.decode(), None
    except UnicodeDecodeError:
        return None, base64.b64encode(content).decode()


def content_of(line: BlobLine) -> bytes:
    """Return the bytes of a blob. Raises `ImportRefused` if they do not match its digest."""
    return _unpacked(line.text, line.base64, line.blob, f"the blob {line.blob[:12]!r}")


def file_content(line: FileLine) -> bytes | None:
    """Return the bytes of a file; None if they were left out. Raises `ImportRefused` if they do not
    match their hash."""
    if line.text is None and line.base64 is None:
        return None
    return _unpacked(line.text, line.base64, line.sha256, f"the file {line.file[:200]!r} of {line.execution!r}")


def _unpacked(text: str | None, packed: str | None, digest: str, what: str) -> bytes:
    try:
        content = text.encode() if text is not None else base64.b64decode(packed or "", validate=True)
    except ValueError as why:
        raise ImportRefused(f"{what} cannot be read: {why}", hint=DAMAGED) from why
    if hashlib.sha256(content).hexdigest() != digest:
        raise ImportRefused(f"{what} does not match the export", hint=DAMAGED)
    return content


def read_lines(path: Path) -> Iterator[Line]:
    """Yield every line but the last, verified: kinds, chains, contents, and at the end the whole file. Raises
    `ImportRefused`, `FileUnreadable`."""
    tally, chains, executions = Tally(), Chains(), frozenset[str]()
    for number, text in enumerate(_texts(path), start=1):
        line = _parsed(text, number)
        if isinstance(line, EndLine):
            if line != tally.end:
                raise ImportRefused("the file does not match the export", hint=DAMAGED)
            return
        tally.add(text)
        if (number == 1) != isinstance(line, HeaderLine):
            raise ImportRefused(f"line {number} does not belong there: this is not a complete export", hint=MADE_BY)
        if isinstance(line, HeaderLine):
            executions = _executions(line)
        elif not isinstance(line, BlobLine) and line.execution not in executions:
            raise ImportRefused(
                f"line {number} belongs to {line.execution[:60]!r}, which the export does not contain", hint=DAMAGED
            )
        if isinstance(line, RowLine) and line.hash != chains.next(
            line.execution, line.seq, line.at, line.shape, bytes(line.events)
        ):
            raise ImportRefused(f"row {line.seq} of {line.execution!r} does not match the export", hint=DAMAGED)
        yield line
    raise ImportRefused("the file is truncated", hint=DAMAGED)


MADE_BY: Final = "`pointsman export EXECUTION -o FILE` creates one."


def _texts(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while text := file.readline(LINE_BYTES_MAX):
                if len(text) == LINE_BYTES_MAX:
                    raise ImportRefused(f"a line is longer than {LINE_BYTES_MAX} bytes", hint=MADE_BY)
                yield text
    except OSError as why:
        raise FileUnreadable(f"{str(path)!r} cannot be read: {why.strerror}", hint=MADE_BY) from None


def _parsed(text: bytes, number: int) -> Line | EndLine:
    try:
        members = msgspec.json.decode(text, type=dict[str, Raw])
        kind = next(kind for member, kind in KINDS.items() if member in members)
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, StopIteration) as why:
        reason = str(why) or "its kind is unknown"
        raise ImportRefused(f"line {number} cannot be read: {reason[:200]}", hint=MADE_BY) from None


def _executions(header: HeaderLine) -> frozenset[str]:
    if header.pointsman != "export":
        raise ImportRefused("this is not an export of an execution", hint=MADE_BY)
    if header.format not in (FORMAT, WITH_FILES):
        raise ImportRefused(
            f"the export has format {header.format}, not {FORMAT} or {WITH_FILES}", hint="Upgrade Pointsman."
        )
    if not 0 < len(set(header.executions)) == len(header.executions) <= EXECUTIONS_MAX:
        raise ImportRefused("the export names no executions, too many, or one of them twice", hint=DAMAGED)
    return frozenset(header.executions)


FILE_BYTES_MAX: Final = 10_000_000
"""Maximum size of one exported file."""
FILES_BYTES_MAX: Final = 200_000_000
"""Maximum size of all files of one export together."""


class ArchivedFile(NamedTuple):
    """A file of an exported execution."""

    execution: ExecutionId
    path: str
    bytes: int
    goes: bool
    """Whether the content is exported; otherwise only path, size and hash are."""


async def archived_files(app: AppContext, members: Iterable[ExecutionId]) -> list[ArchivedFile]:
    """Return the files of these executions, each marked with whether the limits leave room for it."""
    if app.settings.files is None:
        return []
    files, room = list[ArchivedFile](), FILES_BYTES_MAX
    most = min(FILE_BYTES_MAX, app.settings.files.file_bytes_max)
    for member in members:
        for file in await asyncio.to_thread(ArtifactFolder(app.settings.files, member).files):
            goes = file.size <= min(most, room)
            room -= file.size if goes else 0
            files.append(ArchivedFile(member, file.path, file.size, goes))
    return files


async def file_lines(app: AppContext, files: Iterable[ArchivedFile]) -> AsyncIterator[FileLine]:
    """Yield a line for each file that still exists."""
    assert app.settings.files is not None, "somebody keeps files"
    for file in files:
        folder = ArtifactFolder(app.settings.files, file.execution)
        try:
            if file.goes:
                line = file_line(file.execution, file.path, await asyncio.to_thread(folder.read, file.path))
            else:
                line = FileLine(file.execution, file.path, *await asyncio.to_thread(folder.measured, file.path))
        except ToolFailed as why:
            if why.failure.code == "file-missing":
                continue
            raise
        yield line


Sizes = dict[str, dict[str, int]]
"""Execution -> path -> bytes."""


def learn_file(sizes: Sizes, line: FileLine) -> None:
    """Check a file line of an import, and record its size, before anything is written. Raises `ImportRefused`."""
    content, of = file_content(line), sizes.setdefault(line.execution, {})
    try:
        names_in(line.file)
    except ToolFailed as why:
        raise ImportRefused(f"a file of {line.execution!r} cannot be stored: {why}", hint=DAMAGED) from why
    if line.file in of:
        raise ImportRefused(f"the file {line.file[:200]!r} of {line.execution!r} occurs twice", hint=DAMAGED)
    if content is not None:
        of[line.file] = len(content)


async def must_have_room(settings: Settings, sizes: Sizes, new: Mapping[str, ExecutionId]) -> None:
    """Raise `ImportRefused` if the files cannot be stored here."""
    for execution, files in sizes.items():
        if not files:
            continue
        for path in files:
            inside = next((one for one in map(str, PurePosixPath(path).parents) if one in files), None)
            if inside is not None:
                raise ImportRefused(f"{path[:200]!r} is inside {inside[:200]!r}, which is a file", hint=DAMAGED)
        if settings.files is None:
            hint = 'Set a directory in pointsman.toml: [files] directory = "…".'
            raise ImportRefused(
                f"{execution!r} has {len(files)} files, but no directory for files is configured", hint=hint
            )
        bounds = settings.files
        if (
            len(files) > bounds.files_max
            or max(files.values()) > bounds.file_bytes_max
            or sum(files.values()) > bounds.bytes_max
        ):
            raise ImportRefused(
                f"the files of {execution!r} exceed the limits of this installation",
                hint=f"{len(files)} files, {sum(files.values())} bytes, the largest {max(files.values())}: "
                "raise files_max, bytes_max or file_bytes_max under [files].",
            )
        name = new[execution]
        if await asyncio.to_thread(ArtifactFolder(bounds, name).files):
            hint = "Import it under a new id: --new-id."
            raise ImportRefused(f"the directory already contains files of {name!r}", hint=hint)


async def bring_file(settings: Settings, execution: ExecutionId, line: FileLine) -> None:
    """Write the file, if its content was exported."""
    content = file_content(line)
    if content is not None:
        assert settings.files is not None, "there is room"
        await asyncio.to_thread(ArtifactFolder(settings.files, execution).write, line.file, content)
