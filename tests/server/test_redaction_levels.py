"""The level of detail of an execution over HTTP, and secrets that no level shows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pointsman.settings import Settings
from tests.server.conftest import Served, serving
from tests.server.flows import LETTER

CANARY = "canary-7d21f0"
DOOR = "open-sesame-4471"
LEVELLED = LETTER.replace("output: {letter: text}", "config: {observability: %s}\noutput: {sent: goal}")
GIVEN = {"goal": f"{CANARY} by {DOOR}", "customer": {"apiKey": "short-one"}}
KEEPING = Settings(delays=False, secrets={"DOOR": DOOR})


async def read_all(served: Served, execution: str) -> dict[str, str]:
    """Return all answers that contain the raw record of an execution."""
    address = f"/api/workflows/executions/{execution}"
    paths = ("events", "state", "state?at=1", "export", "timeline")
    return {path: (await served.client.get(f"{address}/{path}")).text for path in paths}


@pytest.mark.requirement("S1-98")
async def test_minimal_observability_hides_content_even_after_a_restart(file_store: str) -> None:
    async with serving(file_store, settings=KEEPING) as served:
        await served.save(LEVELLED % "minimal")
        execution = await served.execute("letter", GIVEN)
        waiting = await read_all(served, execution)
        seen = await served.read(execution)
        assert (seen["observability"], seen["input"], seen["state"]) == ("minimal", {}, {})
        assert {"input", "state"} <= set(seen["withheld"])
        assert [gate["message"] for gate in seen["waiting"]] == ["Send it?"], "a person must know what is asked"
        answer = {"gateId": "review", "action": "approve", "comment": f"as {CANARY} says"}
        await served.act(execution, "respond", answer)
        await served.read_events(execution)
    async with serving(file_store, settings=KEEPING) as served:
        ended = await read_all(served, execution)
        for path, text in (*waiting.items(), *ended.items()):
            assert CANARY not in text, path
            assert "Write about" not in text, path
        events = json.loads(ended["events"])["events"]
        assert [one["step"] for one in events if one["kind"] == "step_started"] == ["write", "review"]
        started = events[0]
        assert (started["workflow"], started["withheld"]) == ("letter", ["input", "options"])
        (done,) = (one for one in events if one["kind"] == "step_succeeded" and one["node"] == "write")
        assert (done["usage"]["model_calls"], "result" in done["withheld"]) == (1, True)
        assert json.loads(ended["export"])["code"] == "hidden-by-redaction"
        assert (await served.read(execution))["output"]["sent"].startswith(CANARY), "what it was started for is told"


@pytest.mark.parametrize("level", ["standard", "full"])
async def test_other_observability_levels_show_content_without_secrets(level: str) -> None:
    async with serving(settings=KEEPING) as served:
        await served.save(LEVELLED % level)
        execution = await served.execute("letter", GIVEN)
        told = await read_all(served, execution)
        for path in ("events", "state", "state?at=1"):
            assert CANARY in told[path], path
            assert DOOR not in told[path], path
            assert "short-one" not in told[path], path
            assert '"apiKey":"***"' in told[path], path
        assert "withheld" not in told["events"] + told["state"]
        assert CANARY in told["export"]


async def test_an_observability_level_applies_from_a_migration_on(file_store: str) -> None:
    async with serving(file_store) as served:
        await served.save(LEVELLED % "standard")
        execution = await served.execute("letter", GIVEN)
        assert CANARY in (await read_all(served, execution))["events"]
        await served.save(LEVELLED % "minimal")
        assert (await served.act(execution, "move", {"to": "letter"}))["moved"]
        assert CANARY not in "".join((await read_all(served, execution)).values())
    async with serving(file_store) as served:
        assert CANARY not in "".join((await read_all(served, execution)).values())


async def test_a_failure_is_shown_without_its_content(served: Served) -> None:
    failing: dict[str, Any] = {
        "pointsman": 1,
        "id": "fails",
        "config": {"observability": "minimal"},
        "nodes": [{"id": "sum", "type": "transform", "config": {"set": {"n": "number(text)"}}}],
        "input": {"type": "object"},
    }
    await served.save(json.dumps(failing))
    execution = await served.execute("fails", {"text": CANARY})
    seen = await served.read(execution)
    assert seen["status"] == "failed"
    assert [sorted(one) for one in seen["errors"]] == [["code", "message", "nodeId"]]
    events = json.loads((await read_all(served, execution))["events"])["events"]
    failures = [one["failure"] for one in events if "failure" in one]
    assert failures
    assert all(set(one) <= {"code", "message", "retryable"} for one in failures)
