"""HTTP responses as data and as failures."""

from __future__ import annotations

import base64
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Final, Literal, TypeAlias

from pointsman.engine.failures import Failure
from pointsman.errors import PointsmanError
from pointsman.json_meter import JsonUnreadable, TooMuchJson, decode_json
from pointsman.redaction import head
from pointsman.tools.egress.failures import AnswerUnreadable, NotReached
from pointsman.tools.egress.http_calls import HttpCall, HttpResponse
from pointsman.tools.http.requests import shown
from pointsman.values import Json, JsonObject

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
    said = answer.headers.get("retry-after", "").strip()
    if said.isascii() and said.isdigit():
        return min(float(said[:12]), WAIT_S_MAX)
    try:
        span = parsedate_to_datetime(said) - parsedate_to_datetime(answer.headers.get("date", ""))
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(span.total_seconds(), 0.0), WAIT_S_MAX)


def failure_of_call(call: HttpCall, why: PointsmanError) -> Failure:
    """Return the failure of a call without a response."""
    message = f"{shown(call)}: {why}"
    return Failure(code=why.code, message=message, hint=why.hint, retryable=isinstance(why, NotReached))
