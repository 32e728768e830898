"""`/mcp`: MCP over HTTP, with the protocol of the SDK and the authentication of the API.

The SDK is imported when the first client connects.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

from fastapi.security.utils import get_authorization_scheme_param
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from pointsman.auth.callers import Caller
from pointsman.errors import PointsmanError
from pointsman.server.bodies import body_of
from pointsman.server.context import BEARER, LOGIN, ServerContext, address_of, caller_of
from pointsman.server.middleware.security import Refused, refused
from pointsman.server.problems import refusal
from pointsman.server.streaming.sse import while_seated

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from pointsman.mcp.server import Context

PATH: Final = "/mcp"
CALLER: Final = "pointsman.caller"
BODY_BYTES_MAX: Final = 16 * 1024 * 1024
"""The limit of a workflow document."""
VALUES_MAX: Final = 25_000
"""The SDK decodes and validates a message on the event loop, in about 1.5 µs for each value."""
AS_TEXT: Final = (
    "Send a large workflow as text (`document` may be a string of JSON or YAML), and other large data as a file."
)


class McpDoor:
    """ASGI middleware that answers `/mcp` and passes on all other paths."""

    def __init__(self, app: ASGIApp, desk: ServerContext) -> None:
        self._app = app
        self._desk = desk
        self._serving: asyncio.Task[None] | None = None
        self._manager: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._stopped = asyncio.Event()
        desk.on_stop.append(self._stopped.set)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            caller = await caller_of(request, self._desk, await BEARER(request), await LOGIN(request))
            body = body_of(scope)
            body.allow(BODY_BYTES_MAX)
            # For any media type: the SDK reads more types as JSON than the API does.
            await body.measure_json(VALUES_MAX, AS_TEXT)
        except Refused as why:
            await refused(why)(scope, receive, send)
        except PointsmanError as why:
            await refusal(why)(scope, receive, send)
        else:
            manager = await self._opened()
            scope = {**scope, CALLER: caller, "user": _user(request, caller)}
            seat = self._desk.presence.enter(caller, lambda: None)
            await while_seated(seat, manager.handle_request(scope, receive, send))

    async def _opened(self) -> StreamableHTTPSessionManager:
        """Return the session manager, started at the first call; it runs in its own task until the server stops."""
        if self._manager is None:
            self._manager = asyncio.get_running_loop().create_future()
            self._serving = asyncio.create_task(self._serve(self._manager))
        return await asyncio.shield(self._manager)

    async def _serve(self, opened: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager  # Rarely needed.

        from pointsman.mcp.server import McpEndpoint  # Imports the SDK.

        face = McpEndpoint(self._desk.app, _caller, origin=lambda context: address_of(_request(context)))
        manager = StreamableHTTPSessionManager(face.server, max_request_body_size=BODY_BYTES_MAX)
        async with manager.run(), face.watching():
            opened.set_result(manager)
            await self._stopped.wait()

    async def close(self) -> None:
        """Disconnect the clients and wait until the sessions have ended."""
        self._stopped.set()
        if self._serving is not None:
            with suppress(asyncio.CancelledError):
                await self._serving


def _request(context: Context) -> Request:
    request: object = context.request
    assert isinstance(request, Request), "over HTTP every message comes with its request"
    return cast("Request", request)


def _caller(context: Context) -> Caller:
    caller = _request(context).scope[CALLER]
    assert isinstance(caller, Caller)
    return caller


def _user(request: Request, caller: Caller) -> object:
    """Return the user of the SDK, which continues a session only for the user that began it."""
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser  # Imports the SDK.
    from mcp.server.auth.provider import AccessToken

    _, token = get_authorization_scheme_param(request.headers.get("authorization"))
    return AuthenticatedUser(AccessToken(token=token or "-", client_id=caller.name, scopes=[]))
