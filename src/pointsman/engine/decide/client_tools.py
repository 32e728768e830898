"""Client tools: the caller runs the tool calls of an attempt and returns the results at a gate.

    attempt ─▶ ToolCallsProposed ─▶ GateOpened(client) ─┬▶ action `return` with one result per call ─┐
                                                        └▶ action `fail`, or the timeout ────────────┴▶ GateClosed,
                     ToolCallsReviewed, AttemptStarted(approved) ─▶ the same attempt is executed again

No work runs while the gate is open. The repeated attempt receives the results in its command.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from pointsman.engine.approvers import ANYONE, GateTerms
from pointsman.engine.decide.input_sizes import size_of_answer
from pointsman.engine.digests import digest_of_call, is_about
from pointsman.engine.events.waits import GateOpened
from pointsman.engine.forms import AnswerInvalid
from pointsman.engine.reports import GateAnswered
from pointsman.engine.state import GateState, StepState
from pointsman.engine.tool_calls import CallVerdict, ProposedCall
from pointsman.values import Json, JsonObject

RETURN: Final = "return"
FAIL: Final = "fail"
OPTIONS: Final[tuple[JsonObject, ...]] = (
    {"value": RETURN, "label": "Return results", "style": "primary"},
    {"value": FAIL, "label": "Fail", "style": "danger"},
)


def is_open(at: StepState, call: ProposedCall) -> bool:
    """Return whether a call still lacks its verdict: the approval, or the returned result."""
    verdict = None if at.verdicts is None else at.verdicts.get(call.number)
    if verdict is None or not is_about(verdict, call.name, call.arguments):
        return True
    return call.wants != "approval" and verdict.approved and not verdict.returned


def question(at: StepState, calls: tuple[ProposedCall, ...]) -> GateOpened:
    """Return the gate that asks for the results of calls."""
    names = ", ".join(dict.fromkeys(repr(call.name) for call in calls))
    return GateOpened(
        step=at.step,
        gate=f"gate-{at.step}:{at.attempt}.{calls[0].number}.results",
        message=f"{at.step.node!r} calls {names}: what came of it?",
        options=OPTIONS,
        shown={str(call.number): {"tool": call.name, "arguments": call.arguments} for call in calls},
        about="client",
        calls=calls,
    )


def terms_of_calls(calls: tuple[ProposedCall, ...]) -> GateTerms:
    """Return gate terms by which anyone may return results, before the shortest timeout of the calls."""
    bounds = [call.timeout_s for call in calls if call.timeout_s is not None]
    return replace(ANYONE, timeout_s=min(bounds)) if bounds else ANYONE


def check_results(gate: GateState, data: Json) -> None:
    """Check that there is one result for each call, within its size limit. Raises `AnswerInvalid`."""
    known = {str(call.number): call for call in gate.calls}
    example = ", ".join(f'"{number}": …' for number in known)
    if not isinstance(data, dict) or set(data) != set(known):
        raise AnswerInvalid("a result is wanted for each call, by its number", hint=f"Give as data: {{{example}}}.")
    for number, call in known.items():
        size = size_of_answer(data[number])
        if call.bytes_max is not None and size > call.bytes_max:
            raise AnswerInvalid(
                f"the result of {call.name!r} has {size} bytes; {call.bytes_max} is the most", hint="Return less."
            )


def timed_out(at: StepState) -> GateAnswered:
    """Return the answer of the timeout: no results were returned."""
    return GateAnswered(step=at.step, action=FAIL, comment="nobody returned a result in time", by="timeout")


def verdicts(at: StepState, gate: GateState, report: GateAnswered, *, by_clock: bool) -> tuple[CallVerdict, ...]:
    """Return the verdict on each call. Arguments that a person changed earlier stay changed."""
    known = {
        call.number: verdict
        for call in gate.calls
        if (verdict := (at.verdicts or {}).get(call.number)) is not None
        and is_about(verdict, call.name, call.arguments)
    }
    return tuple(_verdict(call, known.get(call.number), report, by_clock=by_clock) for call in gate.calls)


def _verdict(call: ProposedCall, known: CallVerdict | None, report: GateAnswered, *, by_clock: bool) -> CallVerdict:
    of = digest_of_call(call.name, call.arguments) if known is None else known.of
    if report.action == RETURN:
        assert isinstance(report.data, dict)
        arguments = None if known is None else known.arguments
        result = report.data[str(call.number)]
        return CallVerdict(
            number=call.number,
            approved=True,
            arguments=arguments,
            returned=True,
            result=result,
            of=of,
            tool=call.name,
        )
    code = "tool-timeout" if by_clock else "client-failed"
    return CallVerdict(number=call.number, approved=False, reason=report.comment, of=of, tool=call.name, code=code)
