"""Workflows over HTTP: save, read, compare, delete, and their problems."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pointsman.definition.model.workflow import RESERVED_IDS
from tests.server.conftest import Served
from tests.server.flows import CHAIN

EXAMPLES = Path("examples")
DOCUMENTS = sorted(
    path
    for path in [*EXAMPLES.glob("*/*.json"), *EXAMPLES.glob("*/*.yaml")]
    if not path.name.endswith((".test.yaml", "script.yaml"))
)


@pytest.mark.requirement("S1-75", "S1-76", "S1-77", "S1-78", "S1-79", "S1-124")
async def test_a_workflow_is_saved_read_replaced_compared_and_deleted(served: Served) -> None:
    created = await served.client.post("/api/workflows", content=CHAIN)
    assert created.status_code == 201
    assert created.json()["revision"] == 1
    assert created.headers["location"] == "/api/workflows/chain"

    read = await served.client.get("/api/workflows/chain")
    assert read.json()["document"]["nodes"][0]["config"]["prompt"] == "one"
    assert read.json()["text"] == CHAIN
    assert read.headers["etag"] == created.headers["etag"]

    replaced = await served.client.put("/api/workflows/chain", content=CHAIN.replace("two", "three"))
    assert (replaced.status_code, replaced.json()["revision"]) == (200, 2)
    versions = (await served.client.get("/api/workflows/chain/versions")).json()["workflows"]
    assert [one["revision"] for one in versions] == [2, 1]
    assert (await served.client.get("/api/workflows/chain@1")).json()["text"] == CHAIN
    difference = (await served.client.get("/api/workflows/chain/diff?from=1&to=2")).text
    assert "prompt: two" in difference
    assert "prompt: three" in difference

    assert [one["id"] for one in (await served.client.get("/api/workflows?builtIn=false")).json()["workflows"]] == [
        "chain"
    ]
    assert (await served.client.delete("/api/workflows/chain")).status_code == 204
    assert (await served.client.get("/api/workflows?builtIn=false")).json() == {"workflows": [], "next": None}
    assert (await served.client.get("/api/workflows/chain")).status_code == 404
    assert (await served.client.delete("/api/workflows/chain")).status_code == 404


async def test_a_replacement_of_a_changed_revision_is_refused(served: Served) -> None:
    await served.save(CHAIN)
    read = (await served.client.get("/api/workflows/chain")).headers["etag"]
    first = await served.client.put(
        "/api/workflows/chain", content=CHAIN.replace("two", "zwei"), headers={"if-match": read}
    )
    assert first.status_code == 200
    second = await served.client.put(
        "/api/workflows/chain", content=CHAIN.replace("two", "due"), headers={"if-match": read}
    )
    assert (second.status_code, second.json()["code"]) == (409, "revision-moved")
    assert "two" not in (await served.client.get("/api/workflows/chain")).json()["text"]
    again = await served.client.put(
        "/api/workflows/chain", content=CHAIN.replace("two", "due"), headers={"if-match": first.headers["etag"]}
    )
    assert again.status_code == 200


async def test_one_of_many_concurrent_replacements_succeeds(served: Served) -> None:
    await served.save(CHAIN)
    read = {"if-match": (await served.client.get("/api/workflows/chain")).headers["etag"]}
    replies = await asyncio.gather(
        *(
            served.client.put("/api/workflows/chain", content=CHAIN.replace("two", f"text {n}"), headers=read)
            for n in range(8)
        )
    )
    assert sorted(reply.status_code for reply in replies) == [200] + [409] * 7
    assert len((await served.client.get("/api/workflows/chain/versions")).json()["workflows"]) == 2


@pytest.mark.parametrize("text", [path.read_text(encoding="utf-8") for path in DOCUMENTS], ids=map(str, DOCUMENTS))
async def test_every_example_of_every_dialect_is_accepted_unchanged(served: Served, text: str) -> None:
    reply = await served.client.post("/api/workflows?draft=true", content=text)
    assert reply.status_code == 201, reply.text
    read = (await served.client.get(f"/api/workflows/{reply.json()['id']}")).json()
    assert read["text"] == text
    native = await served.client.get(f"/api/workflows/{reply.json()['id']}?dialect=native")
    assert native.json()["document"]["pointsman"]
    drawn = await served.client.get(f"/api/workflows/{reply.json()['id']}?dialect=mermaid")
    assert drawn.text.startswith("flowchart")


async def test_yaml_is_the_text_of_its_author_with_comments_and_json_documents_become_yaml(served: Served) -> None:
    text = "# The first greeting.\n" + CHAIN
    await served.save(text)
    exported = await served.client.get("/api/workflows/chain?dialect=native&format=yaml")
    assert exported.headers["content-type"].startswith("application/yaml")
    assert exported.text == text
    document = (await served.client.get("/api/workflows/chain?dialect=native")).json()["document"]
    await served.client.post("/api/workflows", json={**document, "id": "copy"})
    copy = (await served.client.get("/api/workflows/copy?dialect=native&format=yaml")).text
    assert copy.startswith("pointsman: 1\nid: copy\n")
    assert (await served.client.post("/api/workflows", content=copy)).status_code == 201


@pytest.mark.requirement("S1-85")
async def test_an_invalid_definition_is_refused_with_all_problems_or_saved_as_a_draft(served: Served) -> None:
    broken = CHAIN.replace("target: second", "target: third").replace("type: agent", "type: agnet", 1)
    refused = await served.client.post("/api/workflows", content=broken)
    assert (refused.status_code, refused.json()["code"]) == (422, "workflow-invalid")
    assert len(refused.json()["problems"]) >= 2
    assert all(problem["line"] for problem in refused.json()["problems"])
    assert refused.headers["content-type"] == "application/problem+json"
    draft = await served.client.post("/api/workflows?draft=true", content=CHAIN.replace("target: second", "target: x"))
    assert draft.status_code == 201
    refused_run = await served.client.post("/api/workflows/chain/execute", json={"input": {}})
    assert refused_run.status_code == 422


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe\x00", b"{", b"[" * 100_000, b"nodes: [", b"a: &a [*a]", b"null", b"\x00"], ids=repr
)
async def test_a_body_that_is_not_a_workflow_is_refused_with_a_reason(served: Served, body: bytes) -> None:
    reply = await served.client.post("/api/workflows", content=body)
    assert reply.status_code == 422
    assert reply.json()["detail"]


@pytest.mark.parametrize("query", ["", "?draft=true"])
@pytest.mark.parametrize("word", RESERVED_IDS)
async def test_a_workflow_id_cannot_be_a_word_of_the_api_paths(served: Served, word: str, query: str) -> None:
    reply = await served.client.post(f"/api/workflows{query}", content=CHAIN.replace("id: chain", f"id: {word}"))
    assert (reply.status_code, reply.json()["code"]) == (422, "workflow-invalid")
    assert "a reserved word of URLs" in reply.json()["detail"]
    assert [one["code"] for one in reply.json()["problems"]] == ["bad-value"]


async def test_a_document_is_checked_without_being_saved(served: Served) -> None:
    fine = (await served.client.post("/api/workflows/check", json={"document": CHAIN})).json()
    assert (fine["ok"], fine["dialect"]) == (True, "native")
    wrong = (await served.client.post("/api/workflows/check", json={"document": {"pointsman": 1, "nodes": []}})).json()
    assert not wrong["ok"]
    assert wrong["problems"]
    assert (await served.client.get("/api/workflows?builtIn=false")).json() == {"workflows": [], "next": None}


@pytest.mark.requirement("S4-56", "S4-40")
async def test_built_in_workflows_are_listed_read_run_and_cloned_but_not_changed(served: Served) -> None:
    client = served.client
    listed = (await client.get("/api/workflows?builtIn=true")).json()["workflows"]
    assert {one["id"] for one in listed} >= {"builtin:iterate", "builtin:deep_research"}
    assert all(one["builtIn"] and one["createdAt"] is None for one in listed)
    read = await client.get("/api/workflows/builtin:iterate")
    assert (read.json()["builtIn"], read.json()["document"]["id"]) == (True, "builtin:iterate")
    await served.execute("builtin:iterate", {"items": [1], "instruction": "Count"})
    for reply in (
        await client.put("/api/workflows/builtin:iterate", content=read.json()["text"]),
        await client.post("/api/workflows", content=read.json()["text"]),
        await client.delete("/api/workflows/builtin:iterate"),
        await client.post("/api/workflows/builtin:iterate/clone", json={"id": "builtin:mine"}),
    ):
        assert (reply.status_code, reply.json()["code"]) == (409, "built-in-workflow")
    cloned = await client.post("/api/workflows/builtin:iterate/clone", json={"id": "mine"})
    assert (cloned.status_code, cloned.json()["id"], cloned.json()["revision"]) == (201, "mine", 1)
    assert cloned.headers["location"] == "/api/workflows/mine"
    assert (await client.get("/api/workflows/mine")).json()["builtIn"] is False
    again = await client.post("/api/workflows/builtin:iterate/clone", json={"id": "mine"})
    assert (again.status_code, again.json()["code"]) == (409, "workflow-exists")
    for wrong in ("../mine", "a/b", "x" * 201, ""):
        assert (await client.post("/api/workflows/mine/clone", json={"id": wrong})).status_code == 422
    assert (await client.post("/api/workflows/none/clone", json={"id": "other"})).status_code == 404


async def test_a_new_workflow_does_not_replace_an_existing_one(served: Served) -> None:
    new = {"if-none-match": "*"}
    assert (await served.client.post("/api/workflows", content=CHAIN, headers=new)).status_code == 201
    other = CHAIN.replace("two", "zwei")
    refused = await served.client.post("/api/workflows", content=other, headers=new)
    assert (refused.status_code, refused.json()["code"]) == (409, "revision-moved")
    assert (await served.client.get("/api/workflows/chain")).json()["revision"] == 1
    assert (await served.client.post("/api/workflows", content=other)).status_code == 201
