"""Operations on saved agents, which many workflows can refer to."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Path, Query, Response
from pydantic import Field

from pointsman.authoring.verbs import AuthoringVerbs
from pointsman.executions.views import StartedTurn, scripted_warnings
from pointsman.server.context import CallerSession
from pointsman.server.operation import Operations
from pointsman.server.problems import JsonReply
from pointsman.server.routes.parameters import NAMES_MAX, After, IfMatch, IfNew, Limit, Order, Words
from pointsman.server.schemas.answers import answers, example, refusals
from pointsman.server.schemas.requests import Body, JsonValue, sample
from pointsman.workflows.agent_verbs import AgentPage, AgentUses, AgentVerbs, etag_of_agent
from pointsman.workflows.agents import AgentView, SavedAgent, agent_view

router = Operations(prefix="/api/agents", tags=["agents"])


Name = Annotated[str, Path(min_length=1, max_length=120, description="The agent's name, or `name@revision`.")]
AGENT: AgentView = {
    "name": "writer",
    "revision": 2,
    "agent": {"system": "You write short letters.", "tools": ["web_search"]},
    "savedAt": 1_763_700_000.0,
    "author": "ada",
}


example(AgentView, AGENT)
example(AgentPage, {"agents": [AGENT], "next": None})
example(AgentUses, {"workflows": [{"workflowId": "letter", "revision": 2, "names": ["writer"]}]})


class AgentBody(Body):
    """An agent."""

    model_config = sample(agent={"system": "You write short letters.", "tools": ["web_search"]})
    agent: dict[str, JsonValue] = Field(description="As in the `agents` of a workflow.")


class NewAgentBody(AgentBody):
    """An agent and its name."""

    model_config = sample(name="writer", agent={"system": "You write short letters."})
    name: str = Field(min_length=1, max_length=100)


@router.get("", verb=AgentVerbs.list, responses=answers(AgentPage), summary="List agents")
async def list_(
    *,
    session: CallerSession,
    search: Words = "",
    name: Annotated[list[str] | None, Query(max_length=NAMES_MAX, description="Only agents with these names.")] = None,
    sort: Annotated[Literal["name", "savedAt"], Query(description="Sort key.")] = "name",
    order: Order = "asc",
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """The latest revision of each agent. With `search`, only agents with all these words in name or description."""
    return JsonReply(
        await session.agents.list(search, names=name, sort=sort, backwards=order == "desc", after=after, limit=limit)
    )


@router.post(
    "",
    verb=AgentVerbs.save,
    responses=answers(
        AgentView, "workflow-invalid", "agent-invalid", "agent-taken", "revision-moved", status=201, body=True
    ),
    status_code=201,
    summary="Save an agent",
)
async def create(*, session: CallerSession, body: NewAgentBody, if_new: IfNew = None) -> Response:
    """Create an agent, owned by the caller, or a new revision of an existing one.

    Saving the same description again creates no revision.
    """
    saved = await session.agents.save(body.name, body.agent, after=0 if if_new else None)
    return _reply(saved, status=201, headers={"location": f"/api/agents/{saved.name}"})


@router.get("/{name}", verb=AgentVerbs.read, responses=answers(AgentView, "no-such-agent"), summary="Read an agent")
async def read(session: CallerSession, name: Name) -> Response:
    """The latest revision, or the named one."""
    return _reply(await session.agents.read(name))


@router.put(
    "/{name}",
    verb=AgentVerbs.replace,
    responses=answers(AgentView, "workflow-invalid", "no-such-agent", "agent-taken", "revision-moved", body=True),
    summary="Replace an agent",
)
async def replace(session: CallerSession, name: Name, body: AgentBody, if_match: IfMatch = None) -> Response:
    """Create a new revision. Allowed for its owner and admins. Executions keep the revision they started with."""
    return _reply(await session.agents.replace(name, body.agent, match=if_match))


@router.delete(
    "/{name}",
    verb=AgentVerbs.delete,
    status_code=204,
    responses=refusals("no-such-agent", "revision-moved"),
    summary="Delete an agent",
)
async def delete(session: CallerSession, name: Name, if_match: IfMatch = None) -> Response:
    """Allowed for its owner and admins.

    Executions keep the revision they started with; workflows that name the agent cannot start until it is saved again.
    """
    await session.agents.delete(name, match=if_match)
    return Response(status_code=204)


@router.get(
    "/{name}/versions",
    verb=AgentVerbs.versions,
    responses=answers(AgentPage, "no-such-agent"),
    summary="List revisions of an agent",
)
async def versions(
    *, session: CallerSession, name: Name, order: Order = "desc", after: After = None, limit: Limit = 200
) -> Response:
    """Revisions of the agent, newest first unless `order` is `asc`."""
    return JsonReply(await session.agents.versions(name, oldest_first=order == "asc", after=after, limit=limit))


@router.get(
    "/{name}/uses",
    verb=AgentVerbs.uses,
    responses=answers(AgentUses, "no-such-agent"),
    summary="List uses of an agent",
)
async def uses(session: CallerSession, name: Name) -> Response:
    """The workflows that name it in their latest revision, if the caller may see them."""
    return JsonReply(await session.agents.uses(name))


class TryAgentBody(Body):
    """A message to an agent."""

    model_config = sample(message="Write to the harbour office.", agent={"system": "You write short letters."})
    message: str = Field(min_length=1, max_length=100_000)
    agent: dict[str, JsonValue] | None = Field(
        default=None, description="The unsaved description; absent: the saved agent is used."
    )
    session_id: str | None = Field(
        default=None, max_length=200, description="Session of the previous answer, to continue that conversation."
    )
    model: str | None = Field(
        default=None, min_length=1, max_length=200, description="The model to use instead of the agent's own."
    )


example(
    StartedTurn,
    {
        "executionId": "try-01kexr2v9s7h",
        "status": "running",
        "sessionId": "try-4f1c09b7",
        "scripted": False,
        "warnings": [],
    },
)


@router.post(
    "/{name}/try",
    verb=AuthoringVerbs.try_agent,
    responses=answers(
        StartedTurn,
        "no-such-agent",
        "agent-invalid",
        "workflow-invalid",
        "input-invalid",
        "session-busy",
        "model-override",
        503,
        status=202,
        body=True,
    ),
    status_code=202,
    summary="Send a message to an agent",
)
async def try_(session: CallerSession, name: Name, body: TryAgentBody) -> Response:
    """Run the saved agent, or an unsaved description of it.

    Each message is an execution, which can be streamed and answered; lists include it if partial runs are requested.
    Tools are really called.
    """
    trial = await session.authoring.try_agent(
        name, body.message, agent=body.agent, session=body.session_id, model=body.model
    )
    began: StartedTurn = {
        "executionId": trial.execution.id,
        "status": trial.execution.status,
        "sessionId": trial.session,
        "scripted": trial.execution.is_scripted,
        "warnings": scripted_warnings(trial.execution.state),
    }
    return JsonReply(began, status=202, headers={"location": f"/api/workflows/executions/{trial.execution.id}"})


def _reply(saved: SavedAgent, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return JsonReply(agent_view(saved), status=status, headers={"etag": etag_of_agent(saved), **(headers or {})})
