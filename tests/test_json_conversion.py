"""Conversion of Python values to JSON: plain values are copied, others are converted by pydantic."""

from __future__ import annotations

import math
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_jsonable_python

from pointsman.json_conversion import DEPTH_MAX, NotJson, as_json

PLAIN: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inside: st.lists(inside) | st.tuples(inside, inside) | st.dictionaries(st.text(), inside),
    max_leaves=30,
)


def converted(value: object) -> object:
    return as_json(value, what="the input", path="input")


@given(PLAIN)
def test_plain_values_are_copied_as_pydantic_copies_them(value: object) -> None:
    assert repr(converted(value)) == repr(to_jsonable_python(value, inf_nan_mode="constants"))


def test_a_copy_shares_no_container_with_the_value() -> None:
    member, empty, numbers = {"a": 1}, dict[str, int](), [1]
    copy = converted({"objects": [member], "empty": empty, "numbers": numbers})
    member["a"] = empty["b"] = 2
    numbers.append(2)
    assert copy == {"objects": [{"a": 1}], "empty": {}, "numbers": [1]}


@pytest.mark.parametrize("depth", [DEPTH_MAX - 1, DEPTH_MAX, DEPTH_MAX + 1, 200])
def test_deeper_values_than_are_copied_at_once_have_the_same_result(depth: int) -> None:
    value: object = math.inf
    for _ in range(depth):
        value = [value]
    assert converted(value) == value


def test_a_list_that_contains_itself_is_refused() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(NotJson, match="contains itself"):
        converted(value)


@pytest.mark.parametrize("value", [{"\ud800": 1}, {"a": {1: 2, "1": 3}}, [object()], {"a": {b"x": 1}}])
def test_what_json_does_not_have_is_refused_beside_plain_values(value: object) -> None:
    with pytest.raises(NotJson):
        converted([{"a": 1}, value])
