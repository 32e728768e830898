"""Tool nodes: one tool call without a model; its failure fails the step. Also the node that runs pending calls."""

from __future__ import annotations

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall, ToolCallsProposed, WorkDone, WorkFailed
from pointsman.errors import EngineBug
from pointsman.executors.approvals import CallsNeedApproval
from pointsman.executors.effect_ledger import Ledger, ToolOutcome, World
from pointsman.executors.failures import WorkRefused, work_failed
from pointsman.models.transcript import read_call, text_of, tool_message
from pointsman.ports import ExecutionPort
from pointsman.values import Json, JsonObject


class PendingCallsExecutor:
    """Input: {"calls": [{"id", "name", "arguments"}], "caller": node}.

    Result: [{"tool", "toolCallId", "result" | "error"}] in order. The failure of a tool, or that it does not exist, is
    reported to the model that called it; the step succeeds. `labels` are the tools' names, the last one first: control
    leaves by the first of them that has an edge.
    """

    def __init__(self, world: World) -> None:
        self._world = world

    async def execute(
        self, command: Execute, spec: WorkSpec, run: ExecutionPort
    ) -> WorkDone | WorkFailed | ToolCallsProposed:
        listed = command.input.get("calls")
        calls = [call for one in (listed if isinstance(listed, list) else []) if (call := read_call(one)) is not None]
        caller = text_of(command.input.get("caller")) or spec.name or spec.node
        ledger = Ledger(self._world, command, spec, run)
        try:
            outcomes = await ledger.call(calls)
        except CallsNeedApproval as why:
            return why.report(command)
        except WorkRefused as why:
            return work_failed(command, why.failure, ledger.usage)
        pairs = list(zip(calls, outcomes, strict=True))
        return WorkDone(
            step=command.step,
            attempt=command.attempt,
            result=[_entry(call, outcome) for call, outcome in pairs],
            labels=tuple(dict.fromkeys(call.name for call in reversed(calls))),
            messages=tuple(tool_message(call, outcome.told(), name=caller) for call, outcome in pairs),
            usage=ledger.usage,
            printed=ledger.printed,
        )


def _entry(call: ToolCall, outcome: ToolOutcome) -> Json:
    entry: JsonObject = {"tool": call.name, "toolCallId": call.id}
    if outcome.failure is None:
        return {**entry, "result": outcome.result}
    return {**entry, "error": {"code": outcome.failure.code, "message": outcome.failure.message}}


class ToolExecutor:
    """Input: {"tool": name, "parameters": {…}}. Result: the tool's result."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def execute(
        self, command: Execute, spec: WorkSpec, run: ExecutionPort
    ) -> WorkDone | WorkFailed | ToolCallsProposed:
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
        """Raise `WorkRefused` for a tool that stores or passes on its parameters: they must not contain secrets."""
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
