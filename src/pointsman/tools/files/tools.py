"""`read_file`, `write_file`, `list_files`: files of an execution."""

from __future__ import annotations

import asyncio
import base64
import binascii
import threading
from typing import Final, Literal

from pointsman.engine.failures import Failure
from pointsman.ports import ToolSpec
from pointsman.tools.failures import ToolFailed
from pointsman.tools.files.config import FileSettings
from pointsman.tools.files.directory import Jail
from pointsman.tools.tool import ToolContext, ToolLimits
from pointsman.values import Bytes, Json, JsonObject

ESCAPED: Final = 6
"""Maximum number of JSON bytes for one byte of a file."""
_PATH: Final[JsonObject] = {"type": "string", "minLength": 1, "maxLength": 3000}
_ABOUT: Final[dict[str, tuple[str, JsonObject]]] = {
    "read_file": (
        "Read a file of this execution, as text, or as base64 where it is none.",
        {"properties": {"path": _PATH}, "required": ["path"]},
    ),
    "write_file": (
        "Write a file of this execution, from text or base64. What was there is replaced.",
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
        jail = Jail(self._settings, context.execution)
        path = str(arguments.get("path", ""))
        match self._does:
            case "read_file":
                return _shown(path, await asyncio.to_thread(jail.read, path))
            case "write_file":
                data = _data(arguments)
                await asyncio.to_thread(_write, jail, path, data)
                return {"path": path, "bytes": len(data)}
            case "list_files":
                return [{"path": file.path, "bytes": file.size} for file in await asyncio.to_thread(jail.files)]


def _write(jail: Jail, path: str, data: bytes) -> None:
    with _writing:
        jail.write(path, data)


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
        failure = Failure(code="tool-arguments", message=f"what to write is neither text nor base64: {why}")
        raise ToolFailed(failure) from why
