"""Parallels, joins and loops: messages for the findings of
the graph analysis, and settings that contradict the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from pointsman.definition.checks.conflicts import overlap
from pointsman.definition.checks.dataflow import Order
from pointsman.definition.checks.formulas import Formulas
from pointsman.definition.checks.subject import Subject
from pointsman.definition.graph.scopes import SCOPE_DEPTH_MAX, ScopeFinding
from pointsman.definition.model.control import JoinConfig, LoopConfig, ParallelConfig
from pointsman.definition.problems import Problem, add_at, error, note, warning
from pointsman.expressions.failures import ExpressionError
from pointsman.expressions.paths import ItemKey, compile_path
from pointsman.values import JsonObject


def check_joining(subject: Subject, formulas: Formulas) -> Iterator[Problem]:
    order = Order(subject)
    for position, node in enumerate(subject.nodes):
        config = node.config
        if not isinstance(config, JoinConfig) or config.merge_key is None or not subject.reached(position):
            continue
        try:
            segments = compile_path(config.merge_key).segments
        except ExpressionError:
            continue  # reported with all other paths
        keys = tuple(None if isinstance(key, ItemKey) else key for key in segments)
        writers = frozenset(writing.node for writing in formulas.writings if overlap(writing.keys, keys))
        if writers and order.may_precede(writers, position, own=False):
            continue
        at = subject.at_node(position, "config", "mergeKey")
        message = f"{subject.node(position)} joins {config.merge_key!r}, which no earlier node writes"
        hint = "Name the field the branches write, or remove `mergeKey` to join their results."
        yield warning("merge-key-unwritten", at, message, hint=hint)


def check_scoping(subject: Subject) -> Iterator[Problem]:
    for finding in subject.graph.findings:
        yield _WORDS[finding.code](subject, finding)
    for position, node in enumerate(subject.nodes):
        match node.config:
            case ParallelConfig():
                yield from _parallel(subject, position)
            case JoinConfig():
                yield from _join(subject, position, node.config)
            case LoopConfig():
                yield from _loop(subject, position, node.config)
            case _:
                pass


def _edge_names(subject: Subject, finding: ScopeFinding) -> str:
    return " and ".join(repr(subject.graph.edges[edge].id) for edge in finding.edges)


def _mismatch(subject: Subject, finding: ScopeFinding) -> Problem:
    node, *openers = finding.nodes
    message = f"{subject.node(node)} is reached with different parallels open (over {_edge_names(subject, finding)})"
    inside = f"Only some paths come from inside {subject.listed(openers)}. " if openers else ""
    hint = f"{inside}Close the parallel with a join before the paths meet."
    return error("scope-mismatch", subject.at_node(node), message, hint=hint)


def _leak(subject: Subject, finding: ScopeFinding) -> Problem:
    node, *openers = finding.nodes
    edge = finding.edges[0] if finding.edges else 0
    message = (
        f"{subject.node(node)} comes after the join of {subject.listed(openers)}, "
        f"and is also reached from inside a branch (over {_edge_names(subject, finding)})"
    )
    hint = "Connect the branch to the join, or to an end."
    return error("scope-leak", subject.at_edge(edge), message, hint=hint)


def _of_not_open(subject: Subject, finding: ScopeFinding) -> Problem:
    (node,) = finding.nodes
    config = subject.nodes[node].config
    opener = config.of if isinstance(config, JoinConfig) else ""
    message = f"{subject.node(node)} closes {opener!r}, which is not open where control arrives"
    hint = "Name a parallel around it, or remove `of` to close the innermost one."
    return error("join-of-not-open", subject.at_node(node, "config", "of"), message, hint=hint)


def _several_joins(subject: Subject, finding: ScopeFinding) -> Problem:
    node, opener, *joins = finding.nodes
    message = f"{subject.node(opener)} is closed by several joins: {subject.listed(joins)}"
    hint = "Connect all its branches to one join; a branch may also end by itself."
    return error("several-joins", subject.at_node(node), message, hint=hint)


def _too_nested(subject: Subject, finding: ScopeFinding) -> Problem:
    message = f"{subject.node(finding.nodes[0])} is inside {SCOPE_DEPTH_MAX} open parallels"
    return error("too-nested", subject.at_node(finding.nodes[0]), message, hint="Close parallels with joins.")


def _body_ambiguous(subject: Subject, finding: ScopeFinding) -> Problem:
    node, *_ = finding.nodes
    if finding.edges:
        message = f"{subject.listed(finding.nodes[1:])} is inside the body of {subject.node(node)} and behind its exit"
        hint = "Connect the exit to another node, or mark the edges of the body with `mark: body`."
        return error("loop-body-ambiguous", subject.at_edge(finding.edges[0]), message, hint=hint)
    message = f"{subject.node(node)} has no body: none of its edges returns to it"
    hint = "Connect the last step of the round to the loop."
    edge_numbers = [edge_number for edge_number in subject.graph.out[node] if edge_number < len(subject.workflow.edges)]
    last = _last_of_chain(subject, node, edge_numbers[0]) if len(edge_numbers) > 1 else None
    back: JsonObject | None = (
        None if last is None else {"source": subject.graph.ids[last], "target": subject.nodes[node].id}
    )
    fix = None if back is None else add_at("/edges/-", back)
    return error("loop-body-ambiguous", subject.at_node(node), message, hint=hint, fix=fix)


def _last_of_chain(subject: Subject, loop: int, edge_number: int) -> int | None:
    """Return the node where a plain chain after this edge stops without an end: there the edge back is missing."""
    node, seen = subject.graph.edges[edge_number].target, {loop}
    while node >= 0 and node not in seen:
        seen.add(node)
        edge_numbers = subject.graph.out[node]
        if not edge_numbers:
            return None if subject.nodes[node].type == "end" else node
        if len(edge_numbers) > 1:
            return None
        node = next(iter(subject.graph.links.targets(node)), -1)
    return None


def _never_returns(subject: Subject, finding: ScopeFinding) -> Problem:
    node, target = finding.nodes
    message = f"the body of {subject.node(node)} begins at {subject.node(target)}, but no path leads back to the loop"
    hint = "Connect the last step of the round to the loop."
    return error("loop-never-returns", subject.at_edge(finding.edges[0]), message, hint=hint)


def _sideways(subject: Subject, finding: ScopeFinding) -> Problem:
    loop, node, source = finding.nodes
    where = f"the body of {subject.node(loop)}"
    message = f"{subject.node(source)} leads into {where} (to {subject.node(node)}) past the loop"
    hint = "The loop counts the rounds: connect the edge to it."
    return warning("loop-entered-sideways", subject.at_edge(finding.edges[0]), message, hint=hint)


def _too_complex(subject: Subject, finding: ScopeFinding) -> Problem:
    message = "the loops overlap, so that their bodies cannot be distinguished"
    hint = "Move a loop into a sub-workflow."
    return error("loops-too-complex", subject.at_node(finding.nodes[0]), message, hint=hint)


_WORDS: Final[dict[str, Callable[[Subject, ScopeFinding], Problem]]] = {
    "scope-mismatch": _mismatch,
    "scope-leak": _leak,
    "join-of-not-open": _of_not_open,
    "several-joins": _several_joins,
    "too-nested": _too_nested,
    "loop-body-ambiguous": _body_ambiguous,
    "loop-never-returns": _never_returns,
    "loop-entered-sideways": _sideways,
    "loops-too-complex": _too_complex,
}


def _parallel(subject: Subject, position: int) -> Iterator[Problem]:
    if not subject.graph.forks[position].starts:
        message = f"{subject.node(position)} has no branches"
        hint = "Name nodes in `branches`, or add edges to them."
        yield error("parallel-without-branches", subject.at_node(position), message, hint=hint)
    elif subject.reached(position) and position not in subject.graph.join_of:
        message = f"{subject.node(position)} has no join: each of its branches ends separately"
        hint = "Add a join to continue with all results."
        yield note("parallel-without-join", subject.at_node(position), message, hint=hint)


def _join(subject: Subject, position: int, config: JoinConfig) -> Iterator[Problem]:
    graph = subject.graph
    if config.wait is None or config.wait.kind != "count" or not subject.reached(position):
        return
    openers = [subject.nodes[opener].config for opener in graph.closes.get(position, ())]
    if any(isinstance(opener, ParallelConfig) and opener.items is not None for opener in openers):
        return
    branches = 1
    for opener in graph.closes.get(position, ()):
        branches *= len(graph.forks[opener].starts)
    expected = branches if openers else len(graph.into[position])
    if config.wait.number > expected:
        message = f"{subject.node(position)} waits for {config.wait.number:g} of {expected} branches"
        hint = "It starts when all branches are settled. Lower the number, or wait for `all`."
        yield warning("join-wait-unmet", subject.at_node(position, "config", "wait"), message, hint=hint)


def _loop(subject: Subject, position: int, config: LoopConfig) -> Iterator[Problem]:
    bound = (config.while_, config.until, config.max_iterations, config.over)
    shape = subject.graph.loops.get(position)
    if any(one is not None for one in bound) or shape is None or not subject.reached(position):
        return
    leaves = any(
        target not in shape.body and target != position
        for node in shape.body
        for target in subject.graph.links.targets(node)
    )
    if not leaves:
        message = f"{subject.node(position)} has no condition or limit that ends it"
        hint = "Set `while`, `until`, `over` or `maxIterations`."
        yield error("loop-without-bound", subject.at_node(position), message, hint=hint)
