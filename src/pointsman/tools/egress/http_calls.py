"""Outgoing HTTP calls: a transport that reaches only the addresses that the operator allows, and calls that are read as
a whole, with limits on time, size and number of redirects.

Resolving, checking and connecting are one operation, so that a name server cannot change its answer between them.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Final, TypeAlias, TypeVar, cast

import httpcore2
import httpx2
from msgspec import Struct

from pointsman.engine.failures import connection_problem
from pointsman.tools.egress.addresses import (
    TRACEPARENT,
    Address,
    AddressRefused,
    AddressUnreachable,
    AnswerTooLarge,
    AnswerUnreadable,
    Network,
    RedirectRefused,
    SecretHosts,
    check_secrets,
    is_in,
    is_outside,
)
from pointsman.values import Bytes

WEB_PORTS: Final = frozenset({80, 443})
PORT_MAX: Final = 65_535
USUAL: Final = {"http": 80, "https": 443}

Resolve: TypeAlias = Callable[[str, int], Awaitable[list[Address]]]
"""Returns all addresses of a host name; an address resolves to itself. Raises `OSError`."""

SocketOptions: TypeAlias = Iterable[
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
]


class EgressPolicy(Struct, frozen=True, kw_only=True):
    """Rules for destinations of outgoing HTTP."""

    networks: tuple[Network, ...] = ()
    """Internal networks that are allowed."""
    ports: frozenset[int] | None = WEB_PORTS
    """Allowed ports; None: all."""
    plain: bool = True
    """Whether http is allowed beside https."""


async def resolve(host: str, port: int) -> list[Address]:
    """Resolve a host name with the system's resolver."""
    try:
        return [ipaddress.ip_address(host.partition("%")[0])]
    except ValueError:
        addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [ipaddress.ip_address(str(address[4][0]).partition("%")[0]) for address in addresses]


def check_addresses(host: str, addresses: Iterable[Address], rules: EgressPolicy) -> None:
    """Raise `AddressRefused` if any address of a host is internal and not allowed, even if others are not."""
    for address in addresses:
        if not is_outside(address) and not is_in(address, rules.networks):
            hint = f'Allow it in pointsman.toml: `[http] networks = ["{address}/{address.max_prefixlen}"]`.'
            raise AddressRefused(
                f"{host!r} is the internal address {address}, and calls to internal networks are blocked", hint=hint
            )


class CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """Network backend that connects only to checked addresses."""

    def __init__(self, rules: EgressPolicy, resolve: Resolve) -> None:
        self._rules = rules
        self._resolve = resolve
        # Without anyio, httpcore2 puts another class under this name; httpx2 requires anyio.
        self._network = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore's
        local_address: str | None = None,
        socket_options: SocketOptions | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to a host. Raises `AddressRefused` if any of its addresses is internal, even if others are not."""
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError) as why:
            raise httpcore2.ConnectError(f"the host {host!r} has no address: {why}") from why
        check_addresses(host, addresses, self._rules)
        failure: Exception = httpcore2.ConnectError(f"the host {host!r} has no address")
        for address in dict.fromkeys(addresses):
            try:
                return await self._network.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as why:
                failure = why
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore's
        socket_options: SocketOptions | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Always raise `AddressRefused`: requests must not reach local sockets."""
        raise AddressRefused("calls to Unix sockets are blocked")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class EgressTransport(httpx2.AsyncBaseTransport):
    """Transport of one HTTP client. Checks every request, including redirects."""

    def __init__(self, rules: EgressPolicy, *, resolve: Resolve = resolve) -> None:
        self._rules = rules
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=_certificates(), network_backend=CheckedNetwork(rules, resolve)
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Raises `AddressRefused` and the errors of httpx."""
        admit(request.url, self._rules)
        inner = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=cast("dict[str, object]", request.extensions),
        )
        with _errors_of_httpx():
            answer = await self._pool.handle_async_request(inner)
        return httpx2.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_Body(answer),
            extensions=dict(cast("Mapping[str, object]", answer.extensions)),  # pyright: ignore[reportUnknownMemberType] - theirs
            request=request,
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


def admit(url: httpx2.URL, rules: EgressPolicy) -> None:
    """Check the parts of an address that need no resolving. Raises `AddressRefused`."""
    if url.scheme not in USUAL or not url.host:
        raise AddressRefused("the address is not a web address", hint="Write https://host/path.")
    if url.userinfo:
        raise AddressRefused(
            "the address contains credentials", hint="Write https://host/path, and credentials as `auth`."
        )
    if url.scheme == "http" and not rules.plain:
        raise AddressRefused(
            "calls over http are blocked, because they are not encrypted",
            hint="Use https, or allow http in pointsman.toml: `[http] plain = true`.",
        )
    port = url.port or USUAL[url.scheme]
    if port > PORT_MAX or (rules.ports is not None and port not in rules.ports):
        hint = f"Allow it in pointsman.toml: `[http] ports = [{port}]`{_internal(url.host, rules)}."
        raise AddressRefused(f"calls to port {port} of {url.host!r} are blocked", hint=hint)


def _internal(host: str, rules: EgressPolicy) -> str:
    """Return the setting that a host written as an internal address needs too; empty for other hosts."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return ""
    if is_outside(address) or is_in(address, rules.networks):
        return ""
    return f' and `networks = ["{address}/{address.max_prefixlen}"]`'


class _Body(httpx2.AsyncByteStream):
    """Response body as a stream."""

    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _errors_of_httpx():
            async for part in self._answer.aiter_stream():
                yield part

    async def aclose(self) -> None:
        await self._answer.aclose()


@contextmanager
def _errors_of_httpx() -> Generator[None]:
    try:
        yield
    except httpcore2.TimeoutException as why:
        raise httpx2.ReadTimeout(str(why)) from why
    except httpcore2.NetworkError as why:
        raise httpx2.NetworkError(str(why)) from why
    except (httpcore2.ProtocolError, httpcore2.UnsupportedProtocol) as why:
        raise httpx2.ProtocolError(str(why)) from why


@lru_cache(maxsize=1)
def _certificates() -> ssl.SSLContext:
    # Loaded once: loading takes longer than a call. Environment variables must not change the trusted certificates.
    return httpx2.create_ssl_context(trust_env=False)


T = TypeVar("T")

TIMEOUT_S: Final = 30.0
"""Time limit of a whole call, including redirects and body."""
BODY_BYTES_MAX: Final = Bytes(10_000_000)
REDIRECTS_MAX: Final = 4

_ELSEWHERE: Final = frozenset({"accept", "accept-language", "user-agent"})
"""Headers that a redirect to another origin keeps. Any other header could be a credential."""


class HttpCall(Struct, frozen=True, kw_only=True):
    """An HTTP request."""

    method: str
    url: str
    headers: Mapping[str, str] = {}
    body: bytes = b""
    said: str = ""
    """The address shown in messages; empty: `url`."""


class HttpResponse(Struct, frozen=True, kw_only=True):
    """An HTTP response with its whole body."""

    status: int
    headers: Mapping[str, str]
    """Header names are in lower case."""
    body: bytes
    url: str
    """The address of the last response, after redirects."""


class Outgoing:
    """Sends HTTP calls. Keeps no cookies, connections or credentials between calls."""

    def __init__(
        self,
        rules: EgressPolicy | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        body_bytes_max: int = BODY_BYTES_MAX,
        redirects_max: int = REDIRECTS_MAX,
        resolve: Resolve = resolve,
    ) -> None:
        self.rules = rules if rules is not None else EgressPolicy()
        self.body_bytes_max = body_bytes_max
        self._timeout_s = timeout_s
        self._redirects_max = redirects_max
        self._resolve: Resolve = resolve

    def egress_transport(self) -> EgressTransport:
        """Return a transport with the same rules for the HTTP client of a library."""
        return EgressTransport(self.rules, resolve=self._resolve)

    async def send(self, call: HttpCall, guards: Sequence[SecretHosts] = ()) -> HttpResponse:
        """Return the response, whatever its status. `guards`: the secrets that the call carries.

        Raises `AddressRefused`, `RedirectRefused`, `SecretRefused`, `AddressUnreachable`, `AnswerTooLarge`,
        `AnswerUnreadable`.
        """
        return await self._bounded(self._send(call, guards))

    async def status(self, call: HttpCall) -> int:
        """Return only the status; redirects are not followed, the body is not read. Raises `AddressRefused`,
        `AddressUnreachable`."""
        return await self._bounded(self._status(call))

    async def _bounded(self, sending: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await sending
        except TimeoutError as why:
            hint = "Raise `[http] timeout` in the settings, or request less."
            raise AddressUnreachable(f"the answer was not complete within {self._timeout_s:g} s", hint=hint) from why
        except httpx2.InvalidURL:
            # The error quotes the invalid part, which may contain part of a secret.
            raise AddressRefused("the address is not a web address", hint="Write https://host/path.") from None
        except (OSError, httpx2.HTTPError) as why:
            what, hint = connection_problem(why)
            raise AddressUnreachable(what, hint=hint) from why

    def _client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            transport=self.egress_transport(), trust_env=False, follow_redirects=False, timeout=self._timeout_s
        )

    async def _status(self, call: HttpCall) -> int:
        async with self._client() as client:
            answer = await client.send(_request(client, call), stream=True)
            await answer.aclose()
            return answer.status_code

    async def _send(self, call: HttpCall, guards: Sequence[SecretHosts]) -> HttpResponse:
        async with self._client() as client:
            request = _request(client, call)
            for hop in range(self._redirects_max + 1):
                check_secrets(request, guards, led_on=hop > 0)
                answer = await client.send(request, stream=True)
                try:
                    following = answer.next_request
                    if following is None:
                        return await self._read(answer)
                finally:
                    await answer.aclose()
                request = _led_on(request, following)
        raise RedirectRefused(f"it redirects more than {self._redirects_max} times")

    async def _read(self, answer: httpx2.Response) -> HttpResponse:
        # An unrequested encoding is refused, not decoded: a few bytes could expand to gigabytes.
        encoding = answer.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise AnswerUnreadable(f"the answer has the encoding {encoding!r}, although none was requested")
        most = self.body_bytes_max
        body = bytearray()
        async for part in answer.aiter_raw():
            body += part
            if len(body) > most:
                raise AnswerTooLarge(f"the answer has more than {most} bytes", hint="Request less data.")
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return HttpResponse(status=answer.status_code, headers=headers, body=bytes(body), url=str(answer.url))


def _request(client: httpx2.AsyncClient, call: HttpCall) -> httpx2.Request:
    request = client.build_request(call.method, call.url, content=call.body or None, headers=call.headers)
    request.headers["accept-encoding"] = "identity"
    traced = TRACEPARENT.get()
    if traced is not None:
        request.headers.setdefault("traceparent", traced)
    if "user-agent" not in {name.lower() for name in call.headers}:
        request.headers["user-agent"] = "pointsman"
    return request


def _led_on(before: httpx2.Request, after: httpx2.Request) -> httpx2.Request:
    """Return the request that follows a redirect. Raises `RedirectRefused`."""
    if before.url.scheme == "https" and after.url.scheme == "http":
        raise RedirectRefused("it redirects from https to http")
    after.headers.pop("cookie", None)
    if (before.url.scheme, before.url.host, before.url.port) != (after.url.scheme, after.url.host, after.url.port):
        if after.method not in ("GET", "HEAD"):
            raise RedirectRefused(f"it redirects the request body to another host, {after.url.host!r}")
        host = after.headers["host"]
        headers = {name: value for name, value in after.headers.items() if name.lower() in _ELSEWHERE}
        after.headers = httpx2.Headers({"host": host, **headers})
    after.headers["accept-encoding"] = "identity"
    return after
