"""Operations on documents besides saving: patch, convert, play, and uploads."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN, LETTER

COMMENTED = "# A chain.\n" + CHAIN.replace("id: chain\n", "id: chain\nname: Chain # as shown\n")
PICTURED = """\
pointsman: 1
id: pictured
input: {type: object}
output: {kind: picture.mediaType, name: picture.name, question: question}
nodes:
  - {id: done, type: end}
"""


async def test_a_patch_changes_its_fields_and_keeps_the_authors_text(served: Served) -> None:
    await served.save(COMMENTED)
    reply = await served.client.patch(
        "/api/workflows/chain", json={"name": "Links", "tags": ["demo"], "description": "Two."}
    )
    assert (reply.status_code, reply.json()["revision"]) == (200, 2)
    read = (await served.client.get("/api/workflows/chain")).json()
    assert read["text"].startswith("# A chain.\n")
    assert read["document"]["name"] == "Links"
    assert read["document"]["tags"] == ["demo"]
    assert "{id: first, type: agent, config: {prompt: one}, outputs: {a: result}}" in read["text"]
    again = await served.client.patch("/api/workflows/chain", json={"tags": None})
    assert again.json()["revision"] == 3
    assert "tags" not in (await served.client.get("/api/workflows/chain")).json()["document"]


@pytest.mark.parametrize(
    ("text", "losses"),
    [
        (COMMENTED, []),
        ('{"pointsman": 1, "id": "chain", "nodes": [{"id": "say", "type": "agent"}]}', []),
        ('{"pointsman": 1, "id": "chain", // said\n "nodes": [{"id": "say", "type": "agent"}]}', ["comments"]),
        (
            "# As said.\ntitle: chain\ngoal: Say it.\nsteps: [{description: Say it., input_sources: [user]}]\n",
            ["'plan'"],
        ),
    ],
    ids=["native", "json", "commented", "plan"],
)
async def test_a_patch_reports_lost_parts_of_the_text(served: Served, text: str, losses: list[str]) -> None:
    saved = await served.client.post("/api/workflows?draft=true", content=text)
    assert saved.status_code == 201, saved.text
    said = (await served.client.patch(saved.headers["location"], json={"name": "Links"})).json()["losses"]
    assert [word for word in losses if word in "".join(said)] == losses
    assert len(said) == len(losses)


async def test_a_workflow_is_switched_off_and_on_by_a_patch(served: Served) -> None:
    await served.save(json.dumps({"pointsman": 1, "id": "one", "nodes": [{"id": "say", "type": "agent"}]}))
    assert (await served.client.patch("/api/workflows/one", json={"enabled": False})).status_code == 200
    refused = await served.client.post("/api/workflows/one/execute", json={"input": {}})
    assert (refused.status_code, refused.json()["code"]) == (409, "workflow-disabled")
    assert (await served.client.patch("/api/workflows/one", json={"enabled": None})).status_code == 200
    assert (await served.client.post("/api/workflows/one/execute", json={"input": {}})).status_code == 202


@pytest.mark.parametrize(
    ("patch", "status", "code"),
    [
        ({"nodes": []}, 422, "field-not-patched"),
        ({"id": "other"}, 422, "field-not-patched"),
        ({"version": "one"}, 422, "workflow-invalid"),
        ({"enabled": "no"}, 422, "request-invalid"),
        ([], 422, "request-invalid"),
    ],
)
async def test_a_patch_of_a_fixed_field_is_refused(served: Served, patch: object, status: int, code: str) -> None:
    await served.save(CHAIN)
    reply = await served.client.patch("/api/workflows/chain", json=patch)
    assert (reply.status_code, reply.json()["code"]) == (status, code)
    assert len((await served.client.get("/api/workflows/chain/versions")).json()["workflows"]) == 1


async def test_one_of_two_servers_replaces_a_revision_that_both_have_read(file_store: str) -> None:
    async with serving(file_store) as one, serving(file_store) as other:
        await one.save(CHAIN)
        read = {"if-match": (await other.client.get("/api/workflows/chain")).headers["etag"]}
        first = await one.client.put("/api/workflows/chain", content=CHAIN.replace("two", "due"), headers=read)
        second = await other.client.put("/api/workflows/chain", content=CHAIN.replace("two", "zwei"), headers=read)
        patch = await other.client.patch("/api/workflows/chain", json={"name": "Late"}, headers=read)
        assert [reply.status_code for reply in (first, second, patch)] == [200, 409, 409]
        assert second.json()["code"] == "revision-moved"
        assert len((await one.client.get("/api/workflows/chain/versions")).json()["workflows"]) == 2


async def test_a_document_is_converted_without_being_saved(served: Served) -> None:
    drawn = (await served.client.post("/api/workflows/convert", json={"document": LETTER, "to": "mermaid"})).json()
    assert drawn["text"].startswith("flowchart")
    assert drawn["document"] is None
    rows = (await served.client.post("/api/workflows/convert", json={"document": LETTER, "to": "rows"})).json()
    back = await served.client.post("/api/workflows/convert", json={"document": rows["document"], "to": "native"})
    assert {node["id"] for node in back.json()["document"]["nodes"]} >= {"write", "review"}
    assert (await served.client.get("/api/workflows?builtIn=false")).json()["workflows"] == []


async def test_a_dry_run_reaches_the_end_and_stores_nothing(served: Served) -> None:
    await served.save(LETTER)
    reply = await served.client.post(
        "/api/workflows/letter/dry-run",
        json={"input": {"goal": "tides"}, "answers": [{"node": "review", "action": "approve"}]},
    )
    assert reply.status_code == 200, reply.text
    assert reply.json()["path"] == ["write", "review", "send"]
    assert [call["nodeId"] for call in reply.json()["calls"]] == ["write"]
    assert (await served.client.get("/api/workflows/executions")).json()["executions"] == []


async def test_an_execution_is_started_with_files(served: Served) -> None:
    await served.save(PICTURED)
    form = {"input": (None, json.dumps({"question": "What is it?"})), "wait": (None, "true")}
    picture = {"picture": ("cat.png", b"\x89PNG\r\n", "image/png")}
    reply = await served.client.post("/api/workflows/pictured/execute/files", files={**form, **picture})
    assert reply.status_code == 200, reply.text
    assert reply.json()["output"] == {"kind": "image/png", "name": "cat.png", "question": "What is it?"}
    assert base64.b64decode(reply.json()["input"]["picture"]["data"]) == b"\x89PNG\r\n"


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"input": (None, "{")}, "not JSON"),
        ({"input": (None, '{"question": "a", "question": "b"}')}, "the key 'question' is there twice"),
        ({"input": (None, "[1]"), "a": ("a", b"x")}, "must be an object"),
        ({"input": (None, '{"a": 1}'), "a": ("a", b"x")}, "given twice"),
        ({"other": (None, "x")}, "is not a file"),
    ],
)
async def test_a_form_that_is_not_a_valid_input_is_refused(served: Served, form: dict[str, Any], said: str) -> None:
    await served.save(PICTURED)
    reply = await served.client.post("/api/workflows/pictured/execute/files", files=form)
    assert (reply.status_code, reply.json()["code"]) == (422, "input-invalid")
    assert said in reply.json()["detail"]


async def test_a_start_can_choose_the_model_of_one_execution(served: Served) -> None:
    await served.save(CHAIN)
    refused = await served.client.post("/api/workflows/chain/execute", json={"input": {}, "model": "openai:gpt-5"})
    assert (refused.status_code, refused.json()["code"]) == (409, "model-override")
    served.app.context.services.model = None
    chosen = await served.client.post(
        "/api/workflows/chain/execute", json={"input": {}, "wait": True, "model": "scripted:quick"}
    )
    assert (chosen.json()["status"], chosen.json()["model"]) == ("completed", "scripted:quick")
