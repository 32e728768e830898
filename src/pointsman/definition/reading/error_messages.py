"""Translation of pydantic errors into problems: position in the document, plain words, nearest correct spelling."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Final, Union, cast, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pointsman.definition.model.base import EXTENSION_PREFIX, Model, descriptions_of, near_duration
from pointsman.definition.model.nodes import CONFIG_OF, TYPE_ALIASES, Node
from pointsman.definition.problems import (
    PROBLEMS_MAX,
    JsonPatchOp,
    Problem,
    did_you_mean,
    error,
    more_problems,
    pointer_to,
    question,
    rename_fix,
)
from pointsman.values import Json, JsonObject

_SHOWN_MAX: Final = 60

_WORDS: Final[Mapping[str, str]] = {
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "string_unicode": "is not valid Unicode (half of a surrogate pair)",
    "finite_number": "must be a finite number",
}
_SIZES: Final[Mapping[str, str]] = {
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "greater_than": "must be more than {gt:g}",
    "less_than": "must be less than {lt:g}",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
}


def findings_of(why: ValidationError, *, document: JsonObject, root: type[Model]) -> list[Problem]:
    """Return every error as a problem; errors of the members of a union at one position are merged into one."""
    problems: dict[str, Problem] = {}
    objections = why.errors(include_url=False)
    if len(objections) >= PROBLEMS_MAX:
        problems["more"] = more_problems(len(objections) - PROBLEMS_MAX + 1)
    for objection in objections[: PROBLEMS_MAX - 1]:
        parts = _parts(objection, document)
        problem = _finding(objection, parts, document=document, root=root)
        known = problems.setdefault(f"{problem.pointer} {problem.code}", problem)
        if problem.code == "wrong-type" and problem.message != known.message:
            problems[f"{problem.pointer} {problem.code}"] = _either(known, problem)
    return list(problems.values())


def _finding(
    objection: ErrorDetails, parts: tuple[str | int, ...], *, document: JsonObject, root: type[Model]
) -> Problem:
    kind, context = objection["type"], objection.get("ctx", {})
    if kind == "string_pattern_mismatch" and context.get("pattern") == f"^{EXTENSION_PREFIX}":
        return _unknown_key(parts, document=document, root=root)
    if kind == "missing":
        absent = objection["loc"][len(parts) :]
        hint = _meaning((*parts, *absent[:-1]), str(absent[-1]), document, root)
        key = ".".join(str(part) for part in absent)
        return error("missing-key", pointer_to(*parts), f"{_name(parts, document)} needs {key!r}", hint=hint)
    at, shown = pointer_to(*parts), _shown(objection["input"])
    if kind == "literal_error":
        wanted = str(context["expected"])
        near = did_you_mean(
            str(objection["input"])[:_SHOWN_MAX], [word.strip("'") for word in wanted.replace(" or ", ", ").split(", ")]
        )
        if not near and parts[-2:-1] == ("actions",):
            near = "Answers of your own are `options`, for example `options: [{value: send}]`."
        return error("bad-value", at, f"{_name(parts, document)} must be {wanted}, not {shown}", hint=near)
    if kind == "value_error":
        message = str(context.get("error", objection["msg"]))
        value = objection["input"]
        near = near_duration(value) if isinstance(value, str) and "length of time" in message else None
        return error(
            "bad-value", at, f"{_name(parts, document)} {message}", hint=question(near, ""), fix=rename_fix(at, near)
        )
    if kind in _SIZES:
        return error("out-of-range", at, f"{_name(parts, document)} {_SIZES[kind].format(**context)}, not {shown}")
    words = _WORDS.get(kind, objection["msg"].replace("Input should", "must", 1))
    return error(
        "wrong-type", at, f"{_name(parts, document)} {words}, not {shown}", hint=_text_hint(kind, objection["input"])
    )


def _unknown_key(parts: tuple[str | int, ...], *, document: JsonObject, root: type[Model]) -> Problem:
    key, holder = str(parts[-1]), parts[:-1]
    known = sorted(
        {
            field.alias or name
            for model in _models_at(root, holder, document)
            for name, field in model.model_fields.items()
        }
    )
    near = "" if key in known else did_you_mean(key, known)
    hint = near or (
        f"Known keys: {', '.join(known)}. Keys of your own begin with {EXTENSION_PREFIX!r}." if known else ""
    )
    if key in known:  # Another variant of the object has this key.
        hint = f"{key!r} cannot be combined with the other keys of this object."
    fix: tuple[JsonPatchOp, ...] | None = None
    if near:
        right = near.split("'")[1]
        here = _value_at(document, holder)
        if isinstance(here, dict) and right not in here:
            fix = ({"op": "move", "from": pointer_to(*parts), "path": pointer_to(*holder, right)},)
    return error(
        "unknown-key",
        pointer_to(*parts),
        f"{_name(holder, document)} has no key {key[:_SHOWN_MAX]!r}",
        hint=hint,
        fix=fix,
    )


def _either(problem: Problem, other: Problem) -> Problem:
    wanted, _, rest = problem.message.rpartition(", not ")
    _, _, also = other.message.partition(" must be ")
    also = also.rpartition(", not ")[0]
    return (
        problem
        if not also or also in wanted
        else error(problem.code, problem.pointer, f"{wanted} or {also}, not {rest}", hint=problem.hint)
    )


_TEXT_KEYS: Final = ("text", "content", "value", "name", "title", "id", "url", "path")
"""Keys under which an object has the text that it stands for, the most likely first."""


def _text_hint(kind: str, value: object) -> str:
    if kind == "string_type" and isinstance(value, dict):
        known = cast("dict[str, object]", value)
        texts = [text for key in _TEXT_KEYS if isinstance(text := known.get(key), str) and text.strip()]
        shown = json.dumps(texts[0][:_SHOWN_MAX], ensure_ascii=False) if texts else '"…"'
        return f"Write one text in place of the object, such as {shown}."
    if kind == "string_type" and isinstance(value, list) and len(written := json.dumps(value)) <= _SHOWN_MAX:
        return f"Write it as a text: {json.dumps(written)}."
    if kind == "string_type" and isinstance(value, int | float | bool):
        return f'Write it as a text: "{str(value).lower() if isinstance(value, bool) else value}".'
    if kind in {"int_type", "float_type", "bool_type"} and isinstance(value, str):
        return "Write it without quotes."
    return ""


def _parts(objection: ErrorDetails, document: JsonObject) -> tuple[str | int, ...]:
    """Return the location without the names of union members, which are not part of the document."""
    here = cast(object, document)
    parts: list[str | int] = []
    for part in objection["loc"][: -1 if objection["type"] == "missing" else None]:
        if isinstance(here, dict) and isinstance(part, str) and part in here:
            here = cast(JsonObject, here)[part]
        elif isinstance(here, list | tuple) and isinstance(part, int) and part < len(cast(Sequence[object], here)):
            here = cast(Sequence[object], here)[part]
        else:
            continue
        parts.append(part)
    return tuple(parts)


def _models_at(root: type[Model], parts: Sequence[str | int], document: JsonObject) -> tuple[type[Model], ...]:
    """Return the models that may stand at this position."""
    kinds: list[object] = [root]
    here = cast(object, document)
    for part in parts:
        holder, here = here, _step(here, part)
        inner = [inner_model for kind in kinds for inner_model in _inner(kind, part)]
        if Node in kinds and part == "config" and isinstance(holder, dict):
            kind = str(cast(JsonObject, holder).get("type"))
            inner = list[object]([CONFIG_OF.get(TYPE_ALIASES.get(kind, kind), Model)])
        kinds = inner
    models = tuple(kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Model))
    tag = cast(JsonObject, here).get("type") if isinstance(here, dict) else None
    tagged = tuple(
        model for model in models if "type" in model.model_fields and model.model_fields["type"].default == tag
    )
    return tagged or models


def _inner(kind: object, part: str | int) -> Iterator[object]:
    """Return the types that an annotation declares for one of its parts."""
    if isinstance(kind, type) and issubclass(kind, Model):
        for name, field in kind.model_fields.items():
            if part in (field.alias, name):
                yield from _flat(field.annotation)
    elif get_origin(kind) is tuple and isinstance(part, int):
        yield from _flat(get_args(kind)[0])
    elif get_origin(kind) is dict:
        yield from _flat(get_args(kind)[1])


def _flat(annotation: object) -> Iterator[object]:
    """Return the plain types inside `Annotated` and unions."""
    if get_origin(annotation) is Annotated:
        yield from _flat(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for member in get_args(annotation):
            yield from _flat(member)
    else:
        yield annotation


def _step(here: object, part: str | int) -> object:
    if isinstance(here, dict) and isinstance(part, str):
        return cast(JsonObject, here).get(part)
    if isinstance(here, list) and isinstance(part, int) and part < len(cast(list[Json], here)):
        return cast(list[Json], here)[part]
    return None


def _value_at(document: JsonObject, parts: Sequence[str | int]) -> object:
    here: object = document
    for part in parts:
        here = _step(here, part)
    return here


def _name(parts: Sequence[str | int], document: JsonObject) -> str:
    """Describe the position in words: `config.retries of node 'write'`."""
    owner = ""
    if len(parts) >= 2 and parts[0] in ("nodes", "edges"):
        item = _value_at(document, parts[:2])
        known = cast(JsonObject, item).get("id") if isinstance(item, dict) else None
        kind = str(parts[0])[:-1]
        owner = f"{kind} {known!r}" if isinstance(known, str) and known else f"{kind} number {int(parts[1]) + 1}"
        parts = parts[2:]
    path = ".".join(str(part) for part in parts)
    if not path:
        return owner or "the workflow"
    return f"{path!r} of {owner}" if owner else f"{path!r}"


def _meaning(parts: Sequence[str | int], key: str, document: JsonObject, root: type[Model]) -> str:
    for model in _models_at(root, parts, document):
        for name, field in model.model_fields.items():
            if key in (field.alias, name):
                return descriptions_of(model).get(name, "")
    return ""


def _shown(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case dict():
            return "an object"
        case list() | tuple():
            return "a list"
        case _:
            text = repr(value) if not isinstance(value, int) or abs(value) < 10**30 else "a very large number"
            return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
