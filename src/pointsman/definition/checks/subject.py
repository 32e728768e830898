"""Input of every check: the workflow, its graph, the contents
of the installation; and helpers to name things in messages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from pointsman.definition.graph.analysis import Graph
from pointsman.definition.graph.links import EdgeRef, label_of, routing_of
from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.control import StartConfig
from pointsman.definition.model.nodes import Node, Routing
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.naming_rules import is_imported, names_at_large
from pointsman.definition.problems import Suggestions, pointer_to, renamed
from pointsman.definition.text_locations import TextLocation, text_locations_of
from pointsman.expressions.environment import Names
from pointsman.values import JsonObject

NAMED_MAX: Final = 6
"""Things listed in one message; the others are only counted."""
NAME_CHARS_MAX: Final = 100
"""Maximum length of a name in messages."""


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """Properties of a tool that the checks need."""

    client_side: bool = False
    """True if the caller runs it: it never reaches a tool executor."""
    idempotent: bool = False
    requires_approval: bool = False
    """True if a person must approve each of its calls."""
    parameters: JsonObject | None = None
    """JSON Schema of its parameters; None if it is not known."""
    off: str = ""
    """How to switch the tool on; empty if it is on."""
    silent: str = ""
    """Why its server has no description of it; empty if it has one, or the tool has no server."""
    hint: str = ""
    """Advice for `silent`."""


@dataclass(frozen=True, slots=True)
class Installation:
    """Contents of the installation. None: not known, so nothing is reported as unknown."""

    tools: Mapping[str, ToolFacts] | None = None
    agents: Mapping[str, frozenset[str]] | None = None
    """Agent -> the names of its tools."""
    models: Collection[str] | None = None
    workflows: Collection[str] | None = None
    """Ids, without versions."""
    durability: str | None = None
    """Durability requested by the caller instead of the workflow's own."""
    node_types: Collection[str] = ()
    """Types that plug-ins provide."""


UNKNOWN_INSTALLATION: Final = Installation()


@dataclass(frozen=True)
class Subject:
    """One workflow being checked."""

    workflow: WorkflowDefinition
    graph: Graph
    known: Installation = field(default=UNKNOWN_INSTALLATION)

    @cached_property
    def imported(self) -> bool:
        return is_imported(self.workflow)

    @cached_property
    def input_schema(self) -> JsonObject | None:
        """The input schema; cached because the workflow searches its nodes for it."""
        return self.workflow.input_schema

    @cached_property
    def input_defaults(self) -> JsonObject:
        """The defaults of the input; cached because the workflow collects them from all fields."""
        return self.workflow.input_defaults

    @cached_property
    def takes_input(self) -> bool:
        """Whether the workflow declares any input."""
        schemas = [self.input_schema]
        schemas += [node.config.inputs for node in self.nodes if isinstance(node.config, StartConfig)]
        return any(schema and (schema.get("properties") or schema.get("type") != "object") for schema in schemas)

    @cached_property
    def text_locations(self) -> tuple[TextLocation, ...]:
        return tuple(text_locations_of(self.workflow))

    @cached_property
    def _suggestions(self) -> Suggestions:
        return Suggestions()

    def nearest(self, word: str, candidates: Iterable[str]) -> str | None:
        """Return the suggestion for a name; None also if the budget is used up."""
        return renamed(word, self._suggestions.nearest(word, candidates))

    @cached_property
    def routings(self) -> tuple[Routing, ...]:
        """The routing of each node."""
        return tuple([routing_of(node) for node in self.nodes])

    @cached_property
    def names(self) -> Names:
        """The names of the workflow outside of all nodes."""
        return names_at_large(self.workflow)

    @cached_property
    def edges_from(self) -> tuple[tuple[EdgeRef, ...], ...]:
        """For each node, the edges that control takes when the node is done: all except those for failures."""
        edges = self.graph.edges
        return tuple(
            tuple(edges[edge_number] for edge_number in out if edges[edge_number].kind != "error")
            for out in self.graph.out
        )

    @cached_property
    def exits(self) -> Mapping[int, frozenset[int]]:
        """Loop -> the edges that leave it."""
        return {loop: frozenset(shape.exit_edges) for loop, shape in self.graph.loops.items()}

    @cached_property
    def labels_from(self) -> Mapping[str, frozenset[str | None]]:
        """Id of a node -> the labels that its edges in the document wait for."""
        result: dict[str, set[str | None]] = {}
        for edge in self.workflow.edges:
            result.setdefault(edge.source, set()).add(label_of(edge, "label"))
        return {source: frozenset(labels) for source, labels in result.items()}

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.workflow.nodes

    @property
    def conversational(self) -> bool:
        return bool(self.workflow.config and self.workflow.config.conversational)

    def at_node(self, node: int, *parts: str | int) -> str:
        return f"/nodes/{node}{pointer_to(*parts)}" if parts else f"/nodes/{node}"

    def at_edge(self, edge: int, *parts: str | int) -> str:
        """Return the pointer of the edge; for an implied edge that of the node that implies it."""
        if edge < len(self.workflow.edges):
            return pointer_to("edges", edge, *parts)
        return self.at_node(self.graph.edges[edge].source)

    def node(self, node: int) -> str:
        """Return `agent 'Router'` if the node has a name, else its id."""
        one = self.nodes[node]
        return f"{one.type} {(one.id if one.name is None else one.label)[:NAME_CHARS_MAX]!r}"

    def edge(self, edge: int) -> str:
        ref = self.graph.edges[edge]
        return f"edge {ref.id!r}"

    def tools_of(self, config: AgentConfig) -> frozenset[str] | None:
        """Return the tools that an agent may call; None if the agent is not known here."""
        if config.tools is not None or config.agent is None:
            return frozenset(config.tools or ())
        if config.agent in self._tools_of_agents:
            return self._tools_of_agents[config.agent]
        return None if self.known.agents is None else self.known.agents.get(config.agent)

    @cached_property
    def _tools_of_agents(self) -> Mapping[str, frozenset[str]]:
        return {name: frozenset(agent.tools or ()) for name, agent in (self.workflow.agents or {}).items()}

    def server_tools(self, config: AgentConfig) -> list[str]:
        """Return those of its tools that a tool executor would run."""
        tools = self.tools_of(config) or frozenset[str]()
        names = self._server_tools.get(tools)
        if names is None:
            facts = self.known.tools or {}
            names = sorted(tool for tool in tools if tool not in facts or not facts[tool].client_side)
            self._server_tools[tools] = names
        return names

    @cached_property
    def _server_tools(self) -> dict[frozenset[str], list[str]]:
        return {}

    def label(self, edge: int) -> str | None:
        """Return the label that an edge of the document waits for."""
        source = self.graph.edges[edge].source
        routing = self.routings[source] if source >= 0 else "all"
        return label_of(self.workflow.edges[edge], routing)

    def labels_after(self, node: int) -> list[str]:
        """Return the labels that a node's edges wait for, in document order."""
        edge_numbers = (edge_number for edge_number in self.graph.out[node] if edge_number < len(self.workflow.edges))
        return [label for label in map(self.label, edge_numbers) if label is not None]

    def listed(self, nodes: Iterable[int]) -> str:
        """Return ids in document order: `'a', 'b' and 3 more`.
        Cached for a frozen set: many problems list the same one."""
        if not isinstance(nodes, frozenset):
            return listed(self.graph.ids[node] for node in sorted(set(nodes)))
        text = self._listed.get(nodes)
        if text is None:
            text = self._listed[nodes] = listed(self.graph.ids[node] for node in sorted(nodes))
        return text

    @cached_property
    def _listed(self) -> dict[frozenset[int], str]:
        return {}

    def reached(self, node: int) -> bool:
        return self.graph.scopes[node] is not None


def listed(names: Iterable[str]) -> str:
    """Return `'a', 'b' and 3 more`."""
    some = list(names)
    shown = [repr(name[:NAME_CHARS_MAX]) for name in some[:NAMED_MAX]]
    more = len(some) - len(shown)
    if more:
        return f"{', '.join(shown)} and {more} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))
