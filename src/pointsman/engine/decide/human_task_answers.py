"""Validate an answer to a gate and derive the writes that it makes.

JSON Schema allows unnamed keys, so a misspelt key would be lost silently. In a form an object may hold an unnamed key
only where its schema allows that explicitly: by `additionalProperties`, `unevaluatedProperties` or a matching
`patternProperties`, or by naming no key at all.

Client tools: the caller runs the tool calls of an attempt and returns the results at a gate.

    attempt ─▶ ToolCallsProposed ─▶ GateOpened(client) ─┬▶ action `return` with one result per call ─┐
                                                        └▶ action `fail`, or the timeout ────────────┴▶ GateClosed,
                     ToolCallsReviewed, AttemptStarted(approved) ─▶ the same attempt is executed again
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pointsman.definition.json_schema import JsonSchema
from pointsman.definition.problems import did_you_mean
from pointsman.engine.actions import ANYONE, CallVerdict, GateTerms, ProposedCall
from pointsman.engine.data import dotted
from pointsman.engine.decide.outputs import size_of_answer
from pointsman.engine.digests import digest_of_call, is_about, is_same
from pointsman.engine.events.waits import GateOpened
from pointsman.engine.plan import DeclaredField
from pointsman.engine.reports import GateAnswered
from pointsman.engine.state import GateState, StepState
from pointsman.engine.steps import Write
from pointsman.errors import CallerError
from pointsman.expressions.failures import Spot
from pointsman.expressions.patterns import BadPattern, Pattern, compile_pattern
from pointsman.json_meter import JsonUnreadable, TooMuchJson, decode_json
from pointsman.values import Json, JsonObject, Path


class AnswerInvalid(CallerError):
    """The data of an answer do not fit the gate. Nothing was written, and the gate stays open."""

    code = "answer-invalid"


class FormMismatch(Struct, frozen=True):
    """A position in data that does not fit the schema."""

    place: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


def misfits(schema: JsonObject, data: Json, *, at: Path = ()) -> Iterator[FormMismatch]:
    """Yield each position that does not fit the schema, then each key that the schema does not name.

    `at`: the path of the data itself.
    """
    for misfit in JsonSchema(schema).misfits(data):
        yield FormMismatch(dotted((*at, *misfit.path)), misfit.message)
    yield from _unnamed(schema, data, at)


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
            _must_not_edit(gate, action, data)
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


def _must_not_edit(gate: GateState, action: str, data: Json) -> None:
    """Raise `AnswerInvalid` if another action than `edit` gives an editable field a new value: it would be lost."""
    present, values = edit_of_nothing(gate), _object(data)
    for name in present.keys() & values.keys():
        if not is_same(values[name], present[name]):
            raise AnswerInvalid(
                f"{name}: the action {action!r} does not change it",
                hint=f"{EDIT!r} changes it. With {action!r} omit {name!r}, or give its present value.",
            )


def edit_of_nothing(gate: GateState) -> JsonObject:
    """Return the data of an edit that changes no field."""
    return dict(zip(_names(gate), gate.values, strict=True))


def _refuse(wrong: Iterable[FormMismatch], hint: str) -> None:
    """Raise `AnswerInvalid` for the first mismatches, if there are any."""
    errors = [*islice(wrong, ERRORS_SHOWN)]
    if errors:
        raise AnswerInvalid(
            "; ".join(map(str, errors)), hint=next((error.hint for error in errors if error.hint), hint)
        )


def _check_edit(gate: GateState, data: Json, declared: Sequence[DeclaredField]) -> None:
    edits = edits_of(gate, EDIT, data)
    form = gate.form or {}
    shared = {key: form[key] for key in FIELDS if key in form}
    fields = form.get("properties")
    for write in edits:
        name = ".".join(str(part) for part in write.path)
        schema = fields.get(name) if isinstance(fields, dict) else None
        own = next((declaration.schema for declaration in declared if _is_at(declaration, write.path)), None)
        if schema is not None:
            _refuse(misfits(shared, {name: write.value}), "See the gate's form.")
        elif own is not None:
            _refuse(misfits(own, write.value, at=write.path), "See `state` in the definition.")
        elif not any(_is_near(declaration, write.path) for declaration in declared):
            _check_shape(name, gate.values[gate.editable.index(write.path)], write.value)


def _is_at(field: DeclaredField, path: Path) -> bool:
    return len(field.pattern) == len(path) and _is_near(field, path)


def _is_near(field: DeclaredField, path: Path) -> bool:
    """Return whether the declared field is at, above or below the path."""
    return all(part in ("*", str(key)) for part, key in zip(field.pattern, path, strict=False))


def _check_shape(name: str, before: Json, value: Json) -> None:
    """Check that a field without a schema keeps its type, and that no misspelt key replaces another key of an object.

    An edit may add keys to an object or leave keys out; one that does both has exchanged keys. Raises `AnswerInvalid`.
    """
    was, now = type_name(before), type_name(value)
    if before is not None and was != now:
        raise AnswerInvalid(
            f"{name}: its value is {was}, and the edit gives {now}",
            hint=f"Give {was}, or let a schema in the gate's `form` or in `state` allow other types.",
        )
    pending = [(name, before, value)]
    while pending:
        place, old, new = pending.pop()
        if not isinstance(old, dict) or not isinstance(new, dict):
            continue
        missing, added = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
        if missing and added:
            listed = ", ".join(map(repr, missing))
            near = did_you_mean(added[0], missing)
            raise AnswerInvalid(
                f"{place}: it has no key {added[0]!r}, and the edit leaves out {listed}",
                hint=f"{near} Give the whole object, or let a schema in `state` name its keys.".strip(),
            )
        pending += [(f"{place}.{key}", old[key], new[key]) for key in old.keys() & new.keys()]


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
    calls = {str(call.number): call for call in gate.calls}
    if not isinstance(data, dict) or not data or not set(data) <= set(calls):
        raise AnswerInvalid(
            "the data of an edit must name calls by their numbers",
            hint=f"Calls: {', '.join(sorted(calls))}. Each is true, false, or an object of other arguments.",
        )
    for number, decided in data.items():
        if isinstance(decided, bool):
            continue
        if not isinstance(decided, dict):
            raise AnswerInvalid(
                f"call {number!r} must be approved (true), rejected (false) or given other arguments (an object)",
                hint="See the calls of the gate.",
            )
        call = calls[number]
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
            raise AnswerInvalid("the data of an edit must be an object with the fields that change", hint=hint)
        if isinstance(data, str) and _is_object(data) and not _is_object(gate.values[0]):
            raise AnswerInvalid(
                "the data of an edit are a text that contains a JSON object",
                hint=f"Give the object itself, without quotes around it. {hint}",
            )
        return (Write(next(iter(names.values())), "last", data),)
    unknown = sorted(set(data) - set(names))
    if unknown:
        listed = ", ".join(map(repr, unknown))
        raise AnswerInvalid(
            f"{listed} cannot be edited at this gate", hint=f"{did_you_mean(unknown[0], names)} {hint}".strip()
        )
    _must_not_overlap(names, data)
    return tuple(Write(names[name], "last", value) for name, value in data.items())


def _is_object(text: Json) -> bool:
    """Return whether a text holds a JSON object."""
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return False
    try:
        return isinstance(decode_json(text), dict)
    except (JsonUnreadable, TooMuchJson):
        return False


def _must_not_overlap(names: dict[str, Path], data: JsonObject) -> None:
    """Raise `AnswerInvalid` if one edited field is inside another: one of the two values would be lost."""
    for name in data:
        path = names[name]
        outer = next((name_ for name_ in data if name_ != name and names[name_] == path[: len(names[name_])]), None)
        if outer is not None:
            raise AnswerInvalid(
                f"{outer!r} and {name!r} are edited together, and {name!r} is inside {outer!r}",
                hint=f"Give one of the two: {outer!r} as a whole, or {name!r}.",
            )


def is_same_answer(gate: GateState, action: str, first: Json, other: Json) -> bool:
    """Return whether two answers with the same action are equal: a bare value is the only editable field."""
    if gate.about == "node" and action == EDIT and len(gate.editable) == 1:
        name = next(iter(_names(gate)))
        return is_same(_named(name, first), _named(name, other))
    return is_same(first, other)


def _named(name: str, data: Json) -> JsonObject:
    return data if isinstance(data, dict) else {name: data}


RETURN: Final = "return"
FAIL: Final = "fail"
RESULT_OPTIONS: Final[tuple[JsonObject, ...]] = (
    {"value": RETURN, "label": "Return results", "style": "primary"},
    {"value": FAIL, "label": "Fail", "style": "danger"},
)


def lacks_verdict(at: StepState, call: ProposedCall) -> bool:
    """Return whether a call still lacks its verdict: the approval, or the returned result."""
    verdict = None if at.verdicts is None else at.verdicts.get(call.number)
    if verdict is None or not is_about(verdict, call.name, call.arguments):
        return True
    return call.wants != "approval" and verdict.approved and not verdict.returned


def results_gate(at: StepState, calls: tuple[ProposedCall, ...]) -> GateOpened:
    """Return the gate that asks for the results of calls."""
    names = ", ".join(dict.fromkeys(repr(call.name) for call in calls))
    return GateOpened(
        step=at.step,
        gate=f"gate-{at.step}:{at.attempt}.{calls[0].number}.results",
        message=f"{at.step.node!r} calls {names}. What is the result?",
        options=RESULT_OPTIONS,
        shown={str(call.number): {"tool": call.name, "arguments": call.arguments} for call in calls},
        about="client",
        calls=calls,
    )


def terms_of_calls(calls: tuple[ProposedCall, ...]) -> GateTerms:
    """Return gate terms by which anyone may return results, before the shortest timeout of the calls."""
    bounds = [call.timeout_s for call in calls if call.timeout_s is not None]
    return replace(ANYONE, timeout_s=min(bounds)) if bounds else ANYONE


def check_results(gate: GateState, data: Json) -> None:
    """Check that there is one result for each call, within its size limit. Raises `AnswerInvalid`."""
    calls = {str(call.number): call for call in gate.calls}
    example = ", ".join(f'"{number}": …' for number in calls)
    if not isinstance(data, dict) or set(data) != set(calls):
        raise AnswerInvalid("each call needs a result, under its number", hint=f"Give as data: {{{example}}}.")
    for number, call in calls.items():
        size = size_of_answer(data[number])
        if call.bytes_max is not None and size > call.bytes_max:
            raise AnswerInvalid(
                f"the result of {call.name!r} has {size} bytes; the maximum is {call.bytes_max}", hint="Return less."
            )


def results_timed_out(at: StepState) -> GateAnswered:
    """Return the answer of the timeout: no results were returned."""
    return GateAnswered(step=at.step, action=FAIL, comment="no result was returned in time", by="timeout")


def verdicts_on_results(
    at: StepState, gate: GateState, report: GateAnswered, *, by_clock: bool
) -> tuple[CallVerdict, ...]:
    """Return the verdict on each call. Arguments that a person changed earlier stay changed."""
    verdicts = {
        call.number: verdict
        for call in gate.calls
        if (verdict := (at.verdicts or {}).get(call.number)) is not None
        and is_about(verdict, call.name, call.arguments)
    }
    return tuple(_verdict_on_result(call, verdicts.get(call.number), report, by_clock=by_clock) for call in gate.calls)


def _verdict_on_result(
    call: ProposedCall, verdict: CallVerdict | None, report: GateAnswered, *, by_clock: bool
) -> CallVerdict:
    of = digest_of_call(call.name, call.arguments) if verdict is None else verdict.of
    if report.action == RETURN:
        assert isinstance(report.data, dict)
        arguments = None if verdict is None else verdict.arguments
        result = report.data[str(call.number)]
        return CallVerdict(
            number=call.number,
            approved=True,
            arguments=arguments,
            returned=True,
            result=result,
            of=of,
            tool=call.name,
        )
    code = "tool-timeout" if by_clock else "client-failed"
    return CallVerdict(number=call.number, approved=False, reason=report.comment, of=of, tool=call.name, code=code)


IN_PLACE: Final = ("allOf", "anyOf", "oneOf")


CONDITIONAL: Final = ("if", "then", "else")


OPENS: Final = ("additionalProperties", "unevaluatedProperties", "$dynamicRef", "$recursiveRef")
"""Keywords that decide about unnamed keys, or refer to a schema that may do so."""


FORM_VISITS_MAX: Final = 1_000_000
"""Limit of subschema visits for one part of the data; it takes less than a second."""
PATTERN_COMPILE_VISITS: Final = 100
PATTERN_VISITS: Final = 1
"""Matching a key with a pattern costs as much as one visit, and one more for each 256 characters of the key."""


class FormRules(NamedTuple):
    """The rules of the schemas of one value for its keys and items."""

    parts: list[JsonObject]
    """All schemas that may apply to the value."""
    names: frozenset[str]
    is_open: bool
    """Whether the object may hold keys that no schema names."""
    patterns: list[tuple[Pattern | None, Json]]
    """Patterns of keys, and their subschemas. None: RE2 does not support it, so that it may match anything."""

    @property
    def steps(self) -> int:
        """Cost of one key or item, in subschema visits."""
        return len(self.parts) + PATTERN_VISITS * len(self.patterns)


def _unnamed(schema: JsonObject, data: Json, at: Path) -> Iterator[FormMismatch]:
    """Yield each key in the data that the schema does not name."""
    steps, cache = 0, dict[tuple[int, ...], FormRules]()
    pending: list[tuple[list[Json], Json, Path]] = [([schema], data, at)]
    while pending:
        schemas, value, path = pending.pop()
        if not isinstance(value, dict | list):
            continue
        same = tuple(map(id, schemas))
        rules = cache.get(same)
        if rules is None:
            rules = cache[same] = _rules(schemas, schema)
            steps += len(rules.parts) + PATTERN_COMPILE_VISITS * len(rules.patterns)
        steps += rules.steps * len(value)
        if rules.patterns and isinstance(value, dict):
            steps += len(rules.patterns) * (sum(map(len, value)) >> 8)
        if steps > FORM_VISITS_MAX:
            yield FormMismatch(dotted(at), "the data are too large to compare with this form", "Send less data.")
            return
        if isinstance(value, list):
            pending += [(_of_item(rules.parts, n), item, (*path, n)) for n, item in enumerate(value)]
            continue
        for key, item in value.items():
            below = [rule for part in rules.parts for rule in _of_key(part, key)]
            below += [rule for pattern, rule in rules.patterns if pattern is None or pattern.search(key)]
            if not below and not rules.is_open:
                hint = f"{did_you_mean(key, rules.names)} Known: {', '.join(sorted(rules.names))}.".strip()
                yield FormMismatch(dotted((*path, key)), f"the form has no key {key!r}", hint)
            pending.append((below, item, (*path, key)))


def _rules(schemas: Sequence[Json], root: JsonObject) -> FormRules:
    rules: list[JsonObject] = []
    visited: set[int] = set()
    is_open = False
    pending = [*schemas]
    while pending:
        part = pending.pop()
        if not isinstance(part, dict) or id(part) in visited:
            continue
        visited.add(id(part))
        rules.append(part)
        is_open = is_open or any(key in part for key in OPENS)
        for key in IN_PLACE:
            listed = part.get(key)
            pending += listed if isinstance(listed, list) else []
        pending += [part[key] for key in CONDITIONAL if key in part]
        pending += _object(part.get("dependentSchemas")).values()
        if "$ref" in part:
            target = _referred(root, part["$ref"])
            is_open = is_open or target is None
            pending.append(target)
    names = frozenset(name for part in rules for name in _object(part.get("properties")))
    patterns = [
        (_compiled(pattern), below)
        for part in rules
        for pattern, below in _object(part.get("patternProperties")).items()
    ]
    return FormRules(rules, names, is_open or not names, patterns)


def _referred(root: JsonObject, reference: Json) -> Json:
    """Return the schema at a local reference; None for any other reference."""
    if reference == "#":
        return root
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    here: Json = root
    for part in reference[2:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        here = here.get(key) if isinstance(here, dict) else None
    return here


def _of_key(part: JsonObject, key: str) -> Iterator[Json]:
    """Yield the subschemas of one schema for the value at a key."""
    properties = _object(part.get("properties"))
    if key in properties:
        yield properties[key]
    more = part.get("additionalProperties")
    if isinstance(more, dict):
        yield more


def _compiled(pattern: str) -> Pattern | None:
    try:
        return compile_pattern(pattern, Spot(pattern, 0, len(pattern)))
    except BadPattern:
        return None


def _of_item(parts: Sequence[JsonObject], at: int) -> list[Json]:
    """Return the subschemas for one item of a list."""
    values: list[Json] = []
    for part in parts:
        first = part.get("prefixItems", part.get("items"))
        if isinstance(first, list) and at < len(first):
            values.append(first[at])
        else:
            values += [part[key] for key in ("items", "additionalItems", "unevaluatedItems") if key in part]
    return values


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
