"""Decide: what a report means. Asked once per report and never on replay; what it decided is in the journal.

    decide(plan, state, report, at) ─▶ Decision(events, commands)

The state given is folded along as the events are decided, so that deciding costs one pass. Whoever owns the state
drops it if the journal does not take the row, and folds the journal again. A report about something that is not open
any more decides nothing: no events, no row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from pointsman.engine import (
    asking,
    branching,
    cancelling,
    ending,
    entering,
    failing,
    guarding,
    leaving,
    limits,
    waiting,
)
from pointsman.engine.desk import Arrive, Decision, Desk, Fall, Leave
from pointsman.engine.entry import execute
from pointsman.engine.events import (
    AttemptStarted,
    EventTaken,
    ExecutionPaused,
    ExecutionResumed,
    ExecutionRetried,
    ExecutionStarted,
    LimitsRaised,
    StepCancelled,
    StepSucceeded,
    TimerRang,
)
from pointsman.engine.failures import Failure
from pointsman.engine.fold import begin_row, held_step, show
from pointsman.engine.outputs import check_conflicts, check_size, written
from pointsman.engine.outstanding import start_child
from pointsman.engine.plan import Call, Gather, Plan, Work
from pointsman.engine.reports import (
    CancelRequested,
    ChildEnded,
    EventReceived,
    GateAnswered,
    PauseRequested,
    Report,
    ResumeRequested,
    RetryRequested,
    Start,
    TimerFired,
    WorkDone,
    WorkFailed,
)
from pointsman.engine.state import ExecutionState, StepState, Waiting
from pointsman.errors import CallerError, PointsmanError
from pointsman.values import JsonObject


class WrongStatus(CallerError):
    """The execution is not in a status in which this can be done."""

    code = "wrong-status"


def decide(plan: Plan, state: ExecutionState, report: Report, at: float) -> Decision:
    """Turn a report into events and commands. `at` is the time of the report, in unix seconds.

    Raises `CallerError` for reports that people send wrongly (closed gate, action not offered, wrong status); nothing
    is decided then.
    """
    desk = Desk(plan, state)
    seq, before = state.seq, state.at
    begin_row(state, seq + 1, max(at, before))
    try:
        _take(desk, report)
    except CallerError:
        state.seq, state.at = seq, before
        raise
    if not desk.events and not desk.queue:
        state.seq, state.at = seq, before
        return Decision((), ())
    _run(desk)
    return Decision(tuple(desk.events), tuple(desk.commands))


def _run(desk: Desk) -> None:
    """Let control go on until everything waits for the world."""
    state, queue = desk.state, desk.queue
    while True:
        while queue:
            move = queue.popleft()
            if state.ended:
                continue
            match move:
                case Arrive():
                    entering.arrive(desk, move)
                case Leave():
                    leaving.leave(desk, move)
                case Fall():
                    failing.fall(desk, move)
                case _:
                    assert_never(move)
        if state.ended:
            return
        if not entering.release(desk) and not queue:
            break
    if not state.steps and not state.held and state.root.tokens == 0 and not state.stands_still:
        ending.complete(desk)


def _take(desk: Desk, report: Report) -> None:  # noqa: C901 - one flat list of all reports is the clearest
    match report:
        case WorkDone():
            _work_done(desk, report)
        case WorkFailed():
            at = _open(desk, report)
            if at is not None:
                _work_failed(desk, at, report)
        case Start():
            _start(desk, report)
        case GateAnswered():
            asking.answered(desk, report)
        case TimerFired():
            _timer_fired(desk, report)
        case EventReceived():
            if not desk.state.ended:
                desk.emit(EventTaken(name=report.name, data=report.data, by=report.by))
                waiting.deliver(desk, report.name, report.data)
        case ChildEnded():
            _child_ended(desk, report)
        case CancelRequested():
            if desk.state.status != "cancelled":
                _must(desk, not desk.state.ended, "cancelled")
                ending.cancel(desk, reason=report.reason, by=report.by)
        case PauseRequested():
            if desk.state.status != "paused":
                _must(desk, desk.state.status == "running", "paused")
                desk.emit(ExecutionPaused(by=report.by))
        case ResumeRequested():
            _resume(desk, report)
        case RetryRequested():
            _retry(desk, report)
        case _:
            assert_never(report)


def _must(desk: Desk, holds: bool, what: str) -> None:  # noqa: FBT001 - reads as a sentence where it is called
    if not holds:
        raise WrongStatus(
            f"an execution that is {desk.state.status} cannot be {what}", hint="See `pointsman show` for its status."
        )


def _start(desk: Desk, report: Start) -> None:
    _must(desk, desk.state.status == "pending", "started")
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
        )
    )
    desk.arrive(Arrive(plan.entry, (), None, None))


def _open(desk: Desk, report: WorkDone | WorkFailed | ChildEnded) -> StepState | None:
    """The step a report is about, if it still waits for exactly this attempt."""
    at = desk.state.steps.get(report.step)
    if at is None or desk.state.ended or at.attempt != report.attempt:
        return None
    return at if at.runs or at.child else None


def _work_failed(desk: Desk, at: StepState, report: WorkFailed) -> None:
    if at.phase == "recover":
        failing.attempt_failed(desk, at, at.failure or report.failure, report.usage)
    else:
        failing.attempt_failed(desk, at, report.failure, report.usage)


def _work_done(desk: Desk, report: WorkDone) -> None:
    at = _open(desk, report)
    if at is None:
        return
    step, node = report.step, desk.node(report.step)
    does = node.does
    assert isinstance(does, Work)
    for text in report.warnings:
        desk.warn("work", text, step)
    if at.phase == "recover":
        failing.advised(desk, at, report)
        return
    labels = (*report.labels, report.next) if report.next is not None else report.labels
    if node.leave == "label" and not report.pending and not leaving.legal(node, labels):
        failing.reask(desk, at, leaving.no_route(node, labels), report.usage)
        return
    repeats = guarding.repeats(desk, at, report) if does.spec.kind == "agent" else guarding.Repeats(0, 0)
    stuck = repeats.tripped(step)
    if stuck is not None and not desk.state.handed_off:
        limits.trip(desk, stuck)
        return
    try:
        said = _said(report, decides=does.decides)
        writes = written(desk, at.scope, node, report.result, shown=show(report.result, said))
        check_conflicts(at.scope, writes, at.left.thread)
        check_size(desk, at.scope, writes, report.result)
    except PointsmanError as why:
        failing.refused(desk, at, why, report.usage)
        return
    desk.emit(
        StepSucceeded(
            step=step,
            attempt=report.attempt,
            result=report.result,
            keeps=does.decides,
            next=report.next,
            said=said,
            writes=writes,
            messages=report.messages if desk.plan.messages else (),
            pending=report.pending,
            mark=repeats.mark,
            repeats=repeats.times,
            usage=report.usage,
        )
    )
    desk.touched[step.scope] = None
    desk.queue.append(Leave(step, labels))


def _said(report: WorkDone, *, decides: bool) -> JsonObject | None:
    said: JsonObject = {}
    if report.text is not None:
        said["text"] = report.text
    if report.next is not None:
        said["branch" if decides else "next"] = report.next
    return said or None


def _child_ended(desk: Desk, report: ChildEnded) -> None:
    at = _open(desk, report)
    if at is None or not at.child:
        return
    if report.failure is not None:
        failing.attempt_failed(desk, at, report.failure, report.usage)
        return
    node = desk.node(report.step)
    try:
        writes = written(desk, at.scope, node, report.output)
        check_conflicts(at.scope, writes, at.left.thread)
        check_size(desk, at.scope, writes, report.output)
    except PointsmanError as why:
        failing.refused(desk, at, why, report.usage)
        return
    desk.emit(
        StepSucceeded(step=report.step, attempt=report.attempt, result=report.output, writes=writes, usage=report.usage)
    )
    desk.touched[report.step.scope] = None
    desk.queue.append(Leave(report.step))


def _timer_fired(desk: Desk, report: TimerFired) -> None:
    timer = desk.state.timers.get(report.timer)
    if timer is None or desk.state.ended:
        return
    desk.emit(TimerRang(timer=report.timer))
    if report.timer == limits.DEADLINE:
        limits.deadline(desk)
        return
    at = desk.state.steps.get(timer.step) if timer.step is not None else None
    if at is None:
        return
    match timer.purpose:
        case "retry" | "delay":
            _next_attempt(desk, at, timer.purpose)
        case "wait":
            waiting.done(desk, at, {"waited": True}, None)
        case "gate":
            asking.timed_out(desk, at)
        case "event":
            waiting.timed_out(desk, at)
        case _:
            _join_timed_out(desk, at)


def _next_attempt(desk: Desk, at: StepState, purpose: str) -> None:
    if isinstance(desk.node(at.step).does, Call):
        desk.emit(AttemptStarted(step=at.step, attempt=at.attempt + 1, reason="retry"))
        desk.command(start_child(desk.plan, desk.state, at))
        return
    first = purpose == "delay"
    attempt = at.attempt if first else at.attempt + 1
    desk.emit(AttemptStarted(step=at.step, attempt=attempt, reason="delay" if first else "retry"))
    execute(desk, at.step)


def _join_timed_out(desk: Desk, at: StepState) -> None:
    opening = desk.state.openings.get(at.step)
    join = _join_of(desk, at)
    if opening is None or join is None:
        return
    does = desk.plan.nodes[join].does
    assert isinstance(does, Gather)
    if does.on_timeout == "fail":
        failure = Failure(code="join-timeout", message=f"not all branches reached {join!r} in time")
        branching.fail_opening(desk, opening, failure)
        return
    desk.warn("join-timeout", f"{join!r} goes on without all its branches", at.step)
    cancelling.cancel_branches(desk, opening)
    branching.fire(desk, opening, desk.plan.nodes[join])


def _join_of(desk: Desk, at: StepState) -> str | None:
    return getattr(desk.node(at.step).does, "join", None)


def _resume(desk: Desk, report: ResumeRequested) -> None:
    state = desk.state
    _must(desk, state.stands_still, "resumed")
    if report.limits:
        desk.emit(LimitsRaised(limits=report.limits))
    held: Sequence[Waiting] = tuple(state.held)
    interrupted = state.status == "interrupted"
    desk.emit(ExecutionResumed(by=report.by))
    edges = {edge.id: edge for node in desk.plan.nodes.values() for edge in node.out} if held else {}
    for number, waits in enumerate(held):
        edge = edges.get(waits.edge)
        left = waits.left
        desk.arrive(Arrive(waits.node, waits.scope, edge, held_step(number), left.thread, left.caller))
    if interrupted:
        for at in list(state.steps.values()):
            if at.runs:
                execute(desk, at.step)
    for key in state.scopes:
        desk.touched[key] = None


def _retry(desk: Desk, report: RetryRequested) -> None:
    """Take up the step that failed the execution, and everything that was running beside it."""
    state = desk.state
    _must(desk, state.status == "failed" and state.failed is not None, "retried")
    failed = state.failed
    desk.emit(ExecutionRetried(by=report.by))
    if isinstance(failed, StepState):
        desk.emit(AttemptStarted(step=failed.step, attempt=failed.attempt + 1, reason="retry"))
        does = desk.node(failed.step).does
        if not isinstance(does, Work):
            _again(desk, failed)
    elif isinstance(failed, Waiting):
        state.left[held_step(0)] = failed.left
        desk.arrive(Arrive(failed.node, failed.scope, None, held_step(0), failed.left.thread))
    for at in list(state.steps.values()):
        if at.runs:
            execute(desk, at.step)
    for key in state.scopes:
        desk.touched[key] = None


def _again(desk: Desk, failed: StepState) -> None:
    """A step that is no work is entered again instead."""
    desk.emit(StepCancelled(step=failed.step))
    desk.state.left[held_step(0)] = failed.left
    desk.arrive(Arrive(failed.step.node, failed.step.scope, None, held_step(0), failed.left.thread, failed.left.caller))
