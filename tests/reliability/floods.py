"""Floods before authentication: what a client without a key can make a server hold, log, or delay.

The server runs in its own process with 256 file descriptors, and an honest client with a key sends requests all the
time:

    attack ─▶ server ◀─ honest client: longest answer
               │
               └─▶ resident memory, bytes of log
"""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import re
import signal
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import httpx2

from tests.quick_starts import quick_starts
from tests.reliability.findings import Finding
from tests.server.processes import ServerProcess

FILES: Final = 256
MEMORY_MB_MAX: Final = 96
"""Maximum growth of the server's memory by one flood."""
LATENCY_S_MAX: Final = 2.0
"""Limit of the honest client's longest answer, which takes milliseconds on an idle machine."""
LOG_BYTES_MAX: Final = 200_000
ASK_EVERY_S: Final = 0.02
CHUNK: Final = 65_536
LINGER_S: Final = 0.4
"""Time for which an attack holds its connections."""
WORKFLOW: Final = "pointsman: 1\nid: hooked\nnodes: [{id: say, type: agent, config: {prompt: Hello}}]\ntriggers:\n"
HOOK: Final = WORKFLOW + "  - {id: call, type: webhook, path: orders, secret: a-secret-of-the-test}\n"

Attack: TypeAlias = Callable[["Target", int], Coroutine[None, None, None]]


class Target(NamedTuple):
    """The server under attack."""

    port: int


async def connect(target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", target.port)


async def pour(target: Target, head: bytes, unit: bytes, total: int) -> None:
    """Send a head and then `total` bytes of `unit`, as long as the server reads."""
    reader, writer = await connect(target)
    chunk = unit * max(1, CHUNK // max(1, len(unit)))
    with suppress(OSError, TimeoutError):
        writer.write(head)
        for _ in range(total // len(chunk) if chunk else 0):
            writer.write(chunk)
            await asyncio.wait_for(writer.drain(), 10)
        await asyncio.wait_for(reader.read(CHUNK), LINGER_S)
    writer.close()


async def hold(target: Target, sent: bytes, number: int) -> None:
    """Open connections, send the same bytes on each, and keep all of them open."""
    writers: list[asyncio.StreamWriter] = []
    for _ in range(number):
        with suppress(OSError, TimeoutError):
            _, writer = await asyncio.wait_for(connect(target), 2)
            writers.append(writer)
            writer.write(sent)
    await asyncio.sleep(LINGER_S)
    for writer in writers:
        writer.close()


def body_of(path: str, length: int, *more: str) -> bytes:
    lines = (f"POST {path} HTTP/1.1", "host: localhost", "content-type: application/json", *more)
    return "\r\n".join((*lines, f"content-length: {length}", "", "")).encode()


async def large_bodies(target: Target, size: int) -> None:
    total = 63_000_000 * size // 100
    for path in ("/api/workflows/hooked/execute", "/api/login", "/api/webhooks/orders", "/v1/chat/completions", "/mcp"):
        for unit in (b"[],", b'"",', b'{"a":1},'):
            await pour(target, body_of(path, total) + b"[", unit, total)


async def many_headers(target: Target, size: int) -> None:
    await pour(target, b"GET /health HTTP/1.1\r\nhost: localhost\r\n", b"a:b\r\n", 20_000_000 * size // 100)


async def one_long_header(target: Target, size: int) -> None:
    await pour(target, b"GET /health HTTP/1.1\r\nhost: localhost\r\na: ", b"b" * 1024, 20_000_000 * size // 100)


async def long_address(target: Target, size: int) -> None:
    await pour(target, b"GET /", b"b" * 1024, 20_000_000 * size // 100)


async def trailers(target: Target, size: int) -> None:
    head = b"POST /api/login HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n0\r\n"
    await pour(target, head, b"a:b\r\n", 20_000_000 * size // 100)


async def chunk_extensions(target: Target, size: int) -> None:
    head = b"POST /api/login HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n1;"
    await pour(target, head, b"a=b;", 50_000_000 * size // 100)


async def endless_chunks(target: Target, size: int) -> None:
    for path in ("/api/workflows", "/api/login", "/api/webhooks/orders", "/nothing", "/"):
        lines = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
        await pour(target, lines.encode(), b"400\r\n" + b"x" * 1024 + b"\r\n", 50_000_000 * size // 100)


async def half_sent_heads(target: Target, size: int) -> None:
    await hold(target, b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: ", 3 * size)


async def half_sent_bodies(target: Target, size: int) -> None:
    await hold(target, body_of("/api/login", 100) + b"{", 3 * size)
    await hold(target, body_of("/api/webhooks/orders", 900_000) + b"x" * CHUNK, 3 * size)


async def silent_connections(target: Target, size: int) -> None:
    await hold(target, b"", 3 * size)


async def streams(target: Target, size: int) -> None:
    await hold(target, b"GET /api/workflows/executions/stream HTTP/1.1\r\nhost: localhost\r\n\r\n", 3 * size)


async def unread_answers(target: Target, size: int) -> None:
    await hold(target, b"GET /api/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 4, size)


async def pipelines(target: Target, size: int) -> None:
    request = b"GET /api/me HTTP/1.1\r\nhost: localhost\r\n\r\n"
    for _ in range(max(1, size // 10)):
        await pour(target, b"", request, 4_000_000)


async def no_http(target: Target, size: int) -> None:
    async def once() -> None:
        with suppress(OSError, TimeoutError):
            reader, writer = await asyncio.wait_for(connect(target), 2)
            writer.write(b"\x16\x03\x01 no HTTP\r\n\r\n")
            await asyncio.wait_for(reader.read(CHUNK), 2)
            writer.close()

    for _ in range(size // 2):
        await asyncio.gather(*(once() for _ in range(20)))


async def upgrades(target: Target, size: int) -> None:
    lines = "GET /api/me HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    key = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"
    await hold(target, (lines + key).encode(), 3 * size)


async def refused_requests(target: Target, size: int) -> None:
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{target.port}", timeout=10) as client:
        for number in range(size * 10):
            with suppress(httpx2.HTTPError):
                await client.get(f"/api/nothing/{number}/{'x' * 150}")


async def trickled_heads(target: Target, size: int) -> None:
    await trickle(target, b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: ", b"y", size)


async def trickled_bodies(target: Target, size: int) -> None:
    """Send bodies faster than the minimum rate, so that no deadline ends them."""
    await trickle(target, body_of("/api/login", 60_000) + b'{"key": "', b"k" * 300, size)


async def trickle(target: Target, head: bytes, piece: bytes, number: int) -> None:
    """Send a piece on each of many connections, several times a second."""

    async def once() -> None:
        with suppress(OSError, TimeoutError):
            _, writer = await asyncio.wait_for(connect(target), 2)
            writer.write(head)
            for _ in range(10):
                writer.write(piece)
                await writer.drain()  # Ends with the connection.
                await asyncio.sleep(0.2)
            writer.close()

    await asyncio.gather(*(once() for _ in range(number)))


async def wrong_lengths(target: Target, size: int) -> None:
    """Send bodies that are longer and shorter than their declared length, and close connections in the middle."""
    for number in range(size):
        said = 10 if number % 2 else 60_000
        reader, writer = await connect(target)
        with suppress(OSError, TimeoutError):
            writer.write(body_of("/api/login", said) + b'{"key": "wrong"}' * 5)
            await writer.drain()
            if number % 3:
                await asyncio.wait_for(reader.read(CHUNK), 0.05)
        writer.close()


async def expectations(target: Target, size: int) -> None:
    for path in ("/api/login", "/mcp"):
        await hold(target, body_of(path, 60_000, "expect: 100-continue"), size)


async def packed_bodies(target: Target, size: int) -> None:
    """Send zeros that decompress to a thousand times their size."""
    packed = gzip.compress(bytes(50_000_000))[:60_000]
    for path in ("/api/login", "/api/webhooks/orders", "/mcp", "/v1/responses"):
        for coding in ("gzip", "deflate", "gzip, gzip"):
            for _ in range(max(1, size // 25)):
                await pour(target, body_of(path, len(packed), f"content-encoding: {coding}") + packed, b" ", 0)


async def nested_bodies(target: Target, size: int) -> None:
    for path in ("/api/login", "/api/webhooks/orders", "/mcp"):
        for unit in (b"[", b'{"a":', b"9"):
            for _ in range(max(1, size // 25)):
                await pour(target, body_of(path, 63_000) + unit * (63_000 // len(unit)), b" ", 0)


async def many_parameters(target: Target, size: int) -> None:
    query = "&".join("limit=1" for _ in range(2_500))
    for path in ("/api/workflows", "/api/login/oidc/callback", "/api/docs", "/"):
        request = f"GET {path}?{query} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()
        for _ in range(max(1, size // 10)):
            await pour(target, request, b"", 0)


async def logins(target: Target, size: int) -> None:
    async def once(client: httpx2.AsyncClient, number: int) -> None:
        with suppress(httpx2.HTTPError):
            await client.post("/api/login", json={"key": f"pm_{number}"})

    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{target.port}", timeout=10) as client:
        for begin in range(0, size * 10, 20):
            await asyncio.gather(*(once(client, begin + number) for number in range(20)))


async def heavy_pages(target: Target, size: int) -> None:
    """Request the largest answers that need no key."""
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{target.port}", timeout=30) as client:
        for _ in range(max(1, size // 5)):
            for path in ("/api/docs", "/api/openapi.json", "/api/workflows/schema", "/"):
                with suppress(httpx2.HTTPError):
                    await client.get(path)


ATTACKS: Final[tuple[Attack, ...]] = (
    large_bodies,
    many_headers,
    one_long_header,
    long_address,
    trailers,
    chunk_extensions,
    endless_chunks,
    half_sent_heads,
    half_sent_bodies,
    silent_connections,
    streams,
    unread_answers,
    pipelines,
    no_http,
    upgrades,
    refused_requests,
    trickled_heads,
    trickled_bodies,
    wrong_lengths,
    expectations,
    packed_bodies,
    nested_bodies,
    many_parameters,
    logins,
    heavy_pages,
)


def name_of(attack: Attack) -> str:
    return getattr(attack, "__name__", "")


class FloodResult(NamedTuple):
    """The measurements of one attack."""

    attack: str
    grown_mb: float
    slowest_s: float
    failed: int
    """Requests of the honest client that were not answered with 200."""
    log_bytes: int
    took_s: float = 0.0

    @property
    def wrong(self) -> list[str]:
        found: list[str] = []
        if self.grown_mb > MEMORY_MB_MAX:
            found.append(f"{self.attack}: the server grew by {self.grown_mb:.0f} MB")
        if self.failed:
            found.append(f"{self.attack}: {self.failed} requests of the honest client failed")
        if self.log_bytes > LOG_BYTES_MAX:
            found.append(f"{self.attack}: {self.log_bytes} bytes of log")
        return found


@dataclass(slots=True)
class Honest:
    """A client with a key that opens a connection for each request."""

    client: httpx2.AsyncClient
    key: str
    slowest_s: float = 0.0
    failed: list[str] = field(default_factory=list[str])

    async def ask(self) -> None:
        began = time.monotonic()
        try:
            reply = await self.client.get("/api/me", headers={"authorization": f"Bearer {self.key}"})
            if reply.status_code != 200:
                self.failed.append(str(reply.status_code))
        except httpx2.HTTPError as why:
            self.failed.append(type(why).__name__)
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)

    async def ask_until_cancelled(self) -> None:
        while True:
            await self.ask()
            await asyncio.sleep(ASK_EVERY_S)


def resident_mb(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text("ascii"))
    assert found is not None
    return int(found[1]) / 1024


@dataclass(slots=True)
class Attacker:
    """A separate process that attacks a port, so that its work does not delay the honest client."""

    process: asyncio.subprocess.Process

    async def run(self, attack: Attack, size: int) -> None:
        """Run an attack and return after its end."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{name_of(attack)} {size}\n".encode())
        assert await self.process.stdout.readline() == b"over\n", "the attacker broke"


@asynccontextmanager
async def attacking(port: int) -> AsyncGenerator[Attacker, None]:
    code = f"import tests.reliability.floods as f; f.run_attacks({port})"
    pipe = asyncio.subprocess.PIPE
    with quick_starts():
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdin=pipe, stdout=pipe)
    try:
        yield Attacker(process)
    finally:
        process.kill()
        await process.communicate()


def run_attacks(port: int) -> None:
    """Run the attacks named on standard input, one after the other."""
    named = {name_of(one): one for one in ATTACKS}
    for line in sys.stdin:
        name, size = line.split()
        asyncio.run(named[name](Target(port), int(size)))
        gc.collect()  # Close the connections that the attack left open.
        sys.stdout.write("over\n")
        sys.stdout.flush()


@dataclass(slots=True)
class Victim:
    """A server with 256 file descriptors, an honest client of it, and its attacker."""

    server: ServerProcess
    key: str
    client: httpx2.AsyncClient
    attacker: Attacker

    async def measure(self, attack: Attack, size: int) -> FloodResult:
        """Attack the server, and measure the effect on an honest client and on the machine."""
        assert self.server.process is not None
        pid, honest = self.server.process.pid, Honest(self.client, self.key)
        await honest.ask()
        honest.slowest_s = 0.0
        before_mb, logged, began = resident_mb(pid), self.server.log_bytes(), time.monotonic()
        most_mb = before_mb
        asking = asyncio.create_task(honest.ask_until_cancelled())
        attacked = asyncio.create_task(self.attacker.run(attack, size))
        while not attacked.done():
            most_mb = max(most_mb, resident_mb(pid))
            await asyncio.wait([attacked], timeout=0.05)
        await attacked
        await honest.ask()
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
        return FloodResult(
            name_of(attack).replace("_", " "),
            most_mb - before_mb,
            honest.slowest_s,
            len(honest.failed),
            self.server.log_bytes() - logged,
            time.monotonic() - began,
        )


@asynccontextmanager
async def victim(defect: str = "") -> AsyncGenerator[Victim, None]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        module = ("tests.reliability.modified_server", defect) if defect else ("pointsman",)
        server = ServerProcess(f"sqlite:///{folder}/store.db", folder=folder, module=module, files=FILES)
        await server.begin()
        limits = httpx2.Limits(max_keepalive_connections=0)
        try:
            async with (
                httpx2.AsyncClient(base_url=server.url, timeout=30, limits=limits) as client,
                attacking(server.port) as attacker,
            ):
                await client.post("/api/workflows", content=HOOK)
                made = await client.post("/api/settings/keys", json={"name": "root", "role": "admin"})
                yield Victim(server, str(made.raise_for_status().json()["key"]), client, attacker)
        finally:
            await server.stop(signal.SIGKILL)


async def measured(size: int, *only: str, defect: str = "") -> list[FloodResult]:
    async with victim(defect) as one:
        return [await one.measure(attack, size) for attack in ATTACKS if not only or name_of(attack) in only]


def examine(size: int, seed: int) -> Finding:
    """Run every attack at `size` percent of its full strength. The seed has no effect."""
    found = asyncio.run(measured(size))
    wrong = [why for one in found for why in one.wrong]
    late = [f"{one.attack}: an answer took {one.slowest_s:.1f} s" for one in found if one.slowest_s > LATENCY_S_MAX]
    most, slowest = max(one.grown_mb for one in found), max(one.slowest_s for one in found)
    figure = f"{len(found)} attacks, at most {most:.0f} MB more and {slowest:.2f} s for an answer; {len(wrong)} wrong"
    return Finding(figure, tuple(wrong), tuple(late))


if __name__ == "__main__":
    for one in asyncio.run(measured(int(sys.argv[1]), *sys.argv[2:])):
        sys.stdout.write(f"{json.dumps(one._asdict())}\n")
