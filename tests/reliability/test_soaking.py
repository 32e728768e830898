"""Rows of the scorecard in turns for a given time: each turn has its own seed, and a violation of one turn is not
lost."""

from __future__ import annotations

import argparse
import itertools

import pytest

from tests.reliability import __main__ as command
from tests.reliability import subscribers
from tests.reliability.findings import Finding, NotHere, Row, Tier
from tests.reliability.report import Result, complaints, joined


def row(name: str, *, long: int = 100, broken: int = 0) -> Row:
    """Return a row whose run takes one second; with the seed `broken` it fails."""

    def examine(size: int, seed: int) -> Finding:
        return Finding(f"{size} of seed {seed}", ("seen",) if seed == broken else ())

    sizes: dict[Tier, int] = {"pr": 10, "long": long}
    return Row(name, name, "something", sizes, "things", examine, test_size=5)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Advance the clock by one second at each read."""
    ticks = itertools.count()
    monkeypatch.setattr(command.time, "monotonic", lambda: float(next(ticks)))


def test_rows_take_turns_until_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = row("slow")
    took = {"slow": 5.0, "quick": 1.0, "once": 1.0}

    def result_of(row: Row, size: int, seed: int) -> Result:
        return Result(row, size, took[row.name], row.examine(size, seed))

    monkeypatch.setattr(command, "result_of", result_of)
    found = [*command.soaked([slow, row("quick"), row("once", long=10)], 9.0, 1, None)]
    names = [result.row.name for result in found]
    assert names == ["once", "quick", "slow", *["quick"] * 5], "who has had the least time is next"
    figures = [result.finding.figure for result in found if result.finding and result.row.name == "quick"]
    assert figures == [f"5 of seed {seed}" for seed in range(1, 7)]


def test_a_row_without_a_turn_reports_it() -> None:
    found = [*command.soaked([row("a"), row("b"), row("c")], 2.0, 1, None)]
    assert [(result.row.name, result.verdict) for result in found] == [
        ("c", "holds"),
        ("a", "not run: the time was over"),
        ("b", "not run: the time was over"),
    ]


def test_findings_of_earlier_turns_are_kept() -> None:
    one = row("a", broken=2)
    first, second, third = (command.result_of(one, 5, seed) for seed in (1, 2, 3))
    both = joined(joined(joined(None, first), second), third)
    assert (both.sized, both.verdict) == ("3 × 5 things", "**broken** (1)")
    assert joined(Result(one, 5, 0.0, missing="no server"), first) == first
    assert joined(first, Result(one, 5, 0.0, missing="no server")) == first


def test_a_late_answer_breaks_a_row_of_the_scorecard() -> None:
    def slow(size: int, seed: int) -> Finding:
        return Finding("slow", late=subscribers.late_in(2.5))

    late = row("a")._replace(examine=slow)
    both = joined(joined(None, command.result_of(late, 5, 1)), command.result_of(row("a"), 5, 2))
    assert both.verdict == "**broken** (1)"
    assert complaints(both) == ["a, seed 2: an end took 2.50 s; 2 are promised"]
    assert subscribers.late_in(1.9) == ()


def test_a_row_that_raises_is_broken_and_shows_its_seed() -> None:
    def breaks(size: int, seed: int) -> Finding:
        raise KeyError(size)

    result = command.result_of(row("a")._replace(examine=breaks), 5, 7)
    assert result.verdict == "**broken** (1)"
    (told,) = complaints(result)
    assert told.startswith("a, seed 7: ")
    assert "KeyError: 5" in told


def test_a_row_that_cannot_run_here_is_not_run() -> None:
    def nowhere(size: int, seed: int) -> Finding:
        raise NotHere("no server")

    assert command.result_of(row("a")._replace(examine=nowhere), 5, 1).verdict == "not run: no server"


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("5m", 300), ("8h", 28_800)])
def test_a_duration_is_a_number_and_a_unit(text: str, seconds: int) -> None:
    assert command.duration(text) == seconds
    with pytest.raises(argparse.ArgumentTypeError):
        command.duration(f"{text}!")
