"""`pointsman eval` and `pointsman datasets`."""

from __future__ import annotations

from pointsman.cli.results import WAITING
from tests.cli.conftest import Prompt
from tests.cli.flows import written

FLOW = """
pointsman: 1
id: doubled
output: {twice: twice}
nodes: [{id: double, type: transform, config: {set: {twice: n * 2}}}]
"""
CASES = "n,expected.twice\n1,2\n2,5\n"


def test_a_file_is_evaluated_and_compared_with_minima(prompt: Prompt) -> None:
    flow, cases = written("doubled.yaml", FLOW), written("numbers.csv", CASES)
    ran = prompt("eval", flow, "--data", cases, "--match", "right", "--min", "right=0.5")
    assert ran.code == 0
    assert "right: 0.500, at least 0.5 is required" in ran.out
    below = prompt(
        "eval", "doubled", "--data", "numbers", "--score", "big=output.twice > 3", "--min", "big=0.6", "--json"
    )
    assert (below.code, below.json["scores"]) == (1, {"big": 0.5})
    assert prompt("eval", "doubled", "--data", "nothing", "--match", "right").code == 2
    assert prompt("eval", "doubled", "--data", "numbers", "--match", "right", "--min", "wrong=1").code == 2


def test_datasets_are_saved_listed_shown_and_deleted(prompt: Prompt) -> None:
    prompt("workflows", "save", written("doubled.yaml", FLOW))
    assert (
        prompt("datasets", "save", "mine", "doubled", written("n.csv", CASES), "--match", "right").out
        == "mine: 2 cases\n"
    )
    assert prompt("datasets", "list", "--json").json["datasets"][0]["id"] == "mine"
    assert prompt("datasets", "show", "mine").json["cases"][1] == {"input": {"n": 2}, "expected": {"twice": 5}}
    assert prompt("eval", "doubled", "--data", "mine", "--json").json["scores"] == {"right": 0.5}
    assert prompt("datasets", "delete", "mine").code == 0
    assert prompt("datasets", "list", "--json").json == {"datasets": []}


def test_a_run_that_waits_for_people_does_not_pass(prompt: Prompt) -> None:
    prompt("workflows", "save", written("doubled.yaml", FLOW))
    asked = prompt(
        "eval", "doubled", "--data", written("n.csv", CASES), "--human", "good=Is it good?", "--min", "good=0"
    )
    assert asked.code == WAITING
    assert "People must answer first" in asked.err
