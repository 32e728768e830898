"""HTTP/1.1 transport of providers: pooled connections, and the parser of Node.js (httptools). Slow to import.

    request ─▶ an idle connection, or a new one ─▶ head and body out ─▶ head of the response ─▶ body ─┬─▶ idle again
                                                                                                     └─▶ closed
The transport of httpx2 parses in Python and passes every read and write through several layers: about 0.7 ms of CPU for
one streamed reply, more than everything else in a round of an agent. This transport takes a third of that.

It sends over TCP and TLS to the address itself. Requests through a proxy are left to httpx2, see `transport_for`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Final, TypeAlias, cast
from urllib.request import getproxies

import httptools
import httpx2

CONNECTIONS_MAX: Final = 100
"""Open connections of one transport; further requests wait for one of them."""
IDLE_MAX: Final = 20
"""Connections of one transport that stay open without a request."""
IDLE_S_MAX: Final = 5.0
"""Age after which an idle connection is not used again: the server may be closing it."""
BUFFER_BYTES_MAX: Final = 262_144
"""Received bytes after which a connection stops reading until they are consumed."""
HEAD_BYTES_MAX: Final = 102_400
"""Largest head of a response, in bytes."""
HAPPY_EYEBALLS_S: Final = 0.25
"""Pause before the next address of a host is tried too (RFC 8305)."""
_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}
_WITHOUT_BODY: Final = frozenset({"HEAD", "CONNECT"})
"""Methods whose responses end before the announced body; providers are not asked with them."""
_INFORMATIONAL: Final = range(100, 200)
_UNFRAMED: Final = frozenset({b"content-length", b"transfer-encoding"})
"""Headers without which a body ends with its connection."""

Origin: TypeAlias = tuple[str, str, int]
"""Scheme, host and port."""


def transport_for_environment() -> httpx2.AsyncBaseTransport | None:
    """Return the transport for direct connections; None if the environment names a proxy: httpx2 knows its rules."""
    return None if getproxies() else Http1Transport()


class _ProviderConnection(asyncio.Protocol):
    """One connection; it carries one exchange at a time."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.idle_since = 0.0
        self.is_closed = False
        self._transport: asyncio.Transport
        self._parser = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._is_full = False
        """Whether the send buffer is full."""
        self._is_paused = False
        """Whether reading is paused."""
        self._is_asked = False
        self._reset()

    def _reset(self) -> None:
        self.status, self.reason, self.version = 0, b"", b"HTTP/1.1"
        self.headers: list[tuple[bytes, bytes]] = []
        self.has_head = False
        self.is_complete = False
        self._is_reusable = False
        self._head_bytes = 0
        self._chunks: deque[bytes] = deque()
        self._buffered = 0

    # The exchange

    async def exchange(self, request: httpx2.Request) -> None:
        """Send a request and return when the head of its response is here. Raises `httpx2.TransportError`."""
        self._reset()
        self._is_asked = True
        limits = timeouts_of(request)
        head = head_of(request)
        try:
            content = request.content
        except httpx2.RequestNotRead:
            await self._send_parts(head, request, limits.get("write"))
        else:
            self._transport.write(head + content)
        await self._sent(limits.get("write"))
        while not self.has_head:
            if self._error is not None:
                raise self._error
            await self._wait(limits.get("read"), httpx2.ReadTimeout)

    async def _send_parts(self, head: bytes, request: httpx2.Request, limit_s: float | None) -> None:
        """Send a body whose length is not known before, or which is read from a file."""
        is_chunked = "content-length" not in request.headers
        self._transport.write(head)
        async for part in cast("httpx2.AsyncByteStream", request.stream):
            if part:
                self._transport.write(b"%x\r\n%b\r\n" % (len(part), part) if is_chunked else part)
                await self._sent(limit_s)
        if is_chunked:
            self._transport.write(b"0\r\n\r\n")

    async def _sent(self, limit_s: float | None) -> None:
        """Return when the server takes more. It may answer, or leave, before it has the whole body."""
        while self._is_full and not self.is_closed and not self.has_head:
            await self._wait(limit_s, httpx2.WriteTimeout)

    async def read(self, limit_s: float | None) -> bytes:
        """Return the next bytes of the body; empty at its end. Raises `httpx2.TransportError`."""
        while not self._chunks:
            if self.is_complete:
                return b""
            if self._error is not None:
                raise self._error
            await self._wait(limit_s, httpx2.ReadTimeout)
        found = b"".join(self._chunks)
        self._chunks.clear()
        self._buffered = 0
        if self._is_paused and not self.is_closed:
            self._is_paused = False
            self._transport.resume_reading()
        return found

    async def _wait(self, limit_s: float | None, error: type[httpx2.TimeoutException]) -> None:
        """Return when something has changed."""
        loop = asyncio.get_running_loop()
        self._waiter = waiter = loop.create_future()
        timer = None if limit_s is None else loop.call_later(limit_s, _expire, waiter, error)
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def ended(self) -> bool:
        """End the exchange; return whether the connection can carry another one. Otherwise it is closed."""
        self._is_asked = False
        if self.is_complete and self._is_reusable and not self.is_closed and not self._is_full and not self._is_paused:
            return True
        self.close()
        return False

    def close(self) -> None:
        self.is_closed = True
        self._transport.abort()

    # Events of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if not self._is_asked or self.is_complete:  # Nothing was asked for: whatever it is, it answers no request.
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(httpx2.RemoteProtocolError("the server switched protocols"))
        except httptools.HttpParserError as why:
            self._fail(httpx2.RemoteProtocolError(str(why.__context__ or why)))
        if self._buffered > BUFFER_BYTES_MAX and not self.is_closed:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True
        if exc is not None:
            self._fail(httpx2.ReadError(str(exc)))
        elif not self.has_head:
            self._fail(httpx2.RemoteProtocolError("Server disconnected without sending a response."))
        elif _UNFRAMED.isdisjoint(name.lower() for name, _ in self.headers):
            self.is_complete = True
        else:
            self._fail(httpx2.RemoteProtocolError("the server disconnected before the body was complete"))
        self._wake()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._wake()

    def _fail(self, why: Exception) -> None:
        if self.is_complete:
            self._is_reusable = False
            return
        self._error = self._error or why
        self.close()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # Events of the parser

    def on_message_begin(self) -> None:
        if self.is_complete:
            raise ValueError("the server sent more than one response")

    def on_status(self, status: bytes) -> None:
        self.reason += status

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > HEAD_BYTES_MAX:
            raise ValueError(f"the head of the response has more than {HEAD_BYTES_MAX} bytes")
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self.version = b"HTTP/" + self._parser.get_http_version().encode()
        self.has_head = self.status not in _INFORMATIONAL

    def on_body(self, body: bytes) -> None:
        self._chunks.append(body)
        self._buffered += len(body)

    def on_message_complete(self) -> None:
        if self.has_head:
            self.is_complete, self._is_reusable = True, self._parser.should_keep_alive()
        else:
            self._reset()


class Http1Transport(httpx2.AsyncBaseTransport):
    """Sends requests of one client. A request gets the connection that was used last."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        """`context`: for TLS; None: that of httpx2, with the certificates that the environment names."""
        self._context = context
        self._idle: list[_ProviderConnection] = []
        self._open: set[_ProviderConnection] = set()
        self._free = asyncio.Semaphore(CONNECTIONS_MAX)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return the response; its stream reads the body. Raises `httpx2.TransportError`."""
        limits = timeouts_of(request)
        await self._take_turn(limits.get("pool"))
        connection = None
        try:
            connection = await self._connection(origin_of(request), limits.get("connect"))
            await connection.exchange(request)
        except BaseException:
            self.release(connection)
            raise
        return httpx2.Response(
            connection.status,
            headers=connection.headers,
            stream=_ReplyBody(self, connection, limits.get("read")),
            extensions={"http_version": connection.version, "reason_phrase": connection.reason},
        )

    async def aclose(self) -> None:
        """Close all connections."""
        self._idle.clear()
        for one in [*self._open]:
            one.close()
        self._open.clear()
        await asyncio.sleep(0)  # The loop closes aborted sockets in its next turn, which may be the last one.

    async def _take_turn(self, limit_s: float | None) -> None:
        if not self._free.locked():
            await self._free.acquire()
            return
        try:
            async with asyncio.timeout(limit_s):
                await self._free.acquire()
        except TimeoutError:
            raise httpx2.PoolTimeout(f"all {CONNECTIONS_MAX} connections are in use") from None

    async def _connection(self, origin: Origin, limit_s: float | None) -> _ProviderConnection:
        """Return an idle connection, or a new one."""
        oldest = asyncio.get_running_loop().time() - IDLE_S_MAX
        for one in [*self._idle]:
            if one.is_closed or one.idle_since < oldest:
                self._drop(one)
        for one in reversed(self._idle):
            if one.origin == origin:
                self._idle.remove(one)
                return one
        made = await self._connected(origin, limit_s)
        self._open.add(made)
        return made

    async def _connected(self, origin: Origin, limit_s: float | None) -> _ProviderConnection:
        scheme, host, port = origin
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(limit_s):
                _, made = await loop.create_connection(
                    lambda: _ProviderConnection(origin),
                    host,
                    port,
                    ssl=self._tls() if scheme == "https" else None,
                    # The race of asyncio loses the socket of a connection that is cancelled as it stands.
                    happy_eyeballs_delay=None if _is_address(host) else HAPPY_EYEBALLS_S,
                )
        except TimeoutError as why:
            raise httpx2.ConnectTimeout(f"no connection to {host}:{port}") from why
        except (OSError, ValueError) as why:  # Names that no address can have raise UnicodeError.
            raise httpx2.ConnectError(str(why)) from why
        return made

    def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = httpx2.create_ssl_context()
            self._context.set_alpn_protocols(["http/1.1"])
        return self._context

    def release(self, connection: _ProviderConnection | None) -> None:
        """Keep the connection of an exchange that is over, if it can be used again."""
        self._free.release()
        if connection is None:
            return
        if not connection.ended():
            self._open.discard(connection)
            return
        connection.idle_since = asyncio.get_running_loop().time()
        self._idle.append(connection)
        if len(self._idle) > IDLE_MAX:
            self._drop(self._idle[0])

    def _drop(self, connection: _ProviderConnection) -> None:
        self._idle.remove(connection)
        self._open.discard(connection)
        connection.close()


class _ReplyBody(httpx2.AsyncByteStream):
    """The body of one response. Closing it before its end closes the connection."""

    def __init__(self, transport: Http1Transport, connection: _ProviderConnection, limit_s: float | None) -> None:
        self._transport = transport
        self._connection: _ProviderConnection | None = connection
        self._limit_s = limit_s

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self._connection is not None and (chunk := await self._connection.read(self._limit_s)):
            yield chunk

    async def aclose(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self._transport.release(connection)


def origin_of(request: httpx2.Request) -> Origin:
    """Return the origin of a request. Raises `httpx2.UnsupportedProtocol`."""
    url = request.url
    if url.scheme not in _PORTS or request.method in _WITHOUT_BODY:
        raise httpx2.UnsupportedProtocol(f"requests like {request.method} {url.scheme}: are not sent to providers")
    return url.scheme, url.raw_host.decode("ascii"), url.port or _PORTS[url.scheme]


def timeouts_of(request: httpx2.Request) -> Mapping[str, float | None]:
    """Return the limits of a request in seconds: `connect`, `read`, `write`, `pool`."""
    return cast("Mapping[str, float | None]", request.extensions.get("timeout", {}))


def head_of(request: httpx2.Request) -> bytes:
    """Return the head of a request. Raises `httpx2.LocalProtocolError` for a header that would end its line."""
    lines = [b"%b %b HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path)]
    lines += [b"%b: %b" % pair for pair in request.headers.raw]
    head = b"\r\n".join(lines)
    breaks = len(lines) - 1
    if head.count(b"\r") != breaks or head.count(b"\n") != breaks or b"\0" in head:
        raise httpx2.LocalProtocolError("a header of the request contains a line break or a NUL")
    return head + b"\r\n\r\n"


def _is_address(host: str) -> bool:
    """Return whether a host is an address, which no name server is asked for."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _expire(waiter: asyncio.Future[None], error: type[httpx2.TimeoutException]) -> None:
    if not waiter.done():
        waiter.set_exception(error("the provider sent nothing in time"))
