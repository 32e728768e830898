"""Inbox entries of an execution. Written in the same transaction as the row that changes them, so they are never
stale.
"""

from __future__ import annotations

from typing import Final

from pointsman.engine.approvers import GateApprovers
from pointsman.engine.decide.quorum import voters
from pointsman.engine.scripted import is_scripted
from pointsman.engine.state import ExecutionState, GateState
from pointsman.store.records import ANYONE, GateEntry
from pointsman.values import ExecutionId, Instant, Json, WorkflowId

MESSAGE_CHARS_MAX: Final = 1000
"""Characters of a gate's message shown in an inbox; the execution has the whole text."""


def gates_in(execution: ExecutionId, state: ExecutionState) -> tuple[GateEntry, ...]:
    """Return the open gates of an execution as inbox entries, in the order of their steps."""
    return tuple(
        GateEntry(
            execution=execution,
            workflow=WorkflowId(state.setup.workflow),
            gate=gate.id,
            node=at.step.node,
            message=_plain(gate.message[:MESSAGE_CHARS_MAX]),
            about=gate.about,
            opened=Instant(gate.opened),
            deadline=None if gate.deadline is None else Instant(gate.deadline),
            users=_users(gate, gate.approvers),
            groups=_groups(gate.approvers),
            without=tuple(map(_plain, sorted({*gate.votes, *gate.delegations}))),
            item=None if gate.item is None else _plain(gate.item),
            round=gate.round,
            messages={language: _plain(text[:MESSAGE_CHARS_MAX]) for language, text in gate.messages.items()},
            called=_plainly(gate.display_name),
            digest=gate.digest,
            scripted=is_scripted(state),
        )
        for at in state.open_gates
        if (gate := at.gate) is not None
    )


def _plain(text: str) -> str:
    """Return the text with NUL characters replaced: not every store can hold them in a list."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _plainly(called: Json) -> Json:
    """Return a display name (a text, or one by language) with NUL characters replaced."""
    if isinstance(called, dict):
        return {language: _plainly(text) for language, text in called.items()}
    return _plain(called) if isinstance(called, str) else None


def _users(gate: GateState, approvers: GateApprovers | None) -> tuple[str, ...]:
    if approvers is None or not approvers.named:
        return (ANYONE,)
    named = voters(gate)
    return tuple(map(_plain, sorted({*(approvers.users or ()), *gate.delegates} if named is None else named)))


def _groups(approvers: GateApprovers | None) -> tuple[str, ...]:
    return (approvers.groups if approvers is not None else None) or ()
