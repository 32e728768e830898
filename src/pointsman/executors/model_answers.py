"""Model answers: read the text or JSON of an answer, check it against its schema, and ask again if it is wrong.

Lenient parsing accepts answers that are right but written a little differently, where the schema asks for it:

    {type: number, minimum: 0, maximum: 100, x-lenient: true}     "85", "85 %", "85/100", "17/20" ▶ 85     130 ▶ 100
    {enum: [low, medium, high], x-lenient: true}                  " HIGH" ▶ "high"

A value that cannot be converted stays as it is, and the schema refuses it.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, cast

import msgspec

from pointsman.definition.json_schema import JsonSchema, JsonSchemaInvalid
from pointsman.engine.failures import Failure
from pointsman.executors.effect_ledger import EffectLedger
from pointsman.executors.failures import WorkRefused
from pointsman.models.repair import ParsedJson, read_json, read_whole
from pointsman.models.transcript import assistant_message, user_message
from pointsman.ports import ModelRequest
from pointsman.redaction import head
from pointsman.values import Json, JsonObject

REASKS_MAX: Final = 2
"""How often a model is corrected and asked again."""

_EXCERPT: Final = 500


class Wrong(NamedTuple):
    """A wrong answer."""

    message: str
    """The correction that the model receives."""
    reason: str = ""
    """The reason, in words for people; empty: that of `message`."""


EMPTY: Final = Wrong("You gave no answer.")
NOT_JSON: Final = Wrong("Your answer is not JSON. Answer with JSON only.", "the model did not return valid JSON")


class Expected:
    """The required form of an answer: JSON with a schema, any JSON, text, or either."""

    def __init__(self, schema: JsonObject | None, result: Literal["text", "json", "auto"]) -> None:
        """Raises `WorkRefused` for an invalid schema."""
        self._lenient: Final = schema if is_lenient(schema) else None
        self.schema: Final = schema if self._lenient is None else cast("JsonObject", without_leniency(schema))
        """The schema as models receive it."""
        self._result: Final = result
        try:
            self._checker = None if schema is None else JsonSchema(schema)
        except JsonSchemaInvalid as why:
            raise WorkRefused(Failure(code="output-schema-invalid", message=str(why), hint=why.hint)) from why

    @property
    def is_json(self) -> bool:
        return self._checker is not None or self._result == "json"

    @property
    def is_text(self) -> bool:
        return self._checker is None and self._result == "text"

    def read(self, text: str) -> ParsedJson | Wrong:
        """Return the result that a text stands for."""
        if self.is_json:
            value = read_json(text)
            return NOT_JSON if value is None else self.check(value.value)
        if self._result == "auto":
            whole = read_whole(text)
            return whole if whole is not None and isinstance(whole.value, dict | list) else ParsedJson(text)
        return ParsedJson(text)

    def check(self, value: Json) -> ParsedJson | Wrong:
        """Return the value if it fits the schema."""
        if self._lenient is not None:
            value = coerced_to(value, self._lenient)
        problems = "" if self._checker is None else self._checker.correction(value)
        if problems:
            reason = f"the model's answer does not match its schema: {problems}"
            return Wrong(f"Your answer does not fit its schema: {problems}. Answer again, corrected.", reason)
        return ParsedJson(value)

    def given_up(self, wrong: Wrong, text: str) -> Failure:
        """Return the failure after the last correction."""
        if wrong is EMPTY:
            message = f"the model returned an empty answer {REASKS_MAX + 1} times"
            hint = "Write more in its prompt, raise maxTokens, or use another model."
            return Failure(code="output-empty", message=message, hint=hint, retryable=True)
        return Failure(
            code="output-json" if self._checker is None else "output-schema",
            message=f"{wrong.reason or wrong.message} (after {REASKS_MAX} corrections)",
            hint="Simplify the schema, describe it in the prompt, or use a stronger model.",
            details={"answer": head(text, _EXCERPT)},
        )


async def ask_for_json(ledger: EffectLedger, request: ModelRequest, schema: JsonObject) -> JsonObject:
    """Return the answer to a question whose schema is an object. Raises `WorkRefused`, `ModelFailed`."""
    expected = Expected(schema, "json")
    messages: list[Json] = [*request.messages]
    reasks = 0
    while True:
        attempt = msgspec.structs.replace(request, messages=messages, output_schema=schema)
        reply = await ledger.ask(attempt)
        read = expected.read(reply.text)
        if not isinstance(read, Wrong):
            assert isinstance(read.value, dict)  # guaranteed by the schema
            return read.value
        if reasks >= REASKS_MAX:
            raise WorkRefused(expected.given_up(read, reply.text))
        reasks += 1
        if reply.text:
            messages.append(assistant_message(reply, name="", calls=()))
        messages.append(user_message(read.message))


LENIENT: Final = "x-lenient"

_NUMBER: Final = re.compile(r"\s*([-+]?\d+(?:[.,]\d+)?)\s*(?:(%)|/\s*(\d+(?:[.,]\d+)?))?\s*")


def is_lenient(schema: Json) -> bool:
    """Return whether any part of a schema asks for leniency."""
    match schema:
        case dict():
            return schema.get(LENIENT) is True or any(is_lenient(part) for part in schema.values())
        case list():
            return any(is_lenient(part) for part in schema)
        case _:
            return False


def without_leniency(schema: Json) -> Json:
    """Return the schema for providers, which refuse unknown keywords."""
    match schema:
        case dict():
            return {key: without_leniency(part) for key, part in schema.items() if key != LENIENT}
        case list():
            return [without_leniency(part) for part in schema]
        case _:
            return schema


def coerced_to(value: Json, schema: Json) -> Json:
    """Return the value converted as the schema asks, also inside objects and lists."""
    if not isinstance(schema, dict):
        return value
    if schema.get(LENIENT) is True:
        return _coerced(value, schema)
    match value:
        case dict():
            fields = schema.get("properties")
            schemas = fields if isinstance(fields, dict) else {}
            return {key: coerced_to(part, schemas.get(key)) for key, part in value.items()}
        case list():
            return [coerced_to(part, schema.get("items")) for part in value]
        case _:
            return value


def _coerced(value: Json, schema: JsonObject) -> Json:
    choices = schema.get("enum")
    if isinstance(choices, list):
        return _choice(value, choices)
    if schema.get("type") in ("number", "integer"):
        return _number(value, schema)
    return value


def _choice(value: Json, choices: list[Json]) -> Json:
    """Return the only choice that is equal except for case and surrounding space."""
    if value in choices or not isinstance(value, str):
        return value
    alike = [choice for choice in choices if isinstance(choice, str) and choice.casefold() == value.strip().casefold()]
    return alike[0] if len(alike) == 1 else value


def _number(value: Json, schema: JsonObject) -> Json:
    least, most = _bound(schema, "minimum"), _bound(schema, "maximum")
    number = _read(value, most) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        return value
    if least is not None:
        number = max(number, least)
    if most is not None:
        number = min(number, most)
    return round(number) if schema.get("type") == "integer" else number


def _read(text: str, most: float | None) -> float | None:
    """Parse a number; a fraction or percentage becomes the same share of the maximum."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    number, percent, whole = (cast("str | None", part) for part in match.groups())
    assert number is not None
    value = _plain(number)
    of = 100.0 if percent else None if whole is None else _plain(whole)
    if not of or most is None:
        return value if whole is None else None
    return _whole(value * most / of)


def _plain(text: str) -> float:
    return _whole(float(text.replace(",", ".")))


def _whole(number: float) -> float:
    """Drop a zero fraction: 85, not 85.0."""
    return int(number) if number == int(number) else number


def _bound(schema: JsonObject, key: str) -> float | None:
    bound = schema.get(key)
    return bound if isinstance(bound, int | float) and not isinstance(bound, bool) else None
