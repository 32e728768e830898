"""REST through an HTTP client: `python -m bench.rest OPERATION CLIENTS sqlite` prints one sample as JSON.

A real `pointsman serve` in a process of its own, on a new SQLite file with the default durability; httpx2 is the client
in this process, with as many requests at once as CLIENTS. The CPU is that of the server alone, read from /proc; the
wall time is what the clients see.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from statistics import median
from typing import Final

import httpx2

from bench.meter import Sample
from bench.serving import Server, path_of, server
from bench.turns import Measurements, spread, table

REQUESTS: Final = 300
EXECUTIONS: Final = 200
"""Stored before lists are read."""
GOALS_MS: Final = {"start": "≤ 1.2 ms CPU, ≥ 700 /s", "get": "≤ 0.4 ms CPU"}
ABOUT: Final = {
    "start": "start an execution of two transforms",
    "get": "get an ended execution",
    "list": f"list 50 of {EXECUTIONS} executions",
    "stream": "stream the events of an ended execution (SSE)",
}
TWO: Final = """\
pointsman: 1
id: two
nodes:
  - {id: a, type: transform, config: {set: {x: "1"}}}
  - {id: b, type: transform, config: {set: {y: "x + 1"}}}
edges: [{source: a, target: b}]
"""


async def start(client: httpx2.AsyncClient) -> str:
    answer = await client.post("/api/workflows/two/execute", json={"input": {}})
    return str(answer.raise_for_status().json()["executionId"])


async def operation(client: httpx2.AsyncClient, name: str) -> Callable[[], Awaitable[object]]:
    """Prepare the server and return one request."""
    (await client.post("/api/workflows", content=TWO)).raise_for_status()
    execution = await start(client)
    if name == "list":
        for _ in range(EXECUTIONS):
            await start(client)

    async def get() -> None:
        (await client.get(path_of(execution))).raise_for_status()

    async def listed() -> None:
        found = await client.get("/api/workflows/executions", params={"limit": 50})
        assert len(found.raise_for_status().json()["executions"]) == 50

    async def stream() -> None:
        async with client.stream("GET", f"{path_of(execution)}/stream") as events:
            assert [line async for line in events.raise_for_status().aiter_lines()]

    return {"start": lambda: start(client), "get": get, "list": listed, "stream": stream}[name]


async def measure(one: Server, name: str, clients: int) -> Sample:
    limits = httpx2.Limits(max_connections=clients)
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{one.port}", timeout=60, limits=limits) as client:
        request = await operation(client, name)

        async def requests(count: int) -> None:
            turns = iter(range(count))

            async def worker() -> None:
                for _ in turns:
                    await request()

            await asyncio.gather(*(worker() for _ in range(clients)))

        before = one.cpu_s()
        await requests(REQUESTS // 5)
        first = 1e6 * (one.cpu_s() - before) / (REQUESTS // 5)
        before, began = one.cpu_s(), time.perf_counter()
        await requests(REQUESTS)
        wall = 1e6 * (time.perf_counter() - began) / REQUESTS
        cpu = 1e6 * (one.cpu_s() - before) / REQUESTS
    return Sample(REQUESTS, first, cpu, wall, 0.0, 0.0, one.kb() / 1024)


def rest_section(found: Measurements) -> str:
    lines: list[list[str]] = []
    for cell, runs in found.items():
        per_s = f"{1e6 / median(one.wall for one in runs):,.0f}"
        cpu = spread([one.cpu / 1000 for one in runs], 2)
        peak = f"{median(one.peak_mb for one in runs):.0f}"
        goal = GOALS_MS.get(cell.shape, "")
        lines.append([ABOUT[cell.shape], str(cell.size), cpu, per_s, peak, goal])
    if not lines:
        return ""
    return f"""## REST

`pointsman serve` in a process of its own, on SQLite with the default durability; httpx2 as the client, on the same
machine. CPU of the server alone, per request, read from /proc. More operations and clients: [SERVER.md](SERVER.md).

{table(["operation", "clients", "CPU ms", "requests per s", "MB", "goal"], lines)}"""


def main() -> None:
    name, clients, _ = sys.argv[1:]
    with server() as one:
        print(json.dumps(asdict(asyncio.run(measure(one, name, int(clients))))))


if __name__ == "__main__":
    main()
