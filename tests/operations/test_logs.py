"""Logs: levels, formats, and data that is never logged."""

from __future__ import annotations

import io
import json
import logging

import pytest

from pointsman.executions.opening import GivenAnswer, drive
from pointsman.operations.logs import EVENTS, log_event, logging_to
from pointsman.settings.sections import LEVELS, LogSettings
from pointsman.testing.clock import run_virtually
from pointsman.values import JsonObject
from tests.scenarios import installation, written

CANARY = "canary-5d1e7700aa"
FLOW = """\
pointsman: 1
id: flow
config: {observability: %s}
input: {type: object}
nodes:
  - {id: ask, type: agent, config: {prompt: "Say {goal}"}, outputs: {text: result}}
  - {id: review, type: human, config: {message: "Is {goal} fine?", options: [{value: go}]}}
  - {id: send, type: tool, config: {tool: post}}
edges: [{source: ask, target: review}, {source: review, target: send}]
"""
SCRIPT = """\
rules: [{node: ask, text: "It is CANARY"}]
tools: {post: {results: [{fail: {message: "the box of CANARY is full"}}]}}
""".replace("CANARY", CANARY)


def logged(settings: LogSettings, level: str = "standard") -> str:
    async def run() -> str:
        told = io.StringIO()
        async with installation(SCRIPT, settings={"secrets": {"DOOR": CANARY}}) as app:
            with logging_to(app.context, settings, told):
                execution = await app.start(written(FLOW % level), {"goal": "tides"})
                await drive(execution, (GivenAnswer("review", "go"),))
        return told.getvalue()

    return run_virtually(run())


def lines(settings: LogSettings, level: str = "standard") -> list[JsonObject]:
    return [json.loads(line) for line in logged(settings, level).splitlines()]


def test_a_json_log_line_has_time_event_and_position() -> None:
    told = lines(LogSettings(format="json"))
    assert [line["event"] for line in told] == [
        "workflow.start",
        "workflow.human.required",
        "workflow.human.answered",
        "workflow.node.error",
        "workflow.failed",
    ]
    assert {(line["workflowId"], str(line["executionId"])[:5]) for line in told} == {("flow", "exec-")}
    assert [line["level"] for line in told] == ["info", "info", "info", "warning", "error"]
    assert all(str(line["time"]).endswith("Z") for line in told)
    failed = told[3]
    assert (failed["nodeId"], failed["step"], failed["attempt"]) == ("send", "send", 1)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("form", ["text", "json"])
def test_content_is_logged_only_at_level_full_and_without_secrets(level: str, form: str) -> None:
    told = logged(LogSettings.model_validate({"format": form, "level": "debug"}), level)
    assert CANARY not in told
    assert ("tides" in told) == (level == "full")
    assert "the box of *** is full" in told


def test_a_log_level_omits_lower_levels() -> None:
    by_level = {one: [line["event"] for line in lines(LogSettings(format="json", level=one))] for one in WEIGHTS}
    assert by_level["error"] == ["workflow.failed"]
    assert by_level["warning"] == ["workflow.node.error", "workflow.failed"]
    assert set(by_level["info"]) < set(by_level["debug"])
    assert {"workflow.node.start", "workflow.checkpoint.saved"} <= set(by_level["debug"])
    assert set(EVENTS) >= set(by_level["info"])


WEIGHTS = ("debug", "info", "warning", "error")


def test_a_text_log_entry_is_one_line_and_includes_libraries() -> None:
    async def run() -> list[str]:
        told = io.StringIO()
        async with installation() as app:
            with logging_to(app.context, LogSettings(), told):
                log_event(logging.INFO, "odd", {"a": "two\nlines", "b": 'q"', "c": "plain", "d": None, "e": ""})
                logging.getLogger("library").warning("careful: %s", "now")
                logging.getLogger("library").info("not that much")
            log_event(logging.ERROR, "later", {})
        return told.getvalue().splitlines()

    odd, library = run_virtually(run())
    assert odd.endswith(r'odd  a="two\nlines"  b="q\""  c=plain  e=""')
    assert library.endswith('log  logger=library  message="careful: now"')
