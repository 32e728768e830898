"""What people ask of an execution as a whole: to begin, to go on, to try again."""

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
    """The execution is not in a status in which this can be done."""

    code = "wrong-status"


def must(desk: DecisionContext, holds: bool, what: str) -> None:  # noqa: FBT001 - reads as a sentence where it is called
    if not holds:
        raise WrongStatus(
            f"{desk.state.id!r} is {status_of(desk.state)}: it cannot be {what}",
            hint=f"`pointsman show {desk.state.id}` tells what it did and what it waits for.",
        )


def start(desk: DecisionContext, report: Start) -> None:
    must(desk, desk.state.status == "pending" and not desk.state.scopes, "started")
    input_must_fit(desk, report)
    plan = desk.plan
    desk.emit(
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
        _begin(desk)


def admit(desk: DecisionContext) -> None:
    """Begin what waited for a place; a second time does nothing."""
    if desk.state.status == "pending" and desk.state.scopes:
        desk.emit(ExecutionAdmitted())
        _begin(desk)


def _begin(desk: DecisionContext) -> None:
    limits.watch(desk)
    if desk.plan.trial is not None:
        partial_run.begin(desk, desk.plan.trial)
    else:
        desk.go(EnterNode(desk.plan.entry, (), None, None))


def resume(desk: DecisionContext, report: ResumeRequested) -> None:
    state = desk.state
    must(desk, state.stands_still, "resumed")
    raise_limits(desk, report.limits)
    go_on(desk, report.by, stepping=report.step)


def raise_limits(desk: DecisionContext, wanted: Mapping[str, float]) -> None:
    """Raises `UnknownLimit`, `LimitCapped`, `LimitUsed`; then nothing was emitted."""
    limit_raises.may_raise(desk.plan, desk.state, wanted)
    if wanted:
        desk.emit(LimitsRaised(limits=dict(wanted)))


def go_on(desk: DecisionContext, by: str, *, stepping: bool = False) -> None:
    """What stood still moves again. A gate that asks whether it may is not needed any more."""
    state = desk.state
    held, refused = tuple(state.held), tuple(state.refused)
    interrupted, gate = state.status == "interrupted", state.handoff
    desk.emit(ExecutionResumed(by=by, stepping=stepping))
    if interrupted and gate is not None and gate in state.steps:
        cancellation.stop(desk, state.steps[gate])
        desk.emit(StepCancelled(step=gate))
    if interrupted:  # what ran was stopped, and no timer was heard
        desk.commands += outstanding(desk.plan, state)
        limits.watch(desk)
    else:
        for step in refused:
            if step in state.steps and state.steps[step].runs:
                execute(desk, step)
    _take_up(desk, held)


def _take_up(desk: DecisionContext, held: tuple[PendingArrival, ...]) -> None:
    """What was held may arrive; what is parked may start."""
    edges = {edge.id: edge for node in desk.plan.nodes.values() for edge in (*node.out, *node.catches)} if held else {}
    for number, waits in enumerate(held):
        left = waits.left
        edge = edges.get(waits.edge)
        after = held_step(number)
        desk.go(EnterNode(waits.node, waits.scope, edge, after, left.thread, left.caller, again=waits.again))
    for key in desk.state.scopes:
        desk.touched[key] = None


def retry(desk: DecisionContext, report: RetryRequested) -> None:
    """Take up the steps that failed the execution, and everything that was there beside them."""
    state = desk.state
    if state.status == "failed" and state.compensation is not None:
        raise WrongStatus(
            f"{state.id!r} cannot be retried: what it had done was undone",
            hint="Start it again, or fork it from before the failure.",
        )
    must(desk, state.status == "failed" and bool(state.failed), "retried")
    raise_limits(desk, report.limits)
    held, failed, beside = tuple(state.held), tuple(state.failed), tuple(state.steps.values())
    reenter = tuple(n for n, one in enumerate(failed) if not _is_attempted(desk, one))
    parks = tuple(n for n in reenter if _arrived(failed[n]))
    desk.emit(ExecutionRetried(by=report.by, reenter=reenter, parks=parks))
    limits.watch(desk)
    for position, one in enumerate(failed):
        if isinstance(one, StepState) and position not in reenter:
            attempt_again(desk, one)
            continue
        node, scope = (one.step.node, one.step.scope) if isinstance(one, StepState) else (one.node, one.scope)
        after = held_step(len(held) + position)
        merged = tuple(Arrival(was.edge, was.left.thread) for was in _arrived(one))
        desk.go(EnterNode(node, scope, None, after, one.left.thread, one.left.caller, again=True, merged=merged))
    for at in beside:
        if at.children:
            attempt_again(desk, at)
        elif at.runs:
            execute(desk, at.step)
        elif at.gate is not None:
            desk.command(AnnounceGate(step=at.step))
    desk.commands += [SetTimer(timer=name, at=timer.at) for name, timer in sorted(state.timers.items())]
    _take_up(desk, held)


def _arrived(failed: StepState | PendingArrival) -> tuple[PendingArrival, ...]:
    """What had arrived where several arrivals failed together."""
    return failed.arrived if isinstance(failed, StepState) else ()


def _is_attempted(desk: DecisionContext, failed: StepState | PendingArrival) -> bool:
    """It is work that had begun: it is attempted again. Everything else is entered again."""
    return (
        isinstance(failed, StepState)
        and failed.input is not None
        and not failed.unapproved
        and isinstance(desk.node(failed.step).does, WorkAction | WorkflowAction)
    )


def attempt_again(desk: DecisionContext, at: StepState) -> None:
    """The next attempt of a step: of its work, or of its child."""
    desk.emit(AttemptStarted(step=at.step, attempt=at.attempt + 1, reason="retry"))
    does = desk.node(at.step).does
    if isinstance(does, WorkflowAction):
        desk.emit(ChildRequested(step=at.step, workflow=does.workflow))
        desk.command(start_child(desk.plan, desk.state, at))
    else:
        execute(desk, at.step)
