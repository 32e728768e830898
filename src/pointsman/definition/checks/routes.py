"""Routes out of a node: edges that are always taken, edges that can be taken together, and possible ends."""

from __future__ import annotations

import re
from typing import Final

from pointsman.definition.checks.subject import Subject
from pointsman.definition.graph.links import DANGLING, TO_END, EdgeRef, label_of
from pointsman.definition.model.control import HumanConfig, ParallelConfig
from pointsman.definition.model.edges import Equals, When

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
    ways = subject.ways[edge.source]
    match subject.routings[edge.source]:
        case "all":
            return True
        case "first":
            return ways[0].number == edge.number
        case "label":
            talks = node.type == "agent" and subject.conversational
            return len(ways) == 1 and not talks and node.type != "human"


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
    ways = subject.ways[node]
    if one.type == "end" or any(edge.target in (TO_END, DANGLING) for edge in ways):
        return True
    if node in graph.loops:
        ways = tuple(edge for edge in ways if edge.number in subject.exits[node])
    certain = any(edge.kind in ("plain", "default") for edge in ways)
    match subject.routings[node]:
        case _ if not ways:
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
