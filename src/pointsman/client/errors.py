"""What a server refuses, as the exceptions of the product: the class of the same code, so that `except` is the same
whether an installation is embedded or asked over HTTP."""

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
"""Who must act, by status; otherwise the caller."""


class ServerUnreachable(OperatorError):
    """Nothing answers at the server's address, or what answers is no Pointsman."""

    code: ClassVar[str] = "server-unreachable"


def refusal_in(status: int, body: bytes, where: str) -> PointsmanError:
    """A problem document as an exception. What is none comes from something in between."""
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
    """The exception of a code; one of its family where this process has not heard of it."""
    kind = _loaded(code) or cast(
        "type[PointsmanError]", type("Refused", (family,), {"code": code, "__module__": "refused"})
    )
    # Constructors differ, and what they would work out was worked out by the server.
    why = kind.__new__(kind)
    PointsmanError.__init__(why, message, hint=hint)
    return why


def _loaded(code: str) -> type[PointsmanError] | None:
    """The class of that code. One that is not loaded is in nobody's `except`."""
    left = [PointsmanError]
    while left:
        kind = left.pop()
        if kind.code == code and "code" in vars(kind):
            return kind
        left += kind.__subclasses__()
    return None
