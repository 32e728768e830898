"""Partial runs of workflows, with mocks for the other steps; also of unsaved drafts."""

from __future__ import annotations

from typing import Final

from fastapi import Response
from pydantic import Field

from pointsman.authoring.operations import read_operations
from pointsman.authoring.verbs import AuthoringVerbs
from pointsman.executions.dry_run import DryRun, dry_view
from pointsman.executions.partial_runs import trial_of
from pointsman.server.context import CallerSession
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.executions import started
from pointsman.server.routes.parameters import Id
from pointsman.server.routes.response_docs import answers
from pointsman.server.schemas.requests import Body, JsonValue, sample
from pointsman.server.schemas.responses import DryRunAnswer, Started

router = Operations(prefix="/api/workflows", tags=["workflows"])

NODES_MAX: Final = 2000
STEPS_MAX: Final = 10_000


class TrialBody(Body):
    """What is tried, and how."""

    model_config = sample(input={"goal": "tides"}, pinned={"write": {"text": "Dear all, …"}}, until=["review"])
    operations: list[JsonValue] | None = Field(
        default=None, max_length=2000, description="Changes that are not saved: what runs is the workflow with them."
    )
    document: JsonValue = Field(default=None, description="Instead of the saved one: a whole document, of the same id.")
    input: JsonValue = Field(default=None, description="What the workflow's `input` schema takes; of `node` the data.")
    pinned: dict[str, JsonValue] = Field(
        default_factory=dict,
        max_length=STEPS_MAX,
        description="Node, or one step of it (`each[1.0]/draft#1`) -> what it brings, without being performed.",
    )
    until: list[str] = Field(
        default_factory=list[str], max_length=NODES_MAX, description="Only what leads to these nodes is performed."
    )
    breakpoints: list[str] = Field(
        default_factory=list[str], max_length=NODES_MAX, description="It pauses before these nodes."
    )
    node: str | None = Field(default=None, max_length=300, description="Only this node, with `input` as the data.")
    given: JsonValue = Field(default=None, description="The value that reaches `node`.")
    model: str | None = Field(default=None, min_length=1, max_length=200, description="Answers all its agents.")
    dry_run: bool = Field(default=False, description="Only estimate: nothing is called or kept.")


@router.post(
    "/{id}/try",
    verb=AuthoringVerbs.try_workflow,
    responses=answers(DryRunAnswer)
    | answers(
        Started,
        "unknown-workflow",
        "input-invalid",
        "workflow-invalid",
        "workflow-disabled",
        "operation-refused",
        "trial-unfit",
        "model-fixed",
        503,
        status=202,
        body=True,
    ),
    status_code=202,
    summary="Try a workflow",
)
async def try_(session: CallerSession, id: Id, body: TrialBody) -> Response:
    """A trial is an execution like any other and is streamed like any other. Lists omit it unless trials are requested.

    With `dryRun` the answer is the path that it would take, past its breakpoints, and its estimated cost.
    """
    trial = trial_of(
        pinned=body.pinned, until=body.until, breakpoints=body.breakpoints, node=body.node, given=body.given
    )
    found = await session.authoring.try_workflow(
        id,
        body.input,
        trial,
        operations=read_operations(body.operations) if body.operations else (),
        document=body.document,
        model=body.model,
        dry_run=body.dry_run,
    )
    if isinstance(found, DryRun):
        return JsonReply(dry_view(found))
    return await started(session, found, wait=False)
