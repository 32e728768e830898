"""Limits of the cost of callers' documents, over the API and MCP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from pointsman.settings.sections import DocumentSettings
from pointsman.values import Json, JsonObject
from tests.server.conftest import QUIET, Served, serving

LIMITS = DocumentSettings(workers=1, seconds=0.15, seconds_per_mb=0, memory_mb=600)


def chain(count: int, id: str = "long") -> JsonObject:
    nodes: list[Json] = [{"id": f"n{i}", "type": "agent", "config": {"prompt": "Go."}} for i in range(count)]
    edges: list[Json] = [{"source": f"n{i}", "target": f"n{i + 1}"} for i in range(count - 1)]
    return {"pointsman": 1, "id": id, "nodes": nodes, "edges": edges}


@pytest.fixture(scope="module")
def long_chain() -> JsonObject:
    return chain(10_000)


@pytest.fixture
async def limited(ready_forks: None) -> AsyncIterator[Served]:
    async with serving(settings=QUIET.model_copy(update={"documents": LIMITS})) as served:
        yield served


async def test_each_operation_refuses_a_document_that_is_too_expensive(limited: Served, long_chain: JsonObject) -> None:
    client, text = limited.client, json.dumps(long_chain)
    assert (await client.post("/api/workflows", json=chain(2))).status_code == 201
    replies = {
        "check": await client.post("/api/workflows/check", json={"document": long_chain}),
        "convert": await client.post("/api/workflows/convert", json={"document": text, "to": "mermaid"}),
        "save": await client.post("/api/workflows", content=text),
        "replace": await client.put("/api/workflows/long", content=text),
        "edit": await client.post("/api/workflows/long/edit", json={"text": text}),
        "try": await client.post("/api/workflows/long/try", json={"document": long_chain}),
    }
    assert {name: (one.status_code, one.json()["code"]) for name, one in replies.items()} == dict.fromkeys(
        replies, (422, "document-too-expensive")
    )
    assert "`seconds` and `seconds_per_mb` under [documents]" in replies["check"].json()["hint"]
    assert (await client.post("/api/workflows/check", json={"document": chain(3)})).json()["ok"]
    assert (await client.get("/api/workflows/long")).json()["revision"] == 1


async def test_the_serving_process_neither_reads_documents_nor_evaluates_formulas(
    limited: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("the server itself works on a document")

    monkeypatch.setattr("pointsman.workflows.document_work.CHEAP_S_MAX", -1)
    monkeypatch.setattr("pointsman.workflows.sources.read_document", fail)
    monkeypatch.setattr("pointsman.workflows.formulas.compile_expression", fail)
    post, text = limited.client.post, "pointsman: 1\nid: small\nnodes: [{id: a, type: agent, config: {prompt: Go.}}]\n"
    assert (await post("/api/workflows/check", json={"document": text})).json()["id"] == "small"
    assert (
        "flowchart" in (await post("/api/workflows/convert", json={"document": text, "to": "mermaid"})).json()["text"]
    )
    assert (await post("/api/workflows", content=text)).status_code == 201
    assert (await post("/api/workflows/small/edit", json={"operations": []})).json()["ok"]
    assert (await limited.client.patch("/api/workflows/small", json={"name": "Small"})).json()["revision"] == 2
    assert "+" in (await limited.client.get("/api/workflows/small/diff")).text
    found = await post("/api/expressions/evaluate", json={"text": "a + 1", "values": {"a": 1}})
    assert found.json()["value"] == 2
