"""References to nodes, agents, tools, models, workflows and node types; duplicate ids; agents and their tools."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final

from pointsman.definition.checks.subject import Subject, listed
from pointsman.definition.graph.links import agents_at
from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.control import DecisionConfig
from pointsman.definition.model.nodes import CONFIG_OF, TYPE_ALIASES, Never, OnError, queue_of
from pointsman.definition.model.work import UnboundConfig
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem, Repair, error, pointer_to, question, remove_at, rename_fix, warning
from pointsman.definition.text_locations import TextLocation
from pointsman.errors import FORMER_CODES
from pointsman.values import END

REMOVED_MAX: Final = 20
"""Maximum number of edges that one fix removes."""


def check_references(subject: Subject) -> Iterator[Problem]:
    yield from _duplicates(subject)
    yield from _dangling_edges(subject)
    yield from dropped_edges(subject.workflow)
    yield from _dangling_names(subject)
    yield from _unknown_things(subject)
    yield from _unbound_types(subject)


def _duplicates(subject: Subject) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for position, node in enumerate(subject.nodes):
        first = seen.setdefault(node.id, position)
        if first != position:
            message = f"the id {node.id!r} is already used by {subject.node(first)}"
            hint = "Give each node its own id."
            yield error("duplicate-id", subject.at_node(position, "id"), message, hint=hint)
        if node.id == END:
            message = f"{END!r} cannot be the id of a node: as a target it ends the execution"
            yield error("reserved-id", subject.at_node(position, "id"), message, hint="Choose another id.")
    edges: dict[str, int] = {}
    for position, edge in enumerate(subject.workflow.edges):
        if edge.id is not None and edges.setdefault(edge.id, position) != position:
            message = f"the id {edge.id!r} is already used by the edge at position {edges[edge.id]}"
            hint = "Give each edge its own id."
            yield error("duplicate-id", subject.at_edge(position, "id"), message, hint=hint)


def ends_missing(workflow: WorkflowDefinition) -> Iterator[tuple[int, str, str]]:
    """Yield (edge, `source` or `target`, name) for each end of an edge that names a missing node."""
    node_ids = {node.id for node in workflow.nodes}
    for position, edge in enumerate(workflow.edges):
        if edge.source not in node_ids:
            yield position, "source", edge.source
        if edge.target not in node_ids and edge.target != END:
            yield position, "target", edge.target


def missing_nodes(subject: Subject) -> Mapping[str, tuple[int, ...]]:
    """Return names that edges use and no node has -> those edges, without edges that are switched off."""
    missing: dict[str, dict[int, None]] = {}
    for position, _, name in ends_missing(subject.workflow):
        if subject.graph.edges[position].kind != "never":
            missing.setdefault(name, {})[position] = None
    return {name: tuple(edges) for name, edges in missing.items()}


def dropped_edges(workflow: WorkflowDefinition) -> Iterator[Problem]:
    """Warn of edges to missing nodes that are switched off: not an error, because they are never taken."""
    for position, key, name in ends_missing(workflow):
        edge = workflow.edges[position]
        if isinstance(edge.condition, Never):
            what = repr(edge.id) if edge.id is not None else f"from {edge.source!r} to {edge.target!r}"
            message = f"edge {what} is ignored: its {key} {name!r} does not exist"
            yield warning("dropped-edge", pointer_to("edges", position, key), message, hint="Add the node.")


def _dangling_edges(subject: Subject) -> Iterator[Problem]:
    missing = missing_nodes(subject)
    reported: dict[str, tuple[str | None, str, Repair | None]] = {}
    for position, key, name in ends_missing(subject.workflow):
        if subject.graph.edges[position].kind == "never":
            continue
        if name not in reported:
            reported[name] = _about_missing(subject, name, missing[name])
        near, together, without = reported[name]
        at = subject.at_edge(position, key)
        verb = "starts at" if key == "source" else "leads to"
        yield error(
            "dangling-edge",
            at,
            f"{subject.edge(position)} {verb} node {name!r}, which does not exist",
            hint=together + question(near, "Add the node, or remove what names it."),
            fix=rename_fix(at, near) or without,
        )


def _about_missing(subject: Subject, name: str, edges: tuple[int, ...]) -> tuple[str | None, str, Repair | None]:
    """Return the suggestion for a missing node, the edges that name it, and the fix that removes them."""
    together = ""
    if len(edges) > 1:
        together = f"{len(edges)} edges name it: {listed(subject.graph.edges[edge].id for edge in edges)}. "
    few = len(edges) <= REMOVED_MAX
    without = remove_at(*(subject.at_edge(edge) for edge in sorted(edges, reverse=True))) if few else None
    return subject.nearest(name, subject.graph.index), together, without


_EDGE_ENDS: Final = frozenset({"source", "target"})


def _dangling_names(subject: Subject) -> Iterator[Problem]:
    """Report unknown node names outside of edges: `entry`, `onLimit`, `branches`, `of`, `body`, `compensate` …"""
    node_index = subject.graph.index
    for location in subject.text_locations:
        if (
            location.kind != "node"
            or location.text in node_index
            or (location.parts[0] == "edges" and location.parts[-1] in _EDGE_ENDS)
        ):
            continue
        near = subject.nearest(location.text, node_index)
        key = location.parts[-1] if isinstance(location.parts[-1], str) else location.parts[-2]
        yield error(
            "unknown-node",
            location.pointer,
            f"{key!s} names node {location.text!r}, which does not exist",
            hint=question(near, "Name a node of this workflow."),
            fix=rename_fix(location.pointer, near),
        )


def _unknown_things(subject: Subject) -> Iterator[Problem]:
    installation = subject.known
    own = subject.workflow.agents
    agents = None if installation.agents is None else {*installation.agents, *(own or {})}
    workflows = None if installation.workflows is None else {*installation.workflows, str(subject.workflow.id)}
    for location in subject.text_locations:
        match location.kind:
            case "agent":
                if _is_unknown(location, location.text, agents):
                    problem = error("unknown-agent", location.pointer, f"there is no agent {location.text!r}")
                    yield _unknown(problem, location, subject.nearest(location.text, agents or ()))
                elif (
                    agents is None
                    and own
                    and location.text not in own
                    and (near := subject.nearest(location.text, own))
                ):
                    # The agent may be registered with the installation, but the name looks like one defined here.
                    problem = warning(
                        "unknown-agent", location.pointer, f"this workflow does not define the agent {location.text!r}"
                    )
                    yield _unknown(problem, location, near)
            case "tool" if _is_unknown(location, location.text, installation.tools):
                yield _unknown_tool(subject, location, subject.nearest(location.text, installation.tools or ()))
            case "tool" if (facts := (installation.tools or {}).get(location.text)) is not None:
                if facts.off:
                    off = error(
                        "tool-disabled", location.pointer, f"the tool {location.text!r} is disabled", hint=facts.off
                    )
                    yield replace(off, severity="note") if _takes_failure(subject, location, off.code) else off
                elif facts.silent:
                    yield warning("mcp-unreachable", location.pointer, facts.silent, hint=facts.hint)
            case "model" if _is_unknown(location, location.text, installation.models):
                problem = error("unknown-model", location.pointer, f"there is no model {location.text!r}")
                yield _unknown(problem, location, subject.nearest(location.text, installation.models or ()))
            case "workflow" if _is_unknown(location, location.text.partition("@")[0], workflows):
                problem = error("unknown-workflow", location.pointer, f"there is no workflow {location.text!r}")
                yield _unknown(problem, location, subject.nearest(location.text, workflows or ()))
            case _:
                pass


def _unknown_tool(subject: Subject, location: TextLocation, near: str | None) -> Problem:
    """Return the problem of an unknown tool. A placed node needs its tools in the workers of its queue only."""
    queue = ""
    match location.parts:
        case ("nodes", int(position), *_):
            queue = queue_of(subject.nodes[position].placement)
        case _:
            pass
    if queue and near is None:
        message = f"there is no tool {location.text!r} here: a worker of the queue {queue!r} must have it"
        return warning(
            "unknown-tool", location.pointer, message, hint=f"Start it with pointsman worker --queue {queue}."
        )
    return _unknown(error("unknown-tool", location.pointer, f"there is no tool {location.text!r}"), location, near)


def _takes_failure(subject: Subject, location: TextLocation, code: str) -> bool:
    """Return whether the author routes or handles a failure of the location's node with this error code."""
    match location.parts:
        case ("nodes", int(position), "config", "tool"):
            node = subject.nodes[position]
        case _:
            return False
    if node.execution is not None and node.execution.error_handler == "continue":
        return True
    edges = subject.workflow.edges
    conditions = (
        edges[edge_number].condition for edge_number in subject.graph.out[position] if edge_number < len(edges)
    )
    names = {code, FORMER_CODES.get(code)}
    return any(
        isinstance(condition, OnError) and (condition.codes is None or names & {*condition.codes})
        for condition in conditions
    )


def _is_unknown(location: TextLocation, name: str, names: Collection[str] | None) -> bool:
    # A text with `{` is filled in when the step runs, and `${NAME}` when the document is loaded.
    return names is not None and name not in names and "{" not in location.text


_ADD: Final = {
    "unknown-agent": "Define it under `agents`, or save an agent of that name.",
    "unknown-tool": "Add it with `Pointsman(tools=[…])`, `--tools MODULE` or `[tools] python` in the settings "
    "(docs/how-to/python.md), or use one that `pointsman tools` lists.",
    "unknown-model": "Configure its provider in the settings, or use a model that `pointsman models` lists.",
    "unknown-workflow": "Save the workflow, or use one that `pointsman workflows list` lists.",
}


def _unknown(problem: Problem, location: TextLocation, near: str | None) -> Problem:
    hint = question(near, _ADD[problem.code])
    return replace(problem, hint=hint, fix=rename_fix(location.pointer, near))


_INSTEAD: Final = {
    "query-plan": "a `planner` breaks a question into tasks",
    "corpus-search": "a `tool` searches; `memory` with `operation: search` searches stored values",
    "quote-validator": "a `structured-record` checks each quote against its source",
    "inbox-load": "`memory` with `operation: get` reads a stored value",
    "inbox-finalize": "`memory` with `operation: set` stores a value",
    "memory-finalize": "`memory` with `operation: set` stores a value",
}
"""Types of another system, and their nearest equivalents here."""


def _unbound_types(subject: Subject) -> Iterator[Problem]:
    types = (*CONFIG_OF, *TYPE_ALIASES, *subject.known.node_types)
    for position, node in enumerate(subject.nodes):
        if not isinstance(node.config, UnboundConfig) or node.type in subject.known.node_types:
            continue
        near = subject.nearest(node.type, types)
        at = subject.at_node(position, "type")
        yield error(
            "unbound-node-type",
            at,
            f"unknown node type {node.type!r} of node {node.id!r}",
            hint=_unbound_hint(node.type, near),
            fix=rename_fix(at, near),
        )


def _unbound_hint(kind: str, near: str | None) -> str:
    if kind in _INSTEAD:
        return f"The node is stored unchanged. Install a plug-in that performs it, or: {_INSTEAD[kind]}."
    return question(near, "The node is stored unchanged. Install a plug-in that performs it, or use another type.")


INJECTED: Final = ("router", "end")
"""Tools that the engine itself gives to agents."""


def check_agents(subject: Subject) -> Iterator[Problem]:
    yield from _reserved(subject)
    yield from _handoffs(subject)
    yield from _executors(subject)
    for position, node in enumerate(subject.nodes):
        if isinstance(node.config, DecisionConfig):
            yield from _decision(subject, position, node.config)
        if isinstance(node.config, AgentConfig):
            yield from _without_prompt(subject, position, node.config)


def _reserved(subject: Subject) -> Iterator[Problem]:
    for location in subject.text_locations:
        if location.kind == "tool" and location.text in INJECTED:
            message = f"a tool cannot be called {location.text!r}: the engine gives agents one of that name"
            yield error("reserved-tool-name", location.pointer, message, hint="Rename the tool.")


def _handoffs(subject: Subject) -> Iterator[Problem]:
    """Report hand-offs to unknown names, and hand-offs in places where they have no effect."""
    agents = agents_at(subject.nodes)
    for position, node in enumerate(subject.nodes):
        if not isinstance(node.config, AgentConfig):
            continue
        for number, name in enumerate(node.config.handoffs or ()):
            if name not in subject.graph.index and name not in agents:
                message = f"{subject.node(position)} hands off to {name!r}, but no node and no agent has that name"
                at = subject.at_node(position, "config", "handoffs", number)
                yield error(
                    "unknown-node", at, message, hint="Use the name of a node of this workflow, or of its agent."
                )
    for name, agent in (subject.workflow.agents or {}).items():
        if agent.handoffs:
            at = pointer_to("agents", name, "handoffs")
            message = f"`handoffs` has no effect at the agent {name!r}: set it at a node"
            yield warning("setting-without-effect", at, message, hint="Set it at the nodes.", fix=remove_at(at))


def _executors(subject: Subject) -> Iterator[Problem]:
    executors = frozenset(position for position, node in enumerate(subject.nodes) if node.type == "tool_executor")
    for position, node in enumerate(subject.nodes):
        if not isinstance(node.config, AgentConfig):
            continue
        tools = subject.server_tools(node.config)
        if not tools:
            continue
        if not executors and subject.workflow.dialect == "rows":
            message = f"{subject.node(position)} has tools ({listed(tools)}), and there is no tool executor to run them"
            hint = "Add a node of type TOOL_EXECUTOR and an edge to it."
            yield error("no-tool-executor", subject.at_node(position), message, hint=hint)
        elif executors and executors.isdisjoint(subject.graph.links.targets(position)):
            message = f"{subject.node(position)} has tools ({listed(tools)}) and no edge to the tool executor"
            hint = f"Lead an edge from it to {subject.listed(executors)}."
            yield error("agent-without-tool-edge", subject.at_node(position), message, hint=hint)


def _without_prompt(subject: Subject, position: int, config: AgentConfig) -> Iterator[Problem]:
    """Report agents whose prompt defaults to the workflow's input, in a workflow that takes none."""
    workflow = subject.workflow
    named_agent = (workflow.agents or {}).get(config.agent or "")
    if config.agent is not None and named_agent is None:
        return  # an agent of the installation: its prompt is not known here
    agents = [agent for agent in (config, named_agent) if agent is not None]
    prompt = next((agent.prompt for agent in agents if agent.prompt is not None), None)
    if prompt is not None:
        empty = not any(text.strip() for text in prompt.languages().values())
    else:
        has_message = subject.nodes[position].inputs or any(agent.messages or agent.input_files for agent in agents)
        talks = subject.conversational or workflow.dialect in ("rows", "graph")
        empty = not (has_message or talks or subject.takes_input)
    if empty:
        at = subject.at_node(position, "config", *(() if prompt is None else ("prompt",)))
        message = f"{subject.node(position)} has no prompt, and the workflow declares no input to use instead"
        if prompt is not None:
            message = f"the prompt of {subject.node(position)} is empty"
        hint = 'Give it a `prompt`, such as "Write about {topic}", or declare the input.'
        yield warning("agent-without-prompt", at, message, hint=hint)


def _decision(subject: Subject, position: int, config: DecisionConfig) -> Iterator[Problem]:
    if config.llm_prompt is not None and not config.choices and config.expression is None and not config.cases:
        labels = subject.labels_after(position)
        if not labels:
            message = f"{subject.node(position)} asks a model to choose, but it has no choices"
            hint = "List `choices`, or give its edges labels."
            yield warning("no-choices", subject.at_node(position), message, hint=hint)
    sources = [source for source in (config.expression, config.cases, config.llm_prompt) if source]
    if len(sources) > 1:
        message = f"{subject.node(position)} decides in more than one way"
        hint = "Keep one of `expression`, `cases` and `llmPrompt`."
        yield error("several-deciders", subject.at_node(position, "config"), message, hint=hint)
