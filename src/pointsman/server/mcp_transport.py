"""`/mcp`: MCP over HTTP, with the protocol of the SDK and the authentication of the API.

The SDK is imported when the first client connects.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, cast

from fastapi.security.utils import get_authorization_scheme_param
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pointsman.auth.callers import Caller
from pointsman.errors import PointsmanError
from pointsman.server.bodies import body_of
from pointsman.server.context import ServerContext, address_of, caller_of
from pointsman.server.middleware import Refused, refused
from pointsman.server.problems import refusal
from pointsman.server.streaming.sse import while_admitted
from pointsman.workflows.document_work import beside

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from pointsman.mcp.tools import Context

PATH: Final = "/mcp"
CALLER: Final = "pointsman.caller"
BODY_BYTES_MAX: Final = 16 * 1024 * 1024
"""The limit of a workflow document."""
VALUES_MAX: Final = 25_000
"""The SDK decodes and validates a message on the event loop, in about 1.5 µs for each value."""
SESSION: Final = "mcp-session-id"
SESSIONS_MAX: Final = 100
"""Sessions of one caller."""
AS_TEXT: Final = (
    "Send a large workflow as text (`document` may be a string of JSON or YAML), and other large data as a file."
)


class ClientSessions:
    """The sessions of each caller: opening one more than a caller may have ends the one that was unused the longest.

    A session holds about 40 kB, and clients rarely end theirs.
    """

    def __init__(self, most: int = SESSIONS_MAX) -> None:
        self._most = most
        self._by_caller: dict[str, dict[str, None]] = {}

    def used(self, caller: str, session: str) -> list[str]:
        """Record that a caller used a session; empty: none. Return the sessions to end."""
        sessions = self._by_caller.setdefault(caller, {})
        if session:
            sessions.pop(session, None)
            sessions[session] = None
        ended = [*sessions][: max(0, len(sessions) - self._most)]
        for one in ended:
            del sessions[one]
        return ended


def _recording_sessions(send: Send, opened: list[str]) -> Send:
    """Return a `send` that adds the id of an opened session to `opened`."""

    async def noted(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == HTTPStatus.OK:
            opened[:] = [value.decode() for name, value in message["headers"] if name.lower() == SESSION.encode()]
        await send(message)

    return noted


async def _end(manager: StreamableHTTPSessionManager, scope: Scope, session: str) -> None:
    """End a session of the caller of `scope`, as its client would."""

    async def nothing() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def unheard(message: Message) -> None: ...

    headers = [(b"host", b"localhost"), (SESSION.encode(), session.encode())]
    await manager.handle_request({**scope, "method": "DELETE", "headers": headers}, nothing, unheard)


class McpMiddleware:
    """ASGI middleware that answers `/mcp` and passes on all other paths."""

    def __init__(self, app: ASGIApp, server: ServerContext) -> None:
        self._app = app
        self._server = server
        self._serving: asyncio.Task[None] | None = None
        self._manager: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._sessions = ClientSessions()
        self._stopped = asyncio.Event()
        server.on_stop.append(self._stopped.set)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            caller = await caller_of(request)
            body = body_of(scope)
            body.allow(BODY_BYTES_MAX)
            # For any media type: the SDK reads more types as JSON than the API does.
            sent = await body.measure_json(VALUES_MAX, AS_TEXT)
        except Refused as why:
            await refused(why)(scope, receive, send)
        except PointsmanError as why:
            await refusal(why)(scope, receive, send)
        else:
            manager = await self._opened()
            from pointsman.mcp.server import error_of  # Imports the SDK.

            error = await beside(len(sent), lambda: error_of(sent)) if request.method == "POST" else None
            if error is not None:
                content = error.model_dump_json(by_alias=True)
                await Response(content, HTTPStatus.BAD_REQUEST, media_type="application/json")(scope, receive, send)
                return
            scope = {**scope, CALLER: caller, "user": _user(request, caller)}
            seat = self._server.presence.enter(caller, lambda: None)
            opened: list[str] = []
            await while_admitted(seat, manager.handle_request(scope, receive, _recording_sessions(send, opened)))
            for session in self._sessions.used(caller.name, request.headers.get(SESSION) or "".join(opened)):
                await _end(manager, scope, session)

    async def _opened(self) -> StreamableHTTPSessionManager:
        """Return the session manager, started at the first call; it runs in its own task until the server stops."""
        if self._manager is None:
            self._manager = asyncio.get_running_loop().create_future()
            self._serving = asyncio.create_task(self._serve(self._manager))
        return await asyncio.shield(self._manager)

    async def _serve(self, opened: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager  # Rarely needed.

        from pointsman.mcp.server import McpEndpoint  # Imports the SDK.

        face = McpEndpoint(self._server.app, _caller, origin=lambda context: address_of(_request(context)))
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
    assert isinstance(request, Request), "over HTTP every message must belong to a request"
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
