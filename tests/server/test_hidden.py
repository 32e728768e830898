"""Hidden objects occur in no list, count, suggestion or refusal for callers who may not see them."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from tests.server.conftest import Served, serving

HIDDEN: Final = "hushplan"
DOCUMENT: Final = f"""\
pointsman: 1
id: {HIDDEN}
description: A {HIDDEN} of ada's.
tags: [{HIDDEN}]
input: {{type: object}}
triggers:
  - {{id: {HIDDEN}-hook, type: webhook, path: {HIDDEN}, secret: whsec_c2VjcmV0c2VjcmV0c2VjcmV0}}
  - {{id: {HIDDEN}-nightly, type: schedule, cron: "0 3 * * *"}}
  - {{id: {HIDDEN}-event, type: event, event: arrived}}
nodes:
  - {{id: {HIDDEN}, type: agent, config: {{prompt: "The {HIDDEN}"}}}}
  - {{id: keep, type: memory, config: {{operation: set, scope: workflow, key: {HIDDEN}, value: "1"}}}}
  - {{id: ask, type: human, config: {{message: "The {HIDDEN}?"}}}}
edges: [{{source: {HIDDEN}, target: keep}}, {{source: keep, target: ask}}]
"""
NEAR: Final = "hushplam"
"""An id of a caller who does not know the hidden one, and differs from it in one letter."""


def calling(workflow: str) -> str:
    return f"pointsman: 1\nid: mine\nnodes: [{{id: call, type: workflow, config: {{workflow: {workflow}}}}}]\n"


def naming(tool: str) -> str:
    return f"pointsman: 1\nid: mine\nnodes: [{{id: call, type: tool, config: {{tool: {tool}}}}}]\n"


MISSPELLED: Final = {"workflow": calling(NEAR), "tool": naming(f"workflow__{NEAR}"), "revision": calling("mine@99")}


async def hide(served: Served, owner: dict[str, str]) -> None:
    """Save a workflow that only its owner sees; it has run once and waits at a gate for the owner."""
    reply = await served.client.post("/api/workflows", content=DOCUMENT, headers=owner)
    assert reply.status_code == 201, reply.text
    body = {"audience": "private"}
    assert (await served.client.put(f"/api/workflows/{HIDDEN}/sharing", json=body, headers=owner)).status_code == 200
    body = {"input": {HIDDEN: HIDDEN}, "wait": True}
    reply = await served.client.post(f"/api/workflows/{HIDDEN}/execute", json=body, headers=owner)
    assert (reply.status_code, reply.json()["status"]) == (200, "waiting"), reply.text


async def lists_of(served: Served) -> list[str]:
    """Return every path that can be read without an id."""
    document = (await served.client.get("/api/openapi.json")).json()
    told = [path for path, methods in document["paths"].items() if "get" in methods and "{" not in path]
    return [path for path in told if not path.endswith(("/stream", "/openapi.json", "/provider"))]


@pytest.mark.parametrize("role", ["viewer", "operator", "editor"])
async def test_no_list_and_no_count_includes_hidden_objects(role: Any) -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", role)
        await hide(served, ada)
        seen: list[str] = []
        for path in [*await lists_of(served), "/api/memory/shared?owner=shared", "/api/usage?by=workflow&by=node"]:
            for who in (ada, bob):
                reply = await served.client.get(path, headers=who)
                assert reply.status_code < 500, path
                if HIDDEN in reply.text:
                    seen.append(path)
                    assert who is ada, f"{path} tells bob: {reply.text[:500]}"
        assert {"/api/workflows", "/api/workflows/executions", "/api/inbox", "/api/tools"} <= set(seen)


@pytest.mark.parametrize("what", MISSPELLED)
async def test_suggestions_for_misspelt_names_omit_hidden_objects(what: str) -> None:
    document = MISSPELLED[what]
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        await hide(served, ada)

        async def told(path: str, who: dict[str, str], **how: Any) -> str:
            reply = await served.client.post(path, headers=who, **how)
            assert reply.status_code < 500, (path, reply.text)
            return reply.text

        bare = "pointsman: 1\nid: mine\nnodes: [{id: end, type: end}]\n"
        operations = [
            {"op": "add_node", "node": {"id": "n", "type": "workflow", "config": {"workflow": NEAR}}},
            {"op": "add_node", "node": {"id": "t", "type": "tool", "config": {"tool": f"workflow__{NEAR}"}}},
        ]
        await told("/api/workflows", bob, content=bare)
        answers = [
            await told("/api/workflows/check", bob, json={"document": document}),
            await told("/api/workflows", bob, content=document),
            await told("/api/workflows?draft=true", bob, content=document),
            (await served.client.get("/api/workflows/mine", headers=bob)).text,
            await told("/api/workflows/mine/execute", bob, json={"input": {}}),
            await told("/api/workflows/mine/dry-run", bob, json={"input": {}}),
            await told("/api/workflows/mine/try", bob, json={"input": {}}),
            await told("/api/workflows/mine/edit", bob, json={"operations": operations}),
        ]
        for answer in answers:
            assert HIDDEN not in answer, answer
        if what != "revision":
            owners = await told("/api/workflows/check", ada, json={"document": document})
            assert f"Did you mean '{'workflow__' if what == 'tool' else ''}{HIDDEN}'?" in owners


async def test_suggestions_include_public_objects(served: Served) -> None:
    await served.save(DOCUMENT)
    reply = await served.client.post("/api/workflows/check", json={"document": calling(NEAR)})
    assert f"Did you mean '{HIDDEN}'?" in reply.text


async def test_a_conflict_over_a_webhook_path_does_not_name_a_hidden_workflow() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        await hide(served, ada)
        document = DOCUMENT.replace(HIDDEN, "other").replace("path: other", f"path: {HIDDEN}")
        reply = await served.client.post("/api/workflows", content=document, headers=bob)
        assert (reply.status_code, reply.json()["code"]) == (409, "webhook-taken")
        assert reply.json()["detail"] == f"another workflow already has the path '{HIDDEN}'"


async def test_the_answer_to_an_event_omits_hidden_executions() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "operator")
        await hide(served, ada)
        reply = await served.client.post("/api/events", json={"name": "arrived"}, headers=bob)
        assert (reply.status_code, HIDDEN in reply.text) == (200, False), reply.text
        found = (await served.client.get("/api/workflows/executions", headers=ada)).json()["executions"]
        assert len(found) == 1, "the publisher may not execute what the event would start"
        for one in found:
            assert one["executionId"] not in reply.text


async def test_the_live_feed_omits_hidden_workflows() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        await hide(served, ada)
        open_flow = "pointsman: 1\nid: open\ninput: {type: object}\nnodes: [{id: end, type: end}]\n"
        assert (await served.client.post("/api/workflows", content=open_flow, headers=ada)).status_code == 201
        heard: list[str] = []
        async with served.client.stream("GET", "/api/workflows/executions/stream", headers=bob) as reply:
            assert reply.status_code == 200
            for name in (HIDDEN, "open"):
                body: dict[str, Any] = {"input": {}, "wait": True}
                await served.client.post(f"/api/workflows/{name}/execute", json=body, headers=ada)

            async def listen() -> None:
                async for line in reply.aiter_lines():
                    heard.append(line)
                    if '"open"' in line:
                        return

            await asyncio.wait_for(listen(), 60)
        assert HIDDEN not in "\n".join(heard)
