"""`/mcp`: MCP over HTTP with authentication by key."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import ToolListChangedNotification

from mcp import Client
from pointsman.server.mcp_transport import SESSIONS_MAX, VALUES_MAX
from pointsman.values import Json, JsonObject
from tests.definition.documents import CALC
from tests.mcp.conftest import MODES, Mode, call, names, refused
from tests.patience import PATIENCE_S
from tests.server.conftest import Served, serving
from tests.server.flows import LETTER, secret_of

VIEWS = ["list_workflows", "get_workflow", "check_workflow", "workflow_versions", "diff_workflow", "get_execution"]


@asynccontextmanager
async def over_http(
    served: Served, key: dict[str, str] | None = None, mode: Mode = "auto"
) -> AsyncGenerator[Client, None]:
    address = str(served.client.base_url).rstrip("/") + "/mcp"
    async with (
        httpx2.AsyncClient(headers=key or {}, timeout=PATIENCE_S) as transport,
        Client(streamable_http_client(address, http_client=transport), mode=mode) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_designs_saves_and_runs_over_http(mode: Mode) -> None:
    async with serving() as served, over_http(served, mode=mode) as client:
        assert (await call(client, "save_workflow", document=CALC))["revision"] == 1
        assert (await call(client, "workflow__calc", a=2))["output"] == 4
        assert (await call(client, "check_workflow", document=CALC))["ok"]
        reply = await served.client.get("/api/workflows/calc")
        assert reply.json()["author"] == "local"
        invalid = await refused(client, "workflow__calc", a="two")
        assert invalid["error"]["code"] == "input-invalid"
        deeds = (await served.client.get("/api/audit")).json()["deeds"]
        assert [one["what"] for one in deeds] == ["mcp workflow__calc"] * 2 + ["mcp save_workflow"], (
            "not what only reads"
        )
        ran = (await served.client.get("/api/workflows/executions")).json()["executions"][0]["executionId"]
        assert [(one["target"], one["refused"]) for one in deeds] == [
            ("workflow=calc", "input-invalid"),
            (f"workflow=calc, executionId={ran}", None),
            ("id=calc, revision=1", None),
        ]


async def test_a_key_is_required_and_each_role_sees_its_tools() -> None:
    async with serving(is_local=False) as served:
        for headers in ({}, {"authorization": "Bearer pm_wrong"}):
            reply = await served.client.post(
                "/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers
            )
            assert (reply.status_code, reply.json()["code"]) == (401, "not-signed-in")
        ada = await served.key("ada", "editor", "desk")
        vi, op, bob = (
            await served.key("vi", "viewer"),
            await served.key("op", "operator"),
            await served.key("bob", "editor", "day"),
        )
        async with over_http(served, ada) as client:
            await call(client, "save_workflow", document=secret_of("desk"))
            await call(client, "save_workflow", document=LETTER)
            assert {"workflow__secret", "workflow__letter"} <= {*await names(client)}
        async with over_http(served, vi) as client:
            assert await names(client) == VIEWS
            listed = (await call(client, "list_workflows"))["workflows"]
            assert [one["id"] for one in listed if not one["builtIn"]] == ["letter"]
        async with over_http(served, op) as client:
            assert {*await names(client)} - {*VIEWS} == {
                "run_workflow",
                "answer_gate",
                "resume_execution",
                "cancel_execution",
                "workflow__letter",
            }, "list the tools of operators here and in docs/how-to/designing.md"
        async with over_http(served, bob) as client:
            assert "workflow__secret" not in await names(client)
            shut: tuple[tuple[str, JsonObject, str], ...] = (
                ("get_workflow", {"workflow": "secret"}, "unknown-workflow"),
                ("run_workflow", {"workflow": "secret"}, "unknown-workflow"),
                ("edit_workflow", {"workflow": "secret", "operations": []}, "unknown-workflow"),
                ("delete_workflow", {"workflow": "secret"}, "unknown-workflow"),
                ("save_workflow", {"document": secret_of("day")}, "id-taken"),
            )
            for tool, arguments, code in shut:
                assert (await refused(client, tool, **arguments))["error"]["code"] == code, tool


async def test_cross_origin_requests_and_too_large_bodies_are_refused() -> None:
    async with serving(body_bytes_max=5000) as served:
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        evil = await served.client.post("/mcp", json=body, headers={"origin": "https://evil.example"})
        assert (evil.status_code, evil.json()["code"]) == (403, "origin-refused")
        named = await served.client.post("/mcp", json=body, headers={"host": "evil.example"})
        assert named.status_code == 403
        large = await served.client.post("/mcp", content=b"x" * 5001)
        assert large.status_code == 413
        junk = await served.client.post("/mcp", content=b"{", headers={"accept": "application/json, text/event-stream"})
        assert 400 <= junk.status_code < 500


async def test_a_session_continues_only_for_its_owner() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        accept = {"accept": "application/json, text/event-stream"}
        hello = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        }
        began = await served.client.post("/mcp", json=hello, headers={**ada, **accept})
        session = {"mcp-session-id": began.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        assert (await served.client.post("/mcp", json=listing, headers={**ada, **accept, **session})).status_code == 200
        assert (await served.client.post("/mcp", json=listing, headers={**bob, **accept, **session})).status_code == 404


@pytest.mark.parametrize("mode", MODES)
async def test_clients_are_notified_of_changed_tools(mode: Mode) -> None:
    heard = asyncio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            heard.set()

    async with serving() as served:
        address = str(served.client.base_url).rstrip("/") + "/mcp"
        async with Client(address, mode=mode, message_handler=hear) as client:
            if mode == "auto":
                async with client.listen(tools_list_changed=True) as changes:
                    await call(client, "save_workflow", document=CALC)
                    async with asyncio.timeout(PATIENCE_S):
                        async for _ in changes:
                            break
            else:
                await names(client)
                async with asyncio.timeout(PATIENCE_S):
                    await call(client, "save_workflow", document=CALC)
                    await heard.wait()
            assert "workflow__calc" in await names(client)


async def test_a_workflow_whose_owner_withdrew_the_offer_is_no_tool() -> None:
    async with serving() as served, over_http(served) as client:
        await call(client, "save_workflow", document=CALC)
        assert "workflow__calc" in await names(client)
        withdrawn = {"form": False, "mcp": False}
        assert (await served.client.put("/api/workflows/calc/publication", json=withdrawn)).is_success
        assert "workflow__calc" not in await names(client)
        with pytest.raises(MCPError, match="there is no tool 'workflow__calc'"):
            await call(client, "workflow__calc", a=2)
        assert (await served.client.put("/api/workflows/calc/publication", json={"form": False})).is_success
        assert (await call(client, "workflow__calc", a=2))["output"] == 4


@pytest.mark.parametrize("mode", MODES)
async def test_clients_are_notified_of_workflows_saved_by_others(mode: Mode) -> None:
    heard = asyncio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            heard.set()

    async with serving() as served:
        address = str(served.client.base_url).rstrip("/") + "/mcp"
        async with Client(address, mode=mode, message_handler=hear) as client:
            await names(client)
            if mode == "auto":
                async with client.listen(tools_list_changed=True) as changes:
                    await served.save(LETTER)
                    async for _ in changes:
                        break
            else:
                await served.save(LETTER)
                await heard.wait()
            assert "workflow__letter" in await names(client)


SLOW: JsonObject = {"pointsman": 1, "id": "slow", "nodes": [{"id": "w", "type": "wait", "config": {"duration": "10m"}}]}


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_disconnects_cancels_only_its_own_call(mode: Mode) -> None:
    """Both calls have the same id: each client counts its own."""
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        async with over_http(served, ada) as client:
            await call(client, "save_workflow", document=SLOW)

        async def waits(key: dict[str, str]) -> None:
            async with over_http(served, key, mode) as client:
                await call(client, "run_workflow", workflow="slow")

        async def statuses() -> list[str]:
            """Return all statuses, oldest first."""
            reply = await served.client.get("/api/workflows/executions", headers=ada)
            return [one["status"] for one in reversed(reply.json()["executions"])]

        async def until(expected: list[str]) -> None:
            async with asyncio.timeout(PATIENCE_S):
                while await statuses() != expected:  # noqa: ASYNC110 - the server changes them
                    await asyncio.sleep(0.02)

        first = asyncio.create_task(waits(ada))
        await until(["waiting"])
        second = asyncio.create_task(waits(bob))
        await until(["waiting", "waiting"])
        first.cancel()
        await until(["cancelled", "waiting"])
        second.cancel()
        await until(["cancelled", "cancelled"])


async def test_a_client_resumes_an_execution() -> None:
    async with serving() as served, over_http(served) as client:
        await call(client, "save_workflow", document=LETTER)
        begun = await call(client, "run_workflow", workflow="letter", input={"goal": "tides"})
        name = begun["executionId"]
        await (await served.app.open(name)).pause()
        assert (await call(client, "get_execution", executionId=name))["status"] == "paused"
        assert (await call(client, "resume_execution", executionId=name))["status"] == "waiting"
        await call(client, "cancel_execution", executionId=name)
        again = await refused(client, "resume_execution", executionId=name)
        assert again["error"]["code"] == "wrong-status"


async def test_a_large_workflow_is_sent_as_text_over_http() -> None:
    """The SDK decodes a message on the event loop: 240 000 values kept it busy for 0.4 s."""
    nodes: list[Json] = [{"id": f"n{i}", "type": "agent", "config": {"prompt": "Go."}} for i in range(VALUES_MAX // 4)]
    document: JsonObject = {"pointsman": 1, "id": "large", "nodes": nodes, "edges": []}
    async with serving() as served, over_http(served) as client:
        assert "problems" in await call(client, "check_workflow", document=json.dumps(document))
        message: JsonObject = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"arguments": document}}
        reply = await served.client.post("/mcp", json=message)
        assert (reply.status_code, reply.json()["code"]) == (400, "body-invalid")
        assert f"more than {VALUES_MAX} values" in reply.json()["detail"]
        assert "as text" in reply.json()["hint"]


INITIALIZE: JsonObject = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
}
TAKEN = {"accept": "application/json, text/event-stream"}


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ('{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}', "the key 'id' is there twice"),
        ('{"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"}', "not a JSON-RPC 2.0 message"),
        ('{"jsonrpc": "2.0", "id": true, "method": "ping"}', "not a JSON-RPC 2.0 message"),
        ('{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', "not a JSON-RPC 2.0 message"),
        ("[]", "not a JSON-RPC 2.0 message"),
        ("", "not JSON"),
        ("{", "not JSON"),
    ],
)
async def test_bodies_that_are_not_messages_are_answered_with_an_error(sent: str, message: str) -> None:
    async with serving() as served:
        opened = await served.client.post("/mcp", json=INITIALIZE, headers=TAKEN)
        headers = {**TAKEN, "mcp-session-id": opened.headers["mcp-session-id"], "content-type": "application/json"}
        reply = await served.client.post("/mcp", content=sent, headers=headers)
        assert reply.status_code == 400
        assert message in reply.json()["error"]["message"]
        ping = await served.client.post("/mcp", json={"jsonrpc": "2.0", "id": 2, "method": "ping"}, headers=headers)
        assert ping.status_code == 200


async def test_a_new_session_beyond_the_limit_ends_the_oldest_of_its_caller() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "admin"), await served.key("bob", "viewer")

        async def begin(key: dict[str, str]) -> str:
            reply = await served.client.post("/mcp", json=INITIALIZE, headers={**TAKEN, **key})
            return str(reply.headers["mcp-session-id"])

        async def status(key: dict[str, str], session: str) -> int:
            ping: JsonObject = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
            headers = {**TAKEN, **key, "mcp-session-id": session}
            return (await served.client.post("/mcp", json=ping, headers=headers)).status_code

        others, first, second = await begin(ada), await begin(bob), await begin(bob)
        for _ in range(SESSIONS_MAX - 2):
            await begin(bob)
        assert await status(bob, first) == 200
        await begin(bob)
        assert [await status(bob, one) for one in (first, second)] == [200, 404]
        assert await status(ada, others) == 200
