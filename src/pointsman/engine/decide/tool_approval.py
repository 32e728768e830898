"""Approval: work that may not start, and tool calls that may not be made, before a person agrees.

    step starts ─▶ GateOpened(start) ─▶ GateClosed ─▶ AttemptStarted(approved) ─▶ executed
    attempt ─▶ ToolCallsProposed ─▶ GateOpened(calls) ─▶ GateClosed, ToolCallsReviewed,
                             AttemptStarted(approved) ─▶ the same attempt is executed again

No work runs while the gate is open. The repeated attempt is answered from its record up to the calls, and receives the
verdict on each: made, made with other arguments, or rejected with the reason for the model.
"""

from __future__ import annotations

from typing import Final

from pointsman.engine.actions import WorkAction, WorkflowAction
from pointsman.engine.commands import StartChild
from pointsman.engine.decide import client_tools, workflow_tools
from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.decide.entry import Entry, execute, fail_open_step, set_timer
from pointsman.engine.decide.gate_questions import put, said
from pointsman.engine.decide.human_task_answers import EDIT, REJECT
from pointsman.engine.digests import digest_of_call
from pointsman.engine.events.steps import AttemptStarted
from pointsman.engine.events.waits import ChildRequested, GateOpened, ToolCallsReviewed
from pointsman.engine.failures import Failure
from pointsman.engine.reports import GateAnswered, ToolCallsProposed
from pointsman.engine.state import GateState, StepState
from pointsman.engine.tool_calls import CallVerdict, ProposedCall
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
    put(
        ctx,
        GateOpened(
            step=entry.step,
            gate=f"gate-{entry.step}",
            message=message,
            messages=said(ctx, entry, approval.messages, message, env),
            options=START_OPTIONS,
            shown=work,
            about="start",
        ),
        approval.terms,
    )


def calls_proposed(ctx: DecisionContext, at: StepState, report: ToolCallsProposed) -> None:
    """Handle tool calls that need a person, the caller or a sub-workflow. Calls with a verdict are not asked again."""
    calls = tuple(call for call in report.calls if client_tools.is_open(at, call))
    if not calls:
        return
    if calls[0].wants == "result":
        put(ctx, client_tools.question(at, calls), client_tools.terms_of_calls(calls))
        return
    if calls[0].wants == "workflow":
        workflow_tools.begin(ctx, at, calls)
        return
    approval = ctx.node(at.step).policy.approval
    names = ", ".join(repr(name) for name in dict.fromkeys(call.name for call in calls))
    put(
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
        verdicts = client_tools.verdicts(at, gate, report, by_clock=by_clock)
    else:
        verdicts = tuple(_verdict(call, report) for call in gate.calls)
    ctx.emit(ToolCallsReviewed(step=at.step, verdicts=verdicts))
    ctx.emit(AttemptStarted(step=at.step, attempt=at.attempt, reason="approved", phase=at.phase))
    execute(ctx, at.step)


def _verdict(call: ProposedCall, report: GateAnswered) -> CallVerdict:
    said: Json = report.action != REJECT
    if report.action == EDIT and isinstance(report.data, dict):
        said = report.data.get(str(call.number), True)
    of = digest_of_call(call.name, call.arguments)
    if isinstance(said, dict):
        return CallVerdict(number=call.number, approved=True, arguments=said, of=of, tool=call.name)
    reason = "" if said else report.comment
    return CallVerdict(number=call.number, approved=said is True, reason=reason, of=of, tool=call.name)


def _start(ctx: DecisionContext, at: StepState, report: GateAnswered) -> None:
    step, does = at.step, ctx.node(at.step).action
    if report.action == REJECT:
        by = f" by {report.by!r}" if report.by else ""
        said = f": {report.comment}" if report.comment else ""
        fail_open_step(ctx, step, Failure(code="not-approved", message=f"{step.node!r} was rejected{by}{said}"))
        return
    if isinstance(does, WorkflowAction):
        ctx.emit(AttemptStarted(step=step, attempt=at.attempt, reason="approved"))
        ctx.emit(ChildRequested(step=step, workflow=does.workflow))
        ctx.command(
            StartChild(step=step, attempt=at.attempt, workflow=does.workflow, input=at.input or {}, wait=does.wait)
        )
        return
    assert isinstance(does, WorkAction)
    if does.delay_s > 0:
        set_timer(ctx, step, "delay", ctx.state.at + does.delay_s)
        return
    ctx.emit(AttemptStarted(step=step, attempt=at.attempt, reason="approved"))
    execute(ctx, step)
