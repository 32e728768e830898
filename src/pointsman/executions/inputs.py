"""Inputs: turn a caller's input into the fields an execution starts with, checked against the workflow's schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec

from pointsman.auth.subjects import InputInvalid, is_conversational
from pointsman.definition.json_schema import JsonSchema, SchemaWrong
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.decide.outputs import EditRefused, scope_named
from pointsman.engine.state import ExecutionState
from pointsman.engine.steps import DataEdit
from pointsman.errors import AuthorError, CallerError
from pointsman.expressions.paths import ItemKey, compile_path
from pointsman.values import Json, JsonObject, Path

MESSAGES: Final = "messages"
ERRORS_SHOWN: Final = 5
EVENT_BYTES_MAX: Final = 1_000_000
"""Every execution that consumes an event journals it: store larger data elsewhere and send the address."""
EVENT_NAME_MAX: Final = 200


class EventTooLarge(CallerError):
    """The data of an event are too large to be journalled by every execution that consumes it."""

    code: ClassVar[str] = "event-too-large"


def input_for(workflow: WorkflowDefinition, given: Json) -> JsonObject:
    """Return the input as an object with defaults filled in. A text becomes the one required field, `goal`, or the
    conversation's message.

    Raises `InputInvalid`, naming every field that does not fit.
    """
    _check_text(given)
    schema = workflow.input_schema
    found = _as_object(workflow, given, schema)
    found = {**{name: value for name, value in workflow.input_defaults.items() if name not in found}, **found}
    if schema is not None:
        check_input(found, schema)
    return found


def _check_text(given: Json) -> None:
    try:
        msgspec.json.encode(given)
    except UnicodeEncodeError:
        raise InputInvalid("the input is not valid Unicode", hint="Encode it as UTF-8.") from None
    except (RecursionError, ValueError, OverflowError) as why:
        raise InputInvalid(
            f"the input cannot be stored: {why}", hint="Nest it less than a few hundred levels deep."
        ) from None


def _as_object(workflow: WorkflowDefinition, given: Json, schema: JsonObject | None) -> JsonObject:
    if given is None:
        return {}
    if isinstance(given, dict):
        return given
    if isinstance(given, str):
        return {text_field(workflow, schema): given}
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
    known = schema or {}
    required, properties = known.get("required"), known.get("properties")
    needed = required if isinstance(required, list) else []
    names = [*dict.fromkeys([*needed, *(properties if isinstance(properties, dict) else ())])]
    if not names:
        return "Send an object: the workflow does not describe its fields."
    return f"Its fields: {', '.join(f'{name} (required)' if name in needed else str(name) for name in names)}."


def check_input(found: JsonObject, schema: JsonObject) -> None:
    """Raises `InputInvalid` naming the fields that do not fit."""
    try:
        misfits = JsonSchema(schema).misfits(found, most=ERRORS_SHOWN)
    except SchemaWrong as why:
        raise InputInvalid(
            f"the workflow's input schema cannot be used: {why}", hint="Run `pointsman check`."
        ) from None
    if misfits:
        shown = [f"{'.'.join(map(str, one.path)) or 'input'}: {one.message}" for one in misfits]
        raise InputInvalid("; ".join(shown), hint=_takes(schema))


def conversation_for(workflow: WorkflowDefinition, given: JsonObject, history: tuple[Json, ...]) -> list[Json]:
    """Return the messages a turn starts with: the history, then the user's new message."""
    said = given.get(MESSAGES)
    if isinstance(said, list):
        return [*history, *said]
    text = given.get("message")
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


def edits_of(state: ExecutionState, named: Mapping[str, Json]) -> tuple[DataEdit, ...]:
    """Parse edits: `a.b[0]` in the execution's data, `each[1.0]/a.b` in those of an open branch. Raises
    `EditRefused`."""
    return tuple(_edit(state, name, value) for name, value in named.items())


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
