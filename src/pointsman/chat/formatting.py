"""Formatting: conversion of gates, answers and client-tool calls to plain messages, and back."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple, TypeAlias

from pointsman.definition.reading.results import standard
from pointsman.engine.decide.human_task_answers import EDIT
from pointsman.errors import CallerError
from pointsman.executions.children import OpenGate
from pointsman.json_meter import JsonUnreadable, decode_json
from pointsman.values import ExecutionId, Json, JsonObject

EXECUTION: Final = r"[A-Za-z0-9][\w.:-]{0,99}"
REFERENCE: Final = re.compile(rf"\n*\[//\]: # \(({EXECUTION})(?:~([0-9a-f]+))?\)\s*$")
"""A Markdown link definition without a use, which renders as nothing."""
CALL: Final = re.compile(rf"({EXECUTION})~(\d{{1,9}})~([0-9a-f]{{8}})")
SHOWN_CHARS: Final = 4000
BEHIND: Final = re.compile(r"[ \t]*[:,;.!\n–—-]+\s*")
"""Separators between an action and a comment."""


class MessagesInvalid(CallerError):
    """The messages are not a conversation that can be continued."""

    code: ClassVar[str] = "messages-invalid"


class ClientToolCall(NamedTuple):
    """A call for the client to execute."""

    id: str
    name: str
    arguments: str


Calls: TypeAlias = tuple[ClientToolCall, ...]


class Reference(NamedTuple):
    """The parts of a call id."""

    execution: ExecutionId
    number: str
    mark: str


class ParsedAnswer(NamedTuple):
    """An answer to a gate."""

    action: str
    data: Json = None
    comment: str = ""
    digest: str = ""
    """Digest of the data that the person saw; empty if the message does not contain it."""


def text_of(message: JsonObject) -> str:
    """Return the text of a message, from a string or text parts. Raises `MessagesInvalid` for any other content."""
    content = message.get("content")
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts: list[str] = []
    for part in parts:
        if not isinstance(part, dict) or part.get("type") != "text" or not isinstance(part.get("text"), str):
            kind = part.get("type") if isinstance(part, dict) else type(part).__name__
            raise MessagesInvalid(f"a message has a part of type {kind!r}", hint="Only text parts are supported.")
        texts.append(str(part["text"]))
    return "\n".join(texts)


def history_of(messages: Sequence[JsonObject]) -> list[Json]:
    """Return the messages of users and assistants. System prompts are the workflow's own, and tool messages belong to
    its steps."""
    turns = [message for message in messages if message.get("role") in ("user", "assistant")]
    texts = [(str(turn["role"]), REFERENCE.sub("", text_of(turn))) for turn in turns]
    return [{"role": role, "content": text} for role, text in texts if text]


def spoken_messages(messages: Json) -> list[Json]:
    """Return the messages of users and assistants among those of an execution."""
    objects = [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []
    turns = [one for one in objects if one.get("role") in ("user", "assistant") and isinstance(one.get("content"), str)]
    return [{"role": turn["role"], "content": turn["content"]} for turn in turns if turn["content"]]


def output_text(output: Json) -> str:
    """Return a text unchanged, any other value as JSON."""
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, indent=2)


def with_reference(execution: ExecutionId, text: str, digest: str = "") -> str:
    """Return the text with a reference to its execution, and to the data of a gate."""
    return f"{text.rstrip()}\n\n[//]: # ({execution}{f'~{digest}' if digest else ''})"


def reference_in(message: JsonObject) -> ExecutionId | None:
    """Return the execution that asked, if the message is a question."""
    match = REFERENCE.search(text_of(message))
    return None if match is None else ExecutionId(match[1])


def digest_in(message: JsonObject) -> str:
    """Return the digest of the data in a question; empty if it has none."""
    match = REFERENCE.search(text_of(message))
    return "" if match is None else match[2] or ""


def question(execution: ExecutionId, gate: OpenGate) -> str:
    """Return the question of a gate: its message, its data, and the possible answers."""
    open_gate = gate.at.gate
    assert open_gate is not None
    parts = [open_gate.message]
    if open_gate.displayed not in (None, {}, [], ""):
        parts.append(
            _cut(
                open_gate.displayed
                if isinstance(open_gate.displayed, str)
                else f"```json\n{output_text(open_gate.displayed)}\n```"
            )
        )
    options = [
        f"- `{_value(option)}`" + (f" ({option['label']})" if option.get("label") else "")
        for option in open_gate.options
    ]
    if options:
        parts.append("Answer with one of:\n" + "\n".join(options))
    if open_gate.about == "calls":
        each = ", ".join(f'"{call.number}": true' for call in open_gate.calls)
        parts.append(
            f'To decide on each call: `{{"action": "edit", "data": {{{each}}}}}`, where `false` skips a call, '
            "and an object makes it with other arguments."
        )
    if open_gate.form is not None:
        parts.append('It takes data: `{"action": …, "data": {…}}`.')
    elif open_gate.editable and any(_value(option) == EDIT for option in open_gate.options):
        fields = ", ".join(f'"{".".join(map(str, path))}": …' for path in open_gate.editable)
        parts.append(f'To edit: `{{"action": "edit", "data": {{{fields}}}}}`.')
    return with_reference(execution, "\n\n".join(part for part in parts if part), open_gate.digest)


def answer_in(gate: OpenGate, text: str) -> ParsedAnswer | None:
    """Parse an answer to a gate: an action by its value or label, optionally with a comment after a colon, a dash, a
    line break or another separator; or an object with `action`, `data`, `comment`, `digest`. None: no offered action.

    "approve nothing of this" is not an approval with a comment.
    """
    open_gate = gate.at.gate
    assert open_gate is not None
    stripped = text.strip()
    if stripped.startswith("{"):
        return _object_in(stripped)
    names = {
        str(name).casefold(): _value(option)
        for option in open_gate.options
        for name in (option.get("label"), _value(option))
        if name
    }
    for name in sorted(names, key=len, reverse=True):
        behind = stripped[len(name) :]
        sign = BEHIND.match(behind)
        if stripped.casefold().startswith(name) and (sign is not None or not behind.strip()):
            return ParsedAnswer(names[name], None, behind[sign.end() :].strip() if sign is not None else "")
    return None


def _object_in(text: str) -> ParsedAnswer | None:
    try:
        parsed = standard(text)
    except ValueError:
        return None
    if not isinstance(parsed, dict):
        return None
    action, comment, digest = parsed.get("action"), parsed.get("comment", ""), parsed.get("digest", "")
    if set(parsed) - {"action", "data", "comment", "digest"}:
        return None
    if not isinstance(action, str) or not isinstance(comment, str) or not isinstance(digest, str):
        return None
    return ParsedAnswer(action, parsed.get("data"), comment, digest=digest)


def _value(option: JsonObject) -> str:
    return str(option.get("value", option.get("action", "")))


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]} …"


# Calls -------------------------------------------------------------------------------------------------------------


def gate_mark(gate: OpenGate) -> str:
    """Return a short identifier of a gate within its execution."""
    return hashlib.sha256(gate.id.encode()).hexdigest()[:8]


def calls_at(execution: ExecutionId, gate: OpenGate) -> Calls:
    """Return the client-tool calls of a gate."""
    open_gate, mark = gate.at.gate, gate_mark(gate)
    assert open_gate is not None
    return tuple(
        ClientToolCall(f"{execution}~{call.number}~{mark}", call.name, json.dumps(call.arguments, ensure_ascii=False))
        for call in open_gate.calls
    )


def call_of(id: str) -> Reference:
    """Parse the id of a call. Raises `MessagesInvalid`."""
    match = CALL.fullmatch(id)
    if match is None:
        raise MessagesInvalid(f"this server made no call with the id {id[:100]!r}", hint="Send the id unchanged.")
    return Reference(ExecutionId(match[1]), match[2], match[3])


def result_of(message: JsonObject) -> Json:
    """Return the result of a call: parsed if it is JSON, else as text."""
    text = text_of(message)
    try:
        return decode_json(text)
    except JsonUnreadable:
        return text
