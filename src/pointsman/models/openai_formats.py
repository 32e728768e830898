"""Formats of the OpenAI API: messages to JSON, and replies and streams to text, tool calls and usage.

Only the common part of the format is read here. Anything else in a response raises `UnfamiliarResponse`, and the
provider's client reads the response instead (see `direct_wire`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from pointsman.engine.reports import ToolCall
from pointsman.models.transcript import calls_of, content_of, role_of, text_of
from pointsman.models.wire_format import (
    Format,
    ReadReply,
    StreamReader,
    TokenCounts,
    UnfamiliarResponse,
    WireDialect,
    WireEvent,
    called,
)
from pointsman.ports import Thought
from pointsman.values import Json, JsonObject

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

SPECIAL_TOKEN: Final = re.compile(
    "<[|\uff5c]|\\|>|_of_turn>|\\[\\||[A-Z]\\]|~b\\]|~!b\\[|e~\\[".encode()  # 0xFF5C: the full-width bar
)
"""Where a message may contain a special token of a chat template, which pydantic-ai breaks up for some models."""
_CALL_MEMBERS: Final = frozenset({"role", "content", "tool_calls"})
_NULL: Final = msgspec.Raw(b"null")
"""Default of members of any form. A member of the type `None` makes a response unfamiliar unless it is null."""


class _Details(msgspec.Struct, forbid_unknown_fields=True):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    audio_tokens: int | None = None


class _Usage(msgspec.Struct, forbid_unknown_fields=True):
    # Other members may change what counts as input: the provider's client knows.
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: msgspec.Raw = _NULL

    @property
    def tokens(self) -> TokenCounts:
        details = self.prompt_tokens_details or _Details()
        return TokenCounts(
            self.prompt_tokens, self.completion_tokens, details.cached_tokens or 0, details.cache_write_tokens or 0
        )


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _WireCall(msgspec.Struct):
    id: str | None = None
    index: int | None = None
    type: Literal["function"] | None = None
    function: _Function | None = None


class _Message(msgspec.Struct):
    role: str | None = None
    content: str | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: None = None
    tool_calls: list[_WireCall] | None = None

    def thought(self, dialect: WireDialect) -> str:
        for field in dialect.thinking_fields:
            if text := self.reasoning if field == "reasoning" else self.reasoning_content:
                return text
        return ""

    def check(self) -> None:
        if self.refusal:
            raise UnfamiliarResponse


class _Choice(msgspec.Struct):
    index: int
    message: _Message
    finish_reason: str | None = None


class _Completion(msgspec.Struct):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[_Choice]
    usage: _Usage | None = None


class _ChunkChoice(msgspec.Struct):
    delta: _Message | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_ChunkChoice] | None = None
    model: str | None = None
    usage: _Usage | None = None
    error: None = None


_encode = msgspec.json.Encoder().encode
_completion = msgspec.json.Decoder(_Completion).decode
_chunk = msgspec.json.Decoder(_Chunk).decode


def _sent_call(call: ToolCall) -> JsonObject:
    function: JsonObject = {"name": call.name, "arguments": _encode(call.arguments).decode()}
    return {"id": call.id, "type": "function", "function": function}


def _events(*chunks: bytes) -> bytes:
    head = b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m",'
    return b"".join(head + chunk + b"}\n\n" for chunk in chunks)


class _MessageList:
    """The conversation is a list of messages that do not depend on each other; the first is the system prompt."""

    system_key = ""

    def dialect(
        self, profile: Mapping[str, Any], sent: Sequence[JsonObject], answer: ModelResponse | None
    ) -> WireDialect:
        del answer
        calls = next((message.items() for message in sent if "tool_calls" in message), ())
        members = [(name, value) for name, value in calls if name not in _CALL_MEMBERS]
        own = profile.get("openai_chat_thinking_field")
        fields = tuple(dict.fromkeys((*([own] if own else ()), *WireDialect().thinking_fields)))
        tags = profile.get("thinking_tags", (WireDialect().thinking_start, ""))
        return WireDialect(
            system_role=text_of(sent[0].get("role")) if sent else "",
            thinking_start=tags[0],
            thinking_fields=fields,
            breaks_special_tokens=bool(profile.get("may_tokenize_special_tokens_in_content", False)),
            ignores_leading_space=bool(profile.get("ignore_streamed_leading_whitespace", False)),
            call_members=tuple((name, value) for name, value in members if isinstance(value, str)),
        )

    def converted(self, messages: bytes, message: Json) -> bytes | None:
        del message
        return messages[1:-1]

    def leads(self, message: Json, previous: Json) -> tuple[bytes, bytes]:
        del message, previous
        return b"", b","

    def joined(self, encoded: bytearray, dialect: WireDialect) -> bytes | None:
        del dialect
        return b"[%b]" % encoded


class ChatFormat(_MessageList):
    """Chat Completions."""

    messages_key = "messages"
    event_names: tuple[bytes, ...] = ()
    sample_body = (
        b'{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"tool_calls",'
        b'"message":{"role":"assistant","content":"Fine.","reasoning_content":"Hm.","tool_calls":[{"id":"c1",'
        b'"type":"function","function":{"name":"look","arguments":"{\\"a\\":1}"}}]}}],"usage":{"prompt_tokens":11,'
        b'"completion_tokens":7,"total_tokens":18,"prompt_tokens_details":{"cached_tokens":3}}}'
    )
    sample_events = _events(
        b'"choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"Hm."}}]',
        b'"choices":[{"index":0,"delta":{"content":"Fi"}}]',
        b'"choices":[{"index":0,"delta":{"content":"ne."}}]',
        b'"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function",'
        b'"function":{"name":"look","arguments":""}}]}}]',
        b'"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"a\\":1}"}}]}}]',
        b'"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]',
        b'"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":3}}',
    )

    def encode(self, message: Json, dialect: WireDialect) -> bytes | None:
        match role_of(message), message:
            case "assistant", _:
                return self._assistant(message, dialect)
            case "tool", dict():
                id = text_of(message.get("toolCallId"))
                return _encode({"role": "tool", "tool_call_id": id, "content": content_of(message)}) if id else None
            case "system", _:
                return _encode({"role": dialect.system_role, "content": content_of(message)})
            case _, {"content": [*_]}:
                return None
            case _:
                return _encode({"role": "user", "content": content_of(message)})

    def _assistant(self, message: Json, dialect: WireDialect) -> bytes | None:
        text, calls = content_of(message), calls_of(message)
        if (isinstance(message, dict) and message.get("raw") is not None) or not all(call.id for call in calls):
            return None
        if not text and not calls:
            return b""
        sent: JsonObject = {"role": "assistant", "content": text or None}
        if calls:
            sent["tool_calls"] = [_sent_call(call) for call in calls]
            sent.update(dialect.call_members)
        return _encode(sent)

    def read(self, body: bytes, dialect: WireDialect) -> ReadReply:
        found = _completion(body)
        if not found.choices:
            raise UnfamiliarResponse
        choice = found.choices[0]
        message = choice.message
        message.check()
        text = message.content or ""
        if message.role != "assistant" or choice.finish_reason == "" or dialect.thinking_start in text:
            raise UnfamiliarResponse
        dialect.check_text(text)
        calls: list[ToolCall] = []
        for call in message.tool_calls or ():
            if call.type is None or call.function is None or call.function.arguments is None:
                raise UnfamiliarResponse
            calls.append(called(call.id, call.function.name, call.function.arguments, dialect))
        tokens = found.usage.tokens if found.usage else TokenCounts()
        return ReadReply(text, tuple(calls), found.model, tokens, choice.finish_reason or "")

    def stream(self, dialect: WireDialect) -> StreamReader:
        return _ChatStream(dialect)


class _StreamedCall:
    __slots__ = ("arguments", "id", "name")

    def __init__(self, id: str, name: str) -> None:
        self.id, self.name = id, name
        self.arguments: list[str] = []


class _ChatStream:
    def __init__(self, dialect: WireDialect) -> None:
        self._dialect = dialect
        self._texts: list[str] = []
        self._calls: dict[int, _StreamedCall] = {}
        self._model = ""
        self._usage: _Usage | None = None
        self._finish_reason = ""

    def feed(self, event: WireEvent) -> str:
        chunk = _chunk(event.data)
        if chunk.usage and self._usage:
            raise UnfamiliarResponse
        self._usage = chunk.usage or self._usage
        self._model = chunk.model or self._model
        if not chunk.choices:
            return ""
        choice = chunk.choices[0]
        if choice.delta is None:
            raise UnfamiliarResponse
        self._finish_reason = choice.finish_reason or self._finish_reason
        return self._delta(choice.delta)

    def _delta(self, delta: _Message) -> str:
        delta.check()
        thought, text = delta.thought(self._dialect), delta.content or ""
        if thought and text:
            raise UnfamiliarResponse
        if text:
            self._check(text)
            self._texts.append(text)
        for call in delta.tool_calls or ():
            self._called(call)
        return Thought(thought) if thought else text

    def _check(self, text: str) -> None:
        dialect = self._dialect
        if text == dialect.thinking_start or (dialect.ignores_leading_space and not self._texts and text.isspace()):
            raise UnfamiliarResponse
        dialect.check_text(text)

    def _called(self, call: _WireCall) -> None:
        function = call.function or _Function()
        if call.index is None:
            raise UnfamiliarResponse
        streamed = self._calls.get(call.index)
        if streamed is None:
            if not call.id or not function.name:
                raise UnfamiliarResponse
            streamed = self._calls[call.index] = _StreamedCall(call.id, function.name)
        elif function.name or (call.id and call.id != streamed.id):
            raise UnfamiliarResponse
        if function.arguments:
            streamed.arguments.append(function.arguments)

    def answer(self) -> ReadReply:
        if not self._finish_reason:
            raise UnfamiliarResponse
        calls = tuple(
            called(call.id, call.name, "".join(call.arguments), self._dialect) for call in self._calls.values()
        )
        tokens = self._usage.tokens if self._usage else TokenCounts()
        return ReadReply("".join(self._texts), calls, self._model, tokens, self._finish_reason)


class _InputDetails(msgspec.Struct, forbid_unknown_fields=True):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _ResponseUsage(msgspec.Struct, forbid_unknown_fields=True):
    # As for Chat Completions: other members may change what counts as input.
    input_tokens: int
    output_tokens: int
    total_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: msgspec.Raw = _NULL

    @property
    def tokens(self) -> TokenCounts:
        details = self.input_tokens_details or _InputDetails()
        return TokenCounts(
            self.input_tokens, self.output_tokens, details.cached_tokens or 0, details.cache_write_tokens or 0
        )


class _Content(msgspec.Struct):
    type: Literal["output_text"]
    text: str | None = None


class _Item(msgspec.Struct):
    """A message or a call. Other items, and further content of these, make a response unfamiliar."""

    type: Literal["message", "function_call"]
    id: str | None = None
    content: list[_Content] | None = None
    name: str | None = None
    call_id: str | None = None
    arguments: str | None = None
    namespace: str | None = None

    def called(self, dialect: WireDialect) -> ToolCall:
        if self.namespace:
            raise UnfamiliarResponse
        return called(self.call_id, self.name, self.arguments, dialect)


class _Response(msgspec.Struct):
    id: str
    object: Literal["response"]
    created_at: float
    model: str
    status: Literal["queued", "in_progress", "completed"]
    background: bool | None = None
    error: None = None
    incomplete_details: None = None
    usage: _ResponseUsage | None = None

    def check(self) -> None:
        if self.background:
            raise UnfamiliarResponse


class _WholeResponse(_Response):
    output: list[_Item] = []


class _ResponseEvent(msgspec.Struct):
    type: str
    response: _Response | None = None
    item: _Item | None = None
    part: _Content | None = None
    item_id: str = ""
    content_index: int = 0
    delta: str | None = None
    text: str | None = None
    arguments: str | None = None


_response = msgspec.json.Decoder(_WholeResponse).decode
_event = msgspec.json.Decoder(_ResponseEvent).decode
_COMPLETED: Final = "completed"


class ResponsesFormat(_MessageList):
    """Responses. Only messages and calls are read here: pydantic-ai reads the many other kinds of items."""

    messages_key = "input"
    event_names: tuple[bytes, ...] = (b"response.",)
    _HEAD: Final = (
        b'{"id":"r","object":"response","created_at":1,"model":"m","parallel_tool_calls":true,"tool_choice":"auto",'
        b'"tools":[],"status":"%b","output":[%b]%b}'
    )
    _TEXT: Final = (
        b'{"type":"message","id":"i","role":"assistant","status":"completed",'
        b'"content":[{"type":"output_text","text":"Fine.","annotations":[]}]}'
    )
    _CALL: Final = (
        b'{"type":"function_call","id":"f","call_id":"c1","name":"look","arguments":"%b","status":"completed"}'
    )
    _USAGE: Final = (
        b',"usage":{"input_tokens":11,"output_tokens":7,"total_tokens":18,"input_tokens_details":{"cached_tokens":3},'
        b'"output_tokens_details":{"reasoning_tokens":2}}'
    )
    sample_body = _HEAD % (b"completed", _TEXT + b"," + _CALL % b'{\\"a\\":1}', _USAGE)
    sample_events = b"".join(
        b'event: response.%b\ndata: {"type":"response.%b","sequence_number":1,%b}\n\n' % (name, name, members)
        for name, members in (
            (b"created", b'"response":' + _HEAD % (b"in_progress", b"", b"")),
            (b"output_item.added", b'"output_index":0,"item":' + _TEXT.replace(_TEXT[_TEXT.index(b"[") :], b"[]}")),
            (b"output_text.delta", b'"output_index":0,"item_id":"i","content_index":0,"delta":"Fi"'),
            (b"output_text.delta", b'"output_index":0,"item_id":"i","content_index":0,"delta":"ne."'),
            (b"output_text.done", b'"output_index":0,"item_id":"i","content_index":0,"text":"Fine."'),
            (b"output_item.done", b'"output_index":0,"item":' + _TEXT),
            (b"output_item.added", b'"output_index":1,"item":' + _CALL % b""),
            (b"function_call_arguments.delta", b'"output_index":1,"item_id":"f","delta":"{\\"a\\":1}"'),
            (b"function_call_arguments.done", b'"output_index":1,"item_id":"f","arguments":"{\\"a\\":1}"'),
            (b"output_item.done", b'"output_index":1,"item":' + _CALL % b'{\\"a\\":1}'),
            (b"completed", b'"response":' + sample_body),
        )
    )

    def encode(self, message: Json, dialect: WireDialect) -> bytes | None:
        match role_of(message), message:
            case "assistant", dict():
                return self._assistant(message)
            case "tool", dict():
                id = text_of(message.get("toolCallId"))
                output: JsonObject = {"type": "function_call_output", "call_id": id, "output": content_of(message)}
                return _encode(output) if id else None
            case "system", _:
                return _encode({"role": dialect.system_role, "content": content_of(message)})
            case _, {"content": [*_]}:
                return None
            case _:
                return _encode({"role": "user", "content": content_of(message)})

    def _assistant(self, message: JsonObject) -> bytes | None:
        text, calls = content_of(message), calls_of(message)
        if message.get("raw") is not None or not all(call.id for call in calls):
            return None
        items: list[JsonObject] = [{"role": "assistant", "content": text}] if text else []
        for call in calls:
            arguments = _encode(call.arguments).decode()
            items.append({"name": call.name, "arguments": arguments, "call_id": call.id, "type": "function_call"})
        return b",".join(map(_encode, items))

    def read(self, body: bytes, dialect: WireDialect) -> ReadReply:
        found = _response(body)
        found.check()
        if found.status != _COMPLETED:
            raise UnfamiliarResponse
        text = "".join(part.text or "" for item in found.output for part in item.content or ())
        dialect.check_text(text)
        calls = tuple(item.called(dialect) for item in found.output if item.type == "function_call")
        return ReadReply(text, calls, found.model, found.usage.tokens if found.usage else TokenCounts())

    def stream(self, dialect: WireDialect) -> StreamReader:
        return _ResponsesStream(dialect)


class _ResponsesStream:
    def __init__(self, dialect: WireDialect) -> None:
        self._dialect = dialect
        self._texts: dict[tuple[str, int], list[str]] = {}
        """By item and content, in the order of their first texts."""
        self._calls: dict[str, _StreamedCall] = {}
        self._created = False
        self._whole: _Response | None = None

    def feed(self, event: WireEvent) -> str:
        return self._read(_event(event.data))

    def _read(self, event: _ResponseEvent) -> str:
        if self._whole is not None or self._created == (event.type == "response.created"):
            raise UnfamiliarResponse  # Something after the end, or before the beginning.
        match event.type:
            case "response.created" | "response.in_progress":
                self._begun(event.response)
            case "response.output_item.added":
                self._added(event.item)
            case "response.output_text.delta":
                return self._text(event)
            case "response.function_call_arguments.delta" if event.item_id in self._calls:
                self._calls[event.item_id].arguments.append(event.delta or "")
            case "response.function_call_arguments.done":
                self._check_arguments(event.item_id, event.arguments)
            case "response.output_item.done":
                self._done(event.item)
            case "response.output_text.done":
                if event.text != "".join(self._texts.get((event.item_id, event.content_index), ())):
                    raise UnfamiliarResponse
            case "response.content_part.added" | "response.content_part.done" if event.part is not None:
                pass
            case "response.completed":
                self._completed(event.response)
            case _:
                raise UnfamiliarResponse
        return ""

    def _begun(self, response: _Response | None) -> None:
        if response is None or response.usage is not None or response.status == _COMPLETED:
            raise UnfamiliarResponse
        response.check()
        self._created = True

    def _completed(self, response: _Response | None) -> None:
        if response is None or response.status != _COMPLETED:
            raise UnfamiliarResponse
        response.check()
        self._whole = response

    def _added(self, item: _Item | None) -> None:
        if item is None or item.namespace or not item.id or item.id in self._calls:
            raise UnfamiliarResponse
        if item.type == "function_call":
            if not item.call_id or not item.name:
                raise UnfamiliarResponse
            call = self._calls[item.id] = _StreamedCall(item.call_id, item.name)
            call.arguments.append(item.arguments or "")

    def _done(self, item: _Item | None) -> None:
        if item is None or (item.type == "function_call" and not item.id):
            raise UnfamiliarResponse
        if item.type == "function_call":
            self._check_arguments(item.id or "", item.arguments)

    def _check_arguments(self, item: str, arguments: str | None) -> None:
        if item not in self._calls or arguments != "".join(self._calls[item].arguments):
            raise UnfamiliarResponse

    def _text(self, event: _ResponseEvent) -> str:
        place = event.item_id, event.content_index
        if event.delta is None or (place in self._texts and place != next(reversed(self._texts))):
            raise UnfamiliarResponse
        self._dialect.check_text(event.delta)
        self._texts.setdefault(place, []).append(event.delta)
        return event.delta

    def answer(self) -> ReadReply:
        if self._whole is None:
            raise UnfamiliarResponse
        calls = tuple(
            called(call.id, call.name, "".join(call.arguments), self._dialect) for call in self._calls.values()
        )
        text = "".join(piece for pieces in self._texts.values() for piece in pieces)
        tokens = self._whole.usage.tokens if self._whole.usage else TokenCounts()
        return ReadReply(text, calls, self._whole.model, tokens, _COMPLETED)


CHAT: Final[Format] = ChatFormat()
RESPONSES: Final[Format] = ResponsesFormat()
