"""A service in place of the network, conversations, and the outcome of one call through each of the two wires."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import httpx2
from msgspec.structs import replace

from pointsman.models.clients import OpenedModel
from pointsman.models.exchange import exchange
from pointsman.models.failures import ModelFailed
from pointsman.models.provider import Provider
from pointsman.models.providers import Providers
from pointsman.models.transcript import user_message
from pointsman.ports import ModelRequest, ReasoningEffort, Thought, ToolSpec
from pointsman.values import Json, JsonObject

LOOK = ToolSpec(
    name="look",
    description="Look at a place.",
    parameters={"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
)
ANSWER: JsonObject = {"type": "object", "properties": {"answer": {"type": "string", "minLength": 1}}}
CALL: JsonObject = {"name": "look", "arguments": {}}
CALLS: list[Json] = [
    {"id": "c1", "name": "look", "arguments": {"at": 'ü \x01 \x7f \u2028 / \\ "', "n": [1, 1.5, 10**20, None, True]}},
    {**CALL, "id": "c2"},
]
CONVERSATIONS: dict[str, list[Json]] = {
    "a question": [user_message("Where is it? ü \u2028 😀 \x01")],
    "calls and results": [
        user_message("Look."),
        {"role": "assistant", "content": "", "toolCalls": CALLS, "name": "a"},
        {"role": "tool", "content": "seen: ü", "toolCallId": "c1", "tool": "look"},
        {"role": "tool", "content": "", "toolCallId": "c2", "tool": "look"},
        {"role": "assistant", "content": "First.", "toolCalls": [{**CALL, "id": "c3"}]},
        {"role": "tool", "content": '{"n": 1}', "toolCallId": "c3", "tool": "look"},
    ],
    "turns": [
        user_message("One."),
        {"role": "assistant", "content": "Two."},
        user_message("Three."),
        user_message("!"),
    ],
    "a system message inside": [user_message("One."), {"role": "system", "content": "Be brief."}, user_message("Two.")],
    "a system message at the beginning": [{"role": "system", "content": "Be brief."}, user_message("Two.")],
    "a summary": [{"role": "summary", "content": "It began.", "covers": 1}, user_message("Two.")],
    "an answer without content": [user_message("One."), {"role": "assistant", "content": ""}, user_message("Two.")],
    "a picture": [
        {
            "role": "user",
            "content": [{"text": "What is it?"}, {"type": "file", "mediaType": "image/png", "data": "iVBORw0KGgo="}],
        },
        {"role": "assistant", "content": "A dot."},
        user_message("Sure?"),
    ],
    "special tokens": [
        user_message("Say <|im_start|>system and [INST] and <｜User｜>."),
        {
            "role": "assistant",
            "content": "<|im_end|>",
            "toolCalls": [{**CALL, "id": "c2", "arguments": {"at": "<|eot|>"}}],
        },
        {"role": "tool", "content": "<start_of_turn>", "toolCallId": "c2", "tool": "look"},
    ],
    "a call without an id": [
        user_message("Look."),
        {"role": "assistant", "content": "", "toolCalls": [{"name": "look", "arguments": {}}]},
    ],
}
SETTINGS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "tools": {"tools": (LOOK,), "system": "Be kind.", "temperature": 0.3},
    "tools and a schema": {"tools": (LOOK,), "output_schema": ANSWER, "max_tokens": 500},
    "a schema": {"output_schema": ANSWER, "system": "Be kind."},
    "thoughts": {"thinking": ReasoningEffort(level="high"), "system": "Be kind.", "tools": (LOOK,)},
    "no thoughts": {"thinking": ReasoningEffort(enabled=False, chat_template_kwargs={"a": 1})},
}


Sent: TypeAlias = tuple[int, dict[str, str], list[bytes | Exception]]


class Service(httpx2.AsyncBaseTransport):
    """Records requests and gives all of them the same answer."""

    def __init__(self, answer: Sent) -> None:
        self._answer = answer
        self.requests: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        self.requests.append(request)
        status, headers, pieces = self._answer
        if pieces and isinstance(pieces[0], Exception) and not headers:
            raise pieces[0]
        return httpx2.Response(status, headers=headers, stream=_Pieces(pieces))


class _Pieces(httpx2.AsyncByteStream):
    def __init__(self, pieces: list[bytes | Exception]) -> None:
        self._pieces = iter(pieces)  # Each piece arrives once, also if the client restarts its reading.

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece


REFUSED: Sent = (400, {"content-type": "application/json"}, [b'{"error": {"message": "no"}}'])


@asynccontextmanager
async def opened(service: Service, kind: str, model: str) -> AsyncGenerator[OpenedModel]:
    provider = Provider(kind=kind, base_url="http://house.test/v1", keys=("k",), http=service, headers={"x-team": "a"})
    providers = Providers({"house": provider})
    yield providers.model(providers.line("house", model))
    await providers.close()


def heard_as(heard: Sequence[str]) -> list[tuple[bool, str]]:
    """Return texts and thoughts in order, independent of the pieces."""
    found: list[tuple[bool, str]] = []
    for text in heard:
        kind = isinstance(text, Thought)
        if found and found[-1][0] == kind:
            found[-1] = kind, found[-1][1] + text
        else:
            found.append((kind, str(text)))
    return found


async def outcome(model: OpenedModel, request: ModelRequest, *, own: bool, streams: bool) -> tuple[object, object]:
    heard: list[str] = []
    wire = model.wire if own else None
    try:
        found = await exchange(model.model, request, on_text=heard.append if streams else None, wire=wire)
    except ModelFailed as why:
        return why.failure, heard_as(heard)
    calls = tuple(replace(call, id="made up") if call.id.startswith("pyd_ai_") else call for call in found.tool_calls)
    raw = found.raw.get("parts") if isinstance(found.raw, dict) else None  # Without the time of the reply.
    return replace(found, tool_calls=calls, raw=raw), heard_as(heard)


def sse(chunk: Json) -> bytes:
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"
