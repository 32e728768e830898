"""Operations on owner and sharing of workflows and agents."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Response
from pydantic import Field

from pointsman.auth.policy import must_see_workflow
from pointsman.auth.sharing import Audience, Sharing, SharingView, share, sharing_mark, sharing_of, sharing_view
from pointsman.etags import moved
from pointsman.server.context import CurrentCaller, CurrentServer
from pointsman.server.if_match import etag_of, held
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import Editor, Id, IfMatch
from pointsman.server.routes.response_docs import answers
from pointsman.server.schemas.requests import Body, ruled, sample
from pointsman.server.schemas.views import example
from pointsman.workflows.saving import agent_for

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
    "/api/workflows/{id}/sharing", responses=answers(SharingView, "unknown-workflow"), summary="Read who may see it"
)
async def read_sharing(desk: CurrentServer, caller: CurrentCaller, id: Id) -> Response:
    """The owner of a workflow, and with whom it is shared."""
    await must_see_workflow(desk.app.context, caller, id)
    return _reply(await sharing_of(desk.app.context, id))


@router.put(
    "/api/workflows/{id}/sharing",
    responses=answers(SharingView, "unknown-workflow", "revision-moved", "sharing-invalid", body=True),
    summary="Share it",
)
async def change_sharing(
    desk: CurrentServer, caller: Editor, id: Id, body: SharingBody, if_match: IfMatch = None
) -> Response:
    """By its owner, or an admin. It holds from the next request on, for its executions too."""
    await must_see_workflow(desk.app.context, caller, id)
    mark = sharing_mark(await sharing_of(desk.app.context, id))
    found = await share(
        desk.app.context,
        caller,
        id,
        body.audience,
        groups=tuple(body.groups),
        owner=body.owner,
        after=held(if_match, etag_of(mark), mark, moved(f"the sharing of {id!r}")),
    )
    return _reply(found)


@router.get(
    "/api/agents/{name}/sharing", responses=answers(SharingView, "no-such-agent"), summary="Read who may use an agent"
)
async def read_agent_sharing(desk: CurrentServer, caller: CurrentCaller, name: Name) -> Response:
    """The owner of an agent, and with whom it is shared."""
    await agent_for(desk.app.context, caller, name)
    return _reply(await sharing_of(desk.app.context, name, "agent"))


@router.put(
    "/api/agents/{name}/sharing",
    responses=answers(SharingView, "no-such-agent", "revision-moved", body=True),
    summary="Share an agent",
)
async def change_agent_sharing(
    desk: CurrentServer, caller: Editor, name: Name, body: SharingBody, if_match: IfMatch = None
) -> Response:
    """By its owner, or an admin. Whom it is not shared with can neither see it nor run workflows that use it."""
    await agent_for(desk.app.context, caller, name)
    mark = sharing_mark(await sharing_of(desk.app.context, name, "agent"))
    found = await share(
        desk.app.context,
        caller,
        name,
        body.audience,
        kind="agent",
        groups=tuple(body.groups),
        owner=body.owner,
        after=held(if_match, etag_of(mark), mark, moved(f"the sharing of {name!r}")),
    )
    return _reply(found)


def _reply(sharing: Sharing) -> Response:
    return JsonReply(sharing_view(sharing), headers={"etag": etag_of(sharing_mark(sharing))})
