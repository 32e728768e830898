"""Code nodes: run Python in the sandbox only. Without a sandbox the step is refused."""

from __future__ import annotations

from typing import cast

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.reports import WorkDone, WorkFailed
from pointsman.errors import EngineBug
from pointsman.executors.failures import failure_of, work_failed
from pointsman.ports import ExecutionPort
from pointsman.redaction import tail
from pointsman.tool_output import CHARS_MAX
from pointsman.tools.sandbox.interpreter import CodeFailed, Interpreter
from pointsman.tools.sandbox.results import ResultUnusable
from pointsman.tools.sandbox.selection import SandboxMissing


class CodeExecutor:
    """Input: {"inputs": {variable: value}}. Result: the code's last expression, or its variable `result`."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> WorkDone | WorkFailed:
        inputs = command.input.get("inputs")
        if not isinstance(inputs, dict):
            raise EngineBug(f"a code step was given {command.input!r}")
        source = cast("str", spec.config["source"])
        try:
            came = await self._interpreter.run(source, inputs, execution=run.execution)
        except CodeFailed as why:
            return work_failed(command, why.failure)
        except (ResultUnusable, SandboxMissing) as why:
            return work_failed(command, failure_of(why))
        if came.printed:
            run.delta(command, {"kind": "text", "text": came.printed})
        printed = tail(came.printed, CHARS_MAX)
        return WorkDone(step=command.step, attempt=command.attempt, result=came.value, printed=printed)
