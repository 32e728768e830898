"""Inputs: turn a caller's input into the fields an execution starts with, checked against the workflow's schema; and
the files of executions."""

from __future__ import annotations

import asyncio
import base64
import mimetypes
from collections.abc import Mapping
from contextlib import suppress
from typing import ClassVar, Final, NamedTuple

import msgspec

from pointsman.auth.subjects import InputInvalid, is_conversational
from pointsman.context import AppContext
from pointsman.definition.json_schema import JsonSchema, JsonSchemaInvalid
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.decide.outputs import EditRefused, scope_named
from pointsman.engine.state import ExecutionState
from pointsman.engine.steps import DataEdit
from pointsman.errors import AuthorError, CallerError
from pointsman.executions.views import ArtifactView
from pointsman.expressions.paths import ItemKey, compile_path
from pointsman.settings import Settings
from pointsman.tools.tool import ToolFailed
from pointsman.values import Json, JsonObject, Path

FILE_BYTES_MAX: Final = 20_000_000
"""Limit for all files of one input together, in bytes: models accept no more."""
PLAIN: Final = "application/octet-stream"


class NoSuchArtifact(CallerError):
    """The execution keeps no file of that name."""

    code: ClassVar[str] = "no-such-artifact"


class FilesTooLarge(CallerError):
    """The files of an input are larger than models accept."""

    code: ClassVar[str] = "files-too-large"


class UploadedFile(NamedTuple):
    """A file as the caller sent it."""

    content: bytes
    media_type: str
    name: str


async def artifact(app: AppContext, execution: str, path: str) -> bytes:
    """Return a file that an execution keeps. Raises `NoSuchArtifact`."""
    if app.settings.files is not None:
        with suppress(ToolFailed):  # Missing, a link, or outside the directory: callers do not learn which.
            return await read_artifact(app.settings, execution, path)
    raise NoSuchArtifact(
        f"{execution!r} has no artifact {path[:200]!r}", hint="GET the execution: `artifacts` lists its files."
    )


async def read_artifact(settings: Settings, execution: str, path: str) -> bytes:
    """Return one file of an execution; `settings` must name a directory of files. Raises `ToolFailed`."""
    assert settings.files is not None
    from pointsman.tools.files import ArtifactFolder  # Deferred: most installations keep no files.

    return await asyncio.to_thread(ArtifactFolder(settings.files, execution).read, path)


def media_type_of(path: str) -> str:
    """Guess the media type from the file name."""
    return mimetypes.guess_type(path, strict=False)[0] or PLAIN


def input_with_files(input: Json, files: Mapping[str, list[UploadedFile]]) -> JsonObject:
    """Return the input with each file in the field it was sent for: `{data, mediaType, name}`, or a list of them if
    there are several.

    Raises `InputInvalid`, `FilesTooLarge`.
    """
    fields = {} if input is None else input
    if not isinstance(fields, dict):
        raise InputInvalid("an input with files must be an object", hint='Use {"field": value}.')
    size = sum(len(one.content) for several in files.values() for one in several)
    if size > FILE_BYTES_MAX:
        raise FilesTooLarge(f"the files have {size} bytes", hint=f"At most {FILE_BYTES_MAX} bytes together.")
    twice = sorted(files.keys() & fields.keys())
    if twice:
        raise InputInvalid(f"{twice[0]!r} is given twice: as a file, and in `input`", hint="Keep one of them.")
    return fields | {field: _as_value(several) for field, several in files.items()}


def _as_value(files: list[UploadedFile]) -> Json:
    values: list[Json] = [
        {
            "data": base64.b64encode(file.content).decode(),
            "mediaType": file.media_type or media_type_of(file.name),
            "name": file.name,
        }
        for file in files
    ]
    return values[0] if len(values) == 1 else values


async def artifacts_of(settings: Settings, execution: str) -> list[ArtifactView]:
    """Return [{"path", "bytes"}] sorted by name; empty if this installation keeps no files."""
    if settings.files is None:
        return []
    from pointsman.tools.files import ArtifactFolder  # Deferred: most installations keep no files.

    files = await asyncio.to_thread(ArtifactFolder(settings.files, execution).files)
    return [{"path": file.path, "bytes": file.size} for file in files]


async def delete_artifacts(settings: Settings, execution: str) -> None:
    """Delete all files of an execution for good."""
    if settings.files is not None:
        from pointsman.tools.files import ArtifactFolder  # As above.

        await asyncio.to_thread(ArtifactFolder(settings.files, execution).remove)


async def copy_artifacts(settings: Settings, origin: str, execution: str) -> None:
    """Copy all files of an execution to another one. Raises `ToolFailed`."""
    if settings.files is not None:
        from pointsman.tools.files import ArtifactFolder  # As above.

        await asyncio.to_thread(
            ArtifactFolder(settings.files, execution).take_over, ArtifactFolder(settings.files, origin)
        )


MESSAGES: Final = "messages"
ERRORS_SHOWN: Final = 5
EVENT_BYTES_MAX: Final = 1_000_000
"""Every execution that consumes an event journals it: store larger data elsewhere and send the address."""
EVENT_NAME_MAX: Final = 200


class EventTooLarge(CallerError):
    """The data of an event are too large to be journalled by every execution that consumes it."""

    code: ClassVar[str] = "event-too-large"


def input_for(workflow: WorkflowDefinition, input: Json) -> JsonObject:
    """Return the input as an object with defaults filled in. A text becomes the one required field, `goal`, or the
    conversation's message.

    Raises `InputInvalid`, naming every field that does not fit.
    """
    _check_text(input)
    schema = workflow.input_schema
    fields = _as_object(workflow, input, schema)
    fields = {**{name: value for name, value in workflow.input_defaults.items() if name not in fields}, **fields}
    if schema is not None:
        check_input(fields, schema)
    return fields


def _check_text(input: Json) -> None:
    try:
        msgspec.json.encode(input)
    except UnicodeEncodeError:
        raise InputInvalid("the input is not valid Unicode", hint="Encode it as UTF-8.") from None
    except (RecursionError, ValueError, OverflowError) as why:
        raise InputInvalid(
            f"the input cannot be stored: {why}", hint="Nest it less than a few hundred levels deep."
        ) from None


def _as_object(workflow: WorkflowDefinition, input: Json, schema: JsonObject | None) -> JsonObject:
    if input is None:
        return {}
    if isinstance(input, dict):
        return input
    if isinstance(input, str):
        return {text_field(workflow, schema): input}
    raise InputInvalid("the input must be an object or a text", hint='Use {"field": value}.')


def text_field(workflow: WorkflowDefinition, schema: JsonObject | None) -> str:
    """Return the field of the input that takes a plain text. Raises `InputInvalid`."""
    required = (schema or {}).get("required")
    if isinstance(required, list) and len(required) == 1 and isinstance(required[0], str):
        return required[0]
    if is_conversational(workflow) or workflow.dialect == "rows":
        return "message"
    if workflow.dialect == "graph":
        return "goal"
    raise InputInvalid(
        "a text is not enough as input: the workflow does not define a field for it", hint=_takes(schema)
    )


def _takes(schema: JsonObject | None) -> str:
    """Describe the fields of an input, for a hint."""
    object_schema = schema or {}
    required, properties = object_schema.get("required"), object_schema.get("properties")
    needed = required if isinstance(required, list) else []
    names = [*dict.fromkeys([*needed, *(properties if isinstance(properties, dict) else ())])]
    if not names:
        return "Send an object: the workflow does not describe its fields."
    return f"Its fields: {', '.join(f'{name} (required)' if name in needed else str(name) for name in names)}."


def check_input(fields: JsonObject, schema: JsonObject) -> None:
    """Raises `InputInvalid` naming the fields that do not fit."""
    try:
        misfits = JsonSchema(schema).misfits(fields, most=ERRORS_SHOWN)
    except JsonSchemaInvalid as why:
        raise InputInvalid(
            f"the workflow's input schema cannot be used: {why}", hint="Run `pointsman check`."
        ) from None
    if misfits:
        shown = [f"{'.'.join(map(str, misfit.path)) or 'input'}: {misfit.message}" for misfit in misfits]
        raise InputInvalid("; ".join(shown), hint=_takes(schema))


def conversation_for(workflow: WorkflowDefinition, input: JsonObject, history: tuple[Json, ...]) -> list[Json]:
    """Return the messages a turn starts with: the history, then the user's new message."""
    messages = input.get(MESSAGES)
    if isinstance(messages, list):
        return [*history, *messages]
    text = input.get("message")
    if isinstance(text, str) and text:
        return [*history, {"role": "user", "content": text}]
    return [*history]


def event_key(source: str, *parts: str) -> str:
    """Return the key of an event, separate for each source and for each caller or webhook of it, so that no caller can
    use up a key of another."""
    # Lengths keep ("a", "bc") and ("ab", "c") apart.
    return "|".join((source, *(f"{len(part)}:{part}" for part in parts)))


def check_event(name: str, data: Json) -> None:
    """Raises `EventTooLarge`, `InputInvalid`."""
    if not 0 < len(name) <= EVENT_NAME_MAX:
        raise InputInvalid(
            f"{name[:60]!r} is not a valid event name", hint=f"It must have 1 to {EVENT_NAME_MAX} characters."
        )
    _check_text([name, data])
    size = len(msgspec.json.encode(data))
    if size > EVENT_BYTES_MAX:
        raise EventTooLarge(
            f"the event has {size} bytes",
            hint=f"At most {EVENT_BYTES_MAX} bytes: store the data elsewhere, and send their address.",
        )


BRANCH_END: Final = "]/"


def edits_of(state: ExecutionState, values: Mapping[str, Json]) -> tuple[DataEdit, ...]:
    """Parse edits: `a.b[0]` in the execution's data, `each[1.0]/a.b` in those of an open branch. Raises
    `EditRefused`."""
    return tuple(_edit(state, name, value) for name, value in values.items())


def _edit(state: ExecutionState, name: str, value: Json) -> DataEdit:
    around, ends, path = name.rpartition(BRANCH_END)
    return DataEdit(path_of(path), value, scope_named(state, around + ends) if ends else ())


def path_of(text: str) -> Path:
    """Return the keys of a path as people write it. Raises `EditRefused`."""
    try:
        keys = compile_path(text).segments
    except AuthorError as why:
        raise EditRefused(str(why), hint=why.hint) from why
    plain = tuple(key for key in keys if not isinstance(key, ItemKey))
    if len(plain) != len(keys):
        raise EditRefused(
            f"{text!r} refers to the item of a branch, but names no branch",
            hint="Name the branch, as in each[1.0]/a.b.",
        )
    return plain
