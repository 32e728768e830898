"""Attachments for a model: files from the data of an execution, from its kept files, or fetched through the egress
transport; never from elsewhere on this machine.

    "https://…"  |  "data:image/png;base64,…"  |  {url}  |  {data: base64, mediaType}  |  {path}      lists of them, too
    {fileName, fileType, content, pageImages}: an upload whose text, or whose pages as images, were extracted before;
                                               images are text in base64, data URLs or {base64}
    {fileName, fileType, base64}: an upload with its bytes
"""

from __future__ import annotations

import base64
import binascii
import mimetypes
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import unquote_to_bytes, urlsplit

from pointsman.engine.failures import Failure
from pointsman.errors import PointsmanError
from pointsman.executors.failures import WorkRefused
from pointsman.expressions.operators import type_name
from pointsman.models.transcript import content_of, text_of
from pointsman.redaction import head
from pointsman.tools.tool import ToolFailed
from pointsman.values import Bytes, Json, JsonObject

BYTES_MAX: Final = Bytes(20_000_000)
"""Limit for all files of one attempt together: providers refuse more."""

_TEXTUAL: Final = ("text/", "application/json", "application/xml", "application/yaml")
_KNOWN: Final = (*_TEXTUAL, "image/", "audio/", "video/", "application/pdf")


_JPEG: Final = "/9j/"
"""The first base64 characters of every JPEG image."""


class Fetched(NamedTuple):
    status: int
    media_type: str
    body: bytes


Fetch: TypeAlias = Callable[[str], Awaitable[Fetched]]
"""Gets a file by its address. Raises a `PointsmanError` if that is refused or fails."""


FileReader: TypeAlias = Callable[[str, str], Awaitable[bytes]]
"""Reads a file that an execution keeps, by its path. Raises `ToolFailed`."""


class AttachmentSources(NamedTuple):
    """Sources of files; None: files of that kind are not available."""

    fetch: Fetch | None = None
    keep: FileReader | None = None
    execution: str = ""


NO_FILES: Final = AttachmentSources()


FORMS_HINT: Final = (
    "A file is an address, a data URL, {url}, {data: base64, mediaType}, {path} of a kept file, or an upload "
    "{fileName, fileType, content}."
)


async def with_files(message: Json, files: Json, sources: AttachmentSources) -> Json:
    """Return the message with files as parts of its content. Raises `WorkRefused`."""
    parts: list[Json] = [{"type": "text", "text": content_of(message)}]
    total = 0
    for value in _each(files):
        media_type, body = await _read(value, sources)
        total += len(body)
        if total > BYTES_MAX:
            raise _refused(
                "file-too-large", f"the files have more than {BYTES_MAX} bytes", "Attach less, or smaller ones."
            )
        parts.append(_part(media_type, body))
    role: JsonObject = message if isinstance(message, dict) else {"role": "user"}
    return message if len(parts) == 1 else {**role, "content": parts}


def _each(files: Json) -> Iterator[Json]:
    for file in files if isinstance(files, list) else [files]:
        if isinstance(file, list):
            yield from _each(file)
        elif isinstance(file, dict) and (
            "pageImages" in file or ({"content", "base64"} & {*file} and {"fileName", "fileType"} & {*file})
        ):
            yield from _uploaded(file)
        elif file is not None:
            yield file


def _uploaded(upload: JsonObject) -> Iterator[Json]:
    """Yield the parts of an upload: its content, then its pages. Raises `WorkRefused` if it has neither."""
    name, kind, content = text_of(upload.get("fileName")), text_of(upload.get("fileType")), upload.get("content")
    is_uploaded = False
    if isinstance(data := upload.get("base64"), str) and data.strip():
        is_uploaded = True
        yield data if data.startswith("data:") else {"data": data, "mediaType": kind}
        content = None  # It is the text, or the bytes once more.
    if isinstance(content, str) and content.strip():
        is_uploaded = True
        if content.startswith("data:"):
            yield content
        elif kind.startswith(("image/", "audio/", "video/")):
            yield {"data": content, "mediaType": kind}
        else:
            text = f"{name}:\n\n{content}" if name else content
            yield {"data": base64.b64encode(text.encode()).decode("ascii"), "mediaType": "text/plain"}
    pages = upload.get("pageImages")
    for page in pages if isinstance(pages, list) else [pages] if pages else []:
        is_uploaded = True
        if isinstance(page, dict) and isinstance(data := page.get("base64"), str):
            page = data
        if isinstance(page, str) and not page.startswith(("data:", "http://", "https://")):
            yield {"data": page, "mediaType": "image/jpeg" if page.startswith(_JPEG) else "image/png"}
        else:
            yield page
    if not is_uploaded:
        message = f"the file {name or 'without a name'!r} has neither content nor pages"
        raise _refused("file-unreadable", message, "Give its text as `content`, or its pages as `pageImages`.")


async def _read(value: Json, sources: AttachmentSources) -> tuple[str, bytes]:
    match value:
        case str() if value.startswith("data:"):
            return _embedded(value)
        case str() | {"url": str()}:
            return await _fetched(value if isinstance(value, str) else text_of(value["url"]), sources.fetch)
        case {"data": str(data), "mediaType": str(media_type)}:
            return media_type, _decoded(data)
        case {"path": str(path)}:
            return await _read_file(path, sources)
        case _:
            if isinstance(value, dict):
                keys = ", ".join(map(repr, sorted(value)))
                what = head(f"an object with the keys {keys}", 200) if keys else "an empty object"
            else:
                what = f"a value of the type {type_name(value)!r}"
            raise _refused("file-unreadable", f"{what} cannot be attached as a file", FORMS_HINT)


def _embedded(url: str) -> tuple[str, bytes]:
    head, comma, data = url.removeprefix("data:").partition(",")
    if not comma:
        raise _refused(
            "file-unreadable", "a data URL has no comma, so it has no data", "Write data:image/png;base64,…."
        )
    media_type = head.partition(";")[0] or "text/plain"
    return media_type, _decoded(data) if head.endswith(";base64") else unquote_to_bytes(data)


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as why:
        raise _refused("file-unreadable", f"the data of a file are not base64: {why}", "Encode it as base64.") from None


async def _read_file(path: str, sources: AttachmentSources) -> tuple[str, bytes]:
    if sources.keep is None:
        hint = "The operator says where executions keep files: [files] directory."
        raise _refused(
            "file-unreadable", f"{head(path, 100)!r} is not available: no directory for files is configured", hint
        )
    try:
        body = await sources.keep(sources.execution, path)
    except ToolFailed as why:
        raise WorkRefused(why.failure) from why
    return mimetypes.guess_type(path)[0] or ("text/plain" if _is_text(body) else ""), body


def _is_text(body: bytes) -> bool:
    try:
        return "\0" not in body.decode()
    except UnicodeDecodeError:
        return False


async def _fetched(url: str, fetch: Fetch | None) -> tuple[str, bytes]:
    if urlsplit(url).scheme not in ("http", "https"):
        raise _refused(
            "file-unreadable",
            f"{head(url, 100)!r} cannot be attached as a file: it is not an address that begins with http:// or https://",
            f"{FORMS_HINT} A path of this machine cannot be attached; a text belongs in the prompt.",
        )
    if fetch is None:
        raise _refused("file-not-fetched", "fetching files is disabled here", "Attach it as a data URL.")
    try:
        status, media_type, body = await fetch(url)
    except PointsmanError as why:
        raise _refused("file-not-fetched", f"{head(url, 200)!r} could not be fetched: {why}", why.hint) from why
    if not 200 <= status < 300:
        raise _refused(
            "file-not-fetched", f"{head(url, 200)!r} answered {status}", "Correct the address.", again=status >= 500
        )
    guessed = mimetypes.guess_type(urlsplit(url).path)[0]
    declared_type = media_type.partition(";")[0].strip().lower()
    return (
        declared_type if declared_type and declared_type != "application/octet-stream" else guessed or declared_type,
        body,
    )


def _part(media_type: str, body: bytes) -> JsonObject:
    if not media_type.startswith(_KNOWN):
        hint = "Models take images, audio, video, PDF and text."
        raise _refused("file-unreadable", f"a file of the type {media_type or 'unknown'!r} cannot be attached", hint)
    if media_type.startswith(_TEXTUAL):
        return {"type": "text", "text": body.decode("utf-8", errors="replace")}
    return {"type": "file", "mediaType": media_type, "data": base64.b64encode(body).decode("ascii")}


def _refused(code: str, message: str, hint: str, *, again: bool = False) -> WorkRefused:
    return WorkRefused(Failure(code=code, message=message, hint=hint, retryable=again))
