"""What a provider sent, for failures whose exception does not say it: a page of a proxy, a redirect, half a stream.

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
    """0: there was none."""
    location: str = ""
    """Where a redirect leads."""
    body: bytearray = field(default_factory=bytearray)
    """The beginning; empty where it is compressed."""
    is_cut: bool = False
    """There was more of the body."""

    @property
    def text(self) -> str:
        text = self.body.decode(errors="replace")
        return " ".join((unfinished(text) if self.is_cut else masked(text)).split())


_listener: ContextVar[RawResponse | None] = ContextVar("_listener", default=None)


@contextmanager
def listening() -> Generator[RawResponse]:
    """What comes in inside."""
    sent = RawResponse()
    token = _listener.set(sent)
    try:
        yield sent
    finally:
        _listener.reset(token)


async def note(response: httpx2.Response) -> None:
    """The hook of a client for responses."""
    sent = _listener.get()
    if sent is None:
        return
    sent.status, sent.location = response.status_code, response.headers.get("location", "")
    sent.body.clear()
    sent.is_cut = False
    if isinstance(response.stream, httpx2.AsyncByteStream) and not response.headers.get("content-encoding"):
        response.stream = _Overheard(response.stream, sent)


class _Overheard(httpx2.AsyncByteStream):
    """A stream that keeps its beginning while it is read."""

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
