"""`workflows design` marks the answers of the scripted model."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Prompt

NOTE = {"pointsman": 1, "id": "note", "nodes": [{"id": "draft", "type": "transform", "config": {"set": {"x": "1"}}}]}


def test_design_names_the_scripted_model_in_each_round(prompt: Prompt, own_place: Path) -> None:
    script = {"rules": [{"purpose": "design", "answers": [{"json": NOTE}]}]}
    (own_place / "s.json").write_text(json.dumps(script), encoding="utf-8")
    printed = prompt("workflows", "design", "A note.", "--model", "scripted", "--script", "s.json")
    assert printed.code == 0, printed.err
    assert "round 1 (scripted): 0 errors" in printed.err.splitlines()
    assert "its answers are made up" in printed.err.splitlines()[0]


def test_design_and_edit_mark_results_of_the_scripted_model(prompt: Prompt, own_place: Path) -> None:
    operations = [{"op": "change_node", "node": "draft", "set": {"/name": "Draft"}}]
    script = {
        "rules": [{"purpose": "design", "contains": "A note", "json": NOTE}, {"purpose": "design", "json": operations}]
    }
    (own_place / "s.json").write_text(json.dumps(script), encoding="utf-8")
    model = ("--model", "scripted", "--script", "s.json", "--json")
    made = json.loads(prompt("workflows", "design", "A note.", "--save", *model).out)
    assert (made["ok"], made["scripted"], made["rounds"][0]["scripted"]) == (True, True, True)
    assert [one["code"] for one in made["warnings"]] == ["scripted-answers"]
    changed = json.loads(prompt("workflows", "edit", "note", "--words", "Give it a name.", *model).out)
    assert (changed["scripted"], [one["code"] for one in changed["warnings"]]) == (True, ["scripted-answers"])
