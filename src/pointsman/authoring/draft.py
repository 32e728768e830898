"""A native document during a change: parts are found by name and changed by pointer. It may be invalid."""

from __future__ import annotations

import copy
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Final

from pointsman.authoring.operations import OperationRefused
from pointsman.definition.graph.links import fresh_name
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import did_you_mean, pointer_parts
from pointsman.values import END, Json, JsonObject

ARROW: Final = "->"
AT_END: Final = "-"
"""The position behind the last item of a list."""


class Draft:
    """A private copy of a document, with operations on its parts.

    The draft finds parts by an index of their names, which it makes when it is needed. Code that changes an id or an
    end of an edge calls `forget_names` afterwards.
    """

    def __init__(self, document: JsonObject) -> None:
        self.document = copy.deepcopy(document)
        self._parts("nodes")
        self._parts("edges")
        self._by_id: dict[str, JsonObject] | None = None
        self._edges: _NamedEdges | None = None

    def forget_names(self) -> None:
        """Discard the index of names."""
        self._by_id = self._edges = None

    def _parts(self, key: str) -> list[Json]:
        parts = self.document.setdefault(key, [])
        if not isinstance(parts, list):
            raise OperationRefused(
                f"{key!r} is not a list", hint="Write a new workflow; this one cannot be changed by operations."
            )
        return parts

    @property
    def nodes(self) -> list[Json]:
        """The nodes as written, possibly invalid."""
        return self._parts("nodes")

    @property
    def edges(self) -> list[Json]:
        """The edges as written, possibly invalid."""
        return self._parts("edges")

    def ids(self) -> list[str]:
        return [str(node["id"]) for node in self.nodes if isinstance(node, dict) and "id" in node]

    def has(self, node: str) -> bool:
        return node in self._nodes_by_id()

    def node(self, name: str) -> JsonObject:
        """Return a node by its id. Raises `OperationRefused`."""
        numbers = self._nodes_by_id().get(name)
        if numbers is None or numbers["id"] != name:
            raise _unknown("node", name, self.ids())
        return numbers

    def _nodes_by_id(self) -> dict[str, JsonObject]:
        if self._by_id is None:
            self._by_id = {}
            for node in self.nodes:
                if isinstance(node, dict) and "id" in node:
                    self._by_id.setdefault(str(node["id"]), node)
        return self._by_id

    def add(self, node: JsonObject) -> None:
        """Add a node with a free id."""
        self._nodes_by_id()[str(node["id"])] = node
        self.nodes.append(node)

    def edge(self, name: str) -> JsonObject:
        """Return an edge by its name. Raises `OperationRefused`."""
        numbers = self._named_edges().by_name.get(name)
        if numbers is None:
            raise _unknown("edge", name, [edge_name for edge_name, _ in self.named_edges()])
        return numbers

    def has_edge(self, name: str) -> bool:
        return name in self._named_edges().by_name

    def _named_edges(self) -> _NamedEdges:
        if self._edges is None:
            self._edges = _NamedEdges(self.written_edges())
        return self._edges

    def written_edges(self) -> list[JsonObject]:
        """Return the edges that are objects."""
        return [edge for edge in self.edges if isinstance(edge, dict)]

    def named_edges(self) -> Iterator[tuple[str, JsonObject]]:
        """Return each edge with the name that messages and operations use for it."""
        edges = self.written_edges()
        return zip(edge_names(edges), edges, strict=True)

    def ways_from(self, node: str) -> list[JsonObject]:
        return [edge for edge in self.written_edges() if edge.get("source") == node]

    def ways_to(self, node: str) -> list[JsonObject]:
        return [edge for edge in self.written_edges() if edge.get("target") == node]

    def connect(self, edge: JsonObject, *, behind: JsonObject | None = None) -> None:
        """Add an edge: at the end, or right behind another one, because edges are evaluated in order."""
        edges = self.edges
        if behind is None:
            if self._edges is not None and not self._edges.append(edge):
                self._edges = None
            edges.append(edge)
            return
        self._edges = None
        place = next((at + 1 for at, one in enumerate(edges) if one is behind), len(edges))
        edges.insert(place, edge)

    def drop(self, edges: Iterable[JsonObject]) -> None:
        """Remove edges."""
        dropped = {id(edge) for edge in edges}
        self._edges = None
        self.edges[:] = [edge for edge in self.edges if id(edge) not in dropped]

    def must_lead_somewhere(self, edge: JsonObject) -> None:
        """Raise `OperationRefused` if an end of an edge is not a node."""
        for key in ("source", "target"):
            end = edge.get(key)
            if not isinstance(end, str):
                raise OperationRefused(f"the edge has no {key!r}", hint="An edge is {source, target, …}.")
            if not self.has(end) and not (key == "target" and end == END):
                raise _unknown("node", end, self.ids())

    def workflow(self) -> WorkflowDefinition:
        """Return the definition of the document. Raises `OperationRefused` if it has structural errors."""
        workflow, problems = WorkflowDefinition.from_document(self.document)
        if workflow is None:
            first = next((problem for problem in problems if problem.severity == "error"), problems[0])
            raise OperationRefused(
                f"operations need a workflow with a valid structure, and {first.pointer or 'it'}: {first.message}",
                hint="Fix that first.",
            )
        return workflow


class _NamedEdges:
    """Edges by their names. Of several edges with one name the first has it."""

    def __init__(self, edges: Sequence[JsonObject]) -> None:
        self._taken: dict[str, int] = {}
        self.by_name: dict[str, JsonObject] = {}
        for name, edge in zip(_names(edges, self._taken), edges, strict=True):
            self.by_name.setdefault(name, edge)

    def append(self, edge: JsonObject) -> bool:
        """Add the last edge. False: its id may change the names of others, so the index must be made again."""
        if may_rename(edge):
            return False
        (name,) = _names([edge], self._taken)
        self.by_name.setdefault(name, edge)
        return True


def may_rename(edge: Mapping[str, Json]) -> bool:
    """Return whether the id of an edge looks like a name that is made of ends: another edge may give way to it."""
    return ARROW in str(edge.get("id") or "")


def name_of_ends(edge: Mapping[str, Json]) -> str:
    return f"{edge.get('source')}{ARROW}{edge.get('target')}"


def is_at_one_of(nodes: Container[str], edge: Mapping[str, Json]) -> bool:
    """Return whether an end of the edge is one of these nodes."""
    return any(isinstance(end, str) and end in nodes for end in (edge.get("source"), edge.get("target")))


def edge_names(edges: Iterable[Mapping[str, Json]]) -> list[str]:
    """Return the name of each edge: its id, or `source->target`, with a number if that is taken."""
    return _names([*edges], {})


def _names(edges: Sequence[Mapping[str, Json]], taken: dict[str, int]) -> list[str]:
    """Return the name of each edge, and add the names to `taken`."""
    taken |= {str(edge["id"]): 2 for edge in edges if edge.get("id") is not None}
    return [str(edge["id"]) if edge.get("id") is not None else fresh_name(name_of_ends(edge), taken) for edge in edges]


def change(
    thing: JsonObject, put: Mapping[str, Json], remove: Sequence[str], *, what: str, protected: Sequence[str] = ()
) -> None:
    """Set and remove the members that pointers name. `protected`: members that cannot be changed this way. Raises
    `OperationRefused`."""
    for pointer in (*put, *remove):
        parts = pointer_parts(pointer)
        if not pointer.startswith("/"):
            raise OperationRefused(
                f"{pointer!r} is not a JSON pointer into {what}", hint="Write it as '/config/prompt'."
            )
        if parts[0] in protected:
            raise OperationRefused(
                f"{pointer!r} of {what} cannot be changed this way", hint="Use the operations for it."
            )
    for pointer, value in put.items():
        _put(thing, pointer_parts(pointer), copy.deepcopy(value), pointer, what)
    # From the last to the first, so that a removal does not shift the positions of the others.
    for pointer in sorted(remove, key=_natural, reverse=True):
        _remove(thing, pointer_parts(pointer), pointer, what)


def _natural(pointer: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() and len(part) < 10 else (-1, part) for part in pointer_parts(pointer)]


def _put(here: Json, parts: Sequence[str], value: Json, pointer: str, what: str) -> None:
    *parents, last = parts
    for part in parents:
        if isinstance(here, dict):
            if here.get(part) is None:
                here[part] = {}
            here = here[part]
        else:
            here = _item(here, part, pointer, what)
    if isinstance(here, dict):
        here[last] = value
    elif isinstance(here, list) and (last == AT_END or last == str(len(here))):
        here.append(value)
    else:
        _item(here, last, pointer, what)
        assert isinstance(here, list)
        here[int(last)] = value


def _remove(here: Json, parts: Sequence[str], pointer: str, what: str) -> None:
    *parents, last = parts
    for part in parents:
        here = _member(here, part, pointer, what)
    _member(here, last, pointer, what)
    if isinstance(here, dict):
        del here[last]
    elif isinstance(here, list):
        del here[int(last)]


def _member(here: Json, part: str, pointer: str, what: str) -> Json:
    if isinstance(here, dict):
        if part not in here:
            members = ", ".join(map(repr, list(here)[:10])) or "nothing"
            raise OperationRefused(f"{what} has no {pointer!r}", hint=f"At the position of {part!r} is {members}.")
        return here[part]
    return _item(here, part, pointer, what)


def _item(here: Json, part: str, pointer: str, what: str) -> Json:
    if isinstance(here, list) and part.isascii() and part.isdigit() and len(part) < 10 and int(part) < len(here):
        return here[int(part)]
    length = f"a list of {len(here)}" if isinstance(here, list) else "neither an object nor a list"
    raise OperationRefused(f"{pointer!r} does not exist in {what}", hint=f"At the position of {part!r} is {length}.")


def _unknown(kind: str, name: str, names: Sequence[str]) -> OperationRefused:
    near = did_you_mean(name, names)
    listed = ", ".join(map(repr, names[:20])) or "none"
    return OperationRefused(f"there is no {kind} {name[:200]!r}", hint=near or f"Existing: {listed}.")
