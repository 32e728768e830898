"""Edges and their conditions: when control goes from one node to another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from pointsman.definition.model.base import AnyJson, ChosenBy, Expression, Many, Model, Name, NodeRef, Spelled, Text
from pointsman.definition.problems import did_you_mean


class Always(Model):
    """Taken whenever the step is left."""

    type: Literal["always"] = "always"


class Never(Model):
    """Switched off."""

    type: Literal["never"] = "never"


class When(Model):
    """Taken when the expression holds."""

    type: Literal["expression"] = "expression"
    expression: Expression


class Equals(Model):
    """Taken when the field equals the value; both as texts where the field is a branch label."""

    type: Literal["equals"] = "equals"
    field: Expression
    value: AnyJson


class Contains(Model):
    """Taken when the field (a list, text or object) contains the value."""

    type: Literal["contains"] = "contains"
    field: Expression
    value: AnyJson


class Exists(Model):
    """Taken when there is such a field and it holds."""

    type: Literal["exists"] = "exists"
    field: Expression


class AskModel(Model):
    """Taken when a model answers yes; its answer and reason are recorded."""

    type: Literal["llm"] = "llm"
    prompt: Annotated[Text, Spelled("template")]
    model: str | None = None


class OnLabel(Model):
    """Taken when the step emitted this label."""

    type: Literal["label"] = "label"
    label: Name


class OnError(Model):
    """Taken only when the step failed for good."""

    type: Literal["error"] = "error"
    codes: Many[str] | None = None
    """Only failures with one of these codes; left out: every failure."""


class Otherwise(Model):
    """Taken only when no other edge of the node was."""

    type: Literal["default"] = "default"


AnyCondition: TypeAlias = Always | Never | When | Equals | Contains | Exists | AskModel | OnLabel | OnError | Otherwise

CONDITIONS: Final[Mapping[str, type[Model]]] = {
    "always": Always,
    "never": Never,
    "expression": When,
    "equals": Equals,
    "contains": Contains,
    "exists": Exists,
    "llm": AskModel,
    "label": OnLabel,
    "error": OnError,
    "default": Otherwise,
}


def _condition_of(value: Mapping[str, object]) -> type[Model]:
    kind = value.get("type")
    if isinstance(kind, str) and kind in CONDITIONS:
        return CONDITIONS[kind]
    hint = did_you_mean(kind, CONDITIONS) if isinstance(kind, str) else ""
    raise ValueError(f"has the unknown condition type {kind!r}; known are {', '.join(CONDITIONS)}. {hint}".rstrip())


Condition: TypeAlias = Annotated[AnyCondition, ChosenBy(_condition_of, tuple(CONDITIONS.values()))]


class Edge(Model):
    """A way from one node to another."""

    id: Name | None = None
    """Default: `<source>-><target>`, with a number if that is taken."""
    source: NodeRef
    target: NodeRef
    """A node's id, or `END`, which ends the execution."""
    condition: Condition | None = None
    """Condition for following this edge. Default: always."""
    label: Text | None = None
    """Caption on the canvas. With `routing: label`, also the label that selects it if it has no condition."""
    source_handle: str | None = None
    target_handle: str | None = None
    mark: Literal["body", "exit", "break", "continue"] | None = None
    """How this edge belongs to a loop, where the graph does not show it."""
    position: Annotated[dict[str, object] | None, Field(description="Editor data.")] = None
    metadata: Annotated[dict[str, object] | None, Field(description="Free data, never read.")] = None
