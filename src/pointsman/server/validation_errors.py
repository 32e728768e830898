"""Validation errors of requests: the wrong field, a suggestion, and the accepted fields.

pydantic errors ─▶ messages for API callers ─▶ problem document: the first in `detail`, all in `problems`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final, cast, get_args

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import Request

from pointsman.definition.problems import near_to
from pointsman.server.json_responses import JsonReply
from pointsman.server.problems import is_json, problem
from pointsman.values import Json, JsonObject

NAME_CHARS_MAX: Final = 60
NO_OBJECT: Final = frozenset({"model_attributes_type", "model_type", "dict_type"})
RAISED: Final = "Value error, "
"""Prefix of pydantic for messages of our validators."""
JSON_TOLD: Final = "Send JSON, with `Content-Type: application/json`."

_Errors = Sequence[Mapping[str, object]]


def misread(why: RequestValidationError, request: Request) -> JsonReply:
    """Return the problem document of a validation error."""
    errors, media_type = cast("_Errors", why.errors()), request.headers.get("content-type", "")
    if errors[0]["loc"] == ("body",) and errors[0]["type"] != "missing" and not is_json(media_type):
        said = f"the body is {media_type[:NAME_CHARS_MAX]!r}, and JSON is read here"
        return problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "media-type-refused",
            said if media_type else "nothing says what the body is",
            hint=JSON_TOLD,
        )
    broken = next((error for error in errors if error["type"] == "json_invalid"), None)
    if broken is not None:
        return problem(HTTPStatus.BAD_REQUEST, "body-invalid", f"the body is not JSON: {_told(broken)}", hint=JSON_TOLD)
    route = request.scope.get("route")
    fields = _fields_of(route) if isinstance(route, APIRoute) else {}
    problems: list[Json] = [_field_problem(error) for error in errors]
    first = cast("JsonObject", problems[0])
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "request-invalid",
        f"{first['pointer']}: {first['message']}{more}",
        hint=_hint(errors, fields),
        problems=problems,
    )


def _told(error: Mapping[str, object]) -> str:
    """Return the message and the position of a JSON syntax error."""
    said = error.get("ctx")
    why = str(cast("dict[str, object]", said).get("error", "")) if isinstance(said, dict) else ""
    return f"{why} at character {_place(error)[-1]}".strip()


def _field_problem(error: Mapping[str, object]) -> JsonObject:
    kind, place = str(error["type"]), _place(error)
    return {"code": kind, "pointer": "/".join(map(str, place)), "message": _words(kind, place, str(error["msg"]))}


def _words(kind: str, place: tuple[object, ...], said: str) -> str:
    """Return the message of an error; messages of pydantic meant for programmers are replaced."""
    name = repr(str(place[-1])[:NAME_CHARS_MAX])
    if kind == "missing":
        return "nothing was sent" if place == ("body",) else f"{name} is missing"
    if kind == "extra_forbidden":
        return f"there is no field {name}"
    if kind in NO_OBJECT:
        return "it must be an object, {…}"
    return said.removeprefix(RAISED)


def _hint(errors: _Errors, fields: Mapping[str, bool]) -> str:
    """Return a suggestion and the fields of the body, if a top-level field is wrong; else a link to the reference."""
    at_fault = [error for error in errors if _place(error)[0] == "body" and len(_place(error)) <= 2]
    if not fields or not at_fault:
        return "/api/docs describes what each operation takes."
    unknown = [str(_place(error)[-1]) for error in at_fault if error["type"] == "extra_forbidden"]
    meant = [near for name in unknown[:1] for near in near_to(name, fields, most=1)]
    takes = ", ".join(f"{name} (required)" if needed else name for name, needed in fields.items())
    return f"{f'Did you mean {meant[0]!r}? ' if meant else ''}The body takes {takes}."


def _place(error: Mapping[str, object]) -> tuple[object, ...]:
    return cast("tuple[object, ...]", error["loc"])


def _fields_of(route: APIRoute) -> dict[str, bool]:
    """Return the body fields of an operation, required ones first, each with whether it is required."""
    declared = route.body_field.field_info.annotation if route.body_field is not None else None
    for kind in (declared, *get_args(declared)):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found = {field.alias or name: field.is_required() for name, field in kind.model_fields.items()}
            return dict(sorted(found.items(), key=lambda field: not field[1]))
    return {}
