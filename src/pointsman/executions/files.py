"""Files of executions: those that an execution keeps, and those that are part of its input."""

from __future__ import annotations

import asyncio
import base64
import mimetypes
from collections.abc import Mapping
from contextlib import suppress
from typing import ClassVar, Final, NamedTuple

from pointsman.auth.subjects import InputInvalid
from pointsman.context import AppContext
from pointsman.errors import CallerError
from pointsman.executions.views import ArtifactView
from pointsman.settings import Settings
from pointsman.tools.tool import ToolFailed
from pointsman.values import Json, JsonObject

FILE_BYTES_MAX: Final = 20_000_000
"""Limit for all files of one input together, in bytes: models accept no more."""
PLAIN: Final = "application/octet-stream"


class NoSuchArtifact(CallerError):
    """The execution keeps no file of that name."""

    code: ClassVar[str] = "no-such-artifact"


class FilesTooLarge(CallerError):
    """The files of an input are larger than models accept."""

    code: ClassVar[str] = "files-too-large"


class UploadedFile(NamedTuple):
    """A file as the caller sent it."""

    content: bytes
    media_type: str
    name: str


async def artifact(app: AppContext, execution: str, path: str) -> bytes:
    """Return a file that an execution keeps. Raises `NoSuchArtifact`."""
    if app.settings.files is not None:
        with suppress(ToolFailed):  # Missing, a link, or outside the directory: callers do not learn which.
            return await read_artifact(app.settings, execution, path)
    raise NoSuchArtifact(
        f"{execution!r} has no artifact {path[:200]!r}", hint="GET the execution: `artifacts` lists its files."
    )


async def read_artifact(settings: Settings, execution: str, path: str) -> bytes:
    """Return one file of an execution; `settings` must name a directory of files. Raises `ToolFailed`."""
    assert settings.files is not None
    from pointsman.tools.files import ArtifactFolder  # Deferred: most installations keep no files.

    return await asyncio.to_thread(ArtifactFolder(settings.files, execution).read, path)


def media_type_of(path: str) -> str:
    """Guess the media type from the file name."""
    return mimetypes.guess_type(path, strict=False)[0] or PLAIN


def input_with_files(given: Json, files: Mapping[str, list[UploadedFile]]) -> JsonObject:
    """Return the input with each file in the field it was sent for: `{data, mediaType, name}`, or a list of them if
    there are several.

    Raises `InputInvalid`, `FilesTooLarge`.
    """
    found = {} if given is None else given
    if not isinstance(found, dict):
        raise InputInvalid("an input with files must be an object", hint='Use {"field": value}.')
    size = sum(len(one.content) for several in files.values() for one in several)
    if size > FILE_BYTES_MAX:
        raise FilesTooLarge(f"the files have {size} bytes", hint=f"At most {FILE_BYTES_MAX} bytes together.")
    twice = sorted(files.keys() & found.keys())
    if twice:
        raise InputInvalid(f"{twice[0]!r} is given twice: as a file, and in `input`", hint="Keep one of them.")
    return found | {field: _as_value(several) for field, several in files.items()}


def _as_value(files: list[UploadedFile]) -> Json:
    values: list[Json] = [
        {
            "data": base64.b64encode(one.content).decode(),
            "mediaType": one.media_type or media_type_of(one.name),
            "name": one.name,
        }
        for one in files
    ]
    return values[0] if len(values) == 1 else values


async def artifacts_of(settings: Settings, execution: str) -> list[ArtifactView]:
    """Return [{"path", "bytes"}] sorted by name; empty if this installation keeps no files."""
    if settings.files is None:
        return []
    from pointsman.tools.files import ArtifactFolder  # Deferred: most installations keep no files.

    found = await asyncio.to_thread(ArtifactFolder(settings.files, execution).files)
    return [{"path": file.path, "bytes": file.size} for file in found]


async def delete_artifacts(settings: Settings, execution: str) -> None:
    """Delete all files of an execution for good."""
    if settings.files is not None:
        from pointsman.tools.files import ArtifactFolder  # As above.

        await asyncio.to_thread(ArtifactFolder(settings.files, execution).remove)


async def copy_artifacts(settings: Settings, origin: str, execution: str) -> None:
    """Copy all files of an execution to another one. Raises `ToolFailed`."""
    if settings.files is not None:
        from pointsman.tools.files import ArtifactFolder  # As above.

        await asyncio.to_thread(
            ArtifactFolder(settings.files, execution).take_over, ArtifactFolder(settings.files, origin)
        )
