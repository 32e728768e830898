"""Lists contain exactly the gates that accept answers."""

from __future__ import annotations

import json

from pointsman import Pointsman, Workflow
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject

ASK: JsonObject = {"id": "ask", "type": "human", "config": {"message": "Well?"}}
LISTEN: JsonObject = {"id": "listen", "type": "wait", "config": {"event": "news"}}


def split(*nodes: JsonObject) -> Workflow:
    edges: list[Json] = [{"source": "fork", "target": node["id"]} for node in nodes]
    document: JsonObject = {"pointsman": 1, "id": "split", "edges": edges}
    return Workflow.parse(json.dumps({**document, "nodes": [{"id": "fork", "type": "parallel"}, *nodes]}))


async def test_a_cancelled_execution_lists_no_gate() -> None:
    async with Pointsman("memory:", settings=Settings(), model="scripted") as app:
        execution = await app.start(split(ASK, LISTEN))
        await execution.settled()
        assert [gate.node for gate in execution.gates] == ["ask"]
        await execution.cancel()
        view = await execution.view()
        assert (execution.status, execution.gates) == ("cancelled", [])
        assert (view["waiting"], view["awaiting"]) == ([], [])


async def test_a_failed_execution_lists_no_gate() -> None:
    fails: JsonObject = {"id": "fails", "type": "end", "config": {"terminate": True, "status": "failed"}}
    async with Pointsman("memory:", settings=Settings(), model="scripted") as app:
        execution = await app.start(split(ASK, LISTEN, fails))
        await execution.settled()
        view = await execution.view()
        assert (execution.status, execution.gates) == ("failed", [])
        assert (view["waiting"], view["awaiting"]) == ([], [])
