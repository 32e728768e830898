"""Evaluation runs: one execution that runs a workflow for each case of a dataset, and scores the outputs.

    cases ─ parallel ─▶ run (sub-workflow) ─▶ scorers ─▶ row ─▶ join
                          └─ error ───────────────────────▲

A run is an execution like any other: durable, resumable, with a budget, and its cases are child executions with
journals of their own. Judges are agents, and people score in the inbox.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec
from msgspec import Struct
from typing_extensions import TypedDict

from pointsman.auth.callers import Caller
from pointsman.context import AppContext
from pointsman.engine.state import status_of
from pointsman.evaluations.datasets import DatasetCase
from pointsman.evaluations.scorers import CASE, OF_CASE, Scorer, fits, marks_of, node_of
from pointsman.executions.children import waits_of
from pointsman.executions.execution import Execution
from pointsman.executions.opening import new_id
from pointsman.executions.start import start, take_start
from pointsman.executions.views import ExecutionStatus
from pointsman.values import ExecutionId, Json, JsonObject
from pointsman.workflows.library import LIBRARY
from pointsman.workflows.sources import Workflow

RUN: Final = "evaluation"
"""Kind of entry; its key is the execution. Also the kind of the trigger."""
PREFIX: Final = "evaluation-"
"""Begins the id of the workflow of a run; the id of the evaluated workflow follows."""
PARALLEL: Final = 5


class Run(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an evaluation run was started with."""

    execution: str
    workflow: str
    revision: int
    dataset: str = ""
    """Empty: the cases were given with the start."""
    scorers: tuple[Scorer, ...]
    count: int
    model: str = ""
    by: str = ""
    at: float


class RunLimits(Struct, frozen=True, kw_only=True):
    """Limits of a run."""

    parallel: int = PARALLEL
    """Cases at once."""
    cost_usd: float | None = None
    """Budget of the run with all its cases; then it is interrupted, and can be resumed with a higher one."""


class ScoredCase(TypedDict):
    """The result of one case."""

    case: str
    input: JsonObject
    expected: Json
    output: Json
    error: str | None
    """Error code if the workflow or a scorer failed; its scores are 0 then."""
    scores: dict[str, float]
    reasons: dict[str, str]
    """The reasons of judges and people, by scorer."""


class RunView(TypedDict):
    """An evaluation run with its scores."""

    executionId: str
    workflow: str
    revision: int
    dataset: str
    scorers: list[JsonObject]
    model: str
    by: str
    at: float
    status: ExecutionStatus
    count: int
    failed: int
    """Cases that failed."""
    scores: dict[str, float]
    """Mean by scorer; empty until the run has completed."""


class RunDetail(RunView):
    """An evaluation run with the result of each case."""

    cases: list[ScoredCase]


def document_of(run: Run, cases: Sequence[DatasetCase], limits: RunLimits) -> JsonObject:
    """Return the workflow of a run."""
    fields = sorted({key for case in cases for key in case.input})
    given: JsonObject = {key: f"{CASE}.input[{msgspec.json.encode(key).decode()}]" for key in fields}
    scoring = [node for scorer in run.scorers if (node := node_of(scorer)) is not None]
    marks = ", ".join(f"{one.name}: {marks_of(one)}" for one in run.scorers if one.kind != "match")
    nodes: list[Json] = [
        {
            "id": "cases",
            "type": "parallel",
            "config": {"items": "cases", "as": "entry", "maxParallel": limits.parallel, "onBranchError": "continue"},
        },
        {
            "id": "run",
            "type": "workflow",
            "config": {"workflow": f"{run.workflow}@{run.revision}", "input": given},
            "outputs": {f"results.{OF_CASE}": "result"},
        },
        *scoring,
        {"id": "ends", "type": "join", "config": {"aggregate": "object"}, "outputs": {"ends": "result"}},
    ]
    chain = ["cases", "run", *(str(node["id"]) for node in scoring), "ends"]
    document: JsonObject = {
        "pointsman": 1,
        "id": f"{PREFIX}{run.workflow}",
        "name": f"Evaluation of {run.workflow}",
        "input": {"type": "object", "required": ["cases"], "properties": {"cases": {"type": "object"}}},
        "output": {"results": "results", "marks": f"{{{marks}}}", "ends": "ends"},
        "nodes": nodes,
        "edges": [{"source": source, "target": target} for source, target in pairwise(chain)],
    }
    if limits.cost_usd is not None:
        document["config"] = {"limits": {"costUsd": limits.cost_usd}, "budget": {"policy": "stop"}}
    return document


async def start_run(
    app: AppContext,
    caller: Caller,
    workflow: str,
    cases: Sequence[DatasetCase],
    scorers: tuple[Scorer, ...],
    *,
    dataset: str = "",
    model: str | None = None,
    limits: RunLimits,
) -> Execution:
    """Start a run of the latest or the named revision of a saved workflow. The caller must be allowed to see it."""
    found = await app[LIBRARY].startable(workflow)
    run = Run(
        execution=new_id("exec-"),
        workflow=found.draft.id,
        revision=found.revision,
        dataset=dataset,
        scorers=scorers,
        count=len(cases),
        model=model or "",
        by=caller.name,
        at=app.clock.now(),
    )
    source = Workflow.of(document_of(run, cases, limits), name=f"{PREFIX}{run.workflow}")
    take_start(app, caller)
    execution = await start(
        app,
        source,
        {"cases": {f"case-{number}": msgspec.to_builtins(case) for number, case in enumerate(cases, start=1)}},
        execution=ExecutionId(run.execution),
        trigger={"kind": RUN, "id": dataset, "by": caller.name},
        by=caller.name,
        caller=caller,
        model=model,
    )
    await app.store.entries.put(RUN, run.execution, msgspec.to_builtins(run))
    return execution


async def find_run(app: AppContext, execution: str) -> Run | None:
    """Return what a run was started with; None: the execution is not an evaluation run."""
    entry = await app.store.entries.find(RUN, execution)
    return None if entry is None else msgspec.convert(entry.value, Run)


async def list_runs(app: AppContext) -> list[Run]:
    """Return all runs, newest first."""
    runs = [msgspec.convert(entry.value, Run) for entry in await app.store.entries.list(RUN)]
    return sorted(runs, key=lambda one: one.at, reverse=True)


async def run_detail(app: AppContext, run: Run) -> RunDetail:
    """Return a run with its results; before its end without cases."""
    state = await app.runtime.load(ExecutionId(run.execution))
    status = status_of(state)
    if status == "running" and (await waits_of(app.runtime, state)).still:
        status = "waiting"
    given, output = _members(state.setup.input.get("cases")), _members(state.outcome.output)
    cases = [_case_result(run.scorers, key, _members(case), output) for key, case in given.items() if output]
    return {
        "executionId": run.execution,
        "workflow": run.workflow,
        "revision": run.revision,
        "dataset": run.dataset,
        "scorers": [msgspec.to_builtins(one) for one in run.scorers],
        "model": run.model,
        "by": run.by,
        "at": run.at,
        "status": status,
        "count": run.count,
        "failed": sum(case["error"] is not None for case in cases),
        "scores": means_of(run.scorers, cases),
        "cases": cases,
    }


def _members(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _case_result(scorers: Sequence[Scorer], key: str, case: JsonObject, output: JsonObject) -> ScoredCase:
    found, marks = _members(output["results"]).get(key), _members(output["marks"])
    error = _members(_members(output["ends"]).get(key)).get("error")
    failure = _members(error).get("code")
    scores, reasons = dict[str, float](), dict[str, str]()
    for one in scorers:
        mark = _members(marks.get(one.name)).get(key)
        value = mark.get("score") if isinstance(mark, dict) else mark
        if one.kind == "match":
            value = failure is None and fits(case.get("expected"), found)
        scores[one.name] = float(value) if isinstance(value, int | float) else 0.0
        if isinstance(reason := _members(mark).get("reason"), str):
            reasons[one.name] = reason
    return {
        "case": key,
        "input": _members(case.get("input")),
        "expected": case.get("expected"),
        "output": found,
        "error": None if failure is None else str(failure),
        "scores": scores,
        "reasons": reasons,
    }


def means_of(scorers: Sequence[Scorer], cases: Sequence[ScoredCase]) -> dict[str, float]:
    """Return the mean of each scorer over all cases; empty without cases."""
    return {one.name: sum(case["scores"][one.name] for case in cases) / len(cases) for one in scorers if cases}
