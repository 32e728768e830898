"""Approvals: calls that people must approve, or that callers and sub-workflows carry out, as one attempt sees them.

    call ─▶ needs approval, or is carried out elsewhere? ─ no ─▶ make it
                   └─ yes ─▶ verdict? ─ none ─▶ stop here: `CallsNeedApproval`, the attempt is performed again later
                                └─ approved ─▶ make it, maybe with other arguments ┴ rejected, returned ─▶ no call

Checked where calls are made, so that no executor can omit it.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from pointsman.engine.commands import Execute
from pointsman.engine.digests import is_about
from pointsman.engine.failures import Failure
from pointsman.engine.gates import CallVerdict, ProposedCall
from pointsman.engine.reports import ToolCall, ToolCallsProposed
from pointsman.ports import Tools, ToolSpec
from pointsman.tools.schemas import Checker
from pointsman.values import Json


class CallsNeedApproval(Exception):
    """Not a failure: stops the attempt before calls that a person must approve."""

    def __init__(self, calls: tuple[ProposedCall, ...]) -> None:
        super().__init__(f"{len(calls)} calls need approval")
        self.calls = calls

    def report(self, command: Execute) -> ToolCallsProposed:
        """Return the executor's report for the engine."""
        return ToolCallsProposed(step=command.step, attempt=command.attempt, calls=self.calls)


class Returned(NamedTuple):
    """The result of a call that was carried out elsewhere."""

    result: Json


class Approvals:
    """The verdicts about the calls of one attempt, by effect number."""

    def __init__(self, command: Execute, tools: Tools) -> None:
        self._tools = tools
        self._verdicts: dict[int, CallVerdict] = {verdict.number: verdict for verdict in command.verdicts}
        self._wrong: dict[int, Failure] = {}

    def must_cover(self, numbered: list[tuple[int, ToolCall]]) -> None:
        """Raise `CallsNeedApproval` with all calls that have no verdict yet; then with all calls without a result that
        the caller carries out, then with those that sub-workflows carry out."""
        known = [(number, call, tool) for number, call in numbered if (tool := self._tools.find(call.name)) is not None]
        unapproved = tuple(
            ProposedCall(
                number=number,
                name=call.name,
                arguments=call.arguments,
                description=tool.description,
                parameters=tool.parameters,
            )
            for number, call, tool in known
            if tool.requires_approval and self._verdict(number, call) is None
        )
        if unapproved:
            raise CallsNeedApproval(unapproved)
        elsewhere = [
            _elsewhere(number, approved, tool)
            for number, call, tool in known
            if (tool.side == "client" or tool.workflow)
            and not self._has_result(number, call)
            and self._fits(number, approved := self._as_approved(number, call), tool)
        ]
        for wants in ("result", "workflow"):
            if asked := tuple(one for one in elsewhere if one.wants == wants):
                raise CallsNeedApproval(asked)

    def _fits(self, number: int, call: ToolCall, tool: ToolSpec) -> bool:
        """Return whether the arguments fit the tool's parameters, so that the caller need not check them."""
        wrong = Checker(tool.parameters).problems(call.arguments)
        if wrong:
            message = f"arguments of {call.name!r}: {wrong}"
            self._wrong[number] = Failure(code="tool-arguments", message=message, hint="Call it again, corrected.")
        return not wrong

    def _verdict(self, number: int, call: ToolCall) -> CallVerdict | None:
        """Return the verdict about exactly this call: approval of another call with the same number does not count."""
        verdict = self._verdicts.get(number)
        return verdict if verdict is not None and is_about(verdict, call.name, call.arguments) else None

    def _has_result(self, number: int, call: ToolCall) -> bool:
        verdict = self._verdict(number, call)
        return verdict is not None and (verdict.returned or not verdict.approved)

    def _as_approved(self, number: int, call: ToolCall) -> ToolCall:
        """Return the call with the arguments that a person substituted, if any."""
        verdict = self._verdict(number, call)
        return call if verdict is None or verdict.arguments is None else replace(call, arguments=verdict.arguments)

    def decided(self, number: int, call: ToolCall) -> ToolCall | Returned | Failure:
        """Return the call to make, its result from elsewhere, or the failure if it must not be made."""
        if number in self._wrong:
            return self._wrong[number]
        verdict = self._verdict(number, call)
        if verdict is None:
            return call
        if verdict.returned:
            return Returned(verdict.result)
        if not verdict.approved:
            return self._failure(call, verdict)
        return self._as_approved(number, call)

    def _failure(self, call: ToolCall, verdict: CallVerdict) -> Failure:
        said = f": {verdict.reason}" if verdict.reason else ""
        if not verdict.code:
            return Failure(code="call-rejected", message=f"a person rejected this call of {call.name!r}{said}")
        tool = self._tools.find(call.name)
        who = "the caller" if tool is None or not tool.workflow else f"the workflow {tool.workflow!r}"
        return Failure(code=verdict.code, message=f"{who} did not carry out {call.name!r}{said}")


def _elsewhere(number: int, call: ToolCall, tool: ToolSpec) -> ProposedCall:
    """Return the proposal of a call that the caller or a sub-workflow carries out."""
    return ProposedCall(
        number=number,
        name=call.name,
        arguments=call.arguments,
        description=tool.description,
        wants="workflow" if tool.workflow else "result",
        workflow=tool.workflow,
        timeout_s=tool.timeout_s,
        bytes_max=tool.bytes_max,
    )
