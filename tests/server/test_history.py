"""Costs of executions and full-text search over HTTP, for callers with access."""

from __future__ import annotations

from pointsman.values import JsonObject
from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN, secret_of


async def test_usage_covers_only_visible_executions() -> None:
    async with serving(is_local=False) as served:
        admin = await served.key("root", "admin")
        inside, outside = await served.key("ada", "editor", "desk"), await served.key("bob", "editor", "day")
        for document, workflow, header in ((secret_of("desk"), "secret", inside), (CHAIN, "chain", outside)):
            assert (await served.client.post("/api/workflows", content=document, headers=header)).status_code == 201
            shared = {"audience": "everyone"}
            await served.client.put(f"/api/workflows/{workflow}/sharing", json=shared, headers=header)
            body = {"input": {"about": f"harbour {workflow}"}, "wait": True}
            reply = await served.client.post(f"/api/workflows/{workflow}/execute", json=body, headers=header)
            assert reply.json()["status"] == "completed", reply.text

        async def workflows(header: dict[str, str]) -> tuple[set[str], set[str]]:
            usage = (await served.client.get("/api/usage", headers=header)).json()["usage"]
            address = "/api/workflows/executions?q=HARBOUR"
            found = (await served.client.get(address, headers=header)).json()["executions"]
            return {row["workflow"] for row in usage}, {one["workflowId"] for one in found}

        assert await workflows(admin) == ({"secret", "chain"}, {"secret", "chain"})
        told, found = await workflows(outside)
        assert (told, found) == ({"chain"}, {"chain"})
        assert "secret" in (await workflows(inside))[0]


async def test_usage_is_exported_as_csv_and_an_invalid_day_is_refused(served: Served) -> None:
    await served.save(CHAIN)
    await served.execute("chain")
    reply = await served.client.get("/api/usage?by=workflow&by=node&csv=true")
    assert reply.headers["content-type"].startswith("text/csv")
    head, *lines = reply.text.splitlines()
    assert head.startswith("workflow,node,steps,")
    assert sorted(line.split(",")[1] for line in lines) == ["first", "second"]
    refused = await served.client.get("/api/usage?since=yesterday")
    assert (refused.status_code, refused.json()["code"]) == (400, "period-invalid")


async def test_usage_by_user_and_execution_is_limited_to_visible_ones() -> None:
    async with serving(is_local=False) as served:
        admin = await served.key("root", "admin")
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        assert (await served.client.post("/api/workflows", content=CHAIN, headers=ada)).status_code == 201
        await served.client.put("/api/workflows/chain/sharing", json={"audience": "private"}, headers=ada)
        run: JsonObject = {"input": {}, "wait": True}
        began = (await served.client.post("/api/workflows/chain/execute", json=run, headers=ada)).json()

        async def rows(header: dict[str, str], ask: str) -> list[str]:
            told = await served.client.get(f"/api/usage?by={ask}", headers=header)
            assert told.status_code == 200, told.text
            return [str(row[ask.partition("&")[0]]) for row in told.json()["usage"]]

        assert await rows(admin, "user") == ["ada"] == await rows(ada, "user")
        assert await rows(ada, "execution&of=user:ada&of=node:first") == [began["executionId"]]
        assert await rows(ada, "execution&of=user:bob") == []
        assert await rows(bob, "user") == await rows(bob, "execution") == []


async def test_a_truncated_usage_table_has_its_number_of_rows(served: Served) -> None:
    await served.save(CHAIN)
    for _ in range(3):
        await served.execute("chain")
    told = (await served.client.get("/api/usage?by=execution&limit=2")).json()
    assert (len(told["usage"]), told["rows"]) == (2, 3)
    refused = await served.client.get("/api/usage?of=colour:red")
    assert (refused.status_code, refused.json()["code"]) == (400, "usage-unknown")


async def test_budgets_are_shown_to_callers_who_see_the_workflow() -> None:
    bounded = CHAIN.replace("nodes:", "config: {limits: {modelCalls: 5}}\nnodes:", 1)
    async with serving(is_local=False) as served:
        admin, ada = await served.key("root", "admin"), await served.key("ada", "editor")
        bob = await served.key("bob", "viewer")
        assert (await served.client.post("/api/workflows", content=bounded, headers=ada)).status_code == 201
        await served.client.put("/api/workflows/chain/sharing", json={"audience": "private"}, headers=ada)

        async def told(header: dict[str, str]) -> list[tuple[str, float]]:
            reply = await served.client.get("/api/budgets", headers=header)
            return [(row["measure"], row["most"]) for row in reply.json()["budgets"]]

        assert await told(admin) == [("modelCalls", 5)] == await told(ada)
        assert await told(bob) == []
        refused = await served.client.get("/api/budgets?since=yesterday", headers=bob)
        assert (refused.status_code, refused.json()["code"]) == (400, "period-invalid")
