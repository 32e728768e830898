"""python -m tests.reliability.stalls [NAME …]: for how long each verb blocks the event loop of a server.

Every verb gets a document of 10 000 nodes or a body as large as its limit. The server runs in its own process; a task
on its event loop measures the pauses (`watched`):

    client ─ request ─▶ server ─▶ longest pause of the loop, processor time of the loop's thread in it, where
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeAlias
from uuid import uuid4

import httpx2
import msgspec

from pointsman.triggers.signatures import key_of, sign
from pointsman.values import Json, JsonObject
from tests.reliability.loop_monitor import FILE
from tests.server.processes import ServerProcess

NODES: Final = 10_000
EXTRA_MS_MAX: Final = 50
"""Maximum pause of the event loop beyond that of a small request."""
ANSWER_S_MAX: Final = 600.0
MB: Final = 1_000_000
SETTINGS: Final = """
model = "scripted"
[limits]
nodes = 200000
steps = 200000
[server]
webhook_bytes_max = 16000000
"""
JSON: Final = {"content-type": "application/json"}
FAMILY: Final = "/api/workflows/executions"


class Stall(msgspec.Struct):
    """The longest pause of the event loop during one verb."""

    longest_ms: int
    busy_ms: int
    """Processor time that the loop's thread used without a pause. Other processes do not increase it."""
    where: list[str]
    verb: str = ""
    status: int = 0


@dataclass(slots=True)
class MonitoredServer:
    """A server with a monitored event loop."""

    server: ServerProcess
    client: httpx2.AsyncClient
    file: Path

    async def stall_of(self, verb: str, work: Callable[[MonitoredServer], Awaitable[int]]) -> Stall:
        await self.reading()
        status = await work(self)
        await asyncio.sleep(0.05)  # Include work after the answer.
        found = await self.reading()
        return msgspec.structs.replace(found, verb=verb, status=status)

    async def reading(self) -> Stall:
        """Return the measurements since the last reading."""
        lines = self.lines
        assert self.server.process is not None
        self.server.process.send_signal(signal.SIGUSR1)
        while len(self.lines) == len(lines):  # noqa: ASYNC110 - another process writes the line
            await asyncio.sleep(0.01)
        return msgspec.json.decode(self.lines[-1], type=Stall)

    @property
    def lines(self) -> list[str]:
        return self.file.read_text("utf-8").splitlines()

    async def send(self, method: str, path: str, body: object = None, **headers: str) -> httpx2.Response:
        content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        return await self.client.request(method, path, content=content, headers={**JSON, **headers})


def chain(id: str = "long", prompt: str = "Go.") -> JsonObject:
    """Return a workflow with a gate and then a chain of agents."""
    gate: JsonObject = {"id": "gate", "type": "human", "config": {"message": "Go on?"}}
    agents: list[Json] = [{"id": f"n{i}", "type": "agent", "config": {"prompt": prompt}} for i in range(NODES - 1)]
    names = ["gate", *(f"n{i}" for i in range(NODES - 1))]
    edges: list[Json] = [{"source": a, "target": b} for a, b in pairwise(names)]
    config: JsonObject = {"humanInLoop": "real_time"}  # Without it `steer` is refused.
    return {"pointsman": 1, "id": id, "config": config, "nodes": [gate, *agents], "edges": edges}


def as_yaml() -> str:
    """Return a chain of agents as YAML, without the gate."""
    nodes = [f"- {{id: n{i}, type: agent, config: {{prompt: Go.}}}}" for i in range(NODES)]
    edges = [f"- {{source: n{i}, target: n{i + 1}}}" for i in range(NODES - 1)]
    return "\n".join(["pointsman: 1", "id: long", "nodes:", *nodes, "edges:", *edges])


SECRET: Final = "a-secret-of-the-test"
SMALL: Final[JsonObject] = {
    "pointsman": 1,
    "id": "small",
    "nodes": [{"id": "gate", "type": "human", "config": {"message": "Go on?"}}],
    "edges": [],
    "triggers": [{"id": "call", "type": "webhook", "path": "orders", "secret": SECRET}],
}
VALUES: Final[list[Json]] = [*range(240_000)]
"""The largest number of values that a body may have."""

Verb: TypeAlias = Callable[[MonitoredServer], Awaitable[int]]


def request(method: str, path: str, body: Callable[[], object] = lambda: None, **headers: str) -> Verb:
    async def send(watched: MonitoredServer) -> int:
        try:
            return (await watched.send(method, path, body(), **headers)).status_code
        except httpx2.TransportError:  # Refused before the whole body was sent.
            return 0

    return send


def webhook(body: Callable[[], object]) -> Verb:
    """Return a signed call of the webhook of `small`."""

    async def send(watched: MonitoredServer) -> int:
        content, at = json.dumps(body()).encode(), int(time.time())
        delivery = uuid4().hex
        headers = {
            "webhook-id": delivery,
            "webhook-timestamp": str(at),
            "webhook-signature": sign(key_of(SECRET), delivery, at, content),
        }
        await watched.reading()
        return (await watched.send("POST", "/api/webhooks/orders", content, **headers)).status_code

    return send


def text_of(megabytes: float) -> str:
    return "x" * int(megabytes * MB)


def said(text: str) -> JsonObject:
    return {"role": "user", "content": text}


MCP: Final = "2026-07-28"


def mcp(name: str, arguments: Callable[[], JsonObject]) -> Verb:
    def body() -> JsonObject:
        meta: JsonObject = {
            "io.modelcontextprotocol/protocolVersion": MCP,
            "io.modelcontextprotocol/clientInfo": {"name": "stalls", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params: JsonObject = {"name": name, "arguments": arguments(), "_meta": meta}
        return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}

    headers = {"mcp-protocol-version": MCP, "mcp-method": "tools/call", "mcp-name": name}
    return request("POST", "/mcp", body, accept="application/json, text/event-stream", **headers)


def on_execution(method: str, path: str, body: Callable[[], object] = lambda: None) -> Verb:
    """Return a verb on an execution of the long workflow."""

    async def send(watched: MonitoredServer) -> int:
        return (await watched.send(method, f"{FAMILY}/{await execution(watched)}{path}", body())).status_code

    return send


async def execution(watched: MonitoredServer) -> str:
    found = await watched.send("GET", "/api/workflows/executions?workflow=long&limit=1&order=asc")
    return str(found.json()["executions"][0]["executionId"])


async def bring_in(watched: MonitoredServer) -> int:
    exported = await watched.client.get(f"{FAMILY}/{await execution(watched)}/export")
    await watched.reading()
    sent = await watched.send("POST", f"{FAMILY}/import?renamed=true", exported.content, **{"content-type": "x/y"})
    return sent.status_code


def fat() -> JsonObject:
    """Return a workflow with a long text and without a webhook, whose path belongs to `small`."""
    return {**SMALL, "id": "fat", "description": text_of(15), "triggers": []}


CHECK: Final = "/api/workflows/check"
LONG: Final = "/api/workflows/long"
VERBS: Final[dict[str, Verb]] = {
    "small: who am I": request("GET", "/api/me"),
    "small: save": request("POST", "/api/workflows", lambda: SMALL),
    "small: start": request("POST", "/api/workflows/small/execute", dict),
    "check an object": request("POST", CHECK, lambda: {"document": chain()}),
    "check a text": request("POST", CHECK, lambda: {"document": json.dumps(chain())}),
    "check YAML": request("POST", CHECK, lambda: {"document": as_yaml()}),
    "save": request("POST", "/api/workflows", chain),
    "save again": request("POST", "/api/workflows", lambda: chain(prompt="Go again.")),
    "replace": request("PUT", LONG, lambda: chain(prompt="Go.")),
    "patch": request("PATCH", LONG, lambda: {"name": "Long"}),
    "read": request("GET", LONG),
    "read as graph": request("GET", f"{LONG}?dialect=graph"),
    "convert to native": request("POST", "/api/workflows/convert", lambda: {"document": chain(), "to": "native"}),
    "convert to mermaid": request("POST", "/api/workflows/convert", lambda: {"document": chain(), "to": "mermaid"}),
    "edit": request("POST", f"{LONG}/edit", lambda: {"operations": []}),
    "clone": request("POST", f"{LONG}/clone", lambda: {"id": "copy"}),
    "diff": request("GET", f"{LONG}/diff"),
    "changes": request("GET", f"{LONG}/changes"),
    "list": request("GET", "/api/workflows"),
    "start": request("POST", f"{LONG}/execute", dict),
    "start again": request("POST", f"{LONG}/execute", dict),
    "view": on_execution("GET", ""),
    "state": on_execution("GET", "/state"),
    "events": on_execution("GET", "/events"),
    "definition": on_execution("GET", "/workflow"),
    "timeline": on_execution("GET", "/timeline"),
    "replay": on_execution("POST", "/replay", dict),
    "replay against": on_execution("POST", "/replay", lambda: {"against": "long"}),
    "move": on_execution("POST", "/move", lambda: {"to": "long", "checkOnly": True}),
    "fork": on_execution("POST", "/fork", lambda: {"at": 1}),
    "pause": on_execution("POST", "/pause"),
    "steer": on_execution("POST", "/steer", lambda: {"set": {"a": 1}}),
    "export": on_execution("GET", "/export"),
    "import": bring_in,
    "dry run": request("POST", f"{LONG}/dry-run", lambda: {"answers": [{"node": "gate", "action": "approve"}]}),
    "try": request("POST", f"{LONG}/try", lambda: {"document": chain(), "until": ["gate"]}),
    "try dry": request("POST", f"{LONG}/try", lambda: {"document": chain(), "dryRun": True, "until": ["n5"]}),
    "values: check": request("POST", CHECK, lambda: {"document": {**SMALL, "nodes": VALUES}}),
    "values: unknown keys": request("POST", CHECK, lambda: {"document": {f"k{i}": i for i in VALUES[::2]}}),
    "values: misfit": request("POST", CHECK, lambda: {"wrong": [[i] for i in VALUES[::2]]}),
    "values: misfit list": request("POST", CHECK, lambda: VALUES),
    "values: misfit items": request("POST", f"{LONG}/edit", lambda: {"operations": VALUES[::2], "text": VALUES[::2]}),
    "values: misfit pinned": request("POST", f"{LONG}/try", lambda: {"pinned": VALUES}),
    "values: misfit until": request("POST", f"{LONG}/try", lambda: {"until": VALUES}),
    "values: misfit answers": request("POST", f"{LONG}/dry-run", lambda: {"answers": VALUES}),
    "values: start": request("POST", "/api/workflows/small/execute", lambda: {"input": {"a": VALUES}}),
    "values: signal": on_execution("POST", "/signals", lambda: {"name": "a", "data": VALUES}),
    "values: steer": on_execution("POST", "/steer", lambda: {"set": {"a": VALUES}}),
    "values: event": request("POST", "/api/events", lambda: {"name": "a", "data": VALUES}),
    "values: memory": request("PUT", "/api/memory/shared/value?key=a", lambda: {"value": VALUES}),
    "values: webhook": webhook(lambda: VALUES),
    "values: chat": request("POST", "/v1/chat/completions", lambda: {"model": "small", "messages": VALUES}),
    "values: responses": request("POST", "/v1/responses", lambda: {"model": "small", "input": VALUES}),
    "values: evaluate": request(
        "POST", "/api/expressions/evaluate", lambda: {"text": "count(a)", "values": {"a": VALUES}}
    ),
    "values: MCP": mcp("check_workflow", lambda: {"document": {**SMALL, "nodes": VALUES}}),
    "values: MCP misfit": mcp("check_workflow", lambda: {"wrong": VALUES}),
    "16 MB: check": request("POST", CHECK, lambda: {"document": text_of(15)}),
    "16 MB: misfit": request("POST", CHECK, lambda: {"document": SMALL, "dialect": text_of(15)}),
    "16 MB: unknown": request("POST", CHECK, lambda: {text_of(15): 1}),
    "16 MB: prompt": request("POST", CHECK, lambda: chain_with_text(15)),
    "16 MB: no JSON": request("POST", CHECK, lambda: b'{"document": ' + b"x" * (15 * MB)),
    "16 MB: no JSON numbers": request("POST", CHECK, lambda: b"[" + b"1" * (15 * MB)),
    "16 MB: webhook": webhook(lambda: {"a": text_of(15)}),
    "16 MB: MCP": mcp("check_workflow", lambda: {"document": text_of(15)}),
    "16 MB: save": request("POST", "/api/workflows", fat),
    "16 MB: start saved": request("POST", "/api/workflows/fat/execute", dict),
    "60 MB: start": request("POST", "/api/workflows/small/execute", lambda: {"input": {"a": text_of(60)}}),
    "60 MB: chat": request(
        "POST",
        "/v1/chat/completions",
        lambda: {"model": "small", "messages": [said(text_of(60))]},
    ),
    "60 MB: responses": request("POST", "/v1/responses", lambda: {"model": "small", "input": text_of(60)}),
    "60 MB: responses misfit": request("POST", "/v1/responses", lambda: {"model": text_of(60), "input": "a"}),
    "MCP check": mcp("check_workflow", lambda: {"document": json.dumps(chain())}),
    "MCP save": mcp("save_workflow", lambda: {"document": json.dumps(chain("by-mcp"))}),
    "MCP read": mcp("get_workflow", lambda: {"workflow": "long"}),
    "MCP edit": mcp("edit_workflow", lambda: {"workflow": "long", "operations": []}),
    "MCP run": mcp("run_workflow", lambda: {"workflow": "long", "wait": False}),
}


def chain_with_text(megabytes: int) -> JsonObject:
    node: JsonObject = {"id": "a", "type": "agent", "config": {"prompt": text_of(megabytes)}}
    return {"document": {"pointsman": 1, "id": "a", "nodes": [node], "edges": []}}


@asynccontextmanager
async def watched() -> AsyncGenerator[MonitoredServer, None]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "stalls"
        file.touch()
        os.environ[FILE] = str(file)
        module = ("tests.reliability.loop_monitor",)
        server = ServerProcess(f"sqlite:///{folder}/store.db", folder=folder, settings=SETTINGS, module=module)
        await server.begin()
        try:
            async with httpx2.AsyncClient(base_url=server.url, timeout=ANSWER_S_MAX) as client:
                yield MonitoredServer(server, client, file)
        finally:
            await server.stop(signal.SIGKILL)


async def stalls(*only: str) -> AsyncGenerator[Stall, None]:
    async with watched() as one:
        for name, verb in VERBS.items():
            if not only or any(part in name for part in only):
                yield await one.stall_of(name, verb)


async def print_stalls(*only: str) -> None:
    async for one in stalls(*only):
        sys.stdout.write(f"{one.verb:26} {one.status} {one.longest_ms:6} ms, {one.busy_ms:6} ms busy\n")
        if one.longest_ms > EXTRA_MS_MAX:
            sys.stdout.write("".join(f"    {where}\n" for where in one.where))
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(print_stalls(*sys.argv[1:]))
