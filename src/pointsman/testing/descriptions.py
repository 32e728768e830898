"""Describes the state of an execution as plain data, for comparison and readable differences.

Left out are values that no row of the journal determines: caches for the next decision, and values that live for one
row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Final, TypeAlias, cast

from msgspec import Struct

from pointsman.engine.data import Data
from pointsman.engine.state import ExecutionState, ParallelFrame, ScopeState, StepState

Told: TypeAlias = "dict[int, Description]"
"""By `id`, while the state holds them."""
Pairs: TypeAlias = set[tuple[int, int]]
"""Pairs of lists already compared, by `id`."""
Description: TypeAlias = "None | bool | int | float | str | list[Description] | dict[str, Description]"

AS_IT_IS: Final = frozenset({type(None), bool, int, float, str})

NOT_KEPT: Final = frozenset({"row", "data_bytes_max", "progress"})
"""Fields that are not described."""
NOT_COMPARED: Final = frozenset({"row", "data_bytes_max", "seen"})
"""Fields that the quick comparison leaves out."""


def describe(state: ExecutionState) -> dict[str, Description]:
    """Return the whole state with the same keys in the same order, whatever happened first."""
    found = _plain(state, {}, inside=False)
    assert isinstance(found, dict)
    return found


def _plain(value: object, told: Told, *, inside: bool = True) -> Description:
    """`inside`: steps, scopes and parallels are named where they are referred to, and described in full once.

    `told`: lists described before, so that a list nested twice in itself at many levels stays cheap.
    """
    # Simulations compare states after every row: most values are of one of these two types.
    if type(value) in AS_IT_IS:
        return cast("Description", value)
    if type(value) is dict:
        return _sorted(cast("dict[object, object]", value), told)
    match value:
        case str():
            return value
        case Data():
            return _plain(value.root, told)
        case StepState() | ScopeState() | ParallelFrame() if inside:
            return f"{type(value).__name__} {value.step if not isinstance(value, ScopeState) else value.key}"
        case Mapping():
            return _sorted(cast("Mapping[object, object]", value), told)
        case list() | tuple():
            return _listed(cast("Sequence[object]", value), told)
        case set() | frozenset():
            return [*sorted(str(one) for one in cast("set[object]", value))]
        case Struct():
            return {name: _full(getattr(value, name), told) for name in value.__struct_fields__ if name not in NOT_KEPT}
        case _ if is_dataclass(value):
            return {one.name: _full(getattr(value, one.name), told) for one in fields(value)}
        case _:
            return str(value)


def _listed(values: Sequence[object], told: Told) -> Description:
    known = told.get(id(values))
    if known is None:
        known = told[id(values)] = [_plain(one, told) for one in values]
    return known


def _full(value: object, told: Told) -> Description:
    """Return a field of the state; the tables of steps, scopes and parallels are described in full."""
    match value:
        case dict():
            return _sorted(cast("dict[object, object]", value), told, inside=False)
        case list():
            return [_plain(one, told, inside=False) for one in cast("list[object]", value)]
        case _:
            return _plain(value, told)


def _sorted(table: Mapping[object, object], told: Told, *, inside: bool = True) -> Description:
    pairs = sorted(table.items(), key=lambda item: str(item[0]))
    return {str(key): _plain(one, told, inside=inside) for key, one in pairs}


def are_alike(one: ExecutionState, other: ExecutionState) -> bool:
    """Return whether two states certainly have the same description. False means unknown, as for a list in place of a
    tuple.

    Costs a quarter of describing both.
    """
    seen: Pairs = set()
    return all(_fields_alike(one, other, name, seen) for name in one.__struct_fields__ if name not in NOT_COMPARED)


def _alike(one: object, other: object, seen: Pairs, *, inside: bool = True) -> bool:
    kind = type(one)
    if one is other or (kind in AS_IT_IS and one == other):
        return True
    if kind is not type(other):
        return False
    if kind is dict:
        return _tables_alike(cast("dict[object, object]", one), cast("dict[object, object]", other), seen)
    if isinstance(one, Data) and isinstance(other, Data):
        return _alike(one.root, other.root, seen)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return _lists_alike(cast("Sequence[object]", one), cast("Sequence[object]", other), seen)
    if inside and isinstance(one, StepState | ScopeState | ParallelFrame):
        return _plain(one, {}) == _plain(other, {})
    if isinstance(one, Struct):
        return all(_fields_alike(one, other, name, seen) for name in one.__struct_fields__ if name not in NOT_COMPARED)
    return one == other


def _fields_alike(one: object, other: object, name: str, seen: Pairs) -> bool:
    mine: object = getattr(one, name)
    others: object = getattr(other, name)
    if mine is others:
        return True
    if isinstance(mine, dict) and isinstance(others, dict):
        table, beside = cast("dict[object, object]", mine), cast("dict[object, object]", others)
        return _tables_alike(table, beside, seen, inside=False)
    if isinstance(mine, list) and isinstance(others, list):
        return _lists_alike(cast("list[object]", mine), cast("list[object]", others), seen, inside=False)
    return _alike(cast(object, mine), others, seen)


def _tables_alike(one: dict[object, object], other: dict[object, object], seen: Pairs, *, inside: bool = True) -> bool:
    if one.keys() != other.keys():
        return False
    return all(_alike(value, other[key], seen, inside=inside) for key, value in one.items())


def _lists_alike(one: Sequence[object], other: Sequence[object], seen: Pairs, *, inside: bool = True) -> bool:
    """Skip pairs that were compared before, so that shared nested lists stay cheap."""
    pair = (id(one), id(other))
    if pair in seen:
        return True
    seen.add(pair)
    return len(one) == len(other) and all(_alike(a, b, seen, inside=inside) for a, b in zip(one, other, strict=True))


def differences(one: ExecutionState, other: ExecutionState) -> str:
    """Return the differences of two states, one line per position."""
    return "\n".join(_differences("state", describe(one), describe(other)))


def _differences(place: str, one: Description, other: Description) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted({*one, *other}):
            yield from _differences(f"{place}.{name}", one.get(name), other.get(name))
    elif one != other:
        yield f"{place}: {one} ≠ {other}"
