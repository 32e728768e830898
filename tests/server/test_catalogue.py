"""The list of workflows: search, order, pages; and bulk verbs for named executions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN, LETTER

BULK = "/api/workflows/executions/bulk"


def document(id: str, name: str = "", **said: str) -> str:
    lines = "".join(f"{key}: {value}\n" for key, value in {"name": name or id, **said}.items())
    return CHAIN.replace("id: chain\n", f"id: {id}\n{lines}")


async def listed(served: Served, query: str = "", headers: dict[str, str] | None = None) -> Any:
    reply = await served.client.get(f"/api/workflows?builtIn=false{query}", headers=headers)
    assert reply.status_code == 200, reply.text
    return reply.json()


async def ids(served: Served, query: str = "") -> list[str]:
    return [one["id"] for one in (await listed(served, query))["workflows"]]


async def test_workflows_are_found_by_words_of_their_description_and_by_tags(served: Served) -> None:
    await served.save(document("one", "Tides", tags="[sea, daily]", description="When the WATER comes"))
    await served.save(document("two", "Harbour", tags="[sea]", description="{en: Ships, de: Schiffe im Wasser}"))
    await served.save(document("three", "Mail"))
    assert await ids(served, "&search=wa") == ["one", "two"]
    assert await ids(served, "&search=SCHIFFE%20harb") == ["two"]
    assert await ids(served, "&search=dail") == ["one"]
    assert await ids(served, "&search=nodes") == [], "documents are not searched"
    assert await ids(served, "&tag=sea") == ["one", "two"]
    assert await ids(served, "&tag=sea&tag=daily") == ["one"]
    assert await ids(served, "&tag=se") == []
    assert await ids(served, "&id=two&id=nope") == ["two"]
    assert await ids(served, "&id=two&tag=daily") == []
    one, two, three = sorted((await listed(served))["workflows"], key=lambda entry: entry["name"], reverse=True)[::-1]
    assert (one["tags"], one["description"]) == (["sea"], {"en": "Ships", "de": "Schiffe im Wasser"})
    assert (two["id"], two["tags"], two["description"]) == ("three", [], None)
    assert "document" not in three


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["b", "c", "d"]),
        ("&order=desc", ["d", "c", "b"]),
        ("&sort=name", ["d", "c", "b"]),
        ("&sort=name&order=desc", ["b", "c", "d"]),
        ("&sort=saved", ["c", "b", "d"]),
        ("&sort=saved&order=desc", ["d", "b", "c"]),
    ],
)
async def test_the_next_page_continues_after_the_last_one_in_every_order(
    served: Served, query: str, expected: list[str]
) -> None:
    for id, name in (("c", "Middle"), ("b", "zebra"), ("d", "Ant")):
        await served.save(document(id, name))
    found: list[str] = []
    after = ""
    for nth in range(5):
        page = await listed(served, f"{query}&limit=1{after}")
        found += [one["id"] for one in page["workflows"]]
        if nth == 0:
            assert (await served.client.delete(f"/api/workflows/{found[0]}")).status_code == 204
        if page["next"] is None:
            break
        after = f"&after={page['next']}".replace("\t", "%09").replace(" ", "%20")
    assert found == expected, "also when what one has read is deleted meanwhile"


async def test_each_workflow_shows_its_last_visible_execution() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        for id in ("one", "two"):
            reply = await served.client.post("/api/workflows", content=document(id), headers=ada)
            assert reply.status_code == 201
        body: dict[str, Any] = {"input": {}, "wait": True}
        started = [
            (await served.client.post("/api/workflows/one/execute", json=body, headers=ada)).json()["executionId"]
            for _ in range(2)
        ]
        one, two = (await listed(served, "&last=true", ada))["workflows"]
        assert (one["lastExecution"]["executionId"], one["lastExecution"]["status"]) == (started[-1], "completed")
        assert two["lastExecution"] is None
        assert "lastExecution" not in (await listed(served, "", ada))["workflows"][0]
        shared = {"audience": "private"}
        await served.client.put("/api/workflows/one/sharing", json=shared, headers=ada)
        assert [entry["id"] for entry in (await listed(served, "&last=true", bob))["workflows"]] == ["two"]


async def test_a_check_returns_the_revision_that_saving_would_replace(served: Served) -> None:
    fresh = (await served.client.post("/api/workflows/check", json={"document": CHAIN})).json()
    assert (fresh["ok"], fresh["id"], fresh["revision"]) == (True, "chain", None)
    await served.save(CHAIN)
    await served.save(CHAIN.replace("two", "three"))
    known = (await served.client.post("/api/workflows/check", json={"document": CHAIN})).json()
    assert (known["id"], known["revision"]) == ("chain", 2)
    unread = (await served.client.post("/api/workflows/check", json={"document": "[1]"})).json()
    assert (unread["ok"], unread["id"], unread["revision"]) == (False, None, None)


async def test_a_bulk_verb_reports_each_named_execution() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "operator")
        await served.client.post("/api/workflows", content=LETTER, headers=ada)
        await served.client.put("/api/workflows/letter/sharing", json={"audience": "private"}, headers=ada)
        begun = [
            (
                await served.client.post(
                    "/api/workflows/letter/execute", json={"input": {"goal": "tides"}, "wait": True}, headers=ada
                )
            ).json()["executionId"]
            for _ in range(3)
        ]
        meant = {"verb": "cancel", "executions": [begun[0], begun[0], "nobody"]}
        told = (await served.client.post(BULK, json=meant, headers=ada)).json()["executions"]
        assert [(one["executionId"], one["status"]) for one in told] == [(begun[0], "cancelled"), ("nobody", "refused")]
        assert "unknown-execution" in told[1]["error"]
        again = (await served.client.post(BULK, json={**meant, "dryRun": True}, headers=ada)).json()["executions"]
        assert "verb-not-applicable" in again[0]["error"]
        unseen = (await served.client.post(BULK, json={**meant, "executions": begun[1:]}, headers=bob)).json()
        assert [one["error"].partition(" ")[0] for one in unseen["executions"]] == ["[unknown-execution]"] * 2
        both = await served.client.post(BULK, json={**meant, "until": 0}, headers=ada)
        assert (both.status_code, both.json()["code"]) == (422, "request-invalid")
        for each in begun[1:]:
            reply = await served.client.get(f"/api/workflows/executions/{each}", headers=ada)
            assert reply.json()["status"] == "waiting"


async def test_a_bulk_verb_needs_an_explicit_request_for_all_executions(served: Served) -> None:
    await served.save(LETTER)
    begun = [await served.execute("letter", {"goal": "tides"}) for _ in range(2)]
    unclears: list[dict[str, Any]] = [
        {},
        {"statuses": []},
        {"all": True, "workflow": "letter"},
        {"all": True, "executions": begun[:1]},
    ]
    for unclear in unclears:
        refused = await served.client.post(BULK, json={"verb": "cancel", **unclear})
        assert (refused.status_code, refused.json()["code"]) == (422, "request-invalid"), unclear
    meant = await served.client.post(BULK, json={"verb": "cancel", "dryRun": True})
    assert {one["executionId"]: one["status"] for one in meant.json()["executions"]} == dict.fromkeys(begun, "waiting")
    told = await served.client.post(BULK, json={"verb": "cancel", "all": True})
    assert {one["executionId"]: one["status"] for one in told.json()["executions"]} == dict.fromkeys(begun, "cancelled")
