"""`template-render`: renders a template over named data, without a model."""

from __future__ import annotations

from pointsman.definition.model.work import TemplateRenderConfig
from pointsman.engine.actions import TransformAction
from pointsman.engine.compile.formulas import FormulaCompiler
from pointsman.expressions.environment import Environment
from pointsman.values import Json


def render_of(config: TemplateRenderConfig, formulas: FormulaCompiler) -> TransformAction:
    """Return the action of a `template-render` node; the result of the step is the rendered text."""
    bound = formulas.mapping(config.bind)
    page = formulas.inside(*(config.bind or {})).rendered(config.template)

    def select(env: Environment) -> Json:
        found = bound(env) if bound is not None else None
        if isinstance(found, dict):
            env.names = {**env.names, **found}
        return page(env)

    return TransformAction(steps=(), select=select, answers=True)
