"""JSONPath: the results of the RFC, within bounds."""

from __future__ import annotations

from typing import cast

import jsonpath_rfc9535
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointsman.expressions.failures import BadJsonPath, DataTooDeep, ExpressionTooLong, TooManyVisits
from pointsman.expressions.jsonpath import compile_jsonpath
from pointsman.values import Json

STORE: Json = {
    "books": [
        {"title": "A", "price": 8, "tags": ["x", "y"]},
        {"title": "B\nb", "price": 12.5, "isbn": "1-2"},
        {"title": "C", "price": True, "isbn": None},
    ],
    "limit": 10,
}


@pytest.mark.requirement("S1-43")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("$.books[*].title", ["A", "B\nb", "C"]),
        ("$['books'][-1:]..price", [True]),
        ("$..tags[0]", ["x"]),
        ("$.books[0,1].price", [8, 12.5]),
        ("$.books[::-1].title", ["C", "B\nb", "A"]),
        ("$.books[?@.price < $.limit].title", ["A"]),
        ("$.books[?@.isbn].title", ["B\nb", "C"]),
        ("$.books[?@.isbn == null].title", ["C"]),
        ("$.books[?@.price == 1].title", []),
        ("$.books[?!@.isbn || @.price >= 12.5].title", ["A", "B\nb"]),
        ("$.books[?match(@.isbn, '[0-9]-.')].title", ["B\nb"]),
        ("$.books[?match(@.title, 'B.b')].title", []),
        ("$.books[?search(@.title, 'b')].title", ["B\nb"]),
        ("$.books[?search(@.title, '(?=b)')].title", []),
        ("$.books[?count(@.tags[*]) == 2].title", ["A"]),
        ("$.books[?length(@.tags) == 2 && value(@.tags[1]) == 'y'].title", ["A"]),
        ("$.books[?@.tags[0] == 'x'].title", ["A"]),
        ("$.nope", []),
        ("$", [STORE]),
    ],
)
def test_queries_select_the_matching_values(query: str, expected: list[Json]) -> None:
    assert compile_jsonpath(query).find(STORE) == expected


@pytest.mark.parametrize(
    "query", ["", "books", "$.", "$[", "$.a[?]", "$.a b", "$[?@..x]", "$" + ".a" * 33, "$[?foo(@)]"]
)
def test_an_invalid_query_is_refused(query: str) -> None:
    with pytest.raises(BadJsonPath) as refused:
        compile_jsonpath(query)
    assert refused.value.hint


def test_queries_are_bounded() -> None:
    with pytest.raises(ExpressionTooLong):
        compile_jsonpath("$" + ".a" * 3_000)
    with pytest.raises(BadJsonPath):
        compile_jsonpath("$[?" + "(" * 2_000 + "@" + ")" * 2_000 + "]")
    row: Json = list[Json](range(500))
    wide: Json = [row for _ in range(500)]
    for query in ("$..*", "$[*][?@ == $[0]]", "$[*][?count($[*][*]) > 0]", "$..[*]..[*]"):
        with pytest.raises(TooManyVisits):
            compile_jsonpath(query).find(wide)
    with pytest.raises(TooManyVisits):
        compile_jsonpath("$[?search(@, '(a+)+b')]").find(list[Json](["a" * 1_000_000]) * 100)
    deep: Json = 1
    for _ in range(5_000):
        deep = [deep]
    assert len(compile_jsonpath("$..*").find(deep)) == 5_000
    with pytest.raises(DataTooDeep):
        compile_jsonpath("$[?@ == $[1]]").find([deep, [deep]])


scalars = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.5, "a", "ab", ""])
keys = st.sampled_from(["a", "b"])
documents = st.recursive(
    scalars, lambda x: st.lists(x, max_size=3) | st.dictionaries(keys, x, max_size=2), max_leaves=12
)
steps = st.sampled_from([".a", ".b", "[0]", "[-1]", "[*]", ".*", "..a", "..*", "[1:]", "[::-1]", "['a','b']", "[0,-1]"])
sides = st.sampled_from(
    ["@", "@.a", "@[0]", "$.a", "1", "0.5", "'a'", "true", "null", "length(@)", "count(@.*)", "value(@.b)"]
)
tests = st.tuples(sides, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), sides).map(" ".join) | st.sampled_from(
    ["@.a", "!@.b", "@.*", "@.a && @.b", "@.a || !(@[0] == 1)", "match(@, 'a.?')", "search(@.a, 'a')"]
)
queries = st.lists(steps | tests.map("[?{}]".format), max_size=4).map(lambda parts: "$" + "".join(parts))


@pytest.mark.requirement("S1-43")
@given(queries, documents)
def test_the_reference_evaluator_agrees(query: str, document: Json) -> None:
    expected = cast("list[Json]", [node.value for node in jsonpath_rfc9535.find(query, document)])
    assert compile_jsonpath(query).find(document) == expected
