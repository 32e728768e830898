"""Usage meter: usage of one execution that its journal does not hold yet, and the listeners notified of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pointsman.engine.decide import budgets
from pointsman.engine.failures import Failure
from pointsman.engine.plan import Plan
from pointsman.engine.reports import Usage
from pointsman.engine.state import ExecutionState
from pointsman.engine.steps import Step
from pointsman.runtime.summary import usage_of


class UsageMeter:
    """Asked before each call of a model or tool, by all attempts that run: together they keep to the budgets."""

    __slots__ = ("_plan", "_state", "_told", "on_usage", "open")

    def __init__(self, plan: Plan, state: ExecutionState) -> None:
        self._plan = plan
        self._state = state
        self.open: dict[Step, Usage] = {}
        """What attempts that run have spent so far, as far as they asked."""
        self.on_usage: Callable[[Usage], None] | None = None
        """Told what it has consumed in all, after each row that says more."""
        self._told = Usage()

    @property
    def matters(self) -> bool:
        """It has a budget, or is part of one."""
        return bool(self._plan.limits.budgets) or self.on_usage is not None

    def refusal(self, step: Step, kind: Literal["model", "tool"], spent: Usage, *, calls: int) -> Failure | None:
        """Why an attempt that has spent so much may not go on; None: it may."""
        if not self._plan.limits.budgets:
            return None
        self.open[step] = spent
        tripped = budgets.refused(self._plan, self._state, kind, calls, self.open.values())
        return None if tripped is None else budgets.failure_of(tripped)

    def over(self, step: Step) -> None:
        """The attempt is over: the journal has what it spent, or it is spent again from its record."""
        self.open.pop(step, None)

    def notify(self) -> None:
        """A row was decided."""
        if self.on_usage is not None and (spent := usage_of(self._state)) != self._told:
            self._told = spent
            self.on_usage(spent)
