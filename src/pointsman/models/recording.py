"""Recorded answers of real models: a file for each test, which replays without keys and connections.

    record: request ─▶ provider ─▶ reply ─▶ secrets masked ─▶ file
    replay: request ─▶ the next recorded reply to an equal request ─▶ reply

Requests are compared without what changes from run to run: model, prompts, messages, tools and schema count.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypedDict, cast

import msgspec

from pointsman.engine.failures import Failure
from pointsman.models.failures import ModelFailed
from pointsman.ports import ModelReply, ModelRequest, TextCallback
from pointsman.values import Json, JsonObject

MISSING: Final = "recording-missing"
UNRECORDED: Final = frozenset({"key", "warnings"})
"""Fields of a reply that belong to the machine that recorded it."""


class RecordedCall(TypedDict):
    """One call of a model in the file."""

    request: Json
    reply: JsonObject


class ModelRecording:
    """The recorded calls of one file. Each replays once, in order; the last one of equal requests repeats."""

    def __init__(self, path: Path, *, records: bool, redact: Callable[[Json], Json]) -> None:
        """`records`: call the models, and write the file on `close`; otherwise only replay it. `redact` masks secrets
        in requests and replies."""
        self.records = records
        self._path = path
        self._redact = redact
        exists = path.exists() and not records
        self._calls: list[RecordedCall] = msgspec.json.decode(path.read_bytes()) if exists else []
        self._waiting = [*self._calls]

    async def answer(
        self,
        model: str,
        request: ModelRequest,
        call: Callable[[], Awaitable[ModelReply]],
        callback: TextCallback | None,
    ) -> ModelReply:
        """Return the recorded reply, or record that of `call`. Raises `ModelFailed` (`recording-missing`)."""
        asked = self._redact(_comparable(model, request))
        if self.records:
            reply = await call()
            written = cast("JsonObject", msgspec.to_builtins(reply))
            kept: JsonObject = {name: value for name, value in written.items() if name not in UNRECORDED}
            self._calls.append({"request": asked, "reply": cast("JsonObject", self._redact(kept))})
            return reply
        found = self._next(asked)
        if found is None:
            message = f"{self._path} has no recorded answer of {model!r} for this request"
            hint = "Record it: pytest --record-models, with the key of the provider."
            raise ModelFailed(Failure(code=MISSING, message=message, hint=hint))
        reply = msgspec.convert(found["reply"], ModelReply)
        if callback is not None and reply.text:
            callback(reply.text)
        return reply

    def _next(self, asked: Json) -> RecordedCall | None:
        equal = [one for one in self._waiting if one["request"] == asked]
        if equal:
            self._waiting.remove(equal[0])
            return equal[0]
        return next((call for call in reversed(self._calls) if call["request"] == asked), None)

    def close(self) -> None:
        """Write the file, if anything was recorded."""
        if self.records and self._calls:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_bytes(msgspec.json.format(msgspec.json.encode(self._calls), indent=2) + b"\n")


def _comparable(model: str, request: ModelRequest) -> JsonObject:
    fields: JsonObject = {
        "model": model,
        "system": request.system,
        "messages": [*request.messages],
        "tools": [tool.name for tool in request.tools],
        "outputSchema": request.output_schema,
        "temperature": request.temperature,
        "maxTokens": request.max_tokens,
    }
    return msgspec.json.decode(msgspec.json.encode({name: value for name, value in fields.items() if value}))
