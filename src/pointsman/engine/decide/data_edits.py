"""Validate the values that a person writes into the data of an execution. `fold.scopes.edit` applies them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from pointsman.engine.data import Data, WriteFailed, dotted
from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.decide.declared_fields import misfit
from pointsman.engine.decide.outputs import StepRefused, check_possible, check_size
from pointsman.engine.fold.scopes import write_of
from pointsman.engine.plan import Plan
from pointsman.engine.state import ExecutionState, ScopeState
from pointsman.engine.steps import Scope, scope_text
from pointsman.engine.writes import DataEdit, Write
from pointsman.errors import CallerError


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
