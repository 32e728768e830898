"""Lossless writing: parts that did not change stay exactly as their author wrote them.

    author's document ─ read ─▶ workflow then ─ render ─▶ before ─┐
                                                                  ├─▶ author's document, changed where before ≠ after
                                workflow now  ─ render ─▶ after ──┘

This is a three-way merge. An unchanged workflow gives the author's document itself. A change of one part changes only
that part. Fields that the dialect cannot express survive, because neither rendering contains them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem, pointer_parts, warning
from pointsman.dialects.foreign_fields import FieldWords
from pointsman.dialects.results import ImportedDocument, WrittenDocument
from pointsman.dialects.scalar_conversion import validated
from pointsman.dialects.shapes import Candidate, unwrapped
from pointsman.values import Json, JsonObject

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rendered:
    """A workflow rendered in a dialect, in parts. The keys of nodes and edges identify them in the workflow."""

    head: JsonObject
    """Everything except nodes and edges."""
    nodes: Mapping[str, JsonObject]
    edges: Mapping[str, JsonObject]
    losses: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """Positions of the parts in an author's document."""

    head: JsonObject
    nodes: Json
    edges: Json
    assemble: Callable[[JsonObject, Json, Json], JsonObject]
    """Head, nodes and edges -> the whole document."""


def flat(head: JsonObject, nodes: Json, edges: Json) -> JsonObject:
    """Return the usual layout: `nodes` and `edges` after everything else."""
    return {**head, "nodes": nodes, "edges": edges}


def _in_place(head: JsonObject, nodes: Json, edges: Json) -> JsonObject:
    """Return the usual layout with the author's order of keys. Missing lists are not added if they are empty."""
    parts: JsonObject = {"nodes": nodes, "edges": edges}
    placed = {key: parts.get(key, value) for key, value in head.items()}
    return {**placed, **{key: value for key, value in parts.items() if key not in head and value}}


def flat_layout(document: JsonObject) -> Layout:
    return Layout(document, document.get("nodes"), document.get("edges"), _in_place)


@dataclass(frozen=True, slots=True)
class Dialect:
    """The properties of a dialect that writing needs."""

    name: str
    words: FieldWords
    read: Callable[[JsonObject, str], ImportedDocument]
    render: Callable[[WorkflowDefinition], Rendered]
    layout: Callable[[JsonObject], Layout] = flat_layout
    assemble: Callable[[JsonObject, Json, Json], JsonObject] = flat
    """Creates a whole document if there is no author's document."""
    nodes_by_id: bool = False
    """Whether `nodes` is an object keyed by id instead of a list."""


def write_with(dialect: Dialect, workflow: WorkflowDefinition, original: JsonObject | None) -> WrittenDocument:
    """Return the workflow in the dialect, merged into `original` if it was read from that."""
    after = dialect.render(workflow)
    if original is None or workflow.dialect != dialect.name:
        return WrittenDocument(_fresh(dialect, after), after.losses)
    candidate = _own_part(dialect, workflow, original)
    imported = dialect.read(candidate.document, workflow.id)
    then = validated(imported).workflow
    if then is None:
        hint = "It was written anew: comments, order and fields the dialect does not know are not in it."
        why = warning("original-unreadable", "", f"the {dialect.name} document it was read from has errors", hint=hint)
        return WrittenDocument(_fresh(dialect, after), (*after.losses, why))
    path = pointer_parts(candidate.sources.author_pointer(""))
    merged = _merged(dialect, dialect.layout(_at(original, path)), imported, then=then, after=after)
    document = _replaced(original, path, merged.document)
    assert isinstance(document, dict), "the author's document is an object"
    return WrittenDocument(document, merged.losses)


def _merged(
    dialect: Dialect, author: Layout, imported: ImportedDocument, *, then: WorkflowDefinition, after: Rendered
) -> WrittenDocument:
    before = dialect.render(then)
    merge = ThreeWayMerge(_style_of([author.head, author.nodes, author.edges], dialect.words), dialect.words)
    if dialect.nodes_by_id and isinstance(author.nodes, dict):
        nodes = merge.value(author.nodes, {**before.nodes}, {**after.nodes})
    else:
        nodes = merge.parts(author.nodes, before.nodes, after.nodes, _places(node_keys(then), "/nodes", imported))
    edges = merge.parts(author.edges, before.edges, after.edges, _places(edge_keys(then), "/edges", imported))
    head = merge.value(author.head, before.head, after.head)
    assert isinstance(head, dict), "objects merge into an object"
    losses = tuple(loss for loss in after.losses if loss not in before.losses)
    return WrittenDocument(author.assemble(head, nodes, edges), losses)


def _own_part(dialect: Dialect, workflow: WorkflowDefinition, original: JsonObject) -> Candidate:
    """Return the workflow inside the author's envelope; of several the one with the id of `workflow`."""
    first, *others = unwrapped(original)
    for candidate in (first, *others) if others else ():
        if dialect.read(candidate.document, "").document.get("id") == workflow.id:
            return candidate
    return first


def _at(document: JsonObject, path: Sequence[str]) -> JsonObject:
    found: Json = document
    for part in path:
        match found:
            case list():
                found = found[int(part)]
            case dict():
                found = found[part]
            case _:
                break
    assert isinstance(found, dict), "an envelope holds an object"
    return found


def _replaced(document: Json, path: Sequence[str], new: Json) -> Json:
    """Return the document with another value at one position."""
    if not path:
        return new
    key, rest = path[0], path[1:]
    if isinstance(document, list):
        return [_replaced(value, rest, new) if at == int(key) else value for at, value in enumerate(document)]
    assert isinstance(document, dict), "a path leads through lists and objects"
    return {name: _replaced(value, rest, new) if name == key else value for name, value in document.items()}


def _fresh(dialect: Dialect, after: Rendered) -> JsonObject:
    nodes: Json = dict(after.nodes) if dialect.nodes_by_id else list(after.nodes.values())
    return dialect.assemble(after.head, nodes, list(after.edges.values()))


def _places(keys: Sequence[str], native: str, imported: ImportedDocument) -> dict[str, int]:
    """Return key -> index in the author's list, for each part."""
    found: dict[str, int] = {}
    for index, key in enumerate(keys):
        last = pointer_parts(imported.sources.author_pointer(f"{native}/{index}"))[-1]
        if last.isdigit():
            found[key] = int(last)
    return found


def node_keys(workflow: WorkflowDefinition) -> tuple[str, ...]:
    """Return one key for each node: its id, numbered if an invalid document repeats it."""
    return _numbered([node.id for node in workflow.nodes])


def edge_keys(workflow: WorkflowDefinition) -> tuple[str, ...]:
    return _numbered([edge.id or f"{edge.source}->{edge.target}" for edge in workflow.edges])


def _numbered(names: Sequence[str]) -> tuple[str, ...]:
    seen: dict[str, int] = {}
    keys: list[str] = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        keys.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return tuple(keys)


class _Absent(Generic[T]):
    """Marker that distinguishes a missing key from null."""


_ABSENT: Final = _Absent[None]()


@dataclass(frozen=True, slots=True)
class ThreeWayMerge:
    """The merge of two renderings into an author's document. New fields use the author's most frequent spelling."""

    style: int
    words: FieldWords

    def value(self, author: Json, before: Json | _Absent[None], after: Json) -> Json:
        if before == after:
            return author
        if isinstance(author, dict) and isinstance(before, dict) and isinstance(after, dict):
            return self._object(author, before, after)
        return self._spelled(after)

    def _object(self, author: JsonObject, before: JsonObject, after: JsonObject) -> JsonObject:
        ours = {word: name for name, spellings in self.words.items() for word in spellings}
        merged: JsonObject = {}
        for key, said in author.items():
            name = ours.get(key, key)
            if name in after:
                merged[key] = self.value(said, before.get(name, _ABSENT), after[name])
            elif name not in before:
                merged[key] = said
        present = {ours.get(key, key) for key in author}
        for name, value in after.items():
            if name not in present and (name not in before or before[name] != value):
                merged[self._word(name)] = self._spelled(value)
        return merged

    def parts(
        self, author: Json, before: Mapping[str, JsonObject], after: Mapping[str, JsonObject], places: Mapping[str, int]
    ) -> Json:
        """Merge a list of identified parts, in the order of `after`. Parts that only the author's document has stay
        behind their neighbour."""
        if list(before.items()) == list(after.items()):
            return author
        if not isinstance(author, list):
            return [self._spelled(part) for part in after.values()]
        kept = {places[key] for key in after if key in places}
        known = set(places.values())
        followers: dict[int, list[Json]] = {}
        nearest = -1
        for index, part in enumerate(author):
            if index in kept:
                nearest = index
            elif index not in known:
                followers.setdefault(nearest, []).append(part)
        merged = list(followers.get(-1, []))
        for key, part in after.items():
            place = places.get(key)
            if place is None or place >= len(author):
                merged.append(self._spelled(part))
            else:
                merged.append(self.value(author[place], before.get(key, _ABSENT), part))
                merged.extend(followers.get(place, []))
        return merged

    def _word(self, name: str) -> str:
        spellings = self.words.get(name, (name,))
        return spellings[min(self.style, len(spellings) - 1)]

    def _spelled(self, value: Json) -> Json:
        if self.style and isinstance(value, dict):
            return {self._word(key): inner for key, inner in value.items()}
        return value


def _style_of(document: Json, words: FieldWords) -> int:
    """Return the spelling that the author uses most in the whole document."""
    counts: dict[int, int] = {}
    several = [spellings for spellings in words.values() if len(spellings) > 1]
    style_of = {word: style for spellings in several for style, word in enumerate(spellings)}
    unread: list[Json] = [document]
    while unread:
        match unread.pop():
            case dict() as found:
                for key in found:
                    if key in style_of:
                        counts[style_of[key]] = counts.get(style_of[key], 0) + 1
                unread.extend(found.values())
            case list() as found:
                unread.extend(found)
            case _:
                pass
    return max(counts, key=lambda style: (counts[style], -style), default=0)
