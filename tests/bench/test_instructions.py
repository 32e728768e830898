"""Shapes whose instructions are counted run as often as the command line states."""

from __future__ import annotations

from bench.instructions import CELLS, COUNT, perform, report
from bench.shapes import read_shapes


async def test_perform_returns_the_calls_of_one_run() -> None:
    assert await perform("chain", 3, "memory", 2) == 3


def test_counted_cells_are_public_shapes() -> None:
    shapes = read_shapes()
    assert all(store in shapes[shape].public for shape, _, store in CELLS)


def test_count_is_read_from_the_summary_of_valgrind() -> None:
    found = COUNT.search("==12==\n==12== I   refs:      1,234,567\n")
    assert found is not None
    assert found[1] == "1,234,567"


def test_report_has_a_column_for_each_version() -> None:
    assert "| chain | 1,000 | 900 |" in report({"0.1.0": {"chain": 1000}, "0.2.0": {"chain": 900}})
