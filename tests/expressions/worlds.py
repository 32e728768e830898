"""Short ways to evaluate expressions, and generators of expressions, for the tests."""

from __future__ import annotations

from typing import NamedTuple, TypedDict, Unpack

from hypothesis import strategies as st

from pointsman.expressions.compiler import compile_expression
from pointsman.expressions.environment import Environment
from pointsman.values import Json


class OtherParts(TypedDict, total=False):
    """Other parts of an environment."""

    nodes: dict[str, Json]
    names: dict[str, Json]
    config: dict[str, Json]
    item_key: str


def value(source: str, state: dict[str, Json] | None = None, **rest: Unpack[OtherParts]) -> Json:
    """Return the value of an expression on a state."""
    return compile_expression(source).evaluate(Environment(state or {}, **rest))


def holds(source: str, state: dict[str, Json] | None = None) -> bool:
    return compile_expression(source).holds(Environment(state or {}))


STATE: dict[str, Json] = {"a": 3, "b": -2.5, "s": "abc", "t": "", "p": True, "q": False, "n": None, "xs": [1, 2, 3, 5]}
"""The state for generated expressions."""


Texts = st.SearchStrategy[str]
DEPTH = 4


class Kinds(NamedTuple):
    """Generators of expressions of one depth, by the type of their value."""

    number: Texts
    text: Texts
    truth: Texts
    list: Texts


def binary(operand: Texts, *signs: str) -> Texts:
    return st.tuples(operand, st.sampled_from(signs), operand).map(lambda x: f"({x[0]} {x[1]} {x[2]})")


def formed(form: str, *operands: Texts) -> Texts:
    return st.tuples(*operands).map(lambda x: form.format(*x))


def python_expressions(depth: int = DEPTH) -> Kinds:
    """Return expressions in Python's notation that Python evaluates in the same way."""
    if depth == 0:
        numbers = st.integers(0, 40).map(str) | st.sampled_from(["a", "b", "0.25", "1.5e2"])
        texts = st.sampled_from(["s", "t", "'a'", '"bc"', "'it\\'s'", '"\\n\\u00e9"'])
        return Kinds(numbers, texts, st.sampled_from(["True", "False", "p", "q", "(n is None)"]), st.just("xs"))
    number, text, truth, rows = python_expressions(depth - 1)
    order = ("<", "<=", ">", ">=", "==", "!=")
    bound = st.integers(-4, 4).map(str)
    numbers = st.one_of(
        number,
        binary(number, "+", "-", "*", "and", "or"),
        formed("({} {} {})", number, st.sampled_from(["/", "//", "%"]), st.sampled_from(["2", "3", "-4", "0.5"])),
        formed("(-{})", number),
        formed("len({})", text | rows),
        formed("({} if {} else {})", number, truth, number),
    )
    texts = st.one_of(
        text,
        binary(text, "+"),
        formed("{}[{}:{}]", text, bound, bound),
        formed("({} if {} else {})", text, truth, text),
    )
    truths = st.one_of(
        truth,
        binary(number, *order),
        binary(text, *order, "in", "not in"),
        binary(rows, "==", "!="),
        formed("({} == {})", number, text),
        binary(truth, "and", "or"),
        formed("(not {})", truth),
        formed("({} in {})", number, rows),
        formed("({} < {} <= {})", number, number, number),
        formed("any(x > {} for x in {})", number, rows),
        formed("all([x > 2 or {} for x in {}])", truth, rows),
        st.sampled_from(["(s is not None)", "(n is not None)"]),
    )
    lists = st.one_of(
        rows,
        st.lists(number, max_size=3).map(lambda x: f"[{', '.join(x)}]"),
        formed("[x * 2 for x in {} if x > {}]", rows, number),
        binary(rows, "+"),
        formed("{}[{}:]", rows, bound),
    )
    return Kinds(numbers, texts, truths, lists)


def javascript_expressions(depth: int = DEPTH) -> Kinds:
    """Return expressions in JavaScript's notation that JavaScript evaluates in the same way."""
    if depth == 0:
        numbers = st.integers(0, 40).map(str) | st.sampled_from(["a", "b", "0.25", "1.5e2"])
        texts = st.sampled_from(["s", "t", "'a'", '"bc"', "'it\\'s'", '"\\n\\u00e9"'])
        return Kinds(
            numbers, texts, st.sampled_from(["true", "false", "p", "q", "(n?.m?.k === undefined)"]), st.just("xs")
        )
    number, text, truth, rows = javascript_expressions(depth - 1)
    order = ("<", "<=", ">", ">=", "===", "!==")
    numbers = st.one_of(
        number,
        binary(number, "+", "-", "*", "&&", "||"),
        formed("({} / {})", number, st.sampled_from(["2", "3", "-4", "0.5"])),
        formed("(-{})", number),
        formed("{}.length", text | rows),
        formed("({} ? {} : {})", truth, number, number),
        formed("(n ?? {})", number),
    )
    texts = st.one_of(text, binary(text, "+"), formed("({} ? {} : {})", truth, text, text), formed("({} ?? 'z')", text))
    truths = st.one_of(
        truth,
        binary(number, *order),
        binary(text, *order),
        formed("({} === {})", number, text),
        binary(truth, "&&", "||"),
        formed("(!{})", truth),
        formed("{}.includes({})", text, text),
        formed("{}.includes({})", rows, number),
        formed("{}.startsWith({})", text, text),
        formed("{}.some(x => x > {})", rows, number),
        formed("{}.every(x => x > 2 || {})", rows, truth),
    )
    lists = st.one_of(
        rows,
        st.lists(number, max_size=3).map(lambda x: f"[{', '.join(x)}]"),
        formed("{}.filter(x => x > {}).map(x => x * 2)", rows, number),
        formed("({} ? {} : {})", truth, rows, rows),
    )
    return Kinds(numbers, texts, truths, lists)
