"""Parts common to the formats of the direct wire: their protocol, the dialect of a model, and replies as read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from pointsman.engine.reports import ToolCall
from pointsman.json_meter import JsonUnreadable, decode_json
from pointsman.values import Json, JsonObject

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

_ZERO_WIDTH: Final = re.compile("[\u200b-\u200d\u2060\ufeff]|\\\\u(?:200[b-d]|2060|feff)", re.IGNORECASE)
"""Characters by which special tokens are broken up, and which pydantic-ai removes from replies."""


class UnfamiliarResponse(Exception):
    """Raised for a response that only the provider's client reads."""


@dataclass(frozen=True, slots=True)
class ReplyOrigin:
    """The provider that signs the thoughts of a model's replies, and accepts them again."""

    provider_name: str
    provider_url: str | None
    canonical_system: str | None


@dataclass(frozen=True, slots=True)
class WireDialect:
    """How one model deviates from the format, as far as requests and replies depend on it."""

    system_role: str = "system"
    thinking_start: str = "<think>"
    thinking_fields: tuple[str, ...] = ("reasoning", "reasoning_content")
    """Fields for thoughts; the first that has text counts."""
    breaks_special_tokens: bool = False
    ignores_leading_space: bool = False
    call_members: tuple[tuple[str, Json], ...] = ()
    """Further members of messages with tool calls, which are always the same: some models want `reasoning_content`."""
    cache_mark: bytes = b""
    """Member of the last block of a conversation, with a comma before it; empty: no block is marked."""
    origin: ReplyOrigin | None = None
    """None: pydantic-ai sends conversations with signed thoughts."""

    def check_text(self, text: str) -> None:
        """Raise `UnfamiliarResponse` for text that the provider's client changes."""
        if self.breaks_special_tokens and not text.isascii() and _ZERO_WIDTH.search(text):
            raise UnfamiliarResponse


class TokenCounts(NamedTuple):
    """Tokens that a provider counted."""

    input: int = 0
    """With those of the cache."""
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


class ReadReply(NamedTuple):
    """A reply, as far as it is familiar."""

    text: str
    calls: tuple[ToolCall, ...]
    model: str
    """Empty: the response does not name it."""
    tokens: TokenCounts
    finish_reason: str = ""
    """Why the answer ends: `length`, or as the service reports it."""
    raw: JsonObject | None = None
    """See `ModelReply.raw`."""


class WireEvent(NamedTuple):
    """An event of a stream."""

    name: bytes
    """Empty: it has none."""
    data: bytes


class StreamReader(Protocol):
    """Reads the events of one stream."""

    def feed(self, event: WireEvent) -> str:
        """Read an event and return its text; a `Thought` for thoughts, empty for other events.

        Raises `UnfamiliarResponse`, `msgspec.DecodeError`.
        """
        ...

    def answer(self) -> ReadReply:
        """Return the reply after the last event. Raises `UnfamiliarResponse` if it is incomplete."""
        ...


class Format(Protocol):
    """A format of a provider's API."""

    messages_key: str
    """Member of a request that holds the conversation."""
    system_key: str
    """Member of a request that holds the system prompt; empty: it is the first message."""
    event_names: tuple[bytes, ...]
    """Beginnings of the names of events in a stream; empty: events have no names."""
    sample_body: bytes
    """A whole response with text, a thought, a tool call and usage."""
    sample_events: bytes
    """The same as a stream."""

    def dialect(
        self, profile: Mapping[str, Any], sent: Sequence[JsonObject], answer: ModelResponse | None
    ) -> WireDialect:
        """Return the dialect that a model's profile, the sent sample conversation and the reply to it show."""
        ...

    def encode(self, message: Json, dialect: WireDialect) -> bytes | None:
        """Return the JSON of a message, as a part of the conversation; empty if it is not sent.

        None: only pydantic-ai can convert it.
        """
        ...

    def converted(self, messages: bytes, message: Json) -> bytes | None:
        """Return the same from a list that holds only this message as pydantic-ai converts it."""
        ...

    def leads(self, message: Json, previous: Json) -> tuple[bytes, bytes]:
        """Return what precedes a message at the beginning of the conversation, and after the `previous` message."""
        ...

    def joined(self, encoded: bytearray, dialect: WireDialect) -> bytes | None:
        """Return the encoded messages as the list of the request. None: only pydantic-ai can send them."""
        ...

    def read(self, body: bytes, dialect: WireDialect) -> ReadReply:
        """Read a whole response. Raises `UnfamiliarResponse`, `msgspec.DecodeError`."""
        ...

    def stream(self, dialect: WireDialect) -> StreamReader: ...


def called(id: str | None, name: str | None, arguments: str | None, dialect: WireDialect) -> ToolCall:
    """Return a tool call. Raises `UnfamiliarResponse` where something is missing or wrong."""
    if not id or not name:
        raise UnfamiliarResponse
    dialect.check_text(name)
    if arguments and dialect.breaks_special_tokens and _ZERO_WIDTH.search(arguments):
        raise UnfamiliarResponse
    try:
        value = decode_json(arguments or "{}")
    except JsonUnreadable as why:
        raise UnfamiliarResponse from why
    if not isinstance(value, dict):
        raise UnfamiliarResponse
    return ToolCall(id=id, name=name, arguments=value)
