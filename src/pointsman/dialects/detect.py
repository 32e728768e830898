"""Reading of a text in any dialect: text ─▶ document ─▶ dialect ─▶ native document ─▶ workflow.

Problems of all stages are collected here; each carries the author's pointer, line and column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Final, Protocol, TypeAlias, cast

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem, did_you_mean, error, pointer_to, sort_problems
from pointsman.definition.reading.documents import SKETCH_HINT, Document
from pointsman.dialects.readers import (
    DialectReader,
    DialectWriter,
    ImportedDocument,
    Sources,
    WrittenDocument,
    validated,
)
from pointsman.dialects.shapes import DIALECTS, ENVELOPES, TABLES, Candidate, dialects_of, unwrapped
from pointsman.errors import CallerError
from pointsman.tool_output import load_plugin, package_errors
from pointsman.values import Json, JsonObject

ENTRY_POINTS: Final = "pointsman.dialects"
"""Entry-point group of plug-in dialects: objects with `matches(document) -> bool`, `read` and `write`."""

_SKETCH: Final = re.compile(r"\w[\w-]*(\s*\|\s*\w[\w-]*)+(\s*\|?\s*(\.\.\.|…))?|(\.\.\.|…)")
_KINDS: Final = frozenset({"type", "nodeType", "node_type", "conditionType", "condition_type", "step_type", "approach"})
"""Keys whose value is one word of a fixed list; a schema sketch lists all of them."""
_WITHOUT_KINDS: Final = frozenset({"outputSchema", "inputSchema", "schema", "metadata"})
"""Keys whose value is not a part of a workflow."""


class UnknownDialect(CallerError):
    """No dialect, built in or installed, has this name."""

    code = "unknown-dialect"


class DialectModule(Protocol):
    """Interface of a dialect."""

    read: DialectReader
    write: DialectWriter


class Plugin(DialectModule, Protocol):
    """Interface of a dialect from an entry point."""

    def matches(self, document: JsonObject) -> bool:
        """Return whether a document is in this dialect."""
        ...


class _InstalledDialect:
    """A dialect of an installed package. An error of its code names the package."""

    def __init__(self, plugin: EntryPoint) -> None:
        self._plugin = plugin
        self._module = cast(Plugin, load_plugin(plugin))

    def matches(self, document: JsonObject) -> bool:
        with package_errors(self._plugin, "cannot compare a document"):
            return self._module.matches(document)

    def read(self, document: JsonObject, *, name: str) -> ImportedDocument:
        with package_errors(self._plugin, "cannot read a document"):
            return self._module.read(document, name=name)

    def write(self, workflow: WorkflowDefinition, original: JsonObject | None) -> WrittenDocument:
        with package_errors(self._plugin, "cannot write a document"):
            return self._module.write(workflow, original)


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """Result of reading a document. `problems` are sorted and have positions; `workflow` is None if the structure has
    errors."""

    workflow: WorkflowDefinition | None
    problems: tuple[Problem, ...]
    dialect: str | None
    document: Document
    imported: ImportedDocument | None = None

    def placed(self, problem: Problem) -> Problem:
        """Return a problem of the workflow with its position in the author's document."""
        return self.document.placed(problem if self.imported is None else self.imported.placed(problem))


def read_workflow(document: Document, *, dialect: str | None = None, name: str = "") -> ReadDocument:
    """Read the only workflow of a document. `dialect` overrides detection; `name` (of the file) may become the id."""
    reads = read_workflows(document, dialect=dialect, name=name)
    if len(reads) == 1:
        return reads[0]
    ids = ", ".join(repr(str(read.workflow.id)) for read in reads if read.workflow is not None)
    several = error(
        "several-workflows", "", f"the document has {len(reads)} workflows: {ids}", hint="Keep one of them."
    )
    return ReadDocument(None, (document.placed(several),), None, document)


def read_workflows(document: Document, *, dialect: str | None = None, name: str = "") -> tuple[ReadDocument, ...]:
    """Read every workflow of a document. The result has at least one element."""
    value = document.value
    sketches = document.problems if not document.is_readable else _sketches(document)
    if not document.is_readable or sketches:
        return (ReadDocument(None, sort_problems((*document.problems, *sketches)), dialect, document),)
    if not isinstance(value, dict):
        shape = error("shape", "", "a workflow must be an object", hint="It has at least 'nodes' and 'edges'.")
        return (ReadDocument(None, (*document.problems, document.placed(shape)), dialect, document),)
    candidates = unwrapped(value)
    return tuple(_read(document, candidate, dialect=dialect, name=name) for candidate in candidates)


def write_workflow(
    workflow: WorkflowDefinition, *, dialect: str, original: JsonObject | None = None
) -> WrittenDocument:
    """Write a workflow in a dialect. `original` is the document that it was read from, if that is in the dialect."""
    return _module_of(dialect).write(workflow, original)


def _read(document: Document, candidate: Candidate, *, dialect: str | None, name: str) -> ReadDocument:
    if dialect is None and _is_empty_envelope(candidate):
        pointer = candidate.sources.author_pointer("/nodes" if "nodes" in candidate.document else "")
        empty = error("no-nodes", pointer, "the workflow has no nodes", hint="Add a node.")
        return ReadDocument(None, (*document.problems, document.placed(empty)), None, document)
    dialects = list(dialects_of(candidate.document)) if dialect is None else [dialect]
    if dialect is None and not dialects:
        dialects = [
            plugin.name
            for plugin in entry_points(group=ENTRY_POINTS)
            if _InstalledDialect(plugin).matches(candidate.document)
        ]
    if len(dialects) != 1:
        problem = _undecided(candidate)
        return ReadDocument(None, (*document.problems, document.placed(problem)), None, document)
    imported = _module_of(dialects[0]).read(candidate.document, name=name)
    imported = ImportedDocument(imported.document, imported.losses, imported.sources.within(candidate.sources))
    losses = [_outer(loss, candidate.sources) for loss in imported.losses]
    workflow, imported, problems = validated(imported)
    empty = (
        [error("no-nodes", "/nodes", "the workflow has no nodes", hint="Add a node.")] if _is_empty(workflow) else []
    )
    placed = [document.placed(imported.placed(problem)) for problem in (*problems, *empty)]
    everything = (*document.problems, *(document.placed(loss) for loss in losses), *placed)
    return ReadDocument(workflow, sort_problems(everything), dialects[0], document, imported)


def _is_empty(workflow: WorkflowDefinition | None) -> bool:
    return workflow is not None and all(node.type == "note" for node in workflow.nodes)


def _is_empty_envelope(candidate: Candidate) -> bool:
    """Return whether the document is an envelope without a graph: its dialect cannot be determined."""
    document = candidate.document
    if "pointsman" in document or document.get("nodes") or document.get("edges") or "steps" in document:
        return False
    if candidate.sources.origin:
        return not any(key in document for key in TABLES)
    return any(not document[key] for key in ENVELOPES if key in document)


def _outer(loss: Problem, sources: Sources) -> Problem:
    """Convert a pointer into the workflow, as readers give it, to a pointer into the whole file."""
    return ImportedDocument({}, (), sources).placed(loss)


def _undecided(candidate: Candidate) -> Problem:
    marks = dialects_of(candidate.document)
    pointer = candidate.sources.author_pointer("")
    if marks:
        candidates = " and ".join(f"{name} ({mark})" for name, mark in marks.items())
        hint = f"Choose one: --dialect {'|'.join(marks)}."
        return error("ambiguous-dialect", pointer, f"the document looks like {candidates}", hint=hint)
    keys = ", ".join(repr(key[:40]) for key in list(candidate.document)[:8]) or "nothing"
    hint = "A workflow has 'nodes' (a list of {id, type}) and 'edges' (a list of {source, target})."
    return error("unknown-dialect", pointer, f"this is not a workflow of a known dialect; it has {keys}", hint=hint)


def _module_of(dialect: str) -> DialectModule:
    """Return the module of a dialect, imported on first use."""
    if dialect in DIALECTS:
        return cast(DialectModule, import_module(f"pointsman.dialects.{dialect}"))
    installed = {plugin.name: plugin for plugin in entry_points(group=ENTRY_POINTS)}
    if dialect in installed:
        return _InstalledDialect(installed[dialect])
    dialects = [*DIALECTS, *installed]
    hint = f"{did_you_mean(dialect, dialects)} Known dialects: {', '.join(dialects)}.".strip()
    raise UnknownDialect(f"there is no dialect {dialect!r}", hint=hint)


def _sketches(document: Document) -> tuple[Problem, ...]:
    """Return errors for values such as `"agent|fanout|loop"`, which belong to the sketch of a schema."""
    problems: list[Problem] = []
    waiting: list[_Part] = [(None, "", document.value)]
    while waiting:
        part = waiting.pop()
        value = part[2]
        if isinstance(value, list):
            waiting += [(part, index, inner) for index, inner in enumerate(value) if isinstance(inner, dict | list)]
        elif isinstance(value, dict):
            for key, inner in value.items():
                if isinstance(inner, dict | list):
                    if key not in _WITHOUT_KINDS:
                        waiting.append((part, key, inner))
                elif key in _KINDS and isinstance(inner, str) and len(inner) < 500 and _SKETCH.fullmatch(inner.strip()):
                    at = pointer_to(*_path_of(part), key)
                    problem = error("schema-sketch", at, f"{inner!r} is a choice, not a value", hint=SKETCH_HINT)
                    problems.append(document.placed(problem))
    return tuple(problems)


_Part: TypeAlias = "tuple[_Part | None, str | int, Json]"
"""A part of a document: the enclosing part, its key or index there, its value."""


def _path_of(part: _Part) -> list[str | int]:
    path: list[str | int] = []
    around: _Part | None = part
    while around is not None:
        path.append(around[1])
        around = around[0]
    return path[-2::-1]
