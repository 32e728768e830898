"""The page of the benchmark of clusters."""

from __future__ import annotations

import argparse

import pytest

from bench.scale import Figures, HandOver, Parked, Round, Spent, page, per_step, share


@pytest.mark.integration
def test_page_shows_the_medians_of_all_rounds_by_engine() -> None:
    rounds = [
        Round(Spent(step + 0.001, 0.0, 0.0), Spent(step, 0.0, 0.0), Spent(0.003, 0.0, 0.0), {1: 10.0}, {1: 5.0})
        for step in (0.001, 0.002, 0.009)
    ]
    found = Figures(
        {"none": rounds},
        {"temporal": HandOver([1.0, 12.0], [0.5])},
        [("restate", Parked(1000, 10.0, Spent(0.1, 0.2, 0.3), 200.0, 100.0, 50.0, 20.0))],
    )
    text = page(found, argparse.Namespace(rounds=3, executions=20), 60.0)
    assert "| none | 3.00 | 0.00 | 0.00 | 2.00 | 0.00 | 0.00 | 3.00 | 0.00 | 0.00 |" in text
    assert "| none | 10.0 | – | – | 5.0 | – | – |" in text
    assert "| temporal | 2 | SIGKILL | 12.0 | 12.0 |" in text
    assert "| restate | 1,000 | 100 | 100.0 | 200.0 | 300.0 | 200 | 100 | 50 | 50 |" in text


def test_the_cost_of_a_step_is_what_forty_more_steps_cost() -> None:
    cost = per_step(Spent(0.01, 0.02, 0.03), Spent(0.05, 0.02, 0.07))
    assert [*cost] == pytest.approx([0.001, 0.0, 0.001])


def test_a_share_of_no_values_is_a_dash() -> None:
    assert share([], 0.5) == "–"
    assert share([1.0, 2.0, 3.0], 0.99) == "3.0"
