"""Compile the plan of a partial run: the plan of the workflow plus mocks, targets and breakpoints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from pointsman.engine.actions import EndAction, JoinAction, LoopAction, ParallelAction, StartAction
from pointsman.engine.compile.mocks import TrialUnfit, must_fit
from pointsman.engine.partial_run import PartialRun, in_full
from pointsman.engine.plan import Plan, PlanNode
from pointsman.values import JsonObject

__all__ = ["TrialUnfit", "tried"]

_STEP: Final = re.compile(r"(?:.*/)?(?P<node>[^/~#]+)(?:~[^/#]*)?(?:#\d+)?")
"""The written form of a step id; the group is its node (`engine.steps`)."""


def tried(plan: Plan, said: JsonObject) -> Plan:
    """Return the plan of a partial run. `said` is the option of its execution. Raises `TrialUnfit`."""
    alone = said.get("node")
    pinned = said.get("pinned")
    values, steps = _by_node_and_step(plan, pinned if isinstance(pinned, dict) else {})
    until = {_end_of(_known(plan, name, "run until"), plan) for name in _names(said, "until")}
    if alone is not None:
        _must_stand_alone(_known(plan, str(alone), "tried alone"))
        until = {str(alone)}
    leading: set[str] = set() if alone is not None else {before for node in until for before in _leading(plan, node)}
    if alone is None and until and plan.entry not in until | leading:
        raise TrialUnfit(
            f"control never comes to {', '.join(map(repr, sorted(until)))}",
            node=min(until),
            why="never-reached",
            hint="Name a node that the entry leads to.",
        )
    return replace(
        plan,
        partial_run=PartialRun(
            mocks=values,
            step_mocks=steps,
            until=frozenset(until),
            performed=frozenset(until | leading),
            breakpoints=frozenset(_known(plan, name, "stopped at").id for name in _names(said, "breakpoints")),
            alone=None if alone is None else str(alone),
            given=said.get("given"),
        ),
    )


def _names(said: JsonObject, key: str) -> Iterator[str]:
    found = said.get(key)
    return (str(one) for one in found) if isinstance(found, list) else iter(())


def _known(plan: Plan, name: str, what: str) -> PlanNode:
    node = plan.nodes.get(name)
    if node is None or node.hidden:
        known = ", ".join(one.id for one in plan.nodes.values() if not one.hidden)
        raise TrialUnfit(
            f"there is no node {name!r} to be {what}",
            node=name,
            why="no-such-node",
            hint=f"Nodes that run: {known[:300]}.",
        )
    return node


def _by_node_and_step(plan: Plan, pinned: JsonObject) -> tuple[JsonObject, JsonObject]:
    """Split mocks into those of whole nodes and those of single steps."""
    values: JsonObject = {}
    steps: JsonObject = {}
    for name, value in pinned.items():
        of_step = None if name in plan.nodes else _STEP.fullmatch(name)
        node = _known(plan, name if of_step is None else of_step["node"], "pinned")
        _must_be_pinned(node)
        must_fit(node, value)
        if of_step is None:
            values[name] = value
        else:
            steps[in_full(name)] = value
    return values, steps


def _must_be_pinned(node: PlanNode) -> None:
    if isinstance(node.action, ParallelAction | JoinAction | LoopAction | StartAction | EndAction):
        raise TrialUnfit(
            f"{node.id!r} is a {node.type}: it leads control and brings nothing of its own",
            node=node.id,
            why="only-leads",
            hint="Pin the nodes before it, or inside of it.",
        )


def _must_stand_alone(node: PlanNode) -> None:
    if isinstance(node.action, ParallelAction | JoinAction | LoopAction):
        raise TrialUnfit(
            f"{node.id!r} is a {node.type}: alone it has nothing to lead",
            node=node.id,
            why="not-alone",
            hint="Run until it instead, with the nodes before it pinned.",
        )


def _end_of(node: PlanNode, plan: Plan) -> str:
    """Return the node at which a node completes: for a parallel, its join."""
    if not isinstance(node.action, ParallelAction):
        return node.id
    if node.action.join is None or node.action.join not in plan.nodes:
        raise TrialUnfit(
            f"{node.id!r} has no join: nobody knows when it is over",
            node=node.id,
            why="never-over",
            hint="Run until the nodes behind it.",
        )
    return node.action.join


def _leading(plan: Plan, node: str) -> set[str]:
    """Return the nodes from which a node can be reached through bodies, joins, error handlers and tool executors."""
    into: dict[str, set[str]] = {}
    for one in plan.nodes.values():
        ways = [*one.exits.edges, *one.exits.catches]
        if one.exits.tool_executor is not None:  # the tool executor returns to its caller
            ways.append(one.exits.tool_executor)
            into.setdefault(one.id, set()).add(one.exits.tool_executor.target)
        if isinstance(one.action, ParallelAction):
            ways += [*one.action.starts, *one.action.after]
            if one.action.join is not None:
                into.setdefault(one.action.join, set()).add(one.id)
        for edge in ways:
            into.setdefault(edge.target, set()).add(one.id)
    found: set[str] = set()
    waiting = [node]
    while waiting:
        fresh = into.get(waiting.pop(), set()) - found
        found |= fresh
        waiting += fresh
    return found
