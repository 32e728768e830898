"""The command `workflows design` names the scripted model where it answered."""

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
