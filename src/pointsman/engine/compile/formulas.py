"""Formulas at one position of a workflow, compiled once: expressions, templates, parameter trees, paths, conditions.

A position determines the declared names and the template spelling of the dialect. Conditions of edges become closures;
questions for a model move into a hidden judge node behind the source node.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from msgspec.structs import replace

from pointsman.definition.graph.analysis import Graph
from pointsman.definition.graph.links import DANGLING, TO_END, EdgeRef, label_of, routing_of
from pointsman.definition.model.base import Text
from pointsman.definition.model.nodes import AskModel, Contains, Edge, Equals, Exists, OnError, When
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.naming_rules import names_at_large, spelling_of
from pointsman.engine.actions import ConstantValue, PlanEdge, Test, Value
from pointsman.engine.plan import OutputWrite
from pointsman.engine.steps import Reducer
from pointsman.expressions.compiler import compile_expression
from pointsman.expressions.environment import Environment, Names
from pointsman.expressions.name_resolution import PathRead
from pointsman.expressions.operators import equals, same_label
from pointsman.expressions.paths import Path, compile_path
from pointsman.expressions.templates import SecretText, compile_parameters, compile_template
from pointsman.values import END, Json, JsonObject

WHOLE: Final = frozenset({"result", "$.result", "$"})
"""Expressions that mean the whole result."""

Patterns = tuple[tuple[tuple[str, ...], Reducer], ...]


@dataclass(frozen=True, slots=True)
class FormulaCompiler:
    """A compiler of the texts at one position of one workflow."""

    names: Names
    spelling: Literal["single", "double"]
    language: str
    all_languages: bool
    """Whether texts for people are kept in every available language, so that each person reads their own."""
    reducers: Patterns
    sources: str = ""
    """The reference texts of the workflow, joined into one."""

    def inside(self, *as_names: str) -> FormulaCompiler:
        """Return a compiler for the same position with additional names."""
        return dataclasses.replace(
            self, names=dataclasses.replace(self.names, as_names=self.names.as_names | set(as_names))
        )

    def value(self, source: str) -> Value:
        """Compile an expression."""
        return compile_expression(source, names=self.names).evaluate

    def test(self, source: str) -> Test:
        """Compile a condition."""
        return compile_expression(source, names=self.names).holds

    def reads(self, source: str) -> tuple[PathRead, ...]:
        """Return the paths that an expression reads."""
        return compile_expression(source, names=self.names).reads

    def text(self, source: Text | str) -> Value:
        """Compile a template; a template that is exactly one path keeps the type of its value."""
        raw = source.in_(self.language) if isinstance(source, Text) else source
        template = compile_template(raw, names=self.names, spelling=self.spelling)
        if template.fixed:
            return lambda env: raw if "\\" not in raw else template.render(env).text
        return lambda env: template.value(env, missing=env.missing)

    def rendered(self, source: Text | str) -> Value:
        """Compile a template whose result is always a string."""
        raw = source.in_(self.language) if isinstance(source, Text) else source
        template = compile_template(raw, names=self.names, spelling=self.spelling)

        def render(env: Environment) -> Json:
            text = template.render(env)
            if env.missing is not None:
                env.missing.extend(text.missing)
            return text.text

        return render

    def rendered_in_all(self, source: Text | None) -> Mapping[str, Value]:
        """Compile a template for each language; empty if the text has one language or only one is wanted."""
        texts = self.texts(source)
        return {language: self.rendered(text) for language, text in texts.items()}

    def texts(self, source: Text | None) -> Mapping[str, str]:
        """Return a text by language; empty if it has one language or only one is wanted."""
        if source is None or not self.all_languages or len(source.languages()) < 2:
            return {}
        return source.languages()

    def tree(self, source: Json) -> Value:
        """Compile a JSON tree whose strings are templates."""
        parameters = compile_parameters(source, names=self.names, spelling=self.spelling)
        if parameters.fixed:
            return ConstantValue(source)
        return lambda env: parameters.evaluate(env, missing=env.missing)

    def secrets(self, source: Json) -> tuple[SecretText, ...]:
        """Return the positions of secrets in a JSON tree."""
        return compile_parameters(source, names=self.names, spelling=self.spelling).secrets

    def path(self, source: str) -> Path:
        """Compile a write target."""
        return compile_path(source, names=self.names)

    def mapping(self, source: Mapping[str, str] | None) -> Value | None:
        """Compile a map from name to expression; its value is one object."""
        if not source:
            return None
        parts = [(name, self.value(text)) for name, text in source.items()]

        def gather(env: Environment) -> Json:
            values: JsonObject = {}
            for name, value in parts:
                values[name] = value(env)
            return values

        return gather

    def output(self, source: Mapping[str, str] | str | None) -> Value | None:
        """Compile a map from name to expression, or a single expression."""
        return self.value(source) if isinstance(source, str) else self.mapping(source)

    def outputs(self, source: Mapping[str, str] | None) -> tuple[OutputWrite, ...]:
        """Compile a map from state path to expression over `result`; each write has the reducer of its path."""
        return tuple(self.write(path, value) for path, value in (source or {}).items())

    def write(self, target: str, source: str) -> OutputWrite:
        """Compile one write."""
        path = self.path(target)
        return OutputWrite(
            path=path,
            value=self.value(source),
            reduce=self.reducer(path),
            whole=source.strip() in WHOLE,
        )

    def reducer(self, path: Path) -> Reducer:
        """Return the reducer of the longest pattern that matches a path; `*` matches any one key."""
        parts = path.segments
        for pattern, reduce in self.reducers:
            if len(pattern) == len(parts) and all(p in ("*", part) for p, part in zip(pattern, parts, strict=True)):
                return reduce
        return "set"


def formulas_of(workflow: WorkflowDefinition, language: str, *, all_languages: bool = True) -> FormulaCompiler:
    """Return the compiler of texts outside any node."""
    patterns: list[tuple[tuple[str, ...], Reducer]] = [(("messages",), "append")]
    for pattern, field in (workflow.state or {}).items():
        if field.reduce is not None:
            patterns.append((tuple(pattern.split(".")), field.reduce))
    return FormulaCompiler(
        names=names_at_large(workflow),
        sources="\n\n".join(workflow.sources or ()),
        spelling=spelling_of(workflow),
        language=language,
        all_languages=all_languages,
        reducers=tuple(sorted(patterns, key=lambda p: (-len(p[0]), p[0].count("*")))),
    )


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
            value_of = formulas.value(field)
            return replace(plain, kind="test", test=_exists(value_of))
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
    value_of = formulas.value(field)
    if field.rstrip().endswith((".branch", ".action", ".response")):
        return lambda env: same_label(value_of(env), value)
    return lambda env: equals(value_of(env), value)


def _exists(value_of: Value) -> Test:
    return lambda env: value_of(env) is not None


def _contains(field: str, value: Json, formulas: FormulaCompiler) -> Test:
    value_of = formulas.value(field)

    def holds(env: Environment) -> bool:
        container = value_of(env)
        if isinstance(container, str):
            return isinstance(value, str) and value in container
        if isinstance(container, dict):
            return isinstance(value, str) and value in container
        return isinstance(container, list) and any(equals(item, value) for item in container)

    return holds


def _judged(judge: str, edge: str) -> Test:
    def holds(env: Environment) -> bool:
        answers = env.nodes.get(judge)
        answer = answers.get(edge) if isinstance(answers, dict) else None
        return isinstance(answer, dict) and answer.get("answer") is True

    return holds
