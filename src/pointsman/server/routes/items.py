"""Items of OpenAI's Responses as the messages of a dialogue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pointsman.chat.formatting import MessagesInvalid
from pointsman.values import Json, JsonObject

TEXTS: Final = frozenset({"input_text", "output_text", "text"})
"""Parts of content that are text."""


def messages_in(said: str | Sequence[JsonObject]) -> list[JsonObject]:
    """A text is what the user says now. Raises `MessagesInvalid` for items that are neither said nor results."""
    if isinstance(said, str):
        return [{"role": "user", "content": said}]
    return [message for item in said for message in _messages_of(item)]


def _messages_of(item: JsonObject) -> Iterator[JsonObject]:
    match item.get("type") or "message":
        case "message":
            yield {"role": str(item.get("role", "")), "content": _content(item.get("content"))}
        case "function_call":
            yield {"role": "assistant", "content": None}
        case "function_call_output":
            called, result = item.get("call_id", ""), _content(item.get("output"))
            yield {"role": "tool", "tool_call_id": called, "content": result}
        case "reasoning":  # What was told meanwhile; nobody asked for it back.
            return
        case kind:
            hint = "It takes messages, calls of functions and their outputs."
            raise MessagesInvalid(f"an item of the input is {str(kind)[:100]!r}", hint=hint)


def _content(content: Json) -> Json:
    return [_part(one) for one in content] if isinstance(content, list) else content


def _part(part: Json) -> Json:
    if isinstance(part, dict) and part.get("type") in TEXTS:
        return {"type": "text", "text": part.get("text")}
    return part
