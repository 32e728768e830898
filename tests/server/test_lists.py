"""Lists have a stable order and pages while objects are added and removed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pointsman import Client, Pointsman, Workflow, tool
from pointsman.settings import Settings
from pointsman.values import Json
from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN
from tests.server.test_secrets import KEYED, put


async def pages(served: Served, address: str, name: str, cursor: str = "after", **query: Any) -> list[list[Any]]:
    """Return all pages of a list."""
    found: list[list[Any]] = []
    place: dict[str, str] = {}
    while True:
        reply = await served.client.get(address, params={**query, **place})
        assert reply.status_code == 200, reply.text
        found.append(reply.json()[name])
        if reply.json()["next"] is None:
            return found
        place = {cursor: reply.json()["next"]}


async def test_executions_are_paged_in_both_directions_while_others_start(file_store: str) -> None:
    async with serving(file_store) as served:
        await served.save(CHAIN)
        begun = [await served.execute("chain") for _ in range(5)]
        address = "/api/workflows/executions"
        first = (await served.client.get(address, params={"limit": 2})).json()
        assert [one["executionId"] for one in first["executions"]] == [begun[4], begun[3]]
        begun.append(await served.execute("chain"))
    async with serving(file_store) as served:
        behind = (await served.client.get(address, params={"limit": 2, "before": first["next"]})).json()
        assert [one["executionId"] for one in behind["executions"]] == [begun[2], begun[1]]
        oldest = await pages(served, address, "executions", "before", limit=4, order="asc")
        assert [[one["executionId"] for one in page] for page in oldest] == [begun[:4], begun[4:]]
        entries = [one for page in oldest for one in page]
        assert {one["startedBy"] for one in entries} == {"local"}
        window = {"since": entries[1]["startedAt"], "until": entries[4]["startedAt"]}
        for order, expected in (("asc", begun[1:4]), ("desc", begun[3:0:-1])):
            found = await pages(served, address, "executions", "before", limit=2, order=order, **window)
            assert [one["executionId"] for page in found for one in page] == expected
        searched = await served.client.get(address, params={"q": "one", **window})
        assert {one["executionId"] for one in searched.json()["executions"]} <= set(begun[1:4])


async def test_revisions_of_workflows_and_agents_are_paged_in_both_orders(served: Served) -> None:
    for number in range(12):
        await served.save(CHAIN.replace("prompt: two", f"prompt: two {number}"))
        agent = {"name": "writer", "agent": {"system": f"Draft {number}."}}
        assert (await served.client.post("/api/agents", json=agent)).status_code == 201
    for address, name in (("/api/workflows/chain/versions", "workflows"), ("/api/agents/writer/versions", "agents")):
        newest = await pages(served, address, name, limit=5)
        assert [[one["revision"] for one in page] for page in newest] == [[12, 11, 10, 9, 8], [7, 6, 5, 4, 3], [2, 1]]
        oldest = await pages(served, address, name, limit=10, order="asc")
        assert [one["revision"] for page in oldest for one in page] == [*range(1, 13)]


async def test_agents_are_ordered_by_name_or_by_time(served: Served) -> None:
    for name in ("b", "c", "a"):
        await served.client.post("/api/agents", json={"name": name, "agent": {"system": "Be brief."}})
    for query, expected in (
        ({}, "abc"),
        ({"order": "desc"}, "cba"),
        ({"sort": "savedAt"}, "bca"),
        ({"sort": "savedAt", "order": "desc"}, "acb"),
    ):
        found = await pages(served, "/api/agents", "agents", limit=2, **query)
        assert "".join(one["name"] for page in found for one in page) == expected
    wrong = await served.client.get("/api/agents", params={"sort": "agent"})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "request-invalid")


async def test_keys_and_logins_are_searched_and_paged() -> None:
    async with serving(settings=KEYED) as served:
        keys = {name: await served.key(name, "viewer", "desk") for name in ("cleo", "ada", "ben")}
        served.client.headers.update(await served.key("root", "admin"))
        for name in ("ada", "ben", "ada"):
            shown = keys[name]["authorization"].removeprefix("Bearer ")
            assert (await served.client.post("/api/login", json={"key": shown})).status_code == 200
            assert (await put(served, f"OF_{name.upper()}", "eight letters", {})).status_code == 204
        asked: list[tuple[str, str, dict[str, Any], list[str]]] = [
            ("/api/settings/keys", "keys", {}, ["ada ben", "cleo root"]),
            ("/api/settings/keys", "keys", {"order": "desc"}, ["root cleo", "ben ada"]),
            ("/api/settings/keys", "keys", {"search": "CL DESK"}, ["cleo"]),
            ("/api/people", "people", {}, ["ada ben", "cleo root"]),
            ("/api/people", "people", {"order": "desc", "role": "viewer"}, ["cleo ben", "ada"]),
            ("/api/people", "people", {"search": "desk", "role": "admin"}, [""]),
            ("/api/logins", "logins", {"everyone": True}, ["ada ben", "ada"]),
            ("/api/logins", "logins", {"everyone": True, "search": "ada", "order": "asc"}, ["ada ada"]),
            ("/api/secrets", "secrets", {}, ["OF_ADA OF_BEN"]),
            ("/api/secrets", "secrets", {"search": "root ben"}, ["OF_BEN"]),
        ]
        for address, name, query, expected in asked:
            found = await pages(served, address, name, limit=2, **query)
            assert [" ".join(one["name"] for one in page) for page in found] == expected, (address, query)


async def test_the_client_reads_all_pages_of_lists(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pointsman.client.client.PAGE", 2)
    for number in range(5):
        await served.save(CHAIN.replace("id: chain", f"id: chain-{number}"))
        await served.save(CHAIN.replace("prompt: two", f"prompt: two {number}"))
    async with Client(str(served.client.base_url)) as client:
        ids = [str(one["id"]) for one in await client.workflows()]
        assert [id for id in ids if id.startswith("chain")] == ["chain", *(f"chain-{n}" for n in range(5))]
        assert [one["revision"] for one in await client.workflows("chain")] == [5, 4, 3, 2, 1]


async def test_executions_of_a_stopped_process_are_listed_as_stopped(file_store: str) -> None:
    lingers = asyncio.Event()

    @tool
    async def linger() -> None:
        """Work until the process ends."""
        lingers.set()
        await asyncio.Event().wait()

    node: Json = {"id": "work", "type": "tool", "config": {"tool": "linger"}}
    slow = Workflow.of({"id": "slow", "nodes": [node], "edges": []})
    stopped: list[str] = []
    for _ in range(3):
        async with Pointsman(file_store, tools=[linger], model="scripted", settings=Settings()) as app:
            stopped.append((await app.start(slow)).id)
            await lingers.wait()
    async with serving(file_store) as served:
        await served.save(CHAIN)
        done = await served.execute("chain")

        async def listed(**query: Any) -> list[str]:
            return [
                one["executionId"]
                for page in await pages(served, address, "executions", "before", **query)
                for one in page
            ]

        address = "/api/workflows/executions"
        assert await listed(limit=2) == [done, *reversed(stopped)]
        assert await listed(status="stopped", limit=2) == [*reversed(stopped)]
        assert await listed(status="running") == []
        assert await listed(status=["stopped", "completed"], limit=1) == [done, *reversed(stopped)]
        assert {(await served.read(one))["status"] for one in stopped} == {"stopped"}
