"""Results of readers and writers of dialects: a document, its losses, and the origin of each part.

A reader is a pure function `read(document, *, name) -> ImportedDocument`; a writer is
`write(workflow, original) -> WrittenDocument`. Readers do not validate: `WorkflowDefinition.from_document` does.
`Sources` maps its pointers to the author's.
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
