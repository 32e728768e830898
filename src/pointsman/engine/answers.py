"""Answers: whether what a person said fits the gate, and what of it is written."""

from __future__ import annotations

from typing import Final

from pointsman.definition.json_schema import JsonSchema
from pointsman.engine.data import dotted
from pointsman.engine.facts import Write
from pointsman.engine.handed_out import check_results
from pointsman.engine.state import Gate
from pointsman.errors import CallerError
from pointsman.values import Json, JsonObject

EDIT: Final = "edit"
REJECT: Final = "reject"
FIELDS: Final = ("properties", "$defs", "definitions")
"""What of a form holds for a field that is edited by itself."""
ERRORS_SHOWN: Final = 5


class ActionNotOffered(CallerError):
    """The answer names an action that the gate does not offer."""

    code = "action-not-offered"


class FieldNotEditable(CallerError):
    """The answer changes a field that the gate does not let anyone edit."""

    code = "field-not-editable"


class AnswerInvalid(CallerError):
    """The data of an answer do not fit the gate."""

    code = "answer-invalid"


def check_answer(gate: Gate, action: str, data: Json) -> None:
    """Raises where the gate does not offer the action, or does not take the data with it."""
    offered = [str(option["value"]) for option in gate.options]
    if action not in offered:
        raise ActionNotOffered(f"{action!r} is not offered by this gate", hint=f"Offered: {', '.join(offered)}.")
    if gate.about == "client":
        check_results(gate, action, data)
    elif gate.about == "calls":
        if action == EDIT:
            _check_calls(gate, data)
    elif action == EDIT and gate.editable:
        edits = edits_of(gate, action, data)
        if gate.form is not None:
            fields = {key: gate.form[key] for key in FIELDS if key in gate.form}
            _check_form(fields, {dotted(write.path): write.value for write in edits})
    elif gate.form is not None and not (action == REJECT and data is None):
        _check_form(gate.form, data)


def _check_form(form: JsonObject, data: Json) -> None:
    # Pressing a button fills in nothing: that is an empty form, not a wrong one.
    misfits = JsonSchema(form).misfits({} if data is None else data, most=ERRORS_SHOWN)
    if misfits:
        said = [f"{dotted(misfit.path)}: {misfit.message}".lstrip(": ") for misfit in misfits]
        raise AnswerInvalid("; ".join(said), hint="See the gate's form.")


def _check_calls(gate: Gate, data: Json) -> None:
    """Of tool calls: {number: true, false, or the arguments instead}."""
    known = {str(call.number) for call in gate.calls}
    if not isinstance(data, dict) or not data or not set(data) <= known:
        raise AnswerInvalid(
            "the data of an edit say of single calls what becomes of them", hint=f"Calls: {', '.join(sorted(known))}."
        )
    wrong = [number for number, said in data.items() if not isinstance(said, bool | dict)]
    if wrong:
        raise AnswerInvalid(
            f"call {wrong[0]!r} must be agreed to (true), rejected (false) or given other arguments (an object)",
            hint="See the calls of the gate.",
        )


def edits_of(gate: Gate, action: str, data: Json) -> tuple[Write, ...]:
    """The fields a person changed. Only editable ones; a lone editable field may be given as the bare value."""
    if action != EDIT:
        return ()
    by_name = {".".join(str(part) for part in path): path for path in gate.editable}
    if not by_name:
        return ()
    given = data if isinstance(data, dict) else None
    if given is None or (len(by_name) == 1 and not set(given) & set(by_name)):
        if data is None:
            return ()
        if len(by_name) == 1:
            return (Write(next(iter(by_name.values())), "last", data),)
        raise AnswerInvalid(
            "the data of an edit are the fields that change, in an object",
            hint=f"Editable: {', '.join(sorted(by_name))}.",
        )
    unknown = sorted(set(given) - set(by_name))
    if unknown:
        raise FieldNotEditable(
            f"{', '.join(unknown)} cannot be edited at this gate", hint=f"Editable: {', '.join(sorted(by_name))}."
        )
    return tuple(Write(by_name[name], "last", value) for name, value in given.items())
