"""Decide what a report means. Called once per report and never on replay: the journal holds what was decided.

    decide(plan, state, report, at) ─▶ Decision(events, commands)

    begin(plan, state, report, at) ─▶ context ─▶ advance(context, moves) ─▶ … ─▶ True: decided

`decide` decides at once. `begin` and `advance` reach the same decision in parts of a bounded number of moves, so that
the caller can do something else between two parts. Only the finished decision counts: until then no other report may
be decided on the state.

The state is folded while the events are decided, so a decision costs one pass. If the journal refuses the row, the
owner of the state discards it and folds the journal again. A report about something that has closed decides
nothing: no events, no row.
"""

from __future__ import annotations

from math import inf
from typing import Final, assert_never

from msgspec.structs import replace

from pointsman.engine.actions import WorkAction
from pointsman.engine.decide import (
    completion,
    context,
    enter_node,
    exit_step,
    failure_handling,
    gate_questions,
    human_tasks,
    lifecycle,
    limits,
    migrate,
    parallels,
    tool_approval,
    waits,
)
from pointsman.engine.decide.context import (
    ContinueStep,
    Decision,
    DecisionContext,
    EnterNode,
    ExitStep,
    Parts,
    PropagateFailure,
)
from pointsman.engine.decide.entry import execute
from pointsman.engine.decide.outputs import check_messages, check_writes, evaluate_outputs
from pointsman.engine.events.lifecycle import (
    ExecutionPaused,
)
from pointsman.engine.events.steps import AttemptStarted, StepSucceeded
from pointsman.engine.events.waits import TimerElapsed
from pointsman.engine.fold.dispatch import begin_decision
from pointsman.engine.fold.steps import public_view
from pointsman.engine.plan import Plan, PlanNode
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
from pointsman.engine.state import ENDED, ExecutionState, Repetition, StepState
from pointsman.engine.steps import Step
from pointsman.errors import CallerError, PointsmanError
from pointsman.values import JsonObject

MOVES_MAX: Final = 4
"""Moves in one part of a decision. Almost all decisions make fewer."""


def decide(plan: Plan, state: ExecutionState, report: Report, at: float, *, before: Step | None = None) -> Decision:
    """Turn a report into events and commands. `at` is the time of the report, in unix seconds.

    The execution pauses before the step `before`. Raises `CallerError` for an invalid report of a person (closed gate,
    action not offered, wrong status); then nothing is decided.
    """
    ctx = begin(plan, state, report, at, before=before)
    if ctx is None:
        return Decision((), ())
    advance(ctx)
    return ctx.decision()


def deciding(
    plan: Plan, state: ExecutionState, report: Report, at: float, *, before: Step | None = None
) -> Parts[Decision]:
    """Decide like `decide`, in parts of `MOVES_MAX` moves."""
    ctx = begin(plan, state, report, at, before=before)
    if ctx is None:
        return Decision((), ())
    while not advance(ctx, MOVES_MAX):
        yield
    return ctx.decision()


def begin(
    plan: Plan, state: ExecutionState, report: Report, at: float, *, before: Step | None = None
) -> DecisionContext | None:
    """Begin a decision, as in `decide`. Return None if nothing is decided: no events, no row."""
    ctx = DecisionContext(plan, state, before)
    seq, since = state.seq, state.at
    begin_decision(state, seq + 1, max(at, since))
    try:
        _take(ctx, report)
    except CallerError:
        state.seq, state.at = seq, since
        raise
    if not ctx.events and not ctx.queue:
        state.seq, state.at = seq, since
        return None
    if plan.limits.budgets and ctx.events:
        limits.warn_of_budgets(ctx)
    return ctx


def advance(ctx: DecisionContext, moves: float = inf) -> bool:
    """Process transitions until the execution waits only for the world; return whether that is reached.

    It stops early after about `moves` transitions and operations of transforms. Call it again to continue.
    """
    state, queue = ctx.state, ctx.queue
    ctx.moves_left = moves
    while True:
        while queue and state.status not in ENDED:
            if ctx.moves_left <= 0:
                return False
            ctx.moves_left -= 1
            move = ctx.dequeue()
            if type(move) is EnterNode:
                enter_node.enter_node(ctx, move)
            elif type(move) is ExitStep:
                exit_step.exit_step(ctx, move)
            else:
                _make_rare(ctx, move)
        if state.status in ENDED:
            return True
        if enter_node.release(ctx) or queue:
            continue
        if state.gates and len(ctx.events) > ctx.looked_at:
            ctx.looked_at, since = len(ctx.events), ctx.looked_at
            gate_questions.ask_again(ctx, since)
            if queue or ctx.dirty_scopes:
                continue
        if ctx.uncaught:
            completion.conclude(ctx)
        elif not state.steps and not state.held_arrivals and state.root.tokens == 0 and state.status == "running":
            completion.end_when_idle(ctx)
        else:
            return True


def _make_rare(ctx: DecisionContext, move: PropagateFailure | ContinueStep) -> None:
    if isinstance(move, ContinueStep):
        move.rest()
    else:
        failure_handling.propagate(ctx, move)


def _take(ctx: DecisionContext, report: Report) -> None:  # noqa: C901 - one flat list of all reports is the clearest
    match report:
        case WorkDone():
            _work_done(ctx, report)
        case WorkFailed():
            _work_failed(ctx, report)
        case Start():
            lifecycle.start(ctx, report)
        case AdmissionGranted():
            lifecycle.admit(ctx)
        case GateAnswered():
            human_tasks.answered(ctx, report)
        case DelegationRequested():
            human_tasks.delegated(ctx, report)
        case ToolCallsProposed() | WorkerMissing():
            _left_to_others(ctx, report)
        case WorkerOffered():
            failure_handling.worker_offered(ctx, report)
        case TimerFired():
            _timer_fired(ctx, report)
        case EventReceived():
            if context.is_news(ctx.state, report):
                waits.receive(ctx, report)
        case DeliveryConfirmed():
            context.delivered(ctx, report)
        case ChildEnded():
            _child_ended(ctx, report)
        case ChildUsageReported():
            _child_spent(ctx, report)
        case CancelRequested():
            if ctx.state.status != "cancelled":
                lifecycle.must(ctx, not ctx.state.ended, "cancelled")
                completion.cancel(ctx, reason=report.reason, by=report.by, now=report.now)
        case PauseRequested():
            if ctx.state.status != "paused":
                lifecycle.must(ctx, ctx.state.status == "running", "paused")
                ctx.emit(ExecutionPaused(by=report.by))
        case ResumeRequested():
            lifecycle.resume(ctx, report)
        case RetryRequested():
            lifecycle.retry(ctx, report)
        case SteerRequested():
            lifecycle.steer(ctx, report)
        case ForkRequested():
            migrate.fork(ctx, report)
        case MigrationRequested():
            migrate.move(ctx, report)
        case _:
            assert_never(report)


def _left_to_others(ctx: DecisionContext, report: ToolCallsProposed | WorkerMissing) -> None:
    """Handle an attempt that must wait for people, the caller, sub-workflows or another worker."""
    at = _open(ctx, report)
    if at is None:
        return
    if isinstance(report, ToolCallsProposed):
        tool_approval.calls_proposed(ctx, at, report)
    else:
        failure_handling.worker_missing(ctx, at, report.failure)


def _open(ctx: DecisionContext, report: WorkDone | WorkFailed | ToolCallsProposed | WorkerMissing) -> StepState | None:
    """Return the step of a report if it still waits for exactly this attempt."""
    at = ctx.state.steps.get(report.step)
    return (
        at
        if at is not None and at.is_running and at.attempt == report.attempt and ctx.state.status not in ENDED
        else None
    )


def _parent(ctx: DecisionContext, report: ChildUsageReported | ChildEnded) -> StepState | None:
    """Return the step whose child reports, if it still waits for exactly that child."""
    at = ctx.state.steps.get(report.step)
    if at is None or at.attempt != report.attempt or ctx.state.ended:
        return None
    return at if report.call in at.children else None


def _work_failed(ctx: DecisionContext, report: WorkFailed) -> None:
    at = _open(ctx, report)
    if at is None:
        return
    if report.failure.code == limits.BUDGET_SPENT:
        limits.wait_for_budget(ctx, at, report.failure)
        return
    if at.phase == "recover":
        failure_handling.attempt_failed(ctx, at, at.failure or report.failure, report.usage)
    else:
        failure_handling.attempt_failed(ctx, at, report.failure, report.usage)


def _work_done(ctx: DecisionContext, report: WorkDone) -> None:
    at = _open(ctx, report)
    if at is None:
        return
    step = report.step
    node = ctx.plan.nodes[step.node]
    action = node.action
    assert isinstance(action, WorkAction)
    for text in report.warnings:
        ctx.warn("work", text, step)
    if at.phase == "recover":
        failure_handling.advised(ctx, at, report)
        return
    labels = (*report.labels, report.next) if report.next is not None else report.labels
    asks = node.exits.mode == "label" and not action.is_decision  # a verdict is final, even without an edge
    if asks and not report.pending and not exit_step.legal(node, labels):
        failure_handling.reask(ctx, at, exit_step.no_route(node, labels), report.usage)
        return
    repeats = limits.NO_REPETITION
    if action.spec.kind == "agent":
        repeats = limits.repetition_of(ctx, at, report)
        stuck = limits.reached_by_repetition(ctx, step, repeats)
        if stuck is not None:
            limits.handle_reached_limit(ctx, stuck)
            return
    if _succeeded(ctx, node, at, report, repeats, decides=action.is_decision):
        ctx.dirty_scopes[step.scope] = None
        ctx.enqueue(ExitStep(step, labels))


def _succeeded(
    ctx: DecisionContext, node: PlanNode, at: StepState, report: WorkDone, repeats: Repetition, *, decides: bool
) -> bool:
    """Write the result of a step; return False if the outputs cannot be written."""
    try:
        journaled = _journaled_report(report, decides=decides)
        writes = (
            evaluate_outputs(ctx, at.scope, node, report.result, displayed=public_view(report.result, journaled))
            if node.outputs
            else ()
        )
        check_writes(ctx, at.scope, node, at.incoming.lineage, writes, report.result, result_bytes=report.result_bytes)
        if ctx.plan.messages and report.messages:
            check_messages(ctx, at.scope, report.messages)
    except PointsmanError as why:
        failure_handling.refused(ctx, at, why, report.usage)
        return False
    # For calls with more than 15 keyword arguments Python first builds a dictionary: that costs a microsecond.
    event = StepSucceeded(
        step=report.step,
        attempt=report.attempt,
        result=report.result,
        keeps=decides,
        next=report.next,
        labels=report.labels,
        annotations=journaled,
        writes=writes,
        messages=report.messages if ctx.plan.messages else (),
        pending=report.pending,
        usage=report.usage,
        cached=report.cached,
        undone_by=node.policy.compensate,
    )
    if repeats is not limits.NO_REPETITION:
        event = replace(event, mark=repeats.mark, repeats=repeats.times, seen=repeats.seen)
    if report.printed:
        event = replace(event, printed=report.printed)
    ctx.emit(event)
    return True


def _journaled_report(report: WorkDone, *, decides: bool) -> JsonObject | None:
    if report.text is None and report.next is None:
        return None
    fields: JsonObject = {}
    if report.text is not None:
        fields["text"] = report.text
    if report.next is not None:
        fields["branch" if decides else "next"] = report.next
    return fields


def _child_spent(ctx: DecisionContext, report: ChildUsageReported) -> None:
    at = _parent(ctx, report)
    if at is not None and tool_approval.counted_usage(at, report.call) != report.usage:
        tripped = limits.count_child_usage(ctx, at, report)
        if tripped is not None:
            limits.handle_reached_limit(ctx, tripped)


def _child_ended(ctx: DecisionContext, report: ChildEnded) -> None:
    at = _parent(ctx, report)
    if at is None:
        return
    if report.call:
        tool_approval.child_ended(ctx, at, report)
        return
    if report.failure is not None:
        failure_handling.attempt_failed(ctx, at, report.failure, report.usage)
        return
    node = ctx.node(report.step)
    try:
        writes = evaluate_outputs(ctx, at.scope, node, report.output)
        check_writes(ctx, at.scope, node, at.incoming.lineage, writes, report.output)
    except PointsmanError as why:
        failure_handling.refused(ctx, at, why, report.usage)
        return
    ctx.emit(
        StepSucceeded(
            step=report.step,
            attempt=report.attempt,
            result=report.output,
            writes=writes,
            usage=report.usage,
            undone_by=node.policy.compensate,
        )
    )
    ctx.dirty_scopes[report.step.scope] = None
    ctx.enqueue(ExitStep(report.step))


def _timer_fired(ctx: DecisionContext, report: TimerFired) -> None:
    state = ctx.state
    timer = state.timers.get(report.timer)
    if timer is None or state.ended:
        return
    if state.status == "interrupted" and (timer.step is None or timer.step != state.limits.escalation_gate):
        return  # it is set again on resumption
    ctx.emit(TimerElapsed(timer=report.timer))
    at = state.steps.get(timer.step) if timer.step is not None else None
    if at is None:
        limits.timer_fired(ctx, report.timer)
        return
    match timer.purpose:
        case "retry" | "delay":
            _next_attempt(ctx, at, timer.purpose)
        case "wait":
            waits.done(ctx, at, {"waited": True}, None)
        case "gate":
            human_tasks.timed_out(ctx, at)
        case "event":
            waits.timed_out(ctx, at)
        case _:
            parallels.timed_out(ctx, state.parallel_frames[at.step])


def _next_attempt(ctx: DecisionContext, at: StepState, purpose: str) -> None:
    if purpose == "delay":
        ctx.emit(AttemptStarted(step=at.step, attempt=at.attempt, reason="delay"))
        execute(ctx, at.step)
    else:
        lifecycle.attempt_again(ctx, at)
