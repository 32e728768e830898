"""Application of operations to a native document: all in order, or none.

A node is placed behind another node, onto an edge, or into a loop or parallel, and can be removed from there:

    a ──▶ b      on a->b:  a ──▶ n ──▶ b        within a loop:      its iterations end with n
                 bridged:  a ─────────▶ b       within a parallel:  n is a branch, for which its join waits

Renaming a node replaces its id wherever the workflow refers to it; all other text stays as written:

    edges, entry, branches …      the id itself
    expressions, JSONPath         nodes.draft, nodeOutputs["draft"], $.outputs.draft
    paths and templates           {nodes.draft.text}, {{#if nodes.draft}}
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import Final, TypeAlias, TypeVar, assert_never, cast

from pointsman.authoring.draft import Draft, change, is_at_one_of, may_rename, name_of_ends
from pointsman.authoring.operations import (
    AddNode,
    AnyOperation,
    ChangeEdge,
    ChangeNode,
    ChangeWorkflow,
    Connect,
    Disconnect,
    MoveNode,
    OperationRefused,
    OrderEdges,
    OrderNodes,
    RemoveNode,
    RenameNode,
)
from pointsman.definition.graph.analysis import Graph, analyse
from pointsman.definition.model.nodes import TYPE_ALIASES
from pointsman.definition.problems import pointer_parts
from pointsman.definition.text_locations import TextLocation, text_locations_of
from pointsman.expressions.environment import ROOTS
from pointsman.expressions.failures import ExpressionError
from pointsman.expressions.parser import Token, read_tokens
from pointsman.expressions.paths import scan_path
from pointsman.values import END, Json, JsonObject

NOT_HERE: Final = ("nodes", "edges", "id", "pointsman")
"""Members of a document that `change_workflow` may not change."""


def apply_operations(document: JsonObject, operations: Sequence[AnyOperation]) -> JsonObject:
    """Return the document after the operations; the given one is not changed. Raises `OperationRefused` naming the
    first operation that cannot be applied."""
    draft = Draft(document)
    for kind, run in groupby(enumerate(operations, start=1), key=lambda one: _kind(one[1])):
        match kind:
            case "rename":
                _rename_all(draft, cast("_Run[RenameNode]", run))
            case "remove":
                _remove_all(draft, cast("_Run[RemoveNode]", run))
            case "disconnect":
                _disconnect_all(draft, cast("_Run[Disconnect]", run))
            case _:
                for number, operation in run:
                    with _numbered(number, operation):
                        _apply(draft, operation)
    return draft.document


Change = TypeVar("Change", bound=AnyOperation)
_Run: TypeAlias = Iterable[tuple[int, Change]]
"""Successive operations of one kind, with their numbers."""


def _kind(operation: AnyOperation) -> str:
    """Return the kind of operations that are applied together: each of them alone would walk through the document."""
    match operation:
        case RenameNode():
            return "rename"
        case RemoveNode(bridge=False):
            return "remove"
        case Disconnect():
            return "disconnect"
        case _:
            return ""


@contextmanager
def _numbered(number: int, operation: AnyOperation) -> Generator[None]:
    """Name the operation in its refusal."""
    try:
        yield
    except OperationRefused as why:
        name = operation.__struct_config__.tag
        raise OperationRefused(f"operation {number} ({name}): {why}", hint=why.hint) from None


def _rename_all(draft: Draft, run: _Run[RenameNode]) -> None:
    """Rename nodes. Renames that concern the same name are made one after the other."""
    locations: list[TextLocation] = []
    names: dict[str, str] = {}
    taken: set[str] = set()
    for number, operation in run:
        old, new = operation.node, operation.to
        with _numbered(number, operation):
            if not taken.isdisjoint((old, new)):
                rename(draft, locations, names)
                names, taken = {}, set()
            draft.node(old)
            if new == old:
                continue
            must_be_free(draft, new)
            _must_be_an_id(new)
            if not names:
                locations = [*text_locations_of(draft.workflow())]
        names[old] = new
        taken |= {old, new}
    rename(draft, locations, names)


def _remove_all(draft: Draft, run: _Run[RemoveNode]) -> None:
    """Remove nodes and their edges."""
    removed: dict[str, JsonObject] = {}
    for number, operation in run:
        with _numbered(number, operation):
            if operation.node in removed:
                _remove_nodes(draft, removed)
                removed = {}
            removed[operation.node] = draft.node(operation.node)
    _remove_nodes(draft, removed)


def _disconnect_all(draft: Draft, run: _Run[Disconnect]) -> None:
    """Remove edges. An edge whose removal may change the names of others is removed before the next one is found."""
    removed: list[JsonObject] = []
    ends: set[str] = set()
    for number, operation in run:
        with _numbered(number, operation):
            if removed and (not draft.has_edge(operation.edge) or name_of_ends(draft.edge(operation.edge)) in ends):
                draft.drop(removed)
                removed, ends = [], set()
            edge = draft.edge(operation.edge)
        removed.append(edge)
        ends.add(name_of_ends(edge))
        if may_rename(edge):
            draft.drop(removed)
            removed, ends = [], set()
    draft.drop(removed)


def _apply(draft: Draft, operation: AnyOperation) -> None:
    match operation:
        case AddNode() | RemoveNode() | ChangeNode() | MoveNode() | OrderNodes():
            _apply_to_nodes(draft, operation)
        case Connect(edge=edge):
            _connect(draft, edge)
        case ChangeEdge(edge=edge, set=put, remove=remove):
            changed = draft.edge(edge)
            change(changed, put, remove, what=f"edge {edge!r}")
            if any(pointer_parts(pointer)[0] in ("id", "source", "target") for pointer in (*put, *remove)):
                draft.forget_names()
            draft.must_lead_somewhere(changed)
        case ChangeWorkflow(set=put, remove=remove):
            change(draft.document, put, remove, protected=NOT_HERE, what="the workflow")
        case OrderEdges(edges=edges):
            names = [name for name, _ in draft.named_edges()]
            _order(draft.edges, names, edges, "edge")
            draft.forget_names()
        case RenameNode() | Disconnect():
            raise AssertionError("successive operations of this kind are applied together")
        case _:
            assert_never(operation)


def _apply_to_nodes(draft: Draft, operation: AddNode | RemoveNode | ChangeNode | MoveNode | OrderNodes) -> None:
    match operation:
        case AddNode(node=node):
            _add(draft, node, operation)
        case RemoveNode(node=node):
            removed = draft.node(node)
            take_out(draft, node)
            _remove_nodes(draft, {node: removed})
        case ChangeNode(node=node, set=put, remove=remove):
            change(draft.node(node), put, remove, protected=("id",), what=f"node {node!r}")
        case MoveNode(node=node):
            _move(draft, node, operation)
        case OrderNodes(nodes=nodes):
            _order(draft.nodes, draft.ids(), nodes, "node")
            draft.forget_names()
        case _:
            assert_never(operation)


def _remove_nodes(draft: Draft, removed: Mapping[str, JsonObject]) -> None:
    """Remove nodes, their edges, and their entries in lists."""
    if not removed:
        return
    draft.drop([edge for edge in draft.written_edges() if is_at_one_of(removed, edge)])
    _unlist(draft, removed)
    if draft.document.get("entry") in removed:
        del draft.document["entry"]
    nodes = {id(node) for node in removed.values()}
    draft.nodes[:] = [node for node in draft.nodes if id(node) not in nodes]
    draft.forget_names()


def _add(draft: Draft, node: JsonObject, where: AddNode) -> None:
    name = node.get("id")
    if not isinstance(name, str) or not name:
        raise OperationRefused("the node has no id", hint='A node is {"id": …, "type": …, "config": …}.')
    _must_be_an_id(name)
    must_be_free(draft, name)
    # Find the edge before the node is added, so that the node's own edges are not found.
    on = draft.edge(where.on) if where.on else None
    draft.add(copy.deepcopy(node))
    _place(draft, name, where, on)


def _move(draft: Draft, node: str, where: MoveNode) -> None:
    must_be_movable(draft, node)
    if node in (where.after, where.within):
        raise OperationRefused(f"{node!r} cannot be inserted behind or into itself", hint="Choose another node.")
    if not (where.after or where.on or where.within):
        raise OperationRefused(
            f"the operation does not contain the place for {node!r}", hint="Set `after`, `on` or `within`."
        )
    on = draft.edge(where.on) if where.on else None
    if on is not None and node in (on.get("source"), on.get("target")):
        raise OperationRefused(f"{where.on!r} is an edge of {node!r} itself", hint="Choose another edge.")
    take_out(draft, node, keeps_errors=True)
    _place(draft, node, where, on)


def _place(draft: Draft, node: str, where: AddNode | MoveNode, on: JsonObject | None) -> None:
    positions = [name for name in ("after", "on", "within") if getattr(where, name)]
    if len(positions) > 1:
        raise OperationRefused(f"{' and '.join(positions)} exclude each other", hint="Set one of them.")
    if on is not None:
        put_on(draft, node, on)
    elif where.after:
        put_after(draft, node, where.after)
    elif where.within:
        put_within(draft, node, where.within)


def _connect(draft: Draft, edge: JsonObject) -> None:
    draft.must_lead_somewhere(edge)
    name = edge.get("id")
    if name is not None and draft.has_edge(str(name)):
        raise OperationRefused(f"the edge {name!r} already exists", hint="Choose another id, or omit it.")
    draft.connect(copy.deepcopy(edge))


def _must_be_an_id(name: str) -> None:
    if name == END:
        raise OperationRefused(f"{END!r} is not a node: as a target it ends the execution", hint="Choose another id.")


def _order(parts: list[Json], names: Sequence[str], wanted: Sequence[str], kind: str) -> None:
    remaining_names = iter(names)
    by_name: dict[str, Json] = {}
    others: list[Json] = []
    for part in parts:
        name = next(remaining_names) if isinstance(part, dict) and (kind == "edge" or "id" in part) else None
        if name is None or name in by_name:
            others.append(part)
        else:
            by_name[name] = part
    missing = next((name for name in wanted if name not in by_name), None)
    if missing is not None:
        raise OperationRefused(
            f"there is no {kind} {missing!r}", hint=f"Existing: {', '.join(map(repr, by_name)) or 'none'}."
        )
    first = dict.fromkeys(wanted)
    rest = [part for name, part in by_name.items() if name not in first]
    parts[:] = [*(by_name[name] for name in first), *rest, *others]


FIXED: Final = ("start", "end", "loop", "parallel", "join")
"""Types whose edges determine the structure around them, or where an execution begins and ends."""
LISTS: Final = ("branches", "body")
"""Lists of nodes in the configuration of loops and parallels."""


def put_on(draft: Draft, node: str, edge: JsonObject) -> None:
    """Insert the node into an edge: the edge leads to the node, and a new edge to the former target."""
    onward: JsonObject = {"source": node, "target": edge["target"]}
    if "targetHandle" in edge:
        onward["targetHandle"] = edge.pop("targetHandle")
    if edge.get("mark") == "continue":
        onward["mark"] = edge.pop("mark")
    edge["target"] = node
    draft.connect(onward, behind=edge)


def put_after(draft: Draft, node: str, after: str) -> None:
    """Insert the node between `after` and its successors. After a loop or parallel: behind its end."""
    kind = type_of(draft.node(after))
    edges = [edge for edge in draft.ways_from(after) if not is_condition(edge, "error")]
    mark: JsonObject = {}
    if kind in ("loop", "parallel"):
        graph = analyse(draft.workflow())
        number = graph.index[after]
        if kind == "parallel" and number in graph.join_of:
            put_after(draft, node, graph.ids[graph.join_of[number]])
            return
        edges = _ways_out(draft, graph, number)
        mark = {"mark": "exit"} if kind == "loop" else {}
    if len(edges) == 1:
        put_on(draft, node, edges[0])
        return
    if any("condition" in edge or "label" in edge for edge in edges):
        raise OperationRefused(
            f"{after!r} has {len(edges)} outgoing edges with conditions",
            hint="Set `on` to the edge on which the node is inserted.",
        )
    for edge in edges:
        edge["source"] = node
    draft.connect({"source": after, "target": node, **mark}, behind=edges[0] if edges else None)


def put_within(draft: Draft, node: str, around: str) -> None:
    """Insert the node at the end of a loop's body, or as a branch of a parallel."""
    kind = type_of(draft.node(around))
    if kind not in ("loop", "parallel"):
        raise OperationRefused(f"{around!r} is a {kind}, which contains no nodes", hint="Choose a loop or a parallel.")
    config = draft.node(around).get("config")
    listed = config.get("body" if kind == "loop" else "branches") if isinstance(config, dict) else None
    if isinstance(listed, list):
        listed.append(node)
        if kind == "loop":
            return  # Listed nodes run in order and return to the loop.
    graph = analyse(_without(draft, node).workflow())
    if kind == "parallel":
        _branch(draft, graph, node, around)
    else:
        _end_rounds(draft, graph, node, around)


def _without(draft: Draft, node: str) -> Draft:
    """Return the draft without the node, because lists that already name it would falsify the analysis."""
    nodes: list[Json] = [one for one in draft.nodes if not isinstance(one, dict) or one.get("id") != node]
    return Draft({**draft.document, "nodes": nodes})


def _branch(draft: Draft, graph: Graph, node: str, around: str) -> None:
    draft.connect({"source": around, "target": node})
    join = graph.join_of.get(graph.index[around])
    if join is not None:
        draft.connect({"source": node, "target": graph.ids[join]})


def _end_rounds(draft: Draft, graph: Graph, node: str, around: str) -> None:
    shape = graph.loops[graph.index[around]]
    written = _written(draft, graph)
    ends = [written[number] for number in shape.back_edges if number < len(written)]
    if len(ends) == 1:
        put_on(draft, node, ends[0])
        return
    for edge in ends:
        edge["target"] = node
    if not ends:
        draft.connect({"source": around, "target": node, "mark": "body"})
    draft.connect({"source": node, "target": around})


def _ways_out(draft: Draft, graph: Graph, number: int) -> list[JsonObject]:
    """Return the edges that a loop or parallel takes after its end."""
    numbers = graph.loops[number].exit_edges if number in graph.loops else graph.forks[number].after
    written = _written(draft, graph)
    return [written[edge] for edge in numbers if edge < len(written)]


def _written(draft: Draft, graph: Graph) -> list[JsonObject]:
    """Return the document's edges in the order of their numbers in the graph. Edges with higher numbers are implied and
    not in the document."""
    edges = draft.written_edges()
    assert len(edges) <= len(graph.edges), "a workflow with a valid structure has objects for edges"
    return edges


def take_out(draft: Draft, node: str, *, keeps_errors: bool = False) -> None:
    """Remove a node's edges and its entries in lists, and connect its predecessors with its successor.

    `keeps_errors` keeps its error edges.
    """
    into = [edge for edge in draft.ways_to(node) if edge.get("source") != node]
    out = draft.ways_from(node)
    error_edges = [edge for edge in out if keeps_errors and is_condition(edge, "error")]
    _bridge(draft, node, into, [edge for edge in out if edge.get("target") != node])
    for edge in error_edges:
        draft.connect(edge)
    _unlist(draft, {node})
    draft.forget_names()


def _unlist(draft: Draft, removed: Container[Json]) -> None:
    """Remove nodes from the lists of loops and parallels."""
    for node in draft.nodes:
        config = node.get("config") if isinstance(node, dict) else None
        if not isinstance(config, dict):
            continue
        for key in LISTS:
            listed = config.get(key)
            if isinstance(listed, list):
                config[key] = [name for name in listed if not isinstance(name, str) or name not in removed]


def _bridge(draft: Draft, node: str, into: Sequence[JsonObject], out: Sequence[JsonObject]) -> None:
    onward = [edge for edge in out if not is_condition(edge, "error")]
    if into and len(onward) > 1:
        raise OperationRefused(
            f"{node!r} has {len(onward)} outgoing edges, so it cannot be bridged",
            hint="Remove it without `bridge`, and connect the remaining nodes.",
        )
    if into and out and not onward:
        raise OperationRefused(
            f"{node!r} has outgoing edges only for errors, so it cannot be bridged",
            hint="Remove it without `bridge`, and connect the remaining nodes.",
        )
    draft.drop(draft.ways_from(node))
    if not onward:
        draft.drop(into)
        return
    target = onward[0].get("target")
    for edge in into:
        edge["target"] = target
        twins = [other for other in draft.ways_from(str(edge["source"])) if other is not edge]
        own = edge["source"] == target and type_of(draft.node(str(target))) != "loop"
        plain = "condition" not in edge and "label" not in edge
        if own or (plain and any(other.get("target") == target and "condition" not in other for other in twins)):
            draft.drop([edge])
    if draft.document.get("entry") == node and isinstance(target, str):
        draft.document["entry"] = target


def must_be_movable(draft: Draft, node: str) -> None:
    """Raise `OperationRefused` for a node that determines the structure of others."""
    kind = type_of(draft.node(node))
    if kind in FIXED:
        raise OperationRefused(
            f"{node!r} is of type {kind!r}: the structure around it depends on its edges",
            hint="Disconnect it, and connect it again at the new place.",
        )


def type_of(node: JsonObject) -> str:
    """Return the type of a node in its present spelling."""
    kind = str(node.get("type"))
    return TYPE_ALIASES.get(kind, kind)


def is_condition(edge: JsonObject, kind: str) -> bool:
    condition = edge.get("condition")
    return isinstance(condition, dict) and condition.get("type") == kind


WORDS: Final = frozenset(word for word, root in ROOTS.items() if root == "nodes")
"""Names of the root that holds the results of nodes."""
_NAME: Final = re.compile(r"[^\W\d]\w*")
_PATH_NAME: Final = re.compile(r"[^\W\d][\w-]*")
_BRACE: Final = re.compile(r"(?<!\\)(?:\{\{?|\$\{)\s*(?:#\s*\w+\s+)?")
"""Beginning of a template tag."""

_Spelled = Callable[[str], str]


def rename(draft: Draft, locations: Sequence[TextLocation], names: Mapping[str, str]) -> None:
    """Rename nodes at once: `names` has no name both as an old one and as a new one.

    `locations`: the texts of the workflow, which are known only without structural errors.
    """
    if not names:
        return
    for location in locations:
        _rename_at(draft.document, location, names)
    for node in draft.nodes:
        config = node.get("config") if isinstance(node, dict) else None
        handoffs = config.get("handoffs") if isinstance(config, dict) else None
        if isinstance(config, dict) and isinstance(handoffs, list):
            config["handoffs"] = [_renamed(name, names) for name in handoffs]
    for old, new in names.items():
        draft.node(old)["id"] = new
    draft.forget_names()


def _renamed(name: Json, names: Mapping[str, str]) -> Json:
    return names.get(name, name) if isinstance(name, str) else name


def _rename_at(document: JsonObject, location: TextLocation, names: Mapping[str, str]) -> None:
    replaced: _Spelled
    match location.kind:
        case "node":
            replaced = lambda text: names.get(text, text)  # noqa: E731 - one of four ways to replace
        case "expression" | "jsonpath":
            replaced = partial(in_expression, names=names)
        case "template" | "parameters":
            replaced = partial(in_template, names=names)
        case "path":
            replaced = partial(in_path, names=names)
        case _:
            return
    if not location.writes:
        _replace(document, [str(part) for part in location.parts], replaced)


def _replace(document: JsonObject, parts: list[str], replaced: _Spelled) -> None:
    """Replace the text at a position, or every text in the tree there."""
    here: Json = document
    for part in parts[:-1]:
        here = _inner(here, part)
    last = parts[-1]
    if isinstance(here, dict) and last in here:
        here[last] = _texts(here[last], replaced)
    elif isinstance(here, list) and last.isdigit() and int(last) < len(here):
        here[int(last)] = _texts(here[int(last)], replaced)


def _inner(here: Json, part: str) -> Json:
    if isinstance(here, dict):
        return here.get(part)
    return here[int(part)] if isinstance(here, list) and part.isdigit() and int(part) < len(here) else None


def _texts(value: Json, replaced: _Spelled) -> Json:
    match value:
        case str():
            return replaced(value)
        case list():
            return [_texts(element, replaced) for element in value]
        case dict():
            return {key: _texts(member, replaced) for key, member in value.items()}
        case _:
            return value


def in_expression(text: str, *, names: Mapping[str, str]) -> str:
    """Rename in an expression. Invalid expressions stay unchanged; the checker reports them."""
    try:
        tokens = read_tokens(text)
    except ExpressionError:
        return text
    return _spliced(text, [(at, end, _key(names[old], _NAME)) for at, end, old in _keys(tokens, names)])


def _keys(tokens: list[Token], names: Container[str]) -> Iterator[tuple[int, int, str]]:
    """Yield each key `.draft` or `["draft"]` after a name of the nodes root: its position, with the dot or bracket, and
    the name of the node."""
    for place, token in enumerate(tokens[:-2]):
        before = tokens[place - 1] if place else None
        of_other = before is not None and before.text in (".", "?.") and (place < 2 or tokens[place - 2].text != "$")
        if token.kind != "name" or token.text not in WORDS or of_other:
            continue
        sign, key = tokens[place + 1], tokens[place + 2]
        if sign.text in (".", "?.") and key.kind == "name" and key.text in names:
            yield sign.at, key.end, key.text
        elif sign.text == "[" and key.kind == "text" and key.text in names:
            closing = tokens[place + 3]
            if closing.text == "]":
                yield sign.at, closing.end, key.text


def in_path(text: str, *, names: Mapping[str, str]) -> str:
    key = _path_key(text, 0, names)
    return text if key is None else _spliced(text, [key])


def _path_key(text: str, at: int, names: Mapping[str, str]) -> tuple[int, int, str] | None:
    """Return the position of the renamed key in the path that begins at `at`, and its new spelling; None: it is not a
    path into nodes with such a key."""
    scanned = scan_path(text, at)
    keys = [] if scanned is None else [*scanned.keys]
    if len(keys) < 2 or keys[0].key not in WORDS:
        return None
    name = keys[1].key
    return (keys[1].at, keys[1].end, _key(names[name], _PATH_NAME)) if isinstance(name, str) and name in names else None


def in_template(text: str, *, names: Mapping[str, str]) -> str:
    """Rename in every tag and block of a template."""
    keys = (_path_key(text, brace.end(), names) for brace in _BRACE.finditer(text))
    return _spliced(text, [place for place in keys if place is not None])


def _key(name: str, plain: re.Pattern[str]) -> str:
    """Return a name as a key in a path, with its dot or brackets."""
    return f".{name}" if plain.fullmatch(name) else f"[{json.dumps(name, ensure_ascii=False)}]"


def _spliced(text: str, places: list[tuple[int, int, str]]) -> str:
    names: list[str] = []
    position = 0
    for at, end, new in places:
        names += (text[position:at], new)
        position = end
    return "".join((*names, text[position:]))


def must_be_free(draft: Draft, name: str) -> None:
    """Raise `OperationRefused` if a node has this id."""
    if draft.has(name):
        raise OperationRefused(f"the node {name!r} already exists", hint="Choose another id.")
