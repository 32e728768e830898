"""Comparison with two other languages: generated expressions have the same value in CPython and in Node."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointsman.expressions.compiler import compile_expression
from pointsman.expressions.environment import Environment
from pointsman.expressions.failures import ExpressionTooDeep, ExpressionTooLong, TooManyTokens
from pointsman.values import Json
from tests.expressions.worlds import STATE, javascript_expressions, python_expressions

PYTHON, JAVASCRIPT = st.one_of(python_expressions()), st.one_of(javascript_expressions())
BUILTINS = {"len": len, "any": any, "all": all}
NODE = shutil.which("node")
PROGRAM = """
const [state, sources] = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const names = Object.keys(state), values = Object.values(state);
console.log(JSON.stringify(sources.map(s => new Function(...names, 'return [' + s + ']')(...values)[0])));
"""


def ours(source: str) -> tuple[bool, Json]:
    """Return whether it is within the bounds, and its value."""
    try:
        return True, compile_expression(source).evaluate(Environment(STATE))
    except (ExpressionTooDeep, ExpressionTooLong, TooManyTokens):
        return False, None


@pytest.mark.requirement("S3-56", "S3-62", "X-4")
@settings(max_examples=400)
@given(PYTHON)
def test_results_equal_those_of_python(source: str) -> None:
    scope = {"__builtins__": BUILTINS, **STATE}
    expected: object = eval(source, scope)  # noqa: S307 - the oracle; the text comes from the generator
    within, value = ours(source)
    if within:
        assert value == expected
        assert isinstance(value, bool) == isinstance(expected, bool)


@pytest.mark.integration
@pytest.mark.requirement("S1-O12", "X-4")
@pytest.mark.skipif(NODE is None, reason="node is not installed: it is the oracle of this test")
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.large_base_example])
@given(st.lists(JAVASCRIPT, min_size=8, max_size=16))
def test_results_equal_those_of_javascript(sources: list[str]) -> None:
    asked = json.dumps([STATE, sources])
    done = subprocess.run([str(NODE), "-e", PROGRAM], input=asked, capture_output=True, text=True, check=True)
    for source, expected in zip(sources, cast("list[Json]", json.loads(done.stdout)), strict=True):
        within, value = ours(source)
        if within:
            assert value == pytest.approx(expected) if isinstance(expected, float) else value == expected, source


@pytest.mark.requirement("X-4")
@pytest.mark.parametrize(
    ("python", "javascript", "value"),
    [
        ('a == "x" and b is not None', "$.a === 'x' && b !== null", True),
        ("1 if p else 2", "p ? 1 : 2", 2),
        ("state.a or None", "$.data.a || undefined", "x"),
        ("len(xs) > 0", "length($.xs) > 0", True),
        ("starts_with(s, 'a')", 'startsWith(s, "a")', True),
        ("nodeOutputs.x['k k']", '$.nodes.x["k k"]', 7),
        ("(p or b) and c", "(p || b) && (c)", 3),
    ],
)
def test_equivalent_spellings_have_the_same_value(python: str, javascript: str, value: Json) -> None:
    data: dict[str, Json] = {"a": "x", "b": 1, "c": 3, "p": False, "xs": [1], "s": "ab"}
    env = Environment(data, nodes={"x": {"k k": 7}})
    assert compile_expression(python).evaluate(env) == value
    assert compile_expression(javascript).evaluate(env) == value
