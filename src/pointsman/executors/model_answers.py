"""Model answers: read the text or JSON of an answer and check it against what was asked for."""

from __future__ import annotations

from typing import Final, Literal, cast

from pointsman.engine.failures import Failure
from pointsman.executors.failures import WorkRefused
from pointsman.executors.lenient_parsing import is_lenient, taken, without_leniency
from pointsman.models.repair import ParsedJson, read_json, read_whole
from pointsman.redaction import head
from pointsman.tools.schemas import Checker, SchemaWrong
from pointsman.values import Json, JsonObject

REASKS_MAX: Final = 2
"""How often a model is corrected and asked again."""

_EXCERPT: Final = 500


class Wrong(str):
    """Why an answer is wrong, in words for the model."""

    __slots__ = ()


EMPTY: Final = Wrong("You gave no answer.")
NOT_JSON: Final = Wrong("Your answer is not JSON. Answer with JSON only.")


class Expected:
    """The required form of an answer: JSON with a schema, any JSON, text, or either."""

    def __init__(self, schema: JsonObject | None, result: Literal["text", "json", "auto"]) -> None:
        """Raises `WorkRefused` for an invalid schema."""
        self._lenient: Final = schema if is_lenient(schema) else None
        self.schema: Final = schema if self._lenient is None else cast("JsonObject", without_leniency(schema))
        """The schema as models receive it."""
        self._result: Final = result
        try:
            self._checker = None if schema is None else Checker(schema)
        except SchemaWrong as why:
            raise WorkRefused(Failure(code="output-schema-wrong", message=str(why), hint=why.hint)) from why

    @property
    def is_json(self) -> bool:
        return self._checker is not None or self._result == "json"

    @property
    def is_text(self) -> bool:
        return self._checker is None and self._result == "text"

    def read(self, text: str) -> ParsedJson | Wrong:
        """Return the result that a text stands for."""
        if self.is_json:
            found = read_json(text)
            return NOT_JSON if found is None else self.check(found.value)
        if self._result == "auto":
            whole = read_whole(text)
            return whole if whole is not None and isinstance(whole.value, dict | list) else ParsedJson(text)
        return ParsedJson(text)

    def check(self, value: Json) -> ParsedJson | Wrong:
        """Return the value if it fits the schema."""
        if self._lenient is not None:
            value = taken(value, self._lenient)
        problems = "" if self._checker is None else self._checker.problems(value)
        if problems:
            return Wrong(f"Your answer does not fit its schema: {problems}. Answer again, corrected.")
        return ParsedJson(value)

    def given_up(self, wrong: Wrong, text: str) -> Failure:
        """Return the failure after the last correction."""
        if wrong is EMPTY:
            message = f"the model answered nothing, after {REASKS_MAX} corrections"
            hint = "Say more in its prompt, raise maxTokens, or use another model."
            return Failure(code="output-empty", message=message, hint=hint, retryable=True)
        return Failure(
            code="output-json" if self._checker is None else "output-schema",
            message=f"the model's answer is not what was asked, after {REASKS_MAX} corrections: {wrong}",
            hint="Simplify the schema, say more about it in the prompt, or use a stronger model.",
            details={"answer": head(text, _EXCERPT)},
        )
