"""Saved agents: described once, named by many workflows."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import Field

from pointsman.app.agents import SavedAgent, agent_view
from pointsman.app.paging import page_by
from pointsman.app.revisions import RevisionMoved
from pointsman.server.desk import Asking, AtDesk
from pointsman.server.replies import JsonReply
from pointsman.server.routes.answers import answers, refusals
from pointsman.server.routes.parameters import After, Editor, IfMatch, Limit
from pointsman.server.shapes import Answer, Body, JsonValue, sample
from pointsman.values import JsonObject

router = APIRouter(prefix="/api/agents", tags=["agents"])

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
async def list_(*, desk: AtDesk, caller: Asking, after: After = None, limit: Limit = 50) -> Response:
    """The latest revision of each, by name."""
    page = await page_by("name", map(agent_view, await desk.app.agents.list()), after=after, limit=limit)
    return JsonReply({"agents": [*page.entries], "next": page.next})


@router.post(
    "",
    responses=answers(
        AgentAnswer, "workflow-invalid", "agent-invalid", "agent-taken", "revision-moved", status=201, body=True
    ),
    status_code=201,
    summary="Save an agent",
)
async def create(desk: AtDesk, caller: Editor, body: NewAgentBody) -> Response:
    """A new one, or a new revision. The same description again is the same revision."""
    saved = await desk.app.agents.save(body.name, body.agent, author=caller.name)
    return _reply(saved, status=201, headers={"location": f"/api/agents/{saved.name}"})


@router.get("/{name}", responses=answers(AgentAnswer, "no-such-agent"), summary="Read an agent")
async def read(desk: AtDesk, caller: Asking, name: Name) -> Response:
    """The latest revision, or the one that is named."""
    return _reply(await desk.app.agents.get(name))


@router.put(
    "/{name}",
    responses=answers(AgentAnswer, "workflow-invalid", "no-such-agent", "agent-taken", "revision-moved", body=True),
    summary="Replace an agent",
)
async def replace(desk: AtDesk, caller: Editor, name: Name, body: AgentBody, if_match: IfMatch = None) -> Response:
    """A new revision. Executions keep the one they began with."""
    known = await desk.app.agents.get(name)
    if if_match is not None and if_match.strip() not in (_etag(known), "*"):
        raise RevisionMoved.of(name, known.revision)
    after = None if if_match is None else known.revision
    return _reply(await desk.app.agents.save(name, body.agent, author=caller.name, after=after))


@router.delete("/{name}", status_code=204, responses=refusals("no-such-agent"), summary="Delete an agent")
async def delete(desk: AtDesk, caller: Editor, name: Name) -> Response:
    """Executions keep what they began with; workflows that name it cannot start until it is saved again."""
    await desk.app.agents.delete(name)
    return Response(status_code=204)


@router.get("/{name}/versions", responses=answers(AgentPage, "no-such-agent"), summary="List revisions of an agent")
async def versions(desk: AtDesk, caller: Asking, name: Name) -> Response:
    """All revisions, newest first."""
    return JsonReply({"agents": [agent_view(one) for one in await desk.app.agents.versions(name)], "next": None})


def _reply(saved: SavedAgent, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return JsonReply(agent_view(saved), status=status, headers={"etag": _etag(saved), **(headers or {})})


def _etag(saved: SavedAgent) -> str:
    return f'"{saved.revision}"'
