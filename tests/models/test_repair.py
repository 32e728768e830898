"""Parsing of JSON in texts of models."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointsman.models.repair import ParsedJson, read_json, read_whole, without_trailing_commas
from pointsman.values import Json

scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
texts = st.text(st.characters(exclude_categories=("Cs",)))
values: st.SearchStrategy[Json] = st.recursive(
    scalars | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
containers = values.filter(lambda value: isinstance(value, dict | list))


@given(values)
def test_valid_json_is_never_changed(value: Json) -> None:
    assert read_json(json.dumps(value)) == ParsedJson(value)
    assert read_json(json.dumps(value, ensure_ascii=False, indent=2)) == ParsedJson(value)


@given(values)
def test_dropping_trailing_commas_leaves_valid_json_alone(value: Json) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert without_trailing_commas(text) == text


@given(values)
def test_a_fence_around_json_makes_no_difference(value: Json) -> None:
    assert read_json(f"```json\n{json.dumps(value)}\n```") == ParsedJson(value)


@given(containers)
def test_chatter_around_an_object_or_list_is_ignored(value: Json) -> None:
    assert read_json(f"Sure! Here it is: {json.dumps(value)} Anything else?") == ParsedJson(value)


@given(st.dictionaries(texts, values, min_size=1))
def test_trailing_commas_are_forgiven(value: dict[str, Json]) -> None:
    assert read_json(json.dumps(value)[:-1] + ", \n}") == ParsedJson(value)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('Here:\n```json\n{"a": [1, 2,],}\n```\nDone.', {"a": [1, 2]}),
        ('As [Smith] said: {"a": 1}', {"a": 1}),
        ('{"a": "x,]"}', {"a": "x,]"}),
        ('{"a": "\\",}"} thanks', {"a": '",}'}),
        ("null", None),
    ],
)
def test_slightly_broken_json_is_repaired(text: str, meant: Json) -> None:
    assert read_json(text) == ParsedJson(meant)


@pytest.mark.parametrize("text", ["", "no JSON here", '{"a": ', "[1 2]", "NaN", '{"a": NaN}', "1e999", '"\\ud800"'])
def test_unreadable_json_is_not_guessed(text: str) -> None:
    assert read_json(text) is None


def test_too_deeply_nested_json_is_refused() -> None:
    assert read_json("[" * 100_000 + "]" * 100_000) is None


@pytest.mark.parametrize("text", ['Sure: {"a": 1}', '{"a": 1,}', 'x\n```json\n{"a": 1}\n```'])
def test_only_a_text_that_is_entirely_json_is_parsed_as_a_whole(text: str) -> None:
    assert read_whole(text) is None
    assert read_json(text) == ParsedJson({"a": 1})
