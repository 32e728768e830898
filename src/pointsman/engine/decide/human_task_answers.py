"""Validate an answer to a gate and derive the writes that it makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from pointsman.definition.problems import did_you_mean
from pointsman.engine.decide.client_tools import RETURN, check_results
from pointsman.engine.digests import is_same
from pointsman.engine.forms import AnswerInvalid, FormMismatch, misfits
from pointsman.engine.plan import DeclaredField
from pointsman.engine.state import GateState
from pointsman.engine.writes import Write
from pointsman.errors import CallerError
from pointsman.values import Json, JsonObject, Path

EDIT: Final = "edit"
REJECT: Final = "reject"
FIELDS: Final = ("$schema", "properties", "$defs", "definitions")
"""Parts of a form that also apply to a field that is edited alone."""
ERRORS_SHOWN: Final = 5


class ActionNotOffered(CallerError):
    """The answer names an action that the gate does not offer."""

    code = "action-not-offered"


def check_answer(gate: GateState, action: str, data: Json, declared: Sequence[DeclaredField] = ()) -> None:
    """Check an answer against its gate. `declared`: the schemas that the workflow gives its fields.

    Raises `ActionNotOffered`, and `AnswerInvalid` if the gate does not accept the data with this action.
    """
    offered = [str(option["value"]) for option in gate.options]
    if action not in offered:
        hint = f"{did_you_mean(action, offered)} Offered: {', '.join(offered)}.".strip()
        raise ActionNotOffered(f"{action!r} is not offered by this gate", hint=hint)
    if gate.about == "client" and action == RETURN:
        check_results(gate, data)
    elif gate.about == "calls" and action == EDIT:
        _check_calls(gate, data)
    elif gate.about == "node" and action == EDIT and gate.editable:
        _check_edit(gate, data, declared)
    elif gate.form is not None:
        if action != REJECT or data is not None:
            # Pressing a button without filling in anything submits an empty form, which is valid input to check.
            _refuse(misfits(gate.form, {} if data is None else data), "See the gate's form.")
    elif data is not None and data != {}:
        raise AnswerInvalid(f"{action!r} takes no data at this gate", hint=_takes_data(gate, offered))


def _takes_data(gate: GateState, offered: Sequence[str]) -> str:
    """Return a hint which action takes data at a gate without a form."""
    if gate.about == "client":
        return f"{RETURN!r} takes the results of the calls."
    if gate.about == "calls":
        return f"{EDIT!r} takes other arguments for the calls."
    if EDIT in offered and gate.editable:
        return f"{EDIT!r} takes data. Editable: {', '.join(sorted(_names(gate)))}."
    return "Leave `data` out. A gate takes data by its `form`, or by `edit` and its `editable` fields."


def _names(gate: GateState) -> dict[str, Path]:
    """Return the editable fields by name."""
    return {".".join(str(part) for part in path): path for path in gate.editable}


def edit_of_nothing(gate: GateState) -> JsonObject:
    """Return the data of an edit that changes no field."""
    return dict(zip(_names(gate), gate.values, strict=True))


def _refuse(wrong: Iterable[FormMismatch], hint: str) -> None:
    """Raise `AnswerInvalid` for the first mismatches, if there are any."""
    found = [*islice(wrong, ERRORS_SHOWN)]
    if found:
        raise AnswerInvalid("; ".join(map(str, found)), hint=next((one.hint for one in found if one.hint), hint))


def _check_edit(gate: GateState, data: Json, declared: Sequence[DeclaredField]) -> None:
    edits = edits_of(gate, EDIT, data)
    form = gate.form or {}
    shared = {key: form[key] for key in FIELDS if key in form}
    fields = form.get("properties")
    for write in edits:
        name = ".".join(str(part) for part in write.path)
        schema = fields.get(name) if isinstance(fields, dict) else None
        own = next((one.schema for one in declared if _is_at(one, write.path)), None)
        if schema is not None:
            _refuse(misfits(shared, {name: write.value}), "See the gate's form.")
        elif own is not None:
            _refuse(misfits(own, write.value, at=write.path), "See `state` in the definition.")
        elif not any(_is_near(one, write.path) for one in declared):
            _check_type(name, gate.values[gate.editable.index(write.path)], write.value)


def _is_at(field: DeclaredField, path: Path) -> bool:
    return len(field.pattern) == len(path) and _is_near(field, path)


def _is_near(field: DeclaredField, path: Path) -> bool:
    """Return whether the declared field is at, above or below the path."""
    return all(part in ("*", str(key)) for part, key in zip(field.pattern, path, strict=False))


def _check_type(name: str, before: Json, value: Json) -> None:
    """Check that a field without a schema keeps its type. Raises `AnswerInvalid`."""
    was, now = type_name(before), type_name(value)
    if before is not None and was != now:
        raise AnswerInvalid(
            f"{name}: it holds {was}, and the edit gives {now}",
            hint=f"Give {was}, or let a schema in the gate's `form` or in `state` allow other types.",
        )


def type_name(value: Json) -> str:
    """Return the JSON type of a value, in words for people."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return "a text"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case _:
            return "an object"


def _check_calls(gate: GateState, data: Json) -> None:
    """Check an edit of tool calls: {number: true, false, or replacement arguments}. Raises `AnswerInvalid`."""
    known = {str(call.number): call for call in gate.calls}
    if not isinstance(data, dict) or not data or not set(data) <= set(known):
        raise AnswerInvalid(
            "the data of an edit name calls by their numbers",
            hint=f"Calls: {', '.join(sorted(known))}. Each is true, false, or an object of other arguments.",
        )
    for number, decided in data.items():
        if isinstance(decided, bool):
            continue
        if not isinstance(decided, dict):
            raise AnswerInvalid(
                f"call {number!r} must be agreed to (true), rejected (false) or given other arguments (an object)",
                hint="See the calls of the gate.",
            )
        call = known[number]
        if call.parameters is not None:
            _refuse(misfits(call.parameters, decided, at=(number,)), f"See the parameters of {call.name!r}.")


def edits_of(gate: GateState, action: str, data: Json) -> tuple[Write, ...]:
    """Return the fields that a person changed. Raises `AnswerInvalid`.

    A bare value is the value of the only editable field; an object always names fields.
    """
    names = _names(gate)
    if action != EDIT or not names or gate.about != "node":
        return ()
    hint = f"Editable: {', '.join(sorted(names))}."
    if data is None or data == {}:
        raise AnswerInvalid("an edit without data changes nothing", hint=f"Give the fields that change. {hint}")
    if not isinstance(data, dict):
        if len(names) > 1:
            raise AnswerInvalid("the data of an edit are the fields that change, in an object", hint=hint)
        return (Write(next(iter(names.values())), "last", data),)
    unknown = sorted(set(data) - set(names))
    if unknown:
        listed = ", ".join(map(repr, unknown))
        raise AnswerInvalid(
            f"{listed} cannot be edited at this gate", hint=f"{did_you_mean(unknown[0], names)} {hint}".strip()
        )
    _must_not_overlap(names, data)
    return tuple(Write(names[name], "last", value) for name, value in data.items())


def _must_not_overlap(names: dict[str, Path], data: JsonObject) -> None:
    """Raise `AnswerInvalid` if one edited field is inside another: one of the two values would be lost."""
    for name in data:
        path = names[name]
        outer = next((one for one in data if one != name and names[one] == path[: len(names[one])]), None)
        if outer is not None:
            raise AnswerInvalid(
                f"{outer!r} and {name!r} are edited together, and {name!r} is inside {outer!r}",
                hint=f"Give one of the two: {outer!r} as a whole, or {name!r}.",
            )


def is_same_answer(gate: GateState, action: str, one: Json, other: Json) -> bool:
    """Return whether two answers with the same action are equal: a bare value is the only editable field."""
    if gate.about == "node" and action == EDIT and len(gate.editable) == 1:
        name = next(iter(_names(gate)))
        return is_same(_named(name, one), _named(name, other))
    return is_same(one, other)


def _named(name: str, data: Json) -> JsonObject:
    return data if isinstance(data, dict) else {name: data}
