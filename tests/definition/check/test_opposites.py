"""Pairs of conditions that never hold together: only those are exempt from reports of conflicting writes."""

from __future__ import annotations

import pytest

from pointsman.definition.checks.routing import opposite


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x == 1", "x != 1"),
        ("x == 1", "x == 2"),
        ("x === 'a'", 'x == "b"'),
        ("count(items) == 0", "count(items) != 0"),
        ("done", "not done"),
        ("done", "!done"),
        ("x == 1", "not x == 1"),
        ("a or b", "not (a or b)"),
        ("x == y", "x  !=  y"),
        ("items[0].kind == true", "items[0].kind == null"),
    ],
)
def test_opposites_are_recognised_in_either_order(one: str, other: str) -> None:
    assert opposite(one, other)
    assert opposite(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x == 1 or y", "x == 2 or y"),
        ("a == 1 or b == 2", "a != 1 or b == 2"),
        ("x == 1", "x == 1.0"),
        ("x == 'a'", 'x == "a"'),
        ("a or b", "not a or b"),
        ("a == b", "!a == b"),
        ("x == y", "x == z"),
        ("x == 1", "y == 2"),
        ("x != 1", "x != 2"),
    ],
)
def test_conditions_that_can_hold_together_are_not_opposites(one: str, other: str) -> None:
    assert not opposite(one, other)
    assert not opposite(other, one)
