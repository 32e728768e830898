"""Verbs of the executions domain. The rights are those of `auth.policy`; see `auth.verbs` for how a verb is written."""

from __future__ import annotations

from pointsman.auth.policy import must_control
from pointsman.auth.verbs import Verbs, verb
from pointsman.executions.execution import Execution
from pointsman.executions.opening import reach_execution


class ExecutionVerbs(Verbs):
    """What a caller may do with executions."""

    @verb("operator", "cancel executions", target=("execution", "by"))
    async def cancel(self, execution: str, *, reason: str = "", now: bool = False, by: str | None = None) -> Execution:
        """Cancel an execution and its sub-workflows for good. A second call has no effect.

        Compensation runs first, in this process; `now`: skip it, or what is left of it. `by`: see `Verbs.name_for`.
        """
        await must_control(self.app, self.caller, execution)
        reached = await reach_execution(self.app, execution)
        await reached.cancel(reason=reason, by=self.name_for(by), now=now)
        return reached
