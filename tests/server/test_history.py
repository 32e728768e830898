"""Over HTTP: what executions cost, and the search in what they said; for those who may see it."""

from __future__ import annotations

from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN, secret_of


async def test_callers_are_told_the_cost_of_what_they_see_and_find_it_alone() -> None:
    async with serving(is_local=False) as served:
        admin = await served.key("root", "admin")
        inside, outside = await served.key("ada", "editor", "desk"), await served.key("bob", "editor", "day")
        for document, workflow, header in ((secret_of("desk"), "secret", inside), (CHAIN, "chain", outside)):
            assert (await served.client.post("/api/workflows", content=document, headers=header)).status_code == 201
            shared = {"visibility": "everyone"}
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


async def test_the_table_comes_as_csv_too_and_what_is_no_day_is_refused(served: Served) -> None:
    await served.save(CHAIN)
    await served.execute("chain")
    reply = await served.client.get("/api/usage?by=workflow&by=node&csv=true")
    assert reply.headers["content-type"].startswith("text/csv")
    head, *lines = reply.text.splitlines()
    assert head.startswith("workflow,node,steps,")
    assert sorted(line.split(",")[1] for line in lines) == ["first", "second"]
    refused = await served.client.get("/api/usage?since=yesterday")
    assert (refused.status_code, refused.json()["code"]) == (400, "period-invalid")
