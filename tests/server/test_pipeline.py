"""The pipeline over HTTP: a command starts it, and its result and session can be read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pointsman.workflows.scripts import load_script, parse_script
from tests.server.conftest import QUIET, Served, serving
from tests.server.flows import secret_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "agentforge"
COMMAND = {"command": "Write a proposal for optimizing warehouse operations, send to john@example.com"}
FIELDS = "session_id goal plan research developer writer confidence reviewer final email_sent created_at"


async def saved(served: Served) -> None:
    await served.save((EXAMPLE / "agentforge.yaml").read_text(encoding="utf-8"))


@pytest.mark.requirement("S2-01", "S2-06", "S2-47", "S2-63", "S2-O1")
async def test_a_command_is_executed_and_its_session_survives_a_restart(file_store: str) -> None:
    script = load_script(EXAMPLE / "script.yaml")
    async with serving(file_store, script=script) as served:
        await saved(served)
        reply = await served.client.post("/run", json=COMMAND)
    assert reply.status_code == 200, reply.text
    output = reply.json()
    assert list(output) == FIELDS.split()
    assert output["goal"] == "Write a proposal for optimizing warehouse operations"
    assert re.fullmatch("ses_[0-9a-f]{8}", output["session_id"])
    async with serving(file_store) as later:
        found = (await later.client.get(f"/session/{output['session_id']}")).json()
        unknown = await later.client.get("/session/ses_00000000")
    (began,) = found["sessions"]
    assert (began["email"], began["status"]) == ("john@example.com", "completed")
    assert [one["value"] for one in found["plans"]] == [output["plan"]]
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown-session")


@pytest.mark.requirement("S2-O1", "S2-04")
@pytest.mark.parametrize(
    ("path", "body", "email"),
    [
        ("/run", {"goal": "Write a memo"}, None),
        ("/run", {"command": "Write a memo"}, None),
        ("/run/legacy", {"goal": "Write a memo", "email": "ann@example.org"}, "ann@example.org"),
        ("/run/legacy", {"goal": "Write a memo", "email": None}, None),
    ],
)
async def test_a_goal_is_executed(path: str, body: dict[str, Any], email: str | None) -> None:
    async with serving(script=load_script(EXAMPLE / "script.yaml")) as served:
        await saved(served)
        output = (await served.client.post(path, json=body)).json()
        (began,) = (await served.client.get(f"/session/{output['session_id']}")).json()["sessions"]
    assert (output["goal"], began["goal"], began["email"]) == ("Write a memo", "Write a memo", email)
    assert output["email_sent"] is False


@pytest.mark.requirement("S2-02", "S2-04")
@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        ("/run", {}, 422, "either"),
        ("/run", {"command": "a", "goal": "b"}, 422, "either"),
        ("/run", {"command": "a", "email": "a@example.org"}, 422, "belongs to a `goal`"),
        ("/run", {"command": 7}, 422, "body/command"),
        ("/run", {"command": "a", "comand": "b"}, 422, "body/comand"),
        ("/run", {"command": ", send to a@example.org"}, 400, "contains no task"),
        ("/run", {"goal": "  "}, 400, "contains no task"),
        ("/run/legacy", {}, 422, "body/goal"),
        ("/run/legacy", {"goal": "a", "email": "nobody"}, 400, "'nobody' is not a mail address"),
    ],
)
async def test_an_impossible_command_is_refused_with_its_position(
    served: Served, path: str, body: dict[str, Any], status: int, says: str
) -> None:
    await saved(served)
    reply = await served.client.post(path, json=body)
    assert reply.status_code == status, reply.text
    assert says in reply.text
    listed = (await served.client.get("/api/workflows/executions")).json()
    assert listed["executions"] == []


@pytest.mark.requirement("S2-01", "T2-1")
async def test_an_empty_store_runs_the_built_in_pipeline(file_store: str) -> None:
    async with serving(file_store) as served:
        reply = await served.client.post("/run", json={"command": "Write a memo"})
    assert reply.status_code == 200, reply.text
    output = reply.json()
    assert list(output) == FIELDS.split()
    async with serving(file_store) as later:
        (began,) = (await later.client.get(f"/session/{output['session_id']}")).json()["sessions"]
        assert (began["workflow_id"], began["status"]) == ("builtin:agentforge", "completed")
        await saved(later)
        named = (await later.client.post("/run", json={"goal": "Write a memo"})).json()["session_id"]
        (began,) = (await later.client.get(f"/session/{named}")).json()["sessions"]
        assert began["workflow_id"] == "agentforge", "what is saved is what is meant"


async def test_an_unknown_pipeline_is_not_found() -> None:
    async with serving(settings=QUIET.model_copy(update={"pipeline": "nowhere"})) as served:
        reply = await served.client.post("/run", json=COMMAND)
    assert (reply.status_code, reply.json()["code"]) == (404, "unknown-workflow")


@pytest.mark.requirement("S2-O2", "S2-O3", "S2-62")
async def test_a_rate_limit_is_reported_and_a_person_decides_how_to_continue() -> None:
    script = parse_script("rules:\n- {node: writer, times: 2, fail: 429}\n")
    async with serving(script=script) as served:
        await saved(served)
        reply = await served.client.post("/run", json={"goal": "Write a memo"})
        said = reply.json()
        assert (reply.status_code, said["code"]) == (429, "model-rate-limited")
        (began,) = (await served.client.get(f"/session/{said['session_id']}")).json()["sessions"]
        assert (began["status"], began["execution_id"]) == ("failed", said["execution_id"])
        await served.act(said["execution_id"], "retry", {})
        execution = await served.app.open(said["execution_id"])
        assert await execution.settled() == "completed"


async def test_a_pipeline_and_session_of_a_group_are_hidden_from_others() -> None:
    async with serving(is_local=False) as served:
        inside = await served.key("ada", "editor", "desk")
        outside = await served.key("bob", "editor", "day")
        document = secret_of("desk").replace("id: secret", "id: agentforge")
        assert (await served.client.post("/api/workflows", content=document, headers=inside)).status_code == 201
        mine = await served.client.post("/run", json={"goal": "a memo"}, headers=inside)
        assert mine.status_code == 200, mine.text
        theirs = await served.client.post("/run", json={"goal": "a memo"}, headers=outside)
        assert (theirs.status_code, theirs.json()["code"]) == (404, "unknown-workflow")
        (one,) = (await served.client.get("/api/workflows/executions", headers=inside)).json()["executions"]
        for headers, status in ((inside, 200), (outside, 404)):
            reply = await served.client.get(f"/session/{one['sessionId']}", headers=headers)
            assert reply.status_code == status
