"""Editing: a person puts values into the data of an execution, over whatever steps wrote there.

Checked here, before anything is decided; `scopes.edit` is the other half.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from pointsman.engine.data import WriteFailed
from pointsman.engine.desk import Desk
from pointsman.engine.facts import Edit
from pointsman.engine.outputs import StepRefused, check_possible, check_size
from pointsman.engine.scopes import write_of
from pointsman.engine.state import ExecutionState
from pointsman.engine.steps import Scope, scope_text
from pointsman.errors import CallerError


class EditRefused(CallerError):
    """A value cannot be put where a person wants it: the place, its schema or the size forbids it."""

    code = "edit-refused"


def check_edits(desk: Desk, edits: Iterable[Edit]) -> None:
    """Refuse, before anything is written, what has no place or grows too large. Raises `EditRefused`."""
    in_order = sorted(edits, key=lambda edit: edit.scope)
    for key, several in groupby(in_order, key=lambda edit: edit.scope):
        scope = desk.state.scopes.get(key)
        if scope is None:
            raise _no_such_scope(desk.state, scope_text(key))
        writes = tuple(write_of(edit) for edit in several)
        try:
            check_possible(scope, writes, None)
            check_size(desk, scope, writes, None)
        except (WriteFailed, StepRefused) as why:
            raise EditRefused(f"the edit is refused: {why}", hint=why.hint) from why


def scope_named(state: ExecutionState, text: str) -> Scope:
    """The open scope that people call so, as in the texts of its steps: `each[1.0]/`. Raises `EditRefused`."""
    for key in state.scopes:
        if scope_text(key) == text:
            return key
    raise _no_such_scope(state, text)


def _no_such_scope(state: ExecutionState, named: str) -> EditRefused:
    known = ", ".join(scope_text(key) for key in sorted(state.scopes) if key)
    return EditRefused(f"no branch {named!r} is open", hint=f"Open: {known or 'none'}. Without one: the execution.")
