"""Models of request bodies, and their bases."""

from __future__ import annotations

from typing import Any, Final, Literal, cast

from annotated_types import MaxLen
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic import JsonValue as _Json
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticKnownError

from pointsman.values import Json

MARK: Final = "\0"
"""Stands for null in examples until the document is complete: FastAPI drops nulls. It occurs in no example."""


def marked(example: Json) -> Json:
    """Replace each null by the mark."""
    return _replaced(example, None, MARK)


def unmarked(document: Json) -> Json:
    """Replace each mark by null."""
    return _replaced(document, MARK, None)


def _replaced(value: Json, old: Json, new: Json) -> Json:
    match value:
        case dict():
            return {name: _replaced(one, old, new) for name, one in value.items()}
        case list():
            return [_replaced(one, old, new) for one in value]
        case None | str():
            return new if value == old else value
        case _:
            return value


JsonValue = Any  # Any JSON; its recursive type is not supported in models.


def sample(**example: _Json) -> ConfigDict:
    """Return a `model_config` with an example. Members that are Python keywords end in `_`: `from_`."""
    shown = marked({name.rstrip("_"): value for name, value in example.items()})
    return ConfigDict(json_schema_extra={"examples": [shown]})


def ruled(config: ConfigDict, **rule: JsonValue) -> ConfigDict:
    """Add keywords to the schema of a `model_config`, to document validators that involve several fields."""
    extra = config.get("json_schema_extra")
    return config | ConfigDict(json_schema_extra={**(extra if isinstance(extra, dict) else {}), **rule})


def given(*names: str) -> dict[str, JsonValue]:
    """Return a schema of objects in which these fields are present and not null."""
    return {"required": [*names], "properties": {name: {"not": {"type": "null"}} for name in names}}


WORKFLOW_ID_PATTERN: Final = "^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$"
PROBLEMS_MAX: Final = 100
"""Maximal number of unknown fields that are reported for one object."""
LIMITS_MAX: Final = 100
_WHOLE: Final[tuple[object, ...]] = (int, int | None)


class BoundedBody(BaseModel):
    """A body whose misfits are few, however large it is: to report 200 000 of them took five seconds."""

    @model_validator(mode="before")
    @classmethod
    def _few_unknown(cls, given: object) -> object:
        """Keep `PROBLEMS_MAX` of the unknown fields: each causes a problem, and a body can contain 200 000."""
        if not isinstance(given, dict) or len(cast("dict[str, JsonValue]", given)) <= PROBLEMS_MAX:
            return cast("object", given)
        sent = cast("dict[str, JsonValue]", given)
        known = {name for field, one in cls.model_fields.items() for name in (field, one.alias or field)}
        unknown = [name for name in sent if name not in known]
        return {name: sent[name] for name in (*(known & sent.keys()), *unknown[:PROBLEMS_MAX])}

    @field_validator("*", mode="before")
    @classmethod
    def _not_too_long(cls, value: object, info: ValidationInfo) -> object:
        """Reject a list or an object that is too long before each of its members causes a problem."""
        if isinstance(value, list | dict):
            size = len(cast("list[object] | dict[str, object]", value))
            for rule in cls.model_fields[info.field_name or ""].metadata:
                if isinstance(rule, MaxLen) and size > rule.max_length:
                    kind = "List" if isinstance(value, list) else "Dictionary"
                    context = {"field_type": kind, "max_length": rule.max_length, "actual_length": size}
                    raise PydanticKnownError("too_long", context)
        return cast("object", value)


class Body(BoundedBody):
    """What is sent. Unknown fields are refused: they are mostly misspelt ones; and a text is not a number."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)

    @field_validator("*", mode="before")
    @classmethod
    def _whole(cls, value: object, info: ValidationInfo) -> object:
        """Accept 3.0 as an integer, since JSON has one type of number."""
        field = cls.model_fields.get(info.field_name or "")
        annotation = cast("object", field.annotation if field is not None else None)
        if isinstance(value, float) and value.is_integer() and annotation in _WHOLE:
            return int(value)
        return value


class ExecuteBody(Body):
    """A start."""

    model_config = sample(input={"goal": "harbour strike"}, wait=True)
    input: JsonValue = Field(default=None, description="What the workflow's `input` schema takes.")
    session_id: str | None = Field(
        default=None,
        max_length=200,
        description="The conversation it is a turn of: printable characters.",
        json_schema_extra={"minLength": 1},
    )
    config: dict[str, JsonValue] = Field(default_factory=dict, description="Values of `config` for this execution.")
    model: str | None = Field(default=None, min_length=1, max_length=200, description="Answers all its agents.")
    language: str | None = Field(
        default=None,
        min_length=1,
        max_length=35,
        description="In which its texts are said to agents; null: the settings'.",
    )
    durability: Literal["step", "async", "exit"] | None = Field(default=None, description="When its rows are written.")
    wait: bool = Field(default=False, description="Answer when nothing more happens by itself, with the execution.")


class RespondBody(Body):
    """An answer to a gate."""

    model_config = sample(gateId="review", action="approve", comment="Fine.")
    gate_id: str = Field(
        min_length=1, max_length=500, description="The gate, or its node while that has one open gate."
    )
    action: str = Field(min_length=1, max_length=500, description="One of the gate's options.")
    data: JsonValue = Field(default=None, description="What its form asks for, or the fields that were changed.")
    comment: str = Field(default="", max_length=10_000)
    key: str = Field(default="", max_length=200, description="The same answer with the same key counts once.")
    digest: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="The gate's `digest` as it was read: where the gate shows something else by now, the answer is "
        "refused with 409 `gate-changed`. Absent: whatever the gate shows is answered, and its digest recorded.",
    )


class DelegateBody(Body):
    """A right that is passed on."""

    model_config = sample(gateId="review", to="ben", comment="You know the tides.")
    gate_id: str = Field(
        min_length=1, max_length=500, description="The gate, or its node while that has one open gate."
    )
    to: str = Field(min_length=1, max_length=200, description="Who answers instead.")
    comment: str = Field(default="", max_length=10_000)


class ReasonBody(Body):
    """Why."""

    model_config = sample(reason="Not needed any more.")
    reason: str = Field(default="", max_length=1000)


class CancelBody(ReasonBody):
    """A stop."""

    now: bool = Field(default=False, description="Undo nothing.")


class LimitsBody(Body):
    """Going on, maybe with higher limits."""

    model_config = sample(limits={"maxSteps": 500})
    limits: dict[str, float] = Field(default_factory=dict, max_length=LIMITS_MAX, description="Limit -> its new value.")


class ResumeBody(LimitsBody):
    """Going on, as far as is wanted."""

    step: bool = Field(default=False, description="Pause again before the next step begins.")


class ForkBody(Body):
    """A copy."""

    model_config = sample(at=12, set={"draft": "shorter"})
    at: int | None = Field(default=None, ge=1, le=2**53, description="The row up to which it is a copy.")
    step: str | None = Field(default=None, max_length=500, description="Or: the step before which it begins.")
    set: dict[str, JsonValue] = Field(default_factory=dict, description="Values put into its data.")


class SteerBody(Body):
    """A hand taken between steps."""

    model_config = sample(messages=["Keep it short."], set={"draft": ""}, goto="write", reason="It was off the point.")
    messages: list[JsonValue] = Field(default_factory=list, max_length=100, description="A text is the user's.")
    set: dict[str, JsonValue] = Field(default_factory=dict, description="Path -> value, put into its data.")
    goto: str | None = Field(default=None, max_length=500, description="The node that comes next.")
    reason: str = Field(default="", max_length=1000)


class SignalBody(Body):
    """An event."""

    model_config = sample(name="paid", data={"amount": 12})
    name: str = Field(min_length=1, max_length=200)
    data: JsonValue = None
    key: str = Field(default="", max_length=200, description="Under one key it comes once.")


class MessageBody(Body):
    """What a user says next."""

    model_config = sample(message="And shorter?", wait=True)
    message: str = Field(min_length=1, max_length=1_000_000)
    wait: bool = Field(default=False, description="Answer when nothing more happens by itself, with the execution.")


class CloneBody(Body):
    """A copy of a workflow."""

    model_config = sample(id="my-research")
    id: str = Field(
        min_length=1, max_length=200, description="Of the copy.", json_schema_extra={"pattern": WORKFLOW_ID_PATTERN}
    )


class CheckBody(Body):
    """A document to look at."""

    model_config = sample(document={"pointsman": 1, "id": "hello", "nodes": [{"id": "say", "type": "agent"}]})
    document: JsonValue = Field(description="The workflow: an object, or its text in JSON or YAML.")
    dialect: Literal["native", "rows", "graph", "steps", "plan"] | None = Field(
        default=None, description="Absent: found out."
    )


class PatchBody(BoundedBody):
    """A JSON merge patch: what is not there stays, null takes out. `workflows.metadata` says what may be patched."""

    model_config = sample(name="Letters", enabled=False, tags=["mail"]) | ConfigDict(extra="allow", strict=True)
    name: JsonValue = Field(default=None, description="A text, or one by language.")
    description: JsonValue = None
    version: str | None = Field(default=None, max_length=100, description="A semantic version.")
    enabled: bool | None = Field(default=None, description="False: hidden, and not executed.")
    status: Literal["draft", "published"] | None = None
    tags: list[str] | None = Field(default=None, max_length=200)
    metadata: dict[str, JsonValue] | None = None


class ConvertBody(Body):
    """A document, and how it shall be written."""

    model_config = sample(
        document={"pointsman": 1, "id": "hello", "nodes": [{"id": "say", "type": "agent"}]}, to="rows"
    )
    document: JsonValue = Field(description="The workflow: an object, or its text in JSON or YAML.")
    to: Literal["native", "rows", "graph", "steps", "plan", "mermaid", "bpmn"]
    dialect: Literal["native", "rows", "graph", "steps", "plan"] | None = Field(
        default=None, description="Absent: found out."
    )


class DryRunAnswerBody(Body):
    """What would be said at a gate."""

    node: str = Field(min_length=1, max_length=500, description="The gate, or its node.")
    action: str = Field(min_length=1, max_length=500)
    data: JsonValue = None


class DryRunBody(Body):
    """What a dry run is given."""

    model_config = sample(input={"goal": "tides"}, answers=[{"node": "review", "action": "approve"}])
    input: JsonValue = Field(default=None, description="What the workflow's `input` schema takes.")
    answers: list[DryRunAnswerBody] = Field(
        default_factory=list[DryRunAnswerBody], max_length=200, description="Each is said once."
    )
