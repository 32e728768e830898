"""Requests and replies of Anthropic's Messages API are the same with and without its SDK; messages are encoded once."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, cast

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.model_server import running
from pointsman import Pointsman, Workflow, tool
from pointsman.models import direct_wire
from pointsman.models import exchange as exchanges
from pointsman.models.anthropic_format import MessagesFormat
from pointsman.models.transcript import assistant_message, tool_message, user_message
from pointsman.models.wire_format import WireDialect
from pointsman.ports import EncodedMessages, ModelReply, ModelRequest
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject
from tests.models.wire_service import ANSWER, CONVERSATIONS, LOOK, REFUSED, SETTINGS, Sent, Service, opened, outcome

MODELS = ("small", "claude-sonnet-4-5", "claude-opus-4-8", "claude-haiku-5-5")
BY_CLIENT = ("a system message inside", "a system message at the beginning")
"""Conversations that pydantic-ai sends."""
USAGE: JsonObject = {
    "input_tokens": 100,
    "output_tokens": 7,
    "cache_creation_input_tokens": 20,
    "cache_read_input_tokens": 30,
    "cache_creation": {"ephemeral_5m_input_tokens": 15, "ephemeral_1h_input_tokens": 5},
    "service_tier": "standard",
}
TEXT: JsonObject = {"type": "text", "text": "fine ü"}
THINKING: JsonObject = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
REDACTED: JsonObject = {"type": "redacted_thinking", "data": "cmVk"}


def use(arguments: Json, *, id: str = "c1", name: str = "look") -> JsonObject:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def reply(*content: Json, stop: Json = "end_turn", **more: Json) -> JsonObject:
    head: JsonObject = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "small-1",
        "stop_sequence": None,
    }
    return {**head, "content": [*content], "stop_reason": stop, "usage": USAGE, **more}


CITATION: JsonObject = {
    "type": "char_location",
    "cited_text": "x",
    "document_index": 0,
    "document_title": None,
    "start_char_index": 0,
    "end_char_index": 1,
    "file_id": None,
}
REPLIES: dict[str, JsonObject] = {
    "text": reply(TEXT),
    "texts": reply(TEXT, {"type": "text", "text": " and good"}),
    "calls": reply(TEXT, use({"at": "ü"}), use({}, id="c2"), stop="tool_use"),
    "signed thoughts": reply(THINKING, REDACTED, TEXT, use({"at": [1, 2.5, None]}), stop="tool_use"),
    "thoughts between": reply(THINKING, TEXT, {**THINKING, "signature": "b3RoZXI="}, use({"at": "x"}), stop="tool_use"),
    "unsigned thoughts": reply({**THINKING, "signature": ""}, TEXT),
    "the output tool": reply(use({"answer": "x"}, name="final_result"), stop="tool_use"),
    "cut off": reply(TEXT, stop="max_tokens"),
    "a full context": reply(TEXT, stop="model_context_window_exceeded"),
    "a stop sequence": reply(TEXT, stop="stop_sequence", stop_sequence="END"),
    "cut off at once": reply(stop="max_tokens"),
    "a refusal": reply(stop="refusal"),
    "a refusal after text": reply(TEXT, stop="refusal"),
    "a pause": reply(TEXT, stop="pause_turn"),
    "another reason": reply(TEXT, stop="boredom"),
    "no reason": reply(TEXT, stop=None),
    "nothing": reply(),
    "citations": reply({**TEXT, "citations": [CITATION]}),
    "no citations": reply({**TEXT, "citations": None}),
    "a call with a list": reply(use([1]), stop="tool_use"),
    "a server tool": reply({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}, TEXT),
    "an unknown block": reply({"type": "rumination", "text": "x"}, TEXT),
    "a container": reply(TEXT, container={"id": "k", "expires_at": "2030-01-01T00:00:00Z"}),
    "no usage of the cache": reply(TEXT, usage={"input_tokens": 3, "output_tokens": 2}),
    "usage of another form": reply(TEXT, usage={**USAGE, "moons": 3}),
    "no model": reply(TEXT, model=None),
    "an error inside": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
}
READ_HERE = (
    *("text", "texts", "calls", "signed thoughts", "thoughts between", "unsigned thoughts", "the output tool"),
    *("cut off", "a full context", "a stop sequence", "no citations", "no usage of the cache"),
)
"""Replies that need no pydantic-ai."""


def named(*events: JsonObject) -> list[bytes | Exception]:
    return [f"event: {one['type']}\ndata: ".encode() + json.dumps(one).encode() + b"\n\n" for one in events]


def streamed(body: JsonObject) -> list[JsonObject]:
    """The events of a reply, with two deltas for each text, thought and call."""
    usage = cast("JsonObject", body["usage"])
    begun: JsonObject = {
        **body,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1},
    }
    found: list[JsonObject] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for index, block in enumerate(cast("list[JsonObject]", body["content"])):
        found += block_events(index, block)
    end: JsonObject = {"stop_reason": body["stop_reason"], "stop_sequence": body["stop_sequence"]}
    last: JsonObject = {"type": "message_delta", "delta": end, "usage": {"output_tokens": usage["output_tokens"]}}
    return [*found, last, {"type": "message_stop"}]


def block_events(index: int, block: JsonObject) -> list[JsonObject]:
    begun = block
    deltas: list[Json] = []
    citation: JsonObject = {"type": "citations_delta", "citation": CITATION}
    match block:
        case {"type": "text", "text": str(text)}:
            begun = {**block, "text": "", **({"citations": []} if block.get("citations") else {})}
            deltas = [{"type": "text_delta", "text": one} for one in (text[:2], text[2:])]
            deltas += [citation] if block.get("citations") else []
        case {"type": "thinking", "thinking": str(text), "signature": signature}:
            begun = {**block, "thinking": "", "signature": ""}
            thoughts: list[Json] = [{"type": "thinking_delta", "thinking": one} for one in (text[:1], text[1:])]
            deltas = [*thoughts, {"type": "signature_delta", "signature": signature}]
        case {"input": arguments}:
            text = json.dumps(arguments)
            begun = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": one} for one in ("", text[:3], text[3:])]
        case _:
            pass
    started: JsonObject = {"type": "content_block_start", "index": index, "content_block": begun}
    changes: list[JsonObject] = [
        dict[str, Json](type="content_block_delta", index=index, delta=delta) for delta in deltas
    ]
    return [started, *changes, {"type": "content_block_stop", "index": index}]


TEXT_EVENTS = streamed(REPLIES["text"])
ERROR = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
BROKEN_INPUT: JsonObject = {"type": "input_json_delta", "partial_json": '{"at": "x",}'}
STREAMS: dict[str, list[bytes | Exception]] = {
    **{name: named(*streamed(body)) for name, body in REPLIES.items() if name not in ("an error inside", "no model")},
    "overloaded": [ERROR],
    "overloaded after text": [*named(*TEXT_EVENTS[:5]), ERROR],
    "broken off": [*named(*TEXT_EVENTS[:5]), httpx2.ReadError("gone")],
    "broken off at once": [httpx2.ReadError("gone")],
    "broken off after the end": [*named(*TEXT_EVENTS), httpx2.ReadError("gone")],
    "no end": named(*TEXT_EVENTS[:-1]),
    "no reason and no end": named(*TEXT_EVENTS[:-2]),
    "no beginning": named(*TEXT_EVENTS[1:]),
    "no events": [],
    "pings": [b'event: ping\ndata: {"type": "ping"}\n\n', *named(*TEXT_EVENTS[:3], {"type": "ping"}, *TEXT_EVENTS[3:])],
    "no names": [one.partition(b"\n")[2] for one in named(*TEXT_EVENTS) if isinstance(one, bytes)],
    "wrong names": [
        one.replace(b"event: content_block_delta", b"event: message_delta")
        for one in named(*TEXT_EVENTS)
        if isinstance(one, bytes)
    ],
    "an unknown event": named(*TEXT_EVENTS[:4], {"type": "mood", "mood": "good"}, *TEXT_EVENTS[4:]),
    "lines with CR": [one.replace(b"\n", b"\r\n") for one in named(*TEXT_EVENTS) if isinstance(one, bytes)],
    "comments": [b": hello\n\n", *named(*TEXT_EVENTS)],
    "not JSON": [*named(*TEXT_EVENTS[:4]), b"event: content_block_delta\ndata: {\n\n"],
    "text at the beginning of a block": named(
        *TEXT_EVENTS[:2], {**TEXT_EVENTS[2], "content_block": {"type": "text", "text": "So: "}}, *TEXT_EVENTS[3:]
    ),
    "counts in the last event": named(*TEXT_EVENTS[:-2], {**TEXT_EVENTS[-2], "usage": {**USAGE, "input_tokens": 5}}),
    "arguments that are no JSON": named(
        *streamed(reply(use({}), stop="tool_use"))[:3],
        {"type": "content_block_delta", "index": 0, "delta": BROKEN_INPUT},
        *streamed(reply(use({}), stop="tool_use"))[6:],
    ),
}
STATUSES: dict[str, Sent] = {
    "limited": (
        429,
        {"content-type": "application/json", "retry-after": "45"},
        [b'{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}'],
    ),
    "overloaded": (
        529,
        {"content-type": "application/json"},
        [b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'],
    ),
    "unauthorized": (401, {"content-type": "application/json"}, [b'{"type":"error","error":{"message":"no"}}']),
    "a gateway": (502, {"content-type": "text/html"}, [b"<html>Bad gateway</html>"]),
    "a redirect": (307, {"location": "https://other.test/v1"}, []),
    "a page": (200, {"content-type": "text/html"}, [b"<html>welcome</html>"]),
    "whole": (200, {"content-type": "application/json"}, [json.dumps(REPLIES["text"]).encode()]),
    "a stream": (200, {"content-type": "text/event-stream"}, [*STREAMS["text"]]),
    "unreachable": (0, {}, [httpx2.ConnectError("no route")]),
    "slow": (0, {}, [httpx2.ReadTimeout("slow")]),
}


def plain(found: tuple[object, object]) -> tuple[object, object]:
    """The outcome with the parts of a signed message as they are sent back."""
    answer, heard = found
    if not isinstance(answer, ModelReply) or answer.raw is None:
        return found
    parts = [sent_back(part) for part in cast("list[JsonObject]", answer.raw)]
    return [answer.text, answer.tool_calls, answer.usage, answer.model, answer.warnings, parts], heard


def sent_back(part: JsonObject) -> JsonObject:
    arguments = part.get("args")
    names = ("part_kind", "content", "id", "signature", "tool_name", "tool_call_id")
    shown = {name: part[name] for name in names if part.get(name)}
    return {**shown, "args": json.loads(arguments) if isinstance(arguments, str) else arguments}


async def compared(service: Service, model: str, *, streams: bool) -> object:
    async with opened(service, "anthropic", model) as one:
        assert one.wire is not None
        request = ModelRequest(model="", messages=[user_message("hello")], tools=(LOOK,))
        if model == "small":
            request = ModelRequest(model="", messages=request.messages, tools=(LOOK,), output_schema=ANSWER)
        theirs = await outcome(one, request, own=False, streams=streams)
        ours = await outcome(one, request, own=True, streams=streams)
    assert plain(ours) == plain(theirs)
    return ours[0]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("settings", SETTINGS)
async def test_requests_are_those_of_the_sdk(model: str, settings: str) -> None:
    service = Service(REFUSED)
    async with opened(service, "anthropic", model) as one:
        assert one.wire is not None
        for place, (name, messages) in enumerate(CONVERSATIONS.items()):
            streams = place % 2 == 0
            request = ModelRequest(model="", messages=messages, encoded=EncodedMessages(), **SETTINGS[settings])
            outcomes = [await outcome(one, request, own=own, streams=streams) for own in (False, True, True)]
            assert outcomes[0] == outcomes[1] == outcomes[2], name
            if not service.requests:
                continue  # The client refused the settings.
            theirs, ours, again = service.requests
            service.requests.clear()
            if name == "a call without an id":
                continue  # pydantic-ai generates one.
            assert (await one.wire.prepared(request, streams=streams) is None) == (name in BY_CLIENT), name
            assert ours.content == theirs.content == again.content, name
            assert (ours.method, ours.url, ours.headers) == (theirs.method, theirs.url, theirs.headers)
            assert ours.extensions == theirs.extensions


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("name", ["signed thoughts", "thoughts between"])
async def test_signed_thoughts_are_sent_back_as_they_came(name: str, *, streams: bool) -> None:
    pieces = STREAMS[name] if streams else [json.dumps(REPLIES[name]).encode()]
    kind = "text/event-stream" if streams else "application/json"
    thinks = {**SETTINGS["thoughts"]}
    service = Service((200, {"content-type": kind}, [*pieces]))
    async with opened(service, "anthropic", "small") as one:
        assert one.wire is not None
        asked = ModelRequest(model="", messages=[user_message("Look.")], **thinks)
        prepared = await one.wire.prepared(asked, streams=streams)
        assert prepared is not None
        found = await one.wire.send(prepared, print if streams else None)
        assert isinstance(found, ModelReply)
        results = [tool_message(call, "seen", name="a") for call in found.tool_calls]
        messages: list[Json] = [*asked.messages, assistant_message(found, name="a"), *results]
        request = ModelRequest(model="", messages=messages, **thinks)
        assert await one.wire.prepared(request, streams=streams) is not None
        service.requests.clear()
        for own in (False, True):
            await outcome(one, request, own=own, streams=streams)
        theirs, ours = service.requests
    assert ours.content == theirs.content
    content = json.loads(ours.content)["messages"][1]["content"]
    assert content == REPLIES[name]["content"]


@pytest.mark.parametrize("change", [{"provider_name": "google"}, {"parts": [{"part_kind": "file"}]}, {"parts": None}])
async def test_other_signed_messages_are_sent_by_the_sdk(change: JsonObject) -> None:
    raw: JsonObject = {
        "kind": "response",
        "provider_name": "anthropic",
        "canonical_system": None,
        "parts": [{"part_kind": "thinking", "content": "Hm.", "signature": "s", "provider_name": "anthropic"}],
    }
    async with opened(Service(REFUSED), "anthropic", "small") as one:
        assert one.wire is not None
        for changed, is_ours in ((raw, True), ({**raw, **change}, False)):
            messages: list[Json] = [user_message("Look."), {"role": "assistant", "content": "x", "raw": changed}]
            request = ModelRequest(model="", messages=[*messages, user_message("Go on.")])
            assert (await one.wire.prepared(request, streams=False) is not None) == is_ours


@pytest.mark.parametrize("cache", [{"anthropic_cache_messages": True}, {"anthropic_cache": "1h"}, {"cache": True}])
async def test_cache_marks_move_with_the_conversation(cache: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(REFUSED)
    async with opened(service, "anthropic", "small") as one:
        monkeypatch.setattr(one.model, "_settings", {"anthropic_cache_instructions": True, **cache})
        assert one.wire is not None
        encoded, messages = EncodedMessages(), list[Json]()
        for message in CONVERSATIONS["calls and results"]:
            messages.append(message)
            request = ModelRequest(model="", system="Be kind.", messages=messages, encoded=encoded)
            assert await one.wire.prepared(request, streams=False) is not None
            for own in (False, True):
                await outcome(one, request, own=own, streams=False)
            theirs, ours = service.requests
            service.requests.clear()
            assert b"cache_control" in theirs.content
            assert ours.content == theirs.content


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
arguments = st.dictionaries(texts, st.none() | st.booleans() | st.integers(-(10**20), 10**20) | texts, max_size=3)


def assistant(text: str, calls: list[JsonObject]) -> JsonObject:
    made: list[Json] = [{"id": f"c{at}", "name": "look", "arguments": one} for at, one in enumerate(calls)]
    return {"role": "assistant", "content": text, "toolCalls": made}


def tool_result(text: str) -> JsonObject:
    return {"role": "tool", "content": text, "toolCallId": "c0", "tool": "look"}


spoken = st.builds(user_message, texts) | st.builds(assistant, texts, st.lists(arguments, max_size=2))
results = st.builds(tool_result, texts)


@given(conversations=st.lists(st.lists(st.one_of(spoken, results), max_size=8), min_size=1, max_size=3), system=texts)
async def test_any_conversation_is_encoded_as_by_the_sdk(conversations: list[list[Json]], system: str) -> None:
    service = Service(REFUSED)
    encoded = EncodedMessages()
    async with opened(service, "anthropic", "small") as one:
        for extra in conversations:
            # Each conversation begins like the one before, so encoded messages are partly kept.
            messages = [*conversations[0][: len(extra)], *extra]
            request = ModelRequest(model="", system=system, messages=messages, encoded=encoded, tools=(LOOK,))
            outcomes = [await outcome(one, request, own=own, streams=False) for own in (False, True)]
            assert outcomes[0] == outcomes[1]
            theirs, ours = service.requests
            service.requests.clear()
            assert ours.content == theirs.content


@pytest.mark.parametrize("model", ["small", "claude-opus-4-8"])
@pytest.mark.parametrize("name", REPLIES)
async def test_replies_are_read_as_by_the_sdk(name: str, model: str) -> None:
    body: list[bytes | Exception] = [json.dumps(REPLIES[name]).encode()]
    await compared(Service((200, {"content-type": "application/json"}, body)), model, streams=False)


@pytest.mark.parametrize(("model", "streams"), [("small", True), ("claude-opus-4-8", True), ("claude-opus-4-8", False)])
@pytest.mark.parametrize("name", STREAMS)
async def test_streams_are_read_as_by_the_sdk(name: str, model: str, *, streams: bool) -> None:
    # The client streams long answers of known models also if the caller does not ask for a stream.
    await compared(Service((200, {"content-type": "text/event-stream"}, STREAMS[name])), model, streams=streams)


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("name", READ_HERE)
async def test_plain_replies_are_not_left_to_the_sdk(
    name: str, monkeypatch: pytest.MonkeyPatch, *, streams: bool
) -> None:
    def refuse(*_: object) -> object:
        raise AssertionError(name)

    pieces = STREAMS[name] if streams else [json.dumps(REPLIES[name]).encode()]
    kind = "text/event-stream" if streams else "application/json"
    async with opened(Service((200, {"content-type": kind}, [*pieces])), "anthropic", "small") as one:
        monkeypatch.setattr(exchanges, "_by_client", refuse)
        request = ModelRequest(model="", messages=[user_message("hello")], tools=(LOOK,))
        found, _ = await outcome(one, request, own=True, streams=streams)
    assert isinstance(found, ModelReply)


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("model", ["small", "claude-opus-4-8"])
@pytest.mark.parametrize("name", STATUSES)
async def test_failures_are_those_of_the_sdk(name: str, model: str, *, streams: bool) -> None:
    await compared(Service(STATUSES[name]), model, streams=streams)


@given(cuts=st.lists(st.integers(0, 3_000), max_size=7), name=st.sampled_from(READ_HERE))
async def test_streams_may_be_cut_anywhere(cuts: list[int], name: str) -> None:
    data = b"".join(one for one in STREAMS[name] if isinstance(one, bytes))
    places = [0, *sorted({cut for cut in cuts if cut < len(data)}), len(data)]
    pieces: list[bytes | Exception] = [data[a:b] for a, b in pairwise(places)]
    await compared(Service((200, {"content-type": "text/event-stream"}, pieces)), "small", streams=True)


ROUNDS = 30


@tool
async def look(at: str) -> str:
    """Look at a place."""
    return f"{at} is empty"


@pytest.mark.integration
async def test_an_agent_encodes_each_message_once_and_converts_no_history(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[Json] = []
    converted: list[int] = []

    def encode(self: MessagesFormat, message: Json, dialect: WireDialect) -> bytes | None:
        encoded.append(message)
        return originally(self, message, dialect)

    def to_messages(request: ModelRequest) -> list[Any]:
        converted.append(len(request.messages))
        return converting(request)

    originally, converting = MessagesFormat.encode, direct_wire.to_messages
    config: JsonObject = {"model": "house:m", "prompt": "Look.", "tools": ["look"], "maxIterations": ROUNDS + 5}
    node: JsonObject = {"id": "a", "type": "agent", "config": config}
    workflow = Workflow.of({"pointsman": 1, "id": "looks", "nodes": [node]})
    with running(rounds=ROUNDS) as address:
        settings = Settings.model_validate({"providers": {"house": {"kind": "anthropic", "base_url": address}}})
        monkeypatch.setenv("ANTHROPIC_API_KEY", "canary-key-0123456789")
        async with Pointsman("memory:", tools=[look], settings=settings) as app:
            await (await app.start(workflow)).output()  # The frame of these tools is cached from now on.
            monkeypatch.setattr(MessagesFormat, "encode", encode)
            monkeypatch.setattr(direct_wire, "to_messages", to_messages)
            monkeypatch.setattr(exchanges, "to_messages", to_messages)
            await (await app.start(workflow)).output()
        async with httpx2.AsyncClient() as client:
            found = (await client.get(f"{address}/statistics")).json()
    assert len(encoded) == 1 + 2 * ROUNDS, "the question; each call and its result"
    assert len({id(message) for message in encoded}) == len(encoded)
    assert converted == [], "pydantic-ai sees no conversation"
    assert found["requests"] == 2 * (ROUNDS + 1)
    assert found["connections"] == 2, "one of the app; one for the statistics"
