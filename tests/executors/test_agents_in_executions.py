"""Agents in durable executions: the language of their texts, and failures that do not end the execution."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.executions.opening import drive
from pointsman.models.failures import ModelUnusable
from pointsman.settings import Settings
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.values import Json, JsonObject
from pointsman.workflows.scripts import parse_script
from tests.examples.example_runs import overheard
from tests.scenarios import installation, play, written

POLYGLOT = """
pointsman: 1
id: polyglot
nodes:
  - id: first
    type: agent
    config:
      system: {en: You write., de: Du schreibst.}
      prompt: {en: "Write about {{topic}}.", de: "Schreibe über {{topic}}."}
  - {id: ask, type: human, config: {message: {en: Good?, de: Gut?}}}
  - {id: second, type: agent, config: {prompt: {en: Again., de: Noch einmal.}}}
edges: [{source: first, target: ask}, {source: ask, target: second, label: approve}]
"""


@pytest.mark.integration
def test_agents_keep_the_language_of_their_execution_when_settings_change(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"

    async def run() -> list[str]:
        async with installation(store=store, settings={"language": "de"}) as app:
            german = await app.start(written(POLYGLOT), {"topic": "Schiffe"})
            french = await app.start(written(POLYGLOT), {"topic": "ships"}, language="fr")
            await drive(german)
            await drive(french)
            messages = [german.gates[0].at.gate, french.gates[0].at.gate]
        async with installation(store=store, settings={"language": "en"}) as app:
            for name in (german.id, french.id):
                execution = await app.open(name)
                await execution.answer("ask", "approve")
                await drive(execution)
        return [gate.message for gate in messages if gate is not None]

    with overheard() as asked:
        assert run_virtually(run()) == ["Gut?", "Good?"]
    told = [(one.system, cast("JsonObject", one.messages[-1])["content"]) for one in asked]
    assert told == [
        ("Du schreibst.", "Schreibe über Schiffe."),
        ("You write.", "Write about ships."),
        ("", "Noch einmal."),
        ("", "Again."),
    ]


NUMBER: JsonObject = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
FAULTS: list[tuple[str, JsonObject, str]] = [
    ("{fail: 401}", {}, "model-unauthorized"),
    ("{fail: 429}", {}, "model-rate-limited"),
    ("{fail: 503}", {}, "model-unavailable"),
    ("{fail: timeout}", {}, "model-timeout"),
    ("{fail: connection}", {}, "model-unreachable"),
    ("{fail: 404}", {}, "model-not-found"),
    ('{text: ""}', {}, "output-empty"),
    ('{text: "{broken"}', {"outputSchema": NUMBER}, "output-schema"),
    ("{text: no}", {"result": "json"}, "output-json"),
    ("{toolCalls: [{name: rm}]}", {}, "tool-loop"),
    ("{text: fine}", {"guardrails": {"after": [{"expression": "false"}]}}, "guardrail"),
    ("{text: fine}", {"inputFiles": ["topic"]}, "file-unreadable"),
]


MENDED = "rules: [{json: {n: 1}}]"
NOT_THE_MODELS = ("guardrails", "inputFiles")
"""Fields with errors that another model does not correct."""


def talking(config: JsonObject, *ways: Json) -> Workflow:
    said: JsonObject = {"prompt": "Speak of {{topic}}.", "model": "scripted", **config}
    ends: list[Json] = [{"id": "end", "type": "end"}, {"id": "sorry", "type": "end", "config": {"status": "sorry"}}]
    nodes: list[Json] = [{"id": "say", "type": "agent", "config": said}, *ends[: len(ways) + 1]]
    edges: list[Json] = [{"source": "say", "target": "end"}, *ways]
    return Workflow.of({"pointsman": 1, "id": "w", "nodes": nodes, "edges": edges})


def elsewhere(script: str, store: str) -> Pointsman:
    """Return an app with a provider, all of whose models are scripted."""
    providers = {"own": {"base_url": "http://127.0.0.1:9/v1"}}
    settings = Settings.model_validate({"store": store, "providers": providers})
    return Pointsman(settings=settings, script=parse_script(script), clock=VirtualClock())


@pytest.mark.integration
@pytest.mark.parametrize(("answer", "config", "code"), FAULTS, ids=[code for _, _, code in FAULTS])
def test_a_stuck_agent_fails_with_a_hint_and_continues_after_the_repair(
    answer: str, config: JsonObject, code: str, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"

    async def run() -> tuple[str, list[JsonObject], str]:
        async with elsewhere(f"rules: [{answer}]", store) as app:
            execution = await app.start(talking(config), {"topic": "ships"}, lenient=True)
            status, view = await execution.settled(), await execution.view()
        async with elsewhere(MENDED, store) as app:
            again = await app.open(execution.id)
            await again.retry()
            return status, cast("list[JsonObject]", view["errors"]), await again.settled()

    status, errors, after = run_virtually(run())
    assert (status, [error["code"] for error in errors]) == ("failed", [code])
    assert errors[0]["hint"]
    assert after == ("failed" if any(key in config for key in NOT_THE_MODELS) else "completed")


def test_an_unknown_tool_fails_the_agent_with_a_hint() -> None:
    async def run() -> tuple[str, list[JsonObject]]:
        async with Pointsman("memory:", settings=Settings(), clock=VirtualClock()) as app:
            execution = await app.start(talking({"tools": ["nowhere"]}), {"topic": "ships"}, lenient=True)
            return await execution.settled(), cast("list[JsonObject]", (await execution.view())["errors"])

    status, errors = run_virtually(run())
    assert (status, [error["code"] for error in errors]) == ("failed", ["unknown-tool"])
    assert errors[0]["hint"]


def test_an_execution_whose_model_cannot_be_called_does_not_start() -> None:
    async def run() -> None:
        async with Pointsman("memory:", settings=Settings(), clock=VirtualClock()) as app:
            with pytest.raises(ModelUnusable, match="'say' cannot call 'xai:none'") as refused:
                await app.start(talking({"model": "xai:none"}), {"topic": "ships"}, lenient=True)
            assert "pydantic-ai-slim[xai]" in refused.value.hint, "the client that must be installed"
            assert await app.executions() == []

    run_virtually(run())


def test_an_error_edge_takes_a_failure_of_an_agent() -> None:
    way: JsonObject = {"source": "say", "target": "sorry", "condition": {"type": "error", "codes": ["output-empty"]}}

    async def run() -> tuple[str, list[str]]:
        async with elsewhere('rules: [{text: ""}]', "memory:") as app:
            execution = await app.start(talking({}, way), {"topic": "ships"})
            return await execution.settled(), (await execution.view())["path"]

    assert run_virtually(run()) == ("completed", ["say", "sorry"])


DESK = """
pointsman: 1
id: desk
entry: triage
config: {limits: {steps: 20}}
nodes:
  - {id: triage, type: agent, config: {prompt: Who can help?, handoffs: [billing, expert]}}
  - {id: billing, type: agent, config: {prompt: Help., handoffs: [triage]}}
  - {id: technics, type: agent, config: {agent: expert, prompt: Help.}}
  - {id: end, type: end}
agents: {expert: {system: You know machines.}}
edges: [{source: triage, target: end}, {source: billing, target: end}, {source: technics, target: end}]
"""

AROUND = """
  {node: triage, visit: 1, next: billing}, {node: billing, next: triage}, {node: triage, next: technics}, {text: Fixed.}
"""


@pytest.mark.parametrize(
    ("rules", "path"),
    [
        ("{node: triage, text: I can.}", ["triage", "end"]),
        ("{node: triage, next: billing}, {text: Paid.}", ["triage", "billing", "end"]),
        ("{node: triage, next: technics}, {text: Fixed.}", ["triage", "technics", "end"]),
        (AROUND, ["triage", "billing", "triage", "technics", "end"]),
    ],
)
def test_an_agent_follows_its_hand_off_or_its_edges(rules: str, path: list[str]) -> None:
    played = play(DESK, script=f"rules: [{rules}]")
    assert (played.status, played.path) == ("completed", path)


def test_invalid_hand_offs_are_reported() -> None:
    document = DESK.replace("[billing, expert]", "[biling]").replace("machines.}", "machines., handoffs: [triage]}")

    async def run() -> list[tuple[str, str]]:
        async with installation() as app:
            found = (await app.check(written(document))).problems
            return [(p.code, p.pointer) for p in found if "hand" in p.pointer]

    assert run_virtually(run()) == [
        ("unknown-node", "/nodes/0/config/handoffs/0"),
        ("setting-without-effect", "/agents/expert/handoffs"),
    ]
