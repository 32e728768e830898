"""The reference page matches the code: its examples run, and its functions, bounds and codes are those of the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pointsman.expressions import failures
from pointsman.expressions.compiler import compile_expression
from pointsman.expressions.environment import ROOTS, Environment
from pointsman.expressions.functions import FUNCTIONS, SPECIAL

PAGE = (Path(__file__).parents[2] / "docs/reference/expressions.md").read_text(encoding="utf-8")
STATE = json.loads(re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)[0])
EXAMPLES = [line.split("→") for line in re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)[0].splitlines()]


@pytest.mark.parametrize(("source", "expected"), EXAMPLES)
def test_examples_of_the_expression_reference_are_true(source: str, expected: str) -> None:
    value = compile_expression(source.strip()).evaluate(Environment(STATE))
    assert json.dumps(value) == json.dumps(json.loads(expected))


def test_the_reference_names_every_function_and_reserved_name() -> None:
    words = set(re.findall(r"\w+", PAGE))
    assert {*FUNCTIONS, *SPECIAL, *ROOTS} - words == set()


@pytest.mark.parametrize(
    "bound",
    [failures.SOURCE_CHARS_MAX, failures.TOKENS_MAX, failures.DEPTH_MAX, failures.VISITS_MAX, failures.INTEGER_BITS_MAX,
     failures.TEXT_CHARS_MAX, failures.RESULT_NODES_MAX, failures.RESULT_CHARS_MAX, failures.JSONPATH_VISITS_MAX],
)  # fmt: skip
def test_the_reference_states_every_bound(bound: int) -> None:
    assert f"{bound:,}".replace(",", " ") in PAGE


def test_the_codes_of_the_reference_exist() -> None:
    classes = [*failures.ExpressionError.__subclasses__(), *failures.ExpressionFailed.__subclasses__()]
    codes = {error.code for error in classes}
    named = set(re.findall(r"`((?:expression|jsonpath|missing|no)-[a-z-]+)`", PAGE))
    assert named <= codes | {"no-item"}
    assert len(codes) == len(classes)
