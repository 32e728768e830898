"""HTTP requests from data, {url, method, headers, query, body, auth}, and responses as data and failures."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import ClassVar, Final, Literal, TypeAlias

import httpx2
import msgspec

from pointsman.engine.failures import Failure
from pointsman.errors import AuthorError, PointsmanError
from pointsman.json_meter import JsonUnreadable, TooMuchJson, decode_json
from pointsman.redaction import head, masked
from pointsman.tools.egress.addresses import AddressUnreachable, AnswerUnreadable
from pointsman.tools.egress.http_calls import HttpCall, HttpResponse
from pointsman.values import Json, JsonObject

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods without side effects, which can be repeated safely."""

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_OURS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"})


class RequestInvalid(AuthorError):
    """Raised for an invalid request, such as a header with a line break or a query that is not an object."""

    code: ClassVar[str] = "request-invalid"


def request_of(described: JsonObject, *, key: str, said: str = "") -> HttpCall:
    """Return the call. `key` is sent as `Idempotency-Key` unless the method is safe. `said`: the address shown in
    messages. Raises `RequestInvalid`."""
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
        raise RequestInvalid(f"the address is {url!r}, not a text", hint="Give `url` a text.")
    if query is None or query == {}:
        return url
    if not isinstance(query, dict):
        raise RequestInvalid("`query` is not an object", hint="Use an object: name: value.")
    pairs = [
        (name, _plain(element, name))
        for name, value in query.items()
        if value is not None
        for element in (value if isinstance(value, list) else [value])
    ]
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        raise RequestInvalid("the address is not a web address", hint="Write https://host/path.") from None
    return str(parsed.copy_with(params=[*parsed.params.multi_items(), *pairs]))


def _headers(headers: Json) -> dict[str, str]:
    if not isinstance(headers, dict | None):
        raise RequestInvalid("`headers` is not an object", hint="Use an object: name: value.")
    result: dict[str, str] = {}
    for name, value in (headers or {}).items():
        text = _plain(value, name).strip(" \t")
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(text):
            raise RequestInvalid(
                f"the header {name!r} cannot be sent", hint="Remove line breaks and control characters."
            )
        if name.lower() in _OURS:
            raise RequestInvalid(f"the header {name!r} is set by the connection", hint="Omit it.")
        try:
            text.encode("ascii")
        except UnicodeEncodeError:
            raise RequestInvalid(
                f"the header {name!r} contains characters beyond ASCII", hint="Encode it, or send it in the body."
            ) from None
        result[name.lower()] = text
    return result


def _authorize(headers: dict[str, str], auth: Json) -> None:
    if not isinstance(auth, dict):
        return

    def credential(name: str) -> str:
        value = auth.get(name)
        if not isinstance(value, str):
            raise RequestInvalid(f"`auth` of the type {auth.get('type')!r} has no {name!r}", hint="Set it.")
        return value

    match auth.get("type"):
        case "bearer":
            added = {"Authorization": f"Bearer {credential('token')}"}
        case "basic":
            pair = f"{credential('username')}:{credential('password')}".encode()
            added = {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        case _:
            added = {str(auth.get("headerName") or "X-API-Key"): credential("key")}
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
            raise RequestInvalid(f"{name!r} is {type(value).__name__}, not one value", hint="Give a text or a number.")


def shown(call: HttpCall) -> str:
    """Return the call for a message, without the query, which may contain a key."""
    return f"{call.method} {masked(call.said or call.url).partition('?')[0]}"


ResponseType: TypeAlias = Literal["json", "text", "blob"]
Mask: TypeAlias = Callable[[bytes], bytes]
"""Masks secrets in bytes."""

AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which a retry may succeed."""
WAIT_S_MAX: Final = 3600.0
"""Upper limit of `Retry-After`: a response must not stop an execution for years."""
EXCERPT: Final = 1000


def unmasked(data: bytes) -> bytes:
    return data


def result_of(answer: HttpResponse, as_: ResponseType | None, mask: Mask = unmasked) -> JsonObject:
    """Return {status, headers, data, ok}. Raises `AnswerUnreadable` for invalid JSON."""
    headers: JsonObject = {name: value for name, value in answer.headers.items() if name != "set-cookie"}
    return {"status": answer.status, "headers": headers, "data": data_of(answer, as_, mask), "ok": is_ok(answer)}


def is_ok(answer: HttpResponse) -> bool:
    return 200 <= answer.status < 300


def data_of(answer: HttpResponse, as_: ResponseType | None, mask: Mask = unmasked) -> Json:
    """Return the body as JSON, text or base64 (`blob`); by its content type if `as_` is None. Text and binary data are
    masked here, before they are encoded again; the caller masks JSON, as a tree."""
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    said_json = kind.endswith(("/json", "+json"))
    if as_ == "json" or (as_ is None and said_json):
        if not answer.body:
            return None
        try:
            return decode_json(answer.body)
        except JsonUnreadable as why:
            if is_ok(answer):
                wrong = str(why) if isinstance(why, TooMuchJson) else f"is not JSON: {why}"
                raise AnswerUnreadable(f"the answer {wrong}", hint="Ask for `responseType: text`.") from None
            as_ = "text"
    body = mask(answer.body)
    if as_ == "blob":
        return base64.b64encode(body).decode()
    try:
        return body.decode()
    except UnicodeDecodeError:
        if as_ == "text":
            return body.decode(errors="replace")
        return base64.b64encode(body).decode()


def failure_of_status(call: HttpCall, answer: HttpResponse, mask: Mask = unmasked) -> Failure | None:
    """Return the failure of a status outside 200 to 299, or None. The body is masked before it is shortened."""
    if is_ok(answer):
        return None
    excerpt = head(mask(answer.body).decode(errors="replace"), EXCERPT)
    return Failure(
        code="http-status",
        message=f"{shown(call)} answered {answer.status}",
        retryable=answer.status in AGAIN,
        retry_after_s=wait_of(answer) if answer.status in AGAIN else None,
        details={"status": answer.status, "data": excerpt},
    )


def wait_of(answer: HttpResponse) -> float | None:
    """Return the seconds of `Retry-After`. A date is relative to the `Date` of the response."""
    seconds = answer.headers.get("retry-after", "").strip()
    if seconds.isascii() and seconds.isdigit():
        return min(float(seconds[:12]), WAIT_S_MAX)
    try:
        span = parsedate_to_datetime(seconds) - parsedate_to_datetime(answer.headers.get("date", ""))
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(span.total_seconds(), 0.0), WAIT_S_MAX)


def failure_of_call(call: HttpCall, why: PointsmanError) -> Failure:
    """Return the failure of a call without a response."""
    message = f"{shown(call)}: {why}"
    return Failure(code=why.code, message=message, hint=why.hint, retryable=isinstance(why, AddressUnreachable))
