"""Refusals that depend on the state: each operation with a documented conflict reaches it."""

from __future__ import annotations

from typing import Any, Final

import pytest
from cryptography.fernet import Fernet

from pointsman.definition.model.agents import AgentConfig
from pointsman.settings import Settings
from pointsman.triggers.signatures import key_of, sign
from tests.server.conftest import Served, serving
from tests.server.documented_operations import OPERATIONS
from tests.server.flows import CHAIN, LETTER, TALK, WAITS

EXECUTIONS: Final = "/api/workflows/executions"
KEY: Final = {"idempotency-key": "monday"}
NEW: Final = {"if-none-match": "*"}
OLD: Final = {"if-match": '"99-old"'}
SECRET: Final = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HOOKED: Final = (
    WAITS.replace("id: waits", "id: hooked")
    + "concurrency: {max: 1, policy: skip}\n"
    + f"triggers: [{{id: hook, type: webhook, path: orders, secret: {SECRET}}}]\n"
)
KEYED: Final = Settings.model_validate({"delays": False, "vault": {"keys": [Fernet.generate_key().decode()]}})
RUN: Final[dict[str, Any]] = {"input": {}}
CONFLICTS: Final[dict[str, tuple[dict[str, str], dict[str, Any]]]] = {
    "POST /api/workflows/executions/bulk": ({}, {"json": {"verb": "cancel", "workflow": "off"}, "headers": KEY}),
    "POST /api/workflows/{id}/execute/files": ({"id": "off"}, {"files": {"a": ("a.txt", b"a", "text/plain")}}),
    "POST /api/workflows/{id}/execute": ({"id": "off"}, {"json": RUN}),
    "DELETE /api/workflows/executions/{eid}": ({"eid": "waiting"}, {}),
    "POST /api/workflows/executions/{eid}/respond": (
        {"eid": "answered"},
        {"json": {"gateId": "review", "action": "again"}},
    ),
    "POST /api/workflows/executions/{eid}/delegate": ({"eid": "answered"}, {"json": {"gateId": "review", "to": "ben"}}),
    "POST /api/workflows/executions/{eid}/pause": ({"eid": "done"}, {}),
    "POST /api/workflows/executions/{eid}/resume": ({"eid": "done"}, {"json": {}}),
    "POST /api/workflows/executions/{eid}/cancel": ({"eid": "done"}, {"json": {}}),
    "POST /api/workflows/executions/{eid}/retry": ({"eid": "done"}, {"json": {}}),
    "POST /api/workflows/executions/{eid}/fork": ({"eid": "done"}, {"json": {"at": 2}, "headers": KEY}),
    "POST /api/workflows/executions/{eid}/steer": ({"eid": "waiting"}, {"json": {"messages": ["go"]}}),
    "POST /api/workflows/executions/{eid}/messages": ({"eid": "turn"}, {"json": {"message": "b"}, "headers": KEY}),
    "POST /api/workflows/executions/{eid}/signals": ({"eid": "done"}, {"json": {"name": "n"}}),
    "POST /api/workflows/executions/{eid}/replay": ({"eid": "done"}, {"json": {"against": "off"}}),
    "POST /api/workflows/executions/{eid}/move": ({"eid": "waiting"}, {"json": {"to": "chain"}}),
    "POST /api/workflows/{id}/dry-run": ({"id": "off"}, {"json": RUN}),
    "POST /api/workflows/generate": ({}, {"json": {"words": "A letter."}}),
    "POST /api/workflows/{id}/edit": ({"id": "letter"}, {"json": {"words": "Shorter."}}),
    "POST /api/workflows/{id}/try": ({"id": "off"}, {"json": RUN}),
    "POST /api/workflows": ({}, {"content": CHAIN, "headers": NEW}),
    "PUT /api/workflows/{id}": ({"id": "chain"}, {"content": CHAIN, "headers": OLD}),
    "DELETE /api/workflows/{id}": ({"id": "builtin:iterate"}, {}),
    "PATCH /api/workflows/{id}": ({"id": "chain"}, {"json": {"name": "Links"}, "headers": OLD}),
    "POST /api/workflows/{id}/clone": ({"id": "letter"}, {"json": {"id": "chain"}}),
    "POST /api/agents": ({}, {"json": {"name": "chief", "agent": {"system": "Short."}}}),
    "PUT /api/agents/{name}": ({"name": "writer"}, {"json": {"agent": {"system": "Short."}}, "headers": OLD}),
    "POST /api/agents/{name}/try": ({"name": "writer"}, {"json": {"message": "Hi", "model": "openai:gpt-5"}}),
    "POST /api/tools/{name}/try": ({"name": "shut"}, {"json": {}}),
    "DELETE /api/sessions/{id}": ({"id": "s1"}, {}),
    "POST /api/schedules": ({}, {"json": {"id": "nightly", "workflow": "chain", "every": 3600}}),
    "PUT /api/schedules/{sid}": ({"sid": "nightly"}, {"json": {"workflow": "chain", "every": 60}, "headers": OLD}),
    "PUT /api/workflows/{id}/sharing": ({"id": "chain"}, {"json": {"audience": "private"}, "headers": OLD}),
    "PUT /api/agents/{name}/sharing": ({"name": "writer"}, {"json": {"audience": "private"}, "headers": OLD}),
    "PATCH /api/sessions/{id}": ({"id": "s1"}, {"json": {"title": "Tides"}, "headers": OLD}),
    "PUT /api/secrets/{name}": ({"name": "WEATHER"}, {"json": {"value": "another-value"}, "headers": NEW}),
    "PUT /api/secrets/{name}/credential": (
        {"name": "WEATHER"},
        {"json": {"type": "basic", "user": "ann", "password": "sunny-weather"}, "headers": OLD},
    ),
    "DELETE /api/secrets/{name}": ({"name": "WEATHER"}, {"headers": OLD}),
    "DELETE /api/agents/{name}": ({"name": "writer"}, {"headers": OLD}),
    "DELETE /api/schedules/{sid}": ({"sid": "nightly"}, {"headers": OLD}),
    "POST /api/templates/{name}/use": ({"name": "approval"}, {"json": {"id": "chain"}}),
    "PUT /api/datasets/{name}": ({"name": "links"}, {"json": {"workflow": "chain"}, "headers": OLD}),
    "DELETE /api/datasets/{name}": ({"name": "links"}, {"headers": OLD}),
    "PUT /api/workflows/{id}/publication": ({"id": "chain"}, {"json": {}, "headers": OLD}),
    "DELETE /api/workflows/{id}/publication": ({"id": "chain"}, {"headers": OLD}),
    "POST /api/datasets/{name}/evaluate": ({"name": "links"}, {"json": {"model": "openai:gpt-5"}}),
    "PUT /api/models/default": ({}, {"json": {"model": "openai:gpt-5"}}),
    "POST /api/folders": ({}, {"json": {"path": "sales"}}),
    "PATCH /api/folders": ({}, {"params": {"path": "shop"}, "json": {"path": "sales"}}),
    "DELETE /api/folders": ({}, {"params": {"path": "sales"}}),
    "PUT /api/folders/sharing": ({}, {"params": {"path": "sales"}, "json": {"audience": "private"}, "headers": OLD}),
    "PUT /api/workflows/{id}/published": ({"id": "builtin:iterate"}, {"json": {"name": "First"}}),
    "POST /run": ({}, {"json": {"goal": "tides"}}),
    "POST /run/legacy": ({}, {"json": {"goal": "tides"}}),
    "POST /v1/chat/completions": ({}, {"json": {"model": "off", "messages": [{"role": "user", "content": "Hi"}]}}),
    "POST /v1/responses": ({}, {"json": {"model": "off", "input": "Hi"}}),
    "POST /api/backup": ({}, {}),
    "POST /api/workflows/{id}/triggers/{trigger}/try": ({"id": "hooked", "trigger": "hook"}, {"json": {}}),
}
"""Operation -> the names in its path, and the body, in the state that `world` creates."""
ELSEWHERE: Final = {
    "POST /api/workflows/executions/import",
    "POST /api/webhooks/{path}",
    "POST /api/settings/keys",
    "DELETE /api/settings/keys/{name}",
    "POST /api/answer-links/answer",
    "POST /api/answer-links/read",
    "POST /api/comments",
    "PUT /api/models/providers/{name}",
    "DELETE /api/models/providers/{name}",
    "POST /api/published/{token}/chat",
    "POST /api/notifications/addresses/{name}/test",
    "PUT /api/notifications/addresses/{name}",
    "DELETE /api/notifications/addresses/{name}",
    "POST /api/tool-connections/{name}/test",
    "PUT /api/tool-connections/{name}",
    "DELETE /api/tool-connections/{name}",
    "PUT /api/secrets/{name}/authorization",
    "PUT /api/settings/mail",
    "DELETE /api/settings/mail",
    "POST /api/settings/mail/test",
    "PUT /api/settings/{name}",
    "DELETE /api/settings/{name}",
}
"""Tests below, and those of links, comments, models, chats, notifications, credentials and settings, reach their
conflicts."""
ABSENT: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "GET /api/comments": ("/api/comments?kind=workflow&subject=none", {}),
    "POST /api/workflows/{id}/execute/files": (
        "/api/workflows/none/execute/files",
        {"files": {"a": ("a.txt", b"a", "text/plain")}},
    ),
    "POST /api/agents/{name}/try": ("/api/agents/none/try", {"json": {"message": "Hi"}}),
    "GET /api/memory/{scope}": ("/api/memory/team?owner=ada", {}),
    "DELETE /api/memory/{scope}": ("/api/memory/team?owner=ada", {}),
    "PUT /api/memory/{scope}/value": ("/api/memory/team/value?owner=ada&key=likes", {"json": {"value": 1}}),
    "DELETE /api/memory/{scope}/value": ("/api/memory/team/value?owner=ada&key=likes", {}),
    "POST /api/workflows": ("/api/workflows?folder=none", {"content": CHAIN}),
    "POST /run": ("/run", {"json": {"goal": "tides"}}),
    "POST /run/legacy": ("/run/legacy", {"json": {"goal": "tides"}}),
}
"""Operation -> a request for an object that does not exist, where an unknown name is not enough."""
UNREADABLE: Final[dict[str, tuple[str, dict[str, str]]]] = {
    f"GET {EXECUTIONS}/stream": (f"{EXECUTIONS}/stream", {"last-event-id": "x"}),
    f"GET {EXECUTIONS}/{{eid}}/stream": (f"{EXECUTIONS}/{{waiting}}/stream", {"last-event-id": "x"}),
    f"GET {EXECUTIONS}": (f"{EXECUTIONS}?before=x", {}),
    f"GET {EXECUTIONS}/{{eid}}/events": (f"{EXECUTIONS}/{{waiting}}/events?after=x", {}),
    "GET /api/inbox": ("/api/inbox?after=x", {}),
    "GET /api/inbox/answered": ("/api/inbox/answered?after=x", {}),
    "GET /api/memory/{scope}": ("/api/memory/user?owner=ada&after=x", {}),
    "GET /api/memory/{scope}/value": ("/api/memory/user/value?owner=ada&key=%07", {}),
    "GET /api/memory/{scope}/history": ("/api/memory/user/history?owner=ada&key=%07", {}),
    "GET /api/sessions": ("/api/sessions?before=x", {}),
    "GET /api/usage": ("/api/usage?of=colour:red", {}),
    "GET /api/budgets": ("/api/budgets?since=yesterday", {}),
}
"""Reading operations and invalid values: a position, a key, a day."""

EVERYWHERE: Final = {"body-invalid", "host-invalid"}
"""Codes of status 400 that every operation may answer."""


def announcing(status: int) -> set[str]:
    return {one.name for one in OPERATIONS if status in one.refusals}


async def world(served: Served) -> dict[str, str]:
    """Create workflows, executions and other objects, by the names that the tables use."""
    for document in (CHAIN, LETTER, TALK, HOOKED, TALK.replace("id: talk", "id: off")):
        await served.save(document)
    client = served.client
    assert (await client.patch("/api/workflows/off", json={"enabled": False})).status_code == 200
    known = {
        "done": await served.execute("chain"),
        "waiting": await served.execute("letter", {"goal": "tides"}, sessionId="s1"),
        "answered": await served.execute("letter", {"goal": "harbours"}),
        "only": await served.execute("hooked"),
        "turn": await served.execute("talk", {"message": "Hello"}, sessionId="s2"),
        "shut": next(one["name"] for one in (await client.get("/api/tools")).json()["tools"] if one["off"]),
    }
    assert (await client.put("/api/secrets/WEATHER", json={"value": "sunny-weather"})).status_code == 204
    await served.act(known["answered"], "respond", {"gateId": "review", "action": "approve"})
    before: list[tuple[str, Any, dict[str, str]]] = [
        (f"{EXECUTIONS}/bulk", {"verb": "cancel", "workflow": "off", "dryRun": True}, KEY),
        (f"{EXECUTIONS}/{known['done']}/fork", {"at": 1}, KEY),
        (f"{EXECUTIONS}/{known['turn']}/messages", {"message": "a", "wait": True}, KEY),
        ("/api/agents", {"name": "writer", "agent": {"system": "Short."}}, {}),
        ("/api/schedules", {"id": "nightly", "workflow": "chain", "every": 3600}, {}),
        *(("/api/folders", {"path": path}, {}) for path in ("sales", "sales/mail", "shop")),
    ]
    dataset: dict[str, Any] = {
        "workflow": "chain",
        "cases": [{"input": {}}],
        "scorers": [{"name": "right", "kind": "match"}],
    }
    assert (await client.put("/api/datasets/links", json=dataset)).is_success
    for address, body, headers in before:
        reply = await client.post(address, json=body, headers=headers)
        assert reply.is_success, (address, reply.text)
    return known


def test_each_documented_conflict_has_a_test() -> None:
    assert CONFLICTS.keys() | ELSEWHERE == announcing(409)
    reading = [one for one in OPERATIONS if one.method == "GET"]
    assert UNREADABLE.keys() == {one.name for one in reading if one.codes(400) - EVERYWHERE}


async def test_documented_conflicts_occur() -> None:
    chief = {"chief": AgentConfig.model_validate({"system": "Rules."})}
    async with serving(settings=KEYED.model_copy(update={"pipeline": "letter", "agents": chief})) as served:
        known = await world(served)
        missed: list[str] = []
        for name, (named, how) in CONFLICTS.items():
            method, address = name.split()
            for part, value in named.items():
                address = address.replace(f"{{{part}}}", known.get(value, value))
            reply = await served.client.request(method, address, **how)
            if reply.status_code != 409:
                missed.append(f"{name}: {reply.status_code} {reply.text[:200]}")
        assert missed == []


async def test_a_second_import_of_an_execution_is_a_conflict(served: Served) -> None:
    await served.save(CHAIN)
    done = await served.execute("chain")
    export = await served.client.get(f"{EXECUTIONS}/{done}/export")
    reply = await served.client.post(f"{EXECUTIONS}/import", content=export.content)
    assert (reply.status_code, reply.json()["code"]) == (409, "execution-exists")


async def test_a_webhook_call_waits_when_its_workflow_runs_one_at_a_time(served: Served) -> None:
    await served.save(HOOKED)
    await served.execute("hooked")
    at, body = int(served.app.clock.now()), b"{}"
    headers = {
        "content-type": "application/json",
        "webhook-id": "msg-1",
        "webhook-timestamp": str(at),
        "webhook-signature": sign(key_of(SECRET), "msg-1", at, body),
    }
    reply = await served.client.post("/api/webhooks/orders", content=body, headers=headers)
    assert (reply.status_code, reply.json()["code"]) == (409, "concurrency-limit-reached")


async def test_a_key_name_is_used_once_and_the_last_admin_key_stays(served: Served) -> None:
    root = await served.key("root", "admin")
    body = {"name": "root", "role": "viewer"}
    reply = await served.client.post("/api/settings/keys", json=body, headers=root)
    assert (reply.status_code, reply.json()["code"]) == (409, "key-exists")
    reply = await served.client.delete("/api/settings/keys/root", headers=root)
    assert (reply.status_code, reply.json()["code"]) == (409, "last-admin")


@pytest.mark.parametrize("name", ABSENT)
async def test_missing_objects_are_reported(name: str) -> None:
    address, how = ABSENT[name]
    async with serving(settings=Settings(delays=False, pipeline="none")) as served:
        reply = await served.client.request(name.split()[0], address, **how)
        assert reply.status_code == 404, reply.text


async def test_invalid_paths_keys_and_days_are_reported(served: Served) -> None:
    await served.save(LETTER)
    waiting = await served.execute("letter", {"goal": "tides"})
    for name, (address, headers) in UNREADABLE.items():
        reply = await served.client.get(address.format(waiting=waiting), headers=headers)
        assert reply.status_code == 400, (name, reply.text)
