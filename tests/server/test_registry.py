"""Saved agents, tools, memory, conversations and files over HTTP, and bulk verbs for executions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pointsman.auth.callers import Role
from pointsman.definition.model.agents import AgentConfig
from pointsman.settings import Settings
from pointsman.tools.files import FileSettings
from pointsman.tools.mcp.server import McpServerDescription
from pointsman.values import ExecutionId
from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN, LETTER, TALK, secret_of

NAMED = """\
pointsman: 1
id: named
input: {type: object}
output: {said: text}
nodes:
  - {id: say, type: agent, config: {agent: writer, prompt: Hello}, outputs: {text: result}}
"""
WRITER = {"system": "You are brief.", "maxTokens": 50}


async def saved_agent(served: Served, agent: object, name: str = "writer") -> int:
    reply = await served.client.post("/api/agents", json={"name": name, "agent": agent})
    assert reply.status_code == 201, reply.text
    return int(reply.json()["revision"])


async def described_in(served: Served, execution: str) -> dict[str, AgentConfig]:
    """Return the agents in the stored definition of an execution."""
    state = await served.app.runtime.load(ExecutionId(execution))
    return (await served.app.library.kept(state.setup.definition)).agents or {}


async def test_an_agent_is_saved_used_by_a_workflow_and_pinned_by_an_execution(file_store: str) -> None:
    async with serving(file_store) as served:
        assert await saved_agent(served, WRITER) == 1
        assert await saved_agent(served, WRITER) == 1
        checked = await served.client.post("/api/workflows/check", json={"document": NAMED})
        assert checked.json()["problems"] == []
        await served.save(NAMED)
        execution = await served.execute("named")
        assert await saved_agent(served, {"system": "You are long."}) == 2
    async with serving(file_store) as served:
        assert (await described_in(served, execution))["writer"].max_tokens == 50
        versions = (await served.client.get("/api/agents/writer/versions")).json()["agents"]
        assert [(one["revision"], one["agent"].get("maxTokens")) for one in versions] == [(2, None), (1, 50)]
        assert (await served.client.get("/api/agents/writer@1")).json()["agent"] == WRITER
        assert (await described_in(served, await served.execute("named")))["writer"].max_tokens is None


async def test_a_node_can_name_one_revision_of_an_agent(served: Served) -> None:
    await saved_agent(served, WRITER)
    await saved_agent(served, {"system": "You are long."})
    await served.save(NAMED.replace("agent: writer", "agent: writer@1"))
    assert (await described_in(served, await served.execute("named")))["writer@1"].max_tokens == 50


async def test_an_invalid_agent_is_refused_with_the_paths_of_its_errors(served: Served) -> None:
    reply = await served.client.post("/api/agents", json={"name": "writer", "agent": {"maxTokens": 0, "sistem": "x"}})
    assert (reply.status_code, reply.json()["code"]) == (422, "workflow-invalid")
    assert {problem["pointer"] for problem in reply.json()["problems"]} >= {"/maxTokens"}
    assert (await served.client.get("/api/agents")).json()["agents"] == []


async def test_a_deleted_agent_prevents_new_starts_and_returns_as_the_next_revision(served: Served) -> None:
    await saved_agent(served, WRITER)
    assert (await served.client.delete("/api/agents/writer")).status_code == 204
    assert (await served.client.delete("/api/agents/writer")).json()["code"] == "no-such-agent"
    assert (await served.client.get("/api/agents/writer@1")).json()["agent"] == WRITER
    assert await saved_agent(served, WRITER) == 2


async def test_an_agent_is_replaced_only_over_the_read_revision() -> None:
    settings = Settings(delays=False, agents={"chief": AgentConfig.model_validate({"system": "Rules."})})
    async with serving(settings=settings) as served:
        await saved_agent(served, WRITER)
        read = {"if-match": (await served.client.get("/api/agents/writer")).headers["etag"]}
        body = {"agent": {"system": "New."}}
        assert (await served.client.put("/api/agents/writer", json=body, headers=read)).json()["revision"] == 2
        late = await served.client.put("/api/agents/writer", json=body, headers=read)
        assert (late.status_code, late.json()["code"]) == (409, "revision-moved")
        taken = await served.client.post("/api/agents", json={"name": "chief", "agent": WRITER})
        assert (taken.status_code, taken.json()["code"]) == (409, "agent-taken")
        odd = await served.client.post("/api/agents", json={"name": "a/b", "agent": WRITER})
        assert (odd.status_code, odd.json()["code"]) == (400, "agent-invalid")


async def test_tools_are_paged_read_and_tried(served: Served) -> None:
    names: list[str] = []
    after: str | None = None
    while True:
        address = f"/api/tools?limit=3{f'&after={after}' if after else ''}"
        page = (await served.client.get(address)).json()
        names += [tool["name"] for tool in page["tools"]]
        assert len(page["tools"]) == 3 or page["next"] is None
        after = page["next"]
        if after is None:
            break
    assert names == sorted(set(names))
    assert "calculator" in names
    described = (await served.client.get("/api/tools/calculator")).json()
    argument = next(iter(described["parameters"]["properties"]))
    tried = await served.client.post("/api/tools/calculator/try", json={"arguments": {argument: "6 * 7"}})
    assert tried.json()["ok"], tried.text
    assert "42" in json.dumps(tried.json()["result"])
    wrong = (await served.client.post("/api/tools/calculator/try", json={"arguments": {"x": 1}})).json()
    assert (wrong["ok"], wrong["result"]) == (False, None)
    assert wrong["failure"]["message"]
    assert (await served.client.post("/api/tools/abacus/try", json={})).json()["code"] == "no-such-tool"
    off = next(
        tool["name"] for tool in (await served.client.get("/api/tools?limit=200")).json()["tools"] if tool["off"]
    )
    assert (await served.client.post(f"/api/tools/{off}/try", json={})).json()["code"] == "tool-not-callable"


async def test_models_are_listed_and_pinged(served: Served) -> None:
    listed = (await served.client.get("/api/models")).json()
    assert listed["default"] == "scripted"
    asked = (await served.client.post("/api/models/ping")).json()["models"]
    assert [(one["name"], one["ok"]) for one in asked] == [("scripted", True)]


async def test_memory_is_written_listed_searched_and_deleted_after_a_restart(file_store: str) -> None:
    user = "/api/memory/user"
    async with serving(file_store) as served:
        for n in range(5):
            params = {"owner": "ada", "key": f"note/{n}", "namespace": "notes"}
            reply = await served.client.put(f"{user}/value", params=params, json={"value": f"tide number {n}"})
            assert reply.status_code == 200, reply.text
    async with serving(file_store) as served:
        params = {"owner": "ada", "limit": "2"}
        seen: list[str] = []
        while True:
            page = (await served.client.get(user, params=params)).json()
            seen += [one["key"] for one in page["values"]]
            if page["next"] is None:
                break
            assert len(page["values"]) == 2
            params["after"] = page["next"]
        assert seen == [f"note/{n}" for n in range(5)]
        found = (await served.client.get(user, params={"owner": "ada", "q": "number"})).json()["values"]
        assert len(found) == 5
        owners = (await served.client.get("/api/memory")).json()["owners"]
        assert [(one["scope"], one["owner"], one["keys"]) for one in owners] == [("user", "ada", 5)]
        one = {"owner": "ada", "key": "note/0", "namespace": "notes"}
        assert (await served.client.get(f"{user}/value", params=one)).json()["value"] == "tide number 0"
        assert (await served.client.delete(f"{user}/value", params=one)).status_code == 204
        assert (await served.client.get(f"{user}/value", params=one)).json()["code"] == "no-such-memory"
        assert (await served.client.delete(f"{user}/value", params=one)).json()["code"] == "no-such-memory"
        assert (await served.client.delete(user, params={"owner": "ada"})).json() == {"forgotten": 4}
        for place in ("x", "[1,2]", '["",""]', '["a\\u0000","b"]'):
            odd = await served.client.get(user, params={"owner": "ada", "after": place})
            assert odd.status_code == 400, place
        assert (await served.client.get("/api/memory/team?owner=ada")).json()["code"] == "unknown-memory"


async def test_the_memory_of_a_user_is_private() -> None:
    async with serving(is_local=False) as served:
        keys: dict[str, Role] = {"ada": "operator", "bob": "operator", "root": "admin"}
        headers = {name: await served.key(name, role) for name, role in keys.items()}
        params = {"owner": "ada", "key": "likes"}
        value = {"value": ["tides"]}
        for name, status in (("bob", 403), ("ada", 200)):
            put = await served.client.put("/api/memory/user/value", params=params, json=value, headers=headers[name])
            assert put.status_code == status, name
        for name, status in (("bob", 403), ("ada", 200), ("root", 200)):
            got = await served.client.get("/api/memory/user/value", params=params, headers=headers[name])
            assert got.status_code == status, name
        listed = [
            len((await served.client.get("/api/memory", headers=headers[name])).json()["owners"]) for name in headers
        ]
        assert listed == [1, 0, 1]


async def test_a_conversation_is_read_and_deleted(served: Served) -> None:
    await served.save(TALK)
    execution = await served.execute("talk", {"message": "Hello"}, sessionId="s1")
    read = (await served.client.get("/api/sessions/s1")).json()
    assert read["messages"][0]["content"] == "Hello"
    assert [one["executionId"] for one in read["executions"]] == [execution]
    assert (await served.client.get("/api/sessions/s2")).json()["code"] == "unknown-session"
    assert (await served.client.delete("/api/sessions/s1")).json() == {"deleted": [execution]}
    assert (await served.client.get("/api/sessions/s1")).status_code == 404


async def test_files_of_an_execution_are_served_only_as_downloads(tmp_path: Path) -> None:
    settings = Settings(delays=False, files=FileSettings(directory=str(tmp_path / "files")))
    async with serving(settings=settings) as served:
        await served.save(CHAIN)
        execution = await served.execute("chain")
        kept = tmp_path / "files" / execution
        kept.mkdir(parents=True)
        (kept / "page.html").write_text("<script>alert(1)</script>")
        (tmp_path / "files" / "secret.txt").write_text("secret")
        base = f"/api/workflows/executions/{execution}/artifacts"
        assert (await served.client.get(base)).json() == {"artifacts": [{"path": "page.html", "bytes": 25}]}
        page = await served.client.get(f"{base}/page.html")
        assert page.headers["content-disposition"].startswith("attachment")
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["content-security-policy"].startswith("default-src 'none'")
        for way in ("..%2Fsecret.txt", "%2Fetc%2Fpasswd", "page.html%00", "no.txt", "a%0Ab", "%2e%2e/secret.txt"):
            reply = await served.client.get(f"{base}/{way}")
            assert reply.status_code == 404, way
            assert reply.text != "secret"


async def test_an_execution_is_exported_and_imported_elsewhere(served: Served) -> None:
    await served.save(LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    exported = await served.client.get(f"/api/workflows/executions/{execution}/export")
    assert exported.headers["content-type"] == "application/x-ndjson"
    again = await served.client.post("/api/workflows/executions/import", content=exported.content)
    assert (again.status_code, again.json()["code"]) == (409, "execution-exists")
    copied = await served.client.post("/api/workflows/executions/import?renamed=true", content=exported.content)
    assert copied.status_code == 201
    assert copied.json()["executionId"] != execution
    async with serving() as other:
        brought = await other.client.post("/api/workflows/executions/import", content=exported.content)
        said = brought.json()
        assert (said["executionId"], said["status"], said["scripted"]) == (execution, "waiting", True)
        done = await other.act(execution, "respond", {"gateId": "review", "action": "approve"})
        assert done["status"] in ("running", "completed")
        broken = await other.client.post("/api/workflows/executions/import", content=exported.content[:-40])
        assert (broken.status_code, broken.json()["code"]) == (400, "import-refused")


async def test_a_bulk_cancel_applies_to_visible_executions() -> None:
    async with serving(is_local=False) as served:
        root = await served.key("root", "admin")
        ada, bob = await served.key("ada", "editor", "desk"), await served.key("bob", "editor", "day")
        gate = LETTER.replace("id: letter", "id: letter\nallowedGroups: [desk]")
        assert (await served.client.post("/api/workflows", content=gate, headers=ada)).status_code == 201
        body = {"input": {"goal": "tides"}, "wait": True}
        for _ in range(3):
            await served.client.post("/api/workflows/letter/execute", json=body, headers=ada)
        bulk = "/api/workflows/executions/bulk"
        meant = {"verb": "cancel", "workflow": "letter"}
        for header, count in ((bob, 0), (ada, 3)):
            told = await served.client.post(bulk, json={**meant, "dryRun": True}, headers=header)
            assert [one["status"] for one in told.json()["executions"]] == ["waiting"] * count
        told = await served.client.post(bulk, json=meant, headers=ada)
        assert [one["status"] for one in told.json()["executions"]] == ["cancelled"] * 3
        refused = await served.client.post(bulk, json={**meant, "verb": "delete"}, headers=ada)
        assert (refused.status_code, refused.json()["code"]) == (403, "not-allowed")
        gone = await served.client.post(bulk, json={**meant, "verb": "delete"}, headers=root)
        assert [one["status"] for one in gone.json()["executions"]] == ["deleted"] * 3


@pytest.mark.parametrize("address", ["/api/tools", "/api/agents", "/api/memory", "/api/schedules", "/api/webhooks"])
async def test_lists_refuse_invalid_limits(served: Served, address: str) -> None:
    for limit in ("0", "201", "x", "1e3"):
        reply = await served.client.get(f"{address}?limit={limit}")
        assert (reply.status_code, reply.json()["code"]) == (422, "request-invalid"), limit


async def test_schedules_and_webhooks_of_a_hidden_workflow_are_hidden() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor", "desk"), await served.key("bob", "editor", "day")
        assert (await served.client.post("/api/workflows", content=secret_of("desk"), headers=ada)).status_code == 201
        body = {"workflow": "secret", "every": 3600, "id": "hourly"}
        assert (await served.client.post("/api/schedules", json=body, headers=bob)).status_code == 404
        assert (await served.client.post("/api/schedules", json=body, headers=ada)).status_code == 201
        assert (await served.client.get("/api/schedules/hourly", headers=bob)).status_code == 404
        assert (await served.client.post("/api/schedules/hourly/pause", headers=bob)).status_code == 404
        assert (await served.client.get("/api/schedules", headers=bob)).json()["schedules"] == []
        assert len((await served.client.get("/api/schedules", headers=ada)).json()["schedules"]) == 1


async def test_an_mcp_server_without_tools_is_listed_with_the_reason() -> None:
    gone = McpServerDescription(command=("/nowhere/server",))
    async with serving(settings=Settings(delays=False, mcp={"files": gone})) as served:
        told = (await served.client.get("/api/tools?origin=mcp&limit=1")).json()
    (server,) = told["servers"]
    assert (told["tools"], server["name"], server["prefix"], server["tools"]) == ([], "files", "files__", 0)
    assert server["failure"]["code"] == "mcp-unreachable", server["failure"]
