"""Results of readers and writers of dialects: a document, its losses, the origin of each part, and its validation.

A reader is a pure function `read(document, *, name) -> ImportedDocument`; a writer is
`write(workflow, original) -> WrittenDocument`. Readers do not validate: `WorkflowDefinition.from_document` does.
`Sources` maps its pointers to the author's.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Protocol

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem, pointer_parts, warning
from pointsman.values import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Sources:
    """Native pointer -> author's pointer. A pointer that is not listed is resolved relative to its nearest listed
    ancestor."""

    origin: Mapping[str, str] = field(default_factory=dict[str, str])
    outer: tuple[Sources, ...] = ()
    """Applied one after the other to the result of `origin`: documents inside documents."""

    def author_pointer(self, native_pointer: str) -> str:
        """Return the author's pointer: the longest listed prefix is replaced, the rest is kept."""
        pointer = _nearest(self.origin, native_pointer)
        for sources in self.outer:
            pointer = sources.author_pointer(pointer)
        return pointer

    def within(self, outer: Sources) -> Sources:
        """Return the mapping for a document that is a part of another one."""
        return Sources(self.origin, (*self.outer, outer)) if outer.origin else self


def _nearest(origin: Mapping[str, str], pointer: str) -> str:
    known, rest = pointer, ""
    while known not in origin:
        if not known:
            return pointer
        known, _, last = known.rpartition("/")
        rest = f"/{last}{rest}"
    return origin[known] + rest


@dataclass(frozen=True, slots=True)
class ImportedDocument:
    """A foreign document converted to the native dialect. `losses` have pointers into the author's document."""

    document: JsonObject
    losses: tuple[Problem, ...] = ()
    sources: Sources = Sources()

    def placed(self, problem: Problem) -> Problem:
        """Return a problem of the native document with its pointer into the author's document."""
        return replace(problem, pointer=self.sources.author_pointer(problem.pointer))


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    """A workflow written in a dialect. If there are losses, reading the result gives another workflow."""

    document: JsonObject
    losses: tuple[Problem, ...] = ()


class DialectReader(Protocol):
    def __call__(self, document: JsonObject, *, name: str) -> ImportedDocument:
        """Convert a foreign document to a native one. `name` (of the file) is the id if the document has none."""
        ...


class DialectWriter(Protocol):
    def __call__(self, workflow: WorkflowDefinition, original: JsonObject | None) -> WrittenDocument:
        """Write a workflow in the dialect; `original` is the document that it was read from, if there is one."""
        ...


_NUMBER: Final = re.compile(r"\s*-?[0-9]{1,15}(\.[0-9]{1,15})?\s*")
_WRONG: Final = frozenset({"bad-value", "wrong-type"})
_TRUTH: Final = {"true": True, "false": False}


class Validated(NamedTuple):
    """An imported document after validation by the models."""

    workflow: WorkflowDefinition | None
    imported: ImportedDocument
    """The document with converted values."""
    problems: tuple[Problem, ...]
    """Errors of the models, and a warning for each converted value; native pointers."""


def validated(imported: ImportedDocument) -> Validated:
    """Validate an imported document. Scalars of the wrong type are converted if that makes them valid."""
    workflow, problems = WorkflowDefinition.from_document(imported.document)
    is_ours = "pointsman" in imported.document and imported.document.get("dialect", "native") == "native"
    changes = {} if is_ours else dict(_changes(imported.document, problems))
    if not changes:
        return Validated(workflow, imported, tuple(problems))
    _, left = WorkflowDefinition.from_document(_changed(imported.document, changes))
    for one in left:
        changes.pop(one.pointer, None)
    if not changes:
        return Validated(workflow, imported, tuple(problems))
    document = _changed(imported.document, changes)
    workflow, left = WorkflowDefinition.from_document(document)
    told = [
        warning(
            "type-converted",
            pointer,
            f"the value is read as {value!r}" if isinstance(value, str) else f"the text is read as {_written(value)}",
            hint="Write this value in the document.",
        )
        for pointer, value in changes.items()
    ]
    return Validated(workflow, replace(imported, document=document), (*left, *told))


def _changes(document: JsonObject, problems: list[Problem] | tuple[Problem, ...]) -> Iterator[tuple[str, Json]]:
    for problem in problems:
        if problem.code in _WRONG:
            parts = pointer_parts(problem.pointer)
            holder, key = _holder(document, parts) if parts else (None, "")
            if holder is not None and (value := _converted(_value(holder, key))) is not None:
                yield problem.pointer, value


def _converted(value: Json) -> Json:
    """Return the value converted to the other type; None: it cannot be converted."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        return None
    if _NUMBER.fullmatch(value):
        number = float(value)
        return int(number) if number.is_integer() else number
    return _TRUTH.get(value.strip().lower())


def _changed(document: JsonObject, changes: dict[str, Json]) -> JsonObject:
    made = copy.deepcopy(document)
    for pointer, value in changes.items():
        holder, key = _holder(made, pointer_parts(pointer))
        if isinstance(holder, dict):
            holder[key] = value
        elif isinstance(holder, list):
            holder[int(key)] = value
    return made


def _holder(document: JsonObject, parts: tuple[str, ...]) -> tuple[Json, str]:
    here: Json = document
    for part in parts[:-1]:
        here = _value(here, part)
    return here, parts[-1]


def _value(holder: Json, key: str) -> Json:
    if isinstance(holder, dict):
        return holder.get(key)
    if isinstance(holder, list) and key.isdecimal() and int(key) < len(holder):
        return holder[int(key)]
    return None


def _written(value: Json) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
