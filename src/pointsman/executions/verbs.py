"""Verbs of the executions domain. The rights are those of `auth.policy`; see `auth.verbs` for how a verb is written."""

from __future__ import annotations

from collections.abc import Collection
from typing import Unpack

from typing_extensions import TypedDict

from pointsman.auth.policy import must_control, must_see, sees
from pointsman.auth.verbs import Verbs, verb
from pointsman.executions.execution import Execution
from pointsman.executions.lists import ExecutionEntry, found_executions
from pointsman.executions.opening import reach_execution
from pointsman.executions.pages import ExecutionPage, executions_page
from pointsman.executions.relations import Relations, relations_of
from pointsman.store.records import Summary


class ExecutionFilters(TypedDict, total=False):
    """Which executions a list contains; an absent filter admits all."""

    statuses: Collection[str]
    workflow: str | None
    session: str | None
    since: float | None
    """Started at or after, unix seconds."""
    until: float | None
    """Started before, unix seconds."""
    trials: bool
    """Also partial runs."""
    limit: int


class ExecutionVerbs(Verbs):
    """What a caller may do with executions."""

    async def _sees(self, one: Summary) -> bool:
        return await sees(self.app, self.caller, one)

    @verb("viewer", "list executions", audit=False)
    async def list(
        self, *, before: str | None = None, oldest_first: bool = False, **filters: Unpack[ExecutionFilters]
    ) -> ExecutionPage:
        """Return one page of the executions that the caller may see, see `pages.executions_page`."""
        return await executions_page(self.app, sees=self._sees, before=before, oldest_first=oldest_first, **filters)

    @verb("viewer", "list executions", audit=False)
    async def last_of(self, workflow: str) -> ExecutionEntry | None:
        """Return the execution of a workflow that started last, of those that the caller may see."""
        page = await executions_page(self.app, sees=self._sees, workflow=workflow, limit=1)
        return page["executions"][0] if page["executions"] else None

    @verb("viewer", "search executions", audit=False)
    async def search(self, words: str, **filters: Unpack[ExecutionFilters]) -> ExecutionPage:
        """Return the executions whose inputs, outputs or errors contain all these words, see
        `lists.found_executions`."""
        return {"executions": await found_executions(self.app, words, sees=self._sees, **filters), "next": None}

    @verb("viewer", "see executions", audit=False)
    async def relations(self, execution: str) -> Relations:
        """Return what called an execution, what it called, and its forks, as far as the caller may see them."""
        await must_see(self.app, self.caller, execution)
        return await relations_of(self.app, execution, sees=self._sees)

    @verb("operator", "cancel executions", target=("execution", "by"))
    async def cancel(self, execution: str, *, reason: str = "", now: bool = False, by: str | None = None) -> Execution:
        """Cancel an execution and its sub-workflows for good. A second call has no effect.

        Compensation runs first, in this process; `now`: skip it, or what is left of it. `by`: see `Verbs.name_for`.
        """
        await must_control(self.app, self.caller, execution)
        reached = await reach_execution(self.app, execution)
        await reached.cancel(reason=reason, by=self.name_for(by), now=now)
        return reached
