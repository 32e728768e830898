"""JSON responses, and errors over HTTP: problem documents (RFC 9457), and the mapping of error codes to statuses.

{"type": "urn:pointsman:error:wrong-status", "title": "Conflict", "status": 409, "detail": "…", "code": "wrong-status",
 "hint": "…", "problems": […]}
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final, NotRequired, cast, get_args

import msgspec
from fastapi import Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import Request
from typing_extensions import TypedDict

from pointsman.auth.rate_limiter import TooManyRequests
from pointsman.definition.problems import Problem, ProblemView, near_to
from pointsman.errors import (
    AuthorError,
    CallerError,
    EngineBug,
    FieldInvalid,
    OperatorError,
    PointsmanError,
    sentences,
)
from pointsman.executions.start import PartialRunInvalid
from pointsman.executions.views import ExecutionView
from pointsman.values import Json, JsonView

_ENCODER = msgspec.json.Encoder()


class JsonReply(Response):
    """Response with a JSON value."""

    def __init__(
        self,
        value: Json | JsonView,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        media_type: str = "application/json",
    ) -> None:
        super().__init__(_ENCODER.encode(value), status, headers, media_type)


ONE: Final = "/api/workflows/executions/ID"
OPERATIONS: Final[Mapping[str, str]] = {
    "list": "GET /api/workflows/executions",
    "list --json": "GET /api/sessions",
    "show": f"GET {ONE}",
    "events": f"GET {ONE}/events",
    "cancel": f"POST {ONE}/cancel",
    "resume": f"POST {ONE}/resume",
    "retry": f"POST {ONE}/retry",
    "fork": f"POST {ONE}/fork",
    "delete": f"DELETE {ONE}",
    "notifications list": "GET /api/notifications",
    "secrets set": "PUT /api/secrets/ID",
}
"""HTTP operations equivalent to commands; `ID` stands for the argument of the command."""
_NAMES: Final = "|".join(sorted(OPERATIONS, key=len, reverse=True))
COMMAND: Final = re.compile(rf"`pointsman ({_NAMES})(?![\w-])(?: ([\w.-]+))?[^`]*`")


def over_http(hint: str) -> str:
    """Replace the commands in a hint by the equivalent HTTP operations."""
    return COMMAND.sub(lambda command: f"`{OPERATIONS[command[1]].replace('ID', command[2] or 'ID')}`", hint)


def phrase_of(status: int) -> str:
    """Return the name of a status in RFC 9110. Python before 3.13 has older names."""
    return _NEW_PHRASES.get(status) or HTTPStatus(status).phrase


_NEW_PHRASES: Final = {
    413: "Content Too Large",
    414: "URI Too Long",
    416: "Range Not Satisfiable",
    422: "Unprocessable Content",
}


MEDIA_TYPE: Final = "application/problem+json"
RATE_LIMITED: Final = "model-rate-limited"

_BY_STATUS: Final[dict[HTTPStatus, tuple[str, ...]]] = {
    HTTPStatus.UNAUTHORIZED: ("not-signed-in",),
    HTTPStatus.FORBIDDEN: (
        "not-allowed",
        "not-an-approver",
        "not-delegable",
        "hidden-by-redaction",
        "origin-refused",
        "proxy-unknown",
        "trigger-stopped",
    ),
    HTTPStatus.NOT_FOUND: (
        "answer-link-invalid",
        "login-not-offered",
        "no-such-agent",
        "no-such-artifact",
        "no-such-key",
        "no-such-login",
        "no-such-notice",
        "no-such-provider",
        "no-such-notification",
        "no-such-tool-connection",
        "not-published",
        "not-found",
        "no-such-revision",
        "no-such-row",
        "no-such-schedule",
        "no-such-secret",
        "no-such-setting",
        "no-such-gate",
        "no-such-step",
        "no-such-tool",
        "no-such-trigger",
        "no-such-memory",
        "unknown-execution",
        "unknown-folder",
        "unknown-memory",
        "unknown-session",
        "unknown-comment",
        "unknown-dataset",
        "unknown-evaluation",
        "unknown-template",
        "unknown-workflow",
        "webhook-refused",
    ),
    HTTPStatus.METHOD_NOT_ALLOWED: ("method-refused",),
    HTTPStatus.GONE: ("answer-link-expired",),
    HTTPStatus.CONFLICT: (
        "agent-taken",
        "too-many-comments",
        "answer-differs",
        "answer-link-used",
        "built-in-workflow",
        "entry-moved",
        "execution-exists",
        "execution-unfinished",
        "gate-changed",
        "gate-closed",
        "gate-ambiguous",
        "id-taken",
        "journal-moved",
        "key-exists",
        "key-in-use",
        "key-reused",
        "last-admin",
        "model-override",
        "migration-refused",
        "design-model-missing",
        "step-not-repeatable",
        "not-steerable",
        "concurrency-limit-reached",
        "revision-moved",
        "version-name-taken",
        "folder-exists",
        "folder-not-empty",
        "schedule-exists",
        "script-differs",
        "session-busy",
        "session-closed",
        "session-moved",
        "store-copy-unsupported",
        "ownership-lost",
        "provider-in-settings",
        "notification-in-settings",
        "tool-connection-in-settings",
        "setting-fixed",
        "credential-not-connected",
        "tool-not-callable",
        "too-many-buffered-events",
        "votes-differ",
        "webhook-taken",
        "workflow-disabled",
        "workflow-exists",
        "wrong-status",
    ),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: ("body-too-large", "event-too-large", "files-too-large", "state-too-large"),
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: ("media-type-refused",),
    HTTPStatus.UNPROCESSABLE_ENTITY: (
        "action-not-offered",
        "answer-invalid",
        "edit-refused",
        "input-invalid",
        "memory-not-a-list",
        "name-invalid",
        "openapi-unreadable",
        "provider-invalid",
        "notification-invalid",
        "tool-connection-invalid",
        "publication-invalid",
        "version-invalid",
        "comment-invalid",
        "folder-invalid",
        "credential-invalid",
        "authorization-refused",
        "request-invalid",
        "schedule-invalid",
        "secret-invalid",
        "setting-invalid",
        "sharing-invalid",
        "partial-run-invalid",
        "unstorable-value",
    ),
    HTTPStatus.TOO_MANY_REQUESTS: ("too-many-requests",),
    HTTPStatus.BAD_GATEWAY: ("answer-failed",),
    HTTPStatus.INSUFFICIENT_STORAGE: ("store-full",),
}
STATUS_OF: Final[dict[str, HTTPStatus]] = {code: status for status, codes in _BY_STATUS.items() for code in codes}
"""Status by error code; for other codes the class of the error decides (`status_of`)."""


def status_of(why: PointsmanError) -> HTTPStatus:
    """Return the HTTP status of an error."""
    status = STATUS_OF.get(why.code)
    if status is not None:
        return status
    match why:
        case CallerError():
            return HTTPStatus.BAD_REQUEST
        case AuthorError():
            return HTTPStatus.UNPROCESSABLE_ENTITY
        case EngineBug():
            return HTTPStatus.INTERNAL_SERVER_ERROR
        case OperatorError():
            return HTTPStatus.SERVICE_UNAVAILABLE
        case _:
            return HTTPStatus.INTERNAL_SERVER_ERROR


def refusal(why: PointsmanError) -> JsonReply:
    """Return the problem document of an error."""
    problems = cast("tuple[Problem, ...]", getattr(why, "problems", ()))
    status = status_of(why)
    headers = {"www-authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else {}
    if isinstance(why, TooManyRequests):
        headers["retry-after"] = str(math.ceil(why.retry_after_s))
    return problem(
        status,
        why.code,
        str(why),
        hint=over_http(why.hint),
        headers=headers,
        problems=[*(problem.to_json() for problem in problems), *_problem_of_field(why)],
        more={"node": why.node, "why": why.why} if isinstance(why, PartialRunInvalid) else None,
    )


def _problem_of_field(why: PointsmanError) -> list[FieldProblem]:
    """Return the problem with its field, if the error is about one."""
    if not isinstance(why, FieldInvalid) or not why.field:
        return []
    pointer = "path/name" if why.field == "name" else f"body/{why.field}"
    return [{"code": why.code, "pointer": pointer, "message": sentences(str(why), over_http(why.hint))}]


def run_reply(view: ExecutionView) -> JsonReply:
    """Return the output of an execution, or a problem document with the reason and the next request.

    The header `Pointsman-Scripted` marks output of the scripted model.
    """
    if view["status"] == "completed":
        return JsonReply(view["output"], headers={"pointsman-scripted": "true"} if view["scripted"] else None)
    errors = view["errors"]
    why = errors[-1] if errors else None
    code = f"execution-{view['status']}" if why is None else why["code"]
    limited = code == RATE_LIMITED
    status = HTTPStatus.TOO_MANY_REQUESTS if limited else HTTPStatus.BAD_GATEWAY if errors else HTTPStatus.CONFLICT
    message = f"the execution is {view['status']}" if why is None else why["message"]
    address = f"/api/workflows/executions/{view['executionId']}"
    hint = (
        f"POST {address}/retry continues from the failed step." if errors else f"GET {address} shows what it waits for."
    )
    more: ProblemMembers = {"session_id": view["sessionId"], "execution_id": view["executionId"]}
    return problem(
        status,
        code,
        message,
        hint=hint,
        more=more,
    )


def is_json(media_type: str) -> bool:
    """Return whether a media type is JSON."""
    kind = media_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


class FieldProblem(TypedDict):
    """One error: in a field of the request, or at a position of a document."""

    code: str
    pointer: str
    message: str


class ProblemMembers(TypedDict, total=False):
    """Members that only some errors have."""

    node: str
    """The node that a partial run cannot use."""
    why: str
    """Why a partial run cannot use the node."""
    session_id: str | None
    """The session of a run without output."""
    execution_id: str
    """The execution of a run without output."""


class ProblemDocument(ProblemMembers):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: NotRequired[str]
    problems: NotRequired[list[FieldProblem | ProblemView]]


def problem_document(
    status: HTTPStatus, code: str, detail: str, *, hint: str = "", problems: Sequence[FieldProblem | ProblemView] = ()
) -> ProblemDocument:
    """Return a problem document."""
    document: ProblemDocument = {
        "type": f"urn:pointsman:error:{code}",
        "title": phrase_of(status),
        "status": int(status),
        "detail": detail,
        "code": code,
    }
    if hint:
        document["hint"] = hint
    if problems:
        document["problems"] = [*problems]
    return document


def problem(
    status: HTTPStatus,
    code: str,
    detail: str,
    *,
    hint: str = "",
    headers: dict[str, str] | None = None,
    problems: Sequence[FieldProblem | ProblemView] = (),
    more: ProblemMembers | None = None,
) -> JsonReply:
    """Return the response with a problem document; `more`: additional members."""
    document = problem_document(status, code, detail, hint=hint, problems=problems)
    return JsonReply({**(more or {}), **document}, status=status, headers=headers, media_type=MEDIA_TYPE)


NAME_CHARS_MAX: Final = 60
NO_OBJECT: Final = frozenset({"model_attributes_type", "model_type", "dict_type"})
RAISED: Final = "Value error, "
"""Prefix of pydantic for messages of our validators."""
JSON_HINT: Final = "Send JSON, with `Content-Type: application/json`."

_Errors = Sequence[Mapping[str, object]]


def validation_reply(why: RequestValidationError, request: Request) -> JsonReply:
    """Return the problem document of a validation error."""
    errors, media_type = cast("_Errors", why.errors()), request.headers.get("content-type", "")
    if errors[0]["loc"] == ("body",) and errors[0]["type"] != "missing" and not is_json(media_type):
        message = f"the body has the media type {media_type[:NAME_CHARS_MAX]!r}, but only JSON is accepted"
        return problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "media-type-refused",
            message if media_type else "the request has no `Content-Type` for its body",
            hint=JSON_HINT,
        )
    broken = next((error for error in errors if error["type"] == "json_invalid"), None)
    if broken is not None:
        return problem(
            HTTPStatus.BAD_REQUEST, "body-invalid", f"the body is not JSON: {_json_error_text(broken)}", hint=JSON_HINT
        )
    route = request.scope.get("route")
    fields = _fields_of(route) if isinstance(route, APIRoute) else {}
    problems = [_field_problem(error) for error in errors]
    first = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "request-invalid",
        f"{first['pointer']}: {first['message']}{more}",
        hint=_hint(errors, fields),
        problems=problems,
    )


def _json_error_text(error: Mapping[str, object]) -> str:
    """Return the message and the position of a JSON syntax error."""
    context = error.get("ctx")
    why = str(cast("dict[str, object]", context).get("error", "")) if isinstance(context, dict) else ""
    return f"{why} at character {_location_of(error)[-1]}".strip()


def _field_problem(error: Mapping[str, object]) -> FieldProblem:
    kind, place = str(error["type"]), _location_of(error)
    return {"code": kind, "pointer": "/".join(map(str, place)), "message": _words(kind, place, str(error["msg"]))}


def _words(kind: str, place: tuple[object, ...], message: str) -> str:
    """Return the message of an error; messages of pydantic meant for programmers are replaced."""
    name = repr(str(place[-1])[:NAME_CHARS_MAX])
    if kind == "missing":
        return "no body was sent" if place == ("body",) else f"{name} is missing"
    if kind == "extra_forbidden":
        return f"there is no field {name}"
    if kind in NO_OBJECT:
        return "it must be an object, {…}"
    return message.removeprefix(RAISED)


def _hint(errors: _Errors, fields: Mapping[str, bool]) -> str:
    """Return a suggestion and the fields of the body, if a top-level field is wrong; else a link to the reference."""
    at_fault = [error for error in errors if _location_of(error)[0] == "body" and len(_location_of(error)) <= 2]
    if not fields or not at_fault:
        return "/api/docs describes the parameters and the body of each operation."
    unknown = [str(_location_of(error)[-1]) for error in at_fault if error["type"] == "extra_forbidden"]
    suggestions = [near for name in unknown[:1] for near in near_to(name, fields, most=1)]
    takes = ", ".join(f"{name} (required)" if needed else name for name, needed in fields.items())
    return f"{f'Did you mean {suggestions[0]!r}? ' if suggestions else ''}The body takes {takes}."


def _location_of(error: Mapping[str, object]) -> tuple[object, ...]:
    return cast("tuple[object, ...]", error["loc"])


def _fields_of(route: APIRoute) -> dict[str, bool]:
    """Return the body fields of an operation, required ones first, each with whether it is required."""
    declared = route.body_field.field_info.annotation if route.body_field is not None else None
    for kind in (declared, *get_args(declared)):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            fields = {field.alias or name: field.is_required() for name, field in kind.model_fields.items()}
            return dict(sorted(fields.items(), key=lambda field: not field[1]))
    return {}
