"""Operations on artifacts and uploaded files, and export and import of executions."""

from __future__ import annotations

import tempfile
from pathlib import Path as FilePath
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import quote

from fastapi import Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.datastructures import UploadFile
from typing_extensions import TypedDict

from pointsman.auth.subjects import SESSION_NAME_MAX, InputInvalid
from pointsman.executions.inputs import UploadedFile, input_with_files, media_type_of
from pointsman.executions.verbs import ExecutionVerbs
from pointsman.executions.views import ArtifactView, StartedExecution
from pointsman.json_meter import LESS, DuplicateKey, JsonUnreadable, TooMuchJson, decode_sent_json
from pointsman.operations.verbs import OperationVerbs
from pointsman.server.context import CallerSession
from pointsman.server.operation import Operations
from pointsman.server.problems import JsonReply
from pointsman.server.routes.executions import STARTED, started
from pointsman.server.routes.parameters import Eid, Id, Key
from pointsman.server.schemas.answers import answers, bytes_answer, example, raw_body, refusals, text_answer
from pointsman.values import Json

router = Operations(prefix="/api/workflows", tags=["files"])


FIELDS_MAX: Final = 100
"""Maximal number of fields, and of files, in one form."""
NDJSON: Final = "application/x-ndjson"
EXPORT: Final = '{"pointsman": "export", "format": 1, "executions": ["exec-…"]}\n…\n'
FORM: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "input": {"type": "string", "description": "The other fields of the input, as JSON."},
                        "sessionId": {"type": "string", "description": "The conversation of this turn."},
                        "wait": {"type": "string", "enum": ["true", "false"]},
                    },
                    "additionalProperties": {"type": "string", "format": "binary"},
                },
                "example": {"input": '{"question": "What is this?"}', "picture": "(the file)"},
            }
        },
    }
}


class ArtifactList(TypedDict):
    """The files of an execution, by name."""

    artifacts: list[ArtifactView]
    """All files; the settings limit their number."""


example(ArtifactList, {"artifacts": [{"path": "report.md", "bytes": 4812}]})


@router.post(
    "/{id}/execute/files",
    verb=ExecutionVerbs.start,
    responses=STARTED,
    status_code=202,
    summary="Start an execution with files",
    openapi_extra=FORM,
)
async def execute(session: CallerSession, request: Request, id: Id, key: Key = None) -> Response:
    """A form:

    each file becomes the value of the input field that it is sent as, several files of one field a list. Send the other
    fields as `input`, in JSON. The answer is that of a start without files.
    """
    sent = await _form(request)
    values = input_with_files(sent.input, sent.files)
    execution = await session.executions.start(id, values, session=sent.session, key=key)
    return await started(session, execution, wait=sent.wait)


class UploadForm(NamedTuple):
    """Content of an upload form."""

    input: Json
    files: dict[str, list[UploadedFile]]
    session: str | None
    wait: bool


async def _form(request: Request) -> UploadForm:
    values: Json = None
    session: str | None = None
    wait = False
    files: dict[str, list[UploadedFile]] = {}
    async with request.form(max_files=FIELDS_MAX, max_fields=FIELDS_MAX) as form:
        for name, part in form.multi_items():
            if isinstance(part, UploadFile):
                file = UploadedFile(await part.read(), part.content_type or "", part.filename or name)
                files.setdefault(name, []).append(file)
            elif name == "wait":
                wait = part == "true"
            elif name == "sessionId":
                session = part[: SESSION_NAME_MAX + 1]
            elif name == "input":
                values = _decoded(part)
            else:
                raise InputInvalid(f"{name[:60]!r} is not a file", hint="Other fields go into `input`, as JSON.")
    return UploadForm(values, files, session, wait)


def _decoded(text: str) -> Json:
    try:
        return decode_sent_json(text)
    except DuplicateKey as why:
        raise InputInvalid(f"`input` cannot be read: {why}", hint="Keep one of them.") from None
    except TooMuchJson as why:
        raise InputInvalid(f"`input` {why}", hint=LESS) from None
    except JsonUnreadable as why:
        raise InputInvalid(f"`input` is not JSON: {why}", hint='As in {"question": "…"}.') from None


@router.get(
    "/executions/{eid}/artifacts",
    verb=ExecutionVerbs.artifacts,
    responses=answers(ArtifactList, "unknown-execution"),
    summary="List artifacts",
)
async def list_(session: CallerSession, eid: Eid) -> Response:
    """The artifacts of an execution."""
    return JsonReply({"artifacts": [*await session.executions.artifacts(eid)]})


@router.get(
    "/executions/{eid}/artifacts/{name:path}",
    verb=ExecutionVerbs.artifact,
    responses=bytes_answer() | refusals("unknown-execution", "no-such-artifact"),
    summary="Read an artifact",
    response_class=Response,
)
async def read(
    session: CallerSession,
    eid: Eid,
    name: Annotated[str, Path(min_length=1, max_length=1000, description="The path of the file.")],
) -> Response:
    """Always a download, so that browsers do not show it as a page of this server."""
    content = await session.executions.artifact(eid, name)
    saved_as = f"attachment; filename*=UTF-8''{quote(name.rpartition('/')[2], safe='')}"
    return Response(content, media_type=media_type_of(name), headers={"content-disposition": saved_as})


@router.get(
    "/executions/{eid}/export",
    verb=OperationVerbs.export,
    responses=text_answer(NDJSON, EXPORT) | refusals("unknown-execution", "hidden-by-redaction"),
    summary="Export an execution",
    response_class=Response,
)
async def export(session: CallerSession, eid: Eid) -> Response:
    """Everything that the execution needs to continue in another store, with its sub-workflows and files.

    Of files that are too large, only names and digests are exported. Exports are not redacted, so the redaction level
    `minimal` allows none. The caller must be allowed to see the sub-workflows too.
    """
    headers = {"content-disposition": f"attachment; filename*=UTF-8''{quote(eid, safe='')}.jsonl"}
    return StreamingResponse(await session.operations.export(eid), media_type=NDJSON, headers=headers)


@router.post(
    "/executions/import",
    verb=OperationVerbs.import_execution,
    responses=answers(StartedExecution, "import-refused", "execution-exists", status=201, body=True),
    status_code=201,
    summary="Import an execution",
    openapi_extra=raw_body({NDJSON: ({"type": "string"}, EXPORT)}),
)
async def import_(
    *,
    session: CallerSession,
    request: Request,
    renamed: Annotated[bool, Query(description="Import it under a new id, as a copy.")] = False,
) -> Response:
    """The body is an export. It is verified as a whole before anything is written."""
    with tempfile.TemporaryDirectory() as directory:
        path = FilePath(directory) / "import.jsonl"
        with path.open("wb") as file:
            async for part in request.stream():
                file.write(part)
        name = await session.operations.import_execution(path, new=renamed)
    view = await session.executions.read(name)
    headers = {"location": f"/api/workflows/executions/{name}"}
    imported: StartedExecution = {
        "executionId": name,
        "status": view["status"],
        "scripted": view["scripted"],
        "warnings": view["warnings"],
    }
    return JsonReply(imported, status=201, headers=headers)
