"""No expression reaches the host, and every expression is bounded."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointsman.expressions.compiler import compile_expression
from pointsman.expressions.environment import Environment
from pointsman.expressions.failures import (
    BadPattern,
    DataTooDeep,
    ExpressionError,
    ExpressionFailed,
    ExpressionTooDeep,
    ExpressionTooLong,
    NumberOutOfRange,
    NumberTooLarge,
    ResultTooLarge,
    TextTooLong,
    TooManyTokens,
    TooManyVisits,
)
from pointsman.expressions.templates import compile_template
from pointsman.values import Json
from tests.expressions.worlds import STATE, value

STATE_OF_ANY: dict[str, Json] = {"x": {"a": 1}, "text": "t", "xs": list(range(2_000)), "n": 1, "o": {}}


@pytest.mark.requirement("S3-61")
@pytest.mark.parametrize(
    "source",
    [
        "__import__('os').system('id')",
        "(1).__class__.__bases__[0].__subclasses__()",
        "open('/etc/passwd').read()",
        "eval('1')",
        "exec('1')",
        "getattr(x, 'a')",
        "globals()",
        "x.constructor.constructor('return process')()",
        "lambda: 1",
        "x := 1",
        "import os",
        "x.a = 2",
        "x.pop('a')",
        "text.format(x)",
        "f'{x}'",
        "`${x}`",
        "[].__class__()",
        "x.items()",
        "new Date()",
        "function(){}",
        "1; 2",
        "$(id)",
        "x.a++",
        "text % x.a; drop",
    ],
)
def test_code_of_the_host_language_is_refused(source: str) -> None:
    with pytest.raises(ExpressionError):
        compile_expression(source)


@pytest.mark.requirement("S3-61", "T4-3")
@pytest.mark.parametrize(
    "path",
    ["__class__", "text.__class__", "x.__dict__", "n.real", "xs.append", "o.__proto__", "x.keys", "text.upper",
     "state.__init__.__globals__", "xs.__len__", "nodes.__class__", "config.__class__", "x.constructor"],
)  # fmt: skip
def test_attributes_of_python_objects_are_missing_keys(path: str) -> None:
    env = Environment(STATE_OF_ANY)
    assert compile_expression(path).evaluate(env) is None
    assert compile_expression(f"exists({path})").evaluate(env) is False
    assert compile_template(f"<{{{path}?}}>").render(env).text == "<>"


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("1" + " " * 4_096, ExpressionTooLong),
        ("+".join("1" * 257), TooManyTokens),
        ("(" * 33 + "1" + ")" * 33, ExpressionTooDeep),
        ("!" * 40 + "true", ExpressionTooDeep),
        ("-" * 40 + "n", ExpressionTooDeep),
        ("not " * 40 + "n", ExpressionTooDeep),
        ("[" * 40, ExpressionTooDeep),
        ("len(" * 40, ExpressionTooDeep),
        ("a ? " * 40, ExpressionTooDeep),
        ("{a:" * 40, ExpressionTooDeep),
        ("xs[" * 40, ExpressionTooDeep),
        ("xs" + ".sort()" * 40, ExpressionTooDeep),
        ("9" * 100, NumberTooLarge),
        ("1e999", NumberTooLarge),
        ("matches(text, '(')", BadPattern),
        ("matches(text, '(a)\\\\1')", BadPattern),
    ],
)
def test_an_oversized_text_is_refused_with_its_own_code(source: str, error: type[ExpressionError]) -> None:
    with pytest.raises(error):
        compile_expression(source)


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("map(xs, x => map(xs, y => 1))", TooManyVisits),
        ("all(x == xs for x in map(xs, y => xs))", TooManyVisits),
        ("any(-1 in xs for x in xs)", TooManyVisits),
        ("count(xs, x => (xs + xs).length > 0) > 0", TooManyVisits),
        ("count(xs, x => xs[0:].length)", TooManyVisits),
        ("map(xs, x => str(xs))", TooManyVisits),
        ("sum(map(xs, x => xs).*.*)", TooManyVisits),
        ("any(xs, x => 'z' in big)", TooManyVisits),
        ("map(xs, x => lines(xs))", TooManyVisits),
        ("map(xs, x => json(xs))", TooManyVisits),
        ("map(xs, x => len(json(big)))", TooManyVisits),
        ("map(xs, x => len(upper(big)))", TooManyVisits),
        ("map(xs, x => len(title(big)))", TooManyVisits),
        ("map(xs, x => len(trim(big)))", TooManyVisits),
        ("map(xs, x => len(reverse(big)))", TooManyVisits),
        ("map(xs, x => len(replace(big, 'a', 'b')))", TooManyVisits),
        ("map(xs, x => len(truncate(big, 399999)))", TooManyVisits),
        ("map(xs, x => len(big + 'a'))", TooManyVisits),
        ("any(xs, x => matches(big, '(a+)+b$'))", TooManyVisits),
        ("big + big + big", TextTooLong),
        ("join(map(xs, x => big), '')", TextTooLong),
        ("upper(bigger)", TextTooLong),
        ("huge * huge * huge", NumberOutOfRange),
        ("1e308 * 10", NumberOutOfRange),
        ("huge / 0.0000000000001 * 1e300 * 1e300", NumberOutOfRange),
        ("map(xs, x => wide)", ResultTooLarge),
        ("map(xs, x => big)", ResultTooLarge),
        ("deep == other", DataTooDeep),
        ("str(deep)", DataTooDeep),
        ("unique([deep])", DataTooDeep),
    ],
)
def test_an_unbounded_evaluation_is_stopped_with_its_own_code(source: str, error: type[ExpressionFailed]) -> None:
    state: dict[str, Json] = {
        **STATE_OF_ANY,
        "big": "a" * 400_000,
        "bigger": "a" * 1_000_001,
        "huge": 2**120,
        "wide": list(range(40)),
        "deep": nested(5_000),
        "other": nested(5_000),
    }
    before = time.thread_time()
    with pytest.raises(error):
        value(source, state)
    assert time.thread_time() - before < 1


def nested(depth: int) -> Json:
    value: Json = 1
    for _ in range(depth):
        value = [value]
    return value


def test_the_size_of_the_state_does_not_affect_the_cost() -> None:
    state: dict[str, Json] = {"rows": [{"a": i} for i in range(100_000)], "score": 3}
    env = Environment(state)
    assert compile_expression("state").evaluate(env) is state
    assert compile_expression("rows[-1].a == 99999 and score < 5").holds(env)


def test_a_long_chain_of_operators_does_not_nest() -> None:
    assert value(" + ".join(["1"] * 250)) == 250
    assert value(" and ".join(["1"] * 250)) == 1


@given(st.text(alphabet="ab1.[]()?:!&|<>=+-*/%\"'$,{} nrx@\\é\n", max_size=60))
def test_any_text_compiles_or_is_refused_and_evaluates_or_fails(source: str) -> None:
    refused: ExpressionError | None = None
    try:
        expression = compile_expression(source)
        expression.evaluate(Environment(STATE))
    except ExpressionError as why:
        refused = why
    except ExpressionFailed:
        return
    assert refused is None or 0 <= refused.offset <= len(source)


WORDS = [
    *("a", "xs", "s", "n", "1", "'x'", "x", "len", "map", "any", "true", "and", "or", "not", "in", "is", "if", "else"),
    *(
        "for",
        "(",
        ")",
        "[",
        "]",
        ".",
        "?.",
        "==",
        "<",
        "+",
        "-",
        "//",
        "??",
        "?",
        ":",
        "=>",
        ",",
        "*",
        "$",
        "{",
        "}",
        "!",
    ),
]


@given(st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join))
def test_any_sequence_of_tokens_compiles_or_is_refused_and_evaluates_or_fails(source: str) -> None:
    try:
        expression = compile_expression(source)
    except ExpressionError:
        return
    with contextlib.suppress(ExpressionFailed):
        result = expression.evaluate(Environment(STATE))
        assert expression.evaluate(Environment(STATE)) == result


@pytest.mark.parametrize("source", ["sort(", "matches(text,", "sort(items, ", "a.b("])
def test_an_incomplete_call_is_refused(source: str) -> None:
    with pytest.raises(ExpressionError):
        compile_expression(source)
