"""What models mean by numbers and choices, where a schema is lenient."""

from __future__ import annotations

import pytest

from pointsman.executors.model_answers import Expected, Wrong, taken
from pointsman.values import Json, JsonObject

SCORE: JsonObject = {"type": "number", "minimum": 0, "maximum": 100, "x-lenient": True}


@pytest.mark.requirement("T2-16", "S2-O7")
@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (85, 85),
        (85.5, 85.5),
        (101, 100),
        (-1, 0),
        ("85", 85),
        ("85,5", 85.5),
        (" 85 % ", 85),
        ("85/100", 85),
        ("4/5", 80),
        ("4/0", "4/0"),
        ("very good", "very good"),
        ("85 or 90", "85 or 90"),
        (True, True),
        (None, None),
    ],
)
def test_a_number_is_read_and_held_within_its_bounds(said: Json, meant: Json) -> None:
    assert taken(said, SCORE) == meant
    assert type(taken(said, SCORE)) is type(meant)


def test_a_share_counts_of_the_most_there_is() -> None:
    share: JsonObject = {"type": "number", "maximum": 1, "x-lenient": True}
    assert [taken(said, share) for said in ("50 %", "1/4", "0.5")] == [0.5, 0.25, 0.5]
    assert taken("9/10", {"type": "number", "x-lenient": True}) == "9/10", "of what, nobody says"
    assert taken("2.6", {"type": "integer", "x-lenient": True}) == 3


def test_a_choice_is_known_whatever_its_case_if_only_one_is_meant() -> None:
    assert taken(" HIGH", {"enum": ["low", "high"], "x-lenient": True}) == "high"
    assert taken("a", {"enum": ["A", "a"], "x-lenient": True}) == "a"
    assert taken("B", {"enum": ["b", "B "], "x-lenient": True}) == "b"
    assert taken("huge", {"enum": ["low", "high"], "x-lenient": True}) == "huge"


def test_only_what_the_schema_wants_lenient_is() -> None:
    inner: JsonObject = {"type": "object", "properties": {"score": SCORE, "exact": {"type": "number"}}}
    schema: JsonObject = {"type": "array", "items": inner}
    expected = Expected(schema, "json")
    assert "x-lenient" not in str(expected.schema), "providers refuse words they do not know"
    read = expected.check([{"score": "7 %", "exact": 1}])
    assert not isinstance(read, Wrong)
    assert read.value == [{"score": 7, "exact": 1}]
    assert isinstance(expected.check([{"score": 7, "exact": "1"}]), Wrong)
    assert isinstance(Expected({"type": "number", "maximum": 1}, "json").check(2), Wrong)
