"""Basic graph of a workflow: numbered nodes, edges between them, and the routing of each node.

Everything that follows paths (scopes, loop bodies, dead ends, data flow) starts from this graph, so that the checker
and the compiler cannot disagree on what an edge is. It includes edges that exist without being in the document: they
have `implied` set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, NamedTuple, TypeAlias

from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.control import HumanConfig, LoopConfig, ParallelConfig
from pointsman.definition.model.nodes import (
    Always,
    AnyCondition,
    AskModel,
    Edge,
    Never,
    Node,
    OnError,
    OnLabel,
    Otherwise,
    Routing,
)
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.values import END

TO_END: Final = -1
"""Target of an edge that ends the execution."""
ID_CHARS_SHOWN: Final = 200
"""Characters of each node id in the name of an edge without an id."""
DANGLING: Final = -2
"""Source or target of an edge that names a missing node."""

EdgeKind: TypeAlias = Literal["plain", "test", "label", "default", "error", "never", "llm"]
Mark: TypeAlias = Literal["body", "exit", "break", "continue"]
Implied: TypeAlias = Literal["", "branch", "body", "caller", "timeout", "handoff"]
"""Reason for an edge that is not in the document: a parallel names the node in `branches`; a loop lists it in `body`;
a tool executor returns to the agent that called; a gate routes there on timeout; an agent may hand over to it."""


class EdgeRef(NamedTuple):
    """One edge. The edges of the document come first, at their own positions."""

    number: int
    id: str
    source: int
    target: int
    kind: EdgeKind = "plain"
    implied: Implied = ""
    mark: Mark | None = None
    """The author's mark for the role of the edge in a loop."""


@dataclass(frozen=True, slots=True)
class Links:
    """The graph. `out` and `into` hold edge numbers in document order, without edges that are `never` taken."""

    ids: tuple[str, ...]
    index: Mapping[str, int]
    nodes: tuple[Node, ...]
    edges: tuple[EdgeRef, ...]
    out: tuple[tuple[int, ...], ...]
    into: tuple[tuple[int, ...], ...]
    entry: int | None
    entries: tuple[int, ...]
    """Nodes that could be the entry. Any number other than one is a problem."""
    handlers: tuple[int, ...]
    """Nodes that control reaches without an edge: when a limit trips, on failure, to undo a step."""
    after: tuple[tuple[int, ...], ...]
    """For each node the nodes one edge away, without ends and dangling edges."""
    before: tuple[tuple[int, ...], ...]
    """For each node the nodes that have an edge to it."""

    def targets(self, node: int) -> tuple[int, ...]:
        """Return the nodes one edge away."""
        return self.after[node]

    def sources(self, node: int) -> tuple[int, ...]:
        """Return the nodes that have an edge to this one."""
        return self.before[node]


def routing_of(node: Node) -> Routing:
    """Return how the node's outgoing edges are used: by its own setting, else by its type."""
    if node.routing is not None:
        return node.routing
    match node.type:
        case "human" | "tool_executor" | "verifier":
            return "label"
        case _ if isinstance(node.config, AgentConfig) and node.config.handoffs:
            return "label"
        case "decision":
            return "first"
        case _:
            return "all"


def label_of(edge: Edge, routing: Routing) -> str | None:
    """Return the label that the edge waits for; None if it waits for none."""
    if isinstance(edge.condition, OnLabel):
        return edge.condition.label
    if edge.condition is None and routing == "label" and edge.label is not None:
        return str(edge.label)
    return None


def kind_of(edge: Edge, routing: Routing) -> EdgeKind:
    if label_of(edge, routing) is not None:
        return "label"
    return _kind_of_condition(edge.condition)


def _kind_of_condition(condition: AnyCondition | None) -> EdgeKind:
    match condition:
        case None | Always():
            return "plain"
        case Never():
            return "never"
        case OnError():
            return "error"
        case Otherwise():
            return "default"
        case AskModel():
            return "llm"
        case OnLabel():
            return "label"
        case _:
            return "test"


def link(workflow: WorkflowDefinition) -> Links:
    """Number the nodes and resolve both ends of every edge. Of several nodes with the same id the first is used."""
    nodes = workflow.nodes
    index: dict[str, int] = {}
    for position, node in enumerate(nodes):
        index.setdefault(node.id, position)
    edges = [*_written_edges(workflow, index)]
    out: list[list[int]] = [[] for _ in nodes]
    into: list[list[int]] = [[] for _ in nodes]

    def enter(edge: EdgeRef) -> None:
        if edge.kind == "never":
            return
        if edge.source >= 0:
            out[edge.source].append(edge.number)
        if edge.target >= 0:
            into[edge.target].append(edge.number)

    for edge in edges:
        enter(edge)
    for source, target, why in _implied(nodes, index, edges, out):
        name, kind = f"{nodes[source].id}->{nodes[target].id}", _KINDS.get(why, "plain")
        edge = EdgeRef(len(edges), name, source, target, kind, why)
        edges.append(edge)
        enter(edge)
    entries = _entries(workflow, index, out, into)
    return Links(
        ids=tuple(node.id for node in nodes),
        index=index,
        nodes=nodes,
        edges=tuple(edges),
        out=tuple(map(tuple, out)),
        into=tuple(map(tuple, into)),
        entry=entries[0] if entries else next(_runnable(nodes), None),
        entries=entries,
        handlers=_handlers(workflow, index),
        after=tuple(
            [
                tuple([to for edge_number in edge_numbers if (to := edges[edge_number].target) >= 0])
                for edge_numbers in out
            ]
        ),
        before=tuple(
            [
                tuple([origin for edge_number in edge_numbers if (origin := edges[edge_number].source) >= 0])
                for edge_numbers in into
            ]
        ),
    )


_KINDS: Final[Mapping[Implied, EdgeKind]] = {"handoff": "label"}


def _written_edges(workflow: WorkflowDefinition, index: Mapping[str, int]) -> Iterator[EdgeRef]:
    names: dict[str, int] = {edge.id: 2 for edge in workflow.edges if edge.id is not None}
    for position, edge in enumerate(workflow.edges):
        source = index.get(edge.source, DANGLING)
        target = index.get(edge.target, TO_END if edge.target == END else DANGLING)
        routing = routing_of(workflow.nodes[source]) if source >= 0 else "all"
        name = (
            edge.id
            if edge.id is not None
            else fresh_name(f"{edge.source[:ID_CHARS_SHOWN]}->{edge.target[:ID_CHARS_SHOWN]}", names)
        )
        kind = kind_of(edge, routing) if edge.condition is not None or edge.label is not None else "plain"
        yield EdgeRef(position, name, source, target, kind, mark=edge.mark)


def fresh_name(name: str, taken: dict[str, int]) -> str:
    """Return the name, with a number added if it is taken. `taken`: each name -> the number to try next."""
    candidate, number = name, taken.get(name, 2)
    while candidate in taken:
        candidate, number = f"{name} {number}", number + 1
    taken[name] = number
    taken[candidate] = 2
    return candidate


def _implied(
    nodes: tuple[Node, ...], index: Mapping[str, int], edges: list[EdgeRef], out: list[list[int]]
) -> Iterator[tuple[int, int, Implied]]:
    """Return source, target and reason of each edge that the document implies."""
    callers: dict[int, list[int]] = {}
    agents = agents_at(nodes)
    for position, node in enumerate(nodes):
        match node.config:
            case ParallelConfig(branches=branches) if branches:
                branch_nodes = dict.fromkeys(index[branch] for branch in branches if branch in index)
                for target in _unreached(branch_nodes, edges, out[position]):
                    yield position, target, "branch"
            case LoopConfig(body=body) if body:
                yield from _implied_body(position, body, index, edges, out)
            case HumanConfig(on_timeout=str(name)) if name in index:
                yield position, index[name], "timeout"  # the node's other edges to that target are for answers
            case AgentConfig(handoffs=handoffs):
                for target in _unreached(handed_to(handoffs or (), agents, index), edges, out[position]):
                    yield position, target, "handoff"
                targets = {edges[edge].target for edge in out[position]}
                for target in sorted(
                    target for target in targets if target >= 0 and nodes[target].type == "tool_executor"
                ):
                    callers.setdefault(target, []).append(position)
            case _:
                pass
    for executor, agents in callers.items():
        if not any(edges[edge].kind in {"plain", "default"} for edge in out[executor]):
            for agent in agents:
                yield executor, agent, "caller"


def agents_at(nodes: tuple[Node, ...]) -> dict[str, int]:
    """Return agent -> the first node that uses it."""
    return {
        node.config.agent: position
        for position, node in reversed([*enumerate(nodes)])
        if isinstance(node.config, AgentConfig) and node.config.agent is not None
    }


def handed_to(names: Iterable[str], agents: Mapping[str, int], index: Mapping[str, int]) -> list[int]:
    """Return the nodes that hand-offs name: by their ids, or by their agent."""
    targets = (index.get(name, agents.get(name)) for name in names)
    return [*dict.fromkeys(target for target in targets if target is not None)]


def _unreached(targets: Iterable[int], edges: list[EdgeRef], edge_numbers: list[int]) -> list[int]:
    """Return the targets to which none of the node's edges leads."""
    reached = {edges[edge].target for edge in edge_numbers}
    return [target for target in targets if target not in reached]


def _implied_body(
    loop: int, body: tuple[str, ...], index: Mapping[str, int], edges: list[EdgeRef], out: list[list[int]]
) -> Iterator[tuple[int, int, Implied]]:
    """Chain the listed body in order and back to the loop. Steps that have edges of their own keep only those."""
    chain = [loop, *(index[name] for name in body if name in index), loop]
    for place, (source, target) in enumerate(pairwise(chain)):
        reached = {edges[edge].target for edge in out[source]}
        if target not in reached and (place == 0 or not reached):
            yield source, target, "body"


def _runnable(nodes: tuple[Node, ...]) -> Iterator[int]:
    return (position for position, node in enumerate(nodes) if node.type != "note")


def _entries(
    workflow: WorkflowDefinition, index: Mapping[str, int], out: list[list[int]], into: list[list[int]]
) -> tuple[int, ...]:
    starts = tuple(position for position, node in enumerate(workflow.nodes) if node.type == "start")
    if starts:
        return starts
    if workflow.entry is not None:
        return (index[workflow.entry],) if workflow.entry in index else ()
    handlers = set(_handlers(workflow, index))
    heads = tuple(node for node in _runnable(workflow.nodes) if not into[node] and node not in handlers)
    # An isolated node is an oversight and does not make the entry ambiguous.
    return tuple(node for node in heads if out[node]) or heads


def _handlers(workflow: WorkflowDefinition, index: Mapping[str, int]) -> tuple[int, ...]:
    on_limit = workflow.config.on_limit if workflow.config else None
    handlers = (on_limit, workflow.on_error, *(node.compensate for node in workflow.nodes))
    return tuple(dict.fromkeys(index[name] for name in handlers if name is not None and name in index))
