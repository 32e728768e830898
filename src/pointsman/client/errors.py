"""Converts error responses of a server into the product's exceptions: the class with the same code, so that the same
`except` works for an embedded `Pointsman` and over HTTP.
"""

from __future__ import annotations

from typing import ClassVar, Final, cast

import msgspec

from pointsman.errors import AuthorError, CallerError, EngineBug, OperatorError, PointsmanError
from pointsman.values import Json, JsonObject

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
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        said = None
    if not isinstance(said, dict) or "code" not in said:
        excerpt = body[:EXCERPT].decode(errors="replace")
        return ServerUnreachable(f"{where} answered {status}: {excerpt!r}", hint="Is a Pointsman server there?")
    document = cast("JsonObject", said)
    family = FAMILIES.get(status, CallerError)
    why = refused(str(document["code"]), str(document.get("detail", "")), str(document.get("hint", "")), family)
    problems = document.get("problems")
    vars(why).update(status=status, problems=tuple(cast("list[Json]", problems or ())))
    return why


def refused(code: str, message: str, hint: str, family: type[PointsmanError] = PointsmanError) -> PointsmanError:
    """Return the exception of a code; of its base class if this process does not know the code."""
    kind = _loaded(code) or cast(
        "type[PointsmanError]", type("Refused", (family,), {"code": code, "__module__": "refused"})
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
