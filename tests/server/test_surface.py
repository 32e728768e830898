"""The breadth of the API: features of similar systems, each found by function and not by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pointsman import Pointsman
from tests.server.conftest import QUIET, Served, serving
from tests.server.flows import CHAIN, LETTER

CALLS = """\
pointsman: 1
id: whole
input: {type: object}
output: {said: nodes.part.result.said}
nodes: [{id: part, type: workflow, config: {workflow: chain}}]
"""


async def asked(served: Served, method: str, path: str, body: Any = None, *, expect: int = 200) -> Any:
    reply = await served.client.request(method, path, json=body)
    assert reply.status_code == expect, (path, reply.text)
    return reply.json()


@pytest.mark.requirement("S4-O9")
async def test_built_in_workflows_support_every_verb_of_executions(file_store: str) -> None:
    async with serving(file_store) as served:
        await served.save(LETTER)
        listed = await asked(served, "GET", "/api/workflows?builtIn=false")
        assert [one["id"] for one in listed["workflows"]] == ["letter"]
        assert (await asked(served, "GET", "/api/workflows/letter"))["document"]["id"] == "letter"
        body = {"input": {"goal": "tides"}}
        started = await asked(served, "POST", "/api/workflows/letter/execute", body, expect=202)
        instance = f"/api/workflows/executions/{started['executionId']}"
        await served.app.open(started["executionId"])
        paused = await asked(served, "POST", f"{instance}/pause")
        assert paused["status"] in ("paused", "waiting")
    async with serving(file_store) as served:
        assert (await asked(served, "GET", instance))["status"] == "paused"
        assert (await asked(served, "POST", f"{instance}/resume"))["status"] in ("running", "waiting")
        ran = await asked(served, "POST", "/api/workflows/letter/execute", {**body, "wait": True})
        assert (ran["status"], ran["path"]) == ("waiting", ["write"])
        assert (await asked(served, "POST", f"{instance}/cancel", {}))["status"] == "cancelled"


@pytest.mark.requirement("S3-O11")
async def test_each_group_of_the_api_has_a_working_operation(file_store: str, tmp_path: Path) -> None:
    async with serving(file_store) as served:
        await templates_and_composition(served)
        await versions_and_migration(served)
        await schedules_and_webhooks(served)
        await keys_sharing_and_audit(served)
        await analytics_and_cost(served)
        await debugging(served)
        copy = await served.client.post("/api/backup")
    assert copy.headers["content-disposition"] == 'attachment; filename="pointsman.backup"'
    path = tmp_path / "pointsman.backup"
    path.write_bytes(copy.content)
    async with Pointsman(f"sqlite:///{tmp_path / 'other.db'}", settings=QUIET) as app:
        restored = await app.storage.restore(path)
        assert (restored.about.workflows, [one.id for one in await app.workflows()]) == (
            4,
            ["chain", "mine", "poor", "whole"],
        )


async def templates_and_composition(served: Served) -> None:
    shelf = (await asked(served, "GET", "/api/workflows?builtIn=true"))["workflows"]
    assert "builtin:iterate" in [one["id"] for one in shelf]
    await asked(served, "POST", "/api/workflows/builtin:iterate/clone", {"id": "mine"}, expect=201)
    await served.save(CHAIN)
    await served.save(CALLS)
    whole = await served.read(await served.execute("whole"))
    (below,) = (await asked(served, "GET", "/api/workflows/executions?workflow=chain"))["executions"]
    assert (whole["status"], below["parent"]) == ("completed", whole["executionId"])


async def versions_and_migration(served: Served) -> None:
    await served.save(CHAIN.replace("prompt: two", "prompt: three"))
    difference = await served.client.get("/api/workflows/chain/diff")
    assert "+" in difference.text
    assert len((await asked(served, "GET", "/api/workflows/chain/changes"))["changes"]) == 1
    back = await asked(served, "POST", "/api/workflows/chain/rollback", {"revision": 1})
    assert back["revision"] == 3
    rows = await asked(served, "POST", "/api/workflows/convert", {"document": CHAIN, "to": "rows"})
    assert rows["document"]
    dry = await asked(served, "POST", "/api/workflows/chain/dry-run", {"input": {}})
    assert dry["path"] == ["first", "second"]


async def schedules_and_webhooks(served: Served) -> None:
    await asked(served, "POST", "/api/schedules", {"workflow": "chain", "every": 3600, "id": "hourly"}, expect=201)
    assert [one["id"] for one in (await asked(served, "GET", "/api/schedules"))["schedules"]] == ["hourly"]
    assert (await asked(served, "GET", "/api/webhooks"))["webhooks"] == []
    assert (await asked(served, "GET", "/api/notifications"))["notices"] == []


async def keys_sharing_and_audit(served: Served) -> None:
    sharing = await asked(served, "GET", "/api/workflows/chain/sharing")
    assert sharing["audience"] == "everyone"
    made = await asked(served, "GET", "/api/settings/keys")
    assert made["keys"] == []
    entries = (await asked(served, "GET", "/api/audit?what=clone"))["entries"]
    assert [one["target"] for one in entries] == ["id=builtin:iterate, id=mine, revision=1"]


async def analytics_and_cost(served: Served) -> None:
    usage = await asked(served, "GET", "/api/usage?by=workflow&by=node")
    assert {one["node"] for one in usage["usage"] if one["workflow"] == "chain"} == {"first", "second"}
    poor = CHAIN.replace("id: chain", "id: poor") + "config: {limits: {modelCalls: 1}}\n"
    await served.save(poor)
    spent = await served.read(await served.execute("poor"))
    assert (spent["status"], spent["path"], spent["usage"]["modelCalls"]) == ("interrupted", ["first"], 1)
    limits = {"limits": {"modelCalls": 2}}
    await asked(served, "POST", f"/api/workflows/executions/{spent['executionId']}/resume", limits)


async def debugging(served: Served) -> None:
    execution = await served.execute("chain")
    address = f"/api/workflows/executions/{execution}"
    assert (await asked(served, "GET", f"{address}/state?at=1"))["path"] == []
    again = await asked(served, "POST", f"{address}/fork", {"step": "second", "set": {"a": "else"}}, expect=202)
    await served.read_events(again["executionId"])
    forked = await served.read(again["executionId"])
    assert (forked["status"], forked["state"]["a"]) == ("completed", "else")


async def test_a_backup_of_a_store_in_memory_is_refused(served: Served) -> None:
    reply = await served.client.post("/api/backup")
    assert (reply.status_code, reply.json()["code"]) == (409, "store-copy-unsupported")
