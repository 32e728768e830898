"""Format of Anthropic's Messages API: messages to content blocks, and replies and streams to text, calls and usage.

    user, tool, tool, assistant, user   ─▶   {user: [block, block, block]}, {assistant: […]}, {user: [block]}

Messages of the user and results of tools that follow one another are one message of the API. A message is therefore
encoded to its blocks, what precedes it depends on its neighbour, and the request closes the last message. The system
prompt is a member of its own. If a model's requests mark the end of the conversation for the cache, the mark is written
when the request is put together, so it moves with the conversation.

Thoughts are signed by the provider, and it wants them back unchanged: `raw` of a reply holds them (see `wire`). As in
`openai_formats`, other responses raise `UnfamiliarResponse`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from pointsman.engine.reports import ToolCall
from pointsman.json_meter import JsonUnreadable, decode_json
from pointsman.models.transcript import calls_of, content_of, role_of, text_of
from pointsman.models.wire_format import (
    Format,
    ReadReply,
    ReplyOrigin,
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

_CLOSED: Final = b"]}"
_REDACTED: Final = "redacted_thinking"
_FINISH_REASONS: Final = {
    "end_turn": "stop",
    "tool_use": "tool_call",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
"""Reason of the service -> that of pydantic-ai, which reads replies with another reason."""

_encode = msgspec.json.Encoder().encode


class _Echo(msgspec.Struct):
    """A reply with signed thoughts, as far as its parts are sent back."""

    parts: list[_EchoPart]
    provider_name: str | None = None
    provider_url: str | None = None
    canonical_system: str | None = None
    provider_details: dict[str, Any] | None = None


class _EchoPart(msgspec.Struct):
    part_kind: Literal["thinking", "text", "tool-call"]
    content: str = ""
    id: str | None = None
    signature: str | None = None
    provider_name: str | None = None
    provider_details: None = None
    citations: None = None
    tool_name: str = ""
    args: JsonObject | str | None = None
    tool_call_id: str = ""
    tool_kind: None = None


class _Text(msgspec.Struct, tag="text"):
    text: str
    citations: list[None] | None = None


class _Thinking(msgspec.Struct, tag="thinking"):
    thinking: str
    signature: str


class _Redacted(msgspec.Struct, tag=_REDACTED):
    data: str


class _ToolUse(msgspec.Struct, tag="tool_use"):
    id: str
    name: str
    input: msgspec.Raw


_Block: TypeAlias = _Text | _Thinking | _Redacted | _ToolUse

_NULL: Final = msgspec.Raw(b"null")
"""Default of members of any form. A member of the type `None` makes a response unfamiliar unless it is null."""


class _MessagesUsage(msgspec.Struct, forbid_unknown_fields=True):
    # Other members may change what counts as input. In a stream, later counts replace earlier ones.
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation: msgspec.Raw = _NULL
    inference_geo: msgspec.Raw = _NULL
    iterations: None = None
    output_tokens_details: msgspec.Raw = _NULL
    server_tool_use: msgspec.Raw = _NULL
    service_tier: msgspec.Raw = _NULL
    speed: msgspec.Raw = _NULL

    def updated(self, later: _MessagesUsage) -> _MessagesUsage:
        """Return these counts with those of a later event."""
        return _MessagesUsage(
            self.input_tokens if later.input_tokens is None else later.input_tokens,
            self.output_tokens if later.output_tokens is None else later.output_tokens,
            _later(self.cache_creation_input_tokens, later.cache_creation_input_tokens),
            _later(self.cache_read_input_tokens, later.cache_read_input_tokens),
        )

    @property
    def tokens(self) -> TokenCounts:
        read, written = self.cache_read_input_tokens or 0, self.cache_creation_input_tokens or 0
        return TokenCounts((self.input_tokens or 0) + read + written, self.output_tokens or 0, read, written)


def _later(count: int | None, later: int | None) -> int | None:
    return count if later is None else later


class _Head(msgspec.Struct):
    """A message without its content."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    usage: _MessagesUsage
    stop_reason: str | None = None
    stop_details: None = None
    container: None = None
    diagnostics: None = None
    input_transformations: list[None] | None = None
    error: None = None


class _Whole(_Head):
    content: list[_Block] = []


class _TextDelta(msgspec.Struct, tag="text_delta"):
    text: str


class _ThinkingDelta(msgspec.Struct, tag="thinking_delta"):
    thinking: str


class _SignatureDelta(msgspec.Struct, tag="signature_delta"):
    signature: str


class _InputDelta(msgspec.Struct, tag="input_json_delta"):
    partial_json: str


class _MessageStart(msgspec.Struct, tag="message_start"):
    message: _Whole


class _BlockStart(msgspec.Struct, tag="content_block_start"):
    index: int
    content_block: _Block


class _BlockDelta(msgspec.Struct, tag="content_block_delta"):
    index: int
    delta: _TextDelta | _ThinkingDelta | _SignatureDelta | _InputDelta


class _BlockStop(msgspec.Struct, tag="content_block_stop"):
    index: int


class _End(msgspec.Struct):
    stop_reason: str | None = None
    stop_details: None = None
    container: None = None


class _MessageDelta(msgspec.Struct, tag="message_delta"):
    delta: _End
    usage: _MessagesUsage
    input_transformations: list[None] | None = None


class _MessageStop(msgspec.Struct, tag="message_stop"):
    pass


class _Ping(msgspec.Struct, tag="ping"):
    pass


_Event: TypeAlias = _MessageStart | _BlockStart | _BlockDelta | _BlockStop | _MessageDelta | _MessageStop | _Ping

_NAMES: Final[Mapping[type[_Event], bytes]] = {
    _MessageStart: b"message_start",
    _BlockStart: b"content_block_start",
    _BlockDelta: b"content_block_delta",
    _BlockStop: b"content_block_stop",
    _MessageDelta: b"message_delta",
    _MessageStop: b"message_stop",
    _Ping: b"ping",
}
"""pydantic-ai's client goes by the name of an event, not by the type in its data."""
_whole = msgspec.json.Decoder(_Whole).decode
_event = msgspec.json.Decoder(_Event).decode


class _Parts:
    """Collects the parts of a reply in their order."""

    def __init__(self, dialect: WireDialect) -> None:
        self._dialect = dialect
        self._texts: list[str] = []
        self._calls: list[ToolCall] = []
        self._echoes: list[Json] = []
        self._is_signed = False

    def text(self, text: str) -> None:
        self._dialect.check_text(text)
        self._texts.append(text)
        self._echoes.append({"part_kind": "text", "content": text})

    def thought(self, text: str, signature: str, *, id: str | None = None) -> None:
        self._is_signed = self._is_signed or bool(signature)
        origin = self._dialect.origin
        own = origin.provider_name if origin else None
        part: JsonObject = {"part_kind": "thinking", "content": text, "signature": signature, "provider_name": own}
        self._echoes.append(part if id is None else {**part, "id": id})

    def call(self, id: str, name: str, arguments: str) -> None:
        call = called(id, name, arguments, self._dialect)
        self._calls.append(call)
        self._echoes.append(
            {"part_kind": "tool-call", "tool_name": call.name, "args": call.arguments, "tool_call_id": call.id}
        )

    def reply(self, head: _Head, usage: _MessagesUsage, stop_reason: str | None) -> ReadReply:
        """Return the reply. Raises `UnfamiliarResponse` if its end, or its signature, is not familiar."""
        finish_reason, origin = _FINISH_REASONS.get(stop_reason or ""), self._dialect.origin
        if finish_reason is None or head.input_transformations or (self._is_signed and origin is None):
            raise UnfamiliarResponse
        raw: JsonObject | None = None
        if self._is_signed and origin is not None:
            raw = {
                "kind": "response",
                "parts": self._echoes,
                "model_name": head.model,
                "provider_name": origin.provider_name,
                "provider_url": origin.provider_url,
                "canonical_system": origin.canonical_system,
                "provider_response_id": head.id,
            }
        text = "".join(self._texts)
        return ReadReply(text, tuple(self._calls), head.model, usage.tokens, finish_reason, raw)


class MessagesFormat:
    """Messages."""

    messages_key = "messages"
    system_key = "system"
    event_names: tuple[bytes, ...] = (b"message_", b"content_block_", b"ping")
    _HEAD: Final = (
        b'{"id":"m","type":"message","role":"assistant","model":"m","content":[%b],"stop_reason":%b,"stop_sequence":null,'
        b'"usage":{"input_tokens":11,"cache_creation_input_tokens":2,"cache_read_input_tokens":3,"output_tokens":%b}}'
    )
    sample_body = _HEAD % (
        (
            b'{"type":"thinking","thinking":"Hm.","signature":"s"},{"type":"redacted_thinking","data":"r"},'
            b'{"type":"text","text":"Fine."},{"type":"tool_use","id":"c1","name":"look","input":{"a":1}}'
        ),
        b'"tool_use"',
        b"7",
    )
    sample_events = b"".join(
        b'event: %b\ndata: {"type":"%b"%b}\n\n' % (name, name, members)
        for name, members in (
            (b"message_start", b',"message":' + _HEAD % (b"", b"null", b"1")),
            (
                b"content_block_start",
                b',"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}',
            ),
            (b"content_block_delta", b',"index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}'),
            (b"content_block_delta", b',"index":0,"delta":{"type":"signature_delta","signature":"s"}'),
            (b"content_block_stop", b',"index":0'),
            (b"content_block_start", b',"index":1,"content_block":{"type":"redacted_thinking","data":"r"}'),
            (b"content_block_stop", b',"index":1'),
            (b"content_block_start", b',"index":2,"content_block":{"type":"text","text":""}'),
            (b"ping", b""),
            (b"content_block_delta", b',"index":2,"delta":{"type":"text_delta","text":"Fi"}'),
            (b"content_block_delta", b',"index":2,"delta":{"type":"text_delta","text":"ne."}'),
            (b"content_block_stop", b',"index":2'),
            (
                b"content_block_start",
                b',"index":3,"content_block":{"type":"tool_use","id":"c1","name":"look","input":{}}',
            ),
            (b"content_block_delta", b',"index":3,"delta":{"type":"input_json_delta","partial_json":"{\\"a\\""}'),
            (b"content_block_delta", b',"index":3,"delta":{"type":"input_json_delta","partial_json":":1}"}'),
            (b"content_block_stop", b',"index":3'),
            (b"message_delta", b',"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":7}'),
            (b"message_stop", b""),
        )
    )

    def dialect(
        self, profile: Mapping[str, Any], sent: Sequence[JsonObject], answer: ModelResponse | None
    ) -> WireDialect:
        match sent:
            case [*_, {"content": [*_, {"cache_control": mark}]}]:
                cache_mark = b',"cache_control":' + _encode(mark)
            case _:
                cache_mark = b""
        origin = None
        if answer is not None and answer.provider_name:
            origin = ReplyOrigin(answer.provider_name, answer.provider_url, answer.canonical_system)
        return WireDialect(
            breaks_special_tokens=bool(profile.get("may_tokenize_special_tokens_in_content", False)),
            cache_mark=cache_mark,
            origin=origin,
        )

    def encode(self, message: Json, dialect: WireDialect) -> bytes | None:
        match role_of(message), message:
            case "assistant", dict():
                raw = message.get("raw")
                return _own_blocks(message) if raw is None else _signed_blocks(raw, dialect)
            case "tool", dict():
                id = text_of(message.get("toolCallId"))
                content: list[Json] = [_text_block(content_of(message))]
                result: JsonObject = {"tool_use_id": id, "type": "tool_result", "content": content, "is_error": False}
                return _encode(result) if id else None
            case ("system", _) | (_, {"content": [*_]}):
                return None
            case _:
                # pydantic-ai leaves out empty texts, and with them the message, if it holds nothing else.
                text = content_of(message)
                return _encode(_text_block(text)) if text else None

    def converted(self, messages: bytes, message: Json) -> bytes | None:
        try:
            found = msgspec.json.decode(messages, type=list[_SentMessage])
        except msgspec.DecodeError:
            return None
        if len(found) != 1 or found[0].role != _side(message):
            return None
        return bytes(found[0].content)[1:-1]

    def leads(self, message: Json, previous: Json) -> tuple[bytes, bytes]:
        side = _side(message)
        opened = b'{"role":"%b","content":[' % side.encode()
        continues = previous is not None and side == "user" == _side(previous)
        return opened, b"," if continues else _CLOSED + b"," + opened

    def joined(self, encoded: bytearray, dialect: WireDialect) -> bytes | None:
        if not encoded:
            return b"[]"
        if not dialect.cache_mark:
            return b"[%b%b]" % (encoded, _CLOSED)
        return b"[%b%b}%b]" % (memoryview(encoded)[:-1], dialect.cache_mark, _CLOSED)

    def read(self, body: bytes, dialect: WireDialect) -> ReadReply:
        found, parts = _whole(body), _Parts(dialect)
        for block in found.content:
            match block:
                case _Text():
                    parts.text(block.text)
                case _Thinking():
                    parts.thought(block.thinking, block.signature)
                case _Redacted():
                    parts.thought("", block.data, id=_REDACTED)
                case _ToolUse():
                    parts.call(block.id, block.name, bytes(block.input).decode())
        return parts.reply(found, found.usage, found.stop_reason)

    def stream(self, dialect: WireDialect) -> StreamReader:
        return _MessageStream(dialect)


class _SentMessage(msgspec.Struct):
    role: str
    content: msgspec.Raw


def _side(message: Json) -> str:
    return "assistant" if role_of(message) == "assistant" else "user"


def _text_block(text: str) -> JsonObject:
    return {"text": text, "type": "text"}


def _call_block(id: str, name: str, arguments: JsonObject) -> JsonObject:
    return {"id": id, "type": "tool_use", "name": name, "input": arguments}


def _own_blocks(message: JsonObject) -> bytes | None:
    text, calls = content_of(message), calls_of(message)
    if not all(call.id for call in calls):
        return None
    blocks: list[JsonObject] = [_text_block(text)] if text else []
    blocks.extend(_call_block(call.id, call.name, call.arguments) for call in calls)
    return b",".join(map(_encode, blocks))


def _signed_blocks(raw: Json, dialect: WireDialect) -> bytes | None:
    """Return the blocks of a reply with signed thoughts. None: another provider signed it, or it has other parts."""
    try:
        echo = msgspec.convert(raw, _Echo)
    except msgspec.ValidationError:
        return None
    origin = dialect.origin
    if origin is None or (echo.provider_name, echo.canonical_system) != (
        origin.provider_name,
        origin.canonical_system,
    ):
        return None
    if (echo.provider_details or {}).get("input_transformations"):
        return None  # It changes the settings of later requests.
    blocks: list[JsonObject] = []
    for part in echo.parts:
        block = _signed_block(part, origin)
        if block is None:
            return None
        blocks.append(block)
    return b",".join(_encode(block) for block in blocks if block)


def _signed_block(part: _EchoPart, origin: ReplyOrigin) -> JsonObject | None:
    """Return the block of a part; empty if the part is not sent. None: only pydantic-ai can convert it."""
    match part.part_kind:
        case "text":
            return _text_block(part.content) if part.content else {}
        case "thinking" if part.signature and part.provider_name == origin.provider_name:
            if part.id == _REDACTED:
                return {"data": part.signature, "type": _REDACTED}
            return {"thinking": part.content, "signature": part.signature, "type": "thinking"} if not part.id else None
        case "tool-call" if part.tool_call_id:
            arguments = _arguments(part.args)
            return None if arguments is None else _call_block(part.tool_call_id, part.tool_name, arguments)
        case _:
            return None


def _arguments(value: JsonObject | str | None) -> JsonObject | None:
    if not isinstance(value, str):
        return value or {}
    try:
        found = decode_json(value or "{}")
    except JsonUnreadable:
        return None
    return found if isinstance(found, dict) else None


class _MessageStream:
    def __init__(self, dialect: WireDialect) -> None:
        self._parts = _Parts(dialect)
        self._head: _Head | None = None
        self._usage = _MessagesUsage()
        self._block: _Block | None = None
        self._index = -1
        self._pieces: list[str] = []
        self._signature = ""
        self._stop_reason: str | None = None
        self._is_complete = False

    def feed(self, event: WireEvent) -> str:
        found = _event(event.data)
        if self._is_complete or event.name != _NAMES[type(found)]:
            raise UnfamiliarResponse
        match found:
            case _Ping():
                pass
            case _MessageStart():
                self._start(found.message)
            case _BlockStart():
                return self._start_block(found)
            case _BlockDelta():
                return self._delta(found)
            case _BlockStop():
                self._stop_block(found.index)
            case _MessageDelta():
                self._finish(found)
            case _:
                self._is_complete = True
        return ""

    def _start(self, message: _Whole) -> None:
        if self._head is not None or message.content or message.stop_reason:
            raise UnfamiliarResponse
        self._head, self._usage = message, message.usage

    def _start_block(self, event: _BlockStart) -> str:
        if self._head is None or self._stop_reason or self._block is not None or event.index <= self._index:
            raise UnfamiliarResponse
        self._block, self._index, self._signature = event.content_block, event.index, ""
        match event.content_block:
            case _Text(text=text):
                return self._piece(text)
            case _Thinking(thinking=text, signature=signature):
                self._signature = signature
                return Thought(self._piece(text))
            case _ToolUse() as call if bytes(call.input) != b"{}":
                raise UnfamiliarResponse  # Arguments usually follow in pieces.
            case _:
                return ""

    def _piece(self, text: str) -> str:
        if text:
            self._pieces.append(text)
        return text

    def _delta(self, event: _BlockDelta) -> str:
        if event.index != self._index:
            raise UnfamiliarResponse
        match self._block, event.delta:
            case _Text(), _TextDelta(text=text):
                return self._piece(text)
            case _Thinking(), _ThinkingDelta(thinking=text):
                return Thought(self._piece(text))
            case _Thinking(), _SignatureDelta(signature=signature) if not self._signature:
                self._signature = signature
            case _ToolUse(), _InputDelta(partial_json=text):
                self._piece(text)
            case _:
                raise UnfamiliarResponse
        return ""

    def _stop_block(self, index: int) -> None:
        if index != self._index:
            raise UnfamiliarResponse
        text = "".join(self._pieces)
        match self._block:
            case _Text():
                if text:
                    self._parts.text(text)
            case _Thinking():
                self._parts.thought(text, self._signature)
            case _Redacted(data=data):
                self._parts.thought("", data, id=_REDACTED)
            case _ToolUse(id=id, name=name):
                self._parts.call(id, name, text)
            case _:
                raise UnfamiliarResponse
        self._block = None
        self._pieces.clear()

    def _finish(self, event: _MessageDelta) -> None:
        if self._head is None or self._block is not None or self._stop_reason or event.input_transformations:
            raise UnfamiliarResponse
        self._stop_reason, self._usage = event.delta.stop_reason, self._usage.updated(event.usage)

    def answer(self) -> ReadReply:
        if self._head is None or not self._is_complete:
            raise UnfamiliarResponse
        return self._parts.reply(self._head, self._usage, self._stop_reason)


MESSAGES: Final[Format] = MessagesFormat()
