"""Flaws of other products: each class is tested through the server."""

from __future__ import annotations

import json
import pickle
from typing import Any, Final

import pytest

from pointsman.settings import Settings
from tests.server.conftest import QUIET, Served, serving
from tests.server.flows import CHAIN
from tests.server.matrix import LET_IN_BY_THEMSELVES, matrix

CANARY: Final = "canary-3f9a1c77d2"

HOST_LANGUAGE: Final = (
    "''.__class__.__mro__",
    "__import__('os').system('id')",
    "open('/etc/passwd')",
    "(lambda: 1)()",
    "input.__init__.__globals__",
    "eval('1')",
    "'{0.__class__}'.format(1)",
    "getattr(input, 'x')",
    "[x for x in ().__class__.__bases__]",
)


def setting(expression: str) -> dict[str, Any]:
    """Return a workflow that computes one expression."""
    node = {"id": "compute", "type": "transform", "config": {"set": {"found": expression}}}
    return {"pointsman": 1, "id": "computes", "nodes": [node], "output": {"found": "found"}}


def asking(url: str, **config: Any) -> dict[str, Any]:
    """Return a workflow that sends one request."""
    node = {"id": "ask", "type": "http", "config": {"url": url, **config}}
    return {"pointsman": 1, "id": "asks", "nodes": [node]}


async def ran(served: Served, document: dict[str, Any]) -> Any:
    """Return the result of a run; None: saving was refused."""
    saved = await served.client.post("/api/workflows", content=json.dumps(document))
    assert saved.status_code in (201, 422), saved.text
    if saved.status_code == 422:
        assert saved.json()["problems"]
        return None
    body: dict[str, Any] = {"input": {}, "wait": True}
    reply = await served.client.post(f"/api/workflows/{document['id']}/execute", json=body)
    assert reply.status_code in (200, 422), reply.text
    return reply.json() if reply.status_code == 200 else None


@pytest.mark.parametrize("expression", HOST_LANGUAGE)
async def test_expressions_cannot_reach_the_host_language(served: Served, expression: str) -> None:
    view = await ran(served, setting(expression))
    assert view is None or view["status"] == "failed" or view["output"] == {"found": None}, view
    assert "root:" not in json.dumps(view)
    assert "<class" not in json.dumps(view)


@pytest.mark.parametrize(
    "bomb", ["(" * 5_000 + "1" + ")" * 5_000, "9 ** 9 ** 9 ** 9", "'a' * 1000000000", "-" * 20_000 + "1"]
)
async def test_expressions_cannot_exhaust_time_or_memory(served: Served, bomb: str) -> None:
    view = await ran(served, setting(bomb))
    assert view is None or view["status"] == "failed", str(view)[:300]


class Bomb:
    """An object that runs code when it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return (print, (CANARY,))


@pytest.mark.parametrize(
    "body",
    [
        pickle.dumps(Bomb()),
        b'{"py/object": "os.system", "py/args": ["id"]}',
        b'{"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {"command": "id"}}',
        b"!!python/object/apply:os.system ['id']",
    ],
    ids=["pickle", "jsonpickle", "constructor", "yaml tag"],
)
async def test_stored_data_cannot_build_objects(
    served: Served, body: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    for address in ("/api/workflows/executions/import", "/api/workflows"):
        reply = await served.client.post(address, content=body)
        assert 400 <= reply.status_code < 500, reply.text
    assert CANARY not in capsys.readouterr().out


INJECTED: Final = ("' OR '1'='1", "x'; DROP TABLE executions; --", '" OR 1=1 --', "%", "chain' UNION SELECT 1 --")


@pytest.mark.parametrize("text", INJECTED)
async def test_filters_cannot_inject_sql(file_store: str, text: str) -> None:
    async with serving(file_store) as served:
        await served.save(CHAIN)
        await served.execute("chain")
        for name in ("workflow", "session", "status", "before"):
            reply = await served.client.get("/api/workflows/executions", params={name: text})
            assert reply.status_code < 500, reply.text
            assert reply.status_code >= 400 or reply.json()["executions"] == [], name
        assert len((await served.client.get("/api/workflows/executions")).json()["executions"]) == 1


async def test_no_endpoint_builds_or_runs_without_authentication() -> None:
    async with serving(is_local=False) as served:
        await served.key("root", "admin")
        operations = matrix()
        assert len(operations) > 50
        open_to_all: set[str] = set()
        for operation in operations:
            method, path = operation.split()
            address = path.replace("{", "").replace("}", "")
            reply = await served.client.request(method, address, json={})
            if reply.status_code != 401:
                open_to_all.add(operation)
        assert open_to_all == LET_IN_BY_THEMSELVES
        assert len(open_to_all) <= 15, open_to_all


INSIDE: Final = (
    "http://169.254.169.254/latest/meta-data/",
    "http://127.0.0.1/",
    "http://localhost/",
    "http://[::1]/",
    "http://10.0.0.1/",
    "http://[::ffff:169.254.169.254]/",
    "file:///etc/passwd",
    "gopher://127.0.0.1/",
)


@pytest.mark.parametrize("url", INSIDE)
async def test_http_tools_cannot_reach_internal_addresses(served: Served, url: str) -> None:
    view = await ran(served, asking(url))
    assert view is None or view["status"] == "failed"
    assert view is None or view["errors"][-1]["code"] in ("address-refused", "address-unreachable"), view["errors"]


@pytest.mark.parametrize("path", ["..%2f..%2fetc%2fpasswd", "%2e%2e", "....//", "%00", "C:%5cwindows", "~root"])
async def test_ids_cannot_traverse_paths(served: Served, path: str) -> None:
    for address in ("/api/workflows/", "/api/workflows/executions/", "/session/", "/"):
        reply = await served.client.get(f"{address}{path}")
        assert 400 <= reply.status_code < 500, (address, reply.status_code)
        assert "root:" not in reply.text


async def test_exports_logs_and_errors_contain_no_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings.model_validate({**QUIET.model_dump(), "secrets": {"TOKEN": CANARY}})
    async with serving(settings=settings) as served:
        document: dict[str, Any] = asking("http://127.0.0.1:9/x", headers={"authorization": "Bearer {secret.TOKEN}"})
        view = await ran(served, document)
        seen = [json.dumps(view), (await served.client.get("/api/workflows/asks")).text]
        if view is not None:
            execution = view["executionId"]
            addresses = [f"/api/workflows/executions/{execution}{one}" for one in ("", "/events", "/state", "/stream")]
            seen += [(await served.client.get(address)).text for address in addresses]
        misread = await served.client.post("/api/login", json={"key": CANARY, "unknown": CANARY})
        assert misread.status_code == 422
        seen.append(misread.text)
        assert not [text for text in seen if CANARY in text]
    out = capsys.readouterr()
    assert CANARY not in out.out + out.err
