"""Calls to a server: one request and its answer or error, with retries if a repetition has no further effect.

request ─▶ no connection ───────────────▶ retry: the request was not sent
         ├ connection lost, 502 503 504 ─▶ retry if the request is repeatable; else `ServerUnreachable`
         ├ 429 ─────────────────────────▶ retry after the time that the server states: nothing was done
         └ anything else ───────────────▶ the answer, or an exception

Error responses become the product's exceptions: the class with the same code, so that the same `except` works for an
embedded `Pointsman` and over HTTP.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from http import HTTPStatus
from types import TracebackType
from typing import ClassVar, Final, Self, TypeAlias, cast
from urllib.parse import quote

import httpx2
import msgspec

from pointsman.errors import AuthorError, CallerError, EngineBug, OperatorError, PointsmanError
from pointsman.values import Json, JsonObject

RETRIES: Final = 5
WAIT_S: Final = 0.2
"""Pause before the second attempt; doubled before each further one, with jitter between clients."""
WAIT_S_MAX: Final = 5.0
CONNECT_S: Final = 10.0
AWAY: Final = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})
IN_USE: Final = b'"code":"key-in-use"'
"""Code of an idempotent request whose first copy is still being processed."""
UNSAID: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""Errors after which the server has not received the request."""

Query: TypeAlias = Mapping[str, str | int | bool | None | list[str]]


class AddressInvalid(CallerError):
    """The server's address is invalid."""

    code = "address-invalid"


class ServerCalls:
    """Connections to one server."""

    def __init__(
        self,
        url: str,
        key: str | None,
        *,
        timeout_s: float,
        retries: int = RETRIES,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise AddressInvalid(
                f"{url!r} is not the address of a server", hint="An address has the form http://localhost:8000."
            )
        self.url = url.rstrip("/")
        self._retries = retries
        self.http = httpx2.AsyncClient(
            headers={"authorization": f"Bearer {key}"} if key else {},
            timeout=httpx2.Timeout(timeout_s, connect=CONNECT_S),
            transport=transport,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.http.aclose()

    async def ask(self, path: str, query: Query | None = None) -> Json:
        """Send a GET request and return its JSON."""
        return _json(await self.call("GET", path, query=query, twice=True))

    async def tell(self, path: str, body: Json = None, *, twice: bool, key: str | None = None) -> Json:
        """Send a changing request. `twice`: a repetition has no further effect; a `key` ensures that."""
        headers = {"idempotency-key": key} if key else {}
        content = None if body is None else msgspec.json.encode(body)
        return _json(await self.call("POST", path, content=content, headers=headers, twice=twice))

    async def call(
        self,
        method: str,
        path: str,
        *,
        twice: bool,
        query: Query | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        """Return the answer. Raises the server's error, or `ServerUnreachable`."""
        params = {name: value for name, value in (query or {}).items() if value is not None}
        sent = {"content-type": "application/json", **(headers or {})} if content is not None else dict(headers or {})
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            try:
                reply = await self.http.request(method, self.url + path, params=params, content=content, headers=sent)
            except httpx2.TransportError as why:
                if last or not (twice or isinstance(why, UNSAID)):
                    raise unreachable(self.url, why) from None
                await asyncio.sleep(_wait(attempt))
                continue
            if reply.is_success:
                return reply
            away = reply.status_code in AWAY or (reply.status_code == HTTPStatus.CONFLICT and IN_USE in reply.content)
            again = reply.status_code == HTTPStatus.TOO_MANY_REQUESTS or (twice and away)
            if last or not again:
                raise refusal_in(reply.status_code, reply.content, self.url)
            await asyncio.sleep(_asked_wait(reply) or _wait(attempt))
        raise AssertionError("the last attempt answers or raises")


def unreachable(url: str, why: Exception) -> ServerUnreachable:
    reason = str(why) or type(why).__name__
    return ServerUnreachable(
        f"{url} does not answer: {reason}", hint="Is the server running? `pointsman serve` is one."
    )


def segment(text: str) -> str:
    """Return any text as a URL path segment."""
    return quote(text, safe="@")


def _wait(attempt: int) -> float:
    return min(WAIT_S * 2**attempt, WAIT_S_MAX) * (0.5 + random.random())


def _asked_wait(reply: httpx2.Response) -> float | None:
    seconds = reply.headers.get("retry-after", "")
    return min(float(seconds), 60.0) if seconds.isdigit() else None


def _json(reply: httpx2.Response) -> Json:
    return msgspec.json.decode(reply.content) if reply.content else None


EXCERPT: Final = 200
FAMILIES: Final[dict[int, type[PointsmanError]]] = {
    422: AuthorError,
    500: EngineBug,
    502: OperatorError,
    503: OperatorError,
    504: OperatorError,
}
"""Base class by status; otherwise `CallerError`."""


class ServerUnreachable(OperatorError):
    """No server answers at the address, or the answer does not come from Pointsman."""

    code: ClassVar[str] = "server-unreachable"


def refusal_in(status: int, body: bytes, where: str) -> PointsmanError:
    """Return a problem document as an exception. Another body comes from an intermediary."""
    try:
        problem = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        problem = None
    if not isinstance(problem, dict) or "code" not in problem:
        excerpt = body[:EXCERPT].decode(errors="replace")
        return ServerUnreachable(
            f"{where} answered {status}: {excerpt!r}", hint="Check that the address is that of a Pointsman server."
        )
    document = cast("JsonObject", problem)
    error_class = FAMILIES.get(status, CallerError)
    why = refused(str(document["code"]), str(document.get("detail", "")), str(document.get("hint", "")), error_class)
    problems = document.get("problems")
    vars(why).update(status=status, problems=tuple(cast("list[Json]", problems or ())))
    return why


def refused(code: str, message: str, hint: str, error_class: type[PointsmanError] = PointsmanError) -> PointsmanError:
    """Return the exception of a code; of its base class if this process does not know the code."""
    kind = _loaded(code) or cast(
        "type[PointsmanError]", type("Refused", (error_class,), {"code": code, "__module__": "refused"})
    )
    # Constructors differ, and the server has already composed the message.
    why = kind.__new__(kind)
    PointsmanError.__init__(why, message, hint=hint)
    return why


def _loaded(code: str) -> type[PointsmanError] | None:
    """Return the class of that code. A class that is not loaded occurs in no `except`."""
    left = [PointsmanError]
    while left:
        kind = left.pop()
        if kind.code == code and "code" in vars(kind):
            return kind
        left += kind.__subclasses__()
    return None
