"""The operations of a transform: in order, each sees what the earlier ones wrote. Paths point into the state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, TypeAlias

from pydantic import Field

from pointsman.definition.model.base import AnyJson, ChosenBy, Expression, Model, Path


class SetValue(Model):
    """Write a literal; a text is a template."""

    set: Path
    value: AnyJson = None


class CopyValue(Model):
    """Copy one path to another."""

    copy_: Annotated[Path, Field(alias="copy")]
    to: Path


class LengthOf(Model):
    """Count a list, text or object; what is missing counts 0 and any other value 1."""

    length_of: Path
    to: Path


class ArrayGet(Model):
    """Take one item; out of range is null."""

    array_get: Path
    index: int | Path
    """A number, or the path of one."""
    to: Path


class Push(Model):
    """Append one value to a list, creating it."""

    push: Path
    to: Path


class Append(Model):
    """Append every item of one list to another, creating it."""

    append: Path
    to: Path


class Merge(Model):
    """Merge one object into another; its keys win."""

    merge: Path
    into: Path


class Increment(Model):
    """Add to a number, from 0."""

    increment: Path
    by: float | None = None
    """1 if left out."""


class Choose(Model):
    """Write one of two literals; a text is a template."""

    condition: Expression
    then: AnyJson = None
    else_: Annotated[AnyJson, Field(alias="else")] = None
    to: Path


class Evaluate(Model):
    """Write the value of an expression."""

    evaluate: Expression
    to: Path


class MemorySection(Model):
    """One `## section` of an agent's long-term memory."""

    profile_id: str | None = None
    profile_id_path: Path | None = None
    section: str


class ReadMemorySection(Model):
    """Read a section of long-term memory; what is missing is an empty text."""

    read_agent_memory_section: MemorySection
    to: Path


AnyOperation: TypeAlias = (
    SetValue
    | CopyValue
    | LengthOf
    | ArrayGet
    | Push
    | Append
    | Merge
    | Increment
    | Choose
    | Evaluate
    | ReadMemorySection
)

OPERATIONS: Final[Mapping[str, type[Model]]] = {
    "set": SetValue,
    "copy": CopyValue,
    "lengthOf": LengthOf,
    "arrayGet": ArrayGet,
    "push": Push,
    "append": Append,
    "merge": Merge,
    "increment": Increment,
    "condition": Choose,
    "evaluate": Evaluate,
    "readAgentMemorySection": ReadMemorySection,
}


def _operation_of(value: Mapping[str, object]) -> type[Model]:
    named = [key for key in OPERATIONS if key in value]
    if len(named) == 1:
        return OPERATIONS[named[0]]
    raise ValueError(f"must have exactly one of {', '.join(OPERATIONS)}; it has {', '.join(named) or 'none'}")


Operation: TypeAlias = Annotated[AnyOperation, ChosenBy(_operation_of, tuple(OPERATIONS.values()))]
