"""The scripted model as an in-process provider: Chat Completions in JSON and SSE, without a socket.

Scripted runs use the real client with its parsing and streaming, like runs with a paid model. Imported at the first
call, because it requires the HTTP library.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Final

import httpx2

from pointsman.models.script import Fail, Hints, ScriptedAnswer
from pointsman.models.scripted import CALLING_RUN, HINTS_HEADER, ScriptedModel, ScriptedReply, Sleep, read_request
from pointsman.models.transcript import as_text
from pointsman.values import Json, JsonObject

NAME: Final = "scripted"
"""Name of the model in its responses."""

_WORDS_PER_CHUNK: Final = 4


class ScriptedTransport(httpx2.AsyncBaseTransport):
    """Answers each request from the script. `sleep` waits for the delays of the script."""

    def __init__(self, model: ScriptedModel, *, sleep: Sleep) -> None:
        self._model = model
        self._sleep = sleep

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body: JsonObject = json.loads(await request.aread())
        hints: Hints = json.loads(request.headers.get(HINTS_HEADER, "{}"))
        asked = read_request(body)
        answer = await self._model.choose(hints, asked.last, CALLING_RUN.get())
        if answer.delay_s:
            await self._sleep(answer.delay_s)
        if answer.fail is not None:
            return _failure(answer.fail, request)
        said = self._model.say(answer, hints, asked)
        if body.get("stream") is True:
            return httpx2.Response(
                200, headers={"content-type": "text/event-stream"}, stream=_Stream(self._events(said, answer))
            )
        return httpx2.Response(200, json=_completion(said))

    async def _events(self, said: ScriptedReply, answer: ScriptedAnswer) -> AsyncIterator[bytes]:
        """Yield the answer as server-sent events, a few words at a time."""
        for delta in _deltas(said):
            if answer.token_delay_s:
                await self._sleep(answer.token_delay_s)
            yield _event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        yield _event({"choices": [{"index": 0, "delta": {}, "finish_reason": _finish(said)}]})
        yield _event({"choices": [], "usage": _usage(said)})
        yield b"data: [DONE]\n\n"


def _failure(fail: Fail, request: httpx2.Request) -> httpx2.Response:
    match fail.how:
        case "timeout":
            raise httpx2.ReadTimeout(fail.message, request=request)
        case "connection":
            raise httpx2.ConnectError(fail.message, request=request)
        case _:
            headers = {} if fail.retry_after_s is None else {"retry-after": f"{fail.retry_after_s:g}"}
            return httpx2.Response(fail.status or 500, headers=headers, json={"error": {"message": fail.message}})


def _completion(said: ScriptedReply) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": said.text or None}
    if said.calls:
        message["tool_calls"] = _wire_calls(said)
    return {
        **_envelope("chat.completion"),
        "choices": [{"index": 0, "message": message, "finish_reason": _finish(said)}],
        "usage": _usage(said),
    }


class _Stream(httpx2.AsyncByteStream):
    """Stream that can be read once: reading it again at its end returns nothing, as with a socket."""

    def __init__(self, events: AsyncIterator[bytes]) -> None:
        self._events = events

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._events


def _deltas(said: ScriptedReply) -> Iterator[JsonObject]:
    words = said.text.split(" ")
    for at in range(0, len(words) if said.text else 0, _WORDS_PER_CHUNK):
        more = at + _WORDS_PER_CHUNK < len(words)
        yield {"role": "assistant", "content": " ".join(words[at : at + _WORDS_PER_CHUNK]) + (" " if more else "")}
    for index, call in enumerate(_wire_calls(said)):
        assert isinstance(call, dict)
        yield {"role": "assistant", "tool_calls": [{"index": index, **call}]}


def _wire_calls(said: ScriptedReply) -> list[Json]:
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": as_text(call.arguments)},
        }
        for call in said.calls
    ]


def _event(part: JsonObject) -> bytes:
    return b"data: " + json.dumps({**_envelope("chat.completion.chunk"), **part}).encode() + b"\n\n"


def _envelope(kind: str) -> JsonObject:
    return {"id": "scripted", "object": kind, "created": 0, "model": NAME}


def _finish(said: ScriptedReply) -> str:
    return "tool_calls" if said.calls else "stop"


def _usage(said: ScriptedReply) -> JsonObject:
    prompt, completion = said.usage.input_tokens, said.usage.output_tokens
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
