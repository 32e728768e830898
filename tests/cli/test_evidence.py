"""A model answer that did not fit its schema is shown in the terminal and over HTTP."""

from __future__ import annotations

import json
from pathlib import Path

from pointsman.models.script import read_script
from pointsman.values import JsonObject
from tests.cli.conftest import Prompt
from tests.server.conftest import serving

STORE = ["--store", "sqlite:///store.db"]
SCRIPT = '{"rules": [{"node": "rate", "text": "Quite good, I would say."}]}'
SCHEMA: JsonObject = {"type": "object", "required": ["score"], "properties": {"score": {"type": "integer"}}}
FLOW: JsonObject = {
    "pointsman": 1,
    "id": "rating",
    "nodes": [{"id": "rate", "type": "agent", "config": {"prompt": "Rate it.", "outputSchema": SCHEMA}}],
    "edges": [],
}


def test_the_terminal_shows_the_answer_that_did_not_fit_its_schema(prompt: Prompt) -> None:
    Path("rating.json").write_text(json.dumps(FLOW))
    Path("script.json").write_text(SCRIPT)
    ran = prompt("run", "rating.json", "--script", "script.json", *STORE)
    assert ran.code == 1
    assert "the last answer of the model: Quite good, I would say." in ran.err
    execution = prompt("list", "--json", *STORE).json["executions"][0]["executionId"]
    assert "the last answer of the model: Quite good, I would say." in prompt("show", execution, *STORE).out


async def test_the_api_has_the_answer_that_did_not_fit_its_schema() -> None:
    async with serving(script=read_script(SCRIPT)) as served:
        await served.save(json.dumps(FLOW))
        execution = await served.execute("rating")
        (error,) = (await served.read(execution))["errors"]
    assert error["details"]["answer"] == "Quite good, I would say."
