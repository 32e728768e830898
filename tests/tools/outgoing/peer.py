"""An HTTP server on loopback whose answers are bytes, so that it can misbehave in every way; and names that lie."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pointsman.tools.egress.addresses import Address
from pointsman.tools.egress.http_calls import EgressPolicy, Outgoing

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)

Write = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Peer:
    """`answers`: path -> bytes, or what writes them; `next` goes first. `asked`: the requests as they came."""

    port: int = 0
    answers: dict[str, bytes | Write] = field(default_factory=dict[str, "bytes | Write"])
    next: list[bytes] = field(default_factory=list[bytes])
    asked: list[str] = field(default_factory=list[str])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next((line[15:] for line in head.lower().splitlines() if line.startswith("content-length:")), "0")
            self.asked.append(head + (await reader.readexactly(int(length))).decode())
            answer = self.next.pop(0) if self.next else self.answers[head.split(" ")[1].partition("?")[0]]
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def peering() -> AsyncGenerator[Peer]:
    peer = Peer()
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
    peer.port = server.sockets[0].getsockname()[1]
    try:
        yield peer
    finally:
        server.close()
        await server.wait_closed()


def answer(body: bytes = b"", *headers: str, status: str = "200 OK") -> bytes:
    """One whole answer, closing the connection."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Names:
    """A resolver. Each name has a list of answers: the first time the first, and the last one for ever."""

    def __init__(self, **names: list[list[str]]) -> None:
        self.names = names
        self.looked_up: list[str] = []

    async def __call__(self, host: str, port: int) -> list[Address]:
        self.looked_up.append(host)
        known = self.names.get(host.replace(".", "_"))
        if known is None:
            return [ipaddress.ip_address(host)]
        found = known.pop(0) if len(known) > 1 else known[0]
        return [ipaddress.ip_address(one) for one in found]


def inward(names: Names | None = None, **more: float) -> Outgoing:
    """Calls that may go to this machine, and otherwise nowhere inside."""
    rules = EgressPolicy(networks=LOOPBACK, ports=None)
    return Outgoing(
        rules,
        resolve=names or Names(),
        timeout_s=more.get("timeout_s", 20.0),
        body_bytes_max=int(more.get("body_bytes_max", 100_000)),
    )
