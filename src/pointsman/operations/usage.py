"""Usage and budgets: the part of usage that a caller may see, tables as CSV, and budgets: the limit of each saved
workflow, its origin, and how close its executions came to it.

    the latest revision, and [limits] of the operator ─▶ the budget of one execution
    usage of executions in the store's list           ─▶ the highest; how many came near, and how many reached it

A budget applies to one execution: the next one starts at zero. The usage of sub-workflows is included. The store adds
up; no journal is read. For callers who do not see everything, executions are grouped by what decides their visibility,
and each group is checked once.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeGuard

from typing_extensions import TypedDict

from pointsman.auth.policy import sees, visible
from pointsman.auth.subjects import UnknownWorkflow
from pointsman.context import AppContext
from pointsman.definition.problems import did_you_mean
from pointsman.engine.compile.control import capped, limits_of
from pointsman.engine.plan import PlanLimits
from pointsman.errors import AuthorError, CallerError
from pointsman.executions.usage_rollup import DIMENSIONS, Dimension, UsageAudience, check_day
from pointsman.store.records import Measure, Spenders, SpendingQuery, Summary
from pointsman.values import ExecutionId, Instant, WorkflowId
from pointsman.workflows.library import LIBRARY, read_saved_beside
from pointsman.workflows.revisions import list_workflows

if TYPE_CHECKING:
    from pointsman.auth.callers import Caller


DAY_S: Final = 86_400.0
MEASURES: Final[tuple[Measure, ...]] = ("tokens", "modelCalls", "toolCalls", "costUsd")


class BudgetRow(TypedDict):
    """The budget of one execution of a workflow, and how close its executions came to it."""

    workflow: str
    measure: Measure
    most: float
    setBy: Literal["workflow", "operator"]
    policy: Literal["warn", "pause", "stop"]
    """What happens when the budget is used up."""
    warnAt: float
    """The share of the budget at which a warning is due."""
    executions: int
    """Executions that ended in this time, and executions that have not ended."""
    near: int
    """How many of them came near the budget."""
    over: int
    """How many of them used it up."""
    highest: float
    """The highest usage of one of them, with its sub-workflows."""
    left: float
    """What the most expensive one left of the budget."""
    dearest: str | None
    """The most expensive execution."""


class BudgetReport(TypedDict):
    """Budgets, the closest to its limit first."""

    budgets: list[BudgetRow]


class Budgets:
    """Budget report of one period, for one caller."""

    def __init__(self, app: AppContext, *, since: str = "", until: str = "", sees: UsageAudience | None = None) -> None:
        """`since` and `until` are days in UTC, both inclusive. They bound the end of ended executions; executions that
        have not ended always count. Raises `PeriodInvalid`."""
        for day in (since, until):
            check_day(day)
        self._app = app
        self._since = _begin_of(since) if since else None
        self._until = Instant(_begin_of(until) + DAY_S) if until else None
        self._sees = sees
        self._seen: dict[tuple[str, int, str, str | None, str | None], bool] = {}

    async def rows(self) -> list[BudgetRow]:
        """Return a row for each workflow and budget, the closest to its limit first."""
        rows: list[BudgetRow] = []
        for entry in await list_workflows(self._app, include_disabled=True, built_in=False):
            name, revision = entry["id"], entry["revision"]
            if self._sees is None or await self._sees.workflow(name, revision):
                limits = await _limits(self._app, name)
                rows += (
                    [] if limits is None else [await self._row(name, limits, *amount) for amount in _amounts(limits)]
                )
        return sorted(rows, key=lambda row: (-_part(row), row["workflow"], row["measure"]))

    async def _row(self, workflow: str, limits: PlanLimits, measure: Measure, most: float) -> BudgetRow:
        spenders = await self._spenders(workflow, measure, near=most * limits.budget_warn_at, most=most)
        dearest = max(spenders, key=lambda one: one.highest, default=None)
        highest = 0.0 if dearest is None else dearest.highest
        return {
            "workflow": workflow,
            "measure": measure,
            "most": most,
            "setBy": "operator" if limits.sources.get(measure) == "operator" else "workflow",
            "policy": limits.budget_policy,
            "warnAt": limits.budget_warn_at,
            "executions": sum(spender.executions for spender in spenders),
            "near": sum(spender.near for spender in spenders),
            "over": sum(spender.over for spender in spenders),
            "highest": highest,
            "left": max(0.0, most - highest),
            "dearest": dearest.dearest if dearest is not None and highest > 0 else None,
        }

    async def _spenders(self, workflow: str, measure: Measure, *, near: float, most: float) -> list[Spenders]:
        query = SpendingQuery(
            workflow=WorkflowId(workflow),
            measure=measure,
            near=near,
            most=most,
            since=self._since,
            until=self._until,
            apart=self._sees is not None,
        )
        rows = await self._app.store.executions.spending(query)
        return [row for row in rows if self._sees is None or await self._is_seen(self._sees, workflow, row)]

    async def _is_seen(self, sees: UsageAudience, workflow: str, some: Spenders) -> bool:
        group = (workflow, some.revision, some.owner, some.session, some.parent)
        if group not in self._seen:
            self._seen[group] = await sees.listed(
                Summary(
                    execution=some.dearest,
                    workflow=WorkflowId(workflow),
                    revision=some.revision,
                    status="",
                    started=Instant(0),
                    updated=Instant(0),
                    parent=some.parent,
                    session=some.session,
                    owner=some.owner,
                )
            )
        return self._seen[group]


async def budgets(
    app: AppContext, *, since: str = "", until: str = "", sees: UsageAudience | None = None
) -> list[BudgetRow]:
    """Return the rows of a `Budgets` report."""
    return await Budgets(app, since=since, until=until, sees=sees).rows()


def _begin_of(day: str) -> Instant:
    return Instant(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())


async def _limits(app: AppContext, name: str) -> PlanLimits | None:
    """Return the limits of a workflow; None if the saved document cannot be read, so that it cannot run either."""
    with suppress(AuthorError):
        workflow = await read_saved_beside(await app[LIBRARY].current(name))
        operator = app.settings.limits
        return limits_of(capped(workflow, operator), workflow, operator)
    return None


def _amounts(limits: PlanLimits) -> Iterator[tuple[Measure, float]]:
    most = dict(limits.budgets)
    for measure in MEASURES:
        if measure in most:
            yield measure, most[measure]


def _part(row: BudgetRow) -> float:
    return row["highest"] / row["most"] if row["most"] > 0 else float(row["highest"] > 0)


class UsageUnknown(CallerError):
    """Usage was requested by an unknown dimension."""

    code: ClassVar[str] = "usage-unknown"


def narrowed(of: Iterable[str]) -> dict[Dimension, str]:
    """Parse filters such as `model:gpt-5`. Raises `UsageUnknown`."""
    result: dict[Dimension, str] = {}
    for one in of:
        name, colon, value = one.partition(":")
        if not colon or not _is_dimension(name):
            near = did_you_mean(name, DIMENSIONS)
            hint = f"{near} Write it as model:gpt-5; dimensions: {', '.join(DIMENSIONS)}.".strip()
            raise UsageUnknown(f"usage has no dimension {one[:80]!r}", hint=hint)
        result[name] = value
    return result


def _is_dimension(name: str) -> TypeGuard[Dimension]:
    return name in DIMENSIONS


def usage_audience(app: AppContext, caller: Caller) -> UsageAudience | None:
    """Return the part of usage that a caller may see; None: everything. Single executions are included if they still
    exist and are listed for the caller."""
    if caller.role == "admin":
        return None

    async def workflow(name: str, revision: int) -> bool:
        try:
            return revision > 0 and await visible(app, caller, f"{name}@{revision}")
        except UnknownWorkflow:
            return False

    async def execution(name: str) -> bool:
        summary = await app.store.executions.find(ExecutionId(name))
        return summary is not None and await listed(summary)

    async def listed(summary: Summary) -> bool:
        return await sees(app, caller, summary)

    return UsageAudience(workflow, execution, listed)


FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")


def csv_of(rows: Sequence[Mapping[str, object]]) -> str:
    """Return the rows as CSV with a header; lines end as in RFC 4180. Texts that a spreadsheet would evaluate as
    formulas are escaped with an apostrophe."""
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(rows[0])
    writer.writerows([_cell(value) for value in row.values()] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value
