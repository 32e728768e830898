"""Operations on API keys, and the identity of the caller."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Path, Response
from pydantic import Field

from pointsman.auth.administration import AccessVerbs
from pointsman.auth.callers import CallerView, Role, caller_view
from pointsman.auth.keys import NAME_CHARS_MAX, KeyPage, KeyView, NewKeyView
from pointsman.server.context import CallerSession, CurrentCaller
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import After, Limit, OfRole, Order, Words
from pointsman.server.routes.response_docs import answers, refusals
from pointsman.server.schemas.requests import Body, sample
from pointsman.server.schemas.views import example

router = Operations(tags=["access"])

KeyName = Annotated[str, Path(min_length=1, max_length=NAME_CHARS_MAX, description="The key's name.")]
DAYS_MAX: Final = 36_500


class KeyBody(Body):
    """A key to be made."""

    model_config = sample(name="ada", role="editor", groups=["desk"])
    name: str = Field(min_length=1, max_length=NAME_CHARS_MAX)
    role: Role = "operator"
    groups: list[str] = Field(default_factory=list, max_length=100)
    days: float | None = Field(
        default=None, gt=0, le=DAYS_MAX, description="How long it is good for; absent: for ever."
    )


KEY: Final[KeyView] = {
    "name": "ada",
    "role": "editor",
    "groups": ["desk"],
    "createdAt": 1_763_700_000.0,
    "expiresAt": None,
    "usedAt": None,
}
example(KeyView, KEY)
example(KeyPage, {"keys": [KEY], "next": None})
example(NewKeyView, {"name": "ada", "role": "editor", "key": "pm_…"})
example(
    CallerView,
    {"name": "ada", "role": "editor", "groups": ["desk"], "entrance": "login", "expiresAt": 1_763_743_200.0},
)


@router.get("/api/me", responses=answers(CallerView), summary="Who am I?")
async def me(caller: CurrentCaller) -> Response:
    """The caller's name, role and groups, and how it was authenticated."""
    return JsonReply(caller_view(caller))


@router.get("/api/settings/keys", verb=AccessVerbs.keys, responses=answers(KeyPage), summary="List keys")
async def list_keys(
    *,
    session: CallerSession,
    search: Words = "",
    role: OfRole = None,
    order: Order = "asc",
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """By name, and when each was last used. Not the keys themselves. With `search` only those with all these words in
    their name or groups."""
    page = await session.access.keys(search=search, role=role, after=after, limit=limit, backwards=order == "desc")
    return JsonReply(page)


@router.post(
    "/api/settings/keys",
    verb=AccessVerbs.add_key,
    status_code=201,
    responses=answers(NewKeyView, "key-exists", status=201, body=True),
    summary="Make a key",
)
async def make_key(session: CallerSession, body: KeyBody) -> Response:
    """The key is shown in this answer only: its hash is stored."""
    token = await session.access.add_key(body.name, body.role, groups=body.groups, days=body.days)
    made: NewKeyView = {"name": body.name, "role": body.role, "key": token}
    return JsonReply(made, status=201, headers={"cache-control": "no-store"})


@router.delete(
    "/api/settings/keys/{name}",
    verb=AccessVerbs.revoke_key,
    status_code=204,
    responses=refusals("no-such-key", "last-admin"),
    summary="Revoke a key",
)
async def revoke_key(session: CallerSession, name: KeyName) -> Response:
    """Revoke the key and end its logins within a second. The last admin key cannot be revoked."""
    await session.access.revoke_key(name)
    return Response(status_code=204)
