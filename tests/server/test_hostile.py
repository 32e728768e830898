"""Invalid and malicious requests are refused with a message, change nothing, and never cause a traceback."""

from __future__ import annotations

import json
import re

import pytest

from pointsman.definition.model.workflow import RESERVED_IDS
from pointsman.server.application import api, methods_at
from tests.server import documented_operations
from tests.server.conftest import Served
from tests.server.flows import CHAIN, secret_of
from tests.server.test_access import serving

NAMES = [
    "..%2f..%2fetc",
    "%2e%2e",
    "a%2Fb",
    "%00",
    "%0A",
    "%7F",
    "%E2%80%AE",
    "x" * 10_000,
    "%FF",
    "' OR 1=1 --",
    "@",
    "@1",
    "a@" + "9" * 30,
]


@pytest.mark.requirement("T1-11")
@pytest.mark.parametrize(
    "address",
    [
        "/api/workflows/{}",
        "/api/workflows/{}/versions",
        "/api/workflows/executions/{}",
        "/api/workflows/executions/{}/events",
        "/api/agents/{}",
        "/api/tools/{}",
        "/api/schedules/{}",
        "/api/sessions/{}",
        "/api/memory/{}?owner=ada",
        "/api/memory/{}/history?owner=ada&key=likes",
    ],
)
async def test_a_hostile_name_is_not_found(served: Served, address: str) -> None:
    for name in NAMES:
        reply = await served.client.get(address.format(name))
        assert reply.status_code in (400, 404, 422), f"{name[:12]}: {reply.text[:300]}"
        if reply.headers["content-type"] == "application/problem+json":
            assert len(reply.json()["detail"]) < 1_000, name
            assert reply.json()["code"], name


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 422, "request-invalid"),
        (b"{", 400, "body-invalid"),
        (b"\xff\xfe", 400, "body-invalid"),
        (b"[" * 100_000, 400, "body-invalid"),
        (b"[]", 422, "request-invalid"),
        (b'"text"', 422, "request-invalid"),
        (b'{"input": {}, "inputs": {}}', 422, "request-invalid"),
        (b'{"input": {}, "wait": "yes"}', 422, "request-invalid"),
        (b'{"input": {"a": "\\ud800"}}', 422, "input-invalid"),
        (b'{"input": "alone"}', 422, "input-invalid"),
        (b'{"input": {}, "sessionId": "' + b"s" * 10_000 + b'"}', 422, "request-invalid"),
        (b'{"input": {}, "sessionId": "\\u0000"}', 422, "input-invalid"),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_an_invalid_body_starts_nothing(served: Served, body: bytes, status: int, code: str) -> None:
    await served.save(CHAIN)
    reply = await served.client.post(
        "/api/workflows/chain/execute", content=body, headers={"content-type": "application/json"}
    )
    assert (reply.status_code, reply.json()["code"]) == (status, code), reply.text[:300]
    assert (await served.client.get("/api/workflows/executions")).json()["executions"] == []


async def test_a_body_of_another_media_type_is_not_read(served: Served) -> None:
    await served.save(CHAIN)
    for kind in ("text/plain", "application/xml", ""):
        headers = {"content-type": kind} if kind else {}
        reply = await served.client.post("/api/workflows/chain/execute", content=b'{"input": {}}', headers=headers)
        assert (reply.status_code, reply.json()["code"]) == (415, "media-type-refused"), kind


async def test_moderately_nested_json_is_returned_unchanged(served: Served) -> None:
    await served.save(CHAIN)
    body = '{"input": {"deep": ' + "[" * 150 + "]" * 150 + "}}"
    reply = await served.client.post(
        "/api/workflows/chain/execute", content=body, headers={"content-type": "application/json"}
    )
    assert reply.status_code == 202, reply.text[:300]
    view = await served.read(reply.json()["executionId"])
    assert json.dumps(view["input"]["deep"]).count("[") == 150


ALLOWED = {
    "/api/workflows": "GET, POST",
    "/api/workflows/chain": "DELETE, GET, PATCH, PUT",
    "/api/logout": "POST",
    "/api/schedules/a/b": "DELETE, GET, PUT",
    "/api/schedules/a/b/pause": "POST",
    "/api/schedules/times": "POST",
    "/api/workflows/executions": "GET",
    "/api/workflows/executions/bulk": "POST",
    "/api/workflows/schema": "GET",
    "/v1/models": "GET",
    "/workflows/chain": "GET",
}
EVERY = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


@pytest.mark.parametrize("path", ALLOWED)
async def test_a_refused_method_lists_the_allowed_ones(served: Served, path: str) -> None:
    for method in set(EVERY) - set(ALLOWED[path].split(", ")):
        reply = await served.client.request(method, path)
        assert (reply.status_code, reply.headers["allow"]) == (405, ALLOWED[path]), method
        assert "access-control-allow-origin" not in reply.headers


def test_each_path_accepts_exactly_the_documented_methods() -> None:
    documented: dict[str, set[str]] = {}
    for one in documented_operations.OPERATIONS:
        documented.setdefault(one.path, set()).add(one.method)
    allowed = {path: methods_at(api(), re.sub(r"{[^}]*}", "none", path)) for path in documented}
    assert allowed == documented


def test_words_of_api_paths_are_refused_as_workflow_ids() -> None:
    words = {
        found[1]
        for one in documented_operations.OPERATIONS
        if (found := re.fullmatch(r"/api/workflows/(\w+)(/.*)?", one.path))
    }
    assert words <= set(RESERVED_IDS)


@pytest.mark.parametrize(
    "path", ["/api/nothing", "/api/workflows/chain/nothing", "/v1/embeddings", "/nothing", "/mcp/x"]
)
async def test_an_unknown_path_is_not_found_for_every_method(served: Served, path: str) -> None:
    for method in EVERY:
        reply = await served.client.request(method, path, json={})
        assert reply.status_code == 404, method
        assert "allow" not in reply.headers
        if method != "HEAD":
            assert "not-found" in reply.text, method


async def test_a_page_is_full_while_more_visible_objects_exist() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor", "desk"), await served.key("bob", "editor", "day")
        for document in (secret_of("desk"), CHAIN):
            assert (await served.client.post("/api/workflows", content=document, headers=ada)).status_code == 201
        share = {"audience": "everyone"}
        assert (await served.client.put("/api/workflows/chain/sharing", json=share, headers=ada)).status_code == 200
        for n in range(12):
            name = "chain" if n % 4 == 0 else "secret"
            started = await served.client.post(
                f"/api/workflows/{name}/execute", json={"input": {}, "wait": True}, headers=ada
            )
            assert started.status_code == 200
        pages: list[int] = []
        before: str | None = None
        while True:
            params = {"limit": "2", **({"before": before} if before else {})}
            page = (await served.client.get("/api/workflows/executions", params=params, headers=bob)).json()
            pages.append(len(page["executions"]))
            before = page["next"]
            if before is None:
                break
        assert pages == [2, 1]
