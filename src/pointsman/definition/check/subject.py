"""What every check looks at: the workflow, its graph, what the installation has; and the words to speak of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from pointsman.definition.agents import AgentConfig
from pointsman.definition.graph import Graph
from pointsman.definition.links import label_of, routing_of
from pointsman.definition.nodes import Node
from pointsman.definition.problems import pointer_to
from pointsman.definition.sites import Site, sites_of
from pointsman.definition.wording import is_imported
from pointsman.definition.workflow import Workflow

NAMED_MAX: Final = 6
"""Things listed in one message before the rest is only counted."""


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """What a check needs to know of a tool."""

    client_side: bool = False
    """Run by the caller: it never reaches a tool executor."""
    idempotent: bool = False
    requires_approval: bool = False
    """A person must agree to each of its calls."""
    off: str = ""
    """What would switch it on; empty: it is on."""
    silent: str = ""
    """Why its server tells nothing of it; empty: it does, or it has none."""
    hint: str = ""
    """What to do about that."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the installation has. None = not asked: nothing is reported as unknown."""

    tools: Mapping[str, ToolFacts] | None = None
    agents: Mapping[str, frozenset[str]] | None = None
    """Agent -> the names of its tools."""
    models: Collection[str] | None = None
    workflows: Collection[str] | None = None
    """Ids, without versions."""
    durability: str | None = None
    """What was asked for beside the workflow, instead of its own."""
    node_types: Collection[str] = ()
    """Types that plug-ins perform."""


NOTHING_ASKED: Final = Known()


@dataclass(frozen=True)
class Subject:
    """One workflow under examination."""

    workflow: Workflow
    graph: Graph
    known: Known = field(default=NOTHING_ASKED)

    @cached_property
    def imported(self) -> bool:
        return is_imported(self.workflow)

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        return tuple(sites_of(self.workflow))

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.workflow.nodes

    @property
    def conversational(self) -> bool:
        return bool(self.workflow.config and self.workflow.config.conversational)

    def at_node(self, node: int, *parts: str | int) -> str:
        return pointer_to("nodes", node, *parts)

    def at_edge(self, edge: int, *parts: str | int) -> str:
        """The edge's place; of an implied edge the place of the node that implies it."""
        if edge < len(self.workflow.edges):
            return pointer_to("edges", edge, *parts)
        return self.at_node(self.graph.edges[edge].source)

    def node(self, node: int) -> str:
        """`agent 'Router'` where it has a name, else by id."""
        one = self.nodes[node]
        return f"{one.type} {one.label!r}" if one.name is not None and one.label != one.id else f"{one.type} {one.id!r}"

    def edge(self, edge: int) -> str:
        ref = self.graph.edges[edge]
        return f"edge {ref.id!r}"

    def tools_of(self, config: AgentConfig) -> frozenset[str] | None:
        """The tools an agent may call; None where it is not known here what the agent is."""
        if config.tools is not None or config.agent is None:
            return frozenset(config.tools or ())
        if self.workflow.agents is not None and config.agent in self.workflow.agents:
            return frozenset(self.workflow.agents[config.agent].tools or ())
        return None if self.known.agents is None else self.known.agents.get(config.agent)

    def server_tools(self, config: AgentConfig) -> list[str]:
        """Those of its tools that a tool executor would run."""
        facts = self.known.tools or {}
        tools = self.tools_of(config) or frozenset[str]()
        return sorted(tool for tool in tools if tool not in facts or not facts[tool].client_side)

    def label(self, edge: int) -> str | None:
        """The label an edge of the document listens to."""
        source = self.graph.edges[edge].source
        routing = routing_of(self.nodes[source]) if source >= 0 else "all"
        return label_of(self.workflow.edges[edge], routing)

    def labels_after(self, node: int) -> list[str]:
        """The labels a node's edges listen to, in document order."""
        ways = (way for way in self.graph.out[node] if way < len(self.workflow.edges))
        return [label for label in map(self.label, ways) if label is not None]

    def listed(self, nodes: Iterable[int]) -> str:
        """Ids in document order: `'a', 'b' and 3 more`."""
        return listed(self.graph.ids[node] for node in sorted(set(nodes)))

    def reached(self, node: int) -> bool:
        return self.graph.scopes[node] is not None


def listed(names: Iterable[str]) -> str:
    """`'a', 'b' and 3 more`."""
    some = [repr(name) for name in names]
    shown = some[:NAMED_MAX]
    more = len(some) - len(shown)
    if more:
        return f"{', '.join(shown)} and {more} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))
