"""The shapes run through the public API, and call their node functions as often as their size defines."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.meter import CALLS, Place, Sample, measure
from bench.model_server import running
from bench.public import cases
from bench.shapes import read_shapes
from bench.turns import Cell, in_turns, spread

CALLS_AT_3 = {
    "at-once": 3 * 10,
    "chain": 3,
    "chain-sync": 3,
    "cycle": 1 + 3 + 1,
    "fan-out": 3 + 1,
    "large-state": 100,
    "loop": 3 + 1,
    "quorum": 3 + 1,
    "sub-graphs": 3 * 4 + 1,
    "sub-workflows": 3 * 3 + 1,
    "wide-state": 25,
}


def test_every_public_shape_is_known_here() -> None:
    assert {name for name, shape in read_shapes().items() if shape.public} - {"agent"} == CALLS_AT_3.keys()


@pytest.mark.parametrize("name", CALLS_AT_3)
async def test_shape_calls_its_functions_through_the_public_api(name: str, tmp_path: Path) -> None:
    async with cases()[name](3, Place("memory", tmp_path, "")) as run:
        before = CALLS.count
        await run()
    assert CALLS.count - before == CALLS_AT_3[name]


@pytest.mark.integration
async def test_agent_takes_its_rounds_on_the_wire(tmp_path: Path) -> None:
    with running(rounds=3) as address:
        sample = await measure(cases()["agent"], 3, Place("memory", tmp_path, address))
    assert sample.calls == 3


@pytest.mark.integration
async def test_durable_sample_has_bare_commits(tmp_path: Path) -> None:
    sample = await measure(cases()["chain"], 3, Place("sqlite", tmp_path, ""))
    assert sample.calls == 3
    assert sample.bare_cpu > 0


def test_cells_take_turns() -> None:
    order: list[int] = []

    def ask(cell: Cell) -> Sample:
        order.append(cell.size)
        return Sample(1, 0, float(len(order)), 0, 0, 0, 0)

    found = in_turns([Cell("a", "chain", "memory", size) for size in (1, 2)], 2, ask)
    assert order == [1, 2, 1, 2]
    assert [one.cpu for one in found[Cell("a", "chain", "memory", 1)]] == [1.0, 3.0]


def test_spread_shows_median_least_and_greatest() -> None:
    assert spread([3, 1, 2]) == "2.0 (1.0–3.0)"
    assert spread([2]) == "2.0"
