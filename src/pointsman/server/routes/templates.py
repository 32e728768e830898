"""Operations on templates: list, read, try and use shipped workflows."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Path, Response
from pydantic import Field

from pointsman.authoring.templates import TemplateDetail, TemplateList, TemplateVerbs, TemplateView
from pointsman.executions.dry_run import DryRunView, dry_view
from pointsman.server.context import CallerSession
from pointsman.server.operation import Operations
from pointsman.server.problems import JsonReply
from pointsman.server.schemas.answers import answers, example
from pointsman.server.schemas.requests import WORKFLOW_ID_PATTERN, Body, JsonValue, sample
from pointsman.workflows.revisions import SavedRevision

router = Operations(prefix="/api/templates", tags=["templates"])

Name = Annotated[str, Path(min_length=1, max_length=100, description="The template's id.")]
TEMPLATE: Final[TemplateView] = {
    "id": "sequential",
    "name": {"en": "One agent after another", "de": "Ein Agent nach dem anderen"},
    "description": {"en": "Each agent works on the result of the one before."},
    "tags": ["agents"],
    "needs": [],
    "page": None,
    "entry": "draft",
    "nodes": [{"id": "draft", "type": "agent", "name": None}, {"id": "polish", "type": "agent", "name": None}],
    "edges": [{"source": "draft", "target": "polish"}],
    "graph": {"regions": [], "implied": []},
}
example(TemplateList, {"templates": [TEMPLATE]})
example(
    TemplateDetail,
    {
        **TEMPLATE,
        "text": "pointsman: 1\nid: sequential\n",
        "script": "rules: [{node: draft, text: Tides.}]\n",
        "input": {"topic": "tides"},
        "inputSchema": {"type": "object", "properties": {"topic": {"type": "string"}}},
    },
)


class TryTemplateBody(Body):
    """The input of a trial."""

    model_config = sample(input={"topic": "tides"})
    input: JsonValue = Field(default=None, description="Absent: the sample input of the template.")


class UseTemplateBody(Body):
    """The copy of a template."""

    model_config = sample(id="my-research")
    id: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Id of the copy. Absent: the template's, with a number if it is taken.",
        json_schema_extra={"pattern": WORKFLOW_ID_PATTERN},
    )


@router.get("", verb=TemplateVerbs.list, responses=answers(TemplateList), summary="List templates")
async def list_(session: CallerSession) -> Response:
    """Shipped workflows to start from, with their graphs, in the order of the gallery."""
    return JsonReply(await session.templates.list())


@router.get(
    "/{name}",
    verb=TemplateVerbs.read,
    responses=answers(TemplateDetail, "unknown-template"),
    summary="Read a template",
)
async def read(session: CallerSession, name: Name) -> Response:
    """The document of a template, its script and a sample input."""
    return JsonReply(await session.templates.read(name))


@router.post(
    "/{name}/try",
    verb=TemplateVerbs.try_out,
    responses=answers(DryRunView, "unknown-template", "input-invalid", body=True),
    summary="Try a template",
)
async def try_(session: CallerSession, name: Name, body: TryTemplateBody) -> Response:
    """Run a template with its script: no model and no tool is called, and nothing is stored.

    Gates are answered with their first option.
    """
    return JsonReply(dry_view(await session.templates.try_out(name, body.input)))


@router.post(
    "/{name}/use",
    verb=TemplateVerbs.use,
    responses=answers(
        SavedRevision, "unknown-template", "id-taken", "workflow-exists", "built-in-workflow", status=201, body=True
    ),
    status_code=201,
    summary="Use a template",
)
async def use(session: CallerSession, name: Name, body: UseTemplateBody) -> Response:
    """Save a copy of a template, which belongs to the caller, and the workflows that it calls."""
    return JsonReply(await session.templates.use(name, body.id), status=201)
