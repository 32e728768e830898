"""Operations on saved agents, which many workflows can refer to."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from fastapi import Path, Query, Response
from pydantic import Field

from pointsman.auth.policy import sees_agent, visible
from pointsman.authoring.agent_trials import try_agent
from pointsman.executions.views import scripted_warnings
from pointsman.paging import page_by, revision_place
from pointsman.server.context import CurrentCaller, CurrentServer
from pointsman.server.if_match import etag_of, held
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import NAMES_MAX, After, Editor, IfMatch, IfNew, Limit, Order, Words
from pointsman.server.routes.response_docs import answers, refusals
from pointsman.server.schemas.requests import Answer, Body, JsonValue, sample
from pointsman.server.schemas.responses import Started
from pointsman.values import JsonObject
from pointsman.workflows.agent_uses import agent_uses
from pointsman.workflows.agents import SavedAgent, agent_view
from pointsman.workflows.revisions import RevisionMoved
from pointsman.workflows.saving import agent_for, delete_agent_as, save_agent_as

router = Operations(prefix="/api/agents", tags=["agents"])

Name = Annotated[str, Path(min_length=1, max_length=120, description="The agent's name, or `name@revision`.")]
AGENT: JsonObject = {
    "name": "writer",
    "revision": 2,
    "agent": {"system": "You write short letters.", "tools": ["web_search"]},
    "savedAt": 1_763_700_000.0,
    "author": "ada",
}


class AgentAnswer(Answer):
    """One revision of an agent."""

    model_config = sample(**AGENT)
    name: str
    revision: int
    agent: dict[str, JsonValue] = Field(description="As in the `agents` of a workflow.")
    saved_at: float
    author: str


class AgentPage(Answer):
    """Agents by name; or the revisions of one, newest first."""

    model_config = sample(agents=[AGENT], next=None)
    agents: list[AgentAnswer]
    next: str | None = Field(default=None, description="The `after` of the next page; null: this was the last.")


class AgentBody(Body):
    """An agent."""

    model_config = sample(agent={"system": "You write short letters.", "tools": ["web_search"]})
    agent: dict[str, JsonValue] = Field(description="As in the `agents` of a workflow.")


class NewAgentBody(AgentBody):
    """An agent and its name."""

    model_config = sample(name="writer", agent={"system": "You write short letters."})
    name: str = Field(min_length=1, max_length=100)


@router.get("", responses=answers(AgentPage), summary="List agents")
async def list_(
    *,
    desk: CurrentServer,
    caller: CurrentCaller,
    search: Words = "",
    name: Annotated[list[str] | None, Query(max_length=NAMES_MAX, description="Only these.")] = None,
    sort: Annotated[Literal["name", "savedAt"], Query(description="What orders them.")] = "name",
    order: Order = "asc",
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """The latest revision of each. With `search` only those with all these words in name or description."""
    place = "name" if sort == "name" else _saved_place
    found = await desk.app.agents.found(search, names=name, sees=partial(sees_agent, desk.app.context, caller))
    entries = map(agent_view, found)
    page = await page_by(place, entries, after=after, limit=limit, backwards=order == "desc")
    return JsonReply({"agents": [*page.entries], "next": page.next})


@router.post(
    "",
    responses=answers(
        AgentAnswer, "workflow-invalid", "agent-invalid", "agent-taken", "revision-moved", status=201, body=True
    ),
    status_code=201,
    summary="Save an agent",
)
async def create(*, desk: CurrentServer, caller: Editor, body: NewAgentBody, if_new: IfNew = None) -> Response:
    """A new one, which is the caller's, or a new revision of one that is. The same description again is the same
    revision."""
    after = 0 if if_new else None
    saved = await save_agent_as(desk.app.context, caller, body.name, body.agent, after=after)
    return _reply(saved, status=201, headers={"location": f"/api/agents/{saved.name}"})


@router.get("/{name}", responses=answers(AgentAnswer, "no-such-agent"), summary="Read an agent")
async def read(desk: CurrentServer, caller: CurrentCaller, name: Name) -> Response:
    """The latest revision, or the one that is named."""
    return _reply(await agent_for(desk.app.context, caller, name))


@router.put(
    "/{name}",
    responses=answers(AgentAnswer, "workflow-invalid", "no-such-agent", "agent-taken", "revision-moved", body=True),
    summary="Replace an agent",
)
async def replace(
    desk: CurrentServer, caller: Editor, name: Name, body: AgentBody, if_match: IfMatch = None
) -> Response:
    """A new revision, by its owner, or an admin. Executions keep the one they began with."""
    after = _held(await agent_for(desk.app.context, caller, name), if_match)
    return _reply(await save_agent_as(desk.app.context, caller, name, body.agent, after=after))


@router.delete(
    "/{name}", status_code=204, responses=refusals("no-such-agent", "revision-moved"), summary="Delete an agent"
)
async def delete(desk: CurrentServer, caller: Editor, name: Name, if_match: IfMatch = None) -> Response:
    """By its owner, or an admin. Executions keep what they began with; workflows that name it cannot start until it is
    saved again."""
    after = _held(await agent_for(desk.app.context, caller, name), if_match)
    await delete_agent_as(desk.app.context, caller, name, after=after)
    return Response(status_code=204)


@router.get("/{name}/versions", responses=answers(AgentPage, "no-such-agent"), summary="List revisions of an agent")
async def versions(
    *,
    desk: CurrentServer,
    caller: CurrentCaller,
    name: Name,
    order: Order = "desc",
    after: After = None,
    limit: Limit = 200,
) -> Response:
    """Its revisions, newest first unless `order` says otherwise."""
    await agent_for(desk.app.context, caller, name)
    entries = map(agent_view, await desk.app.agents.versions(name))
    page = await page_by(revision_place, entries, after=after, limit=limit, backwards=order == "desc")
    return JsonReply({"agents": [*page.entries], "next": page.next})


def _saved_place(entry: JsonObject) -> str:
    return f"{entry['savedAt']:017.6f} {entry['name']}"


class AgentUse(Answer):
    """A workflow that names an agent."""

    workflow_id: str
    revision: int
    names: list[str] = Field(description="As what its nodes name it: `writer`, or one revision: `writer@2`.")


class AgentUses(Answer):
    """The workflows that name an agent."""

    model_config = sample(workflows=[{"workflowId": "letter", "revision": 2, "names": ["writer"]}])
    workflows: list[AgentUse]


@router.get("/{name}/uses", responses=answers(AgentUses, "no-such-agent"), summary="List who uses an agent")
async def uses(desk: CurrentServer, caller: CurrentCaller, name: Name) -> Response:
    """The workflows that name it in their latest revision, as far as the caller may see them."""
    saved = await agent_for(desk.app.context, caller, name)

    async def sees(workflow: str) -> bool:
        return await visible(desk.app.context, caller, workflow)

    return JsonReply({"workflows": [*await agent_uses(desk.app.context, saved.name, sees)]})


class SayBody(Body):
    """What is said to an agent."""

    model_config = sample(message="Write to the harbour office.", agent={"system": "You write short letters."})
    message: str = Field(min_length=1, max_length=100_000)
    agent: dict[str, JsonValue] | None = Field(
        default=None, description="Its description as it would be saved. Absent: as it is saved."
    )
    session_id: str | None = Field(
        default=None, max_length=200, description="Of the answer before, to go on with that conversation."
    )
    model: str | None = Field(default=None, min_length=1, max_length=200, description="Answers instead of its own.")


class SaidAnswer(Started):
    """A turn that began."""

    model_config = sample(
        executionId="try-01kexr2v9s7h", status="running", sessionId="try-4f1c09b7", scripted=False, warnings=[]
    )
    session_id: str = Field(description="Say the next thing in it; `DELETE /api/sessions/{id}` forgets it.")


@router.post(
    "/{name}/try",
    responses=answers(
        SaidAnswer,
        "no-such-agent",
        "agent-invalid",
        "workflow-invalid",
        "input-invalid",
        "session-busy",
        "model-fixed",
        503,
        status=202,
        body=True,
    ),
    status_code=202,
    summary="Say something to an agent",
)
async def try_(desk: CurrentServer, caller: Editor, name: Name, body: SayBody) -> Response:
    """As it is saved, or as it is being written. Each message is an execution, streamed and answered as any; lists show
    it where they are asked for trials. Its tools do what they do."""
    said = await try_agent(
        desk.app.context, caller, name, body.message, agent=body.agent, session=body.session_id, model=body.model
    )
    began: JsonObject = {
        "executionId": said.execution.id,
        "status": said.execution.status,
        "sessionId": said.session,
        "scripted": said.execution.is_scripted,
        "warnings": scripted_warnings(said.execution.state),
    }
    return JsonReply(began, status=202, headers={"location": f"/api/workflows/executions/{said.execution.id}"})


def _reply(saved: SavedAgent, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return JsonReply(agent_view(saved), status=status, headers={"etag": _etag(saved), **(headers or {})})


def _held(known: SavedAgent, if_match: str | None) -> int | None:
    return held(if_match, _etag(known), known.revision, RevisionMoved.of(known.name, known.revision))


def _etag(saved: SavedAgent) -> str:
    return etag_of(str(saved.revision))
