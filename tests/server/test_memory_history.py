"""History of memory over HTTP: authors, pages, restore, and access."""

from __future__ import annotations

import json

import pytest

from pointsman.values import Json, JsonObject
from tests.server.conftest import Served, serving

HISTORY = "/api/memory/shared/history"
TEAM = {"owner": "team", "key": "tone"}


def note(*groups: str) -> str:
    """Return a workflow that writes the tone of the team."""
    config: JsonObject = {"scope": "shared", "namespace": "team", "operation": "set", "key": "tone", "value": "text"}
    return json.dumps(
        {
            "id": "note",
            "input": {"type": "object", "properties": {"text": {"type": "string"}}},
            "allowedGroups": [*groups],
            "nodes": [{"id": "keep", "type": "memory", "config": config}],
            "edges": [],
        }
    )


async def write(served: Served, value: Json, headers: dict[str, str] | None = None) -> None:
    reply = await served.client.put("/api/memory/shared/value", params=TEAM, json={"value": value}, headers=headers)
    assert reply.status_code == 200, reply.text


async def test_the_history_of_a_value_survives_a_restart_and_can_restore_it(file_store: str) -> None:
    async with serving(file_store) as served:
        await served.save(note())
        execution = await served.execute("note", {"text": "short"})
        await write(served, "long")
    async with serving(file_store) as served:
        told = (await served.client.get(HISTORY, params=TEAM)).json()
        assert told["next"] is None
        assert [(one["number"], one["value"], one["by"]) for one in told["changes"]] == [
            (2, "long", {"person": "local", "entrance": "local"}),
            (1, "short", {"execution": execution, "workflow": "note", "node": "keep"}),
        ]
        back = await served.client.post(HISTORY, params=TEAM, json={"number": 1})
        assert (back.status_code, back.json()["value"]) == (200, "short")
        gone = await served.client.post(HISTORY, params=TEAM, json={"number": 9})
        assert (gone.status_code, gone.json()["code"]) == (404, "no-such-memory")
    async with serving(file_store) as served:
        assert (await served.client.get("/api/memory/shared/value", params=TEAM)).json()["value"] == "short"
        told = (await served.client.get(HISTORY, params=TEAM)).json()
        assert [one["number"] for one in told["changes"]] == [3, 2, 1]
        assert (await served.client.delete("/api/memory/shared/value", params=TEAM)).status_code == 204
        assert (await served.client.get(HISTORY, params=TEAM)).json()["code"] == "no-such-memory"


async def test_memory_history_is_paged(served: Served) -> None:
    for number in range(7):
        await write(served, number)
    seen: list[Json] = []
    params = {**TEAM, "limit": "3"}
    while True:
        page = (await served.client.get(HISTORY, params=params)).json()
        seen += [one["value"] for one in page["changes"]]
        if page["next"] is None:
            break
        assert len(page["changes"]) == 3
        params["after"] = page["next"]
    assert seen == [6, 5, 4, 3, 2, 1, 0]
    for place in ("x", "-1", "1.5", "9" * 900, "٣"):
        odd = await served.client.get(HISTORY, params={**TEAM, "after": place})
        assert (odd.status_code, odd.json()["code"]) == (400, "position-invalid"), place
    for body in ({}, {"number": 0}, {"number": "1"}, {"number": 1.5}, {"number": 1, "value": 2}):
        assert (await served.client.post(HISTORY, params=TEAM, json=body)).status_code == 422, body


@pytest.mark.requirement("S1-28")
async def test_memory_history_omits_hidden_executions() -> None:
    async with serving(is_local=False) as served:
        inside = await served.key("ada", "editor", "desk")
        outside = await served.key("bob", "operator", "day")
        assert (await served.client.post("/api/workflows", content=note("desk"), headers=inside)).status_code == 201
        started = await served.client.post(
            "/api/workflows/note/execute", json={"input": {"text": "short"}, "wait": True}, headers=inside
        )
        assert started.json()["status"] == "completed", started.text
        await write(served, "long", outside)
        bob = {"person": "bob", "entrance": "key"}
        keep = {"execution": started.json()["executionId"], "workflow": "note", "node": "keep"}
        for headers, writers in ((inside, [bob, keep]), (outside, [bob, None])):
            told = (await served.client.get(HISTORY, params=TEAM, headers=headers)).json()["changes"]
            assert [(one["value"], one["by"]) for one in told] == [("long", writers[0]), ("short", writers[1])]


async def test_memory_history_of_a_user_is_visible_only_to_the_user() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "operator"), await served.key("bob", "operator")
        viewer = await served.key("vera", "viewer")
        params = {"owner": "ada", "key": "likes"}
        for value in ("maps", "tides"):
            await served.client.put("/api/memory/user/value", params=params, json={"value": value}, headers=ada)
        asked = {"ada": ada, "bob": bob}
        got = {
            name: await served.client.get("/api/memory/user/history", params=params, headers=headers)
            for name, headers in asked.items()
        }
        assert {name: reply.status_code for name, reply in got.items()} == {"ada": 200, "bob": 403}
        assert [one["by"] for one in got["ada"].json()["changes"]] == [{"person": "ada", "entrance": "key"}] * 2
        for headers in (bob, viewer):
            put = await served.client.post(
                "/api/memory/user/history", params=params, json={"number": 1}, headers=headers
            )
            assert put.status_code == 403
