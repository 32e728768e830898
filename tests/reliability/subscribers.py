"""Many subscribers of one and of several executions, some that never read, all reconnecting at once; and a server that
is stopped with open streams and running steps.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx2

from pointsman.values import JsonObject
from tests.reliability.findings import Finding
from tests.server.processes import ServerProcess

ROUNDS: Final = 40
STREAMS: Final = 50
EXECUTIONS: Final = 10
"""Half of all subscribers read one execution, the other half one of these."""
STUCK: Final = 20
KB_MAX: Final = 40.0
END_S_MAX: Final = 20.0
"""Limit that only a hang exceeds."""
END_S: Final = 2.0
"""The promised limit on an idle machine."""
PATIENCE_S: Final = 120.0
AT_ONCE: Final = 200
"""Maximum number of connections that are being opened at the same time."""

COUNT: Final = f"""\
pointsman: 1
id: count
entry: hold
input: {{type: object}}
nodes:
  - {{id: hold, type: wait, config: {{event: go}}}}
  - {{id: tick, type: transform, config: {{set: {{n: "(n ?? 0) + 1", text: "input.text"}}}}}}
  - {{id: pause, type: wait, config: {{event: again}}}}
  - {{id: done, type: end}}
edges:
  - {{source: hold, target: tick}}
  - {{source: tick, target: pause, condition: {{type: expression, expression: "n == {ROUNDS // 2}"}}}}
  - {{source: tick, target: tick, condition: {{type: expression, expression: "n < {ROUNDS}"}}}}
  - {{source: tick, target: done}}
  - {{source: pause, target: tick}}
"""


SLOW: Final = "rules:\n  - {text: said, delay: 150ms}\n"
STEPS: Final = 8
CHAIN: Final[JsonObject] = {
    "id": "chain",
    "nodes": [{"id": f"s{n}", "type": "agent", "config": {"prompt": "Say."}} for n in range(STEPS)],
    "edges": [{"source": f"s{n}", "target": f"s{n + 1}"} for n in range(STEPS - 1)],
}


@dataclass(slots=True)
class Listener:
    """Reads the event ids of one execution over as many connections as necessary."""

    port: int
    execution: str
    ids: list[str] = field(default_factory=list[str])
    ended: bool = False
    farewells: int = 0
    _writer: asyncio.StreamWriter | None = None

    async def listen(self, limit: asyncio.Semaphore) -> None:
        """Use one connection until the server or `leave` closes it."""
        async with limit:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            self._writer = writer
            last = f"Last-Event-ID: {self.ids[-1]}\r\n" if self.ids else ""
            head = f"GET /api/workflows/executions/{self.execution}/stream HTTP/1.1\r\nHost: localhost\r\n"
            head += f"Connection: close\r\n{last}\r\n"
            writer.write(head.encode())
            status = await reader.readline()
        if b" 204 " in status:
            self.ended = True
        with suppress(ConnectionError):
            while line := await reader.readline():
                if line.startswith(b"id: "):
                    self.ids.append(line[4:].strip().decode())
                elif line.startswith(b"event: stream.closing"):
                    self.farewells += 1
        writer.close()

    def leave(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()


@dataclass(slots=True)
class Crowd:
    """Subscribers that connect, disconnect and reconnect."""

    listeners: list[Listener]
    tasks: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])

    def come(self) -> None:
        limit = asyncio.Semaphore(AT_ONCE)
        self.tasks = [asyncio.create_task(one.listen(limit)) for one in self.listeners]

    async def go(self) -> None:
        for one, task in zip(self.listeners, self.tasks, strict=True):
            one.leave()
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def heard(self, count: int) -> None:
        """Return when each has received that many events."""
        async with asyncio.timeout(PATIENCE_S):
            while any(len(one.ids) < count for one in self.listeners):  # noqa: ASYNC110 - no notification
                await asyncio.sleep(0.05)

    async def finish(self) -> None:
        """Return when the server has ended all streams as complete."""
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*self.tasks)
            while not all(one.ended for one in self.listeners):
                self.listeners, left = (
                    [one for one in self.listeners if one.ended],
                    [one for one in self.listeners if not one.ended],
                )
                again = Crowd(left)
                again.come()
                await asyncio.gather(*again.tasks)
                self.listeners += left


@asynccontextmanager
async def served(defect: str) -> AsyncGenerator[ServerProcess, None]:
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(
            f"sqlite:///{folder}/store.db", folder=Path(folder), module=("tests.reliability.modified_server", defect)
        )
        await server.begin()
        try:
            yield server
        finally:
            await server.stop(signal.SIGKILL)


async def start(client: httpx2.AsyncClient, workflow: str, text: str) -> str:
    reply = await client.post(f"/api/workflows/{workflow}/execute", json={"input": {"text": text}})
    reply.raise_for_status()
    return str(reply.json()["executionId"])


async def signal_all(client: httpx2.AsyncClient, names: list[str], event: str) -> None:
    for name in names:
        reply = await client.post(f"/api/workflows/executions/{name}/signals", json={"name": event})
        reply.raise_for_status()


def never_reads(port: int, execution: str) -> socket.socket:
    """Open a stream and never read from it."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.connect(("127.0.0.1", port))
    one.sendall(f"GET /api/workflows/executions/{execution}/stream HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return one


def memory_kb(server: ServerProcess) -> float:
    assert server.process is not None
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return float(status.partition("VmRSS:")[2].split()[0])


def open_files(server: ServerProcess) -> int:
    assert server.process is not None
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


async def until_files(server: ServerProcess, most: int, within_s: float) -> bool:
    """Return whether the server has at most that many open files within the time."""
    for _ in range(int(within_s / 0.05)):
        if open_files(server) <= most:
            return True
        await asyncio.sleep(0.05)
    return False


async def story(client: httpx2.AsyncClient, execution: str) -> list[str]:
    """Return the ids of all events."""
    reply = await client.get(f"/api/workflows/executions/{execution}/stream")
    return [line[4:] for line in reply.text.splitlines() if line.startswith("id: ")]


def wrong_in(one: Listener, told: list[str]) -> list[str]:
    """Return missing and repeated events."""
    if one.ids == told:
        return []
    missed, twice = len(set(told) - set(one.ids)), len(one.ids) - len(set(one.ids))
    return [f"{missed} events missed, {twice} heard twice, of {len(told)}"]


async def compared(client: httpx2.AsyncClient, people: Crowd) -> list[str]:
    told = {name: await story(client, name) for name in {one.execution for one in people.listeners}}
    return [f"{one.execution}: {wrong}" for one in people.listeners for wrong in wrong_in(one, told[one.execution])]


async def crowd(size: int, *, defect: str = "none", frees_s: float = 15.0) -> tuple[list[str], str]:
    """Connect all subscribers, send half of the events, disconnect and reconnect all twice, and send the rest."""
    async with served(defect) as server, httpx2.AsyncClient(base_url=server.url, timeout=PATIENCE_S) as client:
        await client.post("/api/workflows", content=COUNT)
        await client.post(
            "/api/workflows", content=COUNT.replace("id: count", "id: loud\nconfig: {observability: full}")
        )
        names = [await start(client, "count", "") for _ in range(1 + EXECUTIONS)]
        loud = await start(client, "loud", "x" * 400_000)
        chosen = [names[0] if number % 2 else names[1 + number // 2 % EXECUTIONS] for number in range(size)]
        before_kb, before_files = memory_kb(server), open_files(server)
        people = Crowd([Listener(server.port, name) for name in chosen])
        people.come()
        await people.heard(1)
        each_kb = (memory_kb(server) - before_kb) / size
        deaf = [never_reads(server.port, loud) for _ in range(STUCK)]
        await signal_all(client, names, "go")
        await people.heard(ROUNDS // 4)
        for _ in range(2):
            await people.go()
            people.come()
        freed = await until_files(server, before_files + size, frees_s)
        await signal_all(client, names, "again")
        await people.finish()
        for one in deaf:
            one.close()
        violations = [] if freed else [f"connections of {STUCK} that never read are still there"]
        violations += await compared(client, people)
        if each_kb > KB_MAX and size >= 100:
            violations.append(f"a subscriber takes {each_kb:.1f} KB; {KB_MAX:g} are the most")
    return violations[:20], f"{size} subscribers, {each_kb:.1f} KB each, {STUCK} that never read, 2 storms"


async def stopped(streams: int, *, defect: str = "none") -> tuple[list[str], float]:
    """Send SIGTERM with open streams and running steps; the streams reconnect to the next server and receive the
    rest."""
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(
            f"sqlite:///{folder}/store.db",
            script=SLOW,
            folder=Path(folder),
            module=("tests.reliability.modified_server", defect),
        )
        await server.begin()
        try:
            async with httpx2.AsyncClient(base_url=server.url, timeout=PATIENCE_S) as client:
                await client.post("/api/workflows", json=CHAIN)
                names = [await start(client, "chain", "") for _ in range(5)]
                people = Crowd([Listener(server.port, names[number % 5]) for number in range(streams)])
                people.come()
                await people.heard(4)
            began = time.monotonic()
            code = await server.stop(signal.SIGTERM)
            took = time.monotonic() - began
            await asyncio.gather(*people.tasks)
            violations = [f"it ended with {code}"] if code else []
            untold = sum(one.farewells != 1 for one in people.listeners)
            violations += [f"{untold} streams were not told that the server stops"] if untold else []
            violations += [f"the end took {took:.1f} s"] if took > END_S_MAX and not untold else []
            await server.begin()
            async with httpx2.AsyncClient(base_url=server.url, timeout=PATIENCE_S) as client:
                people.come()
                await people.finish()
                violations += await compared(client, people)
        finally:
            await server.stop(signal.SIGKILL)
    return violations[:20], took


def of_crowds(size: int, seed: int) -> Finding:
    """Test `size` subscribers. The seed has no effect, because their order is random anyway."""
    violations, figure = asyncio.run(crowd(size))
    return Finding(f"{figure}; {len(violations)} violations", tuple(violations))


def of_stops(size: int, seed: int) -> Finding:
    """Stop a server `size` times with 50 streams each."""
    violations, slowest = list[str](), 0.0
    for _ in range(size):
        wrong, took = asyncio.run(stopped(STREAMS))
        violations += wrong
        slowest = max(slowest, took)
    figure = f"{size} stops under {STREAMS} streams, the slowest took {slowest:.2f} s; {len(violations)} violations"
    return Finding(figure, tuple(violations), late_in(slowest))


def late_in(slowest: float) -> tuple[str, ...]:
    """Return a message if the end took longer than promised."""
    return (f"an end took {slowest:.2f} s; {END_S:g} are promised",) if slowest > END_S else ()
