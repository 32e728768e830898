"""HTTP calls read as a whole, with limits on time, size and number of redirects."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Final, TypeVar

import httpx2
from msgspec import Struct

from pointsman.engine.failures import connection_problem
from pointsman.tools.egress.addresses import (
    TRACEPARENT,
    AddressRefused,
    AnswerTooLarge,
    AnswerUnreadable,
    NotReached,
    RedirectRefused,
)
from pointsman.tools.egress.secret_hosts import SecretHosts, check_secrets
from pointsman.tools.egress.transport import EgressPolicy, EgressTransport, Resolve, resolve
from pointsman.values import Bytes

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

    def door(self) -> EgressTransport:
        """Return a transport with the same rules for the HTTP client of a library."""
        return EgressTransport(self.rules, resolve=self._resolve)

    async def send(self, call: HttpCall, guards: Sequence[SecretHosts] = ()) -> HttpResponse:
        """Return the response, whatever its status. `guards`: the secrets that the call carries.

        Raises `AddressRefused`, `RedirectRefused`, `SecretRefused`, `NotReached`, `AnswerTooLarge`,
        `AnswerUnreadable`.
        """
        return await self._bounded(self._send(call, guards))

    async def status(self, call: HttpCall) -> int:
        """Return only the status; redirects are not followed, the body is not read. Raises `AddressRefused`,
        `NotReached`."""
        return await self._bounded(self._status(call))

    async def _bounded(self, sending: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await sending
        except TimeoutError as why:
            hint = "Raise `[http] timeout` in the settings, or request less."
            raise NotReached(f"the answer was not complete within {self._timeout_s:g} s", hint=hint) from why
        except httpx2.InvalidURL:
            # The error quotes the invalid part, which may contain part of a secret.
            raise AddressRefused("the address is not a web address", hint="Write https://host/path.") from None
        except (OSError, httpx2.HTTPError) as why:
            what, hint = connection_problem(why)
            raise NotReached(what, hint=hint) from why

    def _client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            transport=self.door(), trust_env=False, follow_redirects=False, timeout=self._timeout_s
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
        kept = {name: value for name, value in after.headers.items() if name.lower() in _ELSEWHERE}
        after.headers = httpx2.Headers({"host": host, **kept})
    after.headers["accept-encoding"] = "identity"
    return after
