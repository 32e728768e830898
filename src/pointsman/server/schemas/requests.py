"""Models of request bodies, and their bases."""

from __future__ import annotations

from typing import Any, Final, Literal, cast

from annotated_types import MaxLen
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic import JsonValue as _Json
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticKnownError

from pointsman.values import Json
from pointsman.workflows.versions import NAME_CHARS_MAX, NOTE_CHARS_MAX

MARK: Final = "\0"
"""Stands for null in examples until the document is complete: FastAPI drops nulls. It occurs in no example."""


def with_null_marks(example: Json) -> Json:
    """Replace each null by the mark."""
    return _replaced(example, None, MARK)


def without_null_marks(document: Json) -> Json:
    """Replace each mark by null."""
    return _replaced(document, MARK, None)


def _replaced(value: Json, old: Json, new: Json) -> Json:
    match value:
        case dict():
            return {name: _replaced(member, old, new) for name, member in value.items()}
        case list():
            return [_replaced(element, old, new) for element in value]
        case None | str():
            return new if value == old else value
        case _:
            return value


JsonValue = Any  # Any JSON; its recursive type is not supported in models.


def sample(**example: _Json) -> ConfigDict:
    """Return a `model_config` with an example. Members that are Python keywords end in `_`: `from_`."""
    shown = with_null_marks({name.rstrip("_"): value for name, value in example.items()})
    return ConfigDict(json_schema_extra={"examples": [shown]})


def with_schema_rule(config: ConfigDict, **rule: JsonValue) -> ConfigDict:
    """Add keywords to the schema of a `model_config`, to document validators that involve several fields."""
    extra = config.get("json_schema_extra")
    return config | ConfigDict(json_schema_extra={**(extra if isinstance(extra, dict) else {}), **rule})


def requires_fields(*names: str) -> dict[str, JsonValue]:
    """Return a schema of objects in which these fields are present and not null."""
    return {"required": [*names], "properties": {name: {"not": {"type": "null"}} for name in names}}


WORKFLOW_ID_PATTERN: Final = "^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$"
PROBLEMS_MAX: Final = 100
"""Maximal number of unknown fields that are reported for one object."""
LIMITS_MAX: Final = 100
_WHOLE: Final[tuple[object, ...]] = (int, int | None)


class BoundedBody(BaseModel):
    """A request body that reports a limited number of validation errors, since reporting 200 000 errors took five
    seconds."""

    @model_validator(mode="before")
    @classmethod
    def _few_unknown(cls, value: object) -> object:
        """Keep `PROBLEMS_MAX` of the unknown fields: each causes a problem, and a body can contain 200 000."""
        if not isinstance(value, dict) or len(cast("dict[str, JsonValue]", value)) <= PROBLEMS_MAX:
            return cast("object", value)
        sent = cast("dict[str, JsonValue]", value)
        field_names = {name for field, one in cls.model_fields.items() for name in (field, one.alias or field)}
        unknown = [name for name in sent if name not in field_names]
        return {name: sent[name] for name in (*(field_names & sent.keys()), *unknown[:PROBLEMS_MAX])}

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
    """A request body.

    Unknown fields are refused, because most of them are misspelt; texts are not converted to numbers.
    """

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
    """A start of an execution."""

    model_config = sample(input={"goal": "harbour strike"}, wait=True)
    input: JsonValue = Field(default=None, description="The input, as the workflow's `input` schema describes it.")
    session_id: str | None = Field(
        default=None,
        max_length=200,
        description="The conversation of this turn: printable characters.",
        json_schema_extra={"minLength": 1},
    )
    config: dict[str, JsonValue] = Field(default_factory=dict, description="Values of `config` for this execution.")
    model: str | None = Field(default=None, min_length=1, max_length=200, description="The model of all agents.")
    language: str | None = Field(
        default=None,
        min_length=1,
        max_length=35,
        description="Language of prompts; null: the language of the settings.",
    )
    durability: Literal["step", "async", "exit"] | None = Field(
        default=None, description="When journal rows are stored."
    )
    wait: bool = Field(
        default=False, description="Return the execution once it has ended or cannot continue by itself."
    )


class RespondBody(Body):
    """An answer to a gate."""

    model_config = sample(gateId="review", action="approve", comment="Fine.")
    gate_id: str = Field(
        min_length=1, max_length=500, description="The gate's id, or its node if that has one open gate."
    )
    action: str = Field(min_length=1, max_length=500, description="One of the gate's options.")
    data: JsonValue = Field(default=None, description="Data for the gate's form, or the changed fields.")
    comment: str = Field(default="", max_length=10_000)
    key: str = Field(
        default="",
        max_length=200,
        description="Idempotency key: the same answer with the same key has no further effect.",
    )
    digest: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="The gate's `digest` from the last read: if the gate has changed since, the answer is refused "
        "with 409 `gate-changed`. Absent: the answer applies to the gate in any state, and its digest is "
        "recorded.",
    )


class DelegateBody(Body):
    """A delegation."""

    model_config = sample(gateId="review", to="ben", comment="You know the tides.")
    gate_id: str = Field(
        min_length=1, max_length=500, description="The gate's id, or its node if that has one open gate."
    )
    to: str = Field(min_length=1, max_length=200, description="The person who may answer instead.")
    comment: str = Field(default="", max_length=10_000)


class ReasonBody(Body):
    """Reason."""

    model_config = sample(reason="Not needed any more.")
    reason: str = Field(default="", max_length=1000)


class CancelBody(ReasonBody):
    """A cancellation."""

    now: bool = Field(default=False, description="Skip the compensation steps.")


class LimitsBody(Body):
    """Higher limits."""

    model_config = sample(limits={"maxSteps": 500})
    limits: dict[str, float] = Field(default_factory=dict, max_length=LIMITS_MAX, description="Limit -> its new value.")


class ResumeBody(LimitsBody):
    """A continuation."""

    step: bool = Field(default=False, description="Pause again before the next step starts.")


class ForkBody(Body):
    """A fork."""

    model_config = sample(at=12, set={"draft": "shorter"})
    at: int | None = Field(default=None, ge=1, le=2**53, description="The last row that is copied.")
    step: str | None = Field(
        default=None, max_length=500, description="Instead of `at`: the step before which the copy starts."
    )
    set: dict[str, JsonValue] = Field(default_factory=dict, description="Changed values of the data.")


class SteerBody(Body):
    """A manual intervention between steps."""

    model_config = sample(messages=["Keep it short."], set={"draft": ""}, goto="write", reason="It was off the point.")
    messages: list[JsonValue] = Field(
        default_factory=list, max_length=100, description="Messages to add; a text is a message of the user."
    )
    set: dict[str, JsonValue] = Field(default_factory=dict, description="Path -> new value in the data.")
    goto: str | None = Field(default=None, max_length=500, description="The node to continue at.")
    reason: str = Field(default="", max_length=1000)


class SignalBody(Body):
    """An event."""

    model_config = sample(name="paid", data={"amount": 12})
    name: str = Field(min_length=1, max_length=200)
    data: JsonValue = None
    key: str = Field(
        default="",
        max_length=200,
        description="Idempotency key: a repeated event with the same key has no further effect.",
    )


class MessageBody(Body):
    """The next message of a user."""

    model_config = sample(message="And shorter?", wait=True)
    message: str = Field(min_length=1, max_length=1_000_000)
    wait: bool = Field(
        default=False, description="Return the execution once it has ended or cannot continue by itself."
    )


class CloneBody(Body):
    """A copy of a workflow."""

    model_config = sample(id="my-research")
    id: str = Field(
        min_length=1,
        max_length=200,
        description="The id of the copy.",
        json_schema_extra={"pattern": WORKFLOW_ID_PATTERN},
    )


class CheckBody(Body):
    """A document to check."""

    model_config = sample(document={"pointsman": 1, "id": "hello", "nodes": [{"id": "say", "type": "agent"}]})
    document: JsonValue = Field(description="The workflow: an object, or its text in JSON or YAML.")
    dialect: Literal["native", "rows", "graph", "steps", "plan"] | None = Field(
        default=None, description="Absent: detected."
    )


class PatchBody(BoundedBody):
    """A JSON merge patch:

    absent members stay, null removes a member. `workflows.metadata` lists the members that can be patched.
    """

    model_config = sample(name="Letters", enabled=False, tags=["mail"]) | ConfigDict(extra="allow", strict=True)
    name: JsonValue = Field(default=None, description="A text, or an object with one text per language.")
    description: JsonValue = None
    version: str | None = Field(default=None, max_length=100, description="A semantic version.")
    enabled: bool | None = Field(default=None, description="False: the workflow is hidden and cannot be executed.")
    status: Literal["draft", "published"] | None = None
    tags: list[str] | None = Field(default=None, max_length=200)
    metadata: dict[str, JsonValue] | None = None


class PublishBody(Body):
    """A version to publish."""

    model_config = sample(name="Spring mailing", note="With the new greeting.", revision=2)
    name: str = Field(min_length=1, max_length=NAME_CHARS_MAX, description="Name of the version.")
    note: str = Field(default="", max_length=NOTE_CHARS_MAX, description="What is new in it.")
    revision: int | None = Field(default=None, ge=1, le=2**53, description="Absent: the newest revision.")


class ConvertBody(Body):
    """A document to convert."""

    model_config = sample(
        document={"pointsman": 1, "id": "hello", "nodes": [{"id": "say", "type": "agent"}]}, to="rows"
    )
    document: JsonValue = Field(description="The workflow: an object, or its text in JSON or YAML.")
    to: Literal["native", "rows", "graph", "steps", "plan", "mermaid", "bpmn"]
    dialect: Literal["native", "rows", "graph", "steps", "plan"] | None = Field(
        default=None, description="Absent: detected."
    )


class DryRunAnswerBody(Body):
    """Answers of a gate, for a dry run."""

    node: str = Field(min_length=1, max_length=500, description="The gate's id, or its node.")
    action: str = Field(min_length=1, max_length=500)
    data: JsonValue = None


class DryRunBody(Body):
    """The input of a dry run."""

    model_config = sample(input={"goal": "tides"}, answers=[{"node": "review", "action": "approve"}])
    input: JsonValue = Field(default=None, description="The input, as the workflow's `input` schema describes it.")
    answers: list[DryRunAnswerBody] = Field(
        default_factory=list[DryRunAnswerBody], max_length=200, description="Answers; each is used once."
    )
