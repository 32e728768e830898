"""Tool nodes: one tool call, no model. Its failure is the step's."""

from __future__ import annotations

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ApprovalAsked, ToolCall, WorkDone, WorkFailed
from pointsman.errors import EngineBug
from pointsman.executors.approvals import CallsNeedApproval
from pointsman.executors.effect_ledger import Ledger, World
from pointsman.executors.failures import WorkRefused, work_failed
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
            if spec.secrets:
                self._must_stay_here(name)
            (outcome,) = await ledger.call([ToolCall(id="1", name=name, arguments=parameters or {})])
        except CallsNeedApproval as why:
            return why.report(command)
        except WorkRefused as why:
            return work_failed(command, why.failure, ledger.usage)
        if outcome.failure is not None:
            return work_failed(command, outcome.failure, ledger.usage)
        return WorkDone(
            step=command.step,
            attempt=command.attempt,
            result=outcome.result,
            usage=ledger.usage,
            printed=ledger.printed,
        )

    def _must_stay_here(self, name: str) -> None:
        """What is given to a sub-workflow, to the caller, to memory or to files is kept. Raises `WorkRefused`."""
        tool = self._world.tools.find(name)
        if tool is None or not (tool.workflow or tool.side == "client" or tool.memory or tool.keeps):
            return
        hint = "Name the secret where it is used: in the workflow itself, or at the caller's."
        if tool.workflow or tool.side == "client":
            who = f"the workflow {tool.workflow!r}" if tool.workflow else "the caller"
            why = f"{who} carries it out, which would be shown them"
        else:
            why, hint = "it keeps what it is given where people read it", "Give it the name of the secret instead."
        message = f"the parameters of {name!r} name secrets, and {why}"
        raise WorkRefused(Failure(code="secret-not-allowed", message=message, hint=hint))
