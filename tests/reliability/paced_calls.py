"""Many agents that share three paced keys: one fan-out, each agent uses the key of its node, and some calls are
rate-limited.

    virtual time    a provider in this process that limits every seventh call, at the pace of real limits
    real time       a provider behind a socket, at a pace of some milliseconds

No call is lost, none is sent too early, and requests for a key are served in order.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final
from unittest.mock import patch

import httpx2

from pointsman import Pointsman, Workflow
from pointsman.models.provider import Provider, ProviderSettings
from pointsman.settings import Settings
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.values import Json, JsonObject
from pointsman.workflows import models
from tests.models.slow_provider import END, words
from tests.reliability.findings import Finding

KEYS: Final = ("key-0", "key-1", "key-2")
PACE_S: Final = 0.4
"""Minimum time between any two calls, in virtual seconds."""
KEY_PACE_S: Final = 1.0
"""Minimum time between two calls with the same key."""
REAL_PACE_S: Final = 0.02
LIMITED: Final = 7
"""One of this many calls is refused."""
SLACK_S: Final = 1e-6
TYPE: Final = b"text/event-stream"


def document() -> Workflow:
    nodes: list[Json] = [
        {
            "id": f"agent{number}",
            "type": "agent",
            "config": {"prompt": "Item {{one}}.", "model": "house:small", "keyIndex": number},
        }
        for number in range(len(KEYS))
    ]
    each: JsonObject = {"id": "each", "type": "parallel", "config": {"items": "items", "as": "one"}}
    pick: JsonObject = {"id": "pick", "type": "decision", "config": {"expression": "one % 3 == 0"}}
    join: JsonObject = {"id": "all", "type": "join"}
    nodes += [each, pick, join]
    edges: list[Json] = [{"source": "each", "target": "pick"}]
    for number in range(len(KEYS)):
        chosen: JsonObject = {"type": "expression", "expression": f"one % 3 == {number}"}
        there: JsonObject = {"source": "pick", "target": f"agent{number}", "condition": chosen}
        back: JsonObject = {"source": f"agent{number}", "target": "all"}
        edges += [there, back]
    return Workflow.of({"id": "crowd", "nodes": nodes, "edges": edges})


@dataclass(slots=True)
class PacedProvider(httpx2.AsyncBaseTransport):
    """A provider that records time and key of every request."""

    limits: bool
    heard: list[tuple[float, str, int]] = field(default_factory=list[tuple[float, str, int]])
    """Time, key and item of each request."""

    def answer(self, key: str, body: bytes) -> tuple[int, bytes]:
        found = re.search(rb"Item (\d+)\.", body)
        item = int(found[1]) if found is not None else -1
        self.heard.append((asyncio.get_running_loop().time(), key, item))
        if self.limits and len(self.heard) % LIMITED == 0:
            return 429, b'{"error": {"message": "slow down"}}'
        return 200, b"".join([*words(f"Done {item}."), *END])

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        status, data = self.answer(request.headers["authorization"].removeprefix("Bearer "), body)
        return httpx2.Response(status, content=data, headers={"content-type": TYPE.decode()})

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                fields = dict(line.split(b": ", 1) for line in head.strip().split(b"\r\n")[1:])
                given = {name.lower(): value for name, value in fields.items()}
                body = await reader.readexactly(int(given[b"content-length"]))
                status, data = self.answer(given[b"authorization"].decode().removeprefix("Bearer "), body)
                start = b"HTTP/1.1 %d It\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n"
                writer.write(start % (status, TYPE, len(data)) + data)
        except asyncio.IncompleteReadError:
            writer.close()


@asynccontextmanager
async def on_a_socket(house: PacedProvider) -> AsyncGenerator[str]:
    server = await asyncio.start_server(house.serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()


async def crowd(size: int, settings: Settings, clock: VirtualClock | None) -> list[str]:
    """Run the fan-out. Return the agents that received no answer."""
    async with Pointsman("memory:", settings=settings, clock=clock) as app:
        execution = await app.start(document(), {"items": [*range(size)]})
        output = str(await execution.output())
    return [f"item {item} was not answered" for item in range(size) if f"Done {item}." not in output]


def lost_or_out_of_order(house: PacedProvider, size: int) -> list[str]:
    """Return violations: an item that was never requested, one requested again after its answer, calls of a key out of
    order."""
    found: list[str] = []
    first: defaultdict[str, list[int]] = defaultdict(list)
    for _, key, item in house.heard:
        if item not in first[key]:
            first[key].append(item)
    asked = sorted(item for items in first.values() for item in items)
    if asked != [*range(size)]:
        found.append(f"{size} agents asked about {len(asked)} items")
    for number, key in enumerate(KEYS):
        if first[key] != [*range(number, size, len(KEYS))]:
            found.append(f"{key} served others than its own, or those who came later first: {first[key][:12]}…")
    return found


def in_virtual_time(size: int) -> tuple[PacedProvider, list[str]]:
    house = PacedProvider(limits=True)
    provider = ProviderSettings.model_validate(
        {
            "base_url": "http://house.test/v1",
            "keys": KEYS,
            "interval": f"{PACE_S}s",
            "key_interval": f"{KEY_PACE_S}s",
            "retries": 10,
        }
    )
    settings = Settings(providers={"house": provider})
    real = models.provider_for

    def inside(settings: Settings, name: str, one: ProviderSettings) -> Provider:
        return replace(real(settings, name, one), http=house)

    with patch.object(models, "provider_for", inside):
        found = run_virtually(crowd(size, settings, VirtualClock()))
    found += lost_or_out_of_order(house, size)
    found += too_early([at for at, _, _ in house.heard], PACE_S, "the provider")
    for key in KEYS:
        found += too_early([at for at, used, _ in house.heard if used == key], KEY_PACE_S, key)
    return house, found


def too_early(times: list[float], pace_s: float, of: str) -> list[str]:
    early = [after - before for before, after in pairwise(times) if after - before < pace_s - SLACK_S]
    return [f"{of} was asked {len(early)} times too early, at worst after {min(early):.3f} s"] if early else []


def in_real_time(size: int, pace_s: float = REAL_PACE_S) -> tuple[PacedProvider, list[str]]:
    house = PacedProvider(limits=False)

    async def story() -> list[str]:
        async with on_a_socket(house) as address:
            provider = ProviderSettings.model_validate({"base_url": address, "keys": KEYS, "interval": f"{pace_s}s"})
            settings = Settings(providers={"house": provider})
            await crowd(1, settings, None)  # Load the clients first, which takes a second.
            house.heard.clear()
            began = asyncio.get_running_loop().time()
            found = await crowd(size, settings, None)
        # Delays on the way make a call later, never earlier: the last call has waited for all before it.
        times = [at - began for at, _, _ in house.heard]
        early = [number for number, at in enumerate(sorted(times)) if at < number * pace_s - SLACK_S]
        return found + ([f"{len(early)} calls came before their time, first {early[0]}"] if early else [])

    found = asyncio.run(story())
    return house, found + ([] if len(house.heard) == size else [f"{len(house.heard)} calls for {size} agents"])


def examine(size: int, seed: int) -> Finding:
    """Run `size` agents concurrently, in virtual and in real time."""
    virtual, found = in_virtual_time(size)
    real, more = in_real_time(size)
    again = len(virtual.heard) - size
    figure = f"{size} agents, {len(virtual.heard)} calls of which {again} again, {len(real.heard)} in real time"
    return Finding(f"{figure}; {len(found) + len(more)} violations", (*found, *more))
