"""Decide: what a report means. Asked once per report and never on replay; what it decided is in the journal.

    decide(plan, state, report, at) ─▶ Decision(events, commands)

The state given is folded along as the events are decided, so that deciding costs one pass. Whoever owns the state
drops it if the journal does not take the row, and folds the journal again. A report about something that is not open
any more decides nothing: no events, no row.
"""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from pointsman.engine.actions import WorkAction
from pointsman.engine.decide import (
    budgets,
    completion,
    enter_node,
    exit_step,
    failure_handling,
    fork,
    gate_questions,
    human_tasks,
    joins,
    lifecycle,
    limits,
    migrate,
    missing_workers,
    outbox,
    stall_detection,
    steering,
    tool_approval,
    waits,
    workflow_tools,
)
from pointsman.engine.decide.context import Decision, DecisionContext, EnterNode, ExitStep
from pointsman.engine.decide.entry import execute
from pointsman.engine.decide.outputs import accept, check_messages, written
from pointsman.engine.events.lifecycle import (
    ExecutionPaused,
)
from pointsman.engine.events.steps import AttemptStarted, StepSucceeded
from pointsman.engine.events.waits import TimerElapsed
from pointsman.engine.fold.dispatch import begin_row
from pointsman.engine.fold.steps import show
from pointsman.engine.plan import Plan, PlanNode
from pointsman.engine.repetitions import Repetition
from pointsman.engine.reports import (
    AdmissionGranted,
    CancelRequested,
    ChildEnded,
    ChildUsageReported,
    DelegationRequested,
    DeliveryConfirmed,
    EventReceived,
    ForkRequested,
    GateAnswered,
    MigrationRequested,
    PauseRequested,
    Report,
    ResumeRequested,
    RetryRequested,
    Start,
    SteerRequested,
    TimerFired,
    ToolCallsProposed,
    WorkDone,
    WorkerMissing,
    WorkerOffered,
    WorkFailed,
)
from pointsman.engine.state import ENDED, ExecutionState, StepState
from pointsman.engine.steps import Step
from pointsman.errors import CallerError, PointsmanError
from pointsman.values import JsonObject


def decide(plan: Plan, state: ExecutionState, report: Report, at: float, *, before: Step | None = None) -> Decision:
    """Turn a report into events and commands. `at` is the time of the report, in unix seconds.
    Short of the step `before` the execution is paused.

    Raises `CallerError` for reports that people send wrongly (closed gate, action not offered, wrong status); nothing
    is decided then.
    """
    desk = DecisionContext(plan, state, before)
    seq, since = state.seq, state.at
    begin_row(state, seq + 1, max(at, since))
    try:
        _take(desk, report)
    except CallerError:
        state.seq, state.at = seq, since
        raise
    if not desk.events and not desk.queue:
        state.seq, state.at = seq, since
        return Decision((), ())
    if plan.limits.budgets and desk.events:
        budgets.note(desk)
    _run(desk)
    return Decision(tuple(desk.events), tuple(desk.commands))


def _run(desk: DecisionContext) -> None:
    """Let control go on until everything waits for the world."""
    state, queue = desk.state, desk.queue
    looked_at = 0
    while True:
        while queue and state.status not in ENDED:
            move = desk.next()
            if type(move) is EnterNode:
                enter_node.arrive(desk, move)
            elif type(move) is ExitStep:
                exit_step.leave(desk, move)
            else:
                failure_handling.fall(desk, move)
        if state.status in ENDED:
            return
        if enter_node.release(desk) or queue:
            continue
        if state.gates and len(desk.events) > looked_at:
            looked_at, since = len(desk.events), looked_at
            gate_questions.ask_again(desk, since)
            if queue or desk.touched:
                continue
        if desk.fatal:
            completion.conclude(desk)
        elif not state.steps and not state.held and state.root.tokens == 0 and state.status == "running":
            completion.come_to_an_end(desk)
        else:
            return


def _take(desk: DecisionContext, report: Report) -> None:  # noqa: C901 - one flat list of all reports is the clearest
    match report:
        case WorkDone():
            _work_done(desk, report)
        case WorkFailed():
            _work_failed(desk, report)
        case Start():
            lifecycle.start(desk, report)
        case AdmissionGranted():
            lifecycle.admit(desk)
        case GateAnswered():
            human_tasks.answered(desk, report)
        case DelegationRequested():
            human_tasks.delegated(desk, report)
        case ToolCallsProposed() | WorkerMissing():
            _left_to_others(desk, report)
        case WorkerOffered():
            missing_workers.offered(desk, report)
        case TimerFired():
            _timer_fired(desk, report)
        case EventReceived():
            if outbox.is_news(desk.state, report):
                waits.receive(desk, report)
        case DeliveryConfirmed():
            outbox.delivered(desk, report)
        case ChildEnded():
            _child_ended(desk, report)
        case ChildUsageReported():
            _child_spent(desk, report)
        case CancelRequested():
            if desk.state.status != "cancelled":
                lifecycle.must(desk, not desk.state.ended, "cancelled")
                completion.cancel(desk, reason=report.reason, by=report.by, now=report.now)
        case PauseRequested():
            if desk.state.status != "paused":
                lifecycle.must(desk, desk.state.status == "running", "paused")
                desk.emit(ExecutionPaused(by=report.by))
        case ResumeRequested():
            lifecycle.resume(desk, report)
        case RetryRequested():
            lifecycle.retry(desk, report)
        case SteerRequested():
            steering.steer(desk, report)
        case ForkRequested():
            fork.fork(desk, report)
        case MigrationRequested():
            migrate.move(desk, report)
        case _:
            assert_never(report)


def _left_to_others(desk: DecisionContext, report: ToolCallsProposed | WorkerMissing) -> None:
    """An attempt cannot go on before people, the caller, sub-workflows or another worker have done their part."""
    at = _open(desk, report)
    if at is None:
        return
    if isinstance(report, ToolCallsProposed):
        tool_approval.calls_proposed(desk, at, report)
    else:
        missing_workers.missing(desk, at, report.failure)


def _open(desk: DecisionContext, report: WorkDone | WorkFailed | ToolCallsProposed | WorkerMissing) -> StepState | None:
    """The step a report is about, if it still waits for exactly this attempt."""
    at = desk.state.steps.get(report.step)
    return (
        at if at is not None and at.runs and at.attempt == report.attempt and desk.state.status not in ENDED else None
    )


def _parent(desk: DecisionContext, report: ChildUsageReported | ChildEnded) -> StepState | None:
    """The step whose child reports, if it still waits for exactly that child."""
    at = desk.state.steps.get(report.step)
    if at is None or at.attempt != report.attempt or desk.state.ended:
        return None
    return at if report.call in at.children else None


def _work_failed(desk: DecisionContext, report: WorkFailed) -> None:
    at = _open(desk, report)
    if at is None:
        return
    if report.failure.code == budgets.SPENT:
        budgets.wait_for_more(desk, at, report.failure)
        return
    if at.phase == "recover":
        failure_handling.attempt_failed(desk, at, at.failure or report.failure, report.usage)
    else:
        failure_handling.attempt_failed(desk, at, report.failure, report.usage)


def _work_done(desk: DecisionContext, report: WorkDone) -> None:
    at = _open(desk, report)
    if at is None:
        return
    step = report.step
    node = desk.plan.nodes[step.node]
    does = node.does
    assert isinstance(does, WorkAction)
    for text in report.warnings:
        desk.warn("work", text, step)
    if at.phase == "recover":
        failure_handling.advised(desk, at, report)
        return
    labels = (*report.labels, report.next) if report.next is not None else report.labels
    asks = node.leave == "label" and not does.decides  # a verdict is not taken back for want of an edge
    if asks and not report.pending and not exit_step.legal(node, labels):
        failure_handling.reask(desk, at, exit_step.no_route(node, labels), report.usage)
        return
    repeats = stall_detection.NONE
    if does.spec.kind == "agent":
        repeats = stall_detection.repeats(desk, at, report)
        stuck = stall_detection.tripped(desk, step, repeats)
        if stuck is not None:
            limits.trip(desk, stuck)
            return
    if _succeeded(desk, node, at, report, repeats, decides=does.decides):
        desk.touched[step.scope] = None
        desk.go(ExitStep(step, labels))


def _succeeded(
    desk: DecisionContext, node: PlanNode, at: StepState, report: WorkDone, repeats: Repetition, *, decides: bool
) -> bool:
    """Write what it brought; False where that is refused."""
    try:
        said = _said(report, decides=decides)
        writes = written(desk, at.scope, node, report.result, shown=show(report.result, said)) if node.outputs else ()
        accept(desk, at.scope, node, at.left.thread, writes, report.result, result_bytes=report.result_bytes)
        if desk.plan.messages and report.messages:
            check_messages(desk, at.scope, report.messages)
    except PointsmanError as why:
        failure_handling.refused(desk, at, why, report.usage)
        return False
    event = StepSucceeded(  # Of more than 15 arguments by name Python makes a dictionary first: a microsecond.
        step=report.step,
        attempt=report.attempt,
        result=report.result,
        keeps=decides,
        next=report.next,
        labels=report.labels,
        said=said,
        writes=writes,
        messages=report.messages if desk.plan.messages else (),
        pending=report.pending,
        usage=report.usage,
        cached=report.cached,
        undone_by=node.compensate,
    )
    if repeats is not stall_detection.NONE:
        event = replace(event, mark=repeats.mark, repeats=repeats.times, seen=repeats.seen)
    if report.printed:
        event = replace(event, printed=report.printed)
    desk.emit(event)
    return True


def _said(report: WorkDone, *, decides: bool) -> JsonObject | None:
    if report.text is None and report.next is None:
        return None
    said: JsonObject = {}
    if report.text is not None:
        said["text"] = report.text
    if report.next is not None:
        said["branch" if decides else "next"] = report.next
    return said


def _child_spent(desk: DecisionContext, report: ChildUsageReported) -> None:
    at = _parent(desk, report)
    if at is not None and workflow_tools.counted(at, report.call) != report.usage:
        tripped = budgets.spent_below(desk, at, report)
        if tripped is not None:
            limits.trip(desk, tripped)


def _child_ended(desk: DecisionContext, report: ChildEnded) -> None:
    at = _parent(desk, report)
    if at is None:
        return
    if report.call:
        workflow_tools.ended(desk, at, report)
        return
    if report.failure is not None:
        failure_handling.attempt_failed(desk, at, report.failure, report.usage)
        return
    node = desk.node(report.step)
    try:
        writes = written(desk, at.scope, node, report.output)
        accept(desk, at.scope, node, at.left.thread, writes, report.output)
    except PointsmanError as why:
        failure_handling.refused(desk, at, why, report.usage)
        return
    desk.emit(
        StepSucceeded(
            step=report.step,
            attempt=report.attempt,
            result=report.output,
            writes=writes,
            usage=report.usage,
            undone_by=node.compensate,
        )
    )
    desk.touched[report.step.scope] = None
    desk.go(ExitStep(report.step))


def _timer_fired(desk: DecisionContext, report: TimerFired) -> None:
    state = desk.state
    timer = state.timers.get(report.timer)
    if timer is None or state.ended:
        return
    if state.status == "interrupted" and (timer.step is None or timer.step != state.handoff):
        return  # it is set again on resumption
    desk.emit(TimerElapsed(timer=report.timer))
    at = state.steps.get(timer.step) if timer.step is not None else None
    if at is None:
        limits.rang(desk, report.timer)
        return
    match timer.purpose:
        case "retry" | "delay":
            _next_attempt(desk, at, timer.purpose)
        case "wait":
            waits.done(desk, at, {"waited": True}, None)
        case "gate":
            human_tasks.timed_out(desk, at)
        case "event":
            waits.timed_out(desk, at)
        case _:
            joins.timed_out(desk, state.openings[at.step])


def _next_attempt(desk: DecisionContext, at: StepState, purpose: str) -> None:
    if purpose == "delay":
        desk.emit(AttemptStarted(step=at.step, attempt=at.attempt, reason="delay"))
        execute(desk, at.step)
    else:
        lifecycle.attempt_again(desk, at)
