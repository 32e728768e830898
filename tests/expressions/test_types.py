"""Errors of an expression that are found before it is evaluated."""

from __future__ import annotations

import pytest

from pointsman.expressions.compiler import compile_expression
from pointsman.expressions.types import check_types
from pointsman.values import Json, JsonObject

ROW: Json = {"type": "object", "properties": {"x": {"type": "number"}}, "additionalProperties": False}
STATE: JsonObject = {
    "type": "object",
    "additionalProperties": False,
    "required": ["count", "agent", "rows"],
    "properties": {
        "count": {"type": "integer"},
        "agent": {"enum": ["sql", "neo4j"]},
        "maybe": {"type": ["string", "null"]},
        "open": {"type": "object"},
        "row": {"$ref": "#/$defs/row"},
        "rows": {"type": "array", "items": {"$ref": "#/$defs/row"}},
        "either": {"anyOf": [{"type": "string"}, {"type": "number"}]},
        "drafts": {"type": "object", "additionalProperties": {"type": "string"}},
        "loop_": {"$ref": "#/properties/loop_"},
        "done": {"type": "boolean"},
    },
    "$defs": {"row": ROW},
}


def codes(source: str, *, condition: bool = False) -> list[str]:
    found = check_types(
        compile_expression(source), {"state": STATE}, keys=frozenset({"use_search"}), condition=condition
    )
    return [finding.code for finding in found]


@pytest.mark.parametrize(
    ("source", "place", "hint"),
    [
        ("cuont > 3", "cuont", "count"),
        ("$.row.y == 1", "$.row.y", "x"),
        ("rows[0].z ?? 1", "rows[0].z", "x"),
        ("any(rows, r => r.xx > 1)", "r.xx", "x"),
        ("[r.q for r in rows]", "r.q", "x"),
        ("count == 1 and use_serach", "use_serach", "use_search"),
        ("exists(state.agnet)", "state.agnet", "agent"),
        ("rows.map(r => r.nope)", "r.nope", "x"),
    ],
)
def test_an_unknown_path_is_found_with_position_and_suggestion(source: str, place: str, hint: str) -> None:
    (finding,) = check_types(compile_expression(source), {"state": STATE}, keys=frozenset({"use_search"}))
    assert finding.code == "unknown-path"
    assert source[finding.offset :][: finding.length] == place
    assert hint in finding.hint


@pytest.mark.parametrize(
    "source",
    [
        *("open.any.thing", "nodes.x.y", "input.z", "result.branch == 'true'", "drafts.intro", "row.x", "either.x"),
        *(
            "drafts.current_fanout_item",
            "rows.length > 1",
            "use_search",
            "count == 3.5",
            "maybe == null",
            "row == null",
        ),
        *(
            "agent != 'sql'",
            "done == true",
            "rows[count].x",
            "agent in ['a']",
            "'x' + agent == 'y'",
            "(row.x ?? 0) < 3",
        ),
        "loop_.x",
    ],
)
def test_possibly_correct_paths_are_not_reported(source: str) -> None:
    assert codes(source) == []


@pytest.mark.requirement("T3-19")
@pytest.mark.parametrize(
    "source",
    [
        "count == '3'",
        "agent == 1",
        "agent == 'slq'",
        "'neo' != agent",
        "done === 'true'",
        "(count > 1) == 1",
        "len(rows) == '1'",
    ],
)
def test_comparisons_that_are_never_equal_are_found(source: str) -> None:
    assert codes(source) == ["never-equal"]


@pytest.mark.parametrize(
    "source", ["'always'", "count", "rows", "count + 1 - 2", "len(rows)", "true ? 1 : 2", "str(count)"]
)
def test_a_condition_that_is_not_a_boolean_is_found(source: str) -> None:
    assert "condition-not-boolean" in codes(source, condition=True)
    assert "condition-not-boolean" not in codes(source)


@pytest.mark.parametrize(
    "source", ["done", "count > 1", "not rows", "either", "done and count > 2", "nodes.x.ok", "exists(row)"]
)
def test_a_condition_that_may_be_a_boolean_is_not_reported(source: str) -> None:
    assert codes(source, condition=True) == []


@pytest.mark.parametrize("source", ["row.x < 3", "'a' < maybe", "rows[0].x >= 1", "drafts.intro < 'x'"])
def test_an_ordering_of_a_possibly_missing_value_is_found(source: str) -> None:
    assert codes(source) == ["order-may-miss"]


@pytest.mark.parametrize(
    "source",
    ["count > '3'", "'a' < count", "rows > 3", "done >= 1", "1 < maybe", "join(count)", "upper(count)", "1 in count"],
)
def test_an_operation_on_a_wrong_type_is_found(source: str) -> None:
    assert codes(source) == ["wrong-types"]


@pytest.mark.parametrize("source", ["nodes.x > 3", "maybe in 'abc'", "'a' in rows", "len(rows) > 3"])
def test_an_operation_on_a_possible_type_is_not_reported(source: str) -> None:
    assert "wrong-types" not in codes(source)


def test_without_a_schema_nothing_is_reported() -> None:
    assert check_types(compile_expression("a.b == 1 and c < 'x'"), {}, condition=True) == []
