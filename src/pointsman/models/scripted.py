"""Scripted model: selects the rule that matches a call, or else answers from the prompt. Deterministic, without IO and
without the client of any provider.

Without a rule it gives a valid answer: a sample of the output schema, the first legal route, or `end` if offered and
nothing else is left to do. Its answers identify themselves as scripted.

A sample takes the first choice, `true` for booleans and the highest allowed number, so that gates open and loops end.
Constraints beyond types and bounds (patterns, `not`, `if`) may be violated; the answer is then refused like that of any
model.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, Self, TypeAlias
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from pointsman.caches import UseCounts
from pointsman.engine.failures import Failure, connection_problem
from pointsman.engine.reports import ToolCall, Usage
from pointsman.models.failures import ModelFailed, status_failure, unreachable_failure
from pointsman.models.script import Fail, Hints, Script, ScriptedAnswer, ScriptedCall, ScriptRule
from pointsman.models.transcript import as_text, content_of, text_of
from pointsman.ports import ExecutionPort, ModelReply, ModelRequest, TextCallback
from pointsman.redaction import head
from pointsman.values import END, Json, JsonObject

NAME: Final = "scripted"
"""Name of the model in settings, definitions and replies."""

Sleep: TypeAlias = Callable[[float], Awaitable[None]]
"""Waits for some seconds; injected for tests."""

_EXCERPT: Final = 160
"""Characters of the prompt that an unscripted answer repeats."""

_CHARS_PER_TOKEN: Final = 4
_WORDS_PER_CHUNK: Final = 4

_STATUSES: Final = {
    400: "model-rejected",
    401: "model-unauthorized",
    402: "model-quota-exceeded",
    403: "model-unauthorized",
    404: "model-not-found",
    422: "model-rejected",
    429: "model-rate-limited",
    503: "model-unavailable",
    529: "model-unavailable",
}
"""HTTP status -> code of the failure, as for providers. Other statuses from 500 on: `model-server-error`; others:
`model-failed`."""
_SERVER_ERRORS: Final = 500
_RETRYABLE: Final = frozenset({"model-rate-limited", "model-unavailable", "model-server-error"})


class ScriptedReply(Struct, frozen=True, kw_only=True):
    """Text, tool calls and usage of a reply."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()


class ScriptedRequest(Struct, frozen=True, kw_only=True):
    """The parts of a request that the answer depends on."""

    last: str
    """Text of the last message; without messages, the system prompt."""
    chars: int
    tools: dict[str, JsonObject]
    """Name -> schema of the parameters."""
    schema: JsonObject | None

    @classmethod
    def of(cls, request: ModelRequest) -> Self:
        """Return the relevant parts of a request."""
        texts = [request.system, *map(content_of, request.messages)]
        return cls(
            last=texts[-1],
            chars=sum(map(len, texts)),
            tools={tool.name: tool.parameters for tool in request.tools},
            schema=request.output_schema,
        )


class ScriptedModel:
    """Answers calls from a script. The execution counts the uses of a rule in each scope, so that branches do not
    interfere."""

    def __init__(self, script: Script | None = None, *, sleep: Sleep = asyncio.sleep) -> None:
        """`sleep` waits for the delays of the script."""
        self._script = script or Script()
        self._sleep = sleep
        self._outside = UseCounts()

    async def ask(self, request: ModelRequest, *, on_text: TextCallback | None = None) -> ModelReply:
        """Return the answer after its delay; stream its text if `on_text` is given. Raises `ModelFailed`."""
        hints: Hints = {**request.hints, "purpose": request.purpose}
        scripted = ScriptedRequest.of(request)
        answer = await self.choose(hints, scripted.last, request.run)
        if answer.delay_s:
            await self._sleep(answer.delay_s)
        if answer.fail is not None:
            raise ModelFailed(_failure(answer.fail))
        reply = self.say(answer, hints, scripted)
        if on_text is not None:
            for chunk in _chunks(reply):
                if answer.token_delay_s:
                    await self._sleep(answer.token_delay_s)
                if chunk:
                    on_text(chunk)
        used = replace(reply.usage, model_calls=1, free_calls=1, scripted=True)
        return ModelReply(text=reply.text, tool_calls=reply.calls, usage=used, model=NAME, provider=NAME)

    async def choose(self, hints: Hints, last: str, run: ExecutionPort | None) -> ScriptedAnswer:
        """Return the answer of the first rule that matches and is not used up; an empty one if there is none."""
        for index, rule in enumerate(self._script.rules):
            if rule.fits(hints, last):
                used = await self._use(rule, index, hints, run)
                if used is not None:
                    return rule.answers[min(used, len(rule.answers) - 1)]
        return ScriptedAnswer()

    def say(self, answer: ScriptedAnswer, hints: Hints, request: ScriptedRequest) -> ScriptedReply:
        """Return the content of the answer in the format that the request requires."""
        text, calls = _improvised(hints, request) if answer.is_empty else _scripted(answer, request)
        chars = len(text) + sum(len(as_text(call.arguments)) for call in calls)
        used = Usage(input_tokens=request.chars // _CHARS_PER_TOKEN, output_tokens=chars // _CHARS_PER_TOKEN)
        return ScriptedReply(text=text, calls=_numbered(calls, hints), usage=answer.usage or used)

    async def _use(self, rule: ScriptRule, index: int, hints: Hints, run: ExecutionPort | None) -> int | None:
        """Count a use of the rule, and return how often it was used before in this scope; None: it is used up."""
        if rule.times is None and len(rule.answers) == 1:
            return 0
        what = f"script/rule/{index}/{text_of(hints.get('scope'))}"
        if run is None:
            return self._outside.use(f"{what}/{text_of(hints.get('execution'))}", most=rule.times)
        return await run.use(what, most=rule.times)


def _numbered(calls: list[ScriptedCall], hints: Hints) -> tuple[ToolCall, ...]:
    """Return the calls with ids derived from the hints: unique in a conversation, stable when a step is repeated."""
    place = crc32(json.dumps(hints, sort_keys=True).encode())
    return tuple(
        ToolCall(id=f"call_{place:08x}_{index}", name=call.name, arguments=call.arguments)
        for index, call in enumerate(calls, start=1)
    )


def _failure(fail: Fail) -> Failure:
    source = f"the model {NAME!r}"
    match fail.how:
        case "timeout":
            return unreachable_failure("model-timeout", source, *connection_problem(TimeoutError()))
        case "connection":
            why = ConnectionError(fail.message)
            return unreachable_failure("model-unreachable", source, *connection_problem(why))
        case _:
            status = fail.status or _SERVER_ERRORS
            code = _STATUSES.get(status, "model-server-error" if status >= _SERVER_ERRORS else "model-failed")
            return status_failure(
                code,
                status,
                source,
                fail.message,
                body=json.dumps({"message": fail.message}, ensure_ascii=False),
                retryable=code in _RETRYABLE,
                retry_after_s=fail.retry_after_s,
            )


def _chunks(reply: ScriptedReply) -> Iterator[str]:
    """Yield the text a few words at a time, and an empty chunk for each tool call."""
    words = reply.text.split(" ") if reply.text else []
    for at in range(0, len(words), _WORDS_PER_CHUNK):
        more = at + _WORDS_PER_CHUNK < len(words)
        yield " ".join(words[at : at + _WORDS_PER_CHUNK]) + (" " if more else "")
    yield from ("" for _ in reply.calls)


def _scripted(answer: ScriptedAnswer, request: ScriptedRequest) -> tuple[str, list[ScriptedCall]]:
    calls = list(answer.tool_calls)
    text = answer.text or ""
    label = END if answer.end and answer.next is None else answer.next
    if answer.has_value:
        value = answer.value
        if label is not None and isinstance(value, dict) and not _routing_tool(request, label):
            value, label = {**value, "next": label}, None
        text, calls_of_value = _give(value, request)
        calls += calls_of_value
    if label is not None:
        more, routed = _leave_by(label, request)
        text, calls = text or more, calls + routed
    return text, calls


def _improvised(hints: Hints, request: ScriptedRequest) -> tuple[str, list[ScriptedCall]]:
    """Return the simplest valid answer for a call without a rule."""
    author = text_of(hints.get("agent")) or text_of(hints.get("node")) or "model"
    text = f"Scripted answer of {author} to: {head(' '.join(request.last.split()), _EXCERPT)}"
    routes = _routes(request)
    calls: list[ScriptedCall] = []
    if (schema := _wanted(request)) is not None:
        text, calls = _give(sample(schema, text), request)
    visit = hints.get("visit")
    revisited = isinstance(visit, int) and visit > 1
    if "end" in request.tools and revisited:
        calls.append(ScriptedCall(name="end"))
    elif routes:
        onward = END if revisited and END in routes else routes[0]
        calls.append(ScriptedCall(name="router", arguments={"next": onward}))
    return text, calls


def _wanted(request: ScriptedRequest) -> JsonObject | None:
    """Return the schema of the answer, from the request or the tool `final_result`."""
    return request.schema if request.schema is not None else request.tools.get("final_result")


def _give(value: Json, request: ScriptedRequest) -> tuple[str, list[ScriptedCall]]:
    """Return a JSON answer: as a call of `final_result` if offered, else as text."""
    if (parameters := request.tools.get("final_result")) is None:
        return json.dumps(value, ensure_ascii=False), []
    wrapped = _property_names(parameters) == ["value"] and not (isinstance(value, dict) and "value" in value)
    arguments = value if isinstance(value, dict) and not wrapped else {"value": value}
    return "", [ScriptedCall(name="final_result", arguments=arguments)]


def _leave_by(label: str, request: ScriptedRequest) -> tuple[str, list[ScriptedCall]]:
    """Return an answer that routes by a label: the injected tool, the schema's `choice` or `next`, or plain JSON."""
    if (tool := _routing_tool(request, label)) is not None:
        return "", [ScriptedCall(name=tool, arguments={} if tool == "end" else {"next": label})]
    names = _property_names(_wanted(request) or {})
    if "choice" in names:
        return _give({"choice": label, "reason": "scripted"}, request)
    if "next" in names:
        made = sample(_wanted(request) or {}, "scripted")
        return _give({**made, "next": label} if isinstance(made, dict) else {"next": label}, request)
    return as_text({"next": label}), []


def _routing_tool(request: ScriptedRequest, label: str) -> str | None:
    if label == END and "end" in request.tools:
        return "end"
    return "router" if "router" in request.tools else None


def _routes(request: ScriptedRequest) -> list[str]:
    properties = request.tools.get("router", {}).get("properties")
    field = properties.get("next") if isinstance(properties, dict) else None
    labels = field.get("enum") if isinstance(field, dict) else None
    return [label for label in labels if isinstance(label, str)] if isinstance(labels, list) else []


def _property_names(schema: JsonObject) -> list[str]:
    properties = schema.get("properties")
    return list(properties) if isinstance(properties, dict) else []


_DEPTH_MAX: Final = 16
"""Depth from which optional members of a recursive schema are left out."""
_LEVELS_MAX: Final = 100
"""Depth from which every value is null: recursive `allOf` and `anyOf` end here."""
_WORK_MAX: Final = 100_000
"""Limit of a whole value: its parts and the keywords read for them, and its characters in units of 10. What is beyond
is null or missing."""

_FORMATS: Final = {
    "date": "2000-01-01",
    "date-time": "2000-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "email": "someone@example.org",
    "uri": "https://example.org",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def sample(schema: JsonObject, text: str) -> Json:
    """Return a value for the schema; free strings contain `text`."""
    return _Sampler(schema, text).value(schema, 0)


class _Sampler:
    def __init__(self, root: JsonObject, text: str) -> None:
        self._root = root
        self._text = text
        self._left = _WORK_MAX

    def value(self, schema: Json, depth: int) -> Json:
        if not isinstance(schema, dict):
            self._left -= 1
            return self._text
        self._left -= 1 + len(schema) + len(_object(schema.get("properties")))
        if self._left < 0 or depth > _LEVELS_MAX:
            return None
        for keyword in ("const", "default"):
            if keyword in schema:
                return schema[keyword]
        for listed in ("enum", "examples"):
            if isinstance(options := schema.get(listed), list) and options:
                return options[0]
        if "$ref" in schema:
            return self.value(self._resolved(schema), depth + 1) if depth < _DEPTH_MAX else None
        for choice in ("anyOf", "oneOf"):
            if isinstance(options := schema.get(choice), list) and options:
                return self.value({**_without(schema, choice), **_object(options[0])}, depth + 1)
        if isinstance(parts := schema.get("allOf"), list) and parts:
            return self.value(_merged([_without(schema, "allOf"), *map(self._resolved, parts)]), depth + 1)
        return self._typed(schema, depth)

    def _typed(self, schema: JsonObject, depth: int) -> Json:
        match _type_of(schema):
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._list(schema, depth)
            case "boolean":
                return True
            case "integer" | "number" as kind:
                return _number(schema, kind)
            case "null":
                return None
            case _:
                return self._string(schema)

    def _object(self, schema: JsonObject, depth: int) -> JsonObject:
        properties = _object(schema.get("properties"))
        required = schema.get("required")
        needed = [key for key in required if isinstance(key, str)] if isinstance(required, list) else []
        keys = [key for key in properties if depth < _DEPTH_MAX or key in needed]
        keys += [key for key in needed if key not in properties]
        return {key: self.value(properties.get(key), depth + 1) for key in keys}

    def _list(self, schema: JsonObject, depth: int) -> list[Json]:
        prefix = schema.get("prefixItems")
        made = [self.value(item, depth + 1) for item in prefix] if isinstance(prefix, list) else []
        least = schema.get("minItems")
        missing = max((least if isinstance(least, int) else 0) - len(made), 0)
        items = schema.get("items")
        while missing > 0 and self._left > 0:
            made.append(self.value(items, depth + 1))
            missing -= 1
        return made

    def _string(self, schema: JsonObject) -> str:
        if (example := _FORMATS.get(str(schema.get("format")))) is not None:
            return example
        least, most = schema.get("minLength"), schema.get("maxLength")
        text = self._text
        if isinstance(least, int) and least > len(text):
            text = text.ljust(min(least, 10 * max(self._left, 0)), ".")
            self._left -= len(text) // 10
        return text[:most] if isinstance(most, int) else text

    def _resolved(self, schema: Json) -> JsonObject:
        """Return the schema with its reference replaced by the referenced schema."""
        found = _object(schema)
        reference = found.get("$ref")
        if not isinstance(reference, str):
            return found
        return _merged([_object(self._at(reference)), _without(found, "$ref")])

    def _at(self, reference: str) -> Json:
        at: Json = self._root
        for part in reference.lstrip("#").split("/")[1:]:
            at = at.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(at, dict) else None
        return at


def _type_of(schema: JsonObject) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if isinstance(kind, str):
        return kind
    if "properties" in schema or "required" in schema:
        return "object"
    return "array" if "items" in schema or "prefixItems" in schema else "string"


def _number(schema: JsonObject, kind: str) -> int | float:
    """Return a number within the bounds; 1 where they cannot be computed."""
    try:
        found = _bounded(schema)
        return int(found) if kind == "integer" else found
    except (ArithmeticError, ValueError):  # of infinity, or beyond the range of floats
        return 1


def _bounded(schema: JsonObject) -> int | float:
    most, least = schema.get("maximum"), schema.get("minimum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    step = schema.get("multipleOf")
    size = step if isinstance(step, int | float) and step > 0 else 1
    if isinstance(most, int | float):
        return most // size * size if "multipleOf" in schema or schema.get("type") == "integer" else most
    if isinstance(below, int | float):
        return (below - size) // size * size if schema.get("type") == "integer" else below - size
    if isinstance(least, int | float):
        return -(-least // size) * size
    if isinstance(above, int | float):
        return (above // size + 1) * size
    return size


def _merged(schemas: list[JsonObject]) -> JsonObject:
    merged: JsonObject = {}
    for schema in schemas:
        for key, value in schema.items():
            before = merged.get(key)
            if isinstance(before, dict) and isinstance(value, dict):
                merged[key] = {**before, **value}
            elif isinstance(before, list) and isinstance(value, list) and key == "required":
                merged[key] = [*before, *value]
            else:
                merged[key] = value
    return merged


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _without(schema: JsonObject, key: str) -> JsonObject:
    return {name: value for name, value in schema.items() if name != key}
