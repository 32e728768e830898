"""The stored format of conversations: plain objects, independent of providers.

    {"role": "user",      "content": "…"}
    {"role": "assistant", "content": "…", "name": "Writer", "toolCalls": [{"id", "name", "arguments"}], "raw": …}
    {"role": "tool",      "content": "…", "toolCallId": "…", "tool": "web_search", "name": "Writer"}
    {"role": "system",    "content": "…"}
    {"role": "summary",   "content": "…", "name": "Writer", "covers": 12, "upTo": "…"}

`name` is the node that wrote the message. A summary replaces the first `covers` messages for that node only (see
`executors.conversation`). `raw` is the provider's own message if it must be sent back (signed thinking).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from pointsman.engine.reports import ToolCall
from pointsman.ports import ModelReply
from pointsman.values import Json, JsonObject

SUMMARY: Final = "summary"


def user_message(text: str) -> JsonObject:
    return {"role": "user", "content": text}


def assistant_message(reply: ModelReply, *, name: str, calls: Iterable[ToolCall] | None = None) -> JsonObject:
    """Return the message of a reply, with the given calls of the reply (default: all).

    `raw` is included only if no call is left out: providers refuse a message with unanswered calls.
    """
    message: JsonObject = {"role": "assistant", "content": reply.text, "name": name}
    if shown := list(reply.tool_calls if calls is None else calls):
        message["toolCalls"] = [call_to_json(call) for call in shown]
    if reply.raw is not None and len(shown) == len(reply.tool_calls):
        message["raw"] = reply.raw
    return message


def tool_message(call: ToolCall, result: Json, *, name: str) -> JsonObject:
    """Return the message with the result of a tool call. A result that is not text is encoded as JSON."""
    return {"role": "tool", "content": as_text(result), "toolCallId": call.id, "tool": call.name, "name": name}


def call_to_json(call: ToolCall) -> JsonObject:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}


def calls_of(message: Json) -> tuple[ToolCall, ...]:
    """Return the tool calls of a message; empty for other values."""
    listed = message.get("toolCalls") if isinstance(message, dict) else None
    if not isinstance(listed, list):
        return ()
    return tuple(call for item in listed if (call := read_call(item)) is not None)


def read_call(value: Json) -> ToolCall | None:
    """Return a tool call from its JSON; None if it has no name."""
    if not isinstance(value, dict) or not isinstance(name := value.get("name"), str):
        return None
    arguments = value.get("arguments")
    return ToolCall(id=text_of(value.get("id")), name=name, arguments=arguments if isinstance(arguments, dict) else {})


def role_of(message: Json) -> str:
    return text_of(message.get("role")) if isinstance(message, dict) else ""


def content_of(message: Json) -> str:
    """Return the text of a message; the texts of a list of parts are joined."""
    content = message.get("content") if isinstance(message, dict) else message
    if isinstance(content, list):
        return "".join(text_of(part.get("text")) if isinstance(part, dict) else as_text(part) for part in content)
    return as_text(content)


def as_seen_by(name: str, messages: Iterable[Json]) -> list[JsonObject]:
    """Return the conversation for one node: its own turns unchanged, those of other nodes as messages of the user.

    A model takes every `assistant` turn for its own, and providers refuse calls of tools that were not offered and
    unanswered calls. Turns of other nodes therefore become text, and the node's unanswered calls are left out.
    """
    listed = list(messages)
    answered = {text_of(message.get("toolCallId")) for message in listed if isinstance(message, dict)} - {""}
    own_calls: set[str] = set()
    transcript: list[JsonObject] = []
    for message in listed:
        if not isinstance(message, dict):
            transcript.append(user_message(as_text(message)))
            continue
        speaker = text_of(message.get("name"))
        match role_of(message):
            case "assistant" if speaker in ("", name):
                calls = [call for call in calls_of(message) if call.id in answered]
                own_calls.update(call.id for call in calls)
                transcript.extend(_own_turn(message, calls))
            case "tool" if text_of(message.get("toolCallId")) in own_calls:
                transcript.append(message)
            case "summary":
                pass
            case "assistant" | "tool":
                transcript.extend(_remark(message, speaker))
            case _:
                transcript.append(message)
    return transcript


def _own_turn(message: JsonObject, calls: list[ToolCall]) -> list[JsonObject]:
    dropped = ("toolCalls",) if len(calls) == len(calls_of(message)) else ("toolCalls", "raw")
    turn = {key: value for key, value in message.items() if key not in dropped}
    if calls:
        turn["toolCalls"] = [call_to_json(call) for call in calls]
    return [turn] if calls or content_of(message) else []


def _remark(message: JsonObject, speaker: str) -> list[JsonObject]:
    if role_of(message) == "tool":
        text = f"{text_of(message.get('tool'))} answered: {content_of(message)}"
    else:
        text = content_of(message)
    return [user_message(f"[{speaker}] {text}" if speaker else text)] if text else []


def text_of(value: Json) -> str:
    """Return the value if it is text, else an empty string."""
    return value if isinstance(value, str) else ""


def as_text(value: Json) -> str:
    """Return text unchanged, other values as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
