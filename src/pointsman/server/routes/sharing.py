"""Operations on owner and sharing of workflows and agents."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Response
from pydantic import Field

from pointsman.auth.sharing import Audience, Sharing, SharingView, sharing_mark, sharing_view
from pointsman.etags import etag_of
from pointsman.server.context import CallerSession
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import Id, IfMatch
from pointsman.server.routes.response_docs import answers
from pointsman.server.schemas.requests import Body, ruled, sample
from pointsman.server.schemas.views import example
from pointsman.workflows.access_verbs import SharingVerbs

router = Operations(tags=["access"])

Group = Annotated[str, Field(min_length=1, max_length=200)]
GROUPS_MAX = 100
Name = Annotated[str, Path(min_length=1, max_length=120, description="The agent's name.")]


class SharingBody(Body):
    """Who shall see and use it."""

    model_config = ruled(
        sample(audience="groups", groups=["desk"]),
        oneOf=[
            {
                "properties": {"audience": {"const": "groups"}, "groups": {"minItems": 1}},
                "required": ["audience", "groups"],
            },
            {"properties": {"audience": {"enum": ["private", "everyone"]}, "groups": {"maxItems": 0}}},
        ],
    )
    audience: Audience = Field(description="`private`: its owner alone; `groups`: also members of these; `everyone`.")
    groups: list[Group] = Field(default_factory=list, max_length=GROUPS_MAX, description="With `groups` alone.")
    owner: str | None = Field(default=None, min_length=1, max_length=200, description="Whose it shall be from now on.")


example(SharingView, {"owner": "ada", "audience": "groups", "groups": ["desk"]})


@router.get(
    "/api/workflows/{id}/sharing",
    verb=SharingVerbs.of_workflow,
    responses=answers(SharingView, "unknown-workflow"),
    summary="Read who may see it",
)
async def read_sharing(session: CallerSession, id: Id) -> Response:
    """The owner of a workflow, and with whom it is shared."""
    return _reply(await session.sharing.of_workflow(id))


@router.put(
    "/api/workflows/{id}/sharing",
    verb=SharingVerbs.share_workflow,
    responses=answers(SharingView, "unknown-workflow", "revision-moved", "sharing-invalid", body=True),
    summary="Share it",
)
async def change_sharing(session: CallerSession, id: Id, body: SharingBody, if_match: IfMatch = None) -> Response:
    """By its owner, or an admin. It holds from the next request on, for its executions too."""
    groups = tuple(body.groups)
    return _reply(
        await session.sharing.share_workflow(id, body.audience, groups=groups, owner=body.owner, match=if_match)
    )


@router.get(
    "/api/agents/{name}/sharing",
    verb=SharingVerbs.of_agent,
    responses=answers(SharingView, "no-such-agent"),
    summary="Read who may use an agent",
)
async def read_agent_sharing(session: CallerSession, name: Name) -> Response:
    """The owner of an agent, and with whom it is shared."""
    return _reply(await session.sharing.of_agent(name))


@router.put(
    "/api/agents/{name}/sharing",
    verb=SharingVerbs.share_agent,
    responses=answers(SharingView, "no-such-agent", "revision-moved", body=True),
    summary="Share an agent",
)
async def change_agent_sharing(
    session: CallerSession, name: Name, body: SharingBody, if_match: IfMatch = None
) -> Response:
    """By its owner, or an admin. Callers with whom it is not shared can neither see it nor run workflows that use
    it."""
    groups = tuple(body.groups)
    return _reply(
        await session.sharing.share_agent(name, body.audience, groups=groups, owner=body.owner, match=if_match)
    )


def _reply(sharing: Sharing) -> Response:
    return JsonReply(sharing_view(sharing), headers={"etag": etag_of(sharing_mark(sharing))})
