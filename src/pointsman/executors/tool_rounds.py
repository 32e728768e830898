"""Tool rounds of one attempt of an agent: which tools it may call, and detection of repeated calls."""

from __future__ import annotations

from typing import Final

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall
from pointsman.executors.agent_settings import AgentSettings
from pointsman.executors.effect_ledger import Ledger, ToolOutcome, fingerprint
from pointsman.executors.failures import WorkRefused
from pointsman.executors.memory_tools import DEFAULT, offered
from pointsman.ports import ExecutionPort, Tools, ToolSpec
from pointsman.tools.tool import RESERVED, need_of
from pointsman.values import Json

SAME_MAX: Final = 3
"""Limit of equal rounds in a row: the same calls with the same results."""
CIRCLING: Final = (
    "You made the same calls as before, and were told the same. Do something else, or answer with what you know."
)


class ToolRounds:
    """Runs the tool calls of an agent, round by round."""

    def __init__(
        self, command: Execute, spec: WorkSpec, run: ExecutionPort, *, allowed: dict[str, ToolSpec], ledger: Ledger
    ) -> None:
        self._command = command
        self._spec = spec
        self._run = run
        self._ledger = ledger
        self.allowed = allowed
        self._last = ""
        self._same = 0

    @property
    def is_circling(self) -> bool:
        """Whether the last round repeated the calls and results of the round before."""
        return self._same > 1

    def refusal(self, call: ToolCall) -> Failure | None:
        """Return why the agent may not make a call; None: it may."""
        if call.name in self.allowed:
            return None
        message = f"the tool {call.name!r} is not among yours"
        return Failure(
            code="tool-not-allowed", message=message, hint=f"Your tools: {', '.join(self.allowed) or 'none'}."
        )

    def may_leave(self, call: ToolCall) -> bool:
        """Return whether a tool executor may carry out the call: it can reach neither client tools nor the agent's
        memory."""
        tool = self.allowed[call.name]
        return tool.side == "server" and not tool.memory

    async def perform(self, calls: list[ToolCall]) -> list[ToolOutcome]:
        """Make all calls at once and return their outcomes in order."""
        for call in calls:
            self._run.delta(self._command, {"kind": "tool_call", "tool": call.name, "arguments": call.arguments})
        outcomes = await self._ledger.call(calls, at_once=True)
        for call, outcome in zip(calls, outcomes, strict=True):
            self._run.delta(self._command, {"kind": "tool_result", "tool": call.name, "ok": outcome.failure is None})
        return outcomes

    def count(self, told: list[tuple[ToolCall, ToolOutcome]]) -> None:
        """Count equal rounds. Raises `WorkRefused` after `SAME_MAX` equal ones in a row."""
        parts: list[Json] = [[call.name, call.arguments, outcome.told()] for call, outcome in told]
        mark = fingerprint(*parts)
        self._same = self._same + 1 if mark == self._last else 1
        self._last = mark
        if self._same >= SAME_MAX:
            named = ", ".join(sorted({call.name for call, _ in told}))
            message = (
                f"the agent {self._spec.node!r} made the same calls ({named}) {self._same} times, and was told the same"
            )
            hint = "Say in its prompt when to stop, or let the tool say what is missing."
            raise WorkRefused(Failure(code="tool-loop", message=message, hint=hint))


def allowed_tools(settings: AgentSettings, tools: Tools) -> dict[str, ToolSpec]:
    """Return the agent's tools. Raises `WorkRefused` for a tool that is unknown or off, or has a name of an engine
    tool."""
    allowed: dict[str, ToolSpec] = {}
    for name in settings.tools or ():
        if name in RESERVED:
            message = f"the tool {name!r} belongs to the engine: it is offered where it has a meaning"
            raise WorkRefused(Failure(code="tool-name-reserved", message=message, hint="Take it off the list."))
        tool = tools.find(name)
        if tool is None:
            message = f"the agent may call {name!r}, but there is no tool of that name"
            hint = "Register it, or script it for a run without the world."
            raise WorkRefused(Failure(code="unknown-tool", message=message, hint=hint, needs=need_of(name)))
        if tool.off:
            message = f"the agent may call {name!r}, but that tool is off here"
            raise WorkRefused(Failure(code="tool-off", message=message, hint=tool.off, needs=need_of(name)))
        allowed[name] = tool if not tool.memory else offered(tool, settings.memory.scopes or DEFAULT)
    return allowed
