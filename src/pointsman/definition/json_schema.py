"""JSON Schemas: the only constructor of validators. Schemas are untrusted: the work is bounded, nothing is fetched.

    schema ── faults_of ──▶ problems of the schema         (for `check`)
           ── JsonSchema ──▶ misfits(value)                (for data: inputs, answers, arguments of tools)

A value is validated only if an upper bound of the applications of subschemas to parts of the value is small enough. The
bound includes what `$ref` multiplies: ten levels of two references each are 1 024 applications.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, cast

from pointsman.definition.problems import Problem, error, pointer_parts, pointer_to
from pointsman.errors import AuthorError
from pointsman.values import Json, JsonObject

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, RegexOptions

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
DRAFTS: Final = (
    DRAFT,
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-04/schema#",
)
"""All drafts that `$schema` may name."""
MISFITS_MAX: Final = 20
"""Problems reported for one value or one schema."""
MISFITS_EXPLAINED_MAX: Final = 5
"""Problems in one text for a model."""
MESSAGE_CHARS_MAX: Final = 300
PATTERNS_MAX: Final = 500
"""Regular expressions in one schema: each is compiled."""
PATTERN_BYTES_MAX: Final = 1024 * 1024
"""Memory for one compiled regular expression."""
SCHEMA_DEPTH_MAX: Final = 100
"""Levels of nested subschemas. The library converts schemas recursively."""
APPLICATIONS_MAX: Final = 10_000_000
"""Applications of subschemas to parts of one value, weighted by the size of the subschema: take less than a second."""
STEPS_MAX: Final = 500_000
"""Steps of counting the applications: take less than a second."""
SUBSCHEMAS_MAX: Final = 20_000
"""Subschemas of one schema. Each is compiled, in the process that validates the value: 20 000 take about 0.2 s."""
REFERENCES_MAX: Final = 10_000
"""References in one schema. The library needs time that is quadratic in their number."""
TARGETS_MAX: Final = 100_000
"""Different references, multiplied by the parts with an `$id`."""
UNEVALUATED_MAX: Final = 20_000
"""Subschemas below `unevaluatedProperties` and `unevaluatedItems`, with references expanded: each is compiled."""
UNEVALUATED_DEPTH_MAX: Final = 200
"""Length of a chain of subschemas for the same value below these keywords. The library follows it recursively."""
EXPLAINED_MAX: Final = 20_000
"""Applications up to which every misfit is collected. The library needs about 50 µs for each that it collects."""
DRAFT_WEIGHT: Final = 20
"""Applications for each part of a value that is validated against the metaschema."""
SHOWN_PARTS: Final = 64
"""Parts of a value that cost as much as a misfit itself, which copies the whole value that it is about."""
_MANY: Final = 10**15
ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
INDEX: Final = re.compile("0|[1-9][0-9]{0,8}")

_ONE: Final = (
    "additionalProperties",
    "additionalItems",
    "unevaluatedProperties",
    "unevaluatedItems",
    "items",
    "contains",
    "propertyNames",
    "contentSchema",
)
"""Keywords with one subschema, for parts of the value."""
_LISTS: Final = ("prefixItems", "items")
_MAPS: Final = ("patternProperties", "properties")
_DEFINITIONS: Final = ("$defs", "definitions")
_SAME: Final = ("not", "if", "then", "else")
"""Keywords with one subschema, for the value itself."""
_SAME_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SAME_MAPS: Final = ("dependentSchemas", "dependencies")
_ALONE: Final = frozenset((*_ONE, *_SAME))
_IN_LISTS: Final = frozenset((*_LISTS, *_SAME_LISTS))
_IN_OBJECTS: Final = frozenset((*_MAPS, *_DEFINITIONS, *_SAME_MAPS))
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_UNEVALUATED: Final = ("unevaluatedProperties", "unevaluatedItems")
"""Keywords that validate the value once more, to find out which parts the subschemas beside them evaluate."""
_BRANCHING: Final = ("anyOf", "oneOf", "not")
"""Keywords whose misfit lists all misfits below it."""
_WHOLE: Final = ("enum", "const", "required", "dependentRequired", "dependencies", "type")
"""Keywords whose own value is compared with the data."""
_FRACTION_WEIGHT: Final = 300
"""Applications that cost as much as a division by a `multipleOf`, which is exact."""


class JsonSchemaInvalid(AuthorError):
    """A JSON Schema is invalid, refers to something outside itself, or exceeds the limits."""

    code: ClassVar[str] = "json-schema-invalid"


class SchemaViolation(NamedTuple):
    """One part of a value that its schema forbids."""

    path: tuple[str | int, ...]
    message: str
    unexpected: tuple[str, ...] = ()
    """Keys that `additionalProperties` forbids."""


class JsonSchema:
    """A compiled schema. Raises `JsonSchemaInvalid` if the schema cannot be used."""

    def __init__(self, schema: Json) -> None:
        shape = _shape_of(schema)
        if shape.faults:
            first = shape.faults[0]
            raise JsonSchemaInvalid(f"this JSON Schema cannot be used: {first.message}", hint=first.hint)
        self._shape = shape
        self._validator = _validator(schema)

    def fits(self, value: Json) -> bool:
        """Return whether the schema allows the value. False also if validation would take too long."""
        return not self.misfits(value, most=1)

    def correction(self, value: Json) -> str:
        """Return a text that explains to a model what to correct; empty if the value is valid."""
        mismatches = self.misfits(value, most=MISFITS_EXPLAINED_MAX)
        if not mismatches:
            return ""
        return "; ".join(
            f"at {'/'.join(map(str, mismatch.path)) or 'the top'}: {mismatch.message}" for mismatch in mismatches
        )

    def misfits(self, value: Json, *, most: int = MISFITS_MAX) -> list[SchemaViolation]:
        """Return the misfits of a value; empty if it is valid. A single misfit if finding all would take too long."""
        bound = _parts(value) * self._shape.expanded
        if bound > APPLICATIONS_MAX and self._shape.exceeds(value, APPLICATIONS_MAX):
            message = f"comparing it with its JSON Schema takes more than {APPLICATIONS_MAX} steps"
            return [SchemaViolation((), f"{message}: make the value smaller or the schema simpler")]
        try:
            return self._found(value, most)
        except (ValueError, TypeError) as why:  # for example, the library refuses values that are nested too deep
            return [SchemaViolation((), f"it cannot be compared with its JSON Schema: {_line(why)}")]

    def _found(self, value: Json, most: int) -> list[SchemaViolation]:
        if self._validator.is_valid(value):
            return []
        if not self._shape.exceeds(value, EXPLAINED_MAX, explained=True):
            errors = self._validator.iter_errors(value)
            return [_misfit(error) for error, _ in zip(errors, range(most), strict=False)]
        if self._shape.branches:
            return [SchemaViolation((), "it does not fit its JSON Schema (too much data to say where)")]
        return [_first(self._validator, value)]


def faults_of(schema: Json) -> list[Problem]:
    """Return the problems of a schema, at most `MISFITS_MAX`. Their pointers begin at the schema."""
    shape = _shape_of(schema)
    if shape.faults:
        return shape.faults[:MISFITS_MAX]
    draft = schema.get("$schema", DRAFT) if isinstance(schema, dict) else DRAFT
    meta = _metaschema(_known_draft(draft) or DRAFT)
    if meta.is_valid(schema):
        return _unusable(schema)
    if _parts(schema) <= EXPLAINED_MAX // 10:
        wrong = [_misfit(error) for error, _ in zip(meta.iter_errors(schema), range(MISFITS_MAX), strict=False)]
    else:
        wrong = [_first(meta, schema)]
    hint = f"The draft is {draft}."
    return [_fault(one.path, f"this is not JSON Schema: {one.message}", hint) for one in wrong]


def _fault(path: tuple[str | int, ...], message: str, hint: str) -> Problem:
    return error("schema-invalid", pointer_to(*path), message, hint=hint)


def _unusable(schema: Json) -> list[Problem]:
    """Report a schema that its draft allows but that cannot be
    compiled: a dead reference, a pattern with lookaround."""
    try:
        _validator(schema)
    except JsonSchemaInvalid as why:
        return [_fault((), str(why), why.hint)]
    return []


def _validator(schema: Json) -> Draft202012Validator:
    import jsonschema_rs

    try:
        return cast(
            "Draft202012Validator",
            jsonschema_rs.validator_for(cast("JsonObject", schema), offline=True, pattern_options=_patterns()),
        )
    except (ValueError, TypeError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as why:
        hint = "Patterns have no lookaround and no backreferences; references lead to a part of the same schema."
        raise JsonSchemaInvalid(f"this JSON Schema cannot be used: {_line(why)}", hint=hint) from why


@cache
def _patterns() -> RegexOptions:
    """Select the regex engine whose time is linear in the text for every pattern."""
    from jsonschema_rs import RegexOptions

    return RegexOptions(size_limit=PATTERN_BYTES_MAX, dfa_size_limit=PATTERN_BYTES_MAX)


@cache
def _metaschema(draft: str) -> Draft202012Validator:
    """Return the metaschema of a draft. The library contains it."""
    return _validator({"$schema": draft, "$ref": draft})


def _known_draft(name: Json) -> str | None:
    """Return the draft that `$schema` names, with or without its empty fragment."""
    return next((draft for draft in DRAFTS if isinstance(name, str) and draft.rstrip("#") == name.rstrip("#")), None)


def _first(validator: Draft202012Validator, value: Json) -> SchemaViolation:
    from jsonschema_rs import ValidationError

    try:
        validator.validate(value)
    except ValidationError as why:
        return _misfit(why)
    return SchemaViolation((), "it does not fit its JSON Schema")


def _misfit(error: object) -> SchemaViolation:
    from jsonschema_rs import ValidationError, ValidationErrorKind

    assert isinstance(error, ValidationError)
    kind = error.kind
    extra = kind.unexpected if isinstance(kind, ValidationErrorKind.AdditionalProperties) else ()
    return SchemaViolation(tuple(error.instance_path), _cut(error.message), tuple(extra[:MISFITS_MAX]))


def _line(why: BaseException) -> str:
    return _cut(str(why).partition("\n")[0])


def _cut(text: str) -> str:
    return text if len(text) <= MESSAGE_CHARS_MAX else f"{text[:MESSAGE_CHARS_MAX]}…"


def _parts(value: Json) -> int:
    """Return the size of a value: the number of its parts and keys, plus one for each 32 characters of text."""
    count, waiting = 0, [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            count += 1
            if here:
                count += sum(map(_length, here))
                waiting.extend(here.values())
        elif isinstance(here, list):
            count += 1
            waiting.extend(here)
        else:
            count += _length(here)
    return count


def _length(part: Json) -> int:
    """Return the size of one part without its contents: long texts and numbers count more."""
    match part:
        case str():
            return 1 + len(part) // 32
        case int():
            return 1 + (part.bit_length() // 64) ** 2 // 16
        case _:
            return 1


def _sizes(value: Json) -> dict[int, int]:
    """Return the size of every object and list in a value, by its identity."""
    result: dict[int, int] = {}
    waiting: list[tuple[Json, bool]] = [(value, False)]
    while waiting:
        here, is_done = waiting.pop()
        inner = [*here.values()] if isinstance(here, dict) else here if isinstance(here, list) else []
        if is_done:
            result[id(here)] = 1 + sum(result.get(id(one), _length(one)) for one in inner)
        elif inner and id(here) not in result:
            waiting.append((here, True))
            waiting.extend((one, False) for one in inner if isinstance(one, dict | list))
    return result


# Cost of a schema ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Subschema:
    """One subschema: the subschemas applied to the same value (`same`), and those applied to the parts of the value."""

    weight: int = 1
    """Cost of validating a short value."""
    size: int = 1
    """Number of parts that a misfit has to copy."""
    same: list[_Subschema] = field(default_factory=list["_Subschema"])
    named: dict[str, _Subschema] = field(default_factory=dict[str, "_Subschema"])
    others: list[_Subschema] = field(default_factory=list["_Subschema"])
    keys: list[_Subschema] = field(default_factory=list["_Subschema"])
    """Subschemas for the keys of an object."""
    references: list[str] = field(default_factory=list[str])
    number: int = 0
    is_evaluated_again: bool = False
    """Whether the value is validated once more for `unevaluatedProperties` or `unevaluatedItems`."""


@dataclass(slots=True)
class _Shape:
    """The subschemas of a schema, and how often each may be applied."""

    root: _Subschema
    faults: list[Problem]
    expanded: int = _MANY
    """The weight of all subschemas with the references expanded; `_MANY` if they are circular."""
    branches: bool = False

    def exceeds(self, value: Json, most: int, *, explained: bool = False) -> bool:
        """Return whether more than `most` applications may be
        needed. Follows the value, so that recursive schemas end."""
        cost = steps = 0
        shown = _sizes(value) if explained else {}
        waiting: list[tuple[Json, dict[int, tuple[_Subschema, int]]]] = [(value, {0: (self.root, 1)})]
        while waiting:
            here, applied = waiting.pop()
            every = _with_same(applied)
            steps += len(every) + 1
            factor = 1 + shown.get(id(here), _length(here)) // SHOWN_PARTS if explained else _length(here)
            cost += factor * sum((part.size if explained else part.weight) * times for part, times in every.values())
            if cost > most or steps > STEPS_MAX:
                return True
            match here:
                case dict() if here:
                    steps += _add_members(here, every, waiting, STEPS_MAX - steps)
                    if of_keys := _of_keys(every):
                        waiting.extend((key, of_keys) for key in here)
                case list() if here and (below := _below(every, None)):
                    waiting.extend((inner, below) for inner in here)
                case _:
                    pass
        return steps > STEPS_MAX


def _with_same(applied: dict[int, tuple[_Subschema, int]]) -> dict[int, tuple[_Subschema, int]]:
    """Add all subschemas that these apply to the same value. A circular reference adds nothing."""
    order = _inner_first([part for part, _ in applied.values()])
    times = {part.number: 0 for part in order}
    for number, (_, count) in applied.items():
        times[number] = count
    again = dict.fromkeys(times, 0)
    place = {part.number: index for index, part in enumerate(order)}
    for part in reversed(order):
        number = part.number
        if part.is_evaluated_again:
            again[number] = min(_MANY, again[number] + times[number])
        for inner in part.same:
            if place[inner.number] < place[number]:
                times[inner.number] = min(_MANY, times[inner.number] + times[number] + again[number])
                again[inner.number] = min(_MANY, again[inner.number] + again[number])
    return {part.number: (part, times[part.number] + again[part.number]) for part in order}


def _inner_first(starts: list[_Subschema]) -> list[_Subschema]:
    """Return these subschemas and all that they apply to the same value, so that each follows those that it applies,
    except where they apply each other."""
    order: list[_Subschema] = []
    state: dict[int, bool] = {}
    for start in starts:
        waiting = [(start, False)]
        while waiting:
            part, is_done = waiting.pop()
            if is_done:
                state[part.number] = True
                order.append(part)
            elif part.number not in state:
                state[part.number] = False
                waiting.append((part, True))
                waiting.extend((inner, False) for inner in part.same if inner.number not in state)
    return order


def _unevaluated_excess(parts: list[_Subschema]) -> str:
    """Return what is too much below the keywords that evaluate a value once more; empty if nothing is."""
    order = _inner_first([part for part in parts if part.is_evaluated_again])
    place = {part.number: index for index, part in enumerate(order)}
    size, depth, circles, total = list[int](), list[int](), set[int](), 0
    for index, part in enumerate(order):
        circles.update(inner.number for inner in part.same if place[inner.number] >= index)
        inner = [place[one.number] for one in part.same if place[one.number] < index]
        size.append(min(_MANY, 1 + sum(size[one] for one in inner)))
        depth.append(1 + max((depth[one] for one in inner), default=0))
        total += size[index] if part.is_evaluated_again else 0
    if total > UNEVALUATED_MAX:
        return f"more than {UNEVALUATED_MAX} subschemas"
    # A path without a repetition enters each circle once.
    if max(depth, default=0) * (1 + len(circles)) > UNEVALUATED_DEPTH_MAX:
        return f"more than {UNEVALUATED_DEPTH_MAX} levels of subschemas"
    return ""


def _below(every: dict[int, tuple[_Subschema, int]], key: str | None) -> dict[int, tuple[_Subschema, int]]:
    """Return the subschemas for one part of the value. `key`: of the member; None: an item."""
    result: dict[int, tuple[_Subschema, int]] = {}
    for part, times in every.values():
        own_schema = None if key is None else part.named.get(key)
        for inner in part.others if own_schema is None else [*part.others, own_schema]:
            counted = result.get(inner.number)
            result[inner.number] = (inner, times if counted is None else min(_MANY, counted[1] + times))
    return result


def _add_members(
    here: JsonObject,
    every: dict[int, tuple[_Subschema, int]],
    waiting: list[tuple[Json, dict[int, tuple[_Subschema, int]]]],
    most: int,
) -> int:
    """Add the members of an object, with the subschemas for each; return the steps that it took. Stops above `most`.

    Members that no part names share their subschemas.
    """
    naming = [part for part, _ in every.values() if part.named]
    width = sum(1 + len(part.others) for part, _ in every.values())
    steps = width + len(here) * len(naming)
    if steps > most:
        return steps
    others = _below(every, None)
    for key, inner in here.items():
        below = others
        if any(key in part.named for part in naming):
            steps += width
            if steps > most:
                return steps
            below = _below(every, key)
        if below:
            waiting.append((inner, below))
    return steps


def _of_keys(every: dict[int, tuple[_Subschema, int]]) -> dict[int, tuple[_Subschema, int]]:
    """Return the subschemas for each key of the value."""
    result: dict[int, tuple[_Subschema, int]] = {}
    for part, times in every.values():
        for inner in part.keys:
            counted = result.get(inner.number)
            result[inner.number] = (inner, times if counted is None else min(_MANY, counted[1] + times))
    return result


def _shape_of(schema: Json) -> _Shape:
    """Number the subschemas and resolve their references. Walks
    only positions of subschemas: a property may be named `$ref`."""
    reader = _ShapeReader(schema)
    shape = _Shape(reader.root, reader.faults, branches=reader.branches)
    if not reader.faults:
        reader.resolve()
    if not reader.faults:
        shape.expanded = _expanded(reader.root)
    return shape


def _expanded(root: _Subschema) -> int:
    """Return the weight with the references expanded."""
    result: dict[int, int] = {}
    waiting: list[tuple[_Subschema, bool]] = [(root, False)]
    while waiting:
        part, is_done = waiting.pop()
        if part.is_evaluated_again:
            return _MANY  # it depends on the value
        inner = [*part.same, *part.named.values(), *part.others, *part.keys]
        if is_done:
            result[part.number] = min(_MANY, part.weight + sum(result[one.number] for one in inner))
            continue
        if part.number in result:
            if result[part.number] < 0:
                return _MANY  # it is still being counted: the references are circular
            continue
        result[part.number] = -1
        waiting.append((part, True))
        waiting.extend((one, False) for one in inner if result.get(one.number, -1) < 0)
    return result[root.number]


class _ShapeReader:
    """Reader of the subschemas of one schema.

    `$id` makes a part a resource, to which references below it relate. Drafts and libraries differ in which resource
    that is, so a reference counts as one to its targets in every resource.
    """

    def __init__(self, schema: Json) -> None:
        self.parts: dict[int, _Subschema] = {}
        """Subschemas by the identity of their JSON, which `schema` keeps alive."""
        self.anchors: dict[str, list[JsonObject]] = {}
        self.resources: list[JsonObject] = []
        self.pointers: dict[str, list[Json]] = {}
        """Reference `#/…` -> its targets."""
        self.places: dict[str, tuple[str | int, ...]] = {}
        """Reference -> the path of one subschema with it."""
        self.references = 0
        self.faults: list[Problem] = []
        self.patterns = 0
        self.branches = False
        self.draft: _Subschema | None = None
        """The metaschema, if something refers to it: it applies to the value and to all of its parts."""
        self._waiting: list[tuple[tuple[str | int, ...], JsonObject, int]] = []
        if isinstance(schema, dict):
            self.root = self._part(schema)
            self._read(schema)
        else:
            self.root = _Subschema()
            if not isinstance(schema, bool):
                message = "a JSON Schema is an object, true or false"
                self.faults.append(_fault((), message, f"The draft is {DRAFT}."))

    def _part(self, schema: JsonObject) -> _Subschema:
        part = self.parts.get(id(schema))
        if part is None:
            part = self.parts[id(schema)] = _Subschema(number=len(self.parts))
        return part

    def _read(self, schema: JsonObject) -> None:
        self._waiting.append(((), schema, 0))
        self._add_resource(schema)
        done: set[int] = set()
        while self._waiting:
            path, here, depth = self._waiting.pop()
            if id(here) in done:
                continue
            done.add(id(here))
            if depth > SCHEMA_DEPTH_MAX:
                message = f"more than {SCHEMA_DEPTH_MAX} levels of subschemas are nested"
                self.faults.append(_fault(path, message, "Put parts under `$defs`."))
                return
            inside = [*_subschemas(here)]
            if len(self.parts) + len(inside) > SUBSCHEMAS_MAX:
                message = f"the schema has more than {SUBSCHEMAS_MAX} subschemas"
                hint = "Describe members of one kind together, with `additionalProperties` or `patternProperties`."
                self.faults.append(_fault((), message, hint))
                return
            self._one(path, here, inside)
            if self.references > REFERENCES_MAX or len(self.pointers) * len(self.resources) > TARGETS_MAX:
                message = f"the schema has more than {REFERENCES_MAX} references, or too many parts with an `$id`"
                self.faults.append(_fault(path, message, "Use fewer references, and omit `$id`."))
                return
            self._waiting.extend(((*path, *at), inner, depth + 1) for at, inner in inside)

    def _add_resource(self, schema: JsonObject) -> None:
        self.resources.append(schema)
        for pointer, targets in self.pointers.items():
            targets += self._found(pointer, schema)

    def _refer(self, path: tuple[str | int, ...], reference: str) -> None:
        self.references += 1
        self.places.setdefault(reference, path)
        if reference[1:2] in ("", "/") and reference not in self.pointers:
            targets = self.pointers[reference] = []
            for resource in self.resources:
                targets += self._found(reference, resource)

    def _found(self, pointer: str, resource: JsonObject) -> list[Json]:
        """Return the target of a pointer, and read it: it may be where no keyword expects a subschema."""
        target = _target(pointer, resource)
        self._waiting.extend((self.places[pointer], one, 0) for one in target if isinstance(one, dict))
        return target

    def _one(
        self, path: tuple[str | int, ...], here: JsonObject, inside: Sequence[tuple[tuple[str | int, ...], JsonObject]]
    ) -> None:
        """Read one subschema. `inside`: the subschemas directly inside it."""
        part = self._part(here)
        whole = [key for key in _WHOLE if key in here]
        part.weight = 1 + sum(_weight(key, here[key]) for key in whole)
        part.weight += _FRACTION_WEIGHT if "multipleOf" in here else 0
        part.is_evaluated_again = any(key in here for key in _UNEVALUATED)
        part.size = 1 + sum(_parts(here[key]) for key in whole)
        self.branches = self.branches or any(key in here for key in _BRANCHING)
        self._anchor(here)
        self._draft(path, here)
        self._pattern(path, here, part)
        for key in _REFERENCES:
            target = here.get(key)
            if not isinstance(target, str):
                continue
            if target.startswith("#"):
                part.references.append(target)
                self._refer((*path, key), target)
            elif _known_draft(target) is None:
                message = f"a schema may only refer to itself (`#/…`), not to {target[:100]!r}"
                hint = "Copy the part under `$defs` and refer to it there."
                self.faults.append(error("schema-remote-ref", pointer_to(*path, key), message, hint=hint))
            else:
                part.same.append(self._of_draft())
        for at, inner in inside:
            self._join(part, at, self._part(inner))

    def _of_draft(self) -> _Subschema:
        if self.draft is None:
            self.draft = _Subschema(number=-1, weight=DRAFT_WEIGHT, size=DRAFT_WEIGHT)
            self.draft.others.append(self.draft)
            self.branches = True
        return self.draft

    def _anchor(self, here: JsonObject) -> None:
        for key in ("$anchor", "$dynamicAnchor", "$id", "id"):
            name = here.get(key)
            if isinstance(name, str):
                self.anchors.setdefault(name.rpartition("#")[2], []).append(here)
                if key.endswith("id") and not name.startswith("#") and here is not self.resources[0]:
                    self._add_resource(here)

    def _draft(self, path: tuple[str | int, ...], here: JsonObject) -> None:
        draft = here.get("$schema")
        if draft is not None and _known_draft(draft) is None:
            message = f"`$schema` names a draft that is not supported: {str(draft)[:100]!r}"
            hint = f"Schemas are not fetched. Omit `$schema`, or use one of: {', '.join(DRAFTS)}."
            self.faults.append(error("schema-draft-unknown", pointer_to(*path, "$schema"), message, hint=hint))

    def _pattern(self, path: tuple[str | int, ...], here: JsonObject, part: _Subschema) -> None:
        own = here.get("pattern")
        keys = here.get("patternProperties")
        if isinstance(own, str):
            self.patterns += 1
            part.weight += _pattern_weight(own)
        if isinstance(keys, dict) and keys:
            self.patterns += len(keys)
            weight = sum(map(_pattern_weight, keys))
            part.keys.append(_Subschema(number=-1 - len(self.parts) - self.patterns, weight=weight))
        if self.patterns > PATTERNS_MAX:
            message = f"the schema has more than {PATTERNS_MAX} regular expressions"
            self.faults.append(_fault(path, message, "Use `enum`, or fewer patterns."))
            self.patterns = -_MANY  # report it only once

    def _join(self, part: _Subschema, at: tuple[str | int, ...], inner: _Subschema) -> None:
        key = str(at[0])
        if key == "properties":
            part.named[str(at[1])] = inner
        elif key in _SAME or key in _SAME_LISTS or key in _SAME_MAPS:
            part.same.append(inner)
        elif key == "propertyNames":
            part.keys.append(inner)
        elif key not in _DEFINITIONS:
            part.others.append(inner)

    def resolve(self) -> None:
        """Connect each subschema with the targets of its references. A dynamic one may lead to any anchor of its name:
        all are counted."""
        joined = 0
        for part in [*self.parts.values()]:
            for reference in part.references:
                values: Sequence[Json] = self.pointers.get(reference) or self.anchors.get(reference[1:], ())
                joined += len(values)
                if not values or joined > TARGETS_MAX:
                    message = f"the reference {reference[:100]!r} leads nowhere, or to too many parts"
                    self.faults.append(_fault(self.places[reference], message, "It leads to a part of this schema."))
                    return
                part.same.extend(self._part(target) for target in values if isinstance(target, dict))
        if excess := _unevaluated_excess([*self.parts.values()]):
            message = f"`unevaluatedProperties` and `unevaluatedItems` evaluate {excess}, with the references expanded"
            self.faults.append(_fault((), message, "Use `additionalProperties` and `items`, or fewer references."))


def _target(reference: str, resource: JsonObject) -> list[Json]:
    """Return the target of a reference `#/…` in a resource; empty if there is none."""
    here: Json = resource
    for key in pointer_parts(_unquoted(reference.removeprefix("#"))):
        if isinstance(here, dict) and key in here:
            here = here[key]
        elif isinstance(here, list) and INDEX.fullmatch(key) and int(key) < len(here):
            here = here[int(key)]
        else:
            return []
    return [here]


def _unquoted(pointer: str) -> str:
    """Decode the percent-encoding of a URI fragment."""
    raw = ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), pointer.encode("utf-8", "surrogatepass"))
    return raw.decode("utf-8", "replace")


def _pattern_weight(pattern: str) -> int:
    """Return the cost of searching a short text. The engine expands counted repetition: `a{1000}` is a thousand
    states."""
    return 500 if "{" in pattern else 1 + len(pattern) // 16


def _subschemas(schema: JsonObject) -> Iterator[tuple[tuple[str | int, ...], JsonObject]]:
    """Return the subschemas directly inside a schema, with the path to each."""
    for key, value in schema.items():
        if isinstance(value, dict):
            if key in _IN_OBJECTS:
                yield from (((key, name), member) for name, member in value.items() if isinstance(member, dict))
            elif key in _ALONE:
                yield (key,), value
        elif isinstance(value, list) and key in _IN_LISTS:
            yield from (((key, index), element) for index, element in enumerate(value) if isinstance(element, dict))


def _weight(keyword: str, value: Json) -> int:
    """Return the cost of comparing with the value of a keyword. Plain alternatives are looked up in a table."""
    if keyword == "enum" and isinstance(value, list) and not any(isinstance(element, dict | list) for element in value):
        return 1
    return _parts(value)
