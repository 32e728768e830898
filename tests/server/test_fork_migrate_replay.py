"""Delegation, migration, replay and timelines over HTTP."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from pointsman import Client
from pointsman.engine.decide.migrate import MigrationRefused
from pointsman.values import JsonObject
from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN, LETTER, secret_of

ASKS_ADA = LETTER.replace('message: "Send it?"', 'message: "Send it?", approvers: {users: [ada]}')


async def test_a_delegation_survives_a_restart(file_store: str) -> None:
    async with serving(file_store, is_local=False) as served:
        ada, ben, eve = [await served.key(name, "operator") for name in ("ada", "ben", "eve")]
        editor = await served.key("ed", "editor")
        assert (await served.client.post("/api/workflows", content=ASKS_ADA, headers=editor)).status_code == 201
        body = {"input": {"goal": "tides"}, "wait": True}
        started = await served.client.post("/api/workflows/letter/execute", json=body, headers=ada)
        address = f"/api/workflows/executions/{started.json()['executionId']}"
        onto = {"gateId": "review", "to": "ben", "comment": "You know it."}
        refused = await served.client.post(f"{address}/delegate", json=onto, headers=eve)
        assert (refused.status_code, refused.json()["code"]) == (403, "not-an-approver")
        told = await served.client.post(f"{address}/delegate", json=onto, headers=ada)
        assert (told.status_code, told.json()["status"]) == (200, "waiting"), told.text
        nobody = await served.client.post(f"{address}/delegate", json={**onto, "gateId": "none"}, headers=ada)
        assert (nobody.status_code, nobody.json()["code"]) == (404, "no-such-gate")
    async with serving(file_store, is_local=False) as served:
        (gate,) = (await served.client.get("/api/inbox", headers=ben)).json()["gates"]
        assert gate["executionId"] == started.json()["executionId"]
        answer = {"gateId": "review", "action": "approve"}
        assert (await served.client.post(f"{address}/respond", json=answer, headers=ada)).status_code == 403
        done = await served.client.post(f"{address}/respond", json=answer, headers=ben)
        assert done.status_code == 200, done.text
        late = await served.client.post(f"{address}/delegate", json=onto, headers=ben)
        assert (late.status_code, late.json()["code"]) == (409, "gate-closed")


async def test_a_resume_carries_out_deadlines_that_passed_without_a_server(file_store: str) -> None:
    asks = LETTER.replace("options: [{value: approve}", "timeout: 2s, onTimeout: approve, options: [{value: approve}")
    assert asks != LETTER
    async with serving(file_store) as served:
        await served.save(asks)
        execution = await served.execute("letter", {"goal": "tides"})
    await asyncio.sleep(2)
    async with serving(file_store) as served:
        resumed = await served.act(execution, "resume")
        assert resumed["waiting"] == [], "the gate is closed when the request is answered"
        assert (await served.ended(execution))["status"] == "completed"


async def test_a_gate_that_anyone_may_answer_cannot_be_delegated(served: Served) -> None:
    await served.save(LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    refused = await served.act(execution, "delegate", {"gateId": "review", "to": "ben"}, expect=403)
    assert refused["code"] == "not-delegable"


async def test_an_execution_migrates_to_a_compatible_revision(served: Served) -> None:
    await served.save(LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    await served.save(
        LETTER.replace("id: review", "id: look").replace(": review,", ": look,").replace(": review}", ": look}")
    )
    found = await served.act(execution, "move", {"to": "letter@2", "checkOnly": True})
    assert (found["fits"], found["moved"]) == (False, False)
    assert "review" in {one["where"] for one in found["problems"]}
    refused = await served.act(execution, "move", {"to": "letter@2"}, expect=409)
    assert refused["code"] == "migration-refused"
    await served.save(LETTER.replace("output: {letter: text}", "output: {moved: text}"))
    assert (await served.act(execution, "move", {"to": "letter", "checkOnly": True}))["moved"] is False
    assert (await served.act(execution, "move", {"to": "letter@3"}))["moved"] is True
    await served.act(execution, "respond", {"gateId": "review", "action": "approve"})
    await served.read_events(execution)
    seen = await served.read(execution)
    assert (seen["status"], list(seen["output"])) == ("completed", ["moved"])
    events = (await served.client.get(f"/api/workflows/executions/{execution}/events")).json()["events"]
    assert [one["by"] for one in events if one["kind"] == "moved"] == ["local"]
    refused = await served.act(execution, "move", {"to": "letter@1"}, expect=409)
    assert refused["code"] == "wrong-status"


async def test_an_operator_migrates_an_execution_only_to_the_latest_revision() -> None:
    """An older revision may lack the gate, or the approvers, that an editor has added since."""
    async with serving(is_local=False) as served:
        await served.key("root", "admin")
        editor = await served.key("ed", "editor")
        operator = await served.key("ann", "operator")
        served.client.headers.update(editor)
        await served.save(LETTER)
        await served.save(LETTER.replace("id: letter", "id: other"))
        await served.save(LETTER.replace("options:", "approvers: {users: [zoe]}, options:"))
        served.client.headers.update(operator)
        execution = await served.execute("letter", {"goal": "tides"})
        for older in ("letter@1", "other"):
            refused = await served.act(execution, "move", {"to": older}, expect=403)
            assert refused["code"] == "not-allowed"
        assert (await served.act(execution, "respond", {"gateId": "review", "action": "approve"}, expect=403))["code"]
        served.client.headers.update(editor)
        await served.save(LETTER.replace("options:", "approvers: {users: [ann]}, options:"))
        served.client.headers.update(operator)
        assert (await served.act(execution, "move", {"to": "letter"}))["moved"] is True
        served.client.headers.update(editor)
        assert (await served.act(execution, "move", {"to": "letter@2"}))["moved"] is True


async def test_an_operator_starts_and_forks_only_the_latest_revision() -> None:
    async with serving(is_local=False) as served:
        await served.key("root", "admin")
        editor = await served.key("ed", "editor")
        operator = await served.key("ann", "operator")
        served.client.headers.update(editor)
        await served.save(LETTER)
        served.client.headers.update(operator)
        first = await served.execute("letter", {"goal": "tides"})
        served.client.headers.update(editor)
        await served.save(LETTER.replace("options:", "approvers: {users: [zoe]}, options:"))
        served.client.headers.update(operator)
        sent = {"input": {"goal": "tides"}}
        refused = await served.client.post("/api/workflows/letter@1/execute", json=sent)
        assert (refused.status_code, refused.json()["code"]) == (403, "not-allowed")
        assert "'ann' is an operator and may not run revision 1 of 'letter'" in refused.text
        assert (await served.act(first, "fork", {}, expect=403))["code"] == "not-allowed"
        assert (await served.client.post("/api/workflows/letter@2/execute", json=sent)).is_success
        assert (await served.act(first, "move", {"to": "letter"}))["moved"] is True
        assert (await served.act(first, "fork", {}, expect=202))["executionId"]
        served.client.headers.update(editor)
        assert (await served.client.post("/api/workflows/letter@1/execute", json=sent)).is_success
        assert (await served.act(first, "fork", {}, expect=202))["executionId"]


async def test_migrate_and_replay_refuse_hidden_revisions() -> None:
    async with serving(is_local=False) as served:
        inside, outside = await served.key("ada", "editor", "desk"), await served.key("bob", "editor")
        assert (
            await served.client.post("/api/workflows", content=secret_of("desk"), headers=inside)
        ).status_code == 201
        assert (await served.client.post("/api/workflows", content=LETTER, headers=outside)).status_code == 201
        body = {"input": {"goal": "tides"}, "wait": True}
        started = await served.client.post("/api/workflows/letter/execute", json=body, headers=outside)
        address = f"/api/workflows/executions/{started.json()['executionId']}"
        for verb, said in (("move", {"to": "secret", "checkOnly": True}), ("replay", {"against": "secret"})):
            reply = await served.client.post(f"{address}/{verb}", json=said, headers=outside)
            assert (reply.status_code, reply.json()["code"]) == (404, "unknown-workflow"), verb


async def test_a_replay_compares_the_decided_journal(served: Served) -> None:
    await served.save(LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    again = await served.act(execution, "replay")
    assert (again["same"], again["status"], again["differences"]) == (True, "waiting", [])
    await served.save(LETTER.replace('message: "Send it?"', 'message: "Really?"'))
    other = await served.act(execution, "replay", {"against": "letter@2"})
    assert other["same"] is False
    assert any(one["now"] == "Really?" for one in other["differences"]), other
    assert (await served.act(execution, "replay", {"against": "none"}, expect=404))["code"] == "unknown-workflow"
    assert (await served.read(execution))["seq"] == again["rows"], "nothing was written"


async def test_a_timeline_shows_the_durations_of_steps(served: Served) -> None:
    await served.save(LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    told = (await served.client.get(f"/api/workflows/executions/{execution}/timeline")).json()
    assert [(one["node"], one["kind"], one["status"]) for one in told["spans"]] == [
        ("write", "work", "done"),
        ("review", "gate", "open"),
    ]
    assert (told["status"], told["spans"][1]["endMs"]) == ("waiting", None)
    assert [(one["node"], one["modelCalls"]) for one in told["nodes"] if one["node"] == "write"] == [("write", 1)]


async def test_the_client_has_the_verbs_delegate_migrate_replay_and_timeline(served: Served) -> None:
    await served.save(CHAIN)
    await served.save(LETTER)
    async with Client(str(served.client.base_url)) as client:
        execution = await client.start("letter", {"goal": "tides"})
        assert await execution.settled() == "waiting"
        spans = cast("list[JsonObject]", (await execution.timeline())["spans"])
        assert [one["node"] for one in spans] == ["write", "review"]
        assert (await execution.replay())["same"] is True
        assert await execution.move("chain", check_only=True) != []
        with pytest.raises(MigrationRefused, match="review"):
            await execution.move("chain")
