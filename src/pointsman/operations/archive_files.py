"""Files of executions in exports: selection for export, verification and import."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from pointsman.context import AppContext
from pointsman.operations.archive import DAMAGED, FileLine, ImportRefused, file_content, file_line
from pointsman.settings import Settings
from pointsman.tools.failures import ToolFailed
from pointsman.tools.files.directory import Jail, names_in
from pointsman.values import ExecutionId

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


async def kept_by(app: AppContext, members: Iterable[ExecutionId]) -> list[ArchivedFile]:
    """Return the files of these executions, each marked with whether the limits leave room for it."""
    if app.settings.files is None:
        return []
    found, room = list[ArchivedFile](), FILES_BYTES_MAX
    most = min(FILE_BYTES_MAX, app.settings.files.file_bytes_max)
    for member in members:
        for file in await asyncio.to_thread(Jail(app.settings.files, member).files):
            goes = file.size <= min(most, room)
            room -= file.size if goes else 0
            found.append(ArchivedFile(member, file.path, file.size, goes))
    return found


async def file_lines(app: AppContext, kept: Iterable[ArchivedFile]) -> AsyncIterator[FileLine]:
    """Yield a line for each file that still exists."""
    assert app.settings.files is not None, "somebody keeps files"
    for one in kept:
        jail = Jail(app.settings.files, one.execution)
        try:
            if one.goes:
                line = file_line(one.execution, one.path, await asyncio.to_thread(jail.read, one.path))
            else:
                line = FileLine(one.execution, one.path, *await asyncio.to_thread(jail.measured, one.path))
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
        raise ImportRefused(f"a file of {line.execution!r} cannot be kept: {why}", hint=DAMAGED) from why
    if line.file in of:
        raise ImportRefused(f"the file {line.file[:200]!r} of {line.execution!r} is there twice", hint=DAMAGED)
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
                raise ImportRefused(f"{path[:200]!r} is inside of {inside[:200]!r}, which is a file", hint=DAMAGED)
        if settings.files is None:
            hint = 'Name one in pointsman.toml: [files] directory = "…".'
            raise ImportRefused(f"{execution!r} has {len(files)} files, and there is no directory for them", hint=hint)
        bounds = settings.files
        if (
            len(files) > bounds.files_max
            or max(files.values()) > bounds.file_bytes_max
            or sum(files.values()) > bounds.bytes_max
        ):
            raise ImportRefused(
                f"the files of {execution!r} are more or larger than may be kept here",
                hint=f"{len(files)} files, {sum(files.values())} bytes, the largest {max(files.values())}: "
                "raise files_max, bytes_max or file_bytes_max under [files].",
            )
        name = new[execution]
        if await asyncio.to_thread(Jail(bounds, name).files):
            hint = "Give the copy a name of its own: --new-id."
            raise ImportRefused(f"there are files of {name!r} in the directory already", hint=hint)


async def bring_file(settings: Settings, execution: ExecutionId, line: FileLine) -> None:
    """Write the file, if its content was exported."""
    content = file_content(line)
    if content is not None:
        assert settings.files is not None, "there is room"
        await asyncio.to_thread(Jail(settings.files, execution).write, line.file, content)
