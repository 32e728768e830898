"""Egress transport: lets HTTP requests reach only the addresses that the operator allows.

Resolving, checking and connecting are one operation, so that a name server cannot change its answer between check and
connection. No other code checks addresses. TLS certificates are checked against the host name of the URL.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Final, TypeAlias, cast

import httpcore2
import httpx2
from msgspec import Struct

from pointsman.tools.egress.addresses import Address, AddressRefused, Network, is_in, is_outside

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
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [ipaddress.ip_address(str(one[4][0]).partition("%")[0]) for one in found]


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
        for address in addresses:
            if not is_outside(address) and not is_in(address, self._rules.networks):
                hint = f'Allow it in pointsman.toml: `[http] networks = ["{address}/{address.max_prefixlen}"]`.'
                raise AddressRefused(
                    f"{host!r} is the internal address {address}, and calls to internal networks are blocked", hint=hint
                )
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
