"""Requests about an execution as a whole: start, admit, resume, retry, steer.

    limit ─▶ ExecutionInterrupted ─▶ LimitEscalated(gate) ─▶ gate ─┬─ an action that raises limits ─▶ everything resumes
                                     other steps are kept          ├─ another action ─▶ other steps are cancelled
                                                                   └─ timeout ─▶ the execution stays interrupted

While an escalation gate is open the execution is interrupted: nothing starts, and no other timer counts. Resuming the
execution also answers the gate.

    ExecutionSteered ─▶ values in the data, messages in the conversation: every later step sees them
       └─ goto ─▶ StepCancelled … ─▶ ControlRedirected ─▶ control enters the node, and is nowhere else

Steering (`humanInLoop: real_time`) takes effect between steps: running work keeps its input.
"""

from __future__ import annotations

from collections.abc import Mapping

from pointsman.engine.actions import HumanTaskAction, JoinAction, WorkAction, WorkflowAction
from pointsman.engine.commands import AnnounceGate, SetTimer
from pointsman.engine.decide import completion, limits, partial_run
from pointsman.engine.decide.context import DecisionContext, EnterNode, ExitStep
from pointsman.engine.decide.entry import execute, outstanding, start_child
from pointsman.engine.decide.limits import REPEATS_MAX
from pointsman.engine.decide.outputs import check_edits, input_must_fit
from pointsman.engine.events.lifecycle import (
    ControlRedirected,
    ExecutionAdmitted,
    ExecutionResumed,
    ExecutionRetried,
    ExecutionStarted,
    ExecutionSteered,
    LimitEscalated,
    LimitsRaised,
)
from pointsman.engine.events.steps import AttemptStarted, StepCancelled
from pointsman.engine.events.waits import ChildRequested
from pointsman.engine.fold.scopes import NOBODY, held_sender
from pointsman.engine.reports import (
    ResumeRequested,
    RetryRequested,
    Start,
    SteerRequested,
)
from pointsman.engine.state import PendingArrival, StepState, status_of
from pointsman.engine.steps import Arrival, DataEdit
from pointsman.errors import CallerError
from pointsman.values import END, Json


class WrongStatus(CallerError):
    """The status of the execution does not allow the request."""

    code = "wrong-status"


def must(ctx: DecisionContext, holds: bool, what: str) -> None:  # noqa: FBT001 - reads as a sentence where it is called
    if not holds:
        raise WrongStatus(
            f"{ctx.state.id!r} is {status_of(ctx.state)}: it cannot be {what}",
            hint=f"`pointsman show {ctx.state.id}` shows its steps, and what it waits for.",
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
    resume_halted(ctx, report.by, stepping=report.step)


def raise_limits(ctx: DecisionContext, amounts: Mapping[str, float]) -> None:
    """Raise limits for this execution. Raises `UnknownLimit`, `LimitCapped`, `LimitUsed`; then nothing was emitted."""
    limits.may_raise(ctx.plan, ctx.state, amounts)
    if amounts:
        ctx.emit(LimitsRaised(limits=dict(amounts)))


def resume_halted(ctx: DecisionContext, by: str, *, stepping: bool = False) -> None:
    """Resume a halted execution. A gate that asks whether to continue is cancelled."""
    state = ctx.state
    arrivals, refused = tuple(state.held_arrivals), tuple(state.limits.budget_stopped)
    interrupted, gate = state.status == "interrupted", state.limits.escalation_gate
    ctx.emit(ExecutionResumed(by=by, stepping=stepping))
    if interrupted and gate is not None and gate in state.steps:
        completion.stop_step(ctx, state.steps[gate])
        ctx.emit(StepCancelled(step=gate))
    if interrupted:  # running work was stopped, and timers had no effect
        ctx.commands += outstanding(ctx.plan, state)
        limits.set_limit_timers(ctx)
    else:
        for step in refused:
            if step in state.steps and state.steps[step].is_running:
                execute(ctx, step)
    _take_up(ctx, arrivals)


def _take_up(ctx: DecisionContext, arrivals: tuple[PendingArrival, ...]) -> None:
    """Enqueue held arrivals and mark all scopes, so that parked nodes may start."""
    exits = [node.exits for node in ctx.plan.nodes.values()] if arrivals else []
    edges = {edge.id: edge for exits_of_node in exits for edge in (*exits_of_node.edges, *exits_of_node.catches)}
    for number, waits in enumerate(arrivals):
        incoming = waits.incoming
        edge = edges.get(waits.edge)
        after = held_sender(number)
        ctx.enqueue(
            EnterNode(
                waits.node, waits.scope, edge, after, incoming.lineage, incoming.caller, starts_node=waits.starts_node
            )
        )
    for key in ctx.state.scopes:
        ctx.dirty_scopes[key] = None


def retry(ctx: DecisionContext, report: RetryRequested) -> None:
    """Retry the steps that failed the execution, and repeat the open work beside them."""
    state = ctx.state
    if state.status == "failed" and state.compensation is not None:
        raise WrongStatus(
            f"{state.id!r} cannot be retried: it was compensated",
            hint="Start a new execution, or fork this one from before the failure.",
        )
    must(ctx, state.status == "failed" and bool(state.outcome.failed_work), "retried")
    raise_limits(ctx, report.limits)
    arrivals, failed, beside = tuple(state.held_arrivals), tuple(state.outcome.failed_work), tuple(state.steps.values())
    reenter = tuple(n for n, item in enumerate(failed) if not _is_attempted(ctx, item))
    parks = tuple(n for n in reenter if _arrived(failed[n]))
    ctx.emit(ExecutionRetried(by=report.by, reenter=reenter, parks=parks))
    limits.set_limit_timers(ctx)
    for position, work in enumerate(failed):
        if isinstance(work, StepState) and position not in reenter:
            attempt_again(ctx, work)
            continue
        node, scope = (work.step.node, work.step.scope) if isinstance(work, StepState) else (work.node, work.scope)
        after = held_sender(len(arrivals) + position)
        merged = tuple(Arrival(was.edge, was.incoming.lineage) for was in _arrived(work))
        ctx.enqueue(
            EnterNode(
                node, scope, None, after, work.incoming.lineage, work.incoming.caller, starts_node=True, merged=merged
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
    _take_up(ctx, arrivals)


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
    action = ctx.node(at.step).action
    if isinstance(action, WorkflowAction):
        ctx.emit(ChildRequested(step=at.step, workflow=action.workflow))
        ctx.command(start_child(ctx.plan, ctx.state, at))
    else:
        execute(ctx, at.step)


def must_allow_raises(ctx: DecisionContext, at: StepState, action: str) -> None:
    """Raise `LimitCapped` if the action would raise a limit above the operator's cap."""
    more = (
        _raises_of(ctx, action) if ctx.state.limits.escalation_gate == at.step and ctx.state.awaits_escalation else None
    )
    if more is not None:
        limits.may_raise(ctx.plan, ctx.state, _raised(ctx, more))


def escalation_answered(ctx: DecisionContext, move: ExitStep) -> bool:
    """Handle the answer of the escalation gate.

    Return True if control leaves the gate and is nowhere else, False if the execution resumes as it was.
    """
    if ctx.state.status != "interrupted":
        return True
    more = _raises_of(ctx, move.labels[0]) if move.labels else None
    if more is None:
        value = ctx.state.row.outputs[move.step].value
        completion.cancel_steps(ctx, ())
        ctx.discard_all()
        ctx.emit(LimitEscalated(node=move.step.node, value=value))
        return True
    raised = _raised(ctx, more)
    if raised:
        ctx.emit(LimitsRaised(limits=raised))
    ctx.end_token(move.step, reason="swallowed")
    resume_halted(ctx, by="")
    return False


def _raises_of(ctx: DecisionContext, action: str) -> Mapping[str, float] | None:
    assert ctx.state.limits.escalation_gate is not None
    node_action = ctx.node(ctx.state.limits.escalation_gate).action
    return node_action.limit_raises.get(action) if isinstance(node_action, HumanTaskAction) else None


def _raised(ctx: DecisionContext, more: Mapping[str, float]) -> dict[str, float]:
    """Return the limits in force plus the granted amounts, counted from the present usage if that is higher."""
    state, plan = ctx.state, ctx.plan
    used = limits.usage_of(state)
    raised: dict[str, float] = {}
    for name, amount in more.items():
        planned = limits.allowed(ctx, name, limits.planned(plan, name))
        if planned is not None:
            raised[name] = max(planned, used.get(name, 0.0)) + amount
    if state.limits.interruption == "no-progress":
        raised["no-progress"] = (limits.allowed(ctx, "no-progress", REPEATS_MAX) or 0) + REPEATS_MAX
    return raised


class NotSteerable(CallerError):
    """The workflow or its state does not allow this intervention."""

    code = "not-steerable"


def steer(ctx: DecisionContext, report: SteerRequested) -> None:
    """Apply an intervention completely or not at all. Raises `NotSteerable`, `WrongStatus`, `EditRefused`."""
    if not ctx.plan.steerable:
        raise NotSteerable("this workflow cannot be steered", hint="Set its `config.humanInLoop` to `real_time`.")
    must(ctx, not ctx.state.ended and ctx.state.status != "pending", "steered")
    if report.goto is not None:
        _must_lead_to(ctx, report.goto)
    if report.messages and not ctx.plan.messages:
        raise NotSteerable("this workflow has no conversation for messages", hint="Change its data instead.")
    check_edits(ctx, (*report.edits, *_messages_as_edit(ctx, report.messages)))
    if not (report.edits or report.messages or report.goto):
        return
    ctx.emit(
        ExecutionSteered(
            edits=report.edits, messages=report.messages, goto=report.goto, reason=report.reason, by=report.by
        )
    )
    if report.goto is not None:
        _redirect(ctx, report.goto)


def _messages_as_edit(ctx: DecisionContext, messages: tuple[Json, ...]) -> tuple[DataEdit, ...]:
    """Return the messages as an edit of the data, so that their size can be checked."""
    if not messages:
        return ()
    conversation = ctx.state.root.data.root.get("messages")
    return (DataEdit(("messages",), [*(conversation if isinstance(conversation, list) else ()), *messages]),)


def _must_lead_to(ctx: DecisionContext, name: str) -> None:
    if ctx.state.compensation is not None:
        raise NotSteerable(
            "the execution is being compensated and cannot be redirected", hint="Cancel it to stop the compensation."
        )
    if name == END:
        return
    node = ctx.plan.nodes.get(name)
    if node is None or node.hidden:
        raise NotSteerable(f"there is no node {name!r} at which to continue", hint="See the nodes of the workflow.")
    if node.exits.no_route == "undone":
        raise NotSteerable(f"{name!r} is a compensation: control cannot continue from it", hint="Name another node.")
    around = (*node.position.parallels, *node.position.loops)
    if around or (isinstance(node.action, JoinAction) and node.action.closes):
        where = f"inside {around[0]!r}" if around else "the end of a parallel"
        raise NotSteerable(
            f"{name!r} is {where}: control cannot begin there", hint="Name a node outside the parallel or loop."
        )


def _redirect(ctx: DecisionContext, node: str) -> None:
    """Cancel all steps and send control to the node, with the incoming value of the first cancelled step."""
    state = ctx.state
    steps = sorted(step for step in state.steps if not step.scope)
    value = state.steps[steps[0]].incoming.value if steps else None
    completion.cancel_steps(ctx, ())
    ctx.discard_all()
    ctx.emit(ControlRedirected(node=node, value=value))
    ctx.enqueue(EnterNode(node, (), None, NOBODY))
