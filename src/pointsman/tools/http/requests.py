"""HTTP requests from filled-in descriptions: {url, method, headers, query, body, auth}."""

from __future__ import annotations

import base64
import re
from typing import ClassVar, Final

import httpx2
import msgspec

from pointsman.errors import AuthorError
from pointsman.redaction import masked
from pointsman.tools.egress.http_calls import HttpCall
from pointsman.values import Json, JsonObject

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods without side effects, which can be repeated safely."""

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_OURS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"})


class RequestWrong(AuthorError):
    """Raised for an invalid request, such as a header with a line break or a query that is not an object."""

    code: ClassVar[str] = "request-wrong"


def request_of(described: JsonObject, *, key: str, said: str = "") -> HttpCall:
    """Return the call. `key` is sent as `Idempotency-Key` unless the method is safe. `said`: the address shown in
    messages. Raises `RequestWrong`."""
    method = str(described.get("method") or "GET").upper()
    headers = _headers(described.get("headers"))
    _authorize(headers, described.get("auth"))
    body = _body(described.get("body"), headers)
    if method not in SAFE:
        headers.setdefault("idempotency-key", key)
    return HttpCall(method=method, url=_url(described), headers=headers, body=body, said=said)


def _url(described: JsonObject) -> str:
    url, query = described.get("url"), described.get("query")
    if not isinstance(url, str):
        raise RequestWrong(f"the address is {url!r}, not a text", hint="Give `url` a text.")
    if query is None or query == {}:
        return url
    if not isinstance(query, dict):
        raise RequestWrong("`query` is no object", hint="Write name: value.")
    pairs = [
        (name, _plain(one, name))
        for name, value in query.items()
        if value is not None
        for one in (value if isinstance(value, list) else [value])
    ]
    try:
        found = httpx2.URL(url)
    except httpx2.InvalidURL:
        raise RequestWrong("the address is no web address", hint="Write https://host/path.") from None
    return str(found.copy_with(params=[*found.params.multi_items(), *pairs]))


def _headers(given: Json) -> dict[str, str]:
    if not isinstance(given, dict | None):
        raise RequestWrong("`headers` is no object", hint="Write name: value.")
    found: dict[str, str] = {}
    for name, value in (given or {}).items():
        text = _plain(value, name).strip(" \t")
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(text):
            raise RequestWrong(f"the header {name!r} cannot be sent", hint="No line breaks or control characters.")
        if name.lower() in _OURS:
            raise RequestWrong(f"the header {name!r} belongs to the connection", hint="Leave it out.")
        try:
            text.encode("ascii")
        except UnicodeEncodeError:
            raise RequestWrong(
                f"the header {name!r} has letters beyond ASCII", hint="Encode it, or send it in the body."
            ) from None
        found[name.lower()] = text
    return found


def _authorize(headers: dict[str, str], auth: Json) -> None:
    if not isinstance(auth, dict):
        return

    def said(name: str) -> str:
        value = auth.get(name)
        if not isinstance(value, str):
            raise RequestWrong(f"`auth` of the type {auth.get('type')!r} has no {name!r}", hint="Give it one.")
        return value

    match auth.get("type"):
        case "bearer":
            added = {"Authorization": f"Bearer {said('token')}"}
        case "basic":
            pair = f"{said('username')}:{said('password')}".encode()
            added = {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        case _:
            added = {str(auth.get("headerName") or "X-API-Key"): said("key")}
    headers.update(_headers({**added}))


def _body(body: Json, headers: dict[str, str]) -> bytes:
    if body is None:
        return b""
    if isinstance(body, str):
        headers.setdefault("content-type", "text/plain; charset=utf-8")
        return body.encode()
    headers.setdefault("content-type", "application/json")
    return msgspec.json.encode(body)


def _plain(value: Json, name: str) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() | float():
            return msgspec.json.encode(value).decode()
        case None:
            return ""
        case _:
            raise RequestWrong(f"{name!r} is {type(value).__name__}, not one value", hint="Give a text or a number.")


def shown(call: HttpCall) -> str:
    """Return the call for a message, without the query, which may contain a key."""
    return f"{call.method} {masked(call.said or call.url).partition('?')[0]}"
