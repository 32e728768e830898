"""Shared parts of the writers of dialects: losses, conditions, and lossless writing, YAML.

In lossless writing, parts that did not change stay exactly as their author wrote them.

    author's document ─ read ─▶ workflow then ─ render ─▶ before ─┐
                                                                  ├─▶ author's document, changed where before ≠ after
                                workflow now  ─ render ─▶ after ──┘

This is a three-way merge. An unchanged workflow gives the author's document itself. A change of one part changes only
that part. Fields that the dialect cannot express survive, because neither rendering contains them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar, cast

from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.base import EXTENSION_PREFIX, Model, read_as, written
from pointsman.definition.model.nodes import (
    Always,
    AnyCondition,
    Contains,
    Edge,
    Equals,
    Exists,
    Node,
    OnLabel,
    When,
)
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem, pointer_parts, pointer_to, warning
from pointsman.dialects.readers import FieldWords, ImportedDocument, WrittenDocument, member, validated
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
        hint = (
            "The document is written from scratch, without comments, order and fields that the dialect does not have."
        )
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
        nodes = merge.parts(
            author.nodes, before.nodes, after.nodes, _author_positions(node_keys(then), "/nodes", imported)
        )
    edges = merge.parts(author.edges, before.edges, after.edges, _author_positions(edge_keys(then), "/edges", imported))
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
    result: Json = document
    for part in path:
        match result:
            case list():
                result = result[int(part)]
            case dict():
                result = result[part]
            case _:
                break
    assert isinstance(result, dict), "an envelope holds an object"
    return result


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


def _author_positions(keys: Sequence[str], native: str, imported: ImportedDocument) -> dict[str, int]:
    """Return key -> index in the author's list, for each part."""
    result: dict[str, int] = {}
    for index, key in enumerate(keys):
        last = pointer_parts(imported.sources.author_pointer(f"{native}/{index}"))[-1]
        if last.isdigit():
            result[key] = int(last)
    return result


def node_keys(workflow: WorkflowDefinition) -> tuple[str, ...]:
    """Return one key for each node: its id, numbered if an invalid document repeats it."""
    return _numbered([node.id for node in workflow.nodes])


def edge_keys(workflow: WorkflowDefinition) -> tuple[str, ...]:
    return _numbered([edge.id or f"{edge.source}->{edge.target}" for edge in workflow.edges])


def _numbered(names: Sequence[str]) -> tuple[str, ...]:
    counts: dict[str, int] = {}
    keys: list[str] = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        keys.append(name if counts[name] == 1 else f"{name}#{counts[name]}")
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
        for key, author_value in author.items():
            name = ours.get(key, key)
            if name in after:
                merged[key] = self.value(author_value, before.get(name, _ABSENT), after[name])
            elif name not in before:
                merged[key] = author_value
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
        positions = {places[key] for key in after if key in places}
        indexes = set(places.values())
        followers: dict[int, list[Json]] = {}
        nearest = -1
        for index, part in enumerate(author):
            if index in positions:
                nearest = index
            elif index not in indexes:
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
            case dict() as collection:
                for key in collection:
                    if key in style_of:
                        counts[style_of[key]] = counts.get(style_of[key], 0) + 1
                unread.extend(collection.values())
            case list() as collection:
                unread.extend(collection)
            case _:
                pass
    return max(counts, key=lambda style: (counts[style], -style), default=0)


class InlineAgents:
    """The agents of a workflow, including those that its nodes define."""

    def __init__(self, workflow: WorkflowDefinition) -> None:
        self.named: dict[str, AgentConfig] = dict(workflow.agents or {})

    def name_for(self, config: AgentConfig, node_id: str, *, beside: Collection[str] = ()) -> str:
        """Return the agent's name. A node that extends a named agent defines `<name>.<node>`. Fields in `beside` stay
        in the node."""
        own = {key: value for key, value in document_of(config).items() if key not in beside}
        agent = own.pop("agent", None)
        if isinstance(agent, str) and not own:
            return agent
        name = f"{agent}.{node_id}" if isinstance(agent, str) else node_id
        inherited = document_of(self.named.get(agent)) if isinstance(agent, str) else {}
        made = read_as(AgentConfig, {**inherited, **own})
        assert isinstance(made, AgentConfig)
        self.named[name] = made
        return name

    def documents(self) -> JsonObject:
        return {name: document_of(agent) for name, agent in self.named.items()}


def condition_text(condition: AnyCondition | None, source: str) -> str | None:
    """Return an expression equivalent to the condition; "" for always; None if no expression is equivalent."""
    match condition:
        case None | Always():
            return ""
        case When(expression=expression):
            return expression
        case Equals(field=field, value=value):
            return f"{field} == {_literal(value)}"
        case Contains(field=field, value=value):
            return f"{_literal(value)} in {field}"
        case Exists(field=field):
            return f"exists({field})"
        case OnLabel(label=label):
            return f"{member('nodes', source)}.branch == {_literal(label)}"
        case _:
            return None


def _literal(value: object) -> str:
    return json.dumps(as_json(value), ensure_ascii=False)


NEVER_LOST: Final = frozenset(("pointsman", "dialect", "id", "nodes", "edges"))


def loss(pointer: str, what: str, dialect: str, *, hint: str = "") -> Problem:
    return warning("not-in-dialect", pointer, f"{what} cannot be expressed in {dialect!r}", hint=hint)


def lost_fields(part: Model, fields: Collection[str], at: str, dialect: str) -> Iterator[Problem]:
    """Yield a loss for each field that is set and that the dialect cannot express. `x-*` keys belong to the author."""
    for key in document_of(part):
        if key not in fields and not key.startswith(EXTENSION_PREFIX):
            yield loss(at + pointer_to(key), f"{key!r}", dialect)


def document_of(part: Model | None) -> JsonObject:
    """Return a part of a workflow as JSON, without unset fields; of a workflow without nodes and edges."""
    if isinstance(part, WorkflowDefinition):
        document = as_json(part.model_dump(by_alias=True, exclude_unset=True, exclude={"nodes", "edges"}))
    else:
        document = as_json(written(part))
    return {key: value for key, value in document.items() if value is not None} if isinstance(document, dict) else {}


def as_json(value: object) -> Json:
    """Return a value as JSON. Tuples of the frozen models become lists; raises TypeError for values that models cannot
    hold."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {key: as_json(inner) for key, inner in cast(Mapping[str, object], value).items()}
        case list() | tuple():
            return [as_json(inner) for inner in cast(Sequence[object], value)]
        case _:
            raise TypeError(f"not JSON: {type(value).__name__}")


def extension_of(part: Model, dialect: str) -> JsonObject:
    """Return the values that the reader of the dialect kept for its writer, and the author's other `x-*` keys."""
    extra = part.__pydantic_extra__ or {}
    own = as_json(extra.get(f"x-{dialect}"))
    others = {key: as_json(value) for key, value in extra.items() if key != f"x-{dialect}"}
    return {**others, **(own if isinstance(own, dict) else {})}


def labels_of(workflow: WorkflowDefinition) -> dict[str, str]:
    return {node.id: node.label for node in workflow.nodes}


def outgoing(workflow: WorkflowDefinition) -> dict[str, list[Edge]]:
    edges_of: dict[str, list[Edge]] = {node.id: [] for node in workflow.nodes}
    for edge in workflow.edges:
        edges_of.setdefault(edge.source, []).append(edge)
    return edges_of


def type_of(node: Node) -> str:
    return f"a node of type {node.type!r}"


def yaml_text(value: JsonObject) -> str:
    """Return a value as YAML, in the order of its keys."""
    from ruamel.yaml import YAML  # Import here: most commands never write YAML.

    writer = YAML()
    writer.default_flow_style = False
    writer.width = 110
    text = io.StringIO()
    writer.dump(value, text)  # pyright: ignore[reportUnknownMemberType] - ruamel types its parameter as Any
    return text.getvalue().rstrip("\n")
