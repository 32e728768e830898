"""Code nodes: refused until this installation has a sandbox. Code of a workflow never runs in this process."""

from __future__ import annotations

from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.engine.kinds import WorkSpec
from pointsman.engine.reports import WorkDone, WorkFailed
from pointsman.executors.failures import work_failed
from pointsman.ports import Run


class CodeExecutor:
    """Refuses, and says what is missing."""

    async def execute(self, command: Execute, spec: WorkSpec, run: Run) -> WorkDone | WorkFailed:
        message = f"the code of {spec.node!r} cannot run: this installation has no sandbox"
        hint = "Use a transform or a tool, or route around it with an edge on the error `sandbox-missing`."
        return work_failed(command, Failure(code="sandbox-missing", message=message, hint=hint))
