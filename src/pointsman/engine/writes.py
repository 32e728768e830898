"""Writes, edits and arrivals: the values that events consist of."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from pointsman.engine.steps import Lineage, Scope
from pointsman.values import Json

Reducer: TypeAlias = Literal["set", "append", "merge", "add", "min", "max", "union", "last"]
"""How a write joins the present value. `last` is a `set` that never conflicts: in branch order, the last one wins."""

Undoes: TypeAlias = Literal["own", "all"]
"""The scope of compensation of a fork: its own steps, or also those of its origin."""


class Write(Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """One change of the data: `path` joined with `value` by `reduce`. `whole`: the value is the step's result."""

    path: tuple[str | int, ...]
    reduce: Reducer = "set"
    value: Json = None
    whole: bool = False


class DataEdit(Struct, frozen=True, array_like=True, gc=False):
    """A value that a person writes into the data of an open scope (`()`: the execution's), replacing any value."""

    path: tuple[str | int, ...]
    value: Json
    scope: Scope = ()


class Arrival(Struct, frozen=True, array_like=True, gc=False):
    """An arrival that waits at a node: its edge (`""`: none, the engine sent it) and its lineage."""

    edge: str
    lineage: Lineage


class EventBase(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", gc=False):
    """Base of every stored event. Events are trees of plain data: the garbage collector need not walk them."""


class BufferedEvent(Struct, frozen=True):
    """An event that waits in the buffer for a step."""

    name: str
    data: Json
