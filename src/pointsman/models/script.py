"""Scripts of the scripted model: rules tried in order, and results of tools; their JSON Schema, and how they are read.

    rules:
      - {node: Router, visit: 1, next: RC2}
      - {node: RC2, contains: port, text: "Two ships wait."}
    tools:
      web_search: {result: [{title: Harbour, url: "https://example.org"}]}

A script is plain data that can be stored as JSON. The schema also completes scripts in editors. Reading reports all
problems at once, each with line and column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from typing import ClassVar, Final, cast

from msgspec import Struct, field

from pointsman.definition.json_schema import JsonSchema
from pointsman.definition.model.base import read_duration
from pointsman.definition.problems import Problem, did_you_mean, error, pointer_to, sort_problems
from pointsman.definition.reading.documents import read_document
from pointsman.engine.reports import Usage
from pointsman.errors import AuthorError
from pointsman.expressions.failures import BadPattern, Spot
from pointsman.expressions.patterns import Pattern, compile_pattern
from pointsman.values import Json, JsonObject

Hints = dict[str, Json]
"""Origin of a call: `ModelRequest.hints` and `purpose`."""


class Fail(Struct, frozen=True, kw_only=True):
    """Simulated failure of the provider."""

    status: int | None = None
    """HTTP status; None: the connection breaks in the way of `how`."""
    how: str = "status"
    """`status`, `timeout` or `connection`."""
    retry_after_s: float | None = None
    message: str = "scripted failure"


class ScriptedCall(Struct, frozen=True, kw_only=True):
    name: str
    arguments: JsonObject = {}


class ScriptedAnswer(Struct, frozen=True, kw_only=True):
    """One answer. Without content, the model answers from the prompt after the delay."""

    text: str | None = None
    value: Json = None
    """`json` in the file; valid only if `has_value`."""
    has_value: bool = False
    tool_calls: tuple[ScriptedCall, ...] = ()
    next: str | None = None
    end: bool = False
    fail: Fail | None = None
    delay_s: float = 0.0
    token_delay_s: float = 0.0
    usage: Usage | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the answer has no content of its own."""
        return not (self.text is not None or self.has_value or self.tool_calls or self.next is not None or self.end)


class ScriptRule(Struct, frozen=True, kw_only=True, dict=True):
    """Conditions, all of which must hold, and the answers for them."""

    nodes: tuple[str, ...] = ()
    """Ids or names of nodes; empty: any."""
    exact: dict[str, str] = field(default_factory=dict[str, str])
    """`agent`, `purpose`."""
    counts: dict[str, int] = field(default_factory=dict[str, int])
    """`visit`, `call`, `attempt` (from 1), `branch` (from 0)."""
    item: str | None = None
    contains: str | None = None
    matches: str | None = None
    times: int | None = None
    """Maximum number of uses, in each scope of each execution."""
    answers: tuple[ScriptedAnswer, ...] = (ScriptedAnswer(),)
    """Used one after another; the last one is repeated."""

    @cached_property
    def _pattern(self) -> Pattern | None:
        return None if self.matches is None else compile_pattern(self.matches, Spot(self.matches, 0, len(self.matches)))

    def fits(self, hints: Hints, last: str) -> bool:
        """Return whether the rule applies to a call; `last`: the text of the last message."""
        return (
            (not self.nodes or hints.get("node") in self.nodes or hints.get("name") in self.nodes)
            and all(hints.get(key) == value for key, value in self.exact.items())
            and all(hints.get(key) == value for key, value in self.counts.items())
            and (self.item is None or hints.get("item") == self.item)
            and (self.contains is None or self.contains in last)
            and (self._pattern is None or self._pattern.search(last) is not None)
        )


class Script(Struct, frozen=True, kw_only=True):
    """Rules and tools of a scripted model. With an empty script it answers every prompt by itself."""

    rules: tuple[ScriptRule, ...] = ()
    tools: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Tool name -> its `description`, `parameters`, `results` (see `pointsman.tools.scripted`)."""


_TEXT: Final[JsonObject] = {"type": "string"}
_POSITIVE: Final[JsonObject] = {"type": "integer", "minimum": 1}
_DURATION: Final[JsonObject] = {"type": ["string", "number"]}
_OBJECT: Final[JsonObject] = {"type": "object"}

_CALL: Final[JsonObject] = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {"name": _TEXT, "arguments": _OBJECT},
}
_STATUS: Final[JsonObject] = {"type": "integer", "minimum": 400, "maximum": 599}
_BREAK: Final[JsonObject] = {"enum": ["timeout", "connection"]}
_FAIL: Final[JsonObject] = {
    "oneOf": [
        _STATUS,
        _BREAK,
        {
            "type": "object",
            "required": ["status"],
            "additionalProperties": False,
            "properties": {
                "status": {"oneOf": [_STATUS, _BREAK]},
                "retryAfter": _DURATION,
                "message": _TEXT,
            },
        },
    ]
}
_USAGE: Final[JsonObject] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"inputTokens": {"type": "integer", "minimum": 0}, "outputTokens": {"type": "integer", "minimum": 0}},
}
_ANSWER_KEYS: Final[JsonObject] = {
    "text": _TEXT,
    "json": {},
    "toolCalls": {"type": "array", "items": _CALL},
    "next": _TEXT,
    "end": {"type": "boolean"},
    "fail": _FAIL,
    "delay": _DURATION,
    "tokenDelay": _DURATION,
    "usage": _USAGE,
}
_WHEN_KEYS: Final[JsonObject] = {
    "node": {"oneOf": [_TEXT, {"type": "array", "items": _TEXT}]},
    "agent": _TEXT,
    "purpose": _TEXT,
    "visit": _POSITIVE,
    "round": _POSITIVE,
    "call": _POSITIVE,
    "attempt": _POSITIVE,
    "branch": {"type": "integer", "minimum": 0},
    "item": {"type": ["string", "number"]},
    "contains": _TEXT,
    "matches": _TEXT,
    "times": _POSITIVE,
}
_CANNED_KEYS: Final[JsonObject] = {
    "when": _OBJECT,
    "contains": _TEXT,
    "times": _POSITIVE,
    "result": {},
    "fail": {
        "oneOf": [
            _TEXT,
            {
                "type": "object",
                "required": ["message"],
                "additionalProperties": False,
                "properties": {"code": _TEXT, "message": _TEXT, "retryable": {"type": "boolean"}},
            },
        ]
    },
}
SCRIPT_SCHEMA: Final[JsonObject] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Script of the scripted model",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "rules": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    **_WHEN_KEYS,
                    **_ANSWER_KEYS,
                    "answers": {
                        "type": "array",
                        "minItems": 1,
                        "items": {"type": "object", "additionalProperties": False, "properties": _ANSWER_KEYS},
                    },
                },
            },
        },
        "tools": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "description": _TEXT,
                    "parameters": _OBJECT,
                    "requiresApproval": {"type": "boolean"},
                    **_CANNED_KEYS,
                    "results": {
                        "type": "array",
                        "minItems": 1,
                        "items": {"type": "object", "additionalProperties": False, "properties": _CANNED_KEYS},
                    },
                },
            },
        },
    },
}


_EXACT: Final = ("agent", "purpose")
_COUNTS: Final = {"visit": "visit", "round": "visit", "call": "call", "attempt": "attempt", "branch": "branch"}
_ANSWER: Final = ("text", "json", "toolCalls", "next", "end", "fail", "delay", "tokenDelay", "usage")
_HINTS: Final = {
    "fail": "Give a status such as 429, 'timeout', 'connection', or {status, retryAfter, message}.",
    "node": "Give one id or name, or a list of them.",
}


class ScriptRefused(AuthorError):
    """Raised when a text is not a valid script. `problems` lists all its defects."""

    code: ClassVar[str] = "script-refused"

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = sort_problems(problems)
        first = self.problems[0]
        more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
        super().__init__(f"{first.line}:{first.column}: {first.message}{more}", hint=first.hint)


def read_script(text: str) -> Script:
    """Return the script in a YAML or JSON text. Raises `ScriptRefused`."""
    document = read_document(text, name="script.yaml")
    if not document.is_readable:
        raise ScriptRefused(document.problems)
    content = document.value
    if found := list(_problems(content)):
        raise ScriptRefused([document.placed(problem) for problem in found])
    assert isinstance(content, dict)  # Ensured by the schema.
    rules = cast("list[JsonObject]", content.get("rules", []))
    tools = cast("dict[str, JsonObject]", content.get("tools", {}))
    return Script(rules=tuple(map(_rule, rules)), tools=tools)


@cache
def _schema() -> JsonSchema:
    return JsonSchema(SCRIPT_SCHEMA)


def _problems(content: Json) -> Iterator[Problem]:
    for wrong in _schema().misfits(content, most=100):
        path = wrong.path
        if wrong.unexpected:
            known_keys = _known_keys(path)
            for key in wrong.unexpected:
                hint = did_you_mean(key, known_keys) or f"Known keys: {', '.join(known_keys)}."
                yield error("unknown-key", pointer_to(*path, key), f"unknown key {key!r}", hint=hint)
        else:
            hint = _HINTS.get(str(path[-1]), "") if path else ""
            yield error("script-value", pointer_to(*path), wrong.message, hint=hint)
    for index, rule in enumerate(_rules_of(content)):
        yield from _rule_problems(rule, index)


def _known_keys(path: Sequence[str | int]) -> list[str]:
    """Return the keys that the schema allows at a path, for hints."""
    at: Json = SCRIPT_SCHEMA
    for part in path:
        if not isinstance(at, dict):
            return []
        inner = at.get("items") if isinstance(part, int) else None
        properties = at.get("properties")
        if isinstance(part, str):
            inner = (
                properties.get(part)
                if isinstance(properties, dict) and part in properties
                else at.get("additionalProperties")
            )
        at = inner
    properties = at.get("properties") if isinstance(at, dict) else None
    return list(properties) if isinstance(properties, dict) else []


def _rules_of(content: Json) -> list[JsonObject]:
    rules = content.get("rules") if isinstance(content, dict) else None
    return [rule for rule in rules if isinstance(rule, dict)] if isinstance(rules, list) else []


def _rule_problems(rule: JsonObject, index: int) -> Iterator[Problem]:
    at = ("rules", index)
    if isinstance(pattern := rule.get("matches"), str) and (wrong := _wrong_pattern(pattern)):
        yield error("script-pattern", pointer_to(*at, "matches"), wrong)
    if "answers" in rule and (both := [key for key in _ANSWER if key in rule]):
        message = f"a rule has either `answers` or the members of one answer; this one also has {', '.join(both)}"
        yield error("script-contradiction", pointer_to(*at, both[0]), message)
    if "visit" in rule and "round" in rule:
        yield error("script-contradiction", pointer_to(*at, "round"), "`round` is a synonym of `visit`: keep one")
    listed = rule.get("answers")
    answers = [(at, rule)]
    if isinstance(listed, list):
        answers += [((*at, "answers", n), answer) for n, answer in enumerate(listed) if isinstance(answer, dict)]
    for place, answer in answers:
        yield from _answer_problems(answer, place)


def _answer_problems(answer: JsonObject, at: tuple[str | int, ...]) -> Iterator[Problem]:
    for key in ("delay", "tokenDelay"):
        if key in answer and (wrong := _wrong_duration(answer[key])):
            yield error("script-value", pointer_to(*at, key), wrong)
    fail = answer.get("fail")
    if isinstance(fail, dict) and "retryAfter" in fail and (wrong := _wrong_duration(fail["retryAfter"])):
        yield error("script-value", pointer_to(*at, "fail", "retryAfter"), wrong)
    if "text" in answer and "json" in answer:
        yield error("script-contradiction", pointer_to(*at, "json"), "an answer is `text` or `json`, not both")
    if "fail" in answer and (both := [key for key in ("text", "json", "toolCalls", "next", "end") if key in answer]):
        yield error("script-contradiction", pointer_to(*at, both[0]), "a call that fails has no answer")


def _wrong_pattern(pattern: str) -> str:
    try:
        compile_pattern(pattern, Spot(pattern, 0, len(pattern)))
    except BadPattern as why:
        return str(why)
    return ""


def _wrong_duration(value: Json) -> str:
    try:
        read_duration(value)
    except ValueError as why:
        return str(why)
    return ""


def _rule(rule: JsonObject) -> ScriptRule:
    nodes = rule.get("node", [])
    listed = rule.get("answers")
    answers = cast("list[JsonObject]", listed) if isinstance(listed, list) else [rule]
    item = rule.get("item")
    return ScriptRule(
        nodes=(nodes,) if isinstance(nodes, str) else tuple(cast("list[str]", nodes)),
        exact={key: str(rule[key]) for key in _EXACT if key in rule},
        counts={count: cast("int", rule[key]) for key, count in _COUNTS.items() if key in rule},
        item=None if item is None else str(item),
        contains=cast("str | None", rule.get("contains")),
        matches=cast("str | None", rule.get("matches")),
        times=cast("int | None", rule.get("times")),
        answers=tuple(map(_answer, answers)),
    )


def _answer(answer: JsonObject) -> ScriptedAnswer:
    calls = cast("list[JsonObject]", answer.get("toolCalls", []))
    used = cast("dict[str, int] | None", answer.get("usage"))
    return ScriptedAnswer(
        text=cast("str | None", answer.get("text")),
        value=answer.get("json"),
        has_value="json" in answer,
        tool_calls=tuple(_call(call) for call in calls),
        next=cast("str | None", answer.get("next")),
        end=answer.get("end") is True,
        fail=_fail(answer["fail"]) if "fail" in answer else None,
        delay_s=_seconds(answer.get("delay", 0)),
        token_delay_s=_seconds(answer.get("tokenDelay", 0)),
        usage=None
        if used is None
        else Usage(input_tokens=used.get("inputTokens", 0), output_tokens=used.get("outputTokens", 0)),
    )


def _call(call: JsonObject) -> ScriptedCall:
    return ScriptedCall(name=str(call["name"]), arguments=cast("JsonObject", call.get("arguments", {})))


def _fail(fail: Json) -> Fail:
    if not isinstance(fail, dict):
        return Fail(status=fail) if isinstance(fail, int) else Fail(how=str(fail))
    status = fail["status"]
    wait = fail.get("retryAfter")
    return Fail(
        status=status if isinstance(status, int) else None,
        how="status" if isinstance(status, int) else str(status),
        retry_after_s=None if wait is None else _seconds(wait),
        message=str(fail.get("message", "scripted failure")),
    )


def _seconds(value: Json) -> float:
    return read_duration(value).seconds
