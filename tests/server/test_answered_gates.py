"""The list of answers to gates: whose they are, who sees them, and that they stay."""

from __future__ import annotations

from typing import Any

from pointsman.store.sqlite import SqliteStore
from tests.cli.test_people import TWO_OF_THREE
from tests.server.conftest import Served, serving
from tests.server.flows import LETTER

Header = dict[str, str]
TWICE = """\
pointsman: 1
id: twice
nodes:
  - {id: review, type: human, config: {message: Send it?, options: [{value: approve}]}}
  - {id: again, type: human, config: {message: Really?, options: [{value: approve}]}}
edges: [{source: review, target: again}]
"""


async def answered(served: Served, by: Header | None = None, **query: str | int) -> list[dict[str, Any]]:
    reply = await served.client.get("/api/inbox/answered", params=query, headers=by or {})
    assert reply.status_code == 200, reply.text
    return list(reply.json()["answers"])


async def begun(served: Served, workflow: str, by: Header, **given: str) -> str:
    body = {"input": given, "wait": True}
    reply = await served.client.post(f"/api/workflows/{workflow}/execute", json=body, headers=by)
    return str(reply.json()["executionId"])


async def answer(served: Served, execution: str, by: Header, **body: str) -> None:
    address = f"/api/workflows/executions/{execution}/respond"
    reply = await served.client.post(address, json={"gateId": "review", "action": "approve", **body}, headers=by)
    assert reply.status_code == 200, reply.text


async def test_answers_outlive_the_process_and_not_their_execution(file_store: str) -> None:
    async with serving(file_store) as served:
        await served.save(LETTER)
        execution = await served.execute("letter", {"goal": "tides"})
        (gate,) = (await served.client.get("/api/inbox")).json()["gates"]
        await answer(served, execution, {}, comment="Fine.")
    async with serving(file_store) as served:
        await served.read_events(execution)
        (entry,) = await answered(served)
        assert (entry["executionId"], entry["gateId"]) == (execution, gate["gateId"])
        assert (entry["message"], entry["action"], entry["comment"]) == (gate["message"], "approve", "Fine.")
        assert (entry["by"], entry["closed"], entry["visible"], entry["inside"]) == ("local", True, True, None)
        deleted = await served.client.delete(f"/api/workflows/executions/{execution}")
        assert deleted.status_code < 300, deleted.text
        assert await answered(served) == []


async def test_a_fork_does_not_repeat_the_answers_of_its_origin(served: Served) -> None:
    await served.save(TWICE)
    execution = await served.execute("twice")
    await answer(served, execution, {})
    fork = (await served.act(execution, "fork", {}, expect=202))["executionId"]
    assert [gate["nodeId"] for gate in (await served.read(fork))["waiting"]] == ["again"]
    assert [one["executionId"] for one in await answered(served)] == [execution]


async def test_people_see_their_own_answers_and_those_in_executions_they_may_see() -> None:
    async with serving(is_local=False) as served:
        ada, ben = await served.key("ada", "operator"), await served.key("ben", "operator")
        olga = await served.key("olga", "editor")
        await served.client.post("/api/workflows", content=TWO_OF_THREE, headers=olga)
        first, second = [await begun(served, "publish", olga, text=text) for text in ("x", "y")]
        await answer(served, first, ada)
        await answer(served, first, ben)
        await answer(served, second, ada)
        await served.client.put("/api/workflows/publish/sharing", json={"audience": "private"}, headers=olga)

        own = await answered(served, ada)
        assert [(one["executionId"], one["closed"]) for one in own] == [(second, False), (first, False)]
        assert {one["visible"] for one in own} == {False}, "ada answered, and may not open the executions"
        assert await answered(served, ada, everyone="true") == []
        everyone = await answered(served, olga, everyone="true")
        assert [(one["by"], one["closed"]) for one in everyone] == [("ada", False), ("ben", True), ("ada", False)]
        assert await answered(served, olga) == []


async def test_pages_contain_each_answer_once(served: Served) -> None:
    await served.save(LETTER)
    executions = [await served.execute("letter", {"goal": "tides"}) for _ in range(5)]
    for execution in executions:
        await answer(served, execution, {})
    listed: list[str] = []
    after: dict[str, str] = {}
    while True:
        page = (await served.client.get("/api/inbox/answered", params={"limit": 2, **after})).json()
        listed += [one["executionId"] for one in page["answers"]]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert listed == executions[::-1]


async def test_a_copy_of_a_store_has_the_answers(file_store: str) -> None:
    async with serving(file_store) as served:
        await served.save(LETTER)
        execution = await served.execute("letter", {"goal": "tides"})
        await answer(served, execution, {})
        store = served.app.store
        assert isinstance(store, SqliteStore)
        parts = {part.table: part.rows for part in store.copying.read()}
        assert [row[0] for row in parts["answers"]] == [execution]
