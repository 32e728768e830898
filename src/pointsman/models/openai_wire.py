"""The OpenAI API without its SDK: prepared JSON out, replies and streams read directly. Slow to import.

    ModelRequest ─┬─ messages ─ each encoded once ──────┐
                  └─ everything else ─▶ frame (cached) ─┴─▶ body ─▶ HTTP ─▶ reply, or a response for pydantic-ai

The SDK and pydantic-ai convert the whole conversation by reflection for every request. Here a request is the JSON of
its messages inside a frame: address, headers, and all other members of the body. Frames are not written here:
pydantic-ai prepares a sample request with the same tools and settings, which is not sent, and the frame is cut out of
it. So pydantic-ai still decides how a model wants its tools, settings and schemas.

The same sample proves that this module agrees with pydantic-ai about this model: both must encode a sample conversation
alike, and read a sample response alike. Where they do not, pydantic-ai keeps that part of the work. It also reads all
responses that are not plain replies (errors, refusals, signed thoughts), so their meaning is defined in one place.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import httpx2
import msgspec
from msgspec.structs import replace
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import ModelResponse

from pointsman.models.client_warnings import gathering_warnings
from pointsman.models.openai_formats import SPECIAL_TOKEN, Format, ReadReply, UnfamiliarResponse, WireDialect
from pointsman.models.provider_http import ProviderClient, SentRequest, answering_with, expect_stream
from pointsman.models.transcript import role_of, text_of
from pointsman.models.wire import (
    cut_off,
    to_messages,
    to_parameters,
    to_reply,
    to_settings,
    usage_of,
    without_output_tool,
)
from pointsman.ports import EncodedMessages, ModelReply, ModelRequest, TextCallback, Thought
from pointsman.values import Json, JsonObject

if TYPE_CHECKING:
    from pydantic_ai.models import Model

FRAMES_MAX: Final = 128
"""Frames per model. A frame has the size of the tools' schemas."""
_EVENTS: Final = "text/event-stream"
_JSON: Final = "application/json"
_DONE: Final = b"[DONE]"
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
)
"""A conversation with every kind of message that formats encode."""
SAMPLE_REQUEST: Final = ModelRequest(model="", system="Be kind.", messages=[*SAMPLE])
_DROPPED: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})
_CALL_MEMBERS: Final = frozenset({"role", "content", "tool_calls"})
_COMPUTED: Final = frozenset({b"content-length", b"cookie"})


@dataclass(frozen=True, slots=True)
class Frame:
    """A request without its messages."""

    url: httpx2.URL
    headers: httpx2.Headers
    extensions: dict[str, Any]
    options: dict[str, Any]
    """Further arguments of `send`."""
    before: bytes
    after: bytes
    dialect: WireDialect
    reads: bool
    """Whether replies are read here."""
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


class OpenAIWire:
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
        dialect, messages = frame.dialect, request.messages
        if request.system and messages and role_of(messages[0]) == "system":
            return None  # Some models accept only one system message at the beginning.
        encoded = request.encoded or EncodedMessages()
        for message in messages[encoded.begin(messages, dialect) :]:
            if (found := self._encoded(message, dialect)) is None:
                found = await self._converted(message, request)
            if found is None:
                return None
            encoded.add(message, found)
        system = self._format.encode(_system(request.system), dialect) if request.system else None
        parts = [part for part in (system, encoded.joined) if part]
        return PreparedRequest(request, frame, b"".join((frame.before, b",".join(parts), frame.after)))

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
        sample = replace(request, system="", messages=[message])
        sent, _, _ = await self._sampled(sample, streams=False)
        return None if sent is None else sent.messages[1:-1]

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
        sample = replace(request, system=SAMPLE_REQUEST.system, messages=SAMPLE_REQUEST.messages)
        sent, answer, warnings = await self._sampled(sample, streams=streams)
        if sent is None:
            return None
        objects: list[JsonObject] = msgspec.json.decode(sent.messages)
        dialect = self._dialect(objects)
        encoded = [self._format.encode(one, dialect) or b"" for one in (_system(sample.system), *SAMPLE)]
        if msgspec.json.decode(b"[" + b",".join(encoded) + b"]") != objects:
            return None
        reads = self._reads and answer is not None and self._agrees(answer, sample, dialect, streams=streams)
        return Frame(
            url=sent.request.url,
            headers=httpx2.Headers([pair for pair in sent.request.headers.raw if pair[0].lower() not in _COMPUTED]),
            extensions=sent.request.extensions,
            options=sent.options,
            before=sent.before + b"[",
            after=b"]" + sent.after,
            dialect=dialect,
            reads=reads,
            warnings=warnings,
        )

    def _dialect(self, objects: Sequence[JsonObject]) -> WireDialect:
        """Return the dialect that the sample conversation shows, and the model's profile."""
        calls = next((message.items() for message in objects if "tool_calls" in message), ())
        members = [(name, value) for name, value in calls if name not in _CALL_MEMBERS]
        profile = cast("dict[str, Any]", self._model.profile)
        own = profile.get("openai_chat_thinking_field")
        fields = tuple(dict.fromkeys((*([own] if own else ()), *WireDialect().thinking_fields)))
        tags = profile.get("thinking_tags", (WireDialect().thinking_start, ""))
        dialect = WireDialect(
            system_role=text_of(objects[0].get("role")) if objects else "",
            thinking_start=tags[0],
            thinking_fields=fields,
            breaks_special_tokens=bool(profile.get("may_tokenize_special_tokens_in_content", False)),
            ignores_leading_space=bool(profile.get("ignore_streamed_leading_whitespace", False)),
            call_members=tuple((name, value) for name, value in members if isinstance(value, str)),
        )
        # One object per dialect: encoded messages belong to it.
        return self._dialects.setdefault(dialect, dialect)

    def _agrees(self, answer: ModelResponse, sample: ModelRequest, dialect: WireDialect, *, streams: bool) -> bool:
        """Return whether the sample response is read here as pydantic-ai reads it."""
        has_known_fields = {*WireDialect().thinking_fields} >= {*dialect.thinking_fields}
        try:
            if streams:
                reader = self._format.stream(dialect)
                for data in EventLines(self._format.event_names).feed(self._format.sample_events):
                    reader.feed(data)
                found = reader.answer()
            else:
                found = self._format.read(self._format.sample_body, dialect)
        except (UnfamiliarResponse, msgspec.DecodeError):
            return False
        return has_known_fields and self._reply(found, sample) == to_reply(answer, sample)

    async def _sampled(
        self, sample: ModelRequest, *, streams: bool
    ) -> tuple[_RequestParts | None, ModelResponse | None, tuple[str, ...]]:
        """Let pydantic-ai send a request that is answered here. Return the request, the reply and warnings."""
        model, answer = self._model, None
        settings, parameters = to_settings(sample, system=model.system), to_parameters(sample, model)
        body, type = (self._format.sample_events, _EVENTS) if streams else (self._format.sample_body, _JSON)
        stand_in = httpx2.Response(200, headers={"content-type": type}, content=body)
        with answering_with(stand_in) as sent, gathering_warnings() as warnings:
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
        return _RequestParts.of(sent.requests[0], self._format.messages_key), answer, tuple(warnings)

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
        if not frame.reads or not response.is_success or type != (_JSON if on_text is None else _EVENTS):
            return UnreadResponse(response)
        if on_text is not None:
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
        self, response: httpx2.Response, prepared: PreparedRequest, on_text: TextCallback
    ) -> ModelReply | UnreadResponse:
        received, lines, sent_chars = bytearray(), EventLines(self._format.event_names), [0, 0]
        reader, chunks = self._format.stream(prepared.frame.dialect), response.aiter_bytes()

        def unread(rest: AsyncIterator[bytes] | Exception | None) -> UnreadResponse:
            stream = _Resumed(bytes(received), rest, response)
            return UnreadResponse(_again(response, stream=stream), (sent_chars[0], sent_chars[1]))

        try:
            async for chunk in chunks:
                received += chunk
                for data in lines.feed(chunk):
                    if text := reader.feed(data):
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
        return ModelReply(text=text, tool_calls=calls, usage=usage, model=answer.model, warnings=warnings)


@dataclass(frozen=True, slots=True)
class _RequestParts:
    """A sent request, cut at its messages."""

    request: httpx2.Request
    options: dict[str, Any]
    before: bytes
    messages: bytes
    after: bytes

    @classmethod
    def of(cls, request: SentRequest, key: str) -> _RequestParts | None:
        try:
            body = msgspec.json.decode(request.request.content, type=dict[str, msgspec.Raw])
        except msgspec.DecodeError:
            return None
        if not bytes(body.get(key, b"")).startswith(b"["):
            return None
        members = [(name, msgspec.json.encode(name) + b":", bytes(value)) for name, value in body.items()]
        at = [*body].index(key)
        before = b"".join(label + value + b"," for _, label, value in members[:at])
        after = b"".join(b"," + label + value for _, label, value in members[at + 1 :])
        _, label, messages = members[at]
        return cls(request.request, request.options, b"{" + before + label, messages, after + b"}")


class EventLines:
    """Splits a stream into the data of its events."""

    def __init__(self, names: bytes = b"") -> None:
        """`names`: see `Format.event_names`."""
        self._name = b"event: " + names if names else b":"
        self._rest = b""
        self.is_done = False
        """The last event has arrived."""
        self._is_open = False

    def feed(self, chunk: bytes) -> Sequence[bytes]:
        """Return the data of the complete events. Raises `UnfamiliarResponse` for events of other names and for events
        with several lines of data."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        chunks: list[bytes] = []
        for line in lines:
            line = line.rstrip(b"\r")
            if not line:
                self._is_open = False
            elif line.startswith(b"data:") and not self._is_open and b"\r" not in line:
                self._is_open = True
                data = line[5:].strip()
                if data.startswith(_DONE):
                    self.is_done = True
                    break
                chunks.append(data)
            elif not line.startswith((b":", self._name)):
                raise UnfamiliarResponse
        return chunks


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


def _system(text: str) -> JsonObject:
    return {"role": "system", "content": text}
