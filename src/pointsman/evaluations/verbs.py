"""Verbs of evaluations. A dataset and its runs are seen by those who see the workflow that it is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import msgspec
from typing_extensions import TypedDict

from pointsman.auth.policy import must_see, must_see_workflow, sees_workflow
from pointsman.auth.verbs import Verbs, verb
from pointsman.errors import CallerError
from pointsman.evaluations.datasets import (
    Dataset,
    DatasetCase,
    UnknownDataset,
    add_case,
    cases_of,
    delete_dataset,
    find_dataset,
    list_datasets,
    save_dataset,
)
from pointsman.evaluations.runs import RunDetail, RunLimits, RunView, find_run, list_runs, run_detail, start_run
from pointsman.evaluations.scorers import Scorer, check_scorers
from pointsman.executions.execution import Execution
from pointsman.values import ExecutionId, JsonObject, WorkflowId

RUNS_MAX: Final = 50
"""At most this many runs are listed, the newest."""


class UnknownEvaluation(CallerError):
    """The execution is not an evaluation run that the caller may see."""

    code: ClassVar[str] = "unknown-evaluation"


class DatasetView(TypedDict):
    """A dataset without its cases."""

    id: str
    name: str
    workflow: str
    scorers: list[JsonObject]
    count: int
    by: str
    at: float
    etag: str
    """ETag of the present version, for `If-Match`."""


class DatasetList(TypedDict):
    """Datasets by id."""

    datasets: list[DatasetView]


class DatasetDetail(DatasetView):
    """A dataset with its cases."""

    cases: list[JsonObject]


class RunList(TypedDict):
    """Evaluation runs, newest first."""

    runs: list[RunView]


def dataset_view(one: Dataset) -> DatasetView:
    return {
        "id": one.id,
        "name": one.name,
        "workflow": one.workflow,
        "scorers": [msgspec.to_builtins(scorer) for scorer in one.scorers],
        "count": one.count,
        "by": one.by,
        "at": one.at,
        "etag": one.etag,
    }


def _run_id(execution: Execution) -> Mapping[str, object]:
    return {"execution": execution.id}


class EvaluationVerbs(Verbs):
    """Actions of a caller on datasets and evaluation runs."""

    @verb("viewer", "see datasets", audit=False)
    async def datasets(self, workflow: str | None = None) -> DatasetList:
        """Return the datasets of the workflows that the caller may see, or of one workflow."""
        found = [
            dataset_view(one)
            for one in await list_datasets(self.app)
            if workflow in (None, one.workflow) and await sees_workflow(self.app, self.caller, one.workflow)
        ]
        return {"datasets": found}

    @verb("viewer", "see datasets", audit=False)
    async def dataset(self, name: str) -> DatasetDetail:
        """Return a dataset with its cases. Raises `UnknownDataset`."""
        found = await self._dataset(name)
        return {**dataset_view(found), "cases": msgspec.to_builtins(await cases_of(self.app, name))}

    @verb("editor", "write datasets", target=("name", "workflow"))
    async def save_dataset(
        self,
        name: str,
        workflow: str,
        cases: Sequence[DatasetCase],
        *,
        title: str = "",
        scorers: tuple[Scorer, ...] = (),
        match: str | None = None,
    ) -> DatasetView:
        """Add or replace a dataset for a workflow. `match`: see `etags.match_etag`.

        Raises `UnknownWorkflow`, `DatasetInvalid`, `ScorerInvalid`, `RevisionMoved`, and `UnknownDataset` for one that
        belongs to a workflow which the caller may not see.
        """
        await must_see_workflow(self.app, self.caller, workflow)
        if scorers:
            check_scorers(scorers)
        if await find_dataset(self.app, name) is not None:
            await self._dataset(name)
        dataset = Dataset(
            id=name, name=title or name, workflow=WorkflowId(workflow), scorers=scorers, by=self.caller.name
        )
        return dataset_view(await save_dataset(self.app, dataset, cases, match=match))

    @verb("editor", "write datasets", target=("name", "execution"))
    async def add_case(self, name: str, execution: str) -> DatasetView:
        """Append the input of an execution as a case that expects its output. Raises `UnknownDataset`,
        `UnknownExecution`."""
        dataset = await self._dataset(name)
        await must_see(self.app, self.caller, execution)
        state = await self.app.runtime.load(ExecutionId(execution))
        case = DatasetCase(state.setup.input, state.outcome.output, execution)
        return dataset_view(await add_case(self.app, dataset, case))

    @verb("editor", "write datasets", target=("name",))
    async def delete_dataset(self, name: str, *, match: str | None = None) -> None:
        """Delete a dataset; its runs stay. Raises `UnknownDataset`, `RevisionMoved`."""
        await self._dataset(name)
        await delete_dataset(self.app, name, match=match)

    @verb("operator", "run workflows", target=("name", "workflow"), made=_run_id)
    async def start(
        self,
        name: str,
        *,
        workflow: str | None = None,
        scorers: tuple[Scorer, ...] = (),
        model: str | None = None,
        limits: RunLimits | None = None,
    ) -> Execution:
        """Start a run over a dataset, which belongs to the caller.

        `workflow`: another revision or workflow than that of the dataset. `scorers`: instead of those of the dataset;
        this takes an editor, because judges are prompts. Raises `UnknownDataset`, `UnknownWorkflow`, `ScorerInvalid`.
        """
        dataset = await self._dataset(name)
        if scorers:
            self.caller.must_have("editor", "choose scorers")
        chosen = scorers or dataset.scorers
        check_scorers(chosen)
        reference = workflow or dataset.workflow
        await must_see_workflow(self.app, self.caller, reference)
        cases = await cases_of(self.app, name)
        return await start_run(
            self.app,
            self.caller,
            reference,
            cases,
            chosen,
            dataset=name,
            model=model,
            limits=limits or RunLimits(),
        )

    @verb("viewer", "see evaluations", audit=False)
    async def runs(self, dataset: str | None = None) -> RunList:
        """Return the latest runs of the workflows that the caller may see, or of one dataset, newest first."""
        found: list[RunView] = []
        for one in await list_runs(self.app):
            if dataset not in (None, one.dataset) or not await sees_workflow(self.app, self.caller, one.workflow):
                continue
            if await self.app.store.executions.find(ExecutionId(one.execution)) is None:
                continue  # It was deleted.
            detail = await run_detail(self.app, one)
            found.append({key: value for key, value in detail.items() if key != "cases"})  # pyright: ignore[reportArgumentType] - the view without its cases
            if len(found) == RUNS_MAX:
                break
        return {"runs": found}

    @verb("viewer", "see evaluations", audit=False)
    async def run(self, execution: str) -> RunDetail:
        """Return a run with the result of each case. Raises `UnknownEvaluation`, `UnknownExecution`."""
        found = await find_run(self.app, execution)
        if found is None or not await sees_workflow(self.app, self.caller, found.workflow):
            raise UnknownEvaluation(f"{execution!r} is not an evaluation run", hint="`pointsman eval` starts one.")
        await must_see(self.app, self.caller, execution)
        return await run_detail(self.app, found)

    async def _dataset(self, name: str) -> Dataset:
        found = await find_dataset(self.app, name)
        if found is None or not await sees_workflow(self.app, self.caller, found.workflow):
            raise UnknownDataset(f"there is no dataset {name!r}", hint="`pointsman datasets list` lists them.")
        return found
