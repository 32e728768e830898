"""`python -m bench.serving`: the cost of the server, over real sockets; writes SERVER.md.

The clients run in this process and use CPU too, so the figures are the server's own CPU time, and the times that
clients measure. If `wrk` is installed, it is used as well: such cheap clients show the maximum rate of the server.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Final, NamedTuple, TypeAlias

import msgspec

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "bench" / "SERVER.md"
LISTS: Final = "\n<!-- lists -->\n"
"""Below this line stands what `bench.lists` measured: it is kept as it is."""
CLIENTS: Final = (1, 10, 100)
CROWDS: Final = (1, 100, 1000, 5000)
REQUESTS: Final = 400
WRK_S: Final = 3
EVENTS: Final = 60
START_S_MAX: Final = 60.0
ONE: Final = "pointsman: 1\nid: one\nnodes: [{id: a, type: transform, config: {set: {x: '1'}}}]\n"
GATE: Final = """\
pointsman: 1
id: gate
nodes: [{id: ask, type: human, config: {message: "Go on?", options: [{value: approve}]}}]
"""
COUNT: Final = f"""\
pointsman: 1
id: count
entry: hold
nodes:
  - {{id: hold, type: wait, config: {{event: go}}}}
  - {{id: tick, type: transform, config: {{set: {{n: "(n ?? 0) + 1"}}}}}}
  - {{id: done, type: end}}
edges:
  - {{source: hold, target: tick}}
  - {{source: tick, target: tick, condition: {{type: expression, expression: "n < {EVENTS}"}}}}
  - {{source: tick, target: done}}
"""

Ask: TypeAlias = Callable[["Line", int], Awaitable[None]]


class RequestFigures(NamedTuple):
    """One operation with a number of clients."""

    operation: str
    clients: int
    per_s: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    """Of the server, per request."""


class StreamFigures(NamedTuple):
    """One execution with a number of subscribers."""

    subscribers: int
    cpu_us: float
    """Of the server, per event and subscriber."""
    kb: float
    """Of the server, per subscriber."""
    last_ms: float
    """From the signal until the last subscriber received the end."""


class Line:
    """One connection that is kept."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.key = ""
        """Shown with each question, where there is one."""

    @classmethod
    async def open(cls, port: int) -> Line:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, method: str, path: str, body: object = None) -> bytes:
        content = body.encode() if isinstance(body, str) else b"" if body is None else msgspec.json.encode(body)
        self.send(method, path, content)
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert b" 2" in head[:12], head + await self.reader.read(500)
        length = int(head.lower().partition(b"content-length:")[2].split()[0])
        return await self.reader.readexactly(length)

    def send(self, method: str, path: str, content: bytes = b"", *, closes: bool = False) -> None:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += "Connection: close\r\n" if closes else ""
        head += f"Authorization: Bearer {self.key}\r\n" if self.key else ""
        self.writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)

    async def events(self, execution: str) -> None:
        """Ask for its stream, whose end closes the connection. Chunks have whole events."""
        self.send("GET", f"{path_of(execution)}/stream", closes=True)
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head.partition(b"\r\n")[0], head + await self.reader.read(500)

    async def event(self) -> bytes:
        return await self.reader.readuntil(b"\n\n")


def installed() -> dict[str, str]:
    """Return the environment of a process that finds its bytecode, as an installed package does. An environment that
    forbids bytecode doubles the time of a start."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(ROOT / "src")}


class Server:
    """A server in a process of its own."""

    def __init__(self, folder: str, script: str = "", settings: str = "") -> None:
        """`script`: answers of the scripted model. `settings`: a settings file, which names the models instead."""
        command = [sys.executable, "-m", "pointsman", "serve", "--port", "0"]
        command += [] if settings else ["--model", "scripted"]
        (Path(folder) / "pointsman.toml").write_text(settings, encoding="utf-8")
        if script:
            said = Path(folder) / "script.yaml"
            said.write_text(script, encoding="utf-8")
            command += ["--script", str(said)]
        log = Path(folder) / "log"
        with log.open("wb") as told:  # A full pipe without a reader would stop it.
            self.process = subprocess.Popen(
                [*command, "--store", f"sqlite:///{folder}/store.db"],
                stderr=told,
                cwd=folder,
                env=installed(),
            )
        while "serving http://" not in (said := log.read_text()):
            time.sleep(0.01)
        self.port = int(said.partition("serving http://")[2].split()[0].rpartition(":")[2])
        self.cold_s = self.cpu_s()

    def cpu_s(self) -> float:
        """All it has used so far."""
        parts = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")

    def kb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return float(status.partition("VmRSS:")[2].split()[0])


@contextmanager
def server(script: str = "", settings: str = "") -> Generator[Server, None, None]:
    with tempfile.TemporaryDirectory() as folder, serving(folder, script, settings) as one:
        yield one


@contextmanager
def serving(folder: str, script: str = "", settings: str = "") -> Generator[Server, None, None]:
    """Run a server on the store of a folder."""
    one = Server(folder, script, settings)
    try:
        yield one
    finally:
        one.process.kill()
        one.process.communicate()


def path_of(execution: str) -> str:
    return f"/api/workflows/executions/{execution}"


async def begun(line: Line, workflow: str) -> str:
    said = await line.ask("POST", f"/api/workflows/{workflow}/execute", {"input": {}})
    return str(msgspec.json.decode(said)["executionId"])


async def asked(one: Server, operation: str, clients: int, ask: Ask) -> RequestFigures:
    """`REQUESTS` of them, spread over the clients."""
    lines = [await Line.open(one.port) for _ in range(clients)]
    took: list[float] = []
    numbers = iter(range(REQUESTS))

    async def client(line: Line) -> None:
        for number in numbers:
            began = time.perf_counter()
            await ask(line, number)
            took.append(time.perf_counter() - began)

    cpu, began = one.cpu_s(), time.perf_counter()
    await asyncio.gather(*map(client, lines))
    wall, spent = time.perf_counter() - began, one.cpu_s() - cpu
    for line in lines:
        line.writer.close()
    p99 = quantiles(took, n=100)[98]
    return RequestFigures(operation, clients, REQUESTS / wall, 1e3 * median(took), 1e3 * p99, 1e6 * spent / REQUESTS)


async def operations(one: Server, clients: int) -> list[RequestFigures]:
    line = await Line.open(one.port)
    execution = await begun(line, "one")
    gates = [await begun(line, "gate") for _ in range(REQUESTS)]

    async def start(line: Line, _: int) -> None:
        await begun(line, "one")

    async def first_event(line: Line, _: int) -> None:
        name = await begun(line, "one")
        other = await Line.open(one.port)
        await other.events(name)
        await other.event()
        other.writer.close()

    async def get(line: Line, _: int) -> None:
        await line.ask("GET", path_of(execution))

    async def respond(line: Line, number: int) -> None:
        await line.ask("POST", f"{path_of(gates[number])}/respond", {"gateId": "ask", "action": "approve"})

    named: dict[str, Ask] = {"start": start, "start, first event": first_event, "get": get, "respond": respond}
    return [await asked(one, name, clients, ask) for name, ask in named.items()]


async def by_wrk(one: Server, clients: int) -> list[RequestFigures]:
    """An execution that is read, as fast as it can be; nothing where there is no `wrk`."""
    program = shutil.which("wrk")
    if program is None:
        return []
    line = await Line.open(one.port)
    address = f"http://127.0.0.1:{one.port}{path_of(await begun(line, 'one'))}"
    line.writer.close()
    options = ["-t1", f"-c{clients}", f"-d{WRK_S}s", "--latency"]
    cpu = one.cpu_s()
    running = await asyncio.create_subprocess_exec(program, *options, address, stdout=asyncio.subprocess.PIPE)
    said = (await running.communicate())[0].decode()
    spent = one.cpu_s() - cpu
    assert running.returncode == 0, said
    assert "Non-2xx" not in said, said
    count = int(re.findall(r"(\d+) requests in", said)[0])
    p50, p99 = (_ms(re.findall(rf"{part}%\s+([\d.]+)([a-z]+)", said)[0]) for part in (50, 99))
    return [RequestFigures("get, by wrk", clients, count / WRK_S, p50, p99, 1e6 * spent / count)]


def _ms(said: tuple[str, str]) -> float:
    """As `wrk` writes a time."""
    number, unit = said
    return float(number) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit]


async def streamed(one: Server, subscribers: int) -> StreamFigures:
    line = await Line.open(one.port)
    execution = await begun(line, "count")
    before = one.kb()
    crowd: list[Line] = []
    for _ in range(subscribers):
        crowd.append(await Line.open(one.port))
        await crowd[-1].events(execution)
        await crowd[-1].event()
    kb = (one.kb() - before) / subscribers
    heard = 0

    async def listen(line: Line) -> None:
        nonlocal heard
        while data := await line.reader.read(65_536):
            heard += data.count(b"\nevent: ")

    listening = [asyncio.create_task(listen(one)) for one in crowd]
    line.writer.close()
    line = await Line.open(one.port)  # A large crowd takes longer to come than an idle connection is kept.
    cpu, began = one.cpu_s(), time.perf_counter()
    await line.ask("POST", f"{path_of(execution)}/signals", {"name": "go"})
    await asyncio.gather(*listening)
    took, spent = time.perf_counter() - began, one.cpu_s() - cpu
    for each in [line, *crowd]:
        each.writer.close()
    return StreamFigures(subscribers, 1e6 * spent / heard, kb, 1e3 * took)


async def measured(
    one: Server, clients: tuple[int, ...], crowds: tuple[int, ...]
) -> tuple[list[RequestFigures], list[StreamFigures]]:
    line = await Line.open(one.port)
    for document in (ONE, GATE, COUNT):
        await line.ask("POST", "/api/workflows", document)
    operated = [found for count in clients for found in [*await operations(one, count), *await by_wrk(one, count)]]
    return operated, [await streamed(one, count) for count in crowds]


def machine() -> str:
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{python}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"


def page(cold: list[float], operated: list[RequestFigures], crowds: list[StreamFigures]) -> str:
    lines = [
        "# What the server costs",
        "",
        f"By `python -m bench.serving`: {machine()}, SQLite durable at each step. The clients run beside it.",
        "",
        f"Cold start: {median(cold):.2f} s of CPU until it serves (goal: 1.5).",
        "",
        f"| {REQUESTS} ×, `wrk` for {WRK_S} s | clients | per second | p50 ms | p99 ms | CPU µs of the server |",
        "|---|---:|---:|---:|---:|---:|",
        *(
            f"| {name} | {clients} | {per_s:.0f} | {p50:.1f} | {p99:.1f} | {cpu:.0f} |"
            for name, clients, per_s, p50, p99, cpu in operated
        ),
        "",
        "| subscribers of one execution | CPU µs per event and subscriber | KB each | ms to the end of all |",
        "|---:|---:|---:|---:|",
        *(f"| {one.subscribers} | {one.cpu_us:.1f} | {one.kb:.1f} | {one.last_ms:.0f} |" for one in crowds),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.serving", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few clients; prints, writes nothing")
    options = parser.parse_args()
    cold: list[float] = []
    for _ in range(1 if options.quick else 3):
        with server() as one:
            cold.append(one.cold_s)
    with server() as one:
        clients, crowds = (CLIENTS[:2], CROWDS[:2]) if options.quick else (CLIENTS, CROWDS)
        report = page(cold, *asyncio.run(measured(one, clients, crowds)))
    if options.quick:
        print(report)
    else:
        _, line, lists = PAGE.read_text(encoding="utf-8").partition(LISTS)
        PAGE.write_text(f"{report}{line}{lists}", encoding="utf-8")
        print(f"{PAGE.relative_to(ROOT)} is written.")


if __name__ == "__main__":
    main()
