"""Usage meter: usage of one execution that its journal does not hold yet, and the listeners notified of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pointsman.engine.decide import limits
from pointsman.engine.failures import Failure
from pointsman.engine.plan import Plan
from pointsman.engine.reports import Usage
from pointsman.engine.state import ExecutionState
from pointsman.engine.steps import Step
from pointsman.runtime.summary import usage_of


class UsageMeter:
    """Checked before each model or tool call by all running attempts, so that together they respect the budgets."""

    __slots__ = ("_plan", "_state", "_told", "on_usage", "open")

    def __init__(self, plan: Plan, state: ExecutionState) -> None:
        self._plan = plan
        self._state = state
        self.open: dict[Step, Usage] = {}
        """Usage of running attempts so far, as of their last check."""
        self.on_usage: Callable[[Usage], None] | None = None
        """Called with the total usage after each row that changes it."""
        self._told = Usage()

    @property
    def matters(self) -> bool:
        """Return whether it has a budget or is part of one."""
        return bool(self._plan.limits.budgets) or self.on_usage is not None

    def refusal(self, step: Step, kind: Literal["model", "tool"], spent: Usage, *, calls: int) -> Failure | None:
        """Return why an attempt with this usage may not continue; None: it may."""
        if not self._plan.limits.budgets:
            return None
        self.open[step] = spent
        tripped = limits.refused_by_budget(self._plan, self._state, kind, calls, self.open.values())
        return None if tripped is None else limits.budget_failure(tripped)

    def over(self, step: Step) -> None:
        """Drop a finished attempt: the journal has its usage, or a repetition counts it again from its recorded
        effects.
        """
        self.open.pop(step, None)

    def notify(self) -> None:
        """Notify listeners after a decided row."""
        if self.on_usage is not None and (spent := usage_of(self._state)) != self._told:
            self._told = spent
            self.on_usage(spent)
