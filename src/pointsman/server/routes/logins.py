"""Browser logins: a key is exchanged for a cookie; list and end logins."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Header, Path, Query, Request, Response
from pydantic import Field

from pointsman.auth.callers import caller_view
from pointsman.auth.oidc_tokens import TOKEN_CHARS_MAX
from pointsman.paging import page_by
from pointsman.searching import says
from pointsman.server.context import COOKIE, CurrentCaller, CurrentServer, ServerContext, address_of
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.access import Me
from pointsman.server.routes.parameters import After, Limit, Order, Words
from pointsman.server.routes.response_docs import answers, refusals
from pointsman.server.schemas.requests import Answer, Body, sample
from pointsman.values import JsonObject

router = Operations(tags=["access"])

LoginId = Annotated[str, Path(min_length=1, max_length=64, description="The login's id, as the list shows it.")]
BY_PROVIDER: Final = "/api/login/oidc"


class LoginBody(Body):
    """What opens the server."""

    model_config = sample(key="pm_…")
    key: str = Field(min_length=1, max_length=TOKEN_CHARS_MAX, description="An API key, or a token.")


class ProviderAnswer(Answer):
    """The identity provider with which browsers log in."""

    model_config = sample(name="id.example.com", address=BY_PROVIDER)
    name: str
    address: str = Field(description="A browser goes there; `to` says to which page it comes back.")


class Ways(Answer):
    """How to log in."""

    model_config = sample(asks=True, provider={"name": "id.example.com", "address": BY_PROVIDER})
    asks: bool = Field(description="Whether anybody is asked who they are: a key opens the server.")
    provider: ProviderAnswer | None


LOGIN: Final[JsonObject] = {
    "id": "0badcafe0badcafe",
    "name": "ada",
    "beganAt": 1_763_700_000.0,
    "expiresAt": 1_763_743_200.0,
    "agent": "Mozilla/5.0",
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

    model_config = sample(logins=[LOGIN], next=None)
    logins: list[LoginEntry]
    next: str | None = Field(description="The `after` of the next page; null: this was the last.")


class Ended(Answer):
    """How many logins were ended."""

    model_config = sample(ended=2)
    ended: int


@router.get("/api/login", responses={200: {"model": Ways, "description": "The ways in."}}, summary="How to log in")
async def ways(desk: CurrentServer) -> Response:
    """Whether one must, and whether an identity provider lets browsers in. Needs no key."""
    provider: JsonObject | None = None
    if desk.provider is not None:
        provider = {"name": desk.provider.name, "address": BY_PROVIDER}
    return JsonReply({"asks": not await desk.asks_nobody(), "provider": provider})


@router.post("/api/login", responses=answers(Me, body=True), summary="Log in")
async def log_in(
    desk: CurrentServer,
    request: Request,
    body: LoginBody,
    user_agent: Annotated[str, Header(include_in_schema=False)] = "",
) -> Response:
    """Shows a key or a token once: a cookie that no page can read stands for it, until it expires or is ended.

    Takes no key in a header. Browsers keep the cookie over https, and on this machine.
    """
    caller = await desk.caller(body.key, address_of(request))
    shown = "" if caller.entrance == "token" else body.key
    await desk.audit.asked(caller, "POST /api/login", origin=address_of(request))
    token, entered = await desk.logins.begin(
        caller, key=shown, agent=user_agent, instead_of=request.cookies.get(COOKIE, "")
    )
    reply = JsonReply(caller_view(entered), headers={"cache-control": "no-store"})
    give_cookie(desk, reply, token)
    return reply


@router.post("/api/logout", status_code=204, responses=refusals(), summary="Log out")
async def log_out(desk: CurrentServer, caller: CurrentCaller, request: Request) -> Response:
    """Ends the login of this browser. Elsewhere it stays."""
    await desk.logins.end_this(request.cookies.get(COOKIE, ""))
    reply = Response(status_code=204)
    reply.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="strict")
    return reply


@router.get("/api/logins", responses=answers(LoginPage), summary="List logins")
async def logins(
    *,
    desk: CurrentServer,
    caller: CurrentCaller,
    everyone: Annotated[bool, Query(description="Those of all, not only the caller's. For admins.")] = False,
    search: Words = "",
    order: Order = "desc",
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """Where the caller is logged in, newest first. With `search` only those with all these words in the name or in what
    the browser says of itself."""
    if everyone:
        caller.must_have("admin", "see the logins of others")
    found = await desk.logins.all(None if everyone else caller.name)
    told = (one for one in found if says(search, one["name"], one["agent"]))
    page = await page_by(_place, told, after=after, limit=limit, backwards=order == "desc")
    return JsonReply({"logins": [*page.entries], "next": page.next})


def _place(login: JsonObject) -> str:
    return f"{login['beganAt']:017.6f} {login['id']}"


@router.delete("/api/logins", responses=answers(Ended), summary="Log out everywhere")
async def end_logins(
    desk: CurrentServer,
    caller: CurrentCaller,
    name: Annotated[str | None, Query(max_length=200, description="Whose; absent: the caller's. For admins.")] = None,
) -> Response:
    """Ends all logins of one person, this one too, and the streams that they opened. Keys stay."""
    if name not in (None, caller.name):
        caller.must_have("admin", "end the logins of others")
    return JsonReply({"ended": await desk.logins.end_all(caller.name if name is None else name)})


@router.delete("/api/logins/{id}", status_code=204, responses=refusals("no-such-login"), summary="End a login")
async def end_login(desk: CurrentServer, caller: CurrentCaller, id: LoginId) -> Response:
    """Its cookie opens nothing any more. One's own; admins end those of all."""
    await desk.logins.end(id, name=None if caller.role == "admin" else caller.name)
    return Response(status_code=204)


def give_cookie(desk: ServerContext, reply: Response, token: str) -> None:
    """Set the login cookie."""
    age = int(desk.app.settings.access.login.seconds)
    reply.set_cookie(COOKIE, token, max_age=age, path="/", secure=True, httponly=True, samesite="strict")
