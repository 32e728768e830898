"""Entries and ends of executions: entries, unreachable nodes, dead ends, cycles that cannot be left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pointsman.definition.checks.references import missing_nodes
from pointsman.definition.checks.routing import always_taken, may_end
from pointsman.definition.checks.subject import Subject
from pointsman.definition.graph.links import DANGLING
from pointsman.definition.graph.walks import Part, components, cycles, reach
from pointsman.definition.naming_rules import compensations_of
from pointsman.definition.problems import Problem, error, note, remove_at, warning
from pointsman.values import END

UNDOES_NOTHING: Final = frozenset({"start", "end", "parallel", "join", "loop", "decision", "tool_executor", "note"})
"""Types that only have a meaning with edges around them."""


def check_compensation(subject: Subject) -> Iterator[Problem]:
    graph, workflow = subject.graph, subject.workflow
    config = workflow.config
    handlers = (workflow.entry, workflow.on_error, config.on_limit if config is not None else None)
    for name in sorted(compensations_of(workflow) & graph.index.keys()):
        position = graph.index[name]
        node, at = subject.nodes[position], subject.at_node(position)
        if node.type in UNDOES_NOTHING:
            message = f"{subject.node(position)} must undo a step, but nodes of type {node.type!r} cannot undo anything"
            hint = "Name a node that does work: a tool, an agent, a sub-workflow, a person."
            yield error("compensation-impossible", at, message, hint=hint)
        if graph.out[position] or graph.into[position] or name in handlers:
            message = f"{subject.node(position)} is a compensation, but control also reaches it in other ways"
            hint = (
                "A compensation must have no edges, and must not be `entry`, `onLimit` or `onError`. Use a "
                "separate node."
            )
            yield error("compensation-on-path", at, message, hint=hint)
        if node.compensate is not None:
            where = subject.at_node(position, "compensate")
            message = f"{subject.node(position)} undoes a step and has a compensation itself"
            hint = "A compensation is not compensated. Remove `compensate`."
            yield error("compensation-nested", where, message, hint=hint, fix=remove_at(where))


def check_endings(subject: Subject) -> Iterator[Problem]:
    if all(node.type == "note" for node in subject.nodes):
        yield error("no-nodes", "/nodes", "the workflow has no nodes", hint="Add a node.")
        return
    yield from _entries(subject)
    yield from _unreachable(subject)
    yield from _past_the_end(subject)
    trapped = _trapped_nodes(subject)
    endless = _endless(subject, trapped)
    yield from _cycles(subject, endless)
    yield from _trapped(subject, trapped, endless)
    yield from _forbidden_cycles(subject)
    yield from _dead_ends(subject)


def _entries(subject: Subject) -> Iterator[Problem]:
    entries = subject.graph.links.entries
    starts = [position for position, node in enumerate(subject.nodes) if node.type == "start"]
    for extra in starts[1:]:
        message = f"{subject.node(extra)} is a second start; an execution begins at {subject.node(starts[0])}"
        yield error(
            "several-starts", subject.at_node(extra), message, hint="Keep one start node and connect it to both places."
        )
    entry_id = subject.workflow.entry
    if starts and entry_id is not None and subject.graph.index.get(entry_id, starts[0]) != starts[0]:
        message = f"`entry` names {entry_id!r}, but an execution begins at {subject.node(starts[0])}"
        yield warning("entry-not-start", "/entry", message, hint="Remove `entry`, or the start node.")
    if not entries and entry_id is None:
        message = "no node can be the entry: every node has an incoming edge"
        yield error("no-entry", "/nodes", message, hint="Add a start node, or name the first node in `entry`.")
    elif len({subject.nodes[entry].id for entry in entries}) > 1 and not starts:
        message = f"several nodes could be the entry: {subject.listed(entries)}"
        yield error("ambiguous-entry", "/nodes", message, hint="Add a start node, or name one of them in `entry`.")
    ends = any(node.type == "end" for node in subject.nodes)
    if starts and not ends and all(edge.target != END for edge in subject.workflow.edges):
        hint = "The workflow ends after its last node. An end node defines the output."
        yield note("no-end-node", "/nodes", "the workflow has a start node, but no end node", hint=hint)


def _unreachable(subject: Subject) -> Iterator[Problem]:
    links = subject.graph.links
    # Successors of a missing node are not reported as unreachable: they will be reached once that node exists.
    awaiting = [edge.target for edge in links.edges if edge.source == DANGLING and edge.target >= 0]
    revived = reach(links.targets, awaiting)
    for position, node in enumerate(subject.nodes):
        if subject.reached(position) or position in revived or node.type == "note":
            continue
        if links.index[node.id] != position:
            continue  # a duplicate id, which has its own problem
        if node.type == "join":
            message = f"{subject.node(position)} can never start: nothing leads to it"
            hint = "Connect the branches to it, or remove it."
            yield warning("join-never-starts", subject.at_node(position), message, hint=hint)
        else:
            message = f"{subject.node(position)} is never reached: no path leads to it from the entry"
            hint = "Add an edge to it, or remove it."
            yield warning("unreachable-node", subject.at_node(position), message, hint=hint)


def _past_the_end(subject: Subject) -> Iterator[Problem]:
    for edge in subject.graph.edges[: len(subject.workflow.edges)]:
        ends = [end for end in (edge.source, edge.target) if end >= 0]
        for end in ends:
            if subject.nodes[end].type == "note":
                message = f"{subject.edge(edge.number)} touches {subject.node(end)}, which never runs"
                hint = "Notes are comments. Remove the edge."
                fix = remove_at(subject.at_edge(edge.number))
                yield warning("edge-to-note", subject.at_edge(edge.number), message, hint=hint, fix=fix)
        if edge.source >= 0 and subject.nodes[edge.source].type == "end" and edge.kind != "never":
            message = f"{subject.edge(edge.number)} starts at {subject.node(edge.source)}, where the branch ends"
            fix = remove_at(subject.at_edge(edge.number))
            hint = "It is never taken. Remove it, or make the end another node."
            yield warning("edge-from-end", subject.at_edge(edge.number), message, hint=hint, fix=fix)


def _endless(subject: Subject, trapped: set[int]) -> list[Part]:
    """Return cycles whose edges are all always taken, and closed groups of nodes from which no end can be reached."""
    graph = subject.graph
    reached = [subject.reached(node) for node in range(len(graph.ids))]
    sure = [
        [graph.edges[edge_number].target for edge_number in graph.out[node] if _goes_on(subject, edge_number)]
        if reached[node]
        else []
        for node in range(len(graph.ids))
    ]
    endless = cycles(sure)
    if not trapped:
        return endless
    members_of_others = {node for part in endless for node in part}
    inside = [list(graph.links.targets(node)) if node in trapped else [] for node in range(len(graph.ids))]
    for part in components(inside):
        members = set(part)
        closed = members <= trapped and all(target in members for node in part for target in inside[node])
        if closed and not members & members_of_others:
            endless.append(part)
            members_of_others |= members
    return endless


def _goes_on(subject: Subject, edge_number: int) -> bool:
    edge = subject.graph.edges[edge_number]
    return edge.target >= 0 and always_taken(subject, edge)


def _trapped_nodes(subject: Subject) -> set[int]:
    """Return the reachable nodes from which no end can be reached."""
    graph = subject.graph
    everything = range(len(graph.ids))
    free = reach(graph.links.sources, (node for node in everything if may_end(subject, node)))
    return {node for node in everything if subject.reached(node) and node not in free}


def _cycles(subject: Subject, endless: list[Part]) -> Iterator[Problem]:
    for part in endless:
        names = subject.listed(part)
        message = f"control can never leave the cycle of {names}" if len(part) > 1 else f"{names} only leads to itself"
        members = set(part)
        back = [
            edge_number
            for node in part
            for edge_number in subject.graph.out[node]
            if subject.graph.edges[edge_number].target in members
        ]
        closing = max(
            back,
            key=lambda edge_number: subject.graph.edges[edge_number].source - subject.graph.edges[edge_number].target,
        )
        hint = f"Give {subject.edge(closing)}, which closes it, a condition, or add an edge that leads out."
        yield _ending_problem(subject, "endless-cycle", part[0], message, hint)


def _trapped(subject: Subject, trapped: set[int], endless: list[Part]) -> Iterator[Problem]:
    """Report the nodes where control enters a part without an end, not every node of that part."""
    reported = {node for part in endless for node in part}
    for node in sorted(trapped - reported):
        sources = [source for source in subject.graph.links.sources(node) if subject.reached(source)]
        if not sources or any(source not in trapped for source in sources):
            message = f"no end can be reached from {subject.node(node)}"
            hint = "Every path after it runs into a cycle without an exit."
            yield _ending_problem(subject, "no-end-reachable", node, message, hint)


def _ending_problem(subject: Subject, code: str, node: int, message: str, hint: str) -> Problem:
    """Return an error; in the rows dialect a warning, because prompts may end what edges do not."""
    make = warning if subject.workflow.dialect == "rows" else error
    return make(code, subject.at_node(node), message, hint=hint)


def _forbidden_cycles(subject: Subject) -> Iterator[Problem]:
    config, graph = subject.workflow.config, subject.graph
    if config is None or config.allow_cycles is not False:
        return
    rounds = {edge for shape in graph.loops.values() for edge in shape.back_edges}
    forward = [
        [
            graph.edges[edge_number].target
            for edge_number in edge_numbers
            if edge_number not in rounds and graph.edges[edge_number].target >= 0
        ]
        for edge_numbers in graph.out
    ]
    for part in cycles(forward):
        message = f"{subject.listed(part)} form a cycle, and `allowCycles` is false"
        hint = "Use a loop node, or remove `allowCycles: false`."
        yield error("cycle-not-allowed", subject.at_node(part[0]), message, hint=hint)


def _dead_ends(subject: Subject) -> Iterator[Problem]:
    """Report agents that can only call tools: work handed to them can never be handed on."""
    graph = subject.graph
    executors = {position for position, node in enumerate(subject.nodes) if node.type == "tool_executor"}
    if not executors:
        return
    hint = "Give it an edge back, onwards, or to END."
    for position, node in enumerate(subject.nodes):
        targets = [
            graph.edges[edge_number].target
            for edge_number in graph.out[position]
            if graph.edges[edge_number].kind != "error"
        ]
        if (
            node.type != "agent"
            or not targets
            or not set(targets) <= executors
            or subject.routings[position] != "label"
        ):
            continue
        handed_over = any(subject.nodes[source].type == "agent" for source in graph.links.sources(position))
        if handed_over or not subject.conversational:
            message = f"{subject.node(position)} can only call tools: it can never answer, hand off or end"
            yield warning("dead-end", subject.at_node(position), message, hint=hint)
    for name, edges in missing_nodes(subject).items():
        refs = [graph.edges[edge] for edge in edges]
        out = [ref for ref in refs if subject.workflow.edges[ref.number].source == name]
        if out and len(out) < len(refs) and all(ref.target in executors for ref in out):
            message = (
                f"even if {name!r} existed it could only call tools ({subject.node(out[0].target)}): "
                "it could never answer, hand off or end"
            )
            yield warning("dead-end", subject.at_edge(out[0].number), message, hint=hint)
