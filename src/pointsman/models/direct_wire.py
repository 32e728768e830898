"""Models without the SDKs of their providers: prepared JSON out, replies and streams read directly. Slow to import.

    ModelRequest ─┬─ messages ─ each encoded once ──────┐
                  └─ everything else ─▶ frame (cached) ─┴─▶ body ─▶ HTTP ─▶ reply, or a response for pydantic-ai

SDKs and pydantic-ai convert the whole conversation by reflection for every request. Here a request is the JSON of
its messages inside a frame: address, headers, and all other members of the body. The formats are in `openai_formats`
and `anthropic_format`. Frames are not written here:
pydantic-ai prepares a sample request with the same tools and settings, which is not sent, and the frame is cut out of
it. So pydantic-ai still decides how a model wants its tools, settings and schemas.

The same sample proves that this module agrees with pydantic-ai about this model: both must encode a sample conversation
alike, and read a sample response alike. Where they do not, pydantic-ai keeps that part of the work. It also reads all
responses that are not plain replies (errors, refusals, citations), so their meaning is defined in one place.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import httpx2
import msgspec
from msgspec.structs import replace
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import ModelResponse

from pointsman.models.client_warnings import gathering_warnings
from pointsman.models.openai_formats import SPECIAL_TOKEN
from pointsman.models.provider_http import ProviderClient, SentRequest, answering_with, expect_stream
from pointsman.models.transcript import assistant_message, role_of, tool_message, user_message
from pointsman.models.wire import (
    cut_off,
    to_messages,
    to_parameters,
    to_reply,
    to_settings,
    usage_of,
    without_output_tool,
)
from pointsman.models.wire_format import Format, ReadReply, UnfamiliarResponse, WireDialect, WireEvent
from pointsman.ports import EncodedMessages, ModelReply, ModelRequest, TextCallback, Thought
from pointsman.values import Json, JsonObject

if TYPE_CHECKING:
    from pydantic_ai.models import Model

FRAMES_MAX: Final = 128
"""Frames per model. A frame has the size of the tools' schemas."""
_EVENTS: Final = "text/event-stream"
_JSON: Final = "application/json"
_DONE: Final = b"[DONE]"
_NAME: Final = b"event: "
_DRAIN_S: Final = 1.0
"""Wait for the end of a response whose last event has arrived; then its connection can be used again."""

SAMPLE: Final[tuple[JsonObject, ...]] = (
    {"role": "user", "content": "Ask."},
    {
        "role": "assistant",
        "content": "",
        "toolCalls": [
            {"id": "c1", "name": "look", "arguments": {"at": [1, 2.5, None, "é"]}},
            {"id": "c2", "name": "look", "arguments": {}},
        ],
    },
    {"role": "tool", "content": "seen", "toolCallId": "c1", "tool": "look"},
    {"role": "tool", "content": '{"n": 1}', "toolCallId": "c2", "tool": "look"},
    {"role": "assistant", "content": "Said.", "toolCalls": [{"id": "c3", "name": "look", "arguments": {"at": "x"}}]},
    {"role": "tool", "content": "", "toolCallId": "c3", "tool": "look"},
    {"role": "assistant", "content": "Done."},
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Go on."},
    {"role": "user", "content": "Please."},
)
"""A conversation with every kind of message that formats encode."""
_SAMPLE_SYSTEM: Final = "Be kind."
_DROPPED: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})
_COMPUTED: Final = frozenset({b"content-length", b"cookie"})


class FrameBody(NamedTuple):
    """The body of a request, cut at the messages and, where it is a member of its own, at the system prompt."""

    before: bytes
    after: bytes
    """What follows the messages, or lies between them and the system prompt."""
    system_start: bytes = b""
    system_end: bytes = b""
    rest: bytes = b""

    def filled(self, messages: bytes, system: str) -> bytes:
        """Return the whole body. An empty system prompt is left out."""
        text = (self.system_start, msgspec.json.encode(system), self.system_end) if self.system_start and system else ()
        return b"".join((self.before, messages, self.after, *text, self.rest))


@dataclass(frozen=True, slots=True)
class Frame:
    """A request without its messages."""

    url: httpx2.URL
    headers: httpx2.Headers
    extensions: dict[str, Any]
    options: dict[str, Any]
    """Further arguments of `send`."""
    body: FrameBody
    dialect: WireDialect
    reads: bool
    """Whether replies are read here."""
    streams: bool
    """Whether the response is a stream. pydantic-ai streams long answers also if the caller does not."""
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request that can be sent."""

    request: ModelRequest
    frame: Frame
    body: bytes


@dataclass(frozen=True, slots=True)
class UnreadResponse:
    """A response, or the error instead of one, that pydantic-ai must read."""

    answer: httpx2.Response | Exception
    sent_chars: tuple[int, int] = (0, 0)
    """Characters of text and of thoughts that have been streamed."""

    def resumed(self, on_text: TextCallback | None) -> TextCallback | None:
        """Return a listener that leaves out what has been streamed."""
        if on_text is None or not any(self.sent_chars):
            return on_text
        left = [*self.sent_chars]

        def on_new_text(text: str, /) -> None:
            kind = isinstance(text, Thought)
            skipped = min(left[kind], len(text))
            left[kind] -= skipped
            if rest := str(text)[skipped:]:
                on_text(Thought(rest) if kind else rest)

        return on_new_text


class DirectWire:
    """Sends the requests of one model with one key."""

    def __init__(self, model: Model, client: ProviderClient, format: Format, *, reads: bool) -> None:
        """`reads`: whether the model's replies have no form of their own."""
        self._model = model
        self._client = client
        self._format = format
        self._reads = reads
        self._frames: dict[bytes, Frame | None] = {}
        self._dialects: dict[WireDialect, WireDialect] = {}
        self._learning = asyncio.Lock()

    async def prepared(self, request: ModelRequest, *, streams: bool) -> PreparedRequest | None:
        """Return the request as it is sent; None: pydantic-ai must send it."""
        frame = await self._frame(request, streams=streams)
        if frame is None:
            return None
        messages = request.messages
        if request.system and messages and role_of(messages[0]) == "system":
            return None  # Some models accept only one system message at the beginning.
        encoded = request.encoded or EncodedMessages()
        if not await self._add(encoded, request, frame.dialect):
            return None
        body = self._body(frame.body, encoded, request.system, frame.dialect)
        return None if body is None else PreparedRequest(request, frame, body)

    async def _add(self, encoded: EncodedMessages, request: ModelRequest, dialect: WireDialect) -> bool:
        """Encode the messages that are new since the request before. Return False if only pydantic-ai can."""
        for message in request.messages[encoded.begin(request.messages, dialect) :]:
            if (found := self._encoded(message, dialect)) is None:
                found = await self._converted(message, request)
            if found is None:
                return False
            first, between = self._format.leads(message, encoded.last)
            encoded.add(message, found, first=first, between=between)
        return True

    def _body(self, frame: FrameBody, encoded: EncodedMessages, system: str, dialect: WireDialect) -> bytes | None:
        """Return the body of a request. None: pydantic-ai must send it."""
        joined = encoded.joined
        if system and not self._format.system_key:
            first = self._format.encode({"role": "system", "content": system}, dialect) or b""
            joined = bytearray(b",".join((first, joined)) if joined else first)
        messages = self._format.joined(joined, dialect)
        return None if messages is None else frame.filled(messages, system)

    def _encoded(self, message: Json, dialect: WireDialect) -> bytes | None:
        """Return the JSON of one message; None: pydantic-ai must convert it."""
        try:
            found = self._format.encode(message, dialect)
        except (ValueError, OverflowError):  # A lone surrogate, a number that is too large.
            return None
        return None if found and dialect.breaks_special_tokens and SPECIAL_TOKEN.search(found) else found

    async def _converted(self, message: Json, request: ModelRequest) -> bytes | None:
        """Return the JSON of one message as pydantic-ai converts it; None: it depends on other messages."""
        if isinstance(message, dict) and message.get("raw") is not None:
            return None
        if self._format.system_key and role_of(message) == "system":
            return None
        sample = replace(request, system="", messages=[message])
        sent, _, _ = await self._sampled(sample, streams=False)
        return None if sent is None else self._format.converted(sent.messages, message)

    async def _frame(self, request: ModelRequest, *, streams: bool) -> Frame | None:
        key = msgspec.json.encode(
            (streams, request.tools, request.output_schema, request.temperature, request.max_tokens, request.thinking)
        )
        if key not in self._frames:
            async with self._learning:
                if key not in self._frames:
                    if len(self._frames) >= FRAMES_MAX:
                        del self._frames[next(iter(self._frames))]
                    self._frames[key] = await self._learned(request, streams=streams)
        return self._frames[key]

    async def _learned(self, request: ModelRequest, *, streams: bool) -> Frame | None:
        """Return the frame for the tools and settings of a request; None: its messages are not as expected."""
        messages = [one for one in SAMPLE if not (self._format.system_key and role_of(one) == "system")]
        sample = replace(request, system=_SAMPLE_SYSTEM, messages=messages)
        sent, answer, warnings = await self._sampled(sample, streams=streams)
        if sent is None:
            return None
        objects: list[JsonObject] = msgspec.json.decode(sent.messages)
        profile = cast("dict[str, Any]", self._model.profile)
        dialect = self._format.dialect(profile, objects, answer)
        if not self._sends(sent, sample, dialect):
            return None
        reads = False
        if self._reads and answer is not None and (sent.streams or not streams):
            ours, theirs = self._sample_reply(sample, dialect, streams=sent.streams), to_reply(answer, sample)
            reads = ours is not None and self._agrees(ours, theirs, dialect)
            if reads and ours is not None and dialect.origin is not None:
                reads = await self._echoes(ours, sample, dialect)
        if not reads:
            dialect = dataclasses.replace(dialect, origin=None)
        return Frame(
            url=sent.request.url,
            headers=httpx2.Headers([pair for pair in sent.request.headers.raw if pair[0].lower() not in _COMPUTED]),
            extensions=sent.request.extensions,
            options=sent.options,
            body=sent.body,
            # One object per dialect: encoded messages belong to it.
            dialect=self._dialects.setdefault(dialect, dialect),
            reads=reads,
            streams=sent.streams,
            warnings=warnings,
        )

    def _sends(self, sent: _RequestParts, sample: ModelRequest, dialect: WireDialect) -> bool:
        """Return whether a sample is encoded here as pydantic-ai encodes it."""
        encoded = EncodedMessages()
        for message in sample.messages:
            found = self._format.encode(message, dialect)
            if found is None:
                return False
            first, between = self._format.leads(message, encoded.last)
            encoded.add(message, found, first=first, between=between)
        body = self._body(sent.body, encoded, sample.system, dialect)
        return body is not None and msgspec.json.decode(body) == msgspec.json.decode(sent.request.content)

    async def _echoes(self, reply: ModelReply, sample: ModelRequest, dialect: WireDialect) -> bool:
        """Return whether a reply with signed thoughts is sent back as pydantic-ai sends it."""
        results = [tool_message(call, "seen", name="") for call in reply.tool_calls]
        sample = replace(sample, messages=[user_message("Ask."), assistant_message(reply, name=""), *results])
        sent, _, _ = await self._sampled(sample, streams=False)
        return sent is not None and self._sends(sent, sample, dialect)

    def _sample_reply(self, sample: ModelRequest, dialect: WireDialect, *, streams: bool) -> ModelReply | None:
        """Return the sample response as it is read here; None: it cannot be read."""
        format = self._format
        try:
            if not streams:
                return self._reply(format.read(format.sample_body, dialect), sample)
            reader = format.stream(dialect)
            for event in EventLines(format.event_names).feed(format.sample_events):
                reader.feed(event)
            return self._reply(reader.answer(), sample)
        except (UnfamiliarResponse, msgspec.DecodeError):
            return None

    def _agrees(self, ours: ModelReply, theirs: ModelReply, dialect: WireDialect) -> bool:
        """Return whether the sample response is read here as pydantic-ai reads it. What is sent back must be alike."""
        if not {*WireDialect().thinking_fields} >= {*dialect.thinking_fields}:
            return False
        if dialect.origin is None:
            return ours == theirs
        echoes = [self._format.encode(assistant_message(reply, name=""), dialect) for reply in (ours, theirs)]
        return None not in echoes and echoes[0] == echoes[1] and replace(ours, raw=None) == replace(theirs, raw=None)

    async def _sampled(
        self, sample: ModelRequest, *, streams: bool
    ) -> tuple[_RequestParts | None, ModelResponse | None, tuple[str, ...]]:
        """Let pydantic-ai send a request that is answered here. Return the request, the reply and warnings."""
        model, answer = self._model, None
        settings, parameters = to_settings(sample, system=model.system), to_parameters(sample, model)
        with answering_with(self._sample_response) as sent, gathering_warnings() as warnings:
            try:
                if streams:
                    async with model_request_stream(
                        model, to_messages(sample), model_settings=settings, model_request_parameters=parameters
                    ) as stream:
                        async for _ in stream:
                            pass
                        answer = stream.get()
                else:
                    answer = await model_request(
                        model, to_messages(sample), model_settings=settings, model_request_parameters=parameters
                    )
            except Exception:  # Third-party code. The request itself fails likewise, and its error is reported.
                answer = None
        if len(sent.requests) != 1:
            return None, None, ()
        return _RequestParts.of(sent.requests[0], self._format, sample.system), answer, tuple(warnings)

    def _sample_response(self, request: httpx2.Request) -> httpx2.Response:
        body, type = (
            (self._format.sample_events, _EVENTS) if _wants_stream(request) else (self._format.sample_body, _JSON)
        )
        return httpx2.Response(200, headers={"content-type": type}, content=body)

    async def send(self, prepared: PreparedRequest, on_text: TextCallback | None) -> ModelReply | UnreadResponse:
        """Send a request and return the reply, or the response if pydantic-ai must read it."""
        frame = prepared.frame
        if on_text is not None:
            expect_stream()
        request = self._request(frame, prepared.body)
        try:
            response = await self._client.send(request, **frame.options)
        except Exception as why:  # pydantic-ai names it.
            return UnreadResponse(why)
        type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not frame.reads or not response.is_success or type != (_EVENTS if frame.streams else _JSON):
            return UnreadResponse(response)
        if frame.streams:
            return await self._streamed(response, prepared, on_text)
        try:
            return self._reply(self._format.read(response.content, frame.dialect), prepared.request, frame)
        except (UnfamiliarResponse, msgspec.DecodeError):
            return UnreadResponse(_again(response, content=response.content))

    def _request(self, frame: Frame, body: bytes) -> httpx2.Request:
        if self._client.cookies:  # Set by an earlier response: the client adds them.
            return self._client.build_request(
                "POST", frame.url, headers=frame.headers, content=body, extensions=frame.extensions
            )
        return httpx2.Request("POST", frame.url, headers=frame.headers, content=body, extensions=frame.extensions)

    async def _streamed(
        self, response: httpx2.Response, prepared: PreparedRequest, on_text: TextCallback | None
    ) -> ModelReply | UnreadResponse:
        received, lines, sent_chars = bytearray(), EventLines(self._format.event_names), [0, 0]
        reader, chunks = self._format.stream(prepared.frame.dialect), response.aiter_bytes()

        def unread(rest: AsyncIterator[bytes] | Exception | None) -> UnreadResponse:
            stream = _Resumed(bytes(received), rest, response)
            return UnreadResponse(_again(response, stream=stream), (sent_chars[0], sent_chars[1]))

        try:
            async for chunk in chunks:
                received += chunk
                for event in lines.feed(chunk):
                    if (text := reader.feed(event)) and on_text is not None:
                        sent_chars[isinstance(text, Thought)] += len(text)
                        on_text(text)
                if lines.is_done:
                    break
            reply = self._reply(reader.answer(), prepared.request, prepared.frame)
        except (UnfamiliarResponse, msgspec.DecodeError):
            return unread(chunks)
        except httpx2.HTTPError as why:
            return unread(why)
        except BaseException:
            await response.aclose()
            raise
        await _drain(response, chunks)
        return reply

    def _reply(self, answer: ReadReply, request: ModelRequest, frame: Frame | None = None) -> ModelReply:
        text, calls = without_output_tool(answer.text, answer.calls, request)
        if not answer.model or not (text or calls):
            raise UnfamiliarResponse
        tokens = answer.tokens
        usage = usage_of(
            self._model.system,
            answer.model,
            input_tokens=tokens.input,
            output_tokens=tokens.output,
            cache_read_tokens=tokens.cache_read,
            cache_write_tokens=tokens.cache_write,
        )
        warnings = cut_off(answer.finish_reason, request)
        if frame is not None:
            warnings = (*frame.warnings, *warnings)
        return ModelReply(
            text=text, tool_calls=calls, usage=usage, model=answer.model, raw=answer.raw, warnings=warnings
        )


@dataclass(frozen=True, slots=True)
class _RequestParts:
    """A sent request, cut into frame and messages."""

    request: httpx2.Request
    options: dict[str, Any]
    body: FrameBody
    messages: bytes
    streams: bool
    """Whether it asks for a stream."""

    @classmethod
    def of(cls, request: SentRequest, format: Format, system: str) -> _RequestParts | None:
        """Cut a request with this system prompt. Return None if it has another form."""
        try:
            body = msgspec.json.decode(request.request.content, type=dict[str, msgspec.Raw])
        except msgspec.DecodeError:
            return None
        members = {name: bytes(value) for name, value in body.items()}
        messages = members.get(format.messages_key, b"")
        if not messages.startswith(b"["):
            return None
        labelled = {name: b",%b:%b" % (msgspec.json.encode(name), value) for name, value in members.items()}
        at = [*members].index(format.messages_key)
        label = b",%b:" % msgspec.json.encode(format.messages_key)
        before = b"{" + (b"".join([*labelled.values()][:at]) + label)[1:]
        following = {name: labelled[name] for name in [*members][at + 1 :]}
        frame = FrameBody(before, b"".join(following.values()) + b"}")
        if format.system_key and system:
            text = msgspec.json.encode(system)
            if following.get(format.system_key, b"").count(text) != 1:
                return None
            start, _, end = following[format.system_key].partition(text)
            place, parts = [*following].index(format.system_key), [*following.values()]
            frame = FrameBody(before, b"".join(parts[:place]), start, end, b"".join(parts[place + 1 :]) + b"}")
        return cls(request.request, request.options, frame, messages, _wants_stream(request.request))


def _wants_stream(request: httpx2.Request) -> bool:
    try:
        return msgspec.json.decode(request.content, type=_Streaming).stream is True
    except msgspec.DecodeError:
        return False


class _Streaming(msgspec.Struct):
    stream: bool | None = None


class EventLines:
    """Splits a stream into its events."""

    def __init__(self, names: tuple[bytes, ...] = ()) -> None:
        """`names`: see `Format.event_names`."""
        self._names = tuple(_NAME + name for name in names) or (b":",)
        self._rest = b""
        self.is_done = False
        """The last event has arrived."""
        self._is_open = False
        self._name = b""

    def feed(self, chunk: bytes) -> Sequence[WireEvent]:
        """Return the complete events. Raises `UnfamiliarResponse` for events of other names and for events with several
        lines of data."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        events: list[WireEvent] = []
        for line in lines:
            line = line.rstrip(b"\r")
            if not line:
                self._is_open, self._name = False, b""
            elif line.startswith(b"data:") and not self._is_open and b"\r" not in line:
                self._is_open = True
                data = line[5:].strip()
                if data.startswith(_DONE):
                    self.is_done = True
                    break
                events.append(WireEvent(self._name, data))
            elif line.startswith(self._names):
                self._name = line[len(_NAME) :].strip() if line.startswith(_NAME) else self._name
            elif not line.startswith(b":"):
                raise UnfamiliarResponse
        return events


class _Resumed(httpx2.AsyncByteStream):
    """A stream from its beginning: what was received, then the rest or the error."""

    def __init__(
        self, received: bytes, rest: AsyncIterator[bytes] | Exception | None, response: httpx2.Response
    ) -> None:
        self._received, self._rest, self._response = received, rest, response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._received:
            yield self._received
        if isinstance(self._rest, Exception):
            raise self._rest
        if self._rest is not None:
            async for chunk in self._rest:
                yield chunk

    async def aclose(self) -> None:
        await self._response.aclose()


def _again(
    response: httpx2.Response, *, content: bytes | None = None, stream: httpx2.AsyncByteStream | None = None
) -> httpx2.Response:
    """Return a response whose body has been read and unpacked, to be read once more."""
    headers = [(name, value) for name, value in response.headers.multi_items() if name not in _DROPPED]
    return httpx2.Response(
        response.status_code, headers=headers, content=content, stream=stream, extensions=response.extensions
    )


async def _drain(response: httpx2.Response, chunks: AsyncIterator[bytes]) -> None:
    """Read the end of a response, so that its connection can be used again, and close it."""
    try:
        async with asyncio.timeout(_DRAIN_S):
            async for _ in chunks:
                pass
    except (TimeoutError, httpx2.HTTPError):
        pass  # The reply is complete.
    finally:
        await response.aclose()
