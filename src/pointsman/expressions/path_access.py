"""Path access: from a root, key by key, to a value or to MISSING.

A path of fixed keys is a loop over `value[key]`, whatever the size of the data; other paths go step by step:

    base (frame -> value)  ->  step (frame, value -> value)  ->  step  ->  value or MISSING
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Final, Protocol, TypeAlias, cast

from pointsman.expressions.environment import MISSING, EvaluationFrame, Missing
from pointsman.expressions.failures import MixedTypes, Spot
from pointsman.expressions.operators import type_name, whole
from pointsman.values import Json

Code: TypeAlias = Callable[[EvaluationFrame], Json]
Probe: TypeAlias = Callable[[EvaluationFrame], "Json | Missing"]
PathStep: TypeAlias = Callable[[EvaluationFrame, "Json | Missing"], "Json | Missing"]

Key: TypeAlias = str | int


class KeyLookup(Protocol):
    """An object on which a key is looked up before its type is known. The lookup may raise."""

    def __getitem__(self, key: Key, /) -> KeyLookup: ...


def fetch(value: Json | Missing, key: Key) -> Json | Missing:
    """Look up one key of a value. A number also matches the object key of the same digits."""
    if isinstance(value, dict):
        return value.get(key if isinstance(key, str) else str(key), MISSING)
    if isinstance(value, list | str) and isinstance(key, int):
        return value[key] if -len(value) <= key < len(value) else MISSING
    return MISSING


def key_step(key: Key) -> PathStep:
    """Return the step for a fixed key."""
    return lambda frame, value: fetch(value, key)


def length_step(frame: EvaluationFrame, value: Json | Missing) -> Json | Missing:
    """Step `.length`: that key of an object that has it, else the length of the value."""
    if isinstance(value, dict) and "length" in value:
        return value["length"]
    return len(value) if isinstance(value, list | dict | str) else MISSING


def item_step(frame: EvaluationFrame, value: Json | Missing) -> Json | Missing:
    """Step `.current_fanout_item`: the entry of this branch's item; MISSING outside of branches."""
    key = frame.env.item_key
    return MISSING if key is None else fetch(value, key)


def computed_step(code: Code, spot: Spot) -> PathStep:
    """Return the step for `[expression]`."""

    def step(frame: EvaluationFrame, value: Json | Missing) -> Json | Missing:
        key = code(frame)
        return MISSING if key is None else fetch(value, index_of(key, spot))

    return step


def index_of(key: Json, spot: Spot) -> Key:
    """Return a value as a key: a text, or a number without a fraction."""
    if isinstance(key, str):
        return key
    if whole(key):
        return int(key)
    raise MixedTypes(f"an index is a whole number or a text, not {type_name(key)}", spot=spot)


def each_step(rest: tuple[PathStep, ...], spot: Spot, *, flatten: bool) -> PathStep:
    """Return the step for `.*`: the rest of the path from every element, without missing values."""

    def step(frame: EvaluationFrame, value: Json | Missing) -> Json | Missing:
        if isinstance(value, dict):
            value = list(value.values())
        if not isinstance(value, list):
            return MISSING
        frame.spend(len(value), spot)
        found: list[Json] = []
        for element in value:
            reached = follow(frame, element, rest)
            if reached is MISSING:
                continue
            if flatten and isinstance(reached, list):
                frame.spend(len(reached), spot)
                found.extend(reached)
            else:
                found.append(reached)
        return found

    return step


def follow(frame: EvaluationFrame, value: Json | Missing, steps: tuple[PathStep, ...]) -> Json | Missing:
    """Apply the steps to a value."""
    for step in steps:
        if value is MISSING:
            return MISSING
        value = step(frame, value)
    return value


def bare_base(name: str) -> Probe:
    """Return the base for a bare name: state field, engine name, setting."""

    def base(frame: EvaluationFrame) -> Json | Missing:
        env = frame.env
        value = env.state.get(name, MISSING)
        if value is MISSING:
            value = env.names.get(name, MISSING)
        return env.config.get(name, MISSING) if value is MISSING else value

    return base


def named_base(name: str) -> Probe:
    """Return the base for a reserved or `as` name."""
    return lambda frame: frame.env.names.get(name, MISSING)


def next_base(frame: EvaluationFrame) -> Json | Missing:
    """Base for `state.next`: the step's own `next` on its edges, else a field of that name."""
    value = frame.env.names.get("next", MISSING)
    return frame.env.state.get("next", MISSING) if value is MISSING else value


def entry_base(root: str, key: str) -> Probe:
    """Return the base for one entry of `nodes` or `config`: looked up by key, never copied."""
    mapping = mapping_of(root)
    return lambda frame: mapping(frame).get(key, MISSING)


def computed_entry_base(root: str, code: Code, spot: Spot) -> Probe:
    """Return the base for `nodes[expression]`."""
    mapping = mapping_of(root)

    def base(frame: EvaluationFrame) -> Json | Missing:
        key = code(frame)
        return MISSING if key is None else mapping(frame).get(str(index_of(key, spot)), MISSING)

    return base


def whole_base(root: str) -> Probe:
    """Return the base for all of `nodes` or `config`, copied once."""
    mapping = mapping_of(root)
    return lambda frame: dict(mapping(frame))


def state_base(frame: EvaluationFrame) -> Json | Missing:
    """Base for the state itself."""
    return frame.env.state


def data_base(frame: EvaluationFrame) -> Json | Missing:
    """Base for `state.data`: the field of that name if it exists, else the state."""
    state = frame.env.state
    return state.get("data", state)


def mapping_of(root: str) -> Callable[[EvaluationFrame], Mapping[str, Json]]:
    """Return the getter for the mapping that contains the entries of a root."""
    return {"nodes": nodes_of, "config": config_of}[root]


def nodes_of(frame: EvaluationFrame) -> Mapping[str, Json]:
    return frame.env.nodes


def config_of(frame: EvaluationFrame) -> Mapping[str, Json]:
    return frame.env.config


CONTAINER: Final[dict[str, Callable[[EvaluationFrame], KeyLookup]]] = {
    "state": attrgetter("env.state"),
    "nodes": attrgetter("env.nodes"),
    "config": attrgetter("env.config"),
    "names": attrgetter("env.names"),
}
"""Mapping in which the first fixed key is looked up."""


def fixed_path(container: str, keys: tuple[Key, ...], slow: Probe) -> Probe:
    """Return the probe for a path of fixed keys. `slow` is used
    if the plain lookup fails; it may return MISSING or raise."""
    if container == "state" and len(keys) == 1 and isinstance(keys[0], str):
        return field_path(keys[0], slow)
    start = CONTAINER[container]

    def read(frame: EvaluationFrame) -> KeyLookup | Json | Missing:
        # JSON consists of dicts, lists and texts by contract; for anything else `slow` inspects the types.
        value = start(frame)
        try:
            for key in keys:
                value = value[key]
        except (KeyError, IndexError, TypeError):
            return slow(frame)
        return value

    return cast("Probe", read)


def field_path(name: str, slow: Probe) -> Probe:
    """Return the probe for a single field of the state, the most common path."""

    def read(frame: EvaluationFrame) -> Json | Missing:
        value = frame.env.state.get(name, MISSING)
        return slow(frame) if value is MISSING else value

    return read
