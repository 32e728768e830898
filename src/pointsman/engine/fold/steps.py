"""Fold events of steps, from start to end: results, writes, usage, attempts, failures."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from pointsman.engine.events import steps as step_events
from pointsman.engine.events import waits as wait_events
from pointsman.engine.fold import scopes
from pointsman.engine.fold.scopes import arrivals_parked, consume_arrivals, scope_of, write
from pointsman.engine.reports import Usage
from pointsman.engine.state import (
    ExecutionState,
    PendingArrival,
    Repetition,
    ScopeState,
    StepOutput,
    StepState,
    TerminalValue,
    UndoRecord,
    UsageTotal,
    WorkflowCall,
    record_repetition,
)
from pointsman.engine.steps import Lineage, Step, Write, lineage_path
from pointsman.values import Json, JsonObject

MESSAGES = ("messages",)
ONE_CALL: Final = Usage(tool_calls=1)
"""The usage of a tool step."""
SAME_ATTEMPT = frozenset({"approved", "worker"})
"""Reasons for performing the same attempt again, with its verdicts."""


def started(state: ExecutionState, event: step_events.StepStarted) -> None:
    step = event.step
    scope = scope_of(state, step.scope)
    together = arrivals_parked(scope, step.node, event.merged) if event.merged else ()
    output = consume_arrivals(state, scope, step.node, event.after, event.merged, event.lineage)
    if event.caller is not None:
        output = replace(output, caller=event.caller)
    counters = state.counters
    counters.steps += 1
    counters.visited_nodes.add(step.node)
    scope.visits[step.node, step.lineage] = step.visit
    scopes.add_step(
        state, StepState(step, scope, output, event.input, event.messages, is_running=event.runs, arrivals=together)
    )


def message_writes(messages: tuple[Json, ...]) -> tuple[Write, ...]:
    """Return the writes that append messages to the conversation."""
    return tuple(Write(MESSAGES, "append", message) for message in messages)


def public_view(result: Json, view: JsonObject | None) -> Json:
    """Return the value of `nodes.<id>`: the result with annotations (`text`, `branch`, `action`, `round`)."""
    if not view:
        return result
    if isinstance(result, dict):
        return {**view, **result}
    return view if result is None else {**view, "result": result} if "branch" in view or "action" in view else result


def _show(scope: ScopeState, step: Step, thread: Lineage, value: Json) -> None:
    """Show the result in `nodes`. Of concurrent visits the one with the greatest lineage wins, not the slowest."""
    if thread:
        if (thread, step.visit) < scope.displayed.get(step.node, ((), 0)):
            return
        scope.displayed[step.node] = (thread, step.visit)
    scope.nodes[step.node] = value


def instant_completed(state: ExecutionState, event: step_events.InstantStepCompleted) -> None:
    step = event.step
    scope = scope_of(state, step.scope)
    output = consume_arrivals(state, scope, step.node, event.after, event.merged, event.lineage)
    counters = state.counters
    counters.steps += 1
    counters.visited_nodes.add(step.node)
    scope.visits[step.node, step.lineage] = step.visit
    if event.replaces:
        output = replace(output, value=event.result, pending=())
    result = output.value if event.takes else event.result
    if event.writes:
        write(scope, step.node, event.lineage, event.writes, result)
    if event.replaces or event.takes or event.annotations:
        _show(scope, step, event.lineage, public_view(result, event.annotations))
    state.row.outputs[step] = output


def succeeded(state: ExecutionState, event: step_events.StepSucceeded) -> None:
    step = event.step
    at = state.steps[step]
    scope = at.scope
    _show(scope, step, at.incoming.lineage, public_view(event.result, event.annotations))
    if event.writes:
        write(scope, step.node, at.incoming.lineage, event.writes, event.result)
    if event.messages:
        write(scope, step.node, at.incoming.lineage, message_writes(event.messages), None)
        if not step.scope:
            state.counters.messages += len(event.messages)
    if event.usage is not None:
        spend(state, event.usage if at.child_usage is None else uncounted_usage(event.usage, at.child_usage))
        at.child_usage = None
    if event.undone_by is not None:
        state.undo_log.append(UndoRecord(step, event.undone_by, at.input, event.result, scope.names, scope.item_key))
    if event.repeats:
        record_repetition(state.limits.stall_guards, step, Repetition(event.mark, event.repeats, event.seen))
    value = at.incoming.value if event.keeps else event.result
    caller = step.node if event.pending else at.incoming.caller
    state.row.outputs[step] = StepOutput(value, at.incoming.lineage, caller, event.pending)
    scopes.settle_step(state, step)


def spend(state: ExecutionState, usage: Usage) -> None:
    """Add the usage of a piece of work."""
    if usage == ONE_CALL:
        state.usage = replace(state.usage, tool_calls=state.usage.tool_calls + 1)
        return
    total, cost = state.usage, usage.cost_usd
    unpriced = usage.model_calls - usage.free_calls if cost is None else 0
    state.usage = UsageTotal(
        input_tokens=total.input_tokens + usage.input_tokens,
        output_tokens=total.output_tokens + usage.output_tokens,
        model_calls=total.model_calls + usage.model_calls,
        tool_calls=total.tool_calls + usage.tool_calls,
        cost_usd=total.cost_usd if cost is None else (total.cost_usd or 0.0) + cost,
        unpriced_calls=total.unpriced_calls + unpriced,
        cache_read_tokens=total.cache_read_tokens + usage.cache_read_tokens,
        cache_write_tokens=total.cache_write_tokens + usage.cache_write_tokens,
        free_calls=total.free_calls + usage.free_calls,
        scripted=total.scripted or usage.scripted,
    )


def spent_below(state: ExecutionState, event: wait_events.ChildUsageCounted) -> None:
    """Fold: add the new usage of a child execution that still runs."""
    at = state.steps[event.step]
    if event.call:
        assert at.workflow_calls is not None
        calling = at.workflow_calls[event.call]
        spend(state, uncounted_usage(event.usage, calling.usage))
        calling.usage = event.usage
    else:
        spend(state, uncounted_usage(event.usage, at.child_usage))
        at.child_usage = event.usage


def uncounted_usage(usage: Usage, counted: Usage | None) -> Usage:
    """Return the part of a usage that is not counted yet."""
    if counted is None:
        return usage
    cost = counted.cost_usd or 0.0
    return Usage(
        input_tokens=usage.input_tokens - counted.input_tokens,
        output_tokens=usage.output_tokens - counted.output_tokens,
        model_calls=usage.model_calls - counted.model_calls,
        tool_calls=usage.tool_calls - counted.tool_calls,
        cost_usd=None if usage.cost_usd is None else usage.cost_usd - cost,
        cache_read_tokens=usage.cache_read_tokens - counted.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens - counted.cache_write_tokens,
        free_calls=usage.free_calls - counted.free_calls,
        scripted=usage.scripted,
    )


def failed(state: ExecutionState, event: step_events.StepFailed) -> None:
    at = state.steps[event.step]
    at.failures += 1
    at.failure = event.failure
    if event.usage is not None:
        spend(state, event.usage if at.child_usage is None else uncounted_usage(event.usage, at.child_usage))
        at.child_usage = None
    if at.is_running:
        scopes.tick(state, -1)
        at.is_running = False
    at.child, at.workflow_calls = False, None
    if event.final:
        value: Json = failure_value(event)
        _show(at.scope, event.step, at.incoming.lineage, value)
        state.row.outputs[event.step] = replace(at.incoming, value=value)
        state.row.failures[event.step] = at
        scopes.settle_step(state, event.step)


def failure_value(event: step_events.StepFailed) -> JsonObject:
    """Return a failure as data, for error edges and joins."""
    failure = event.failure
    return {
        "error": {
            "code": failure.code,
            "message": failure.message,
            "retryable": failure.retryable,
            "node": event.step.node,
            "step": str(event.step),
            "attempt": event.attempt,
            "details": failure.details,
        }
    }


def attempt_started(state: ExecutionState, event: step_events.AttemptStarted) -> None:
    at = state.steps[event.step]
    at.attempt, at.phase, at.unapproved = event.attempt, event.phase, False
    if event.reason not in SAME_ATTEMPT:
        at.verdicts = None
    at.workflow_calls = None
    if at.needs:
        at.needs = ""
        del state.steps_without_worker[event.step]
    if event.phase == "work":
        at.input = event.input if event.input is not None else at.input
        at.advised = None
    else:
        at.advised = event.input
    at.reasks += event.reason == "reask"
    at.advices += event.reason == "advice"
    if not at.is_running:
        scopes.tick(state, 1)
        at.is_running = True


def child_asked(state: ExecutionState, event: wait_events.ChildRequested) -> None:
    at = state.steps[event.step]
    at.child = True
    if at.is_running:  # no work runs here
        scopes.tick(state, -1)
        at.is_running = False


def suspended_attempt(state: ExecutionState, event: wait_events.ToolCallEnded | wait_events.WorkerAwaited) -> None:
    """Fold an event of an attempt that a sub-workflow or another worker continues."""
    if isinstance(event, wait_events.ToolCallEnded):
        call_ended(state, event)
    else:
        worker_awaited(state, event)


def worker_awaited(state: ExecutionState, event: wait_events.WorkerAwaited) -> None:
    at = state.steps[event.step]
    at.needs = event.needs
    state.steps_without_worker[event.step] = None
    scopes.tick(state, -1)  # no work runs
    at.is_running = False


def children_asked(state: ExecutionState, event: wait_events.ToolChildrenRequested) -> None:
    at = state.steps[event.step]
    at.workflow_calls = {call.number: WorkflowCall(call) for call in event.calls}
    if at.is_running:  # no work runs here
        scopes.tick(state, -1)
        at.is_running = False


def call_ended(state: ExecutionState, event: wait_events.ToolCallEnded) -> None:
    at = state.steps[event.step]
    assert at.workflow_calls is not None
    calling = at.workflow_calls.pop(event.verdict.number)
    at.verdicts = {**(at.verdicts or {}), event.verdict.number: event.verdict}
    if event.usage is not None:
        spend(state, uncounted_usage(event.usage, calling.usage))


def leaving_failed(state: ExecutionState, event: step_events.ExitFailed) -> None:
    step = event.step
    state.row.failures[step] = PendingArrival(step.node, step.scope, "", state.row.outputs[step])


def token_ended(state: ExecutionState, event: step_events.TokenEnded) -> None:
    step = event.after
    place = (step.node, step.scope, lineage_path(step.lineage))
    into = state.outcome.terminal_values if event.reason == "end" else state.outcome.branch_results
    if event.reason != "end" and not event.answers:
        return
    current, output = into.get(place), state.row.outputs[step]
    if current is None or (current.lineage, current.visit) <= (output.lineage, step.visit):
        into[place] = TerminalValue(output.lineage, step.visit, event.output if event.reason == "end" else output.value)
