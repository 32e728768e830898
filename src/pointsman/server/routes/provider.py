"""Browser login with the identity provider: redirect to it, callback, login cookie."""

from __future__ import annotations

import logging
from typing import Annotated, Final
from urllib.parse import quote, unquote, urlencode

from fastapi import Header, Query, Request, Response

from pointsman.auth.callers import Caller
from pointsman.auth.oidc_login import (
    CODE_CHARS_MAX,
    VISIT_S,
    IdentityProvider,
    LoginDenied,
    LoginNotOffered,
    Visit,
    begin_visit,
    visit_of,
)
from pointsman.errors import PointsmanError
from pointsman.operations.logs import say
from pointsman.server.context import COOKIE, CurrentServer, ServerContext, address_of
from pointsman.server.operation import Operations
from pointsman.server.pages import is_page
from pointsman.server.routes.logins import BY_PROVIDER, give_cookie
from pointsman.server.routes.response_docs import Described, refusals

router = Operations(tags=["access"])

BACK: Final = "/api/login/oidc/callback"
VISIT: Final = "__Host-pointsman-visit"
HOME: Final = "/workflows"
SEE: Final[Described] = {303: {"description": "To a page: of the provider, or of the app. `location` names it."}}


@router.get(
    BY_PROVIDER,
    status_code=303,
    response_class=Response,
    responses=SEE | refusals("login-not-offered", asks=False),
    summary="Log in with the identity provider",
)
async def visit_provider(
    *,
    server: CurrentServer,
    request: Request,
    to: Annotated[str, Query(max_length=1000, description="The page of the app to come back to.")] = HOME,
) -> Response:
    """Sends a browser to the provider, where it says who it is. It comes back to `/api/login/oidc/callback`."""
    provider = _provider(server)
    visit = begin_visit()
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
    summary="Come back from the identity provider",
)
async def come_back(
    *,
    server: CurrentServer,
    request: Request,
    code: Annotated[str, Query(max_length=CODE_CHARS_MAX, description="What the provider gave.")] = "",
    state: Annotated[str, Query(max_length=200, description="What it was sent.")] = "",
    error: Annotated[str, Query(max_length=200, description="Why it gave nothing.")] = "",
    iss: Annotated[str | None, Query(max_length=2000, description="Which provider it is.")] = None,
    user_agent: Annotated[str, Header(include_in_schema=False)] = "",
) -> Response:
    """Lets a browser in, once, if it is the one that was sent, and takes it to its page. Else its page says why not."""
    provider = _provider(server)
    secret, _, to = request.cookies.get(VISIT, "").partition(".")
    try:
        visit = visit_of(secret, state)
        provider.must_be(iss)
        if error or not code:
            raise LoginDenied("the provider let nobody in", hint="Log in again, or show a key.")
        caller = await _entrant(server, request, provider, visit, code)
    except PointsmanError as why:
        say(logging.WARNING, "login.refused", {"code": why.code, "message": str(why)})
        reply = _to_login(why, unquote(to))
    else:
        session = server.app.acting_as(caller, via=f"GET {BACK}", origin=address_of(request))
        cookie, _ = await session.access.log_in(agent=user_agent, instead_of=request.cookies.get(COOKIE, ""))
        reply = _to(_page(unquote(to)))
        give_cookie(server, reply, cookie)
    reply.delete_cookie(VISIT, path="/", secure=True, httponly=True, samesite="lax")
    return reply


async def _entrant(
    server: ServerContext, request: Request, provider: IdentityProvider, visit: Visit, code: str
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
        hint = "`access.oidc` with a `client_id` offers it; a key opens the server too."
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
