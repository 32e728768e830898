"""The product's own OpenAI client sends and reads the same as pydantic-ai, and encodes each message once."""

from __future__ import annotations

import json
import random
from typing import Any

import httpx2
import pytest
from pydantic_ai._special_tokens import break_special_tokens

from bench.model_server import running
from pointsman import Pointsman, Workflow, tool
from pointsman.models import direct_wire
from pointsman.models import exchange as exchanges
from pointsman.models.openai_formats import SPECIAL_TOKEN, ChatFormat
from pointsman.models.transcript import user_message
from pointsman.models.wire_format import WireDialect
from pointsman.ports import EncodedMessages, ModelReply, ModelRequest
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject
from tests.models.wire_service import (
    ANSWER,
    CONVERSATIONS,
    LOOK,
    REFUSED,
    SETTINGS,
    Sent,
    Service,
    opened,
    outcome,
    sse,
)

CHAT_KINDS = ("openai-chat", "azure", "ollama", "vllm", "openrouter", "deepseek", "openai-compatible")
RESPONSES_KINDS = ("openai", "openai-compatible-responses")
MODELS = {
    "openai": ("small", "gpt-5", "gpt-4o"),
    "openai-chat": ("small", "gpt-5", "gpt-4o", "o3-mini"),
    "openrouter": ("openai/gpt-5", "anthropic/claude-sonnet-4"),
    "deepseek": ("deepseek-chat", "deepseek-reasoner"),
    "ollama": ("qwen3", "gpt-oss:20b"),
    "vllm": ("small", "Qwen/Qwen3-8B"),
}
NAMED = [(kind, model) for kind in (*CHAT_KINDS, *RESPONSES_KINDS) for model in MODELS.get(kind, ("small",))]

BY_CLIENT = ("a call without an id", "a system message at the beginning")
"""Conversations for which pydantic-ai's client may be necessary."""
FIRST_MODELS = [(kind, MODELS.get(kind, ("small",))[0]) for kind in (*CHAT_KINDS, "openai")]
CASES = dict.fromkeys(
    [
        *((kind, model, settings) for kind, model in FIRST_MODELS for settings in SETTINGS),
        *((kind, model, "thoughts") for kind, model in NAMED),
    ]
)


@pytest.mark.parametrize(("kind", "model", "settings"), CASES)
async def test_requests_are_those_of_pydantic_ai(kind: str, model: str, settings: str) -> None:
    service = Service(REFUSED)
    # Streamed or not, in turns: all pairs of kind, settings, conversation and streaming occur.
    turn = (*CHAT_KINDS, *RESPONSES_KINDS).index(kind) + [*SETTINGS].index(settings)
    async with opened(service, kind, model) as one:
        assert one.wire is not None
        for place, (name, messages) in enumerate(CONVERSATIONS.items()):
            streams = (turn + place) % 2 == 0
            request = ModelRequest(model="", messages=messages, encoded=EncodedMessages(), **SETTINGS[settings])
            outcomes = [await outcome(one, request, own=own, streams=streams) for own in (False, True, True)]
            assert outcomes[0] == outcomes[1] == outcomes[2], name
            if not service.requests:
                continue  # The client refused the settings.
            if name not in BY_CLIENT and not (kind == "vllm" and request.output_schema is not None):
                assert await one.wire.prepared(request, streams=streams) is not None, name
            theirs, ours, again = service.requests
            service.requests.clear()
            if name == "a call without an id":
                continue  # pydantic-ai generates one.
            assert ours.content == theirs.content == again.content, name
            assert (ours.method, ours.url, ours.headers) == (theirs.method, theirs.url, theirs.headers)
            assert ours.extensions == theirs.extensions


def whole(message: JsonObject, *, finish: str | None = "stop", **more: Json) -> list[bytes | Exception]:
    choice: JsonObject = {"index": 0, "message": {"role": "assistant", "content": None, **message}}
    body: JsonObject = {"id": "1", "object": "chat.completion", "created": 1, "model": "small-1"}
    return [json.dumps({**body, "choices": [{**choice, "finish_reason": finish}], **more}).encode()]


def events(*deltas: JsonObject, finish: str | None = "stop", done: bool = True, **last: Json) -> list[bytes]:
    head: JsonObject = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "small-1"}
    chunks: list[JsonObject] = [{**head, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    if finish is not None:
        chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if last:
        chunks.append({**head, "choices": [], **last})
    return [*(sse(chunk) for chunk in chunks), *([b"data: [DONE]\n\n"] if done else [])]


def call(arguments: Json, *, id: Json = "c1", name: Json = "look", index: Json = 0) -> JsonObject:
    return {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


USAGE: JsonObject = {
    "prompt_tokens": 100,
    "completion_tokens": 7,
    "total_tokens": 107,
    "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 3},
}
OTHER_USAGE: JsonObject = {**USAGE, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36}
MESSAGES: dict[str, list[bytes | Exception]] = {
    "text": whole({"content": "fine ü"}, usage=USAGE),
    "no usage": whole({"content": "fine"}),
    "usage of another form": whole({"content": "fine"}, usage=OTHER_USAGE),
    "usage of no form": whole({"content": "fine"}, usage={"prompt_tokens": "many"}),
    "calls": whole({"tool_calls": [call('{"at": "x"}'), call("", id="c2")]}, finish="tool_calls", usage=USAGE),
    "a call with wrong arguments": whole({"tool_calls": [call('{"at": "x",}')]}, finish="tool_calls"),
    "a call with a list": whole({"tool_calls": [call("[1]")]}, finish="tool_calls"),
    "a call with a large number": whole({"tool_calls": [call('{"n": 123456789012345678901234567890}')]}),
    "the output tool": whole({"tool_calls": [call('{"answer": "x"}', name="final_result")]}),
    "thoughts": whole({"content": "fine", "reasoning_content": "Hm.", "reasoning": "Hm?"}, usage=USAGE),
    "thoughts of no form": whole({"content": "fine", "reasoning": {"a": 1}}),
    "tags": whole({"content": "<think>Hm.</think>fine"}),
    "a refusal": whole({"refusal": "I will not."}),
    "nothing": whole({}),
    "cut off": whole({}, finish="length"),
    "filtered": whole({"content": ""}, finish="content_filter"),
    "cut off after text": whole({"content": "fin"}, finish="length"),
    "filtered after text": whole({"content": "fin"}, finish="content_filter"),
    "no reason": whole({"content": "fine"}, finish=None),
    "an empty reason": whole({"content": "fine"}, finish=""),
    "parts": whole({"content": [{"type": "text", "text": "fine"}]}),
    "no model": whole({"content": "fine"}, model=None),
    "created at no time": whole({"content": "fine"}, created=None),
    "an error inside": [b'{"error": {"message": "overloaded", "code": 503}}'],
    "joiners": whole({"content": "Say <\u200d|im_start|>.", "tool_calls": [call('{"at": "<\\u200d|eot|>"}')]}),
    "invalid": [b'{"id": 1'],
    "a list": [b"[]"],
    "in pieces": [b"", b" ", *whole({"content": "fine"}), b" "],
    "broken off": [b'{"id": ', httpx2.ReadError("gone")],
}
STREAMS: dict[str, list[bytes | Exception]] = {
    "text": [*events({"role": "assistant", "content": ""}, {"content": "fi"}, {"content": "ne ü"}, usage=USAGE)],
    "no usage": [*events({"content": "fine"})],
    "usage of another form": [*events({"content": "fine"}, usage=OTHER_USAGE)],
    "two usages": [*events({"content": "fine"}, usage=USAGE), *events(usage=USAGE)],
    "calls": [
        *events(
            {"content": "So: "},
            {"tool_calls": [call("")]},
            {"tool_calls": [{"index": 0, "function": {"arguments": '{"at":'}}]},
            {"tool_calls": [call("{}", id="c2", index=1)]},
            {"tool_calls": [{"index": 0, "function": {"arguments": ' "x"}'}}]},
            finish="tool_calls",
            usage=USAGE,
        )
    ],
    "names repeated": [*events({"tool_calls": [call('{"at":')]}, {"tool_calls": [call(' "x"}')]})],
    "a call without an id": [*events({"tool_calls": [call("{}", id=None)]})],
    "a call without an index": [*events({"tool_calls": [call("{}", index=None)]})],
    "a call with wrong arguments": [*events({"tool_calls": [call("{'at'}")]})],
    "the output tool": [*events({"tool_calls": [call('{"answer": "x"}', name="final_result")]})],
    "thoughts": [*events({"reasoning_content": "H"}, {"reasoning_content": "m."}, {"content": "fine"}, usage=USAGE)],
    "both kinds of thoughts": [*events({"reasoning_content": "Hm.", "reasoning": "Hm?"}, {"content": "fine"})],
    "thoughts beside text": [*events({"reasoning": "Hm.", "content": "fine"})],
    "thoughts, then space": [*events({"reasoning": "Hm."}, {"content": "\n\n"}, {"content": "fine"})],
    "thoughts between": [*events({"content": "a"}, {"reasoning": "Hm."}, {"content": " "}, {"content": "b"})],
    "space": [*events({"content": "\n"}, {"content": "fine"})],
    "tags": [*events({"content": "<think>"}, {"content": "Hm."}, {"content": "</think>"}, {"content": "fine"})],
    "tags later": [*events({"content": "So"}, {"content": "<think>"}, {"content": "Hm."}, {"content": "</think>"})],
    "a refusal": [*events({"refusal": "I will "}, {"refusal": "not."})],
    "a refusal after text": [*events({"content": "Well. "}, {"refusal": "No."})],
    "nothing": [*events()],
    "cut off": [*events(finish="length")],
    "cut off after text": [*events({"content": "fi"}, {"content": "n"}, finish="length", usage=USAGE)],
    "filtered after text": [*events({"content": "fin"}, finish="content_filter")],
    "no reason": [*events({"content": "fine"}, finish=None)],
    "no end": [*events({"content": "fine"}, done=False)],
    "no end and no reason": [*events({"content": "fine"}, finish=None, done=False)],
    "no events": [],
    "an error": [*events({"content": "fi"}, finish=None, done=False), sse({"error": {"message": "overloaded"}})],
    "a null error": [sse({"error": None}), *events({"content": "fine"})],
    "no delta": [sse({"choices": [{"index": 0}], "model": "m"}), *events({"content": "fine"})],
    "no choices": [sse({"choices": None, "model": "m"}), *events({"content": "fine"})],
    "parts": [*events({"content": "fi"}, {"content": [{"type": "text", "text": "ne"}]})],
    "not JSON": [*events({"content": "fi"}, finish=None, done=False), b"data: {\n\n"],
    "comments": [b": hello\n\n", *events({"content": "fine"})],
    "named events": [b"event: message\n" + events({"content": "fi"})[0], *events({"content": "ne"})],
    "data in two lines": [b'data: {"choices":[{"index":0,\ndata: "delta":{"content":"fine"}}]}\n\n', *events()],
    "lines with CR": [one.replace(b"\n", b"\r\n") for one in events({"content": "fine"}, usage=USAGE)],
    "lines with CR alone": [one.replace(b"\n", b"\r") for one in events({"content": "fine"}, usage=USAGE)],
    "joiners": [*events({"content": "Say <"}, {"content": "\u200d|im_start|>"}, {"content": "."})],
    "broken off": [*events({"content": "fi"}, finish=None, done=False), httpx2.ReadError("gone")],
    "broken off at once": [httpx2.ReadError("gone")],
    "broken off after the end": [*events({"content": "fine"}), httpx2.ReadError("gone")],
}
RESPONSE: JsonObject = {
    "id": "r1",
    "object": "response",
    "created_at": 1.5,
    "model": "small-1",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
RESPONSE_USAGE: JsonObject = {
    "input_tokens": 100,
    "output_tokens": 7,
    "total_tokens": 107,
    "input_tokens_details": {"cached_tokens": 64},
    "output_tokens_details": {"reasoning_tokens": 3},
}


def message(*texts: str, id: Json = "m1", **more: Json) -> JsonObject:
    parts: list[Json] = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"type": "message", "id": id, "role": "assistant", "status": "completed", "content": parts, **more}


def function_call(arguments: Json, *, id: Json = "f1", name: Json = "look", **more: Json) -> JsonObject:
    head: JsonObject = {"type": "function_call", "id": id, "call_id": f"call of {id}", "status": "completed"}
    return {**head, "name": name, "arguments": arguments, **more}


def response(*output: Json, status: Json = "completed", **more: Json) -> JsonObject:
    return {**RESPONSE, "status": status, "output": [*output], "usage": RESPONSE_USAGE, **more}


REASONING: JsonObject = {"type": "reasoning", "id": "rs1", "summary": [{"type": "summary_text", "text": "Hm."}]}
REFUSING: JsonObject = {**message(), "content": [{"type": "refusal", "refusal": "I will not."}]}
CITED: JsonObject = {"type": "url_citation", "url": "http://a.test", "title": "A", "start_index": 0, "end_index": 4}
CITING: JsonObject = {**message(), "content": [{"type": "output_text", "text": "fine", "annotations": [CITED]}]}
RESPONSES: dict[str, JsonObject] = {
    "text": response(message("fine ü")),
    "texts": response(message("fi", "ne"), message("!", id="m2")),
    "text and calls": response(message("So: "), function_call('{"at": "x"}'), function_call("", id="f2")),
    "the output tool": response(function_call('{"answer": "x"}', name="final_result")),
    "no usage": response(message("fine"), usage=None),
    "usage of another form": response(message("fine"), usage={**RESPONSE_USAGE, "cached_input_tokens": 64}),
    "writes to the cache": response(
        message("fine"), usage={**RESPONSE_USAGE, "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 2}}
    ),
    "a call with wrong arguments": response(function_call("{'at'}")),
    "a call with a list": response(function_call("[1]")),
    "a call of a namespace": response(function_call("{}", namespace="n")),
    "thoughts": response(REASONING, message("fine")),
    "signed thoughts": response({**REASONING, "encrypted_content": "abc"}, message("fine")),
    "a citation": response(CITING),
    "a phase": response(message("fine", phase="final_answer")),
    "a refusal": response(REFUSING),
    "a refusal after text": response(message("Well. "), REFUSING),
    "nothing": response(),
    "no text": response(message("")),
    "cut off": response(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
    "cut off after text": response(
        message("fin"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}
    ),
    "filtered after text": response(
        message("fin"), status="incomplete", incomplete_details={"reason": "content_filter"}
    ),
    "failed": response(status="failed", error={"code": "server_error", "message": "overloaded"}),
    "in the background": response(message("fine"), background=True),
    "in progress": response(message("fine"), status="in_progress"),
    "cancelled": response(message("fine"), status="cancelled"),
    "an unknown item": response(message("fine"), {"type": "rumination", "id": "x"}),
    "a search": response(
        {"type": "web_search_call", "id": "w1", "status": "completed", "action": {"type": "search", "query": "q"}},
        message("fine"),
    ),
    "no model": response(message("fine"), model=None),
    "joiners": response(message("Say <\u200d|im_start|>.")),
}
READ_HERE = ("text", "texts", "text and calls", "the output tool", "no usage", "writes to the cache", "a phase")
"""Responses that need no pydantic-ai."""


def named(*events: JsonObject) -> list[bytes | Exception]:
    numbered = ({"sequence_number": number, **one} for number, one in enumerate(events))
    return [f"event: {one['type']}\n".encode() + sse(one) for one in numbered]


def streamed(body: JsonObject) -> list[JsonObject]:
    """The events of a response, with two deltas for each text and each call."""
    created = {**body, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None, "error": None}
    found: list[JsonObject] = [{"type": "response.created", "response": created}]
    found.append({"type": "response.in_progress", "response": created})
    items = body["output"]
    assert isinstance(items, list)
    for index, item in enumerate(items):
        assert isinstance(item, dict)
        found += item_events(index, item)
    return [*found, {"type": f"response.{body['status']}", "response": body}]


def item_events(index: int, item: JsonObject) -> list[JsonObject]:
    content, arguments = item.get("content"), item.get("arguments")
    begun = {**item, **({"content": []} if "content" in item else {}), **({"arguments": ""} if arguments else {})}
    inner: list[JsonObject] = []
    for number, part in enumerate(content if isinstance(content, list) else []):
        assert isinstance(part, dict)
        kind = "refusal" if part["type"] == "refusal" else "text"
        said, name = str(part[kind]), "refusal" if kind == "refusal" else "output_text"
        place: JsonObject = {"item_id": item["id"], "output_index": index, "content_index": number}
        inner.append({"type": "response.content_part.added", **place, "part": {**part, kind: ""}})
        inner += [
            {"type": f"response.{name}.delta", **place, "delta": one, "logprobs": []} for one in (said[:2], said[2:])
        ]
        inner.append({"type": f"response.{name}.done", **place, kind: said, "logprobs": []})
        inner.append({"type": "response.content_part.done", **place, "part": part})
    if isinstance(arguments, str):
        place = {"item_id": item["id"], "output_index": index}
        kind = "response.function_call_arguments"
        inner += [{"type": f"{kind}.delta", **place, "delta": one} for one in (arguments[:3], arguments[3:])]
        inner.append({"type": f"{kind}.done", **place, "arguments": arguments, "name": item["name"]})
    return [
        {"type": "response.output_item.added", "output_index": index, "item": begun},
        *inner,
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def changed(events: list[JsonObject], kind: str, **members: Json) -> list[JsonObject]:
    """The events, with other members in those of a kind."""
    assert any(one["type"] == kind for one in events)
    return [{**one, **members} if one["type"] == kind else one for one in events]


TEXT_EVENTS = streamed(RESPONSES["text"])
CALL_EVENTS = streamed(RESPONSES["text and calls"])
RESPONSE_STREAMS: dict[str, list[bytes | Exception]] = {
    **{name: named(*streamed(body)) for name, body in RESPONSES.items() if name != "no model"},
    "no names": [sse(one) for one in TEXT_EVENTS],
    "a last line": [*named(*TEXT_EVENTS), b"data: [DONE]\n\n"],
    "lines with CR": [one.replace(b"\n", b"\r\n") for one in named(*TEXT_EVENTS) if isinstance(one, bytes)],
    "no beginning": named(*TEXT_EVENTS[1:]),
    "two beginnings": named(TEXT_EVENTS[0], *TEXT_EVENTS),
    "no end": named(*TEXT_EVENTS[:-1]),
    "something after the end": named(*TEXT_EVENTS, TEXT_EVENTS[4]),
    "broken off": [*named(*TEXT_EVENTS[:5]), httpx2.ReadError("gone")],
    "an error": [*named(*TEXT_EVENTS[:5], {"type": "error", "code": "x", "message": "overloaded", "param": None})],
    "an error of the wire": [*named(*TEXT_EVENTS[:5]), b'event: error\ndata: {"error": {"message": "overloaded"}}\n\n'],
    "an unknown event": named(*TEXT_EVENTS[:5], {"type": "response.mood", "mood": "good"}, *TEXT_EVENTS[5:]),
    "usage at the beginning": named(
        {**TEXT_EVENTS[0], "response": {**RESPONSES["text"], "status": "in_progress"}}, *TEXT_EVENTS[1:]
    ),
    "other text at the end": named(*changed(TEXT_EVENTS, "response.output_text.done", text="fine!")),
    "no deltas": named(*(one for one in TEXT_EVENTS if one["type"] != "response.output_text.delta")),
    "a null delta": named(*changed(TEXT_EVENTS, "response.output_text.delta", delta=None)),
    "other arguments at the end": named(
        *changed(CALL_EVENTS, "response.function_call_arguments.done", arguments='{"at": "y"}')
    ),
    "arguments only at the end": named(
        *(one for one in CALL_EVENTS if one["type"] != "response.function_call_arguments.delta")
    ),
    "a call without a beginning": named(*(one for one in CALL_EVENTS if one["type"] != "response.output_item.added")),
    "texts that take turns": named(
        *TEXT_EVENTS[:4],
        {"type": "response.output_text.delta", "item_id": "m2", "content_index": 0, "output_index": 1, "delta": "B"},
        *TEXT_EVENTS[4:],
    ),
}


STATUSES: dict[str, Sent] = {
    "limited": (429, {"content-type": "application/json", "retry-after": "45"}, [b'{"error": {"message": "slow"}}']),
    "unauthorized": (401, {"content-type": "application/json"}, [b'{"error": {"message": "no"}}']),
    "a gateway": (502, {"content-type": "text/html"}, [b"<html>Bad gateway</html>"]),
    "a redirect": (307, {"location": "https://other.test/v1"}, []),
    "a page": (200, {"content-type": "text/html"}, [b"<html>welcome</html>"]),
    "whole": (200, {"content-type": "application/json; charset=utf-8"}, [*MESSAGES["text"]]),
    "a stream": (200, {"content-type": "text/event-stream"}, [*STREAMS["text"]]),
    "unreachable": (0, {}, [httpx2.ConnectError("no route")]),
    "slow": (0, {}, [httpx2.ReadTimeout("slow")]),
}
KIND_READ = [("openai-chat", "small"), ("openrouter", "openai/gpt-4o")]


async def compared(service: Service, kind: str, model: str, *, streams: bool) -> tuple[object, object]:
    async with opened(service, kind, model) as one:
        request = ModelRequest(model="", messages=[user_message("hello")], tools=(LOOK,), output_schema=ANSWER)
        theirs = await outcome(one, request, own=False, streams=streams)
        ours = await outcome(one, request, own=True, streams=streams)
    assert ours == theirs
    return ours


@pytest.mark.parametrize(("kind", "model"), KIND_READ)
@pytest.mark.parametrize("name", MESSAGES)
async def test_replies_are_read_as_pydantic_ai_reads_them(kind: str, model: str, name: str) -> None:
    await compared(Service((200, {"content-type": "application/json"}, [*MESSAGES[name]])), kind, model, streams=False)


@pytest.mark.parametrize(("kind", "model"), KIND_READ)
@pytest.mark.parametrize("name", STREAMS)
async def test_streams_are_read_as_pydantic_ai_reads_them(kind: str, model: str, name: str) -> None:
    await compared(Service((200, {"content-type": "text/event-stream"}, STREAMS[name])), kind, model, streams=True)


@pytest.mark.parametrize("kind", RESPONSES_KINDS)
@pytest.mark.parametrize("name", RESPONSES)
async def test_responses_are_read_as_pydantic_ai_reads_them(kind: str, name: str) -> None:
    body: list[bytes | Exception] = [json.dumps(RESPONSES[name]).encode()]
    await compared(Service((200, {"content-type": "application/json"}, body)), kind, "small", streams=False)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("kind", RESPONSES_KINDS)
@pytest.mark.parametrize("name", RESPONSE_STREAMS)
async def test_streams_of_responses_are_read_as_pydantic_ai_reads_them(kind: str, name: str) -> None:
    sent: Sent = (200, {"content-type": "text/event-stream"}, RESPONSE_STREAMS[name])
    await compared(Service(sent), kind, "small", streams=True)


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("name", ["chat text", "chat calls", *READ_HERE])
async def test_plain_replies_are_not_left_to_pydantic_ai(
    name: str, monkeypatch: pytest.MonkeyPatch, *, streams: bool
) -> None:
    def refuse(*_: object) -> object:
        raise AssertionError(name)

    if name.startswith("chat "):
        kind, pieces = "openai-chat", (STREAMS if streams else MESSAGES)[name.removeprefix("chat ")]
    else:
        kind, pieces = "openai", RESPONSE_STREAMS[name] if streams else [json.dumps(RESPONSES[name]).encode()]
    type = "text/event-stream" if streams else "application/json"
    async with opened(Service((200, {"content-type": type}, [*pieces])), kind, "small") as one:
        monkeypatch.setattr(exchanges, "_by_client", refuse)
        request = ModelRequest(model="", messages=[user_message("hello")], tools=(LOOK,))
        reply, _ = await outcome(one, request, own=True, streams=streams)
    assert isinstance(reply, ModelReply)


@pytest.mark.parametrize(
    ("name", "cause"), [("cut off after text", "maxTokens"), ("filtered after text", "content filter")]
)
@pytest.mark.parametrize("streams", [False, True])
async def test_an_answer_that_ends_early_has_a_warning(name: str, cause: str, *, streams: bool) -> None:
    kind, pieces = ("text/event-stream", STREAMS[name]) if streams else ("application/json", MESSAGES[name])
    reply, _ = await compared(
        Service((200, {"content-type": kind}, [*pieces])), "openai-chat", "small", streams=streams
    )
    assert isinstance(reply, ModelReply)
    assert reply.text == "fin"
    (warning,) = reply.warnings
    assert cause in warning


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("name", STATUSES)
async def test_failures_are_those_of_pydantic_ai(name: str, *, streams: bool) -> None:
    await compared(Service(STATUSES[name]), "openai-chat", "small", streams=streams)


@pytest.mark.parametrize("seed", range(20))
async def test_streams_may_be_cut_anywhere(seed: int) -> None:
    chance = random.Random(seed)
    name = chance.choice([name for name, pieces in STREAMS.items() if all(isinstance(one, bytes) for one in pieces)])
    data = b"".join(one for one in STREAMS[name] if isinstance(one, bytes))
    cuts = sorted(chance.sample(range(len(data) + 1), min(7, len(data))))
    pieces: list[bytes | Exception] = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    await compared(Service((200, {"content-type": "text/event-stream"}, pieces)), "openai-chat", "small", streams=True)


def test_every_special_token_leaves_the_message_to_pydantic_ai() -> None:
    texts = [
        *(
            "<|im_start|>",
            "<|a|>",
            "<|turn>",
            "<turn|>",
            "<｜User｜>",
            "<start_of_turn>",
            "<end_of_turn>",
            "[|system|]",
        ),
        *("[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[e~[", "]~b]", "]~!b["),
    ]
    for text in texts:
        assert break_special_tokens(text) != text, "the installed pydantic-ai breaks it up"
        message = ChatFormat().encode(user_message(f"before {text} after"), WireDialect())
        assert message is not None
        assert SPECIAL_TOKEN.search(message), text


def test_messages_that_stay_are_kept_and_others_are_replaced() -> None:
    one, two, three = user_message("1"), user_message("2"), user_message("3")
    encoded, owner = EncodedMessages(), object()
    for message in (one, two):
        encoded.add(message, b"a")
    assert encoded.begin([one, two, three], object()) == 0, "another format"
    for message in (one, two):
        encoded.add(message, b"bb")
    owner = object()
    assert encoded.begin([one], owner) == 0
    for message in (one, two, three):
        encoded.add(message, str(message["content"]).encode())
    assert (encoded.begin([one, two, three], owner), bytes(encoded.joined)) == (3, b"1,2,3")
    assert (encoded.begin([one, three], owner), bytes(encoded.joined)) == (1, b"1")
    assert (encoded.begin([dict(one)], owner), bytes(encoded.joined)) == (0, b"")


ROUNDS = 30


@tool
async def look(at: str) -> str:
    """Look at a place."""
    return f"{at} is empty"


@pytest.mark.integration
async def test_an_agent_encodes_each_message_once_and_converts_no_history(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[Json] = []
    converted: list[int] = []

    def encode(self: ChatFormat, message: Json, dialect: WireDialect) -> bytes | None:
        encoded.append(message)
        return originally(self, message, dialect)

    def to_messages(request: ModelRequest) -> list[Any]:
        converted.append(len(request.messages))
        return converting(request)

    originally, converting = ChatFormat.encode, direct_wire.to_messages
    config: JsonObject = {"model": "house:m", "prompt": "Look.", "tools": ["look"], "maxIterations": ROUNDS + 5}
    node: JsonObject = {"id": "a", "type": "agent", "config": config}
    workflow = Workflow.of({"pointsman": 1, "id": "looks", "nodes": [node]})
    with running(rounds=ROUNDS) as address:
        settings = Settings.model_validate({"providers": {"house": {"kind": "openai-chat", "base_url": address}}})
        monkeypatch.setenv("OPENAI_API_KEY", "canary-key-0123456789")
        async with Pointsman("memory:", tools=[look], settings=settings) as app:
            await (await app.start(workflow)).output()  # The frame of these tools is cached from now on.
            monkeypatch.setattr(ChatFormat, "encode", encode)
            monkeypatch.setattr(direct_wire, "to_messages", to_messages)
            monkeypatch.setattr(exchanges, "to_messages", to_messages)
            await (await app.start(workflow)).output()
        async with httpx2.AsyncClient() as client:
            found = (await client.get(f"{address}/statistics")).json()
    sent = [message for message in encoded if isinstance(message, dict) and message["role"] != "system"]
    assert len(sent) == 1 + 2 * ROUNDS, "the question; each call and its result"
    assert len({id(message) for message in sent}) == len(sent)
    assert converted == [], "pydantic-ai sees no conversation"
    assert found["requests"] == 2 * (ROUNDS + 1)
    assert found["connections"] == 2, "one of the app; one for the statistics"


async def test_a_response_that_pydantic_ai_reads_is_read_without_the_conversation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    converted: list[int] = []
    converting = exchanges.to_messages

    def to_messages(request: ModelRequest) -> list[Any]:
        converted.append(len(request.messages))
        return converting(request)

    service = Service((200, {"content-type": "application/json"}, [*MESSAGES["tags"]]))
    async with opened(service, "openai-chat", "small") as one:
        request = ModelRequest(model="", messages=[*map(user_message, "abcdefgh")])
        await outcome(one, request, own=True, streams=False)
        monkeypatch.setattr(exchanges, "to_messages", to_messages)
        found, _ = await outcome(one, request, own=True, streams=False)
    assert isinstance(found, ModelReply)
    assert (found.text, converted, len(service.requests)) == ("fine", [1], 2)
