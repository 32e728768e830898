"""Server context of the operations: the installation, the caller of a request, streams, limits, audit log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Any, ClassVar, Final, TypeVar, cast

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials
from starlette.types import ASGIApp, Receive, Scope, Send

from pointsman.app import Pointsman
from pointsman.auth.audit import Audit
from pointsman.auth.callers import LOCAL, Caller, Role
from pointsman.auth.keys import Keys
from pointsman.auth.oidc_login import IdentityProvider, Tokens, is_token
from pointsman.auth.people import KnownPeople, Logins
from pointsman.auth.rate_limiter import LoginThrottle, OpenStream, Presence, RateLimiter, StreamQuota
from pointsman.auth.redaction import Redactor
from pointsman.auth.verbs import VerbRule
from pointsman.errors import CallerError
from pointsman.operations.metrics import Measuring
from pointsman.operations.readiness import Lifecycle
from pointsman.server.bodies import STATE, RequestBody, Unchecked
from pointsman.server.connections import ADMITTED
from pointsman.server.middleware import READING, Refused
from pointsman.server.streaming.broker import SseBroker
from pointsman.session import Session

T = TypeVar("T")


class BackgroundTasks:
    """Background tasks of one server."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of the work. Cancelling this call ends the wait, not the work."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Cancel the running work and wait until it has ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


BEARER: Final = HTTPBearer(
    auto_error=False,
    description="An API key, or a token of the identity provider.",
    scheme_name="key",
)
CALLER: Final = "known_caller"
"""Key of the caller in the state of a request."""
RULE: Final = "verb_rule"
"""Key of the rule of the operation's verb in the state of a request."""
SESSION: Final = "session"
"""Key of the session in the state of a request."""
OF_PROXIES: Final = frozenset(
    {
        "cdn-loop",
        "client-ip",
        "forwarded",
        "front-end-https",
        "proxy-connection",
        "true-client-ip",
        "via",
        "x-client-ip",
        "x-cloud-trace-context",
        "x-cluster-client-ip",
        "x-host",
        "x-nginx-proxy",
        "x-proxyuser-ip",
        "x-real-ip",
        "x-request-start",
        "x-scheme",
        "x-varnish",
    }
)
OF_PROXIES_BEGIN: Final = (
    "akamai-",
    "cf-",
    "fastly-",
    "fly-",
    "incap-",
    "ngrok-",
    "remote-",
    "ssl-client-",
    "tailscale-",
    "x-akamai-",
    "x-amz-cf-",
    "x-amzn-",
    "x-appengine-",
    "x-arr-",
    "x-auth-request-",
    "x-authentik-",
    "x-azure-",
    "x-bluecoat-",
    "x-envoy-",
    "x-forwarded",
    "x-goog-",
    "x-ms-client-principal",
    "x-original-",
    "x-pomerium-",
    "x-remote-",
    "x-sucuri-",
    "x-vercel-",
    "x-webauth-",
)
"""Prefixes of headers that proxies add, beside the names in `OF_PROXIES`."""
OLD_HTTP: Final = "1.0"
"""The version in which nginx forwards requests unless it is configured otherwise, without any header of a proxy."""
COOKIE: Final = "__Host-pointsman"
LOGIN: Final = APIKeyCookie(
    name=COOKIE, auto_error=False, description="What `POST /api/login` gave a browser.", scheme_name="login"
)


class NotSignedIn(CallerError):
    """The server requires a key, and the request has none or an unknown one."""

    code: ClassVar[str] = "not-signed-in"


class ProxyUnknown(CallerError):
    """The server accepts local requests without a key, but a proxy forwards this request for someone else."""

    code: ClassVar[str] = "proxy-unknown"


@dataclass(frozen=True, slots=True)
class ServerContext:
    """State and services of one server."""

    app: Pointsman
    keys: Keys
    logins: Logins
    tokens: Tokens | None
    provider: IdentityProvider | None
    """Identity provider for browser logins; None: not configured."""
    known_people: KnownPeople
    """People known from tokens of the identity provider."""
    audit: Audit
    rate_limiter: RateLimiter
    stream_quota: StreamQuota
    login_throttle: LoginThrottle
    webhook_rate_limiter: RateLimiter
    """Rate limiter of webhook calls, by client address."""
    broker: SseBroker
    measuring: Measuring
    redact: Redactor
    """Removes secrets, by their names or values."""
    is_local: bool
    """Whether the server listens on loopback only: requests need no key until the first key exists."""
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    """Phase of the process: serving, leading, stopping."""
    on_stop: list[Callable[[], None]] = field(default_factory=list["Callable[[], None]"])
    """Callbacks that end other long-lived connections when the server stops."""
    background: BackgroundTasks = field(default_factory=BackgroundTasks)
    unchecked: Unchecked = field(default_factory=Unchecked)
    presence: Presence = field(init=False)
    """Callers with open streams."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "presence", Presence(self.still))

    def disconnect(self) -> None:
        """Notify all subscribers that the server stops, without waiting for them."""
        self.broker.disconnect()
        for leave in self.on_stop:
            leave()

    async def close(self) -> None:
        """Stop background work and write the pending audit entries."""
        self.presence.close()
        await self.background.close()
        await self.broker.close()
        self.measuring.close()
        await self.audit.close()

    async def asks_nobody(self) -> bool:
        """Return whether requests need no key: the server is local, without an identity provider, and no key exists."""
        return self.is_local and self.tokens is None and not await self.keys.are_made()

    async def caller(self, credential: str, address: str) -> Caller:
        """Return the caller of an API key or a token.

        Raises `NotSignedIn`, `TooManyRequests`, `IssuerUnreachable`.
        """
        self.login_throttle.may_try(address, credential)
        if self.tokens is not None and is_token(credential):
            caller = await self.tokens.caller(credential)
            if caller is not None:
                await self.known_people.note(caller)
        else:
            caller = await self.keys.caller(credential)
        if caller is None:
            self.audit.failed_login(address)
            self.login_throttle.failed(address, credential)
            why = "this key or token is not valid here"
            raise NotSignedIn(why, hint="It was revoked, has expired, or belongs to another store or issuer.")
        self.login_throttle.opened(credential)
        return caller

    async def visitor(self, cookie: str, address: str) -> Caller | None:
        """Return the caller of a login cookie; None: the login is unknown or has ended. Raises `TooManyRequests`."""
        self.login_throttle.may_try(address, cookie)
        caller = await self.logins.caller(cookie)
        if caller is None:
            self.audit.failed_login(address)
            self.login_throttle.failed(address, cookie)
        else:
            self.login_throttle.opened(cookie)
        return caller

    async def still(self, caller: Caller) -> bool:
        """Return whether the credential of the caller is still valid for the same caller."""
        if caller.until is not None and caller.until <= self.app.clock.now():
            return False
        match caller.entrance:
            case "local":
                return await self.asks_nobody()
            case "key":
                return await self.keys.caller_of(caller.proof) == caller
            case "login":
                return await self.logins.caller_of(caller.proof) == caller
            case "token" | "shell":
                return True
            case "link":
                return False  # It opens no streams.

    def take_stream(self, caller: Caller) -> OpenStream:
        """Count an open stream of the caller until the returned `OpenStream` is left. Raises `TooManyRequests`."""
        leave = (lambda: None) if caller.entrance == "local" else self.stream_quota.take(caller.name)
        return self.presence.enter(caller, leave)

    def take_visitor_stream(self, publisher: Caller, visitor: str) -> OpenStream:
        """Do the same for a visitor of a published workflow: it counts for this visitor, and ends with the access of
        the publisher."""
        return self.presence.enter(publisher, self.stream_quota.take(visitor))


class ContextMiddleware:
    """ASGI middleware: gives requests their server context (`server_of`) and a body with a size limit (`body_of`)."""

    def __init__(self, app: ASGIApp, server: ServerContext, *, body_bytes_max: int) -> None:
        self._app = app
        self._server = server
        self._body_bytes_max = body_bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = RequestBody(scope, receive, self._body_bytes_max)
        scope.setdefault("state", {}).update({"server": self._server, STATE: body})
        await self._app(scope, body, send)


def server_of(request: Request) -> ServerContext:
    return cast("ServerContext", request.state.server)


async def current_server(request: Request) -> ServerContext:
    """Dependency on the server context. Async, because FastAPI calls sync dependencies in another thread."""
    return server_of(request)


async def caller_of(request: Request) -> Caller:
    """Authenticate a request by its key, else by its cookie. The result is cached in the state of the request.

    Raises `NotSignedIn`, `TooManyRequests`, `ProxyUnknown`, `IssuerUnreachable`, `Refused`.
    """
    recorded = cast("Caller | None", request.scope["state"].get(CALLER))
    if recorded is not None:
        return recorded
    server = server_of(request)
    caller = await _let_in(request, server, await BEARER(request), await LOGIN(request))
    request.scope["state"][CALLER] = caller
    if caller.entrance != "local":
        request.scope["state"][ADMITTED] = True
        server.rate_limiter.take(caller.name)
    return caller


def address_of(request: Request) -> str:
    """Return the address of the client; empty: unknown."""
    return request.client.host if request.client else ""


def named_action(request: Request) -> tuple[str, str]:
    """Return the audit action (method and route) and its target (path parameters) of a request."""
    path = str(getattr(request.scope.get("route"), "path", request.scope["path"]))
    return f"{request.method} {path}", ", ".join(f"{name}={value}" for name, value in request.path_params.items())


async def note_refusal(request: Request, code: str) -> None:
    """Write an audit entry that the requested action was refused, if the request was audited."""
    state = cast("dict[str, object]", request.scope.get("state") or {})
    rule, session = state.get(RULE), state.get(SESSION)
    if isinstance(rule, VerbRule) and isinstance(session, Session):
        await session.acting.record_refusal(rule, code)


async def _let_in(
    request: Request, server: ServerContext, credentials: HTTPAuthorizationCredentials | None, cookie: str | None
) -> Caller:
    if credentials is None:
        caller = None if cookie is None else await server.visitor(cookie, address_of(request))
        if caller is not None:
            _must_be_own_page(request)
            return _log_caller(request, caller)
        if await server.asks_nobody():
            return _local(request)
        raise NotSignedIn(
            "the request has no key", hint="Send `Authorization: Bearer KEY`; `pointsman keys add` creates one."
        )
    if await server.asks_nobody():
        return _local(request)  # Clients of model APIs always send some key.
    return _log_caller(request, await server.caller(credentials.credentials, address_of(request)))


def _local(request: Request) -> Caller:
    """Return the local caller. Raises `ProxyUnknown`: a local proxy forwards requests of other machines."""
    forwarded = sorted(name for name in request.headers if name in OF_PROXIES or name.startswith(OF_PROXIES_BEGIN))
    if request.scope["http_version"] == OLD_HTTP:
        forwarded.append(f"HTTP/{OLD_HTTP}")
    if forwarded:
        raise ProxyUnknown(
            f"a proxy forwards this request ({', '.join(forwarded)[:200]}), and the settings contain no "
            "`names` of the server",
            hint="Create a key (`pointsman keys add NAME --role admin`), and set `names` and `proxies` under [server].",
        )
    return _log_caller(request, LOCAL)


def _log_caller(request: Request, caller: Caller) -> Caller:
    """Note the name of the caller for the request log."""
    request.state.caller = caller.name
    return caller


def _must_be_own_page(request: Request) -> None:
    """Require an origin header for a change by cookie, since browsers send cookies with requests of any page.

    The security middleware has already checked the value of the header. Raises `Refused`.
    """
    if request.method not in READING and not {"origin", "sec-fetch-site"} & set(request.headers):
        raise Refused(
            HTTPStatus.FORBIDDEN,
            "origin-refused",
            "a request with a login cookie has neither an `Origin` nor a `Sec-Fetch-Site` header",
            "Browsers send these headers. In programs, send a key: `Authorization: Bearer KEY`.",
        )


CurrentServer = Annotated[ServerContext, Depends(current_server)]


async def open_session(request: Request) -> Caller:
    """Authenticate a request and open its session: the verbs of all domains for its caller. Raises as `caller_of`."""
    caller = await caller_of(request)
    what, target = named_action(request)
    session = server_of(request).app.acting_as(caller, via=what, target=target, origin=address_of(request))
    request.scope["state"][SESSION] = session
    return caller


async def current_caller(request: Request) -> Caller:
    """Dependency on the caller. The route has authenticated it before FastAPI resolves dependencies."""
    return cast("Caller", request.scope["state"][CALLER])


async def current_session(request: Request) -> Session:
    """Dependency on the session that the route has opened."""
    return cast("Session", request.scope["state"][SESSION])


CurrentCaller = Annotated[Caller, Depends(current_caller)]
CallerSession = Annotated[Session, Depends(current_session)]


@dataclass(frozen=True, slots=True)
class VerbDependency:
    """Dependency that names the verb of an operation. The route requires the role of the verb before the body is read.

    The verb checks the role again, and writes the audit entry.
    """

    rule: VerbRule

    @property
    def role(self) -> Role:
        return self.rule.role

    @property
    def what(self) -> str:
        return self.rule.what

    async def __call__(self) -> None:
        """Do nothing: the route reads the rule, see `ApiRoute`."""
