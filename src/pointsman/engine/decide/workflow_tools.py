"""Workflow tools: child executions carry out the tool calls of an attempt, one each, all at once.

    attempt ─▶ ToolCallsProposed ─▶ ToolChildrenRequested ─▶ ToolCallEnded for each
                          ─▶ AttemptStarted(approved) ─▶ the same attempt is executed again

No work runs meanwhile. The repeated attempt receives the results in its command. A failed child execution is a failure
of its call, reported to the model; the step continues.
"""

from __future__ import annotations

from typing import Final

from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.decide.entry import execute
from pointsman.engine.decide.input_sizes import size_of_answer
from pointsman.engine.decide.outstanding import start_for_call
from pointsman.engine.digests import digest_of_call, is_about
from pointsman.engine.events.steps import AttemptStarted
from pointsman.engine.events.waits import ToolCallEnded, ToolChildrenRequested
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ChildEnded, Usage
from pointsman.engine.state import StepState
from pointsman.engine.tool_calls import CallVerdict, ProposedCall

TOO_LARGE: Final = "tool-output-too-large"


def begin(ctx: DecisionContext, at: StepState, calls: tuple[ProposedCall, ...]) -> None:
    """Start a sub-workflow for each call."""
    ctx.emit(ToolChildrenRequested(step=at.step, calls=calls))
    for call in calls:
        ctx.command(start_for_call(at, call))


def counted(at: StepState, call: int) -> Usage | None:
    """Return the usage of a sub-workflow counted so far; `call` 0 is the sub-workflow that is the node's own work."""
    if not call:
        return at.child_usage
    return None if at.workflow_calls is None else at.workflow_calls[call].usage


def ended(ctx: DecisionContext, at: StepState, report: ChildEnded) -> None:
    """Record the end of one sub-workflow; after the last one the attempt continues."""
    assert at.workflow_calls is not None
    verdict = _verdict(at, at.workflow_calls[report.call].call, report)
    ctx.emit(ToolCallEnded(step=at.step, verdict=verdict, usage=report.usage))
    if at.workflow_calls:
        return
    ctx.emit(AttemptStarted(step=at.step, attempt=at.attempt, reason="approved", phase=at.phase))
    if ctx.state.status != "interrupted":  # otherwise it is issued when the execution resumes
        execute(ctx, at.step)


def _verdict(at: StepState, call: ProposedCall, report: ChildEnded) -> CallVerdict:
    known = None if at.verdicts is None else at.verdicts.get(call.number)
    of = digest_of_call(call.name, call.arguments)
    if known is not None and is_about(known, call.name, call.arguments):
        of = known.of
    failure = report.failure
    if failure is None and call.bytes_max is not None and (size := size_of_answer(report.output)) > call.bytes_max:
        message = f"the workflow {call.workflow!r} answered {size} bytes; {call.bytes_max} is the most"
        failure = Failure(code=TOO_LARGE, message=message)
    if failure is not None:
        return CallVerdict(
            number=call.number, approved=False, reason=failure.message, of=of, tool=call.name, code=failure.code
        )
    return CallVerdict(number=call.number, approved=True, returned=True, result=report.output, of=of, tool=call.name)
