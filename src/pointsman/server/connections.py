"""Connections: their number, the limits of what each may send, and the deadlines after which they are closed.

    accepted ─▶ head ─────────────▶ body ───────────▶ answer ─▶ idle ─▶ next head
                │ bytes, headers    │ rate, framing   │ client reads
                │ within HEAD_S     │                 │ within STUCK_S
                └──────── waits for the client ───────┘
                          may be closed for a new connection, the longest inactive one first

These limits apply to every client, since no caller is authenticated yet: reading a request must cost the server less
than sending it costs the client. The size limit of a body depends on the operation (`bodies`).
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import httptools
import uvicorn
from uvicorn._types import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, ASGISendEvent, Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from pointsman.operations.logs import LogThrottle
from pointsman.server.problems import problem

DEAD_CLIENT_MS: Final = 30_000
"""TCP timeout: the kernel closes a connection whose client has acknowledged nothing for so long."""
STUCK_S = 30.0
"""Seconds after which a client that does not read its answer is disconnected."""
IDLE_S: Final = 75
"""Seconds until an idle connection is closed: longer than clients and proxies keep theirs (5 to 60 seconds). A client
that sends while the server closes cannot know whether its request was received."""
SEND_BYTES = 262_144
"""Kernel send buffer of each connection, in bytes."""
WRITE_BYTES: Final = 32_768
"""Bytes in the buffer of the transport above which a writer waits."""

HEAD_BYTES_MAX = 32_768
"""Limit of request line and headers of one request."""
HEADERS_MAX = 100
SLICE_BYTES: Final = 16_384
"""Bytes that are parsed at once."""
ADDRESS_BYTES_MAX: Final = 24_576
PIPELINED_MAX: Final = 32
"""Requests that may wait on one connection behind the one that is being answered."""
FRAMING_BYTES_MAX: Final = 524_288
"""Allowed bytes of a body beside its content: sizes and extensions of chunks, trailers."""
FRAMING_RATIO_MAX: Final = 8
"""Further framing allowed, as a multiple of the content: a chunk of one byte has five bytes of framing."""
HEAD_S = 10.0
"""Seconds within which a head must be complete."""
BODY_S = 15.0
"""Seconds after which a body that stays slower than `BODY_BYTES_PER_S` is refused."""
BODY_BYTES_PER_S: Final = 1_000
TICK_S = 2.5
"""Interval, in seconds, of the checks of connections that wait for their client."""
LINGER_S = 2.0
"""Seconds for which the rest of an incompletely read request is discarded after the answer, so that the client reads
the answer instead of a connection error."""
LINGER_BYTES_MAX: Final = 1_048_576
LOG: Final = LogThrottle(each=5, period_s=60.0)
"""Throttled, because clients without a key can cause these lines."""
ADMITTED: Final = "admitted"
"""Key in the state of a request, set once its caller is authenticated by a key, token or login."""
RESERVED_FILES: Final = 64
"""File descriptors that connections leave to the store, tools and models."""


@dataclass(frozen=True, slots=True)
class RefusalReason:
    """Reason to refuse a request before routing: status, code, detail and hint of the answer."""

    status: HTTPStatus
    code: str
    detail: str
    hint: str


MALFORMED: Final = RefusalReason(
    HTTPStatus.BAD_REQUEST, "request-malformed", "this is not an HTTP/1.1 request", "Use an HTTP client."
)
HEAD_TOO_LARGE: Final = RefusalReason(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    "head-too-large",
    f"the headers have more than {HEAD_BYTES_MAX} bytes, or are more than {HEADERS_MAX}",
    "Send less: large values belong into the body.",
)
ADDRESS_TOO_LONG: Final = RefusalReason(
    HTTPStatus.REQUEST_URI_TOO_LONG,
    "address-too-long",
    f"the address has more than {ADDRESS_BYTES_MAX} bytes",
    "Send long values in the body.",
)
FRAMED_BADLY: Final = RefusalReason(
    HTTPStatus.BAD_REQUEST,
    "request-malformed",
    "the framing of the body's chunks is larger than their content",
    "Send larger chunks, without extensions and trailers.",
)
UPGRADE_WITH_BODY: Final = RefusalReason(
    HTTPStatus.BAD_REQUEST,
    "request-malformed",
    "a request with a body cannot switch protocols",
    "Leave out the headers `Connection: upgrade` and `Upgrade`: this server speaks HTTP/1.1.",
)
PIPELINED: Final = RefusalReason(
    HTTPStatus.BAD_REQUEST,
    "request-malformed",
    f"more than {PIPELINED_MAX} requests wait on this connection",
    "Read answers before sending more requests.",
)
TOO_SLOW: Final = RefusalReason(
    HTTPStatus.REQUEST_TIMEOUT,
    "request-too-slow",
    f"the request did not arrive: headers within {HEAD_S:g} s, bodies at {BODY_BYTES_PER_S} bytes per second",
    "Send the request again, on a connection that is fast enough.",
)
TOO_MANY: Final = RefusalReason(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "too-many-connections",
    "the server has reached its limit of connections",
    "Try again later. To raise the limit, set `connections` under [server] in the settings.",
)


class EarlyRefusal(Exception):
    """Internal exception that ends the parsing of a request."""

    def __init__(self, why: RefusalReason) -> None:
        super().__init__(why.code)
        self.why = why


class Closable(Protocol):
    """Connection, as the table uses it."""

    @property
    def address(self) -> str: ...

    @property
    def is_admitted(self) -> bool: ...

    def give_up(self) -> None: ...


class ConnectionTable:
    """Connections of one server. Above the limit, the connection that has waited for its client the longest is closed;
    unauthenticated connections are closed first."""

    def __init__(
        self,
        most: int,
        *,
        most_per_address: int | None = None,
        proxies: tuple[IPv4Network | IPv6Network, ...] = (),
    ) -> None:
        """`most_per_address` does not apply to loopback addresses and to the proxies; None: no limit."""
        self._most = most
        self._most_per_address = most_per_address
        self._proxies = proxies
        self._open: set[Closable] = set()
        self._by_address: Counter[str] = Counter()
        self._unauthenticated: dict[Closable, None] = {}
        self._callers: dict[Closable, None] = {}

    def add(self, one: Closable) -> bool:
        """Add a connection, after closing another one if needed; False: there is no room for it."""
        self._open.add(one)
        self._by_address[one.address] += 1
        each = self._most_per_address
        if each is not None and self._by_address[one.address] > each and not self._is_exempt(one.address):
            return False
        if len(self._open) > self._most and not self.make_room():
            return False
        self.waits(one)
        return True

    def remove(self, one: Closable) -> None:
        if one not in self._open:
            return
        self._open.discard(one)
        self.works(one)
        self._by_address[one.address] -= 1
        if not self._by_address[one.address]:
            del self._by_address[one.address]

    def waits(self, one: Closable) -> None:
        """Note that a connection waits for its client."""
        self.works(one)
        (self._callers if one.is_admitted else self._unauthenticated)[one] = None

    def works(self, one: Closable) -> None:
        """Note that a complete request of a connection is being answered."""
        self._unauthenticated.pop(one, None)
        self._callers.pop(one, None)

    def make_room(self) -> bool:
        """Close the connection that has waited the longest. False: no connection is waiting."""
        while self._unauthenticated:
            one = next(iter(self._unauthenticated))
            del self._unauthenticated[one]
            if one.is_admitted:  # Its caller was authenticated while its body was being read.
                self._callers[one] = None
                continue
            one.give_up()
            return True
        if not self._callers:
            return False
        one = next(iter(self._callers))
        del self._callers[one]
        one.give_up()
        return True

    def _is_exempt(self, address: str) -> bool:
        try:
            ip = ip_address(address)
        except ValueError:
            return True
        return ip.is_loopback or any(ip in network for network in self._proxies)


class ClientTransport(asyncio.Transport):
    """Transport that sends the head of an answer with its body, and discards the rest of a request before it closes the
    connection."""

    def __init__(self, inner: asyncio.Transport, linger: Callable[[], bool], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._inner = inner
        self._linger = linger
        self._loop = loop
        self._closing = False
        self._expects_head = False
        self._head = b""
        """The head of an answer that waits for the next write."""

    def expect_head(self) -> None:
        """Send the next write together with the one behind it, at the latest in the next turn of the event loop."""
        self._expects_head = True

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        self._send_head()
        if not self._linger():
            self._inner.close()

    def close_now(self) -> None:
        self._closing = True
        self._send_head()
        self._inner.close()

    def abort(self) -> None:
        self._closing = True
        self._inner.abort()

    def is_closing(self) -> bool:
        return self._closing or self._inner.is_closing()

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if self._expects_head:
            self._expects_head, self._head = False, bytes(data)
            self._loop.call_soon(self._send_head)
            return
        if self._head:
            data, self._head = self._head + data, b""
        self.send_now(data)

    def send_now(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self._inner.write(data)

    def _send_head(self) -> None:
        if self._head:
            self.write(b"")

    def write_eof(self) -> None:
        self._send_head()
        self._inner.write_eof()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._inner.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self._inner.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._inner.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return len(self._head) + self._inner.get_write_buffer_size()


class Connection(HttpToolsProtocol):
    """HTTP/1.1 protocol of one client connection, with limits and deadlines."""

    _ours: ClientTransport
    _running: RequestResponseCycle | None = None
    """The request that is being answered; `cycle` is the last one received, which may wait behind it."""
    _giving_up: asyncio.TimerHandle | None = None
    _ticking: asyncio.TimerHandle | None = None
    _lingering: asyncio.TimerHandle | None = None
    _is_deaf = False
    """Whether further input is discarded."""
    _is_admitted = False
    _head_since: float | None = None
    """Loop time at which the incomplete head (at first: the connection) began; None: no head is incomplete."""
    _head_wire_bytes = 0
    _head_bytes = 0
    _header_count = 0
    _in_head = True
    _received = 0
    _received_before = 0
    """`_received` at the last tick."""
    _slow_s = 0.0
    _body_bytes = 0
    _body_wire_bytes = 0
    _discarded = 0
    _refused_behind: RefusalReason | None = None
    """The refusal of a request behind others that are still to be answered."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        table: ConnectionTable,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._table = table

    @property
    def address(self) -> str:
        return self.client[0] if self.client else ""

    @property
    def is_admitted(self) -> bool:
        """Whether a caller was authenticated on this connection."""
        last = self._last
        if not self._is_admitted and last is not None:
            self._is_admitted = ADMITTED in last.scope.get("state", {})
        return self._is_admitted

    @property
    def _last(self) -> RequestResponseCycle | None:
        """The last request received; None: none yet."""
        return self.cycle

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._ours = ClientTransport(transport, self._linger, self.loop)
        super().connection_made(self._ours)
        transport.set_write_buffer_limits(high=WRITE_BYTES)
        self._head_since = self.loop.time()
        if self._table.add(self):
            self._tick_later()
        else:
            self._refuse(TOO_MANY)

    def connection_lost(self, exc: Exception | None) -> None:
        self._table.remove(self)
        self._ours.close_now()
        self._disconnect()
        self._calm()
        for timer in (self._ticking, self._lingering):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def give_up(self) -> None:
        """Close the connection to make room for another one."""
        LOG.say(logging.WARNING, "http.connection.closed", {"code": TOO_MANY.code, "address": self.address})
        self._is_deaf = True
        self._ours.abort()

    # Input

    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
            self._discard(len(data))
            return
        self._unset_keepalive_if_required()
        try:
            for begin in range(0, len(data), SLICE_BYTES):
                self._take(memoryview(data)[begin : begin + SLICE_BYTES])
        except httptools.HttpParserUpgrade:
            self._is_deaf = True  # The following bytes belong to the other protocol.
        except EarlyRefusal as why:
            self._refuse(why.why)
        except httptools.HttpParserError as why:
            self._refuse(why.__context__.why if isinstance(why.__context__, EarlyRefusal) else MALFORMED)
        else:
            self._note_state()

    def _take(self, data: memoryview) -> None:
        """Parse bytes, and count those that the parser does not report. Raises `EarlyRefusal`, `HttpParserError`."""
        if self.parser is None:
            return  # The connection is lost.
        self._received += len(data)
        head = self._head_since
        if head is None and not self._is_receiving():
            self._head_since, self._head_wire_bytes = self.loop.time(), 0
        self.parser.feed_data(data)
        if self._head_since is not None and self._head_since == head:
            self._head_wire_bytes += len(data)
            if self._head_wire_bytes > HEAD_BYTES_MAX:
                raise EarlyRefusal(HEAD_TOO_LARGE)
        elif self._is_receiving():
            self._body_wire_bytes += len(data)
            framing = self._body_wire_bytes - self._body_bytes
            if framing > FRAMING_BYTES_MAX + FRAMING_RATIO_MAX * self._body_bytes:
                raise EarlyRefusal(FRAMED_BADLY)
            if self.cycle.response_complete:
                self._discard(len(data))

    def _note_state(self) -> None:
        if self._ours.is_closing():
            return
        is_asked = self._last is not None and not self._last.response_complete
        if is_asked and self._head_since is None and not self._is_receiving():
            self._table.works(self)
            return
        self._table.waits(self)
        self._tick_later()

    def _is_receiving(self) -> bool:
        """Return whether the head of a request is complete and its body is not."""
        return not self._in_head and self._last is not None and self._last.more_body

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._head_since is None:
            self._head_since, self._head_wire_bytes = self.loop.time(), 0
        self._in_head, self._head_bytes, self._header_count = True, 0, 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > ADDRESS_BYTES_MAX:
            raise EarlyRefusal(ADDRESS_TOO_LONG)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_count += 1
        self._head_bytes += len(name) + len(value)
        if self._header_count > HEADERS_MAX or self._head_bytes > HEAD_BYTES_MAX:
            raise EarlyRefusal(HEAD_TOO_LARGE)
        if self._in_head:  # Trailers are ignored: they follow the body to which headers would apply.
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        has_body = {b"content-length", b"transfer-encoding"} & {name for name, _ in self.headers}
        if has_body and self.parser is not None and self.parser.should_upgrade():
            raise EarlyRefusal(UPGRADE_WITH_BODY)
        if len(self.pipeline) >= PIPELINED_MAX:
            raise EarlyRefusal(PIPELINED)
        if not self.url.startswith((b"/", b"*")):
            self._check_authority()
        super().on_headers_complete()
        self._in_head, self._head_since = False, None
        self._body_bytes = self._body_wire_bytes = self._discarded = 0
        self._slow_s, self._received_before = 0.0, self._received

    def _check_authority(self) -> None:
        """Require the authority of an absolute request target to equal `Host`. Raises `EarlyRefusal`."""
        host = [value for name, value in self.headers if name == b"host"]
        if host != [urlsplit(self.url).netloc]:
            raise EarlyRefusal(MALFORMED)

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head = True
        self.cycle.more_body = False  # Also if the answer was sent before.
        super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, _answering(cycle, app, self._ours))

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._ours.is_closing() or not self.cycle.response_complete:
            return
        self._table.waits(self)
        if self._refused_behind is not None:
            self._ours.write(_answer(self._refused_behind))
            self._ours.close()

    # Deadlines and closing

    def _tick_later(self) -> None:
        if self._ticking is None:
            self._ticking = self.loop.call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self._ticking = None
        if self._ours.is_closing():
            return
        if self._head_since is not None:
            if self.loop.time() - self._head_since >= HEAD_S:
                self._refuse(TOO_SLOW)
                return
        elif self._is_receiving():
            is_slow = self._received - self._received_before < BODY_BYTES_PER_S * TICK_S
            self._slow_s = self._slow_s + TICK_S if is_slow and not self.flow.read_paused else 0.0
            self._received_before = self._received
            if self._slow_s >= BODY_S:
                self._refuse(TOO_SLOW)
                return
        else:
            return
        self._tick_later()

    def _refuse(self, why: RefusalReason) -> None:
        """Send the error, unless an earlier answer is unfinished or no request began, and close the connection."""
        LOG.say(logging.WARNING, "http.refused", {"code": why.code, "address": self.address})
        self._is_deaf = True
        if why is PIPELINED:
            self._refused_behind = why  # The requests before it are answered first.
            return
        pending = None if self._last is None or self._last.response_complete else self._last
        is_next = pending is None or (pending is self._running and not pending.response_started and not self._in_head)
        if is_next and (self._received or why is TOO_MANY):
            self._ours.write(_answer(why))
        self._disconnect()
        self._ours.close()

    def _disconnect(self) -> None:
        """Signal the disconnect to the request that is being answered; drop the requests behind it."""
        self.pipeline.clear()
        for cycle in (self._running, self.cycle):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()

    def _linger(self) -> bool:
        """Start to discard input if the client still sends: closing at once would cost it the answer.

        False: the connection can be closed at once.
        """
        if not (self._is_deaf or self._is_receiving()) or not self._received:
            return False
        self._is_deaf = True
        self._table.waits(self)
        self._ours.write_eof()
        self.flow.resume_reading()
        self._lingering = self.loop.call_later(LINGER_S, self._ours.close_now)
        return True

    def _discard(self, length: int) -> None:
        self._discarded += length
        if self._discarded > LINGER_BYTES_MAX:
            self._ours.close_now()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._giving_up = self.loop.call_later(STUCK_S, self._ours.abort)
        self._table.waits(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._calm()
        self._note_state()

    def _calm(self) -> None:
        if self._giving_up is not None:
            self._giving_up.cancel()

    def _unsupported_upgrade_warning(self) -> None:
        """Suppress the warning: clients that ask for an upgrade are answered in HTTP/1.1."""


def _answering(cycle: RequestResponseCycle, app: ASGI3Application, transport: ClientTransport) -> ASGI3Application:
    """Wrap an application to send the head of its answer with the body, and to close the connection after an answer
    that begins before the whole body of the request arrived.

    A client that waited for `100 Continue` never sends the body, and its next request would be read as the body.
    """

    async def answer(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        async def send_and_close(message: ASGISendEvent) -> None:
            if message["type"] == "http.response.start":
                transport.expect_head()
                if cycle.more_body:
                    headers = [one for one in message.get("headers", ()) if one[0].lower() != b"connection"]
                    message = {**message, "headers": [*headers, (b"connection", b"close")]}
            await send(message)

        await app(scope, receive, send_and_close)

    return answer


def _answer(why: RefusalReason) -> bytes:
    reply = problem(why.status, why.code, why.detail, hint=why.hint, headers={"connection": "close"})
    headers = b"".join(b"%s: %s\r\n" % (name, value) for name, value in reply.raw_headers)
    return STATUS_LINE[why.status] + headers + b"\r\n" + bytes(reply.body)


def connections_for(connections: int) -> int:
    """Return the number of connections that the limit of open files of the process allows, at most `connections`."""
    if sys.platform == "win32":  # It has no such limit.
        return connections
    import resource

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return connections
    return max(1, min(connections, files - max(RESERVED_FILES, files // 8)))


def bound(listener: socket.socket) -> None:
    """Set the options of a listening socket that its connections inherit."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
    # asyncio sets this only on explicit TCP sockets; without it each answer waits 40 ms for an acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if sys.platform == "linux":
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_CLIENT_MS)
