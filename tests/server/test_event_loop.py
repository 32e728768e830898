"""Work that grows with the size of a caller's document runs outside the thread of the event loop."""

from __future__ import annotations

import json
import threading
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import TypeAlias

import pytest

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.executions import dry_run as playing
from pointsman.ports import Row
from pointsman.server import bodies
from pointsman.server.routes import operations
from pointsman.values import Json, JsonObject
from pointsman.workflows import document_work
from tests.server.conftest import Served

NODES = 600
EXECUTIONS = "/api/workflows/executions"


def long_workflow(prompt: str = "Go.") -> JsonObject:
    """Return a workflow with a gate and a chain of agents."""
    names = ["gate", *(f"n{i}" for i in range(NODES))]
    gate: JsonObject = {"id": "gate", "type": "human", "config": {"message": "Go on?"}}
    agents: list[Json] = [{"id": name, "type": "agent", "config": {"prompt": prompt}} for name in names[1:]]
    edges: list[Json] = [{"source": a, "target": b} for a, b in pairwise(names)]
    return {"pointsman": 1, "id": "long", "nodes": [gate, *agents], "edges": edges}


Verb: TypeAlias = Callable[[Served, str], Awaitable[int]]


def request(method: str, path: str, body: JsonObject | None = None) -> Verb:
    async def send(served: Served, execution: str) -> int:
        reply = await served.client.request(method, path.format(execution=execution), json=body)
        return reply.status_code

    return send


VERBS: dict[str, Verb] = {
    "check": request("POST", "/api/workflows/check", {"document": long_workflow()}),
    "save": request("PUT", "/api/workflows/long", long_workflow("Go again.")),
    "patch": request("PATCH", "/api/workflows/long", {"name": "Long"}),
    "read": request("GET", "/api/workflows/long"),
    "read in another dialect": request("GET", "/api/workflows/long?dialect=graph"),
    "edit": request("POST", "/api/workflows/long/edit", {"operations": []}),
    "clone": request("POST", "/api/workflows/long/clone", {"id": "copy"}),
    "compare": request("GET", "/api/workflows/long/diff"),
    "changes": request("GET", "/api/workflows/long/changes"),
    "start": request("POST", "/api/workflows/long/execute", {}),
    "dry run": request("POST", "/api/workflows/long/dry-run", {}),
    "try": request("POST", "/api/workflows/long/try", {"document": long_workflow(), "until": ["gate"]}),
    "definition": request("GET", EXECUTIONS + "/{execution}/workflow"),
    "replay": request("POST", EXECUTIONS + "/{execution}/replay", {}),
    "replay against another": request("POST", EXECUTIONS + "/{execution}/replay", {"against": "long"}),
    "move": request("POST", EXECUTIONS + "/{execution}/move", {"to": "long", "checkOnly": True}),
    "fork": request("POST", EXECUTIONS + "/{execution}/fork", {"at": 1}),
    "export": request("GET", EXECUTIONS + "/{execution}/export"),
}


@pytest.fixture
def on_loop(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the work that the thread of the event loop does on long workflows."""
    loop, found = threading.get_ident(), list[str]()
    read, written = WorkflowDefinition.from_document, WorkflowDefinition.to_document

    def note(what: str, size: int) -> None:
        if threading.get_ident() == loop and size >= NODES:
            found.append(what)

    def from_document(document: Json) -> object:
        nodes = document.get("nodes") if isinstance(document, dict) else None
        note("read", len(nodes) if isinstance(nodes, list) else 0)
        return read(document)

    def to_document(workflow: WorkflowDefinition) -> JsonObject:
        note("written", len(workflow.nodes))
        return written(workflow)

    monkeypatch.setattr(document_work, "CHEAP_S_MAX", -1.0)  # Otherwise this document is cheap on a fast machine.
    monkeypatch.setattr(WorkflowDefinition, "from_document", staticmethod(from_document))
    monkeypatch.setattr(WorkflowDefinition, "to_document", to_document)
    return found


@pytest.mark.parametrize("name", VERBS)
async def test_a_verb_does_not_read_a_long_workflow_on_the_event_loop(
    served: Served, on_loop: list[str], name: str
) -> None:
    assert (await served.client.post("/api/workflows", json=long_workflow())).status_code == 201
    started = await served.client.post("/api/workflows/long/execute", json={})
    assert await VERBS[name](served, started.json()["executionId"]) < 300
    assert not on_loop


async def test_a_long_dry_run_is_summarised_off_the_event_loop(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    threads, summed_up = list[int](), playing.path_of

    def noted(rows: Iterable[Row]) -> list[str]:
        threads.append(threading.get_ident())
        return summed_up(rows)

    monkeypatch.setattr(playing, "path_of", noted)
    assert (await served.client.post("/api/workflows", json=long_workflow())).status_code == 201
    reply = await served.client.post("/api/workflows/long/dry-run", json={})
    assert len(reply.json()["path"]) == NODES + 1
    assert threads
    assert threading.get_ident() not in threads


async def test_a_large_body_is_decoded_off_the_event_loop(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = list[int]()

    class Decoder(json.JSONDecoder):
        def raw_decode(self, s: str, idx: int = 0) -> tuple[Json, int]:
            threads.append(threading.get_ident())
            return super().raw_decode(s, idx)

    monkeypatch.setattr(bodies, "json", SimpleNamespace(loads=partial(json.loads, cls=Decoder)))
    reply = await served.client.post("/api/workflows/check", json={"document": {"id": "x" * 30_000}})
    assert reply.status_code == 200
    assert threads
    assert threading.get_ident() not in threads


async def test_the_api_document_is_made_outside_the_event_loop(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def record(api: object) -> bytes:
        threads.append(threading.get_ident())
        return b"{}"

    monkeypatch.setattr(operations, "_document", record)
    assert (await served.client.get("/api/openapi.json")).json() == {}
    assert threads
    assert threading.get_ident() not in threads
