"""Who one is, logging in and out, and the keys that open the server."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from pydantic import Field

from pointsman.app.access.callers import Caller, Role, caller_view
from pointsman.app.access.keys import NAME_CHARS_MAX, key_view
from pointsman.app.access.tokens import TOKEN_CHARS_MAX
from pointsman.server.desk import COOKIE, Asking, AtDesk, Must, address_of
from pointsman.server.replies import JsonReply
from pointsman.server.routes.answers import answers, refusals
from pointsman.server.shapes import Answer, Body, sample
from pointsman.values import Instant, JsonObject

router = APIRouter(tags=["access"])

Admin = Annotated[Caller, Depends(Must("admin", "make or revoke keys"))]
KeyName = Annotated[str, Path(min_length=1, max_length=NAME_CHARS_MAX, description="The key's name.")]
LoginId = Annotated[str, Path(min_length=1, max_length=64, description="The login's id, as the list shows it.")]
DAY_S: Final = 86_400.0
DAYS_MAX: Final = 36_500


class LoginBody(Body):
    """What opens the server."""

    model_config = sample(key="pm_…")
    key: str = Field(min_length=1, max_length=TOKEN_CHARS_MAX, description="An API key, or a token.")


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


LOGIN: Final[JsonObject] = {
    "id": "0badcafe0badcafe",
    "name": "ada",
    "beganAt": 1_763_700_000.0,
    "expiresAt": 1_763_743_200.0,
    "agent": "Mozilla/5.0",
}
KEY: Final[JsonObject] = {
    "name": "ada",
    "role": "editor",
    "groups": ["desk"],
    "createdAt": 1_763_700_000.0,
    "expiresAt": None,
    "usedAt": None,
}


class LoginEntry(Answer):
    """A browser that is logged in."""

    model_config = sample(**LOGIN)
    id: str
    name: str
    began_at: float
    expires_at: float
    agent: str


class LoginPage(Answer):
    """Logins, newest first."""

    model_config = sample(logins=[LOGIN])
    logins: list[LoginEntry]


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

    model_config = sample(keys=[KEY])
    keys: list[KeyEntry]


class MadeKey(Answer):
    """A new key: it is told this once."""

    model_config = sample(name="ada", role="editor", key="pm_…")
    name: str
    role: Role
    key: str


@router.get("/api/me", responses=answers(Me), summary="Who am I?")
async def me(caller: Asking) -> Response:
    """The caller's name, role and groups, and how it was let in."""
    return JsonReply(caller_view(caller))


@router.post("/api/login", responses=answers(Me, body=True), summary="Log in")
async def log_in(
    desk: AtDesk, request: Request, body: LoginBody, user_agent: Annotated[str, Header(include_in_schema=False)] = ""
) -> Response:
    """Shows a key or a token once: a cookie that no page can read stands for it, until it expires or is ended.

    Takes no key in a header. Browsers keep the cookie over https, and on this machine.
    """
    caller = await desk.caller(body.key, address_of(request))
    shown = "" if caller.entrance == "token" else body.key
    await desk.audit.asked(caller, "POST /api/login", origin=address_of(request))
    token, entered = await desk.logins.begin(caller, key=shown, agent=user_agent)
    reply = JsonReply(caller_view(entered), headers={"cache-control": "no-store"})
    age = int(desk.app.settings.access.login.seconds)
    reply.set_cookie(COOKIE, token, max_age=age, path="/", secure=True, httponly=True, samesite="strict")
    return reply


@router.post("/api/logout", status_code=204, responses=refusals(), summary="Log out")
async def log_out(desk: AtDesk, caller: Asking, request: Request) -> Response:
    """Ends the login of this browser. Elsewhere it stays."""
    await desk.logins.end_this(request.cookies.get(COOKIE, ""))
    reply = Response(status_code=204)
    reply.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="strict")
    return reply


@router.get("/api/logins", responses=answers(LoginPage), summary="List logins")
async def logins(
    *,
    desk: AtDesk,
    caller: Asking,
    everyone: Annotated[bool, Query(description="Those of all, not only the caller's. For admins.")] = False,
) -> Response:
    """Where the caller is logged in, newest first."""
    if everyone:
        caller.must_have("admin", "see the logins of others")
    return JsonReply({"logins": [*await desk.logins.all(None if everyone else caller.name)]})


@router.delete("/api/logins/{id}", status_code=204, responses=refusals("no-such-login"), summary="End a login")
async def end_login(desk: AtDesk, caller: Asking, id: LoginId) -> Response:
    """Its cookie opens nothing any more. One's own; admins end those of all."""
    await desk.logins.end(id, name=None if caller.role == "admin" else caller.name)
    return Response(status_code=204)


@router.get("/api/settings/keys", responses=answers(KeyPage), summary="List keys")
async def list_keys(desk: AtDesk, caller: Admin) -> Response:
    """By name, and when each was last used. Not the keys themselves."""
    return JsonReply({"keys": [key_view(key) for key in await desk.keys.all()]})


@router.post(
    "/api/settings/keys",
    status_code=201,
    responses=answers(MadeKey, "key-exists", status=201, body=True),
    summary="Make a key",
)
async def make_key(desk: AtDesk, caller: Admin, body: KeyBody) -> Response:
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
async def revoke_key(desk: AtDesk, caller: Admin, name: KeyName) -> Response:
    """It opens nothing any more, within a second, and what was logged in by it is not. Not the only one of an admin."""
    await desk.keys.revoke(name, but_last_admin=True)
    return Response(status_code=204)
