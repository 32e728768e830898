"""Tool calls and work that wait: for the approval of a person, or for child executions that perform the calls.

    step starts ─▶ GateOpened(start) ─▶ GateClosed ─▶ AttemptStarted(approved) ─▶ executed
    attempt ─▶ ToolCallsProposed ─┬▶ GateOpened(calls) ─▶ GateClosed, ToolCallsReviewed ───────┐
                                  └▶ ToolChildrenRequested ─▶ ToolCallEnded for each call ─────┴▶
                             AttemptStarted(approved) ─▶ the same attempt is executed again

No work runs meanwhile. The repeated attempt is answered from its record up to the calls, and receives the verdict on
each: made, made with other arguments, performed by a sub-workflow, or rejected with the reason for the model. A failed
child execution is a failure of its call; the step continues.
"""

from __future__ import annotations

from typing import Final

from pointsman.engine.actions import CallVerdict, ProposedCall, WorkAction, WorkflowAction
from pointsman.engine.commands import StartChild
from pointsman.engine.decide import human_task_answers
from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.decide.entry import Entry, execute, fail_open_step, set_timer, start_for_call
from pointsman.engine.decide.gate_questions import announce_gate, localized_messages
from pointsman.engine.decide.human_task_answers import EDIT, REJECT
from pointsman.engine.decide.outputs import size_of_answer
from pointsman.engine.digests import digest_of_call, is_about
from pointsman.engine.events.steps import AttemptStarted
from pointsman.engine.events.waits import (
    ChildRequested,
    GateOpened,
    ToolCallEnded,
    ToolCallsReviewed,
    ToolChildrenRequested,
)
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ChildEnded, GateAnswered, ToolCallsProposed, Usage
from pointsman.engine.state import GateState, StepState
from pointsman.values import Json, JsonObject

APPROVE: Final = "approve"

START_OPTIONS: Final[tuple[JsonObject, ...]] = (
    {"value": APPROVE, "label": "Approve", "style": "primary"},
    {"value": REJECT, "label": "Reject", "style": "danger"},
)
CALL_OPTIONS: Final[tuple[JsonObject, ...]] = (
    START_OPTIONS[0],
    {"value": EDIT, "label": "Edit", "style": "secondary"},
    START_OPTIONS[1],
)


def ask_to_start(entry: Entry, *, work: JsonObject, messages: int = 0) -> None:
    """Open the step with its future input, and a gate that lets a person start it."""
    ctx, approval = entry.ctx, entry.node.policy.approval
    env = entry.environment()
    message = f"May {entry.node.id!r} start?"
    if approval.message is not None:
        message = str(ctx.value(entry.scope, approval.message, env) or "")
    entry.open_step(input=work, messages=messages)
    announce_gate(
        ctx,
        GateOpened(
            step=entry.step,
            gate=f"gate-{entry.step}",
            message=message,
            messages=localized_messages(ctx, entry, approval.messages, message, env),
            options=START_OPTIONS,
            shown=work,
            about="start",
        ),
        approval.terms,
    )


def calls_proposed(ctx: DecisionContext, at: StepState, report: ToolCallsProposed) -> None:
    """Handle tool calls that need a person, the caller or a sub-workflow. Calls with a verdict are not asked again."""
    calls = tuple(call for call in report.calls if human_task_answers.lacks_verdict(at, call))
    if not calls:
        return
    if calls[0].wants == "result":
        announce_gate(ctx, human_task_answers.results_gate(at, calls), human_task_answers.terms_of_calls(calls))
        return
    if calls[0].wants == "workflow":
        start_children(ctx, at, calls)
        return
    approval = ctx.node(at.step).policy.approval
    names = ", ".join(repr(name) for name in dict.fromkeys(call.name for call in calls))
    announce_gate(
        ctx,
        GateOpened(
            step=at.step,
            gate=f"gate-{at.step}:{at.attempt}.{calls[0].number}",
            message=f"May {at.step.node!r} call {names}?",
            options=CALL_OPTIONS,
            shown={str(call.number): {"tool": call.name, "arguments": call.arguments} for call in calls},
            about="calls",
            calls=calls,
        ),
        approval.terms,
    )


def decided(ctx: DecisionContext, at: StepState, gate: GateState, report: GateAnswered, *, by_clock: bool) -> None:
    """Continue after people approved or rejected work or calls, or the caller returned results."""
    if gate.about == "start":
        _start(ctx, at, report)
        return
    if gate.about == "client":
        verdicts = human_task_answers.verdicts_on_results(at, gate, report, by_clock=by_clock)
    else:
        verdicts = tuple(_verdict(call, report) for call in gate.calls)
    ctx.emit(ToolCallsReviewed(step=at.step, verdicts=verdicts))
    ctx.emit(AttemptStarted(step=at.step, attempt=at.attempt, reason="approved", phase=at.phase))
    execute(ctx, at.step)


def _verdict(call: ProposedCall, report: GateAnswered) -> CallVerdict:
    approved: Json = report.action != REJECT
    if report.action == EDIT and isinstance(report.data, dict):
        approved = report.data.get(str(call.number), True)
    of = digest_of_call(call.name, call.arguments)
    if isinstance(approved, dict):
        return CallVerdict(number=call.number, approved=True, arguments=approved, of=of, tool=call.name)
    reason = "" if approved else report.comment
    return CallVerdict(number=call.number, approved=approved is True, reason=reason, of=of, tool=call.name)


def _start(ctx: DecisionContext, at: StepState, report: GateAnswered) -> None:
    step, action = at.step, ctx.node(at.step).action
    if report.action == REJECT:
        by = f" by {report.by!r}" if report.by else ""
        comment = f": {report.comment}" if report.comment else ""
        fail_open_step(ctx, step, Failure(code="not-approved", message=f"{step.node!r} was rejected{by}{comment}"))
        return
    if isinstance(action, WorkflowAction):
        ctx.emit(AttemptStarted(step=step, attempt=at.attempt, reason="approved"))
        ctx.emit(ChildRequested(step=step, workflow=action.workflow))
        ctx.command(
            StartChild(step=step, attempt=at.attempt, workflow=action.workflow, input=at.input or {}, wait=action.wait)
        )
        return
    assert isinstance(action, WorkAction)
    if action.delay_s > 0:
        set_timer(ctx, step, "delay", ctx.state.at + action.delay_s)
        return
    ctx.emit(AttemptStarted(step=step, attempt=at.attempt, reason="approved"))
    execute(ctx, step)


TOO_LARGE: Final = "tool-output-too-large"


def start_children(ctx: DecisionContext, at: StepState, calls: tuple[ProposedCall, ...]) -> None:
    """Start a sub-workflow for each call."""
    ctx.emit(ToolChildrenRequested(step=at.step, calls=calls))
    for call in calls:
        ctx.command(start_for_call(at, call))


def counted_usage(at: StepState, call: int) -> Usage | None:
    """Return the usage of a sub-workflow counted so far; `call` 0 is the sub-workflow that is the node's own work."""
    if not call:
        return at.child_usage
    return None if at.workflow_calls is None else at.workflow_calls[call].usage


def child_ended(ctx: DecisionContext, at: StepState, report: ChildEnded) -> None:
    """Record the end of one sub-workflow; after the last one the attempt continues."""
    assert at.workflow_calls is not None
    verdict = _result_verdict(at, at.workflow_calls[report.call].call, report)
    ctx.emit(ToolCallEnded(step=at.step, verdict=verdict, usage=report.usage))
    if at.workflow_calls:
        return
    ctx.emit(AttemptStarted(step=at.step, attempt=at.attempt, reason="approved", phase=at.phase))
    if ctx.state.status != "interrupted":  # otherwise it is issued when the execution resumes
        execute(ctx, at.step)


def _result_verdict(at: StepState, call: ProposedCall, report: ChildEnded) -> CallVerdict:
    verdict = None if at.verdicts is None else at.verdicts.get(call.number)
    of = digest_of_call(call.name, call.arguments)
    if verdict is not None and is_about(verdict, call.name, call.arguments):
        of = verdict.of
    failure = report.failure
    if failure is None and call.bytes_max is not None and (size := size_of_answer(report.output)) > call.bytes_max:
        message = f"the workflow {call.workflow!r} returned {size} bytes; the maximum is {call.bytes_max}"
        failure = Failure(code=TOO_LARGE, message=message)
    if failure is not None:
        return CallVerdict(
            number=call.number, approved=False, reason=failure.message, of=of, tool=call.name, code=failure.code
        )
    return CallVerdict(number=call.number, approved=True, returned=True, result=report.output, of=of, tool=call.name)
