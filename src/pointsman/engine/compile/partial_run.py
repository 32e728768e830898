"""Compile the plan of a partial run: the plan of the workflow plus checked mocks, targets and breakpoints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

from msgspec.structs import replace

from pointsman.definition.json_schema import JsonSchema
from pointsman.engine.actions import (
    DecisionAction,
    EndAction,
    HumanTaskAction,
    JoinAction,
    LoopAction,
    ParallelAction,
    StartAction,
    WorkAction,
)
from pointsman.engine.decide.exit_step import match
from pointsman.engine.decide.partial_run import branch_of, labels_of
from pointsman.engine.plan import PartialRun, Plan, PlanNode, in_full
from pointsman.errors import CallerError
from pointsman.values import Json, JsonObject

Unfit: TypeAlias = Literal[
    "no-such-node", "leads-nowhere", "schema-forbids", "only-leads", "not-alone", "never-reached", "never-over"
]
"""Reason why a mock or an option of a partial run is invalid, for clients that translate it."""


class PartialRunInvalid(CallerError):
    """A partial run names something that its workflow lacks or cannot run in this way. Nothing was started.

    `node` is the node concerned, `why` the reason.
    """

    code = "partial-run-invalid"

    def __init__(self, message: str, *, node: str, why: Unfit, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.node = node
        self.why = why


def check_mock(node: PlanNode, value: Json) -> None:
    """Check a mocked value against its node.

    Raises `PartialRunInvalid` for a branch or an answer that no edge takes, and for a value that an agent's output
    schema forbids.
    """
    match node.action:
        case DecisionAction():
            if not _leads_on(node, (branch := branch_of(value),)):
                raise _leads_nowhere(node, f"the branch {branch!r}")
        case HumanTaskAction():
            labels = labels_of(value)
            if not _leads_on(node, labels) and "reject" not in labels:
                raise _leads_nowhere(node, f"the answer {labels[0]!r}" if labels else "no answer")
        case WorkAction():
            schema = node.action.spec.config.get("outputSchema")
            if isinstance(schema, dict):
                _must_match(node, schema, value)
        case _:
            pass


def _leads_on(node: PlanNode, labels: tuple[str, ...]) -> bool:
    """Return whether an edge takes one of these labels, or may take it: conditions are evaluated only at run time.

    A node without edges accepts every label.
    """
    if not node.exits.edges or any(edge.kind in ("plain", "test", "default") for edge in node.exits.edges):
        return True
    if node.exits.mode == "label":
        return any(match(node, label) is not None for label in labels)
    return any(edge.label in labels for edge in node.exits.edges)


def _leads_nowhere(node: PlanNode, label: str) -> PartialRunInvalid:
    labels = [edge.label for edge in node.exits.edges if edge.label is not None]
    return PartialRunInvalid(
        f"{node.id!r} is pinned to {label}, but no edge accepts it",
        node=node.id,
        why="leads-nowhere",
        hint=f"Edges lead on for: {', '.join(dict.fromkeys(labels)) or 'none'}.",
    )


def _must_match(node: PlanNode, schema: dict[str, Json], value: Json) -> None:
    # `next` selects the agent's edge and is not part of the output schema.
    result = {key: part for key, part in value.items() if key != "next"} if isinstance(value, dict) else value
    wrong = next(iter(JsonSchema(schema).misfits(result, most=1)), None)
    if wrong is not None:
        place = "/".join(str(part) for part in wrong.path)
        raise PartialRunInvalid(
            f"{node.id!r} is pinned to a value that breaks its output schema: "
            f"{f'{place}: ' if place else ''}{wrong.message}",
            node=node.id,
            why="schema-forbids",
            hint="Correct the pinned value, or remove it.",
        )


__all__ = ["PartialRunInvalid", "partial_run_plan"]

_STEP: Final = re.compile(r"(?:.*/)?(?P<node>[^/~#]+)(?:~[^/#]*)?(?:#\d+)?")
"""The written form of a step id; the group is its node (`engine.steps`)."""


def partial_run_plan(plan: Plan, options: JsonObject) -> Plan:
    """Return the plan of a partial run. `options` is the option of its execution. Raises `PartialRunInvalid`."""
    alone = options.get("node")
    pinned = options.get("pinned")
    values, steps = _by_node_and_step(plan, pinned if isinstance(pinned, dict) else {})
    until = {_end_of(_known(plan, name, "a target of the run"), plan) for name in _names(options, "until")}
    if alone is not None:
        _must_stand_alone(_known(plan, str(alone), "run alone"))
        until = {str(alone)}
    leading: set[str] = set() if alone is not None else {before for node in until for before in _leading(plan, node)}
    if alone is None and until and plan.entry not in until | leading:
        raise PartialRunInvalid(
            f"control never reaches {', '.join(map(repr, sorted(until)))}",
            node=min(until),
            why="never-reached",
            hint="Name a node that control can reach from the entry.",
        )
    return replace(
        plan,
        partial_run=PartialRun(
            mocks=values,
            step_mocks=steps,
            until=frozenset(until),
            performed=frozenset(until | leading),
            breakpoints=frozenset(_known(plan, name, "a breakpoint").id for name in _names(options, "breakpoints")),
            alone=None if alone is None else str(alone),
            given=options.get("given"),
        ),
    )


def _names(options: JsonObject, key: str) -> Iterator[str]:
    names = options.get(key)
    return (str(name) for name in names) if isinstance(names, list) else iter(())


def _known(plan: Plan, name: str, what: str) -> PlanNode:
    node = plan.nodes.get(name)
    if node is None or node.hidden:
        names = ", ".join(node.id for node in plan.nodes.values() if not node.hidden)
        raise PartialRunInvalid(
            f"node {name!r} does not exist and cannot be {what}",
            node=name,
            why="no-such-node",
            hint=f"Nodes of the workflow: {names[:300]}.",
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
        check_mock(node, value)
        if of_step is None:
            values[name] = value
        else:
            steps[in_full(name)] = value
    return values, steps


def _must_be_pinned(node: PlanNode) -> None:
    if isinstance(node.action, ParallelAction | JoinAction | LoopAction | StartAction | EndAction):
        raise PartialRunInvalid(
            f"{node.id!r} is a {node.type}: it routes control and has no result of its own",
            node=node.id,
            why="only-leads",
            hint="Pin the nodes before it or inside it.",
        )


def _must_stand_alone(node: PlanNode) -> None:
    if isinstance(node.action, ParallelAction | JoinAction | LoopAction):
        raise PartialRunInvalid(
            f"{node.id!r} is a {node.type}: it cannot run without the nodes that it routes",
            node=node.id,
            why="not-alone",
            hint="Run up to this node instead, with the nodes before it pinned.",
        )


def _end_of(node: PlanNode, plan: Plan) -> str:
    """Return the node at which a node completes: for a parallel, its join."""
    if not isinstance(node.action, ParallelAction):
        return node.id
    if node.action.join is None or node.action.join not in plan.nodes:
        raise PartialRunInvalid(
            f"{node.id!r} has no join, so a run cannot stop after it",
            node=node.id,
            why="never-over",
            hint="Run up to the nodes behind it.",
        )
    return node.action.join


def _leading(plan: Plan, node: str) -> set[str]:
    """Return the nodes from which a node can be reached through bodies, joins, error handlers and tool executors."""
    into: dict[str, set[str]] = {}
    for plan_node in plan.nodes.values():
        plan_edges = [*plan_node.exits.edges, *plan_node.exits.catches]
        if plan_node.exits.tool_executor is not None:  # the tool executor returns to its caller
            plan_edges.append(plan_node.exits.tool_executor)
            into.setdefault(plan_node.id, set()).add(plan_node.exits.tool_executor.target)
        if isinstance(plan_node.action, ParallelAction):
            plan_edges += [*plan_node.action.starts, *plan_node.action.after]
            if plan_node.action.join is not None:
                into.setdefault(plan_node.action.join, set()).add(plan_node.id)
        for edge in plan_edges:
            into.setdefault(edge.target, set()).add(plan_node.id)
    reached: set[str] = set()
    waiting = [node]
    while waiting:
        fresh = into.get(waiting.pop(), set()) - reached
        reached |= fresh
        waiting += fresh
    return reached
