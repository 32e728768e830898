"""Known people, and the rights of roles."""

from __future__ import annotations

from typing import Final, cast

from fastapi import Request, Response
from typing_extensions import TypedDict

from pointsman.auth.administration import AccessVerbs
from pointsman.auth.callers import Role
from pointsman.auth.people import PeoplePage, PersonView
from pointsman.server.context import CallerSession, CurrentCaller
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.required_roles import described, least_of
from pointsman.server.routes.parameters import After, Limit, OfRole, Order, Words
from pointsman.server.routes.response_docs import answers
from pointsman.server.schemas.views import example

router = Operations(tags=["access"])


class RightView(TypedDict):
    """An operation, and the lowest role that may call it."""

    method: str
    path: str
    says: str
    tag: str
    role: Role | None
    """null: no key is needed, or the operation authenticates by itself."""


class RightsPage(TypedDict):
    """What each role may do."""

    rights: list[RightView]


PERSON: Final[PersonView] = {
    "name": "ada",
    "role": "editor",
    "groups": ["desk"],
    "ways": ["key"],
    "logins": 1,
    "seenAt": 1_763_700_000.0,
}
example(PersonView, PERSON)
example(PeoplePage, {"people": [PERSON], "next": None})
RIGHT: Final[RightView] = {
    "method": "PUT",
    "path": "/api/workflows/{id}",
    "says": "Save a workflow",
    "tag": "workflows",
    "role": "editor",
}
example(RightView, RIGHT)
example(RightsPage, {"rights": [RIGHT]})


@router.get("/api/people", verb=AccessVerbs.people, responses=answers(PeoplePage), summary="List people")
async def list_people(
    *,
    session: CallerSession,
    search: Words = "",
    role: OfRole = None,
    order: Order = "asc",
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """People who have a key, or whom the identity provider named, by name; and in how many browsers they are logged in.
    With `search` only those with all these words in their name or groups."""
    page = await session.access.people(search=search, role=role, after=after, limit=limit, backwards=order == "desc")
    return JsonReply(page)


@router.get("/api/rights", responses=answers(RightsPage), summary="What each role may do")
async def list_rights(request: Request, caller: CurrentCaller) -> Response:
    """Each operation with the least role that it takes. A role may do all that the roles before it may."""
    found: list[RightView] = [
        {
            "method": method,
            "path": route.path.replace(":path", ""),
            "says": route.summary or "",
            "tag": str(route.tags[0]) if route.tags else "",
            "role": least_of(route),
        }
        for route in described(cast("tuple[Operations, ...]", request.app.state.routers))
        for method in sorted(route.methods or ())
    ]
    page: RightsPage = {"rights": found}
    return JsonReply(page)
