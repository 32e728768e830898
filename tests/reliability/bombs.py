"""Document bombs: small and large documents and expressions that are expensive to read, check, convert or evaluate.

A viewer sends them to a server in its own process. Meanwhile an honest client with another key sends requests:

    viewer ─ bomb ─▶ server ◀─ honest client: longest answer, longest check
                      ├─▶ resident memory of the server
                      └─▶ resident memory of its workers
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import httpx2

from pointsman.values import Json, JsonObject
from tests.reliability.findings import Finding
from tests.reliability.floods import resident_mb
from tests.server.processes import ServerProcess

SECONDS: Final = 1.0
"""Processor time that the server allows for a document here. It is short, so that the experiment is fast."""
WORKER_MB: Final = 400
SETTINGS: Final = (
    f'model = "scripted"\n[documents]\nworkers = 2\nseconds = {SECONDS}\nseconds_per_mb = 1\nmemory_mb = {WORKER_MB}\n'
)
MEMORY_MB_MAX: Final = 96
"""Maximum growth of the server's memory by one bomb."""
LATENCY_S_MAX: Final = 1.0
"""Limit of the honest client's longest answer, and of its longest check beyond the time of one worker."""
ANSWER_S_MAX: Final = 30.0
ASK_EVERY_S: Final = 0.02
ANSWERED: Final = frozenset({200, 400, 422})

CHECK: Final = "/api/workflows/check"
CONVERT: Final = "/api/workflows/convert"
CHECK_FORMULA: Final = "/api/expressions/check"
EVALUATE: Final = "/api/expressions/evaluate"

Sent: TypeAlias = tuple[str, JsonObject]
"""A path and a body."""


def workflow(nodes: list[Json], edges: list[Json], **more: Json) -> JsonObject:
    return {"pointsman": 1, "id": "bomb", "nodes": nodes, "edges": edges, **more}


def node(number: int, **more: Json) -> JsonObject:
    return {"id": f"n{number}", "type": "agent", "config": {"prompt": "Go."}, **more}


def edge(source: int, target: int) -> JsonObject:
    return {"source": f"n{source}", "target": f"n{target}"}


def chain(count: int, **more: Json) -> JsonObject:
    return workflow([node(i) for i in range(count)], [edge(i, i + 1) for i in range(count - 1)], **more)


def check(document: Json) -> Sent:
    return CHECK, {"document": document}


def evaluate(text: str, kind: str = "expression", **values: Json) -> Sent:
    return EVALUATE, {"text": text, "kind": kind, "values": values}


def full_graph(count: int) -> JsonObject:
    return workflow([node(i) for i in range(count)], [edge(a, b) for a in range(count) for b in range(count)])


def doubling_refs(levels: int) -> JsonObject:
    defs: JsonObject = {
        f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}]} for i in range(levels)
    }
    return {"$defs": {**defs, f"d{levels}": {"type": "string"}}, "$ref": "#/$defs/d0"}


def nested(levels: int) -> Json:
    return json.loads("[" * levels + "]" * levels)


def billion_laughs(levels: int) -> str:
    lines = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, levels)]
    return "\n".join(["a0: &a0 [x, x]", *lines])


def merge_keys(keys: int, times: int) -> str:
    inner = ", ".join(f"k{i}: 1" for i in range(keys))
    return f"a: &a {{{inner}}}\n" + "\n".join(f"b{i}: {{<<: *a, x: 1}}" for i in range(times))


def with_schema(schema: Json) -> JsonObject:
    return workflow([node(0, config={"prompt": "Go.", "outputSchema": schema})], [], input=schema)


def with_output(output: JsonObject) -> JsonObject:
    return {**chain(2), "output": output}


BOMBS: Final[dict[str, Callable[[int], Sent]]] = {
    "wrong nodes": lambda n: check({**chain(2), "nodes": [*range(400 * n)]}),
    "unknown keys": lambda n: check({**chain(2), **{f"unknown{i}": 1 for i in range(400 * n)}}),
    "chain": lambda n: check(chain(50 * n)),
    "chain as text": lambda n: check(json.dumps(chain(50 * n))),
    "self edges": lambda n: check(workflow([node(0)], [edge(0, 0)] * (100 * n))),
    "dangling edges": lambda n: check(workflow([node(0)], [edge(0, i) for i in range(1, 100 * n)])),
    "full graph": lambda n: check(full_graph(n)),
    "doubling references": lambda _: check(with_schema(doubling_refs(40))),
    "enumerations": lambda n: check(
        {
            **with_schema({"type": "object", "properties": {"a": {"enum": [*range(50 * n)]}}}),
            "output": {"b": "a"},
            "outputSchema": {"properties": {"b": {"enum": [*range(50 * n, 100 * n)]}}},
        }
    ),
    "pattern": lambda _: check(with_schema({"type": "string", "pattern": "(a+)+$", "default": "a" * 40 + "!"})),
    "long id": lambda n: check(workflow([{**node(0), "id": "x" * (5_000 * n)}], [])),
    "misspelt references": lambda n: check(
        workflow([node(i, config={"prompt": f"{{{{nodes.m{i}x.output}}}}"}) for i in range(20 * n)], [])
    ),
    "different models": lambda n: check(
        workflow([node(i, config={"prompt": "Go.", "model": f"provider{i}:m"}) for i in range(20 * n)], [])
    ),
    "different sub-workflows": lambda n: check(
        workflow([{"id": f"n{i}", "type": "workflow", "config": {"workflow": f"w{i}"}} for i in range(20 * n)], [])
    ),
    "aliases": lambda _: check(billion_laughs(9)),
    "aliased nodes": lambda n: check(
        f"a: &a {{prompt: Go., tools: [{', '.join(['x'] * 50)}]}}\nnodes:\n"
        + "\n".join(f"- {{id: n{i}, type: agent, config: *a}}" for i in range(10 * n))
    ),
    "merge keys": lambda n: check(merge_keys(50 * n, 5 * n)),
    "YAML": lambda n: check("nodes:\n" + "\n".join(f"- {{id: n{i}, type: agent}}" for i in range(30 * n))),
    "deep YAML": lambda n: check("[" * (500 * n)),
    "quoted YAML": lambda n: check("a: " + "? " * (500 * n)),
    "deep JSON": lambda _: check(with_schema(nested(150))),
    "deep expression": lambda _: check(with_output({"a": "(" * 500 + "1" + ")" * 500})),
    "long expression": lambda n: check(with_output({f"a{i}": "1 + " * 200 + "1" for i in range(n)})),
    "drawing": lambda n: (CONVERT, {"document": chain(50 * n), "to": "mermaid"}),
    "drawing as BPMN": lambda n: (CONVERT, {"document": chain(20 * n), "to": "bpmn"}),
    "another dialect": lambda n: (CONVERT, {"document": chain(50 * n), "to": "rows"}),
    "checked formula": lambda _: (CHECK_FORMULA, {"text": "[1, 2, 3] * 10 ** 9 + " * 100 + "1"}),
    "types of a formula": lambda _: (
        CHECK_FORMULA,
        {"text": "state.a == state.a", "schemas": {"state": {"properties": {"a": doubling_refs(40)}}}},
    ),
    "repeated list": lambda _: evaluate("[1, 2, 3] * 10 ** 9"),
    "repeated text": lambda _: evaluate("'a' * 10 ** 9"),
    "power": lambda _: evaluate("9 ** 9 ** 9 ** 9"),
    "nested lambdas": lambda _: evaluate("map(a, x => map(a, y => map(a, z => x + y + z)))", a=[*range(1000)]),
    "regular expression": lambda _: evaluate("matches(a, '(a+)+$')", a="a" * 50_000 + "!"),
    "JSONPath": lambda _: evaluate("$..*..*..*..*", kind="jsonpath", a=nested(100)),
    "template": lambda n: evaluate("{{ a }}" * (20 * n), kind="template", a="x" * 10_000),
    "joined text": lambda _: evaluate("join(map(a, x => join(map(a, y => b), b)), b)", a=[*range(1000)], b="x" * 1000),
}


class BombResult(NamedTuple):
    """The measurements of one bomb."""

    bomb: str
    status: int
    code: str
    took_s: float
    grown_mb: float
    workers_mb: float
    """Peak memory of one worker."""
    slowest_s: float
    """The honest client's longest answer."""
    slowest_check_s: float
    failed: tuple[str, ...]
    """Requests of the honest client that were not answered with 200."""

    @property
    def wrong(self) -> list[str]:
        found: list[str] = []
        if self.status not in ANSWERED:
            found.append(f"{self.bomb}: answered with {self.status} {self.code}")
        if self.grown_mb > MEMORY_MB_MAX:
            found.append(f"{self.bomb}: the server grew by {self.grown_mb:.0f} MB")
        if self.workers_mb > WORKER_MB:
            found.append(f"{self.bomb}: a worker took {self.workers_mb:.0f} MB")
        found += [f"{self.bomb}: the honest client got {one}" for one in self.failed[:1]]
        return found

    @property
    def late(self) -> list[str]:
        """Return the limits that were exceeded but that a busy machine can exceed too."""
        found: list[str] = []
        if self.slowest_s > LATENCY_S_MAX:
            found.append(f"{self.bomb}: an answer took {self.slowest_s:.1f} s")
        if self.slowest_check_s > LATENCY_S_MAX + SECONDS:
            found.append(f"{self.bomb}: a check of another caller took {self.slowest_check_s:.1f} s")
        return found


@dataclass(slots=True)
class Honest:
    """A client with its own key that repeatedly asks for its identity and checks a small document."""

    client: httpx2.AsyncClient
    key: str
    slowest_s: float = 0.0
    """The longest answer."""
    slowest_check_s: float = 0.0
    failed: list[str] = field(default_factory=list[str])

    async def ask(self) -> None:
        began = time.monotonic()
        try:
            await self._send("GET", "/api/me")
        finally:  # Also for a request that is still unanswered after the bomb has been answered.
            self.slowest_s = max(self.slowest_s, time.monotonic() - began)

    async def check(self) -> None:
        document: JsonObject = {"document": chain(3, name=str(time.monotonic()))}
        began = time.monotonic()
        try:
            await self._send("POST", CHECK, document)
        finally:
            self.slowest_check_s = max(self.slowest_check_s, time.monotonic() - began)

    async def _send(self, method: str, path: str, body: JsonObject | None = None) -> None:
        try:
            reply = await self.client.request(method, path, json=body, headers={"authorization": f"Bearer {self.key}"})
            if reply.status_code != 200:
                self.failed.append(str(reply.status_code))
        except httpx2.HTTPError as why:
            self.failed.append(type(why).__name__)

    async def ask_until_cancelled(self) -> None:
        while True:
            await self.ask()
            await asyncio.sleep(ASK_EVERY_S)

    async def check_until_cancelled(self) -> None:
        while True:
            await self.check()
            await asyncio.sleep(ASK_EVERY_S)


@dataclass(slots=True)
class Victim:
    """A server, the key of a viewer who sends bombs, and the key of another one."""

    server: ServerProcess
    client: httpx2.AsyncClient
    viewer: str
    other: str

    async def measure(self, name: str, size: int) -> BombResult:
        """Send a bomb, and measure what others and the machine notice."""
        path, body = BOMBS[name](size)
        content = json.dumps(body).encode()
        assert self.server.process is not None
        pid, honest = self.server.process.pid, Honest(self.client, self.other)
        before_mb, workers_mb, began = resident_mb(pid), 0.0, time.monotonic()
        most_mb = before_mb
        asking = [asyncio.create_task(one) for one in (honest.ask_until_cancelled(), honest.check_until_cancelled())]
        sending = asyncio.create_task(self._send(path, content))
        while not sending.done():
            most_mb = max(most_mb, resident_mb(pid))
            for child in children(pid):
                with suppress(OSError, AssertionError):  # The child exits at this moment.
                    workers_mb = max(workers_mb, resident_mb(child))
            await asyncio.wait([sending], timeout=0.05)
        status, code = await sending
        took = time.monotonic() - began
        for task in asking:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        slowest = (honest.slowest_s, honest.slowest_check_s)
        return BombResult(name, status, code, took, most_mb - before_mb, workers_mb, *slowest, tuple(honest.failed))

    async def _send(self, path: str, content: bytes) -> tuple[int, str]:
        headers = {"authorization": f"Bearer {self.viewer}", "content-type": "application/json"}
        try:
            reply = await self.client.post(path, content=content, headers=headers)
        except httpx2.HTTPError as why:
            return 0, type(why).__name__
        code: Json = reply.json().get("code", "")
        return reply.status_code, str(code)


def children(pid: int) -> list[int]:
    """Return the running child processes of a process."""
    found: list[int] = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):  # Children of each thread.
        with suppress(OSError):
            found += map(int, listed.read_text("ascii").split())
    return found


@asynccontextmanager
async def victim(settings: str = SETTINGS, defect: str = "") -> AsyncGenerator[Victim, None]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        module = ("tests.reliability.modified_server", defect) if defect else ("pointsman",)
        server = ServerProcess(f"sqlite:///{folder}/store.db", folder=folder, module=module, settings=settings)
        await server.begin()
        try:
            async with httpx2.AsyncClient(base_url=server.url, timeout=ANSWER_S_MAX) as client:
                keys = [await _key(client, "root", "admin", "")]
                keys += [await _key(client, one, "viewer", keys[0]) for one in ("mallory", "ada")]
                one = Victim(server, client, keys[1], keys[2])
                # Start both workers before the measurement.
                await asyncio.gather(*(Honest(client, key).check() for key in keys for _ in range(2)))
                yield one
        finally:
            await server.stop(signal.SIGKILL)


async def _key(client: httpx2.AsyncClient, name: str, role: str, by: str) -> str:
    headers = {"authorization": f"Bearer {by}"} if by else {}
    made = await client.post("/api/settings/keys", json={"name": name, "role": role}, headers=headers)
    return str(made.raise_for_status().json()["key"])


async def measured(size: int, *only: str, settings: str = SETTINGS, defect: str = "") -> list[BombResult]:
    async with victim(settings, defect) as one:
        return [await one.measure(name, size) for name in BOMBS if not only or name in only]


def examine(size: int, seed: int) -> Finding:
    """Send every bomb at `size` percent of its full strength. The seed has no effect."""
    found = asyncio.run(measured(size))
    wrong, late = [why for one in found for why in one.wrong], [why for one in found for why in one.late]
    most, slowest = max(one.grown_mb for one in found), max(one.slowest_s for one in found)
    worker = max(one.workers_mb for one in found)
    refused = sum(one.code == "document-too-expensive" for one in found)
    figure = (
        f"{len(found)} bombs, {refused} refused as too expensive; at most {most:.0f} MB more, {worker:.0f} MB for a "
        f"worker and {slowest:.2f} s for an answer; {len(wrong)} wrong"
    )
    return Finding(figure, tuple(wrong), tuple(late))


if __name__ == "__main__":
    for measurement in asyncio.run(measured(int(sys.argv[1]), *sys.argv[2:])):
        sys.stdout.write(f"{json.dumps(measurement._asdict())}\n")
