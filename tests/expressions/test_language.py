"""The semantics of expressions, rule by rule."""

from __future__ import annotations

import pytest

from pointsman.expressions.compiler import compile_expression
from pointsman.expressions.environment import Environment
from pointsman.expressions.failures import (
    DividedByZero,
    ExpressionError,
    ExpressionFailed,
    MissingValue,
    MixedTypes,
    UnknownFunction,
    WrongArguments,
)
from pointsman.values import Json
from tests.expressions.worlds import holds, value

TRIAGE: dict[str, Json] = {
    "triage": {"preferred_agent": "sql"},
    "sources": [{"name": "a", "score": 3}, {"name": "b", "score": 9}],
    "score": 75,
    "done": True,
    "empty_text": "",
    "nothing": None,
    "letters": {"b": 1, "a": 2},
}


@pytest.mark.requirement("S3-56", "S3-57", "S3-58")
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('triage.preferred_agent == "sql"', True),
        ('triage.preferred_agent != "sql"', False),
        ('state.triage.preferred_agent == "sql" and agent_id is not None', False),
        ('"sql" in ["sql", "neo4j"]', True),
        ('triage.preferred_agent not in ["sql"]', False),
        ("nothing is None", True),
        ("done is not None and not (score < 70 or score > 80)", True),
        ("done == true and True == done and false == False", True),
        ("score == 75 and score >= 7.5e1", True),
    ],
)
def test_the_python_spelling_is_read(source: str, expected: bool) -> None:
    assert value(source, TRIAGE) is expected


@pytest.mark.requirement("S1-48", "S1-O12", "T1-12")
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("$.result.approved === true", True),
        ("$.data.done === true && !$.data.nothing", True),
        ("result.approved !== false || nope", True),
        ("$.nodeOutputs.check.score > 80", True),
        ("exists($.data.score) && !empty($.data.sources) && length($.data.sources) >= 2", True),
        ("score > 70 ? 'high' : 'low'", "high"),
        ("sources?.[0]?.name ?? 'none'", "a"),
        ("nope?.name ?? 'none'", "none"),
        ("sources.filter(s => s.score > 5).map(s => s.name).includes('b')", True),
        ("sources.some(s => s.score === 9) && sources.every(s => s.score)", True),
    ],
)
def test_the_javascript_spelling_is_read(source: str, expected: Json) -> None:
    names: dict[str, Json] = {"result": {"approved": True}}
    nodes: dict[str, Json] = {"check": {"score": 81}}
    env = Environment(TRIAGE, nodes=nodes, names=names)
    assert compile_expression(source).evaluate(env) == expected


@pytest.mark.requirement("T3-19")
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 == 1.0", True),
        ("true == 1", False),
        ("0 == false", False),
        ('"1" == 1', False),
        ('"true" == true', False),
        ("[1, {a: [true]}] == [1.0, {a: [true]}]", True),
        ("[1] == [true]", False),
        ("{a: 1} != {a: 1, b: 2}", True),
        ("null == undefined", True),
        ("None == 0", False),
    ],
)
def test_equality_never_coerces(source: str, expected: bool) -> None:
    assert value(source) is expected


@pytest.mark.requirement("T1-12")
def test_only_branch_labels_compare_as_strings() -> None:
    env = Environment(
        {"branch": True}, nodes={"d-1": {"branch": True}}, names={"result": {"branch": "true", "ok": True}}
    )
    assert compile_expression("result.branch === 'true'").holds(env)
    assert compile_expression("result.branch === true").holds(env)
    assert compile_expression("$.nodes['d-1'].branch == 'true'").holds(env)
    assert not compile_expression("result.ok === 'true'").holds(env)
    assert not compile_expression("branch === 'true'").holds(env)
    assert not compile_expression("nodes.other.branch == null and nodes['d-1'].branch == null").holds(env)


@pytest.mark.requirement("S3-60")
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('verdicts.intro[-1].decision != "accept"', True),
        ("nope", None),
        ("nope.x[3].y", None),
        ("sources[9].name", None),
        ("exists(nothing)", True),
        ("exists(nope)", False),
        ("exists(nothing.x)", False),
        ("exists(sources[1].name)", True),
        ("exists(sources[2])", False),
        ("nothing ?? 4", 4),
        ("default(nope.x, 'd')", "d"),
        ("nope + 0 if exists(nope) else 7", 7),
    ],
)
def test_a_missing_path_is_null_and_does_not_exist(source: str, expected: Json) -> None:
    assert value(source, TRIAGE) == expected


def test_strict_data_makes_a_missing_path_fail_unless_it_is_guarded() -> None:
    strict = Environment({"a": {"b": 1}}, strict=True)
    with pytest.raises(MissingValue) as failed:
        compile_expression("1 + a.c").evaluate(strict)
    assert (failed.value.offset, failed.value.length) == (4, 3)
    for source in ("a.c ?? 2", "default(a.c, 2)", "empty(a.c) ? 2 : 0", "exists(a.c) ? 0 : 2"):
        assert compile_expression(source).evaluate(strict) == 2


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
def test_order_with_null_or_missing_is_false(sign: str) -> None:
    assert value(f"nope {sign} 1") is False
    assert value(f"1 {sign} nope") is False


@pytest.mark.parametrize("source", ['1 < "2"', "true < 1", "[] < 1", '"a" >= {}'])
def test_order_between_types_fails_with_the_position(source: str) -> None:
    with pytest.raises(MixedTypes) as failed:
        holds(f"false or {source}")
    assert failed.value.source[failed.value.offset :][: failed.value.length] == source


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("2 in [1, 2]", True),
        ("'b' in letters", True),
        ("1 in letters", False),
        ("'mp' in 'empty'", True),
        ("1 in nope", False),
    ],
)
def test_in_searches_lists_keys_and_strings(source: str, expected: bool) -> None:
    assert value(source, TRIAGE) is expected


@pytest.mark.parametrize("source", ["false", "null", "0", "0.0", '""', "[]", "{}", "nope", "not 1", "!'x'"])
def test_falsy_values_are_false(source: str) -> None:
    assert holds(source) is False


@pytest.mark.parametrize("source", ["true", "-1", "0.1", '"0"', '"false"', "[0]", "{a: null}"])
def test_truthy_values_are_true(source: str) -> None:
    assert holds(source) is True


def test_and_and_or_return_an_operand_and_short_circuit() -> None:
    assert value("0 or 'x' or 1 / 0") == "x"
    assert value("'' and 1 / 0") == ""
    assert value("null ?? false ?? 1 / 0") is False
    assert value("1 and 2 && 3") == 3


@pytest.mark.requirement("S3-62")
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("true or false and false", True),
        ("(true or false) and false", False),
        ("not false == true", True),
        ("not true == false", True),
        ("!true == false", True),
        ("1 + 2 * 3 - 4 / 2", 5),
        ("-2 * -3", 6),
        ("1 < 2 < 3", True),
        ("3 > 2 > 2", False),
        ("(1 < 2) == true", True),
        ("1 == 1 == 1", True),
        ("true ? false ? 1 : 2 : 3", 2),
        ("1 if false else 2 if true else 3", 2),
        ("null ?? 0 or 5", 5),
        ('"a and b or c" == "a and b or c"', True),
        ("' or ' in 'x or y'", True),
    ],
)
def test_operators_have_the_usual_precedence_outside_strings(source: str, expected: Json) -> None:
    assert value(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("7 // 2", 3),
        ("-7 // 2", -4),
        ("7 % -3", -2),
        ("6 / 3", 2),
        ("7 / 2", 3.5),
        ("'a' + 'b'", "ab"),
        ("[1] + [2]", [1, 2]),
        ("+3 - -3", 6),
    ],
)
def test_integer_division_and_remainder_round_down(source: str, expected: Json) -> None:
    result = value(source)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    "source", ["1 + '1'", "null + 1", "true + 1", "[1] - [1]", "'a' * 3", "-'a'", "+null", "1 + {}"]
)
def test_arithmetic_between_types_fails(source: str) -> None:
    with pytest.raises(MixedTypes):
        value(source)


@pytest.mark.parametrize("source", ["1 / 0", "1 // 0.0", "5 % 0"])
def test_division_by_zero_fails_with_a_code(source: str) -> None:
    with pytest.raises(DividedByZero) as failed:
        value(source)
    assert failed.value.code == "expression-division-by-zero"


@pytest.mark.requirement("S3-59")
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("sources[-1].name", "b"),
        ("sources[0].name", "a"),
        ("sources[1.0].score", 9),
        ("sources[0:1].length", 1),
        ("sources[1:]", [{"name": "b", "score": 9}]),
        ("sources[:-1][0]['name']", "a"),
        ("sources.*.name", ["a", "b"]),
        ("sources[*].name", ["a", "b"]),
        ("letters.*", [1, 2]),
        ("exists(sources.*.nope)", False),
        ("sources.length + letters.length + 'abc'.length", 7),
        ("letters['b']", 1),
        ("letters[sources[1].name]", 1),
        ("'abc'[0] + 'abc'[-1:]", "ac"),
        ("sources[nope]", None),
        ("nope[0:2]", None),
    ],
)
def test_paths_select_in_lists_and_objects(source: str, expected: Json) -> None:
    assert value(source, TRIAGE) == expected


def test_length_is_a_key_if_the_object_has_it() -> None:
    assert value("box.length", {"box": {"length": 90, "width": 2}}) == 90
    assert value("box['length']", {"box": {"width": 2}}) is None


def test_a_key_after_a_dot_may_be_a_reserved_word() -> None:
    assert value("state.input + a.not + a.for.in", {"input": 1, "a": {"not": 2, "for": {"in": 3}}}) == 6


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("len(sources) + length('ab') + len(nope)", 4),
        ("empty(nothing) and empty('') and empty([]) and empty({}) and not empty(0)", True),
        ("lower('ÀB') + upper('c') + trim('  d ')", "àbCd"),
        ("startsWith('abc', 'ab') and starts_with('abc', 'a') and endsWith('abc', 'c')", True),
        ("contains([1, 2], 2) and contains('abc', 'b') and not contains(nope, 1)", True),
        ("matches('order 66', '[0-9]+$') and not matches('x', '^y')", True),
        ("str(1) + str(true) + str(null) + str([1, 'é'])", '1truenull[1, "é"]'),
        ("[number('12'), number(' -1.5 '), number(true), number('x', 0), number(nope)]", [12, -1.5, 1, 0, None]),
        ("[bool('x'), bool([]), abs(-2), round(2.5), round(1.256, 2)]", [True, False, 2, 2, 1.26]),
        ("[min(3, 1, 2), max([1, 5]), min([]), sum([1, 2.5]), sum(nope)]", [1, 5, None, 3.5, 0]),
        ("max(sources, s => s.score).name", "b"),
        ("sum(sources, s => s.score)", 12),
        ("keys(letters) + values(letters)", ["b", "a", 1, 2]),
        (
            "[type(1), type('a'), type(null), type(true), type([]), type({})]",
            ["number", "string", "null", "boolean", "array", "object"],
        ),
        ("any(sources, s => s.score > 8) and all(sources, s => s.score > 2) and not any([]) and all([])", True),
        ("any(s.score > 8 for s in sources) and all([s.score for s in sources])", True),
        ("filter(sources, s => s.score > 5).map(s => s.name)", ["b"]),
        ("find(sources, s => s.score > 1).name", "a"),
        ("find(sources, s => s.score > 100)", None),
        ("count(sources) + count(sources, s => s.score > 5)", 3),
        ("sort([3, 1, 2]) + sort(sources, s => -s.score).map(s => s.score)", [1, 2, 3, 9, 3]),
        ("unique([1, 1.0, true, '1', [1], [1.0], {a: 1}, {a: 1}])", [1, True, "1", [1], {"a": 1}]),
        ("unique(sources, s => type(s.score)).length", 1),
        ("join(['a', 1, null], '-') + join(sources.*.name)", "a-1-nulla, b"),
        ("split('a,b,', ',')", ["a", "b", ""]),
        ("[[x * y for y in [1, 2]] for x in [3, 4]]", [[3, 6], [4, 8]]),
        ("map([1, 2], x => map([10, 20], y => x * y + (x > 1 ? x : 0)))", [[10, 20], [22, 42]]),
    ],
)
def test_functions_do_what_their_names_say(source: str, expected: Json) -> None:
    assert value(source, TRIAGE) == expected


@pytest.mark.parametrize(
    "source",
    [
        *("lower(1)", "len(1)", "sum(['a'])", "sort([1, 'a'])", "sort([null])", "map({}, x => x)", "number('x')"),
        *("max([true])", "startsWith(1, 'a')", "keys([])", "split('a', '')", "round('a')", "matches(1, 'a')"),
        *("abs('a')", "1[0:2]", "xs['a':]"),
    ],
)
def test_functions_refuse_arguments_of_wrong_types(source: str) -> None:
    with pytest.raises(MixedTypes) as failed:
        value(source, {"xs": [1]})
    assert failed.value.length > 1


@pytest.mark.parametrize(
    ("source", "error", "offset", "hint"),
    [
        ("a = 1", ExpressionError, 2, "=="),
        ("a & b", ExpressionError, 2, "and"),
        ("a == 'x", ExpressionError, 5, "closing quote"),
        ("a b", ExpressionError, 2, "operator"),
        ("(a", ExpressionError, 2, "Close the '(' at column 1"),
        ("a => 3", ExpressionError, 2, "Compare with `>=`"),
        ("a)", ExpressionError, 1, "no matching `(`"),
        ("a > ", ExpressionError, 4, "Complete"),
        ("== 3", ExpressionError, 0, "both sides"),
        ("a == not b", ExpressionError, 5, "parentheses"),
        ("", ExpressionError, 0, ""),
        ("a +", ExpressionError, 3, ""),
        ("007", ExpressionError, 0, "numbers"),
        ("a.1x", ExpressionError, 2, ""),
        ("lenn(a)", UnknownFunction, 0, "'len'"),
        ("1 + frobnicate(a)", UnknownFunction, 4, "Known functions"),
        ("len()", WrongArguments, 0, ""),
        ("map(a)", WrongArguments, 0, ""),
        ("map(a, 1)", WrongArguments, 0, "x => x.field"),
        ("len(x => x)", WrongArguments, 4, ""),
        ("sort(x => x.n)", WrongArguments, 0, "list"),
        ("map(x => x)", WrongArguments, 0, ""),
        ("exists(1 + 1)", WrongArguments, 7, ""),
        ("matches(a, b)", WrongArguments, 11, "computed"),
        ("a[null]", ExpressionError, 2, ""),
        ("a[1.5]", ExpressionError, 2, ""),
        ("'\\ud800'", ExpressionError, 0, ""),
    ],
)
def test_a_syntax_error_has_a_position_and_a_hint(
    source: str, error: type[ExpressionError], offset: int, hint: str
) -> None:
    with pytest.raises(error) as refused:
        compile_expression(source)
    assert refused.value.offset == offset
    assert hint in refused.value.hint


def test_a_failure_at_run_time_is_never_silently_false() -> None:
    with pytest.raises(ExpressionFailed) as failed:
        holds("nothing > 1 or name > 1", {"name": "x"})
    assert failed.value.code == "expression-types"
    assert failed.value.offset == 15


def test_strings_decode_escapes_and_keep_unknown_ones() -> None:
    assert value(r'"\n\t\"\\ \u00e9 \ud83d\ude00 \x41 \d+"') == '\n\t"\\ é 😀 A \\d+'


def test_an_expression_compiles_once() -> None:
    assert compile_expression("a.b == 1") is compile_expression("a.b == 1")


def test_evaluation_never_changes_data() -> None:
    state: dict[str, Json] = {"xs": [3, 1], "o": {"k": [1]}}
    value("sort(xs) + xs + o.k + unique(xs) + [x for x in xs]", state)
    assert state == {"xs": [3, 1], "o": {"k": [1]}}
