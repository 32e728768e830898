"""Keywords, control flow and data flow of a graph.

Edges: editor artefacts are removed, loop marks interpreted, defaults determined. Data: lists that grow, names that are
state, and values that a merge can find.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal, TypeAlias

from pointsman.dialects.readers import NO_WORDS, ForeignReader, Record, key_of, list_of, member, object_of
from pointsman.expressions.compiler import compile_expression
from pointsman.expressions.failures import ExpressionError
from pointsman.expressions.name_resolution import PathRead
from pointsman.values import Json, JsonObject

WORDS: Final = NO_WORDS
"""Each field has one spelling."""

NODE_TYPES: Final[Mapping[str, str]] = {
    "agent": "agent",
    "fanout": "parallel",
    "loop": "loop",
    "conditional": "decision",
    "merge": "join",
    "start": "start",
}

LIMITS: Final[Mapping[str, tuple[str, Json]]] = {
    "steps": ("max_steps", 1000),
    "executionTime": ("timeout_ms", 300_000),
    "parallel": ("max_parallel", 5),
}
"""Native limit -> the dialect's word and default."""

ITERATIONS: Final = 3
"""Iterations of a loop if neither it nor the document names `max_iters`."""

BARRIER_S: Final = 60
"""Time for which a merge waits for expected keys."""

ITEM: Final = "current_fanout_item"

STRATEGIES: Final[Mapping[str, str]] = {
    "concat_text": "concat",
    "collect_list": "list",
    "merge_dict": "merge",
    "stitch": "stitch",
}
CONCAT_SEPARATOR: Final = " | "
STITCH_SEPARATOR: Final = "\n\n---\n\n"
STITCH_HEADER: Final = "### {key}"

CHAINED: Final = "latest ?? goal"
"""Input of an agent without inputs: the latest result, at the start the goal."""

SOME_ITEMS: Final = "state.fanout_items or state.targets or config.reporter_ids"
"""Where a fan-out without items takes them from."""
NO_ITEMS: Final = f"{SOME_ITEMS} or null"
ONE_ITEM: Final = f'{SOME_ITEMS} or ["default"]'

OUTPUT: Final = "final ?? drafts ?? latest"
"""Output of the execution."""

_CONDITION_RESULT: Final = re.compile(r"([A-Za-z_][\w-]*) condition result\b|\"[^\"]*\"|'[^']*'")
_UI_CLUSTER: Final = re.compile(r"[*_\s]*ui[*_\s]*cluster[*_\s]*", re.IGNORECASE)
_TEMPLATE_NAME: Final = re.compile(r"\{([A-Za-z_]\w*)(?:\[([^\]{}]+)\])?\}")


def with_results(condition: str) -> str:
    """Replace `X condition result`, the dialect's term for the decision of the conditional X."""

    def rewrite(match: re.Match[str]) -> str:
        return match[0] if match[1] is None else branch_is("true", match[1])

    return _CONDITION_RESULT.sub(rewrite, condition)


def branch_is(branch: str, node: str) -> str:
    return f'{member("nodes", node)}.branch == "{branch}"'


def is_ui_cluster(condition: Json) -> bool:
    """Return whether an edge is one that the original editor draws around a group; such edges are not control flow."""
    return isinstance(condition, str) and _UI_CLUSTER.fullmatch(condition) is not None


def state_path(path: str) -> str:
    """Return the path below the state, without a redundant prefix."""
    return path.removeprefix("$.").removeprefix("state.")


def expression_of(value: Json) -> str:
    """Return an input as an expression: texts are paths, other values are literals."""
    return with_results(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def outputs_path(node_id: str) -> str:
    return member("outputs", node_id)


def template_expression(template: str) -> str:
    """Return a `custom_template` ({items}, {count}, {items[key]}) as an expression over the results of the branches."""
    parts: list[str] = []
    at = 0
    for match in _TEMPLATE_NAME.finditer(template):
        value = "len(items)" if match[1] == "count" else match[1]
        if match[2] is not None:
            key = json.dumps(match[2].strip("\"'"), ensure_ascii=False)
            value = f"find(branches, b => b.key == {key}).result"
        parts += [json.dumps(template[at : match.start()], ensure_ascii=False), f"str({value})"]
        at = match.end()
    parts.append(json.dumps(template[at:], ensure_ascii=False))
    return " + ".join(part for part in parts if part != '""') or '""'


Mark: TypeAlias = Literal["body", "exit", "break", "continue"]


@dataclass(frozen=True, slots=True)
class Link:
    """One edge of the control flow."""

    source: Json
    target: Json
    condition: Json
    record: Record
    mark: Mark | None = None

    @property
    def is_conditional(self) -> bool:
        return self.condition not in (None, "") and self.mark is None


@dataclass(frozen=True)
class GraphShape:
    """The nodes and edges of the workflow, without editor artefacts."""

    nodes: tuple[Record, ...]
    links: tuple[Link, ...]

    @property
    def types(self) -> dict[str, str]:
        """Node id -> type, for nodes where both are texts."""
        pairs = ((record.value.get("id"), record.value.get("type")) for record in self.nodes)
        return {node: kind for node, kind in pairs if isinstance(node, str) and isinstance(kind, str)}

    def leaving(self, node: Json) -> tuple[Link, ...]:
        return self.by_source.get(key_of(node), ())

    @cached_property
    def by_source(self) -> dict[str, tuple[Link, ...]]:
        return _grouped(self.links, lambda link: link.source)

    @cached_property
    def by_target(self) -> dict[str, tuple[Link, ...]]:
        return _grouped(self.links, lambda link: link.target)


def _grouped(links: Iterable[Link], end: Callable[[Link], Json]) -> dict[str, tuple[Link, ...]]:
    groups: dict[str, list[Link]] = {}
    for link in links:
        groups.setdefault(key_of(end(link)), []).append(link)
    return {node: tuple(group) for node, group in groups.items()}


def shape_of(nodes: Iterable[Record], edges: Iterable[Record]) -> GraphShape:
    """Return the shape of a graph. Helper nodes `{loop}_body` and `{loop}_exit` become marks on the loop's own edges;
    cluster edges are dropped."""
    nodes = tuple(nodes)
    helpers: dict[str, tuple[str, Mark]] = {}
    for record in nodes:
        node, kind = record.value.get("id"), record.value.get("type")
        if isinstance(node, str) and kind == "loop_body":
            helpers[node] = (node.removesuffix("_body"), "body")
        elif isinstance(node, str) and kind == "loop_exit":
            helpers[node] = (node.removesuffix("_exit"), "exit")
    loops = {key_of(record.value.get("id")) for record in nodes if record.value.get("type") == "loop"}
    drawn = [_link(record, loops) for record in edges if not is_ui_cluster(record.value.get("condition"))]
    links = [resolved for link in drawn if (resolved := _without_helpers(link, helpers)) is not None]
    marked = {(key_of(link.source), key_of(link.target)) for link in links if link.mark in ("body", "exit")}
    remaining = (link for link in links if not _repeats(link, helpers, marked))
    return GraphShape(
        tuple(record for record in nodes if key_of(record.value.get("id")) not in helpers), tuple(remaining)
    )


def _link(record: Record, loops: set[str]) -> Link:
    source, target = record.take("from_node"), record.take("to_node")
    condition = record.take("condition")
    word = condition.strip().strip("*").strip() if isinstance(condition, str) else None
    at_loop = key_of(source) in loops
    match word:
        case "loop_body" | "loop_continue":
            return Link(source, target, None, record, "body" if at_loop else "continue")
        case "loop_exit":
            return Link(source, target, None, record, "exit" if at_loop else "break")
        case _:
            return Link(source, target, condition, record)


def _without_helpers(link: Link, helpers: dict[str, tuple[str, Mark]]) -> Link | None:
    """Replace helper nodes by their loop. None for an edge from a loop to its own helper, which draws a group."""
    if key_of(link.source) in helpers:
        loop, mark = helpers[key_of(link.source)]
        link = replace(link, source=loop, mark=mark, condition=None)
    if key_of(link.target) in helpers:
        loop, _ = helpers[key_of(link.target)]
        return None if link.source == loop else replace(link, target=loop)
    return link


def _repeats(link: Link, helpers: dict[str, tuple[str, Mark]], marked: set[tuple[str, str]]) -> bool:
    """Return whether an unmarked edge duplicates a helper's marked edge, as the editor draws it."""
    return bool(helpers) and link.mark is None and (key_of(link.source), key_of(link.target)) in marked


def closing_links(shape: GraphShape, entry: Json) -> frozenset[int]:
    """Return links back to a node that control has certainly passed, along links without conditions.

    The original engine keeps a set of visited nodes and skips a second visit, so its authors draw such links and expect
    the execution to end. Loops count their own iterations, and conditional links may end: neither is changed.
    """
    kinds = shape.types
    plain: dict[str, list[tuple[int, str]]] = {}
    for number, link in enumerate(shape.links):
        ends = kinds.get(key_of(link.source)), kinds.get(key_of(link.target))
        if link.mark is None and link.condition in (None, "", True) and not {"loop", "conditional"} & {*ends}:
            plain.setdefault(key_of(link.source), []).append((number, key_of(link.target)))
    numbers: set[int] = set()
    done: set[str] = set()
    starts = [key_of(entry), *(key_of(record.value.get("id")) for record in shape.nodes)]
    for start in starts:
        path: dict[str, Iterator[tuple[int, str]]] = {}
        waiting = [] if start in done else [start]
        while waiting or path:
            if waiting:
                node = waiting.pop()
                path[node] = iter(plain.get(node, ()))
                done.add(node)
            last = next(reversed(path))
            step = next(path[last], None)
            if step is None:
                del path[last]
            elif step[1] in path:
                numbers.add(step[0])
            elif step[1] not in done:
                waiting.append(step[1])
    return frozenset(numbers)


class GraphEdgeReader:
    """Creates native edges. Conditionals get their defaults, loops their marks."""

    def __init__(self, shape: GraphShape, reading: ForeignReader, entry: Json) -> None:
        self.closing = closing_links(shape, entry)
        self.shape = shape
        self.reading = reading
        self.types = shape.types
        self.records = {key_of(record.value.get("id")): record for record in shape.nodes}
        self.mixed = {
            node
            for node, kind in self.types.items()
            if kind == "conditional" and len({link.is_conditional for link in shape.leaving(node)}) == 2
        }
        self.made: list[Json] = []

    def read(self) -> list[Json]:
        for number, link in enumerate(self.shape.links):
            edge = self._edge(link)
            if number in self.closing:
                edge["condition"] = {"type": "never"}
                message = f"the edge from {link.source!r} to {link.target!r} closes a cycle without a condition"
                hint = "It is not taken: a node is visited once. Give the edge a condition, or use a loop, to repeat."
                self.reading.warning("edge-revisits", link.record.pointer, message, hint)
            self._add(edge, link.record.pointer, link.record)
        for record in self.shape.nodes:
            self._implied(record)
        return self.made

    def _add(self, edge: JsonObject, pointer: str, record: Record | None) -> None:
        at = f"/edges/{len(self.made)}"
        origin = self.reading.origin
        origin[at] = pointer
        if record is not None:
            origin[f"{at}/source"], origin[f"{at}/target"] = record.at("from_node"), record.at("to_node")
            origin[f"{at}/condition"] = origin[f"{at}/condition/expression"] = record.at("condition")
            self.reading.keep(edge, at, record)
        self.made.append(edge)

    def _edge(self, link: Link) -> JsonObject:
        record = link.record
        edge: JsonObject = {"source": link.source, "target": link.target}
        for name in ("id", "label"):
            if (value := record.take(name)) is not None:
                edge[name] = value
        if link.mark is not None or self._is_body(link):
            edge["mark"] = link.mark or "body"
        elif (branch := self._branch(link)) is not None:
            edge["condition"] = self._taken_on(branch, link.source)
            record.taken.discard("condition")
        elif link.is_conditional and link.condition is not True:
            text = with_results(link.condition) if isinstance(link.condition, str) else link.condition
            edge["condition"] = {"type": "expression", "expression": text}
        elif key_of(link.source) in self.mixed:
            edge["condition"] = {"type": "default"}
            self._warn_of_default(link)
        return edge

    def _is_body(self, link: Link) -> bool:
        if self.types.get(key_of(link.source)) != "loop" or link.is_conditional:
            return False
        return link.target is not None and link.target == body_of(self.records[key_of(link.source)])

    def _branch(self, link: Link) -> str | None:
        """Return `true` or `false` if the conditional's `true_nodes` or `false_nodes` name the target."""
        if self.types.get(key_of(link.source)) != "conditional":
            return None
        lists = self._lists(link.source)
        matching = [branch for branch, nodes in lists.items() if link.target in nodes]
        if matching:
            return matching[0] if len(matching) == 1 else None
        free = [branch for branch, nodes in lists.items() if not nodes]
        return free[0] if len(free) == 1 and not link.is_conditional else None

    def _taken_on(self, branch: str, node: Json) -> JsonObject:
        """Return the condition of a branch. A label belongs to one edge; several edges of a branch get expressions."""
        if len(self._lists(node)[branch]) < 2:
            return {"type": "label", "label": branch}
        return {"type": "expression", "expression": branch_is(branch, key_of(node))}

    def _lists(self, node: Json) -> dict[str, list[Json]]:
        params = object_of(self.records[key_of(node)].value.get("params"))
        return {branch: list_of(params.get(f"{branch}_nodes")) for branch in ("true", "false")}

    def _warn_of_default(self, link: Link) -> None:
        message = f"has no condition beside others from {link.source!r}: it is taken only when none of them is"
        hint = "Give it a condition of its own if it must be taken together with another."
        self.reading.warning("default-beside-conditions", link.record.pointer, message, hint)

    def _implied(self, record: Record) -> None:
        """Add the edges that only a node's parameters name: `true_nodes`, `false_nodes`, `body_node_id`."""
        node = record.value.get("id")
        targets = {key_of(link.target) for link in self.shape.leaving(node)}
        pointer = f"{record.pointer}/params"
        for target, place, more in self._named(record):
            if key_of(target) not in targets:
                self._add({"source": node, "target": target, **more, "x-graph": {"from": place}}, pointer, None)

    def _named(self, record: Record) -> Iterator[tuple[Json, str, JsonObject]]:
        node, kind = record.value.get("id"), record.value.get("type")
        if kind == "conditional":
            for branch, targets in self._lists(node).items():
                for target in targets:
                    yield target, f"{branch}_nodes", {"condition": self._taken_on(branch, node)}
        elif kind == "loop" and (body := body_of(record)) is not None:
            yield body, "body_node_id", {"mark": "body"}


def body_of(record: Record) -> Json:
    return record.value.get("body_node_id") or object_of(record.value.get("params")).get("body_node_id")


_LISTS: Final = ("verdicts", "logs", "execution_trace")
"""State fields that the dialect declares as lists (`verdicts` as one for each item)."""
_OBJECTS: Final = ("drafts", "final")


@dataclass
class DataFlow:
    """State paths that a graph writes and reads, as tuples of keys; `*` stands for the item's key and for computed
    keys. Complete it before reading the cached properties."""

    written: dict[str, list[tuple[str, ...]]] = field(default_factory=dict[str, "list[tuple[str, ...]]"])
    """Node -> the paths that it writes."""
    reads: list[PathRead] = field(default_factory=list[PathRead])

    @cached_property
    def all_written(self) -> set[tuple[str, ...]]:
        return {path for paths in self.written.values() for path in paths}

    @cached_property
    def roots(self) -> set[str]:
        """Names that are state: written by a node, or set at the start."""
        return {"goal", "latest", *(path[0] for path in self.all_written)}

    @cached_property
    def beginnings(self) -> set[tuple[str, ...]]:
        """Every written path and all of its prefixes."""
        return {path[:length] for path in self.all_written for length in range(1, len(path) + 1)}

    def writes_under(self, path: str) -> bool:
        return keys_of(path) in self.beginnings

    def reads_state(self, name: str) -> bool:
        return any(read.root in ("state", "input") and read.path[:1] == (name,) for read in self.reads)


def data_flow(shape: GraphShape) -> DataFlow:
    flow = DataFlow()
    for record in shape.nodes:
        outputs = object_of(record.value.get("outputs")).values()
        paths = [keys_of(path) for path in outputs if isinstance(path, str) and path]
        flow.written.setdefault(key_of(record.value.get("id")), []).extend(paths)
    for source in {*_expressions(shape)}:
        try:
            flow.reads.extend(compile_expression(source).reads)
        except ExpressionError:
            continue  # The checker reports it with its position.
    return flow


def _expressions(shape: GraphShape) -> Iterator[str]:
    for record in shape.nodes:
        params = object_of(record.value.get("params"))
        texts: Iterable[Json] = (
            *object_of(record.value.get("inputs")).values(),
            *(record.value.get(name) for name in ("condition", "loop_condition")),
            *(params.get(name) for name in ("skip_condition", "fanout_items")),
        )
        yield from (expression_of(text) for text in texts if isinstance(text, str))
    yield from (expression_of(link.condition) for link in shape.links if isinstance(link.condition, str))


def keys_of(path: str) -> tuple[str, ...]:
    return tuple("*" if key == ITEM else key for key in state_path(path).split("."))


def state_of(flow: DataFlow, nodes: Iterable[str]) -> JsonObject:
    """Return the reducers of the state. Paths that branches write in turn have `last`; a path that is also read with an
    index is a list that grows."""
    state: JsonObject = {"latest": {"reduce": "last"}}
    if any(nodes):
        state["outputs.*"] = {"reduce": "last"}
    for path in sorted(flow.all_written):
        if path[0] in _LISTS and len(path) == (2 if path[0] == "verdicts" else 1):
            state[".".join((path[0], "*") if len(path) == 2 else path)] = {"reduce": "append"}
        elif path[0] in _OBJECTS and len(path) > 1:  # A field that is only written as a whole may be a text.
            state.setdefault(path[0], {"reduce": "merge"})
    for read in flow.reads:
        prefix = _indexed(read)
        if prefix is not None and prefix in flow.all_written:
            state[".".join(prefix)] = {"reduce": "append"}
    return state


def _indexed(read: PathRead) -> tuple[str, ...] | None:
    """Return the keys before the first index; None: the path has no index."""
    place = next((at for at, key in enumerate(read.path) if isinstance(key, int)), None)
    if place is None or read.root != "state":
        return None
    return tuple("*" if key is None else str(key) for key in read.path[:place])


def merged_path(merge: Record, shape: GraphShape, flow: DataFlow, merge_path: str) -> str | None:
    """Return the path of a merge's values: `merge_path` if a node writes it, or the only path below which its branches
    write; None: there is none."""
    if flow.writes_under(merge_path):
        return merge_path
    branches = _branch_nodes(merge, shape)
    parents = {path[:-1] for node in branches for path in flow.written.get(node, ()) if len(path) > 1}
    parent = next(iter(parents)) if len(parents) == 1 else ("*",)
    return None if "*" in parent else ".".join(parent)


def _branch_nodes(merge: Record, shape: GraphShape) -> Iterator[str]:
    """Yield the branches of every fan-out from which the merge can be reached."""
    reaching = {key_of(merge.value.get("id"))}
    waiting = list(reaching)
    while waiting:
        for link in shape.by_target.get(waiting.pop(), ()):
            source = key_of(link.source)
            if source not in reaching:
                reaching.add(source)
                waiting.append(source)
    for record in shape.nodes:
        if record.value.get("type") == "fanout":
            branches = [key_of(branch) for branch in list_of(record.value.get("branches"))]
            if not reaching.isdisjoint((key_of(record.value.get("id")), *branches)):
                yield from branches
