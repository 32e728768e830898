"""Detection of a document's dialect by its shape, and extraction of workflows from envelopes. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from pointsman.definition.problems import pointer_to
from pointsman.dialects.readers import Sources
from pointsman.values import Json, JsonObject

DIALECTS: Final = ("native", "rows", "graph", "steps", "plan")

TABLES: Final = (
    "agent_workflows",
    "agent_workflow_nodes",
    "agent_workflow_edges",
    "agentWorkflows",
    "agentWorkflowNodes",
)
"""Names of tables; a document with one of them is a set of tables."""

_ENVELOPES_MAX: Final = 4
_PARTS: Final = ("nodes", "edges", "steps")
_WRAPPED: Final = ("workflow", "graph_definition", "graphDefinition", "definition", "template")
ENVELOPES: Final = (*_WRAPPED, "workflows")
"""Keys under which envelopes hold workflows."""
_OF_THE_WRAPPER: Final = ("id", "name", "title", "description", "version", "workflow_id", "is_active", "label")
"""Fields of an envelope that apply to the workflow inside, unless it sets them itself."""
_SAMPLE: Final = 50
"""Number of nodes and edges inspected to detect the shape."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A workflow found inside a document, with its position."""

    document: JsonObject
    sources: Sources = field(default_factory=Sources)


def unwrapped(document: JsonObject) -> tuple[Candidate, ...]:
    """Return the workflows in a document: itself, or those in its envelope. An envelope without any counts as a
    workflow."""
    return tuple(_unwrapped(Candidate(document), _ENVELOPES_MAX)) or (Candidate(document),)


def _unwrapped(here: Candidate, depth: int) -> Iterator[Candidate]:
    document = here.document
    if depth == 0 or any(key in document for key in (*_PARTS, *TABLES)):
        yield here
        return
    for key in _WRAPPED:
        inner = document.get(key)
        if isinstance(inner, dict):
            yield from _unwrapped(_inside(here, inner, key), depth - 1)
            return
    several = document.get("workflows")
    if isinstance(several, list):
        for index, inner in enumerate(several):
            if isinstance(inner, dict):
                yield from _unwrapped(_inside(here, inner, "workflows", index), depth - 1)
        return
    yield here


def _inside(outer: Candidate, inner: JsonObject, *path: str | int) -> Candidate:
    """Return the inner document with the fields of its envelope; pointers still lead to the author's positions."""
    fields = {key: outer.document[key] for key in _OF_THE_WRAPPER if key in outer.document and key not in inner}
    origin = {"": outer.sources.author_pointer(pointer_to(*path))}
    origin |= {pointer_to(key): outer.sources.author_pointer(pointer_to(key)) for key in fields}
    return Candidate({**inner, **fields}, Sources(origin))


def dialects_of(document: JsonObject) -> Mapping[str, str]:
    """Return dialect -> the detected characteristic. More than one dialect means that the document is ambiguous."""
    if "pointsman" in document:
        return {"native": "'pointsman'"}
    marks = {name: mark for name, look in _MARKS.items() if (mark := look(document))}
    if marks or not isinstance(document.get("nodes"), list):
        return marks
    return {"native": "a list of nodes"}


def _native(document: JsonObject) -> str:
    if any("source" in edge and "target" in edge for edge in _items(document, "edges")):
        return "edges with 'source' and 'target'"
    return ""


def _rows(document: JsonObject) -> str:
    for key in ("entrypointNodeId", "entrypoint_node_id", *TABLES):
        if key in document:
            return repr(key)
    for node in _items(document, "nodes"):
        kind = node.get("nodeType", node.get("node_type"))
        if "nodeType" in node or (isinstance(kind, str) and kind.isupper()):
            return "nodes with 'nodeType'"
    for edge in _items(document, "edges"):
        for key in ("conditionType", "condition_type", "sourceNodeId", "source_node_id"):
            if key in edge:
                return f"edges with {key!r}"
    return ""


def _graph(document: JsonObject) -> str:
    if "entry_node_id" in document:
        return "'entry_node_id'"
    is_list = isinstance(document.get("nodes"), list)
    if is_list and "entry_node" not in document and any("from_node" in edge for edge in _items(document, "edges")):
        return "edges with 'from_node'"
    return ""


def _steps(document: JsonObject) -> str:
    if "entry_node" in document:
        return "'entry_node'"
    if isinstance(document.get("nodes"), dict):
        return "'nodes' keyed by id"
    return ""


def _plan(document: JsonObject) -> str:
    steps = _items(document, "steps")
    if "nodes" not in document and any("method" in step or "input_sources" in step for step in steps):
        return "'steps' with 'method'"
    if "nodes" not in document and document.get("steps") == [] and ("goal" in document or "title" in document):
        return "'steps' beside a goal"
    return ""


_MARKS: Final[Mapping[str, Callable[[JsonObject], str]]] = {
    "native": _native,
    "rows": _rows,
    "graph": _graph,
    "steps": _steps,
    "plan": _plan,
}


def _items(document: JsonObject, key: str) -> list[JsonObject]:
    """Return the first objects in a list, or in the values of an object."""
    value = document.get(key)
    items: list[Json] = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [cast(JsonObject, item) for item in items[:_SAMPLE] if isinstance(item, dict)]
