"""The content of each observability level, what no level shows, and that levels do not affect recovery and replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from pointsman.auth.redaction import MASK, Redactor, redactor_for
from pointsman.executions.opening import GivenAnswer, drive
from pointsman.executions.public_events import observability_of, public_delta
from pointsman.settings import Settings
from pointsman.settings.sections import LEVELS, Level
from pointsman.testing.clock import run_virtually
from pointsman.values import JsonObject
from tests.scenarios import installation, written

FLOW = """\
pointsman: 1
id: flow
config: {observability: %s}
input: {type: object}
nodes:
  - {id: ask, type: agent, config: {prompt: "Say {goal}"}, outputs: {text: result}}
  - {id: review, type: human, config: {message: "Well?", options: [{value: go}]}}
  - {id: again, type: agent, config: {prompt: "Again {text}"}}
edges: [{source: ask, target: review}, {source: review, target: again}]
"""
CANARY = "canary-94f1c0de77"
SILENT_OF_LEVEL = FLOW.replace("config: {observability: %s}\n", "")


def story(level: Level, given: JsonObject, **settings: object) -> str:
    async def run() -> list[JsonObject]:
        async with installation(settings=settings) as app:
            execution = await app.start(written(FLOW % level), given)
            await drive(execution, (GivenAnswer("review", "go"),))
            return await app.public_events(execution.id)

    return str(run_virtually(run()))


@pytest.mark.requirement("S1-02", "S1-21", "S1-98")
@pytest.mark.parametrize(
    ("level", "steps", "content"), [("minimal", False, False), ("standard", True, False), ("full", True, True)]
)
def test_an_observability_level_shows_or_hides_steps_and_content(level: Level, *, steps: bool, content: bool) -> None:
    told = story(level, {"goal": "tides"})
    assert ("workflow.node.start" in told, "tides" in told) == (steps, content)
    assert "workflow.human.required" in told
    assert "workflow.complete" in told


@pytest.mark.parametrize("level", LEVELS)
def test_no_level_shows_a_secret_or_a_field_named_like_one(level: Level) -> None:
    given: JsonObject = {"goal": f"use {CANARY} now", "customer": {"Api-Key": "short", "name": "Ada"}}
    told = story(level, given, secrets={"DOOR": CANARY})
    assert CANARY not in told
    assert "short" not in told
    assert ("'Api-Key': '***'" in told, "'name': 'Ada'" in told) == ((level == "full"),) * 2


def test_settings_give_the_default_level_and_an_upper_bound() -> None:
    async def level_of(document: str, observability: JsonObject) -> str:
        async with installation(settings={"observability": observability}) as app:
            execution = await app.start(written(document), {"goal": "x"})
            return observability_of(execution.state.setup.options)

    async def run() -> list[str]:
        return [
            await level_of(SILENT_OF_LEVEL, {}),
            await level_of(SILENT_OF_LEVEL, {"level": "full"}),
            await level_of(FLOW % "minimal", {"level": "full"}),
            await level_of(FLOW % "full", {"at_most": "standard"}),
            await level_of(SILENT_OF_LEVEL, {"at_most": "minimal"}),
        ]

    assert run_virtually(run()) == ["standard", "full", "minimal", "standard", "minimal"]


def test_live_events_follow_the_level_too() -> None:
    call: JsonObject = {"kind": "tool_call", "tool": "post", "arguments": {"to": "Ada", "password": "hunter2"}}
    redact = redactor_for(Settings())
    assert [public_delta(call, level, redact) for level in LEVELS] == [
        None,
        {"kind": "tool_call", "tool": "post"},
        {"kind": "tool_call", "tool": "post", "arguments": {"to": "Ada", "password": MASK}},
    ]
    text: JsonObject = {"kind": "text", "text": "Dear"}
    assert [public_delta(text, level, redact) for level in LEVELS] == [None, text, text]


def test_secrets_are_masked_in_texts_and_names_longest_first() -> None:
    redact = Redactor(("*token", "authorization"), ("secret-value", "secret-value-longer", "short"))
    told: JsonObject = {
        "access_token": {"deep": 1},
        "Authorization": "Bearer x",
        "token": None,
        "tokens": 12,
        "list": ["a secret-value-longer b", {"secret-value": True}],
        "short": "short",
    }
    assert redact(told) == {
        "access_token": MASK,
        "Authorization": MASK,
        "token": None,
        "tokens": 12,
        "list": [f"a {MASK} b", {MASK: True}],
        "short": "short",
    }


@pytest.mark.integration
@pytest.mark.parametrize("level", LEVELS)
def test_every_level_allows_resume_in_another_process_and_replay(level: Level, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"

    async def run() -> tuple[str, object, bool]:
        async with installation(store=store) as app:
            execution = await app.start(written(FLOW % level), {"goal": "tides"})
            await execution.settled()
        async with installation(store=store) as app:
            execution = await app.open(execution.id)
            await drive(execution, (GivenAnswer("review", "go"),))
        async with installation(store=store) as app:
            replay = await app.replay(execution.id)
            view = await app.view(execution.id)
            return str(view["status"]), view["input"], not replay.differences

    assert run_virtually(run()) == ("completed", {"goal": "tides"}, True)
