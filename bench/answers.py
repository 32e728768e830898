"""Work that is done at once: what is measured is everything around it."""

from __future__ import annotations

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.reports import ToolCall, WorkDone, WorkFailed
from pointsman.ports import ExecutionPort
from pointsman.values import Json, JsonObject


class Answers:
    """Executors of a run of some size."""

    def __init__(self, size: int) -> None:
        self._by_kind = {"tool": Tool(size), "agent": Agent(size), "tool_executor": ToolExecutor()}

    def executor_for(self, command: Execute) -> Tool | Agent | ToolExecutor:
        return self._by_kind[command.work]

    def basis(self, command: Execute, spec: WorkSpec) -> Json:
        """Nothing but its definition and its input decides a result."""
        return None

    async def has(self, need: str) -> bool:
        """Every attempt can be performed here: none waits for another process."""
        return True


class Tool:
    """`answer` gives 1, `count` how often it was asked, `wide` an object of as many keys as the size says."""

    def __init__(self, size: int) -> None:
        self._wide: JsonObject = {f"key_{number}": number for number in range(size)}

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> WorkDone | WorkFailed:
        tool = command.input["tool"]
        result: Json = self._wide if tool == "wide" else command.step.visit if tool == "count" else 1
        return WorkDone(step=command.step, attempt=command.attempt, result=result)


class Agent:
    """Asks for a tool as often as the size says, then is content. Says something else each time."""

    def __init__(self, size: int) -> None:
        self._rounds = size

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> WorkDone | WorkFailed:
        turn = command.step.visit
        assert len(command.messages) == 2 * (turn - 1)
        text = f"I look again ({turn})."
        said: tuple[Json, ...] = ({"role": "assistant", "content": text},)
        if turn > self._rounds:
            return WorkDone(step=command.step, attempt=command.attempt, result=text, messages=said, next="done")
        calls = (ToolCall(id=f"call-{turn}", name="look", arguments={"at": turn}),)
        return WorkDone(step=command.step, attempt=command.attempt, result=text, messages=said, pending=calls)


class ToolExecutor:
    """Answers the calls an agent left pending."""

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> WorkDone | WorkFailed:
        calls = command.input["calls"]
        assert isinstance(calls, list)
        seen: list[Json] = [f"what there is to see, {command.step.visit}" for _ in calls]
        said: tuple[Json, ...] = tuple({"role": "tool", "content": text} for text in seen)
        return WorkDone(step=command.step, attempt=command.attempt, result=seen, messages=said)
