"""Browser logins: by key or with the identity provider; list and end logins."""

from __future__ import annotations

import logging
from typing import Annotated, Final
from urllib.parse import quote, unquote, urlencode

from fastapi import Header, Path, Query, Request, Response
from pydantic import Field
from typing_extensions import TypedDict

from pointsman.auth.administration import AccessVerbs
from pointsman.auth.callers import Caller, CallerView, caller_view
from pointsman.auth.oidc_login import (
    CODE_CHARS_MAX,
    TOKEN_CHARS_MAX,
    VISIT_S,
    IdentityProvider,
    LoginDenied,
    LoginNotOffered,
    ProviderLogin,
    begin_provider_login,
    provider_login_of,
)
from pointsman.auth.people import EndedLogins, LoginPage, LoginView
from pointsman.errors import PointsmanError
from pointsman.operations.logs import log_event
from pointsman.server.context import COOKIE, CallerSession, CurrentServer, ServerContext, address_of
from pointsman.server.operation import Operations
from pointsman.server.pages import is_page
from pointsman.server.problems import JsonReply
from pointsman.server.routes.parameters import After, Limit, Order, Words
from pointsman.server.schemas.answers import Described, answer, answers, example, refusals
from pointsman.server.schemas.requests import Body, sample

router = Operations(tags=["access"])


LoginId = Annotated[str, Path(min_length=1, max_length=64, description="The login's id, as the list shows it.")]
BY_PROVIDER: Final = "/api/login/oidc"


class LoginBody(Body):
    """A credential of the server."""

    model_config = sample(key="pm_…")
    key: str = Field(min_length=1, max_length=TOKEN_CHARS_MAX, description="An API key, or a token.")


class ProviderView(TypedDict):
    """The identity provider with which browsers log in."""

    name: str
    address: str
    """The page at which a browser starts; the parameter `to` is the page to which it returns."""


class LoginOptions(TypedDict):
    """How to log in."""

    asks: bool
    """Whether the server requires a key."""
    provider: ProviderView | None


LOGIN: Final[LoginView] = {
    "id": "0badcafe0badcafe",
    "name": "ada",
    "beganAt": 1_763_700_000.0,
    "expiresAt": 1_763_743_200.0,
    "agent": "Mozilla/5.0",
}
PROVIDER: Final[ProviderView] = {"name": "id.example.com", "address": BY_PROVIDER}
example(ProviderView, PROVIDER)
example(LoginOptions, {"asks": True, "provider": PROVIDER})
example(LoginView, LOGIN)
example(LoginPage, {"logins": [LOGIN], "next": None})
example(EndedLogins, {"ended": 2})


@router.get("/api/login", responses=answer(LoginOptions, "The ways to log in."), summary="List the ways to log in")
async def list_login_methods(server: CurrentServer) -> Response:
    """Whether a login is required, and whether an identity provider is configured. Requires no key."""
    provider: ProviderView | None = None
    if server.provider is not None:
        provider = {"name": server.provider.name, "address": BY_PROVIDER}
    methods: LoginOptions = {"asks": not await server.asks_nobody(), "provider": provider}
    return JsonReply(methods)


@router.post("/api/login", responses=answers(CallerView, body=True), summary="Log in")
async def log_in(
    server: CurrentServer,
    request: Request,
    body: LoginBody,
    user_agent: Annotated[str, Header(include_in_schema=False)] = "",
) -> Response:
    """Exchange a key or a token for a cookie, which is valid until it expires or the login is ended.

    Pages cannot read the cookie. This operation does not accept a key in a header. Browsers keep the cookie only over
    https, or on this machine.
    """
    origin = address_of(request)
    caller = await server.caller(body.key, origin)
    session = server.app.acting_as(caller, via="POST /api/login", origin=origin)
    cookie, entered = await session.access.log_in(
        key="" if caller.entrance == "token" else body.key,
        agent=user_agent,
        instead_of=request.cookies.get(COOKIE, ""),
    )
    reply = JsonReply(caller_view(entered), headers={"cache-control": "no-store"})
    give_cookie(server, reply, cookie)
    return reply


@router.post("/api/logout", verb=AccessVerbs.log_out, status_code=204, responses=refusals(), summary="Log out")
async def log_out(session: CallerSession, request: Request) -> Response:
    """End the login of this browser. Other logins remain."""
    await session.access.log_out(request.cookies.get(COOKIE, ""))
    reply = Response(status_code=204)
    reply.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="strict")
    return reply


@router.get("/api/logins", verb=AccessVerbs.logins, responses=answers(LoginPage), summary="List logins")
async def list_logins(
    *,
    session: CallerSession,
    everyone: Annotated[bool, Query(description="Include the logins of all people. Requires the role admin.")] = False,
    search: Words = "",
    order: Order = "desc",
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """Logins of the caller, newest first.

    With `search`, only logins with all these words in the name or in the browser's `User-Agent`.
    """
    page = await session.access.logins(
        everyone=everyone, search=search, after=after, limit=limit, backwards=order == "desc"
    )
    return JsonReply(page)


@router.delete("/api/logins", verb=AccessVerbs.end_logins, responses=answers(EndedLogins), summary="Log out everywhere")
async def end_logins(
    session: CallerSession,
    name: Annotated[
        str | None,
        Query(max_length=200, description="The person; absent: the caller. Another person requires the role admin."),
    ] = None,
) -> Response:
    """End all logins of one person, including this one, and the streams that they opened. Keys remain valid."""
    logins: EndedLogins = {"ended": await session.access.end_logins(name)}
    return JsonReply(logins)


@router.delete(
    "/api/logins/{id}",
    verb=AccessVerbs.end_login,
    status_code=204,
    responses=refusals("no-such-login"),
    summary="End a login",
)
async def end_login(session: CallerSession, id: LoginId) -> Response:
    """Its cookie becomes invalid. Callers may end their own logins; admins any."""
    await session.access.end_login(id)
    return Response(status_code=204)


def give_cookie(server: ServerContext, reply: Response, cookie: str) -> None:
    """Set the login cookie."""
    age = int(server.app.settings.access.login.seconds)
    reply.set_cookie(COOKIE, cookie, max_age=age, path="/", secure=True, httponly=True, samesite="strict")


BACK: Final = "/api/login/oidc/callback"
VISIT: Final = "__Host-pointsman-visit"
HOME: Final = "/workflows"
SEE: Final[Described] = {303: {"description": "Redirect to a page of the provider or the app; `location` contains it."}}


@router.get(
    BY_PROVIDER,
    status_code=303,
    response_class=Response,
    responses=SEE | refusals("login-not-offered", asks=False),
    summary="Log in with the identity provider",
)
async def begin_oidc_login(
    *,
    server: CurrentServer,
    request: Request,
    to: Annotated[str, Query(max_length=1000, description="The page of the app to return to.")] = HOME,
) -> Response:
    """Redirect the browser to the provider, where the user logs in.

    The provider redirects it to `/api/login/oidc/callback`.
    """
    provider = _provider(server)
    visit = begin_provider_login()
    try:
        reply = _to(await provider.address(visit, _back(request)))
    except PointsmanError as why:
        return _to_login(why, to)
    # Lax: the callback is a navigation from the site of the provider.
    reply.set_cookie(
        VISIT,
        f"{visit.secret}.{quote(_page(to), safe='')}",
        max_age=VISIT_S,
        path="/",
        secure=True,
        httponly=True,
        samesite="lax",
    )
    return reply


@router.get(
    BACK,
    status_code=303,
    response_class=Response,
    responses=SEE | refusals("login-not-offered", asks=False),
    summary="Complete the login with the identity provider",
)
async def finish_oidc_login(
    *,
    server: CurrentServer,
    request: Request,
    code: Annotated[str, Query(max_length=CODE_CHARS_MAX, description="The authorization code of the provider.")] = "",
    state: Annotated[str, Query(max_length=200, description="The state that was sent to the provider.")] = "",
    error: Annotated[str, Query(max_length=200, description="The error of the provider.")] = "",
    iss: Annotated[str | None, Query(max_length=2000, description="The issuer of the answer.")] = None,
    user_agent: Annotated[str, Header(include_in_schema=False)] = "",
) -> Response:
    """Log the browser in, once, if it is the one that started this login, and redirect it to its page.

    Otherwise the login page shows the error.
    """
    provider = _provider(server)
    secret, _, to = request.cookies.get(VISIT, "").partition(".")
    try:
        visit = provider_login_of(secret, state)
        await provider.must_be(iss)
        if error or not code:
            raise LoginDenied("the identity provider refused the login", hint="Log in again, or use a key.")
        caller = await _entrant(server, request, provider, visit, code)
    except PointsmanError as why:
        log_event(logging.WARNING, "login.refused", {"code": why.code, "message": str(why)})
        reply = _to_login(why, unquote(to))
    else:
        session = server.app.acting_as(caller, via=f"GET {BACK}", origin=address_of(request))
        cookie, _ = await session.access.log_in(agent=user_agent, instead_of=request.cookies.get(COOKIE, ""))
        reply = _to(_page(unquote(to)))
        give_cookie(server, reply, cookie)
    reply.delete_cookie(VISIT, path="/", secure=True, httponly=True, samesite="lax")
    return reply


async def _entrant(
    server: ServerContext, request: Request, provider: IdentityProvider, visit: ProviderLogin, code: str
) -> Caller:
    """Exchange the code of the callback for a caller.

    A failure counts as a wrong key for the login throttle, since each attempt causes a request to the provider.
    """
    address = address_of(request)
    server.login_throttle.may_try(address, code)
    try:
        return await provider.caller(visit, code, _back(request))
    except PointsmanError:
        server.audit.failed_login(address)
        server.login_throttle.failed(address, code)
        raise


def _provider(server: ServerContext) -> IdentityProvider:
    if server.provider is None:
        hint = "Set `client_id` under [access.oidc] to enable it. You can also log in with a key."
        raise LoginNotOffered("no identity provider is configured here", hint=hint)
    return server.provider


def _back(request: Request) -> str:
    """Return the callback URL, with the host name that the browser used."""
    return str(request.base_url.replace(path=BACK, query="", fragment=""))


def _page(to: str) -> str:
    """Return the requested page, or the home page if the address is not a page of this app."""
    return to if is_page(to) else HOME


def _to(address: str) -> Response:
    return Response(status_code=303, headers={"location": address, "cache-control": "no-store"})


def _to_login(why: PointsmanError, to: str) -> Response:
    """Redirect to the login page, with the code of the error."""
    return _to(f"/login?{urlencode({'why': why.code, 'to': _page(to)})}")
