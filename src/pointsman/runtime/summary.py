"""The summary of an execution for lists."""

from __future__ import annotations

from pointsman.engine.reports import Usage
from pointsman.engine.scripted import is_scripted
from pointsman.engine.state import ExecutionState, UsageTotal
from pointsman.runtime.inbox import gates_in
from pointsman.store.budget_usage import AMOUNT_MAX, BudgetUsage
from pointsman.store.records import Summary
from pointsman.values import ExecutionId, Instant, WorkflowId


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


def revision_of(version: str) -> int:
    """Return the saved revision from an `id@revision` version; 0 for a document that was never saved."""
    return int(version) if version.isdecimal() else 0


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
        awaits=awaits,
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
