"""Data flow of a graph: lists that grow, names that are state, and values that a merge can find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from pointsman.dialects.foreign_fields import Record, key_of, list_of, object_of
from pointsman.dialects.graph.keywords import ITEM, expression_of, state_path
from pointsman.dialects.graph.links import GraphShape
from pointsman.expressions.failures import ExpressionError
from pointsman.expressions.formula import compile_expression
from pointsman.expressions.name_resolution import PathRead
from pointsman.values import Json, JsonObject

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


def merged_path(merge: Record, shape: GraphShape, flow: DataFlow, wanted: str) -> str | None:
    """Return the path of a merge's values: `wanted` if a node writes it, else the only path below which its branches
    write; None: there is none."""
    if flow.writes_under(wanted):
        return wanted
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
