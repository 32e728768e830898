"""Known people, and the rights of roles."""

from __future__ import annotations

from typing import Annotated, Final, Literal, cast

from fastapi import Depends, Request, Response
from pydantic import Field

from pointsman.auth.callers import Caller, Role
from pointsman.auth.people import people
from pointsman.paging import page_by
from pointsman.searching import says
from pointsman.server.context import CurrentCaller, CurrentServer, RequireRole
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.required_roles import described, least_of
from pointsman.server.routes.parameters import After, Limit, OfRole, Order, Words
from pointsman.server.routes.response_docs import answers
from pointsman.server.schemas.requests import Answer, sample
from pointsman.values import Json, JsonObject

router = Operations(tags=["access"])

Admin = Annotated[Caller, Depends(RequireRole("admin", "see who is known here"))]
PERSON: Final[JsonObject] = {
    "name": "ada",
    "role": "editor",
    "groups": ["desk"],
    "ways": ["key"],
    "logins": 1,
    "seenAt": 1_763_700_000.0,
}
RIGHT: Final[JsonObject] = {
    "method": "PUT",
    "path": "/api/workflows/{id}",
    "says": "Save a workflow",
    "tag": "workflows",
    "role": "editor",
}


class PersonEntry(Answer):
    """Somebody who has a way in, or had one with the identity provider."""

    model_config = sample(**PERSON)
    name: str
    role: Role = Field(description="Of their ways in the one that lets them do most.")
    groups: list[str]
    ways: list[Literal["key", "token"]]
    logins: int = Field(description="Browsers in which they are logged in now.")
    seen_at: float | None = Field(description="When they were last seen, as far as that is kept.")


class PeoplePage(Answer):
    """People by name."""

    model_config = sample(people=[PERSON], next=None)
    people: list[PersonEntry]
    next: str | None = Field(description="The `after` of the next page; null: this was the last.")


class Right(Answer):
    """An operation, and the least role that it takes."""

    model_config = sample(**RIGHT)
    method: str
    path: str
    says: str
    tag: str
    role: Role | None = Field(description="null: no key is needed, or something else is checked.")


class RightsPage(Answer):
    """What each role may do."""

    model_config = sample(rights=[RIGHT])
    rights: list[Right]


@router.get("/api/people", responses=answers(PeoplePage), summary="List people")
async def list_people(
    *,
    desk: CurrentServer,
    caller: Admin,
    search: Words = "",
    role: OfRole = None,
    order: Order = "asc",
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """Whoever has a key, and whomever the identity provider named, by name; and in how many browsers they are logged
    in. With `search` only those with all these words in their name or groups."""
    known = people(await desk.keys.all(), await desk.logins.all(), await desk.known_people.all(), desk.app.clock.now())
    found = (one for one in known if role in (None, one["role"]) and says(search, one["name"], one["groups"]))
    page = await page_by("name", found, after=after, limit=limit, backwards=order == "desc")
    return JsonReply({"people": [*page.entries], "next": page.next})


@router.get("/api/rights", responses=answers(RightsPage), summary="What each role may do")
async def list_rights(request: Request, caller: CurrentCaller) -> Response:
    """Each operation with the least role that it takes. A role may do all that the roles before it may."""
    found: list[Json] = [
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
    return JsonReply({"rights": found})
