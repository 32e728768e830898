"""Validate the values that a person writes into the data of an execution. `fold.scopes.edit` applies them.

Schemas of declared fields hold for values that people write, not for those that steps write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from pointsman.definition.json_schema import JsonSchema
from pointsman.engine.data import Data, WriteFailed, dotted
from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.decide.outputs import StepRefused, check_possible, check_size
from pointsman.engine.fold.scopes import write_of
from pointsman.engine.plan import DeclaredField, Plan
from pointsman.engine.state import ExecutionState, ScopeState
from pointsman.engine.steps import DataEdit, Scope, Write, scope_text
from pointsman.errors import CallerError
from pointsman.values import Json, JsonObject, Path


class EditRefused(CallerError):
    """A value cannot be written where a person wants it: the path, its schema or the size forbids it."""

    code = "edit-refused"


def check_edits(ctx: DecisionContext, edits: Iterable[DataEdit]) -> None:
    """Check edits before anything is written: their paths, the size, and the schemas of the fields. Raises
    `EditRefused`.
    """
    in_order = sorted(edits, key=lambda edit: edit.scope)
    for key, several in groupby(in_order, key=lambda edit: edit.scope):
        scope = ctx.state.scopes.get(key)
        if scope is None:
            raise _no_such_scope(ctx.state, scope_text(key))
        writes = tuple(write_of(edit) for edit in several)
        try:
            check_possible(scope, writes, None)
            check_size(ctx, scope, writes, None)
        except (WriteFailed, StepRefused) as why:
            raise EditRefused(f"the edit is refused: {why}", hint=why.hint) from why
        if ctx.plan.declared:
            _check_declared(ctx.plan, scope, writes)


def _check_declared(plan: Plan, scope: ScopeState, writes: Sequence[Write]) -> None:
    draft = Data(scope.data.shared())
    for write in writes:
        draft.write(write, write.value)
    wrong = misfit(plan.declared, draft.root, [write.path for write in writes])
    if wrong is not None:
        path, message = wrong
        raise EditRefused(
            f"{dotted(path)!r} does not fit what the workflow declares: {message}",
            hint="See `state` in the definition.",
        )


def scope_named(state: ExecutionState, text: str) -> Scope:
    """Return the open scope with this text, written as in the texts of its steps: `each[1.0]/`. Raises
    `EditRefused`.
    """
    for key in state.scopes:
        if scope_text(key) == text:
            return key
    raise _no_such_scope(state, text)


def _no_such_scope(state: ExecutionState, named: str) -> EditRefused:
    known = ", ".join(scope_text(key) for key in sorted(state.scopes) if key)
    return EditRefused(f"no branch {named!r} is open", hint=f"Open: {known or 'none'}. Without one: the execution.")


def misfit(declared: Sequence[DeclaredField], data: JsonObject, paths: Sequence[Path]) -> tuple[Path, str] | None:
    """Return the first path at, above or below one of the paths whose value does not fit its declared schema, and
    why.
    """
    for path, message in undeclared(declared, data):
        if any(all(one == other for one, other in zip(path, touched, strict=False)) for touched in paths):
            return path, message
    return None


def undeclared(declared: Sequence[DeclaredField], data: JsonObject) -> Iterator[tuple[Path, str]]:
    """Yield each path whose value does not fit its schema, and why."""
    for field in declared:
        schema = JsonSchema(field.schema)
        for path, value in _values(data, field.pattern):
            for misfit in schema.misfits(value):
                yield (*path, *misfit.path), misfit.message


def _values(data: JsonObject, pattern: Sequence[str]) -> Iterator[tuple[Path, Json]]:
    """Yield the values at a pattern (`*` is any key), with their paths."""
    found: list[tuple[Path, Json]] = [((), data)]
    for key in pattern:
        found = [((*path, name), value) for path, held in found for name, value in _held(held, key)]
    yield from found


def _held(value: Json, key: str) -> list[tuple[str, Json]]:
    if not isinstance(value, dict):
        return []
    return [*value.items()] if key == "*" else [(key, value[key])] if key in value else []
