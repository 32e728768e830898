"""Edges: conditions as closures. Questions for a model move into a hidden judge node behind the source node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from pointsman.definition.graph.analysis import Graph
from pointsman.definition.graph.links import DANGLING, TO_END, EdgeRef, label_of, routing_of
from pointsman.definition.model.edges import AskModel, Contains, Edge, Equals, Exists, OnError, When
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.actions import PlanEdge, Test, Value
from pointsman.engine.compile.formulas import FormulaCompiler
from pointsman.expressions.environment import Environment
from pointsman.expressions.formula import compile_expression
from pointsman.expressions.label_equality import equals, same_label
from pointsman.values import END, Json

JUDGE: Final = "?"
"""Suffix of a hidden judge's id; the rest is the id of the node whose edges it evaluates."""


@dataclass(frozen=True, slots=True)
class EdgeQuestion:
    """The question that a model answers for an edge."""

    edge: str
    prompt: Value
    model: str | None = None


def judge_of(node: str) -> str:
    """Return the id of the hidden judge that answers the questions on a node's edges."""
    return node + JUDGE


def plan_edge(workflow: WorkflowDefinition, graph: Graph, ref: EdgeRef, formulas: FormulaCompiler) -> PlanEdge | None:
    """Compile one edge; None if it has no target, or if it only models the engine's return to a caller."""
    if ref.target == DANGLING or ref.source < 0 or ref.kind == "never" or ref.implied == "caller":
        return None
    target = END if ref.target == TO_END else graph.ids[ref.target]
    plain = PlanEdge(id=ref.id, index=ref.number, source=graph.ids[ref.source], target=target)
    if ref.implied == "timeout":
        return replace(plain, kind="label", label=timeout_label(target))
    if ref.implied == "handoff":
        return replace(plain, kind="label", label=target)
    if ref.implied or ref.number >= len(workflow.edges):
        return plain
    return _conditioned(plain, workflow.edges[ref.number], graph, ref, formulas)


def timeout_label(node: str) -> str:
    """Return the label by which a gate leaves to the node of its `onTimeout`."""
    return f"timeout:{node}"


def _conditioned(plain: PlanEdge, edge: Edge, graph: Graph, ref: EdgeRef, formulas: FormulaCompiler) -> PlanEdge:
    label = label_of(edge, routing_of(graph.links.nodes[ref.source]))
    if label is not None:
        return replace(plain, kind="label", label=label)
    condition = edge.condition
    match condition:
        case When(expression=source):
            formula = compile_expression(source, names=formulas.names)
            reads = any(
                read.root == "next" or (read.root == "state" and read.path[:1] == ("next",)) for read in formula.reads
            )
            return replace(plain, kind="test", test=formula.holds, reads_next=reads)
        case Equals(field=field, value=value):
            return replace(plain, kind="test", test=_equals(field, value, formulas))
        case Contains(field=field, value=value):
            return replace(plain, kind="test", test=_contains(field, value, formulas))
        case Exists(field=field):
            found = formulas.value(field)
            return replace(plain, kind="test", test=_exists(found))
        case AskModel():
            return replace(plain, kind="test", test=_judged(judge_of(plain.source), plain.id))
        case OnError(codes=codes):
            return replace(plain, kind="error", codes=frozenset(codes or ()))
        case _:
            return replace(plain, kind="default") if ref.kind == "default" else plain


def question_of(edge: Edge, ref: EdgeRef, formulas: FormulaCompiler) -> EdgeQuestion | None:
    """Return the question on an edge, or None if no model decides it."""
    if not isinstance(edge.condition, AskModel):
        return None
    return EdgeQuestion(ref.id, formulas.rendered(edge.condition.prompt), edge.condition.model)


def _equals(field: str, value: Json, formulas: FormulaCompiler) -> Test:
    found = formulas.value(field)
    if field.rstrip().endswith((".branch", ".action", ".response")):
        return lambda env: same_label(found(env), value)
    return lambda env: equals(found(env), value)


def _exists(found: Value) -> Test:
    return lambda env: found(env) is not None


def _contains(field: str, value: Json, formulas: FormulaCompiler) -> Test:
    found = formulas.value(field)

    def holds(env: Environment) -> bool:
        held = found(env)
        if isinstance(held, str):
            return isinstance(value, str) and value in held
        if isinstance(held, dict):
            return isinstance(value, str) and value in held
        return isinstance(held, list) and any(equals(one, value) for one in held)

    return holds


def _judged(judge: str, edge: str) -> Test:
    def holds(env: Environment) -> bool:
        answers = env.nodes.get(judge)
        answer = answers.get(edge) if isinstance(answers, dict) else None
        return isinstance(answer, dict) and answer.get("answer") is True

    return holds
