"""Configuration of the nodes the engine itself performs: they steer, wait and gate; no executor is asked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from pointsman.definition.model.base import (
    AnyJson,
    AnyObject,
    Count,
    Duration,
    Expression,
    Expressions,
    Many,
    Model,
    Name,
    NodeRef,
    Path,
    Spelled,
    Text,
    value_schema,
)
from pointsman.definition.model.policies import Approvers, Escalation, More

AGGREGATES: Final = ("list", "object", "merge", "concat", "first", "last", "vote", "stitch")
"""The named ways to make one value of many; any other text is an expression."""

_SHARE: Final = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)\s*%")
_NUMBER: Final = re.compile(r"[+-]?\d{1,9}(?:\.\d*)?", re.ASCII)


class StartConfig(Model):
    """The entry."""

    inputs: AnyObject | None = None
    """The input that a start requires, as a JSON Schema. Default: `input` of the workflow."""
    defaults: AnyObject | None = None
    """Default values for missing inputs, applied before validation."""
    set: Expressions | None = None
    """State path -> expression, applied after the input was copied into the state."""


class EndConfig(Model):
    """Ends its branch."""

    output: Expressions | Expression | None = None
    """The output: an object of names and values, or one expression. Default: the value that reached it."""
    status: str | None = None
    """A label for this outcome, stored with the output."""
    terminate: bool | None = None
    """End the whole execution immediately."""


class Case(Model):
    """One labelled condition."""

    when: Expression
    label: Name


class Choice(Model):
    """One answer a model may give."""

    label: Name
    description: Text | None = None


def _as_choice(value: object) -> object:
    return {"label": value} if isinstance(value, str) else value


class DecisionConfig(Model):
    """Pure routing: emits the label of a branch. Without any of the three the edges' own conditions decide."""

    expression: Expression | None = None
    """Its value is the label (`true`, `false`, or a text)."""
    cases: Many[Case] | None = None
    """The first case that holds applies."""
    default: Name | None = None
    """The label if no case applies."""
    llm_prompt: Annotated[Text | None, Spelled("template")] = None
    """Asks a model to choose."""
    choices: Many[Annotated[Choice, BeforeValidator(_as_choice, json_schema_input_type=Name | Choice)]] | None = None
    """The choices of the model."""
    model: Annotated[Name | None, Spelled("model")] = None


class ParallelConfig(Model):
    """Opens one scope per branch and item."""

    branches: Many[NodeRef] | None = None
    """Nodes that start in every scope. Default: the targets of its edges."""
    items: Expression | None = None
    """A list or object; one scope per item and branch."""
    as_: Annotated[Name | None, Field(alias="as")] = None
    """Another name for `item`."""
    max_parallel: Count | None = None
    """Maximum number of scopes that work at once."""
    on_branch_error: Literal["fail", "continue", "ignore"] | None = None
    """Cancel the siblings; let the join see the failure as a value; or forget the branch."""
    on_no_items: Literal["skip", "branches"] | None = None
    """The effect of empty or null `items`: no scope at all (default), or one per branch whose item is its node's id."""
    duplicate_keys: Literal["fail", "number"] | None = None
    """The effect of two items with the same key: the step fails (default), or later ones get their index appended."""


_UNCOUNTED: Final = re.compile(r"[a-z][ _-]?of[ _-]?[a-z]|majority|quorum", re.IGNORECASE)
"""Rules of other systems without their number, such as `n_of_m`. As an expression they would read a missing field."""


@dataclass(frozen=True, slots=True)
class WaitRule:
    """When a join starts: `all`, `any`, a count, a share in percent, or an expression."""

    kind: Literal["all", "any", "count", "share", "expression"]
    number: float = 0
    expression: str = ""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return value_schema(cls, read_wait_rule, write_wait_rule)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, object]:
        return {"anyOf": [{"type": "string", "minLength": 1}, {"type": "integer", "minimum": 1}]}


def read_wait_rule(value: object) -> WaitRule:
    """Raises ValueError with the spellings that would do."""
    match value:
        case "all":
            return WaitRule("all")
        case "any":
            return WaitRule("any")
        case int() if not isinstance(value, bool) and value >= 1:
            return WaitRule("count", number=value)
        case str() if share := _SHARE.fullmatch(value.strip()):
            percent = float(share[1])
            if not 0 < percent <= 100:
                raise ValueError("must be a share between 0% and 100%")
            return WaitRule("share", number=percent)
        case str() if _NUMBER.fullmatch(value.strip()):
            if not value.strip().isdigit() or int(value) < 1:
                raise ValueError("must be at least one branch")
            return WaitRule("count", number=int(value))
        case str() if _UNCOUNTED.fullmatch(value.strip()):
            raise ValueError("must be a number of branches such as 2, or a share such as '60%'")
        case str() if value.strip():
            return WaitRule("expression", expression=value)
        case _:
            raise ValueError("must be 'all', 'any', a number of branches, a share such as '60%', or an expression")


def write_wait_rule(rule: WaitRule) -> str | int:
    match rule.kind:
        case "all" | "any":
            return rule.kind
        case "count":
            return int(rule.number)
        case "share":
            return f"{rule.number:g}%"
        case "expression":
            return rule.expression


class JoinConfig(Model):
    """Closes the scopes of a parallel and makes one result of theirs."""

    wait: WaitRule | None = None
    """When it starts. Default: when every branch is settled."""
    cancel_rest: bool | None = None
    """Cancel the branches still running when it starts."""
    aggregate: str | None = None
    """list, object, merge, concat, first, last, vote, stitch, or an expression over `items`."""
    separator: str | None = None
    """Between the texts of `concat` and `stitch`."""
    template: Annotated[Text | None, Spelled("template")] = None
    """The frame of `stitch`, once per branch (`item`, `key`, `index`, `result`)."""
    order: Many[str] | None = None
    """Item keys that come first in the result, in this order."""
    timeout: Duration | None = None
    on_timeout: Literal["fail", "continue"] | None = None
    """Fail, or continue with the branches that have arrived."""
    expected_keys: Many[str] | Expression | None = None
    """Start only when the object at `mergeKey` has all of these."""
    merge_key: Path | None = None
    """State path whose value is joined, instead of the branches' results."""
    of: NodeRef | None = None
    """The parallel it closes, where that is not the innermost one."""


class LoopConfig(Model):
    """Counted, conditional, or once per item, in order; loops nest."""

    while_: Annotated[Expression | None, Field(alias="while")] = None
    """Continue while this is true; evaluated before each round."""
    until: Expression | None = None
    """Continue until this is true; evaluated before each round except the first."""
    max_iterations: Count | None = None
    """Maximum number of rounds."""
    over: Expression | None = None
    """A list or object: one round per item."""
    as_: Annotated[Name | None, Field(alias="as")] = None
    """Another name for `item`."""
    body: Many[NodeRef] | None = None
    """The nodes of the body, beginning with the first. Default: derived from the edges."""
    body_end: Literal["end", "exit"] | None = None
    """What to do if a step of the body takes no edge: end the branch, or leave the loop."""
    collect: Path | None = None
    """State path that receives the list of the rounds' results."""
    count_into: Path | None = None
    """State path counted up after each round."""
    on_round_error: Literal["fail", "skip"] | None = None
    """Fail, or continue with the next round."""
    failures_into: Path | None = None
    """State path that receives the failures of skipped rounds."""


class HumanOption(Model):
    """One button."""

    value: Name
    label: Text | None = None
    style: Literal["primary", "secondary", "danger"] | None = None
    more: More | None = None
    """For the gate that `onLimit` names: continue, and raise each limit by this amount."""


class HumanConfig(Model):
    """A durable gate: waits for a person, for months if need be."""

    title: Text | None = None
    message: Annotated[Text | None, Spelled("template")] = None
    """The question to the person."""
    options: Many[HumanOption] | None = None
    """The buttons; each value is an action."""
    actions: Many[Literal["approve", "edit", "reject", "skip"]] | None = None
    """Answer buttons if there are no `options`. Default: approve, reject."""
    form: AnyObject | None = None
    """Fields to fill in with the answer, as a JSON Schema."""
    editable: Many[Path] | None = None
    """State paths the person may change."""
    show: Many[Expression] | None = None
    """The data shown to the person."""
    approvers: Approvers | None = None
    timeout: Duration | None = None
    escalation: Many[Escalation] | None = None
    """The next approvers, in order, if nobody answers in time."""
    on_timeout: str | None = None
    """`fail` (default), an action, or a node to route to, when the deadline of the last level has passed."""
    auto_proceed: bool | None = None
    """Take the first action automatically: after `timeout`, or immediately if there is none."""


class WaitConfig(Model):
    """A durable timer, or an event from outside."""

    duration: Duration | None = None
    until: Expression | None = None
    """A time: ISO 8601 text or seconds since 1970."""
    event: Annotated[Text | None, Spelled("template")] = None
    """The name of the event to wait for; its data become the result."""
    match: Expression | None = None
    """Condition on the event; `event` is its data."""
    timeout: Duration | None = None
    on_timeout: Literal["fail", "continue"] | None = None


class EmitConfig(Model):
    """Publishes to the feed and to waiting executions."""

    event: Annotated[str, Spelled("template"), Field(min_length=1)]
    data: AnyJson = None
    """JSON; variables in its texts are replaced."""


NoteLength: TypeAlias = Annotated[int, Field(ge=40, le=200_000)]
"""Pixels on the canvas."""


class NoteConfig(Model):
    """A comment on the canvas, or a titled frame around nodes; never runs."""

    text: Text | None = None
    """Text of the note, in Markdown; title of the frame."""
    color: Literal["yellow", "green", "blue", "purple", "red", "gray"] | None = None
    """Default: yellow, of a frame gray."""
    frame: bool | None = None
    """A frame around nodes instead of a sticky note; the nodes inside move with it."""
    width: NoteLength | None = None
    """Width on the canvas, in pixels. Default: 220, of a frame 480."""
    height: NoteLength | None = None
    """Height on the canvas, in pixels. Default: 120, of a frame 280."""


class ToolExecutorConfig(Model):
    """Runs the tool calls an agent left pending, then routes."""


ControlConfig: TypeAlias = (
    StartConfig
    | EndConfig
    | DecisionConfig
    | ParallelConfig
    | JoinConfig
    | LoopConfig
    | HumanConfig
    | WaitConfig
    | EmitConfig
    | NoteConfig
    | ToolExecutorConfig
)
