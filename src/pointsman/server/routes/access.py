"""Operations on API keys, and the identity of the caller."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Depends, Path, Response
from pydantic import Field

from pointsman.auth.callers import Caller, Role, caller_view
from pointsman.auth.keys import NAME_CHARS_MAX, key_view
from pointsman.paging import page_by
from pointsman.server.context import CurrentCaller, CurrentServer, RequireRole
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import After, Limit, OfRole, Order, Words
from pointsman.server.routes.response_docs import answers, refusals
from pointsman.server.schemas.requests import Answer, Body, sample
from pointsman.values import Instant, JsonObject

router = Operations(tags=["access"])

Admin = Annotated[Caller, Depends(RequireRole("admin", "make or revoke keys"))]
KeyName = Annotated[str, Path(min_length=1, max_length=NAME_CHARS_MAX, description="The key's name.")]
DAY_S: Final = 86_400.0
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


class Me(Answer):
    """The caller, as the server knows it."""

    model_config = sample(name="ada", role="editor", groups=["desk"], entrance="login", expiresAt=1_763_743_200.0)
    name: str
    role: Role
    groups: list[str]
    entrance: str = Field(description="How it was let in: `local`, `key`, `login`, `token`.")
    expires_at: float | None = Field(description="When that ends; null: nobody knows.")


KEY: Final[JsonObject] = {
    "name": "ada",
    "role": "editor",
    "groups": ["desk"],
    "createdAt": 1_763_700_000.0,
    "expiresAt": None,
    "usedAt": None,
}


class KeyEntry(Answer):
    """A key, without itself."""

    model_config = sample(**KEY)
    name: str
    role: Role
    groups: list[str]
    created_at: float
    expires_at: float | None
    used_at: float | None


class KeyPage(Answer):
    """Keys by name."""

    model_config = sample(keys=[KEY], next=None)
    keys: list[KeyEntry]
    next: str | None = Field(description="The `after` of the next page; null: this was the last.")


class MadeKey(Answer):
    """A new key: it is told this once."""

    model_config = sample(name="ada", role="editor", key="pm_…")
    name: str
    role: Role
    key: str


@router.get("/api/me", responses=answers(Me), summary="Who am I?")
async def me(caller: CurrentCaller) -> Response:
    """The caller's name, role and groups, and how it was let in."""
    return JsonReply(caller_view(caller))


@router.get("/api/settings/keys", responses=answers(KeyPage), summary="List keys")
async def list_keys(
    *,
    desk: CurrentServer,
    caller: Admin,
    search: Words = "",
    role: OfRole = None,
    order: Order = "asc",
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """By name, and when each was last used. Not the keys themselves. With `search` only those with all these words in
    their name or groups."""
    found = map(key_view, await desk.keys.found(search, role=role))
    page = await page_by("name", found, after=after, limit=limit, backwards=order == "desc")
    return JsonReply({"keys": [*page.entries], "next": page.next})


@router.post(
    "/api/settings/keys",
    status_code=201,
    responses=answers(MadeKey, "key-exists", status=201, body=True),
    summary="Make a key",
)
async def make_key(desk: CurrentServer, caller: Admin, body: KeyBody) -> Response:
    """The answer is the only time it is told: what is kept is its hash."""
    expires = None if body.days is None else Instant(desk.app.clock.now() + body.days * DAY_S)
    token = await desk.keys.make(body.name, body.role, groups=tuple(body.groups), expires=expires)
    said = {"name": body.name, "role": body.role, "key": token}
    return JsonReply({**said}, status=201, headers={"cache-control": "no-store"})


@router.delete(
    "/api/settings/keys/{name}",
    status_code=204,
    responses=refusals("no-such-key", "last-admin"),
    summary="Revoke a key",
)
async def revoke_key(desk: CurrentServer, caller: Admin, name: KeyName) -> Response:
    """It opens nothing any more, within a second, and what was logged in by it is not. Not the only one of an admin."""
    await desk.keys.revoke(name, but_last_admin=True)
    return Response(status_code=204)
