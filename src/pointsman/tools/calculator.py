"""Built-in tool for arithmetic. It uses the expression language of conditions, with its limits, and not Python."""

from __future__ import annotations

from pointsman.engine.failures import Failure
from pointsman.errors import AuthorError
from pointsman.expressions.environment import Environment
from pointsman.expressions.formula import compile_expression
from pointsman.tools.failures import ToolFailed
from pointsman.tools.functions import tool
from pointsman.values import Json


@tool(idempotent=True)
async def calculator(expression: str) -> Json:
    """Work out an arithmetic expression, such as `(3 + 4) * 2.5`, `round(10 / 3, 2)` or `max([1, 7, 3])`."""
    try:
        return compile_expression(expression).evaluate(Environment(state={}))
    except AuthorError as why:
        raise ToolFailed(Failure(code="tool-arguments", message=str(why), hint=why.hint)) from why
