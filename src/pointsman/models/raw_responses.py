"""Captures raw responses of providers for failures whose exception lacks them: proxy pages, redirects, broken streams.

    listening() ─▶ client ─▶ response ─▶ `note` ─▶ status, address of a redirect, beginning of the body

Slow to import, like `wire`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

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

    @property
    def text(self) -> str:
        text = self.body.decode(errors="replace")
        return " ".join((unfinished(text) if self.is_cut else masked(text)).split())


_listener: ContextVar[RawResponse | None] = ContextVar("_listener", default=None)


@contextmanager
def listening() -> Generator[RawResponse]:
    """Capture the responses received inside the block."""
    sent = RawResponse()
    token = _listener.set(sent)
    try:
        yield sent
    finally:
        _listener.reset(token)


async def note(response: httpx2.Response) -> None:
    """Record a response; installed as a response hook of clients."""
    sent = _listener.get()
    if sent is None:
        return
    sent.status, sent.location = response.status_code, response.headers.get("location", "")
    sent.body.clear()
    sent.is_cut = False
    if isinstance(response.stream, httpx2.AsyncByteStream) and not response.headers.get("content-encoding"):
        response.stream = _Overheard(response.stream, sent)


class _Overheard(httpx2.AsyncByteStream):
    """Stream that copies its beginning while it is read."""

    def __init__(self, stream: httpx2.AsyncByteStream, sent: RawResponse) -> None:
        self._stream, self._sent = stream, sent

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            room = BODY_BYTES_MAX - len(self._sent.body)
            self._sent.body += chunk[:room]
            self._sent.is_cut = self._sent.is_cut or len(chunk) > room
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
