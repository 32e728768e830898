"""Guardrails of agents: prompts, and expressions over the data, are evaluated when the step starts.

A rule that needs the agent's answer is evaluated by the executor, with the data that its expression reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pointsman.definition.model.agents import AgentConfig, Guardrail
from pointsman.engine.actions import Value
from pointsman.engine.compile.composed_work import seen_by
from pointsman.engine.compile.formulas import FormulaCompiler
from pointsman.expressions.environment import Environment
from pointsman.expressions.formula import compile_expression
from pointsman.values import Json

OF_ANSWERS: frozenset[str] = frozenset({"text", "result"})
"""Names that have a value only after the agent has answered."""

Known: TypeAlias = Callable[[Environment], Json]


def guardrails_of(config: AgentConfig, formulas: FormulaCompiler) -> Value | None:
    """Return `{before: […], after: […], asNames, state, nodes, names, config}`, with one entry per rule in its list.

    An entry is the result of an expression (`before` only), the rendered prompt of a question, or null.
    """
    said = config.guardrails
    if said is None:
        return None
    of_answers = formulas.inside("text")
    before = [_known(rule, formulas, at_once=True) for rule in said.before or ()]
    after = [_known(rule, formulas, at_once=False) for rule in said.after or ()]
    reads = [
        read
        for rule in said.after or ()
        if rule.expression is not None
        for read in compile_expression(rule.expression, names=of_answers.names).reads
        if read.root not in OF_ANSWERS
    ]
    as_names: list[Json] = [*sorted(of_answers.names.as_names)]

    def resolve(env: Environment) -> Json:
        return {
            "before": [one(env) for one in before],
            "after": [one(env) for one in after],
            "asNames": as_names,
            **seen_by(reads, env),
        }

    return resolve


def _known(rule: Guardrail, formulas: FormulaCompiler, *, at_once: bool) -> Known:
    if rule.prompt is not None:
        return formulas.rendered(rule.prompt)
    if rule.expression is not None and at_once:
        return formulas.test(rule.expression)
    return lambda env: None
