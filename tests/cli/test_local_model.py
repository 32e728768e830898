"""Runs with a local model server: from the command line to the weights and back, as with a remote provider."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Prompt
from tests.local_model.server import ModelServer

pytestmark = pytest.mark.usefixtures("no_scripted_model")

FLOW = """
id: desk
entry: work
input: {properties: {question: {type: string}}, required: [question]}
nodes:
  - id: work
    type: agent
    outputs: {answer: result}
    config:
      prompt: "Work it out: {{ question }}"
      tools: [calculator]
      maxTokens: 400
  - id: judge
    type: agent
    outputs: {verdict: result}
    config:
      prompt: "Is this an answer? {{ answer }}"
      temperature: 0
      maxTokens: 200
      outputSchema:
        type: object
        properties: {verdict: {enum: [pass, fail]}, score: {type: integer}}
        required: [verdict, score]
        additionalProperties: false
edges: [{source: work, target: judge}]
"""


@pytest.fixture
def settings(own_place: Path, local_model: ModelServer) -> Path:
    """Settings with the local server as provider."""
    (own_place / "desk.yaml").write_text(FLOW, encoding="utf-8")
    (own_place / "pointsman.toml").write_text(
        f"""
model = "own:{local_model.name}"
store = "sqlite:///desk.db"
[providers.own]
base_url = "{local_model.address}/v1"
keys = ["{local_model.keys[0]}", "{local_model.keys[1]}"]
""",
        encoding="utf-8",
    )
    return own_place


def test_agents_with_a_tool_and_a_schema_run_on_a_local_model(settings: Path, prompt: Prompt) -> None:
    done = prompt("run", "desk.yaml", "--input", "question=2+2", "--json")
    assert done.code == 0, done.err
    verdict = done.json["state"]["verdict"]
    assert verdict["verdict"] in ("pass", "fail")
    assert isinstance(verdict["score"], int)
    shown = prompt("show", done.json["executionId"], "--json").json
    assert shown["usage"]["inputTokens"] > 100
    assert shown["usage"]["toolCalls"] >= 1


def test_a_local_model_stores_no_key(settings: Path, prompt: Prompt, local_model: ModelServer) -> None:
    assert prompt("run", "desk.yaml", "--input", "question=2+2").code == 0
    kept = b"".join(path.read_bytes() for path in settings.glob("desk.db*"))
    assert kept
    assert not any(key.encode() in kept for key in local_model.keys)


def test_models_ping_reaches_the_local_model(settings: Path, prompt: Prompt, local_model: ModelServer) -> None:
    pinged = prompt("models", "--ping", "--json")
    assert pinged.code == 0, pinged.err
    assert local_model.name in pinged.out
    assert not any(key in pinged.out + pinged.err for key in local_model.keys)
