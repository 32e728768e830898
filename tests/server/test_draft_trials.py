"""Trials of drafts over HTTP: the submitted draft is what runs."""

from __future__ import annotations

from typing import Any

from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN, LETTER, secret_of

REWORDED = {"op": "change_node", "node": "second", "set": {"/config/prompt": "three"}}


async def tried(served: Served, workflow: str, body: Any, *, expect: int = 202) -> Any:
    reply = await served.client.post(f"/api/workflows/{workflow}/try", json=body)
    assert reply.status_code == expect, reply.text
    return reply.json()


async def outcome(served: Served, workflow: str, body: Any) -> Any:
    """Return the settled view of the trial."""
    execution = (await tried(served, workflow, body))["executionId"]
    assert execution.startswith("try-")
    await (await served.app.open(execution)).settled()
    return await served.read(execution)


async def test_a_draft_run_executes_unsaved_changes(served: Served) -> None:
    await served.save(CHAIN)
    found = await outcome(served, "chain", {"operations": [REWORDED]})
    assert (found["status"], found["path"], found["trigger"]["kind"]) == ("completed", ["first", "second"], "trial")
    ran = (await served.client.get(f"/api/workflows/executions/{found['executionId']}/workflow")).json()
    assert ran["document"]["nodes"][1]["config"]["prompt"] == "three"
    saved = (await served.client.get("/api/workflows/chain")).json()
    assert (saved["revision"], "prompt: two" in saved["text"]) == (1, True)


async def test_a_draft_run_keeps_the_id_of_its_workflow(served: Served) -> None:
    await served.save(CHAIN)
    found = await outcome(served, "chain", {"document": CHAIN.replace("two", "four"), "until": ["first"]})
    assert (found["status"], found["path"]) == ("completed", ["first"])
    other = {"document": CHAIN.replace("id: chain", "id: other")}
    assert "not 'chain'" in (await tried(served, "chain", other, expect=422))["detail"]


async def test_lists_omit_partial_runs_unless_requested(served: Served) -> None:
    await served.save(CHAIN)
    trial = (await outcome(served, "chain", {}))["executionId"]
    real = await served.execute("chain")
    for address, ids in (("", [real]), ("?trials=true", [real, trial])):
        listed = (await served.client.get(f"/api/workflows/executions{address}")).json()["executions"]
        assert [one["executionId"] for one in listed] == ids


async def test_a_partial_run_continues_step_by_step_and_a_pinned_gate_does_not_open(served: Served) -> None:
    await served.save(LETTER)
    body = {"input": {"goal": "x"}, "pinned": {"review": {"action": "approve"}}, "breakpoints": ["write"]}
    found = await outcome(served, "letter", body)
    assert (found["status"], found["pausedBefore"], found["trial"]["breakpoints"]) == ("paused", "write", ["write"])
    await served.act(found["executionId"], "resume", {"step": True})
    await (await served.app.open(found["executionId"])).settled()
    assert (await served.read(found["executionId"]))["pausedBefore"] == "review"
    await served.act(found["executionId"], "resume")
    await (await served.app.open(found["executionId"])).settled()
    assert (await served.read(found["executionId"]))["path"] == ["write", "review", "send"]


async def test_a_partial_run_continues_after_a_restart(file_store: str) -> None:
    async with serving(file_store) as served:
        await served.save(LETTER)
        body = {"input": {"goal": "x"}, "pinned": {"write": "Dear all"}, "until": ["review"]}
        execution = (await outcome(served, "letter", body))["executionId"]
    async with serving(file_store) as served:
        found = await served.read(execution)
        assert (found["status"], found["state"]["text"]) == ("waiting", "Dear all")
        await served.act(execution, "respond", {"gateId": "review", "action": "approve"})
        await (await served.app.open(execution)).settled()
        found = await served.read(execution)
    assert (found["status"], found["path"]) == ("completed", ["write", "review"])


async def test_a_single_node_runs_with_the_given_data(served: Served) -> None:
    await served.save(LETTER)
    found = await outcome(served, "letter", {"node": "write", "input": {"goal": "tides"}})
    assert (found["status"], found["path"]) == ("completed", ["write"])


async def test_the_cost_of_a_draft_is_estimated_without_storing_it(served: Served) -> None:
    await served.save(CHAIN)
    played = await tried(served, "chain", {"operations": [REWORDED], "dryRun": True}, expect=200)
    assert [one["nodeId"] for one in played["calls"]] == ["first", "second"]
    listed = (await served.client.get("/api/workflows/executions?trials=true")).json()["executions"]
    assert listed == []


async def test_pinned_and_unreached_nodes_cost_nothing(served: Served) -> None:
    await served.save(CHAIN)
    body = {"dryRun": True, "pinned": {"first": "said"}, "breakpoints": ["second"]}
    played = await tried(served, "chain", body, expect=200)
    assert (played["status"], [one["nodeId"] for one in played["calls"]]) == ("completed", ["second"])
    played = await tried(served, "chain", {"dryRun": True, "until": ["first"]}, expect=200)
    assert [one["nodeId"] for one in played["calls"]] == ["first"]
    refused = await tried(served, "chain", {"dryRun": True, "pinned": {"nowhere": 1}}, expect=422)
    assert (refused["code"], refused["node"], refused["why"]) == ("partial-run-invalid", "nowhere", "no-such-node")


async def test_an_impossible_partial_run_is_refused_and_not_stored(served: Served) -> None:
    await served.save(CHAIN)
    for body, code in (
        ({"until": ["nowhere"]}, "partial-run-invalid"),
        ({"operations": [{"op": "remove_node", "node": "nowhere"}]}, "operation-refused"),
        ({"pinned": {"a": 1}, "speed": 1}, "request-invalid"),
    ):
        assert (await tried(served, "chain", body, expect=422))["code"] == code
    listed = (await served.client.get("/api/workflows/executions?trials=true")).json()["executions"]
    assert listed == []


async def test_a_partial_run_of_a_hidden_workflow_is_refused() -> None:
    async with serving(is_local=False) as served:
        boss = await served.key("boss", "admin")
        guest = await served.key("guest", "editor", "guests")
        reply = await served.client.post("/api/workflows", content=secret_of("staff"), headers=boss)
        assert reply.status_code == 201, reply.text
        reply = await served.client.post("/api/workflows/secret/try", json={}, headers=guest)
        assert (reply.status_code, reply.json()["code"]) == (404, "unknown-workflow")
        calls = "pointsman: 1\nid: mine\nnodes: [{id: go, type: workflow, config: {workflow: secret}}]\n"
        own = "pointsman: 1\nid: mine\nnodes: [{id: go, type: agent, config: {prompt: x}}]\n"
        assert (await served.client.post("/api/workflows", content=own, headers=guest)).status_code == 201
        reply = await served.client.post("/api/workflows/mine/try", json={"document": calls}, headers=guest)
        assert (reply.status_code, reply.json()["problems"][0]["code"]) == (422, "unknown-workflow")


async def test_a_document_runs_under_an_id_that_no_workflow_has(served: Served) -> None:
    draft = CHAIN.replace("id: chain", "id: playground")
    found = await outcome(served, "playground", {"document": draft})
    assert (found["status"], found["workflowId"]) == ("completed", "playground")
    assert (await served.client.get("/api/workflows/playground")).status_code == 404
    listed = (await served.client.get("/api/workflows/executions?trials=true&workflow=playground")).json()
    assert [one["executionId"] for one in listed["executions"]] == [found["executionId"]]
    assert (await tried(served, "playground", {"input": {}}, expect=404))["code"] == "unknown-workflow"
    assert (await tried(served, "playground@3", {"document": draft}, expect=404))["code"] == "unknown-workflow"


async def test_a_document_does_not_run_under_the_id_of_a_hidden_workflow() -> None:
    async with serving(is_local=False) as served:
        boss = await served.key("boss", "admin")
        guest = await served.key("guest", "editor", "guests")
        reply = await served.client.post("/api/workflows", content=secret_of("staff"), headers=boss)
        assert reply.status_code == 201, reply.text
        body = {"document": CHAIN.replace("id: chain", "id: secret")}
        reply = await served.client.post("/api/workflows/secret/try", json=body, headers=guest)
        assert (reply.status_code, reply.json()["code"]) == (404, "unknown-workflow")
        own = {"document": CHAIN.replace("id: chain", "id: mine")}
        reply = await served.client.post("/api/workflows/mine/try", json=own, headers=guest)
        assert reply.status_code == 202, reply.text
        execution = reply.json()["executionId"]
        reply = await served.client.get(f"/api/workflows/executions/{execution}", headers=guest)
        assert reply.status_code == 200, reply.text
