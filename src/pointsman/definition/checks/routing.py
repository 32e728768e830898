"""Choice of edges: labels that are never emitted, labels without an edge, edges never taken, duplicate edges.

`always_taken`, `taken_together` and `may_end` describe the routes out of a node for the other checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from pointsman.definition.checks.subject import Subject, listed
from pointsman.definition.graph.links import DANGLING, TO_END, EdgeRef, label_of
from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.control import DecisionConfig, HumanConfig, ParallelConfig
from pointsman.definition.model.nodes import Edge, Equals, OnLabel, When
from pointsman.definition.problems import Problem, error, question, remove_at, rename_fix, warning
from pointsman.expressions.compiler import compile_expression
from pointsman.expressions.failures import ExpressionError
from pointsman.expressions.syntax_tree import COMPARE, Chain, Literal, Prefix
from pointsman.values import END

SILENT: Final = frozenset(
    {"start", "join", "loop", "parallel", "transform", "memory", "wait", "emit", "progress", "template-render", "note"}
)
"""Types that never emit a label."""

VERDICTS: Final = ("pass", "retry", "fail")


def check_routing(subject: Subject) -> Iterator[Problem]:
    for position in range(len(subject.nodes)):
        edge_numbers = [
            edge_number for edge_number in subject.graph.out[position] if edge_number < len(subject.workflow.edges)
        ]
        yield from _same_label(subject, position, edge_numbers)
        yield from _same_edge(subject, edge_numbers)
        yield from _never_taken(subject, position, edge_numbers)
        emitted = _emitted(subject, position)
        yield from _never_emitted(subject, position, edge_numbers, emitted)
        yield from _without_edge(subject, position, edge_numbers, emitted)


def _same_label(subject: Subject, position: int, edge_numbers: list[int]) -> Iterator[Problem]:
    routing, first_edges = subject.routings[position], dict[str, int]()
    for edge_number in edge_numbers:
        label = label_of(subject.workflow.edges[edge_number], routing)
        if label is None or (first := first_edges.setdefault(label, edge_number)) == edge_number:
            continue
        both = f"{subject.edge(edge_number)} and {subject.edge(first)}"
        message = f"{both} both leave {subject.node(position)} by the label {label!r}"
        yield error("ambiguous-edge", subject.at_edge(edge_number), message, hint="Give one of them another label.")


def _same_edge(subject: Subject, edge_numbers: list[int]) -> Iterator[Problem]:
    first_edges: dict[tuple[object, ...], int] = {}
    for edge_number in edge_numbers:
        edge = subject.workflow.edges[edge_number]
        if isinstance(edge.condition, OnLabel) or edge.label is not None:
            continue
        condition = None if edge.condition is None else repr(edge.condition)
        equal = first_edges.setdefault((edge.target, edge.mark, condition), edge_number)
        if equal != edge_number:
            message = f"{subject.edge(edge_number)} duplicates {subject.edge(equal)}"
            fix = remove_at(subject.at_edge(edge_number))
            yield warning("duplicate-edge", subject.at_edge(edge_number), message, hint="Remove one of them.", fix=fix)


def _never_taken(subject: Subject, position: int, edge_numbers: list[int]) -> Iterator[Problem]:
    """Report edges after an edge without a condition (routing `first`), and several plain edges (routing `label`)."""
    node, routing = subject.nodes[position], subject.routings[position]
    plain = [edge_number for edge_number in edge_numbers if subject.graph.edges[edge_number].kind == "plain"]
    if routing == "label" and len(plain) > 1:
        message = (
            f"{subject.node(position)} has {len(plain)} outgoing edges without a label, and nothing decides which one "
            f"to follow: {_edge_ids(subject, plain)}"
        )
        hint = "Give each edge a label, or set `routing: all` to follow all of them in parallel."
        yield error("several-plain-edges", subject.at_edge(plain[1]), message, hint=hint)
    if routing == "first" and plain and subject.workflow.dialect != "steps":  # the importer of that dialect reports it
        for edge_number in edge_numbers:
            if edge_number > plain[0] and subject.graph.edges[edge_number].kind not in ("error", "plain"):
                message = (
                    f"{subject.edge(edge_number)} is never taken: {subject.edge(plain[0])} before it has no condition"
                )
                hint = "Move the edge without a condition to the end."
                yield warning("edge-never-taken", subject.at_edge(edge_number), message, hint=hint)
        if len(plain) > 1:
            message = f"{subject.edge(plain[1])} is never taken: {subject.edge(plain[0])} before it has no condition"
            both = "Set `routing: all` to take both." if not node.routing else ""
            hint = f"The first edge whose condition is true is taken. {both}"
            yield warning("edge-never-taken", subject.at_edge(plain[1]), message, hint=hint.strip())


def _edge_ids(subject: Subject, edge_numbers: list[int]) -> str:
    return listed(subject.graph.edges[edge_number].id for edge_number in edge_numbers)


def _emitted(subject: Subject, position: int) -> frozenset[str] | None:
    """Return the labels that a node can emit; None for any."""
    node = subject.nodes[position]
    match node.config:
        case DecisionConfig():
            return _decided(node.config)
        case HumanConfig():
            return frozenset(actions_of(node.config))
        case AgentConfig():
            return _next_of(subject, node.config)
        case _ if node.type == "tool_executor":
            return _tools_before(subject, position)
        case _ if node.type == "verifier":
            return frozenset(VERDICTS)
        case _ if node.type in SILENT:
            return frozenset()
        case _:
            return None


def _decided(config: DecisionConfig) -> frozenset[str] | None:
    extra = {config.default} if config.default is not None else set[str]()
    if config.cases:
        return frozenset({case.label for case in config.cases} | extra)
    if config.choices:
        return frozenset({choice.label for choice in config.choices} | extra)
    if config.expression is None:
        return None
    try:
        tree = compile_expression(config.expression).tree
    except ExpressionError:
        return None
    match tree:
        case Chain(strength=strength) if strength == COMPARE:
            return frozenset({"true", "false"} | extra)
        case Prefix(sign="not" | "!") | Literal(value=bool()):
            return frozenset({"true", "false"} | extra)
        case _:
            return None


def _next_of(subject: Subject, config: AgentConfig) -> frozenset[str] | None:
    """Return the fixed list of `next` in the agent's output
    schema; None without one if edge labels are offered."""
    schema = config.output_schema
    if schema is None and config.agent is not None and subject.workflow.agents is not None:
        agent = subject.workflow.agents.get(config.agent)
        schema = agent.output_schema if agent is not None else None
    properties = (schema or {}).get("properties")
    next_schema = properties.get("next") if isinstance(properties, dict) else None
    words = next_schema.get("enum") if isinstance(next_schema, dict) else None
    return frozenset(word for word in words if isinstance(word, str)) if isinstance(words, list) else None


def _tools_before(subject: Subject, position: int) -> frozenset[str] | None:
    """Return the tools of the agents that lead to a tool executor; None if one of them is not known here."""
    names: set[str] = set()
    for source in subject.graph.links.sources(position):
        config = subject.nodes[source].config
        tools = subject.tools_of(config) if isinstance(config, AgentConfig) else None
        if tools is None:
            return None
        names |= tools
    return frozenset(names)


def _never_emitted(
    subject: Subject, position: int, edge_numbers: list[int], emitted: frozenset[str] | None
) -> Iterator[Problem]:
    if emitted is None:
        return
    node, routing = subject.nodes[position], subject.routings[position]
    can, spelled = "", frozenset[str]()
    for edge_number in edge_numbers:
        edge = subject.workflow.edges[edge_number]
        label, at = _awaited(subject, edge, edge_number, routing)
        if label is None or label in emitted or (label == END and node.type == "agent"):
            continue
        if not can:
            what = "answers" if node.type == "human" else "labels"
            can = f"its {what} are {listed(sorted(emitted))}" if emitted else f"a {node.type} emits no label"
            spelled = frozenset(word.lower() for word in emitted)
        if label.lower() in spelled:
            continue  # matched ignoring case, with a warning event
        message = (
            f"{subject.edge(edge_number)} waits for {label!r}, but {subject.node(position)} does not emit it: {can}"
        )
        near = subject.nearest(label, emitted)
        hint = question(near, "Use a label it emits, or add this one to it.")
        yield warning("label-never-emitted", at, message, hint=hint, fix=rename_fix(at, near))


def _awaited(subject: Subject, edge: Edge, edge_number: int, routing: str) -> tuple[str | None, str]:
    """Return the label that an edge waits for, and the pointer to it."""
    label = label_of(edge, "label" if routing == "label" else "all")
    if label is not None:
        parts = ("condition", "label") if isinstance(edge.condition, OnLabel) else ("label",)
        return label, subject.at_edge(edge_number, *parts)
    match edge.condition:
        case Equals(field=field, value=value) if field.split(".")[-1] in ("branch", "action"):
            own = field in ("result.branch", "$.result.branch", f"nodes.{edge.source}.branch")
            if own or field == f"nodes.{edge.source}.action":
                text = value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else None
                return text, subject.at_edge(edge_number, "condition", "value")
            return None, ""
        case _:
            return None, ""


def _without_edge(
    subject: Subject, position: int, edge_numbers: list[int], emitted: frozenset[str] | None
) -> Iterator[Problem]:
    """Report emitted labels without an edge, if all other edges have labels."""
    node = subject.nodes[position]
    if node.type == "decision" and not edge_numbers and subject.reached(position):
        message = f"{subject.node(position)} decides, but has no outgoing edge"
        yield warning("decision-without-edges", subject.at_node(position), message, hint="Add an edge per branch.")
    if node.type not in ("decision", "human") or not edge_numbers or not emitted:
        return
    awaited: Mapping[int, str | None] = {
        edge_number: _awaited(subject, subject.workflow.edges[edge_number], edge_number, subject.routings[position])[0]
        for edge_number in edge_numbers
    }
    if any(
        label is None and subject.graph.edges[edge_number].kind != "error" for edge_number, label in awaited.items()
    ):
        return
    followed = {label.lower() for label in awaited.values() if label is not None}
    silent = sorted(label for label in emitted if label.lower() not in followed)
    if node.type == "human":
        silent = [label for label in silent if label != "reject"]
    if silent:
        message = f"no edge of {subject.node(position)} waits for {listed(silent)}"
        hint = "Add an edge for it, or one with the condition `default`. Without one the step fails with `no-route`."
        yield warning("label-without-edge", subject.at_node(position), message, hint=hint)


READY_MADE: Final = ("approve", "reject")
"""Default actions of a gate."""


def actions_of(config: HumanConfig) -> tuple[str, ...]:
    """Return the answers that a person may give."""
    if config.options:
        return tuple(option.value for option in config.options)
    return tuple(config.actions or READY_MADE)


def always_taken(subject: Subject, edge: EdgeRef) -> bool:
    """Return whether control takes the edge whenever its source is done, except for failures and limits."""
    if edge.source < 0 or edge.kind != "plain" or edge.implied in ("caller", "timeout"):
        return False
    graph, node = subject.graph, subject.nodes[edge.source]
    if edge.target >= 0 and subject.nodes[edge.target].type == "tool_executor":
        return False
    if edge.source in graph.loops:
        return edge.number in subject.exits[edge.source]
    edges = subject.edges_from[edge.source]
    match subject.routings[edge.source]:
        case "all":
            return True
        case "first":
            return edges[0].number == edge.number
        case "label":
            talks = node.type == "agent" and subject.conversational
            return len(edges) == 1 and not talks and node.type != "human"


def taken_together(subject: Subject, one: int, other: int) -> bool:
    """Return whether one visit of a node may take both of these edges."""
    graph = subject.graph
    first, second = graph.edges[one], graph.edges[other]
    source = subject.nodes[first.source]
    if subject.routings[first.source] != "all" or isinstance(source.config, ParallelConfig):
        return False
    kinds = {first.kind, second.kind}
    if "default" in kinds or (len(kinds) == 2 and "error" in kinds):
        return False
    loop = graph.loops.get(first.source)
    if loop is not None and (one in subject.exits[first.source]) != (other in subject.exits[first.source]):
        return False
    return not _exclude_each_other(subject, first, second)


def _exclude_each_other(subject: Subject, first: EdgeRef, second: EdgeRef) -> bool:
    """Return whether the edges have different labels, or compare one field with different values."""
    edges = subject.workflow.edges
    if first.number >= len(edges) or second.number >= len(edges):
        return False
    one, other = edges[first.number], edges[second.number]
    labels = label_of(one, "all"), label_of(other, "all")
    if None not in labels:
        return labels[0] != labels[1]
    match one.condition, other.condition:
        case Equals(), Equals():
            return one.condition.field == other.condition.field and one.condition.value != other.condition.value
        case When(), When():
            return opposite(one.condition.expression, other.condition.expression)
        case _:
            return False


_OPERAND: Final = r"[\w.$\[\]]+(\([\w.$\[\], ]*\))?"
"""A path, or a function of paths."""


_LITERAL: Final = r"""-?\d+(\.\d+)?|'[^'\\]*'|"[^"\\]*\""""


_COMPARISON: Final = re.compile(rf"(?P<left>{_OPERAND}) (?P<operator>[!=]==?) (?P<right>[\w.$\[\]]+|{_LITERAL})")
"""The only comparison that is compared by its text."""


_PATH: Final = re.compile(_OPERAND)


def opposite(one: str, other: str) -> bool:
    """Recognise `x == 1` and `x != 1`, `a` and `not a`, `x == 1` and `x == 2`. Other opposites are not recognised."""
    one, other = " ".join(one.split()), " ".join(other.split())
    return _negates(one, other) or _negates(other, one) or _excludes(one, other)


def _negates(negation: str, text: str) -> bool:
    if negation in (f"not ({text})", f"!({text})"):
        return True
    if negation == f"!{text}":
        return _PATH.fullmatch(text) is not None
    return negation == f"not {text}" and (_PATH.fullmatch(text) or _COMPARISON.fullmatch(text)) is not None


def _excludes(one: str, other: str) -> bool:
    """Whether two comparisons of one path never hold together."""
    first, second = _COMPARISON.fullmatch(one), _COMPARISON.fullmatch(other)
    if first is None or second is None or first["left"] != second["left"]:
        return False
    if first["operator"][0] != second["operator"][0]:
        return first["right"] == second["right"]
    values = _literal(first["right"]), _literal(second["right"])
    return first["operator"][0] == "=" and None not in values and values[0] != values[1]


def _literal(text: str) -> tuple[str, str | float] | None:
    """The type and the value of a literal; None for a path."""
    if text[0] in "'\"":
        return "text", text[1:-1]
    if text.lower() in ("true", "false", "null"):
        return "word", text.lower()
    try:
        return "number", float(text)
    except ValueError:
        return None


def may_end(subject: Subject, node: int) -> bool:
    """Return whether a branch may end here: at an end, by an edge to END, or because no edge must be taken."""
    graph, one = subject.graph, subject.nodes[node]
    edges = subject.edges_from[node]
    if one.type == "end" or any(edge.target in (TO_END, DANGLING) for edge in edges):
        return True
    if node in graph.loops:
        edges = tuple(edge for edge in edges if edge.number in subject.exits[node])
    certain = any(edge.kind in ("plain", "default") for edge in edges)
    match subject.routings[node]:
        case _ if not edges:
            return True
        case "all":
            return not certain
        case "first":
            return not certain and subject.imported
        case "label":
            if isinstance(one.config, HumanConfig):
                labels = subject.labels_from.get(one.id, frozenset())
                return "reject" in actions_of(one.config) and "reject" not in labels
            return one.type == "agent" and subject.conversational
