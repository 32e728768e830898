"""Datasets and evaluation runs over HTTP."""

from __future__ import annotations

from tests.server.conftest import Served

DOUBLED = """
pointsman: 1
id: doubled
output: {twice: twice}
nodes: [{id: double, type: transform, config: {set: {twice: n * 2}}}]
"""


async def test_a_dataset_is_filled_and_evaluated(served: Served) -> None:
    await served.save(DOUBLED)
    first = await served.execute("doubled", {"n": 4})
    body = {"workflow": "doubled", "scorers": [{"name": "right", "kind": "match"}], "format": "csv"}
    saved = await served.client.put("/api/datasets/numbers", json={**body, "text": "n,expected.twice\n1,2\n2,5\n"})
    assert (saved.status_code, saved.json()["count"]) == (200, 2)
    added = await served.client.post("/api/datasets/numbers/cases", json={"executionId": first})
    assert added.json()["count"] == 3
    begun = await served.client.post("/api/datasets/numbers/evaluate", json={"parallel": 2})
    assert begun.status_code == 202
    name = begun.json()["executionId"]
    await served.ended(name)
    run = (await served.client.get(f"/api/evaluations/{name}")).json()
    assert [case["scores"]["right"] for case in run["cases"]] == [1.0, 0.0, 1.0]
    listed = (await served.client.get("/api/evaluations", params={"dataset": "numbers"})).json()["runs"]
    assert [one["executionId"] for one in listed] == [name]
    assert (await served.client.get(f"/api/evaluations/{first}")).json()["code"] == "unknown-evaluation"
    assert (await served.client.delete("/api/datasets/numbers")).status_code == 204
    assert (await served.client.get("/api/datasets/numbers")).status_code == 404
