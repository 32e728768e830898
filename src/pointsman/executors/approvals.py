"""Approvals: tool calls that people must agree to first, as one attempt sees it.

    call ─▶ does its tool need approval? ─ no ─▶ make it
                   └─ yes ─▶ verdict? ─ none ─▶ stop here: `CallsNeedApproval`, the attempt is performed again later
                                └─ agreed ─▶ make it, maybe with other arguments ┴ rejected ─▶ told instead

Asked where calls are made, so no executor can forget it.
"""

from __future__ import annotations

from msgspec.structs import replace

from pointsman.engine.calls import CallVerdict, ProposedCall
from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ApprovalAsked, ToolCall
from pointsman.ports import Tools


class CallsNeedApproval(Exception):
    """Not a failure: the attempt stops before calls that a person must agree to."""

    def __init__(self, calls: tuple[ProposedCall, ...]) -> None:
        super().__init__(f"{len(calls)} calls need approval")
        self.calls = calls

    def report(self, command: Execute) -> ApprovalAsked:
        """What the executor says then."""
        return ApprovalAsked(step=command.step, attempt=command.attempt, calls=self.calls)


class Approvals:
    """What was decided about the calls of one attempt, by effect number."""

    def __init__(self, command: Execute, tools: Tools) -> None:
        self._tools = tools
        self._verdicts: dict[int, CallVerdict] = {verdict.number: verdict for verdict in command.verdicts}

    def must_cover(self, numbered: list[tuple[int, ToolCall]]) -> None:
        """Raises `CallsNeedApproval` with all calls that nobody has decided about."""
        open_ = tuple(
            ProposedCall(number=number, name=call.name, arguments=call.arguments, description=tool.description)
            for number, call in numbered
            if (tool := self._tools.find(call.name)) is not None
            and tool.requires_approval
            and number not in self._verdicts
        )
        if open_:
            raise CallsNeedApproval(open_)

    def decided(self, number: int, call: ToolCall) -> ToolCall | Failure:
        """The call as it may be made, or why not."""
        verdict = self._verdicts.get(number)
        if verdict is None:
            return call
        if not verdict.approved:
            said = f": {verdict.reason}" if verdict.reason else ""
            return Failure(code="call-rejected", message=f"a person rejected this call of {call.name!r}{said}")
        return call if verdict.arguments is None else replace(call, arguments=verdict.arguments)
