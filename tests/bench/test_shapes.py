"""The measured shapes can be read, and run to their end."""

from __future__ import annotations

import pytest

from bench.engine_alone import Stage
from bench.shapes import filled, read_shapes
from pointsman.store.api import open_store
from pointsman.values import Json

STEPS = {
    "agent-rounds": 2 * 3 + 2,
    "at-once": 3 * 10,
    "chain": 3,
    "cycle": 1 + 3 + 1,
    "fan-out": 1 + 3 + 1 + 1,
    "large-state": 100,
    "loop": 2 * 3 + 1 + 1,
    "quorum": 1 + 3 + 1 + 1,
    "sub-graphs": 1 + 3 * 4 + 1 + 1,
    "sub-workflows": 1 + 3 * (1 + 3) + 1 + 1,
    "wide-state": 25,
}
"""The number of steps of each at size 3."""


def test_every_shape_is_known_here() -> None:
    assert {name for name, shape in read_shapes().items() if shape.sizes} == STEPS.keys()


@pytest.mark.parametrize("name", STEPS)
async def test_the_size_of_a_shape_is_its_number_of_steps(name: str) -> None:
    assert await Stage(read_shapes()[name], 3, await open_store("memory:")).run("test") == STEPS[name]


def test_a_size_is_filled_in_as_a_number_or_as_text() -> None:
    assert filled({"most": "{n}", "text": "{n} times"}, {"n": 3}) == {"most": 3, "text": "3 times"}


def test_repetitions_are_written_out_in_place() -> None:
    edges: list[Json] = ["first", {"times": "n - 1", "of": {"from": "n{i}", "to": "n{next}"}}, "last"]
    assert filled(edges, {"n": 3}) == ["first", {"from": "n0", "to": "n1"}, {"from": "n1", "to": "n2"}, "last"]
