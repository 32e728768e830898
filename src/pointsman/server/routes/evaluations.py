"""Operations on evaluations: datasets, and runs of a workflow over their cases."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from fastapi import Path, Query, Response
from pydantic import Field

from pointsman.evaluations.datasets import CASES_MAX, DatasetCase, read_cases
from pointsman.evaluations.runs import PARALLEL, RunDetail, RunLimits, RunView
from pointsman.evaluations.scorers import Scorer
from pointsman.evaluations.verbs import DatasetDetail, DatasetList, DatasetView, EvaluationVerbs, RunList
from pointsman.executions.views import StartedExecution
from pointsman.server.context import CallerSession
from pointsman.server.operation import Operations
from pointsman.server.problems import JsonReply
from pointsman.server.routes.executions import started
from pointsman.server.routes.parameters import Eid, IfMatch, Match
from pointsman.server.schemas.answers import answers, example, refusals
from pointsman.server.schemas.requests import Body, JsonValue, sample

router = Operations(prefix="/api", tags=["evaluations"])

Name = Annotated[str, Path(min_length=1, max_length=100, description="The dataset's id.")]
DATASET: Final[DatasetView] = {
    "id": "tickets",
    "name": "tickets",
    "workflow": "triage-support",
    "scorers": [{"name": "kind", "kind": "match"}],
    "count": 2,
    "by": "ada",
    "at": 1_763_700_000.0,
    "etag": '"0b1f6c0ad1e2c3d4"',
}
RUN: Final[RunView] = {
    "executionId": "exec-06gq8r4v2c8m6c6r5a2j6h1t10",
    "workflow": "triage-support",
    "revision": 3,
    "dataset": "tickets",
    "scorers": [{"name": "kind", "kind": "match"}],
    "model": "",
    "by": "ada",
    "at": 1_763_700_000.0,
    "status": "completed",
    "count": 1,
    "failed": 0,
    "scores": {"kind": 1.0},
}
example(DatasetView, DATASET)
example(DatasetList, {"datasets": [DATASET]})
example(DatasetDetail, {**DATASET, "cases": [{"input": {"request": "Hi?"}, "expected": {"kind": "question"}}]})
example(RunList, {"runs": [RUN]})
example(
    RunDetail,
    {
        **RUN,
        "cases": [
            {
                "case": "case-1",
                "input": {"request": "Hi?"},
                "expected": {"kind": "question"},
                "output": {"kind": "question"},
                "error": None,
                "scores": {"kind": 1.0},
                "reasons": {},
            }
        ],
    },
)


class ScorerBody(Body):
    """One score of each case."""

    name: str = Field(min_length=1, max_length=40, description="Lower-case letters, digits and `_`.")
    kind: Literal["match", "expression", "judge", "human"]
    text: str = Field(default="", max_length=10_000, description="Expression, rubric, or question to the person.")
    model: str = Field(default="", max_length=200, description="Model of the judge; empty: the default model.")


class CaseBody(Body):
    """One input of a workflow, and the output that is expected."""

    input: dict[str, JsonValue]
    expected: JsonValue = None


class DatasetBody(Body):
    """A dataset: its cases as a list, or as the text of a file."""

    model_config = sample(
        workflow="triage-support",
        scorers=[{"name": "kind", "kind": "match"}],
        cases=[{"input": {"request": "Hi?"}, "expected": {"kind": "question"}}],
    )
    workflow: str = Field(min_length=1, max_length=200, description="Id of the workflow that the cases are for.")
    name: str = Field(default="", max_length=200, description="Name to show; empty: the id.")
    scorers: list[ScorerBody] = Field(default_factory=list[ScorerBody], max_length=20)
    cases: list[CaseBody] = Field(default_factory=list[CaseBody], max_length=CASES_MAX)
    text: str = Field(default="", description="Cases as CSV or JSON lines, added to `cases`.")
    format: Literal["csv", "jsonl"] = Field(default="jsonl", description="Format of `text`.")


class AddCaseBody(Body):
    """An execution that becomes a case."""

    model_config = sample(executionId="exec-1")
    execution_id: str = Field(min_length=1, max_length=100, description="Its output is the expected one.")


class EvaluationRunBody(Body):
    """A start of an evaluation run."""

    model_config = sample(workflow="triage-support@3", parallel=5)
    workflow: str | None = Field(
        default=None, min_length=1, max_length=300, description="`id` or `id@revision`; absent: that of the dataset."
    )
    scorers: list[ScorerBody] = Field(
        default_factory=list[ScorerBody], max_length=20, description="Instead of those of the dataset; takes an editor."
    )
    model: str | None = Field(default=None, min_length=1, max_length=200, description="The model of all agents.")
    parallel: int = Field(default=PARALLEL, ge=1, le=100, description="Cases at once.")
    budget_usd: float | None = Field(default=None, ge=0, description="Interrupt the run at this cost.")


def _scorers(bodies: list[ScorerBody]) -> tuple[Scorer, ...]:
    return tuple(Scorer(name=one.name, kind=one.kind, text=one.text, model=one.model) for one in bodies)


@router.get("/datasets", verb=EvaluationVerbs.datasets, responses=answers(DatasetList), summary="List datasets")
async def datasets(
    session: CallerSession,
    workflow: Annotated[str | None, Query(max_length=300, description="Only datasets of this workflow.")] = None,
) -> Response:
    """The datasets of the workflows that the caller may see, without their cases."""
    return JsonReply(await session.evaluations.datasets(workflow))


@router.get(
    "/datasets/{name}",
    verb=EvaluationVerbs.dataset,
    responses=answers(DatasetDetail, "unknown-dataset"),
    summary="Read a dataset",
)
async def dataset(session: CallerSession, name: Name) -> Response:
    """A dataset with all its cases."""
    found = await session.evaluations.dataset(name)
    return JsonReply(found, headers={"etag": found["etag"]})


@router.put(
    "/datasets/{name}",
    verb=EvaluationVerbs.save_dataset,
    responses=answers(
        DatasetView, "unknown-workflow", "dataset-invalid", "scorer-invalid", "revision-moved", body=True
    ),
    summary="Save a dataset",
)
async def save(session: CallerSession, name: Name, body: DatasetBody, match: Match = None) -> Response:
    """Add a dataset, or replace one with this id."""
    cases = [DatasetCase(one.input, one.expected) for one in body.cases]
    cases += read_cases(body.text, name=f"cases.{body.format}") if body.text.strip() else []
    verbs = session.evaluations
    saved = await verbs.save_dataset(
        name, body.workflow, cases, title=body.name, scorers=_scorers(body.scorers), match=match
    )
    return JsonReply(saved, headers={"etag": saved["etag"]})


@router.delete(
    "/datasets/{name}",
    verb=EvaluationVerbs.delete_dataset,
    status_code=204,
    responses=refusals("unknown-dataset", "revision-moved"),
    summary="Delete a dataset",
)
async def delete(session: CallerSession, name: Name, if_match: IfMatch = None) -> Response:
    """Delete a dataset with its cases. Its runs stay."""
    await session.evaluations.delete_dataset(name, match=if_match)
    return Response(status_code=204)


@router.post(
    "/datasets/{name}/cases",
    verb=EvaluationVerbs.add_case,
    responses=answers(DatasetView, "unknown-dataset", "unknown-execution", body=True),
    summary="Add a case",
)
async def add(session: CallerSession, name: Name, body: AddCaseBody) -> Response:
    """Append the input of an execution as a case that expects its output."""
    return JsonReply(await session.evaluations.add_case(name, body.execution_id))


@router.post(
    "/datasets/{name}/evaluate",
    verb=EvaluationVerbs.start,
    responses=answers(
        StartedExecution,
        "unknown-dataset",
        "unknown-workflow",
        "scorer-invalid",
        "model-override",
        status=202,
        body=True,
    ),
    status_code=202,
    summary="Evaluate a workflow",
)
async def evaluate(session: CallerSession, name: Name, body: EvaluationRunBody) -> Response:
    """Start a run over all cases of a dataset. The run is an execution with a child execution for each case."""
    execution = await session.evaluations.start(
        name,
        workflow=body.workflow,
        scorers=_scorers(body.scorers),
        model=body.model,
        limits=RunLimits(parallel=body.parallel, cost_usd=body.budget_usd),
    )
    return await started(session, execution, wait=False)


@router.get("/evaluations", verb=EvaluationVerbs.runs, responses=answers(RunList), summary="List evaluation runs")
async def runs(
    session: CallerSession,
    dataset: Annotated[str | None, Query(max_length=100, description="Only runs over this dataset.")] = None,
) -> Response:
    """The latest evaluation runs, newest first, with the mean of each score."""
    return JsonReply(await session.evaluations.runs(dataset))


@router.get(
    "/evaluations/{eid}",
    verb=EvaluationVerbs.run,
    responses=answers(RunDetail, "unknown-evaluation", "unknown-execution"),
    summary="Read an evaluation run",
)
async def run(session: CallerSession, eid: Eid) -> Response:
    """A run with the scores of each case; they are there when the run has completed."""
    return JsonReply(await session.evaluations.run(eid))
