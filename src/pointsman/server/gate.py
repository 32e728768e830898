"""The gate before all operations: how large and deep a body may be, which pages may call, which headers answers carry.

A server that asks nobody for a key listens on this machine only, but any page in a browser of this machine can call it.
So it answers only to its own names (a foreign name that points here is a page's trick), and changes nothing for a page
that it did not serve.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pointsman.server.depth import DEPTH_MAX, is_too_deep
from pointsman.server.problems import is_json, problem
from pointsman.server.replies import JsonReply

BODY_BYTES_MAX: Final = 64_000_000
OWN_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
SAFE: Final[Mapping[str, str]] = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""For answers that are data. Pages bring their own policy."""
SAYS: Final[Mapping[int, str]] = {404: "no-such-page", 405: "method-refused", 415: "media-type-refused"}
"""The code of what the framework refuses by its status; else the body is at fault."""
HINTS: Final[Mapping[int, str]] = {
    404: "/api/docs lists every address.",
    405: "The header `Allow` names the methods that it takes.",
}


class Refused(HTTPException):
    """The request is not read any further."""

    def __init__(self, status: HTTPStatus, code: str, detail: str, hint: str) -> None:
        # What is left of the body is not waited for.
        super().__init__(status, detail, headers={"connection": "close"})
        self.code, self.hint = code, hint


def refused(why: Refused) -> JsonReply:
    """As it is answered."""
    return problem(
        HTTPStatus(why.status_code), why.code, str(why.detail), hint=why.hint, headers=dict(why.headers or {})
    )


def turned_away(why: HTTPException) -> tuple[str, JsonReply]:
    """Its code, and how it is answered: also what the framework refuses by itself."""
    if isinstance(why, Refused):
        return why.code, refused(why)
    status = HTTPStatus(why.status_code)
    code = SAYS.get(status, "body-invalid")
    said = "the body cannot be read" if status == HTTPStatus.BAD_REQUEST else str(why.detail)
    return code, problem(status, code, said, hint=HINTS.get(status, ""), headers=dict(why.headers or {}))


class Gate:
    """An ASGI application around another one."""

    def __init__(
        self, app: ASGIApp, *, names: frozenset[str] | None = None, body_bytes_max: int = BODY_BYTES_MAX
    ) -> None:
        """`names`: those it answers to; None: all."""
        self._app = app
        self._names = names
        self._body_bytes_max = body_bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SAFE.items():
                    headers.setdefault(name, value)
            await send(message)

        method, headers = str(scope["method"]), Headers(scope=scope)
        counted = self._counted(receive)
        try:
            self._check(method, headers)
            if method not in READING and is_json(headers.get("content-type", "")):
                counted = await _read_whole(counted)
        except Refused as why:
            await refused(why)(scope, receive, guarded_send)
        else:
            await self._app(scope, counted, guarded_send)

    def _check(self, method: str, headers: Headers) -> None:
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) > self._body_bytes_max:
            raise self._too_large()
        if self._names is not None and _name_of(headers.get("host", "")) not in self._names:
            raise Refused(
                HTTPStatus.FORBIDDEN,
                "origin-refused",
                f"this server does not answer to the name {headers.get('host', '')[:100]!r}",
                "Call it as localhost. To serve others make a key, and say `names` under [server] in the settings.",
            )
        if method not in READING:
            self._check_origin(headers)

    def _check_origin(self, headers: Headers) -> None:
        """What changes anything comes from a program, or from a page of this server."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        foreign = origin is not None and urlsplit(origin).netloc != headers.get("host")
        if foreign or site not in ("none", "same-origin"):
            raise Refused(
                HTTPStatus.FORBIDDEN,
                "origin-refused",
                f"a page of {(origin or 'elsewhere')[:100]!r} may not change anything here",
                "Call it from a program, or from its own page.",
            )

    def _counted(self, receive: Receive) -> Receive:
        read = 0

        async def counting() -> Message:
            nonlocal read
            message = await receive()
            if message["type"] == "http.request":
                read += len(message.get("body", b""))
                if read > self._body_bytes_max:
                    raise self._too_large()
            return message

        return counting

    def _too_large(self) -> Refused:
        return Refused(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "body-too-large",
            f"the body has more than {self._body_bytes_max} bytes",
            "Send where the data are, instead of the data.",
        )


async def _read_whole(receive: Receive) -> Receive:
    """The same, where what was sent is JSON of a depth that all can read. Raises `Refused`."""
    chunks: list[bytes] = []
    while (message := await receive())["type"] == "http.request":
        chunks.append(message.get("body", b""))
        if not message.get("more_body"):
            break
    body = b"".join(chunks)
    if is_too_deep(body):
        raise Refused(
            HTTPStatus.BAD_REQUEST,
            "body-invalid",
            f"the body is nested more than {DEPTH_MAX} levels deep",
            "Nest it less: a list of things that name each other can say the same.",
        )
    ready: list[Message] = [message] if message["type"] != "http.request" else [{**message, "body": body}]

    async def again() -> Message:
        return ready.pop() if ready else await receive()

    return again


def _name_of(host: str) -> str:
    """Without the port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
