"""Data edits: changes to the data of an execution, by the paths that people see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pointsman.engine.decide.outputs import EditRefused, scope_named
from pointsman.engine.state import ExecutionState
from pointsman.engine.steps import DataEdit
from pointsman.errors import AuthorError
from pointsman.expressions.paths import ItemKey, compile_path
from pointsman.values import Json, Path

BRANCH_END: Final = "]/"


def edits_of(state: ExecutionState, named: Mapping[str, Json]) -> tuple[DataEdit, ...]:
    """Parse edits: `a.b[0]` in the execution's data, `each[1.0]/a.b` in those of an open branch. Raises
    `EditRefused`."""
    return tuple(_edit(state, name, value) for name, value in named.items())


def _edit(state: ExecutionState, name: str, value: Json) -> DataEdit:
    around, ends, path = name.rpartition(BRANCH_END)
    return DataEdit(path_of(path), value, scope_named(state, around + ends) if ends else ())


def path_of(text: str) -> Path:
    """Return the keys of a path as people write it. Raises `EditRefused`."""
    try:
        keys = compile_path(text).segments
    except AuthorError as why:
        raise EditRefused(str(why), hint=why.hint) from why
    plain = tuple(key for key in keys if not isinstance(key, ItemKey))
    if len(plain) != len(keys):
        raise EditRefused(f"{text!r} names the item of a branch", hint="Name the branch: each[1.0]/a.b.")
    return plain
