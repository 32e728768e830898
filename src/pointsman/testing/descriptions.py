"""The state of an execution as plain data, so that two of them can be compared and their difference read.

Left out is what no row of the journal gives: what only makes the next decision faster, and what lives for one row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Final, TypeAlias, cast

from msgspec import Struct

from pointsman.engine.data import Data
from pointsman.engine.state import ExecutionState, Opening, ScopeState, StepState

Description: TypeAlias = "None | bool | int | float | str | list[Description] | dict[str, Description]"

AS_IT_IS: Final = frozenset({type(None), bool, int, float, str})

NOT_KEPT: Final = frozenset({"size_bound", "left", "fallen", "asked"})


def describe(state: ExecutionState) -> dict[str, Description]:
    """All of it, with the same keys in the same order whatever happened first."""
    found = _plain(state, inside=False)
    assert isinstance(found, dict)
    return found


def _plain(value: object, *, inside: bool = True) -> Description:
    """`inside`: steps, scopes and openings are named where others point to them, and told in full once."""
    # Simulations compare states after every row: most values are one of these two.
    if type(value) in AS_IT_IS:
        return cast("Description", value)
    if type(value) is dict:
        return _sorted(cast("dict[object, object]", value))
    match value:
        case str():
            return value
        case Data():
            return _plain(value.root)
        case StepState() | ScopeState() | Opening() if inside:
            return f"{type(value).__name__} {value.step if not isinstance(value, ScopeState) else value.key}"
        case Mapping():
            return _sorted(cast("Mapping[object, object]", value))
        case list() | tuple():
            return [_plain(one) for one in cast("list[object]", value)]
        case set() | frozenset():
            return [*sorted(str(one) for one in cast("set[object]", value))]
        case ExecutionState():
            return {name: _full(getattr(value, name)) for name in value.__struct_fields__ if name not in NOT_KEPT}
        case Struct():
            return {name: _full(getattr(value, name)) for name in value.__struct_fields__}
        case _ if is_dataclass(value):
            return {one.name: _full(getattr(value, one.name)) for one in fields(value)}
        case _:
            return str(value)


def _full(value: object) -> Description:
    """A field of the state: the tables of steps, scopes and openings are told in full."""
    match value:
        case dict():
            return _sorted(cast("dict[object, object]", value), inside=False)
        case list():
            return [_plain(one, inside=False) for one in cast("list[object]", value)]
        case _:
            return _plain(value)


def _sorted(table: Mapping[object, object], *, inside: bool = True) -> Description:
    return {str(key): _plain(one, inside=inside) for key, one in sorted(table.items(), key=lambda item: str(item[0]))}
