"""HTTP client of providers. It records raw responses and can answer a request without sending it. Slow to import.

capturing_responses() ─▶ client ─▶ response ─▶ `record_response` ─▶ status, address of a redirect, beginning of the body
answering() ─▶ client ─▶ a response that is already here; nothing is sent
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import httpx2

from pointsman.redaction import masked, unfinished

BODY_BYTES_MAX: Final = 1_000


@dataclass(slots=True)
class RawResponse:
    """The last response of a call."""

    status: int = 0
    """0: no response."""
    location: str = ""
    """Target of a redirect."""
    body: bytearray = field(default_factory=bytearray)
    """Beginning of the body; empty if it is compressed."""
    is_cut: bool = False
    """Whether the body is longer than `body`."""
    whole: bytearray = field(default_factory=bytearray)
    """All bytes of a JSON body that answers a request for a stream, as sent; empty for other responses."""
    encoding: str = ""
    """Content encoding of `whole`."""
    wants_stream: bool = False
    """Whether the request asks for a stream."""

    @property
    def text(self) -> str:
        text = self.body.decode(errors="replace")
        return " ".join((unfinished(text) if self.is_cut else masked(text)).split())


_listener: ContextVar[RawResponse | None] = ContextVar("_listener", default=None)


def expect_stream() -> RawResponse:
    """Note that the next request of the block asks for a stream; return the record of its response."""
    sent = _listener.get() or RawResponse()
    sent.wants_stream = True
    return sent


@contextmanager
def capturing_responses() -> Generator[RawResponse]:
    """Capture the responses received inside the block."""
    response = RawResponse()
    token = _listener.set(response)
    try:
        yield response
    finally:
        _listener.reset(token)


async def record_response(response: httpx2.Response) -> None:
    """Record a response; installed as a response hook of clients."""
    sent = _listener.get()
    if sent is None:
        return
    sent.status, sent.location = response.status_code, response.headers.get("location", "")
    sent.body.clear()
    sent.whole.clear()
    sent.is_cut = False
    sent.encoding = response.headers.get("content-encoding", "")
    is_whole = sent.wants_stream and response.is_success and _is_json(response)
    if isinstance(response.stream, httpx2.AsyncByteStream) and (is_whole or not sent.encoding):
        response.stream = _RecordedStream(response.stream, sent, is_whole=is_whole)


def _is_json(response: httpx2.Response) -> bool:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


StandIn: TypeAlias = httpx2.Response | Exception | Callable[[httpx2.Request], httpx2.Response]
"""A response, an error, or a function that returns the response to a request."""


@dataclass(slots=True)
class CannedResponse:
    """What answers requests in place of the network."""

    answer: StandIn
    requests: list[SentRequest] = field(default_factory=list["SentRequest"])
    """The requests that were answered."""


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request as a provider's client sends it."""

    request: httpx2.Request
    options: dict[str, Any]
    """Further arguments of `send`."""


_stand_in: ContextVar[CannedResponse | None] = ContextVar("_stand_in", default=None)


@contextmanager
def answering_with(answer: StandIn) -> Generator[CannedResponse]:
    """Answer the requests inside the block with this response or error, without sending them."""
    stand_in = CannedResponse(answer)
    token = _stand_in.set(stand_in)
    try:
        yield stand_in
    finally:
        _stand_in.reset(token)


def as_received(response: RawResponse) -> httpx2.Response:
    """Return the whole JSON body that answered a request for a stream, as a response."""
    headers = {"content-type": "application/json"} | (
        {"content-encoding": response.encoding} if response.encoding else {}
    )
    return httpx2.Response(response.status, headers=headers, content=bytes(response.whole))


class ProviderClient(httpx2.AsyncClient):
    """HTTP client that answers from `answering_with`, if the request is inside its block."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request, or return the response that stands in."""
        stand_in = _stand_in.get()
        if stand_in is None:
            return await super().send(request, **options)
        stand_in.requests.append(SentRequest(request, options))
        if isinstance(stand_in.answer, Exception):
            raise stand_in.answer
        response = stand_in.answer if isinstance(stand_in.answer, httpx2.Response) else stand_in.answer(request)
        response.request = request
        return response


class _RecordedStream(httpx2.AsyncByteStream):
    """Stream that copies its beginning, or all of it, while it is read."""

    def __init__(self, stream: httpx2.AsyncByteStream, response: RawResponse, *, is_whole: bool) -> None:
        self._stream, self._sent, self._is_whole = stream, response, is_whole

    async def __aiter__(self) -> AsyncIterator[bytes]:
        sent = self._sent
        async for chunk in self._stream:
            if not sent.encoding:
                room = BODY_BYTES_MAX - len(sent.body)
                sent.body += chunk[:room]
                sent.is_cut = sent.is_cut or len(chunk) > room
                self._is_whole = self._is_whole and bytes(sent.body).lstrip()[:1] in (b"", b"{", b"[")
            if self._is_whole:
                sent.whole += chunk
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
