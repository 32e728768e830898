"""HTTP tools of an installation: those of its settings and tool files, and the import of OpenAPI documents."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from pydantic import TypeAdapter, ValidationError

from pointsman.definition.reading.results import Unreadable
from pointsman.definition.reading.yaml_reader import read_yaml
from pointsman.json_meter import JsonUnreadable, TooMuchJson, decode_json
from pointsman.settings import HttpTools, Settings, SettingsInvalid
from pointsman.tools.http.openapi import BYTES_MAX, OpenApiImport, OpenApiUnreadable, read_openapi
from pointsman.tools.http.tool import HttpTool
from pointsman.values import Json

if TYPE_CHECKING:
    from pointsman.tools.egress.http_calls import Outgoing


def http_tools(settings: Settings) -> list[HttpTool]:
    """Return the HTTP tools of settings and tool files. Raises `SettingsInvalid` for an unusable tool file."""
    described = dict(settings.tools)
    for file in settings.tool_files:
        described |= _file(Path(file))

    def outgoing() -> Outgoing:
        return settings.http.outgoing()

    return [HttpTool(name, value, outgoing=outgoing, secrets=settings) for name, value in described.items()]


def tool_file(imported: OpenApiImport) -> str:
    """Return the content of a file under `tool_files`."""
    return json.dumps({"tools": imported.tools}, indent=2, ensure_ascii=False)


def _file(path: Path) -> HttpTools:
    try:
        read = msgspec.json.decode(path.read_bytes())
        return TypeAdapter(HttpTools).validate_python(read["tools"])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError) as why:
        raise SettingsInvalid(
            f"the tool file {str(path)!r} cannot be read: {why}", hint="Create one with `pointsman tools import`."
        ) from None
    except ValidationError as why:
        first = why.errors()[0]
        at = ".".join(str(part) for part in first["loc"])
        raise SettingsInvalid(f"{at} in the tool file {str(path)!r}: {first['msg']}", hint="Correct it.") from None


async def import_openapi(settings: Settings, source: str, *, server: str = "", prefix: str = "") -> OpenApiImport:
    """Return the tools of an OpenAPI document: a file, or a URL.

    Raises `OpenApiUnreadable` and the errors of `Outgoing.send`.
    """
    is_address = source.startswith(("http://", "https://"))
    data = await fetched_document(settings, source) if is_address else await asyncio.to_thread(_local, Path(source))
    if len(data) > BYTES_MAX:
        raise OpenApiUnreadable(
            f"the document has more than {BYTES_MAX} bytes", hint="Reduce it to the operations that you need."
        )
    return await asyncio.to_thread(read_document, data, source if is_address else "", server, prefix)


def read_document(data: bytes, source: str = "", server: str = "", prefix: str = "") -> OpenApiImport:
    """Return the tools of the text of a document, JSON or YAML. See `read_openapi`."""
    return read_openapi(_document(data), source=source, server=server, prefix=prefix)


async def fetched_document(settings: Settings, address: str) -> bytes:
    """Return what an address answers. Raises `OpenApiUnreadable` and the errors of `Outgoing.send`."""
    from pointsman.tools.egress.http_calls import HttpCall  # Loads an HTTP client.

    answer = await settings.http.outgoing().send(HttpCall(method="GET", url=address))
    if answer.status != 200:
        raise OpenApiUnreadable(
            f"{address!r} answered {answer.status}", hint="Open the address in a browser to check it."
        )
    return answer.body


def _local(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(BYTES_MAX + 1)
    except OSError as why:
        raise OpenApiUnreadable(
            f"{str(path)!r} cannot be read: {why.strerror}", hint="Use the name of a file or a URL."
        ) from None


def _document(data: bytes) -> Json:
    try:
        return decode_json(data)
    except TooMuchJson as why:
        raise OpenApiUnreadable(f"the document {why}", hint="Reduce it to the operations that you need.") from None
    except JsonUnreadable:
        pass
    try:
        return read_yaml(data.decode()).value
    except (Unreadable, UnicodeDecodeError) as why:
        raise OpenApiUnreadable(f"the document is neither JSON nor YAML: {why}", hint="Repair it.") from None
