"""Requests about an execution as a whole: start, admit, resume, retry."""

from __future__ import annotations

from collections.abc import Mapping

from pointsman.engine.actions import WorkAction, WorkflowAction
from pointsman.engine.commands import AnnounceGate, SetTimer
from pointsman.engine.decide import cancellation, limit_raises, limits, partial_run
from pointsman.engine.decide.context import DecisionContext, EnterNode
from pointsman.engine.decide.entry import execute
from pointsman.engine.decide.input_sizes import input_must_fit
from pointsman.engine.decide.outstanding import outstanding, start_child
from pointsman.engine.events.lifecycle import (
    ExecutionAdmitted,
    ExecutionResumed,
    ExecutionRetried,
    ExecutionStarted,
    LimitsRaised,
)
from pointsman.engine.events.steps import AttemptStarted, StepCancelled
from pointsman.engine.events.waits import ChildRequested
from pointsman.engine.fold.arrivals import held_step
from pointsman.engine.reports import (
    ResumeRequested,
    RetryRequested,
    Start,
)
from pointsman.engine.state import PendingArrival, StepState
from pointsman.engine.status import status_of
from pointsman.engine.writes import Arrival
from pointsman.errors import CallerError


class WrongStatus(CallerError):
    """The status of the execution does not allow the request."""

    code = "wrong-status"


def must(ctx: DecisionContext, holds: bool, what: str) -> None:  # noqa: FBT001 - reads as a sentence where it is called
    if not holds:
        raise WrongStatus(
            f"{ctx.state.id!r} is {status_of(ctx.state)}: it cannot be {what}",
            hint=f"`pointsman show {ctx.state.id}` tells what it did and what it waits for.",
        )


def start(ctx: DecisionContext, report: Start) -> None:
    must(ctx, ctx.state.status == "pending" and not ctx.state.scopes, "started")
    input_must_fit(ctx, report)
    plan = ctx.plan
    ctx.emit(
        ExecutionStarted(
            workflow=plan.workflow,
            version=plan.version,
            input=report.input,
            config={**plan.config, **report.config},
            state=plan.initial,
            session=report.session,
            messages=report.messages if plan.messages else None,
            parent=report.parent,
            definition=report.definition,
            options=report.options,
            seed=report.seed,
            attempt=report.attempt,
            queued=report.queued,
        )
    )
    if not report.queued:
        _begin(ctx)


def admit(ctx: DecisionContext) -> None:
    """Start an execution that waited in the queue. A second call has no effect."""
    if ctx.state.status == "pending" and ctx.state.scopes:
        ctx.emit(ExecutionAdmitted())
        _begin(ctx)


def _begin(ctx: DecisionContext) -> None:
    limits.set_limit_timers(ctx)
    if ctx.plan.partial_run is not None:
        partial_run.begin(ctx, ctx.plan.partial_run)
    else:
        ctx.enqueue(EnterNode(ctx.plan.entry, (), None, None))


def resume(ctx: DecisionContext, report: ResumeRequested) -> None:
    state = ctx.state
    must(ctx, state.is_halted, "resumed")
    raise_limits(ctx, report.limits)
    go_on(ctx, report.by, stepping=report.step)


def raise_limits(ctx: DecisionContext, wanted: Mapping[str, float]) -> None:
    """Raise limits for this execution. Raises `UnknownLimit`, `LimitCapped`, `LimitUsed`; then nothing was emitted."""
    limit_raises.may_raise(ctx.plan, ctx.state, wanted)
    if wanted:
        ctx.emit(LimitsRaised(limits=dict(wanted)))


def go_on(ctx: DecisionContext, by: str, *, stepping: bool = False) -> None:
    """Resume a halted execution. A gate that asks whether to continue is cancelled."""
    state = ctx.state
    held, refused = tuple(state.held_arrivals), tuple(state.limits.budget_stopped)
    interrupted, gate = state.status == "interrupted", state.limits.escalation_gate
    ctx.emit(ExecutionResumed(by=by, stepping=stepping))
    if interrupted and gate is not None and gate in state.steps:
        cancellation.stop(ctx, state.steps[gate])
        ctx.emit(StepCancelled(step=gate))
    if interrupted:  # running work was stopped, and timers had no effect
        ctx.commands += outstanding(ctx.plan, state)
        limits.set_limit_timers(ctx)
    else:
        for step in refused:
            if step in state.steps and state.steps[step].is_running:
                execute(ctx, step)
    _take_up(ctx, held)


def _take_up(ctx: DecisionContext, held: tuple[PendingArrival, ...]) -> None:
    """Enqueue held arrivals and mark all scopes, so that parked nodes may start."""
    exits = [node.exits for node in ctx.plan.nodes.values()] if held else []
    edges = {edge.id: edge for one in exits for edge in (*one.edges, *one.catches)}
    for number, waits in enumerate(held):
        left = waits.incoming
        edge = edges.get(waits.edge)
        after = held_step(number)
        ctx.enqueue(
            EnterNode(waits.node, waits.scope, edge, after, left.lineage, left.caller, starts_node=waits.starts_node)
        )
    for key in ctx.state.scopes:
        ctx.dirty_scopes[key] = None


def retry(ctx: DecisionContext, report: RetryRequested) -> None:
    """Retry the steps that failed the execution, and repeat the open work beside them."""
    state = ctx.state
    if state.status == "failed" and state.compensation is not None:
        raise WrongStatus(
            f"{state.id!r} cannot be retried: what it had done was undone",
            hint="Start it again, or fork it from before the failure.",
        )
    must(ctx, state.status == "failed" and bool(state.outcome.failed_work), "retried")
    raise_limits(ctx, report.limits)
    held, failed, beside = tuple(state.held_arrivals), tuple(state.outcome.failed_work), tuple(state.steps.values())
    reenter = tuple(n for n, one in enumerate(failed) if not _is_attempted(ctx, one))
    parks = tuple(n for n in reenter if _arrived(failed[n]))
    ctx.emit(ExecutionRetried(by=report.by, reenter=reenter, parks=parks))
    limits.set_limit_timers(ctx)
    for position, one in enumerate(failed):
        if isinstance(one, StepState) and position not in reenter:
            attempt_again(ctx, one)
            continue
        node, scope = (one.step.node, one.step.scope) if isinstance(one, StepState) else (one.node, one.scope)
        after = held_step(len(held) + position)
        merged = tuple(Arrival(was.edge, was.incoming.lineage) for was in _arrived(one))
        ctx.enqueue(
            EnterNode(
                node, scope, None, after, one.incoming.lineage, one.incoming.caller, starts_node=True, merged=merged
            )
        )
    for at in beside:
        if at.children:
            attempt_again(ctx, at)
        elif at.is_running:
            execute(ctx, at.step)
        elif at.gate is not None:
            ctx.command(AnnounceGate(step=at.step))
    ctx.commands += [SetTimer(timer=name, at=timer.at) for name, timer in sorted(state.timers.items())]
    _take_up(ctx, held)


def _arrived(failed: StepState | PendingArrival) -> tuple[PendingArrival, ...]:
    """Return the arrivals of a step at which several arrivals failed together."""
    return failed.arrivals if isinstance(failed, StepState) else ()


def _is_attempted(ctx: DecisionContext, failed: StepState | PendingArrival) -> bool:
    """Return whether to attempt a failed step again: it is work that had started. Everything else is entered again."""
    return (
        isinstance(failed, StepState)
        and failed.input is not None
        and not failed.unapproved
        and isinstance(ctx.node(failed.step).action, WorkAction | WorkflowAction)
    )


def attempt_again(ctx: DecisionContext, at: StepState) -> None:
    """Start the next attempt of a step: its work, or its child execution."""
    ctx.emit(AttemptStarted(step=at.step, attempt=at.attempt + 1, reason="retry"))
    does = ctx.node(at.step).action
    if isinstance(does, WorkflowAction):
        ctx.emit(ChildRequested(step=at.step, workflow=does.workflow))
        ctx.command(start_child(ctx.plan, ctx.state, at))
    else:
        execute(ctx, at.step)
