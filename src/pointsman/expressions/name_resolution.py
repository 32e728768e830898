"""Resolution of names and access to paths: from a root, key by key, to a value or to MISSING.

A path of fixed keys is a loop over `value[key]`, whatever the size of the data; other paths go step by step:

    base (frame -> value)  ->  step (frame, value -> value)  ->  step  ->  value or MISSING

`PathReader` compiles the paths of a formula and records which ones it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple, Protocol, TypeAlias, cast

from pointsman.expressions.environment import ITEM_SEGMENT, MISSING, EvaluationFrame, Missing, Names
from pointsman.expressions.failures import ExpressionError, MissingValue, MixedTypes, SecretNotAllowed, Spot
from pointsman.expressions.operators import type_name, whole
from pointsman.expressions.syntax_tree import Dollar, Each, Get, Literal, Name, PathTree, Tree, literal_key, rooted
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
    raise MixedTypes(f"an index must be a whole number or a text, not {type_name(key)}", spot=spot)


def each_step(rest: tuple[PathStep, ...], spot: Spot, *, flatten: bool) -> PathStep:
    """Return the step for `.*`: the rest of the path from every element, without missing values."""

    def step(frame: EvaluationFrame, value: Json | Missing) -> Json | Missing:
        if isinstance(value, dict):
            value = list(value.values())
        if not isinstance(value, list):
            return MISSING
        frame.spend(len(value), spot)
        values: list[Json] = []
        for element in value:
            reached = follow(frame, element, rest)
            if reached is MISSING:
                continue
            if flatten and isinstance(reached, list):
                frame.spend(len(reached), spot)
                values.extend(reached)
            else:
                values.append(reached)
        return values

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


class PathRead(NamedTuple):
    """A path that an expression reads, for data-flow checks and completion."""

    root: str
    """`state`, `nodes`, `input`, `result`, `config`, `item` … or an `as` name."""
    path: tuple[str | int | None, ...]
    """Keys below the root; None for a computed key, or for every element."""
    offset: int
    length: int
    guarded: bool
    """True if it is read under `??`, `exists`, `default` or `empty`: it may be missing."""


@dataclass(slots=True)
class ResolvedPath:
    """A path with its names resolved."""

    container: str
    """Mapping in which the fast path looks up the first fixed key; "" without a fast path."""
    keys: tuple[Key, ...]
    """All keys, if all are fixed."""
    base: Probe
    steps: tuple[PathStep, ...]
    each: bool


class PathReader:
    """Compiler of the paths of one expression. `code` compiles the computed parts inside them."""

    def __init__(self, source: str, names: Names, code: Callable[[Tree], Code]) -> None:
        self.source = source
        self.names = names
        self.code = code
        self.reads: list[PathRead] = []
        self.variables: dict[str, int] = {}
        """Lambda variables in scope, and the slot of each."""
        self.slots = 0
        self.inside: list[int] = []
        """Slots of elements whose fields are visible as bare names here, innermost last (`each` in templates)."""

    def spot(self, tree: Tree) -> Spot:
        return Spot(self.source, tree.at, tree.end)

    def path(self, tree: PathTree, *, guarded: bool) -> Code:
        place = self.place(tree, guarded=guarded)
        probe = self.probe_of(place)
        spot = self.spot(tree)

        def absent(frame: EvaluationFrame) -> Json:
            value = probe(frame)
            if value is not MISSING:
                return value
            if frame.env.strict and not guarded:
                text = self.source[spot.at : spot.end]
                raise MissingValue(f"{text!r} has no value", spot=spot, hint="Give a default: `a ?? b`.")
            return None

        if not place.container:
            return absent
        return as_code(fixed_path(place.container, place.keys, absent))

    def probe_of(self, place: ResolvedPath) -> Probe:
        """Return the probe, which distinguishes a missing path from null."""
        base, steps = place.base, place.steps
        if not steps:
            return base
        return lambda frame: follow(frame, base(frame), steps)

    def place(self, tree: PathTree, *, guarded: bool) -> ResolvedPath:
        """Resolve the names of a path, and record it as read unless it starts at a variable or a computed value."""
        start, parts, own = rooted(tree)
        if own and isinstance(start, Name) and start.name in self.variables:
            slot = self.variables[start.name]
            return self.walk(lambda frame: frame.slots[slot], parts)
        if not isinstance(start, Name | Dollar):
            return self.walk(self.code(start), parts)
        root = "state" if isinstance(start, Dollar) else self.names.root(start.name)
        if root == "secret":
            raise SecretNotAllowed(
                "secrets are not data: an expression cannot read them",
                spot=self.spot(start),
                hint="Write `secret.NAME` in a parameter or header; it is filled in when the request leaves.",
            )
        name = start.name if isinstance(start, Name) else ""
        if root == "state" and name == "state" and self.is_data(parts):
            self.note(root, name, parts[1:], tree, guarded=guarded)
            return self.walk(data_base, parts[1:])
        self.note(root, name, parts, tree, guarded=guarded or (own and bool(self.inside)))
        place = self.data(root, name, parts)
        return self.nearer(name, place, parts) if own and name and self.inside else place

    def is_data(self, parts: list[Get | Each]) -> bool:
        """Return whether a path below `state` begins with `data.` and the workflow has no field of that name.

        Older documents nest the data there: `state.data.x` is `state.x`.
        """
        return len(parts) > 1 and literal_key(parts[0]) == "data" and "data" not in self.names.declared

    def nearer(self, name: str, place: ResolvedPath, parts: list[Get | Each]) -> ResolvedPath:
        """Return the same path, but look it up first as a field of the enclosing elements."""
        steps = self.steps(parts, [self.fixed_key(part) for part in parts])
        slots, farther = tuple(reversed(self.inside)), self.probe_of(place)

        def probe(frame: EvaluationFrame) -> Json | Missing:
            for slot in slots:
                element = frame.slots[slot]
                if isinstance(element, dict) and name in element:
                    return follow(frame, element[name], steps)
            return farther(frame)

        return ResolvedPath("", (), probe, (), each=place.each)

    def data(self, root: str, name: str, parts: list[Get | Each]) -> ResolvedPath:
        """Return a path from a root that is data."""
        head = self.fixed_key(parts[0]) if parts else None
        if root == "":
            return self.walk(bare_base(name), parts, container="state", keys=(name,))
        if root == "state":
            if head == "next":
                return self.walk(next_base, parts[1:])
            return self.walk(state_base, parts, container="state")
        if root not in ("nodes", "config"):
            return self.walk(named_base(root), parts, container="names", keys=(root,))
        if isinstance(head, str):
            return self.walk(entry_base(root, head), parts[1:], container=root, keys=(head,))
        if parts and isinstance(first := parts[0], Get):
            base = computed_entry_base(root, self.code(first.key), self.spot(first.key))
            return self.walk(base, parts[1:])
        return self.walk(whole_base(root), parts)

    def walk(
        self, base: Probe, parts: list[Get | Each], *, container: str = "", keys: tuple[Key, ...] = ()
    ) -> ResolvedPath:
        """Compile the rest of a path. The fast path remains possible while every key is fixed."""
        fixed = [self.fixed_key(part) for part in parts]
        fixed_keys = (*keys, *[key for key in fixed if key is not None])
        quick = container if fixed_keys and len(fixed_keys) == len(keys) + len(fixed) else ""
        return ResolvedPath(quick, fixed_keys, base, self.steps(parts, fixed), each=Each in map(type, parts))

    def steps(self, parts: list[Get | Each], fixed: list[Key | None]) -> tuple[PathStep, ...]:
        steps: list[PathStep] = []
        for number, (part, key) in enumerate(zip(parts, fixed, strict=True)):
            if isinstance(part, Each):
                rest = self.steps(parts[number + 1 :], fixed[number + 1 :])
                flatten = Each in map(type, parts[number + 1 :])
                steps.append(each_step(rest, self.spot(part), flatten=flatten))
                break
            if part.dotted and literal_key(part) == ITEM_SEGMENT:
                steps.append(item_step)
            elif part.dotted and key == "length":
                steps.append(length_step)
            elif key is not None:
                steps.append(key_step(key))
            else:
                steps.append(computed_step(self.code(part.key), self.spot(part.key)))
        return tuple(steps)

    def fixed_key(self, part: Get | Each) -> Key | None:
        """Return a key that is known now; None for computed keys, `*` and the item."""
        if isinstance(part, Each) or not isinstance(part.key, Literal):
            return None
        if part.dotted and part.key.value == ITEM_SEGMENT:
            return None
        value = part.key.value
        if isinstance(value, str):
            return value
        if whole(value):
            return int(value)
        raise ExpressionError("an index must be a whole number or a text", spot=self.spot(part.key))

    def note(self, root: str, name: str, parts: list[Get | Each], tree: Tree, *, guarded: bool) -> None:
        path: list[str | int | None] = [] if root else [name]
        for part in parts:
            key = self.fixed_key(part)
            if part is parts[-1] and isinstance(part, Get) and part.dotted and key == "length":
                break
            path.append(key)
        self.reads.append(PathRead(root or "state", tuple(path), tree.at, tree.end - tree.at, guarded))

    def is_label(self, tree: Tree) -> bool:
        """Return whether the path is `nodes.<id>.branch` or `result.branch`: the branch that a decision chose."""
        start, parts, _ = rooted(tree)
        if not isinstance(start, Name) or start.name in self.variables:
            return False
        root, keys = self.names.root(start.name), [literal_key(part) for part in parts]
        return (root == "result" and keys == ["branch"]) or (root == "nodes" and keys[1:] == ["branch"])

    def bind(self, variable: str) -> tuple[int, int | None]:
        """Allocate a slot for a lambda variable: each lambda has its own, so that nested ones never share one."""
        outer = self.variables.get(variable)
        slot = self.slots
        self.slots += 1
        self.variables[variable] = slot
        return slot, outer

    def unbind(self, variable: str, outer: int | None) -> None:
        del self.variables[variable]
        if outer is not None:
            self.variables[variable] = outer


def as_code(probe: Probe) -> Code:
    """Cast a probe that never returns MISSING on its slow path to a code, for the type checker."""
    return probe  # pyright: ignore[reportReturnType]  # `absent` maps MISSING to None or raises
