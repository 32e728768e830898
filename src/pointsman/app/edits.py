"""Edits: what people want in the data of an execution, by the names they see, held against what is declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import jsonschema_rs

from pointsman.definition.workflow import Workflow
from pointsman.engine.data import dotted
from pointsman.engine.editing import EditRefused, scope_named
from pointsman.engine.facts import Edit
from pointsman.engine.state import ExecutionState
from pointsman.errors import AuthorError
from pointsman.expressions.paths import ItemKey, compile_path
from pointsman.values import Json, JsonObject

Path: TypeAlias = tuple[str | int, ...]

BRANCH_END: Final = "]/"


def edits_of(state: ExecutionState, named: Mapping[str, Json]) -> tuple[Edit, ...]:
    """`a.b[0]` in the execution's data, `each[1.0]/a.b` in those of an open branch. Raises `EditRefused`."""
    return tuple(_edit(state, name, value) for name, value in named.items())


def _edit(state: ExecutionState, name: str, value: Json) -> Edit:
    around, ends, path = name.rpartition(BRANCH_END)
    return Edit(path_of(path), value, scope_named(state, around + ends) if ends else ())


def path_of(text: str) -> Path:
    """The keys of a path as people write it. Raises `EditRefused`."""
    try:
        keys = compile_path(text).segments
    except AuthorError as why:
        raise EditRefused(f"{text!r} is not a path: {why}", hint=why.hint) from why
    plain = tuple(key for key in keys if not isinstance(key, ItemKey))
    if len(plain) != len(keys):
        raise EditRefused(f"{text!r} names the item of a branch", hint="Name the branch: each[1.0]/a.b.")
    return plain


def check_declared(workflow: Workflow, state: ExecutionState, edits: Sequence[Edit]) -> None:
    """What was edited must fit the schemas that the workflow declares for its fields. Raises `EditRefused`."""
    for edit in edits:
        for path, message in undeclared(workflow, state.scopes[edit.scope].data.root):
            if all(one == other for one, other in zip(path, edit.path, strict=False)):
                raise EditRefused(
                    f"{dotted(path)!r} does not fit what the workflow declares: {message}",
                    hint="See `state` in the definition.",
                )


def undeclared(workflow: Workflow, data: JsonObject) -> Iterator[tuple[Path, str]]:
    """Where data do not fit the schemas that the workflow declares for its fields, and why."""
    for pattern, field in (workflow.state or {}).items():
        if field.schema_ is None:
            continue
        validator = jsonschema_rs.validator_for(field.schema_)
        for path, value in _values(data, pattern.split(".")):
            for wrong in validator.iter_errors(value):
                yield path, wrong.message
                break


def _values(data: JsonObject, pattern: Sequence[str]) -> Iterator[tuple[Path, Json]]:
    """The values at a pattern (`*` is any key), with their paths."""
    found: list[tuple[Path, Json]] = [((), data)]
    for key in pattern:
        found = [((*path, name), value) for path, held in found for name, value in _held(held, key)]
    yield from found


def _held(value: Json, key: str) -> list[tuple[str, Json]]:
    if not isinstance(value, dict):
        return []
    return [*value.items()] if key == "*" else [(key, value[key])] if key in value else []
