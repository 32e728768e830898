"""The summary of an execution for lists, and its entries in inboxes.

Both are written in the same transaction as the row that changes them, so they are never stale.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pointsman.engine.actions import GateApprovers
from pointsman.engine.decide.human_tasks import voters
from pointsman.engine.events.steps import Event
from pointsman.engine.events.waits import GateClosed, GateVoted
from pointsman.engine.reports import Usage
from pointsman.engine.state import ExecutionState, GateState, UsageTotal, is_scripted
from pointsman.store.records import AMOUNT_MAX, ANYONE, AnswerEntry, BudgetUsage, GateEntry, Summary
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
            message=without_nul(gate.message[:MESSAGE_CHARS_MAX]),
            about=gate.about,
            opened=Instant(gate.opened),
            deadline=None if gate.deadline is None else Instant(gate.deadline),
            users=_users(gate, gate.approvers),
            groups=_groups(gate.approvers),
            without=tuple(map(without_nul, sorted({*gate.votes, *gate.delegations}))),
            item=None if gate.item is None else without_nul(gate.item),
            round=gate.round,
            messages={language: without_nul(text[:MESSAGE_CHARS_MAX]) for language, text in gate.messages.items()},
            called=_plainly(gate.display_name),
            digest=gate.digest,
            scripted=is_scripted(state),
            by_link=gate.approvers is not None and gate.approvers.by_link,
        )
        for at in state.open_gates
        if (gate := at.gate) is not None
    )


def answers_in(execution: ExecutionId, state: ExecutionState, events: Sequence[Event]) -> tuple[AnswerEntry, ...]:
    """Return the answers of people in the events of the present row, the last one of each person."""
    answers: dict[tuple[str, str], AnswerEntry] = {}
    for event in events:
        if not isinstance(event, GateVoted | GateClosed) or not event.by or _is_timeout(event):
            continue
        gate = state.row.answered_gates[event.step]
        answers[gate.id, event.by] = AnswerEntry(
            execution=execution,
            workflow=WorkflowId(state.setup.workflow),
            gate=gate.id,
            node=event.step.node,
            message=without_nul(gate.message[:MESSAGE_CHARS_MAX]),
            by=without_nul(event.by),
            action=without_nul(event.action),
            at=Instant(state.at),
            comment=without_nul(event.comment[:MESSAGE_CHARS_MAX]),
            closed=isinstance(event, GateClosed),
            about=gate.about,
            item=None if gate.item is None else without_nul(gate.item),
            round=gate.round,
            messages={language: without_nul(text[:MESSAGE_CHARS_MAX]) for language, text in gate.messages.items()},
            called=_plainly(gate.display_name),
        )
    return tuple(answers.values())


def _is_timeout(event: GateVoted | GateClosed) -> bool:
    return isinstance(event, GateClosed) and event.cause == "timeout"


def without_nul(text: str) -> str:
    """Return the text with NUL characters replaced: stores refuse them in a summary."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _plainly(called: Json) -> Json:
    """Return a display name (a text, or one by language) with NUL characters replaced."""
    if isinstance(called, dict):
        return {language: _plainly(text) for language, text in called.items()}
    return without_nul(called) if isinstance(called, str) else None


def _users(gate: GateState, approvers: GateApprovers | None) -> tuple[str, ...]:
    if approvers is None or not approvers.named:
        return (ANYONE,)
    named = voters(gate)
    return tuple(map(without_nul, sorted({*(approvers.users or ()), *gate.delegates} if named is None else named)))


def _groups(approvers: GateApprovers | None) -> tuple[str, ...]:
    return tuple(map(without_nul, (approvers.groups if approvers is not None else None) or ()))


def usage_of(state: ExecutionState) -> Usage:
    """Return the total usage of an execution, including its sub-workflows."""
    total = state.usage
    return Usage(
        input_tokens=total.input_tokens,
        output_tokens=total.output_tokens,
        model_calls=total.model_calls,
        tool_calls=total.tool_calls,
        cost_usd=total.cost_usd,
        cache_read_tokens=total.cache_read_tokens,
        cache_write_tokens=total.cache_write_tokens,
        free_calls=total.free_calls,
        scripted=total.scripted,
    )


def needs_of(state: ExecutionState) -> tuple[str, ...]:
    """Return what workers must have for the waiting steps, sorted."""
    if not state.steps_without_worker or state.ended:
        return ()
    return tuple(sorted({state.steps[step].needs for step in state.steps_without_worker}))


def summary_of(
    execution: ExecutionId,
    state: ExecutionState,
    status: str,
    *,
    wakes: Instant | None = None,
    awaits: tuple[str, ...] = (),
    worker: str = "",
    with_gates: bool = True,
) -> Summary:
    """Return the entry for lists and inboxes. `with_gates`: False if the gates are unchanged."""
    revision, by = state.setup.options.get("revision"), state.setup.options.get("by")
    return Summary(
        execution=execution,
        workflow=WorkflowId(state.setup.workflow),
        revision=revision if isinstance(revision, int) else 0,
        status=status,
        started=Instant(state.setup.started_at),
        updated=Instant(state.at),
        parent=ExecutionId(state.setup.parent) if state.setup.parent is not None else None,
        session=state.setup.session,
        owner=by if isinstance(by, str) else "",
        wakes=wakes,
        awaits=tuple(map(without_nul, awaits)),
        needs=needs_of(state),
        worker=worker,
        gates=gates_in(execution, state) if with_gates else None,
        spent=spent_of(state.usage),
        scripted=is_scripted(state),
    )


def spent_of(usage: UsageTotal) -> BudgetUsage:
    """Return the usage as budgets count it."""
    return BudgetUsage(
        tokens=min(usage.input_tokens + usage.output_tokens, AMOUNT_MAX),
        model_calls=min(usage.model_calls, AMOUNT_MAX),
        tool_calls=min(usage.tool_calls, AMOUNT_MAX),
        cost_usd=usage.cost_usd or 0.0,
    )
