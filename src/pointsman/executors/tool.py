"""Tool nodes: one tool call, no model. Its failure is the step's."""

from __future__ import annotations

from pointsman.engine.commands import Execute
from pointsman.engine.kinds import WorkSpec
from pointsman.engine.reports import ApprovalAsked, ToolCall, WorkDone, WorkFailed
from pointsman.errors import EngineBug
from pointsman.executors.approvals import CallsNeedApproval
from pointsman.executors.failures import work_failed
from pointsman.executors.ledger import Ledger, World
from pointsman.ports import Run


class ToolExecutor:
    """Input: {"tool": name, "parameters": {…}}. Result: what the tool answers."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def execute(self, command: Execute, spec: WorkSpec, run: Run) -> WorkDone | WorkFailed | ApprovalAsked:
        name, parameters = command.input.get("tool"), command.input.get("parameters")
        if not isinstance(name, str) or not isinstance(parameters, dict | None):
            raise EngineBug(f"a tool step was given {command.input!r}")
        ledger = Ledger(self._world, command, spec, run)
        try:
            (outcome,) = await ledger.call([ToolCall(id="1", name=name, arguments=parameters or {})])
        except CallsNeedApproval as why:
            return why.report(command)
        if outcome.failure is not None:
            return work_failed(command, outcome.failure, ledger.usage)
        return WorkDone(step=command.step, attempt=command.attempt, result=outcome.result, usage=ledger.usage)
