"""What readers and writers of dialects give back: a native document, what was lost, and where everything came from.

A reader is a pure function `read(document, *, name) -> Imported`; a writer is `write(workflow, original) -> Written`.
Readers do not validate: `WorkflowDefinition.from_document` does that once. `Sources` maps its pointers to the author's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem
from pointsman.values import JsonObject


@dataclass(frozen=True, slots=True)
class Sources:
    """Native pointer -> author's pointer. What is not listed stands where its nearest listed ancestor says."""

    origin: Mapping[str, str] = field(default_factory=dict[str, str])
    outer: tuple[Sources, ...] = ()
    """Asked one after the other with what `origin` answered: documents inside documents."""

    def author_pointer(self, native_pointer: str) -> str:
        """The longest listed prefix decides; the rest of the pointer is kept."""
        pointer = _nearest(self.origin, native_pointer)
        for sources in self.outer:
            pointer = sources.author_pointer(pointer)
        return pointer

    def within(self, outer: Sources) -> Sources:
        """The same for an author whose document is a part of another one."""
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
    """A foreign document in native words. `losses` carry the author's pointers."""

    document: JsonObject
    losses: tuple[Problem, ...] = ()
    sources: Sources = Sources()

    def placed(self, problem: Problem) -> Problem:
        """A problem of the native document, told about the author's."""
        return replace(problem, pointer=self.sources.author_pointer(problem.pointer))


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    """A workflow in a dialect's words. With losses the result does not read back as the same workflow."""

    document: JsonObject
    losses: tuple[Problem, ...] = ()


class DialectReader(Protocol):
    def __call__(self, document: JsonObject, *, name: str) -> ImportedDocument:
        """Turn a foreign document into a native one. `name` (of the file) is the id where the document has none."""
        ...


class DialectWriter(Protocol):
    def __call__(self, workflow: WorkflowDefinition, original: JsonObject | None) -> WrittenDocument:
        """Spell a workflow in the dialect; `original` is the document it was read from, where it was."""
        ...
