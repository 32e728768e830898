"""Three servers on one PostgreSQL, behind a balancer that sends every request to a random one, while one of them or the
database fails.

    kill        one server is killed (SIGKILL)                   hang      one stands still for 20 s (SIGSTOP, SIGCONT)
    cut         one has silent connections to PostgreSQL         crash     PostgreSQL crashes and starts again
    crowd       PostgreSQL refuses new sessions, and ends the present ones

In each round executions run through all three, requests about them go to random servers, and one fault happens. No step
may begin twice unless its owner was lost, no execution may fail, and none may be still for longer than 30 s.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from contextlib import suppress
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import httpx2

from pointsman.values import JsonObject
from tests.postgres import Cluster
from tests.reliability.findings import Finding
from tests.reliability.servers import server
from tests.scale.cluster import CHARGING
from tests.scale.test_three_servers import LONG_STEPS, Servers, cut, hang, kill, mend, three

STARTED: Final = 9
OF_ONE: Final = {"kill": kill, "hang": hang, "cut": cut}
"""Faults of one server."""
FAULTS: Final = (*OF_ONE, "crash", "crowd")
STILL_S_MAX: Final = 30.0
STANDS_S: Final = 20.0
CROWDED_S: Final = 10.0
REQUEST_S: Final = 0.2
USER: Final = "crowded"


class Round(NamedTuple):
    """What one fault did."""

    violations: list[str]
    repeated: int
    """Calls in flight that another server began again."""
    still_s: float
    """The longest pause between two calls of an execution."""


async def ask(servers: Servers, executions: list[str]) -> None:
    """Send requests about random executions to random servers, until cancelled. Refusals and outages are expected."""
    while True:
        place = f"/executions/{servers.random.choice(executions)}"
        verb = servers.random.choice(("signals", "pause", "resume"))
        body: JsonObject | None = {"name": "news"} if verb == "signals" else None
        with suppress(httpx2.HTTPError):
            await servers.request("POST", f"{place}/{verb}", body)
            await servers.request("POST", f"{place}/resume")
        await asyncio.sleep(REQUEST_S)


async def resume(servers: Servers, execution: str) -> None:
    """Send a request until a server answers: the last fault may still delay it."""
    while True:
        with suppress(httpx2.HTTPError):
            answer = await servers.request("POST", f"/executions/{execution}/resume")
            if answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
                return
        await asyncio.sleep(REQUEST_S)


async def happen(fault: str, servers: Servers, cluster: Cluster) -> None:
    """Let a fault happen and end."""
    if fault in OF_ONE:
        clients = servers.clients
        servers.clients = clients[1:]  # The balancer checks the health of the servers.
        OF_ONE[fault](servers, 0)
        await asyncio.sleep(STANDS_S)
        mend(servers, 0)
        servers.clients = clients[fault == "kill" :]
    elif fault == "crash":
        await asyncio.to_thread(cluster.stop)
        await asyncio.to_thread(cluster.start)
    else:
        ends = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{USER}'"
        cluster.sql(f"ALTER ROLE {USER} CONNECTION LIMIT 3", ends)
        await asyncio.sleep(CROWDED_S)
        cluster.sql(f"ALTER ROLE {USER} CONNECTION LIMIT -1")


async def round_of(fault: str, cluster: Cluster, folder: Path, program: str = CHARGING) -> Round:
    cluster.sql(f"CREATE SCHEMA {fault} AUTHORIZATION {USER}")
    async with three(cluster.url(schema=fault, user=USER), folder, program) as servers:
        started = [await servers.start("long", f"order {number}") for number in range(STARTED)]
        lost = servers.pid(0)
        await servers.called({lost})
        asking = asyncio.create_task(ask(servers, started))
        await happen(fault, servers, cluster)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        for execution in started:
            await resume(servers, execution)
        try:
            await servers.completed(started)
        except AssertionError as why:
            return Round([f"{fault}: {why}"], 0, 0.0)
        return judged(fault, servers, lost)


def judged(fault: str, servers: Servers, lost: int) -> Round:
    """Compare the calls with what may happen."""
    begun = Counter(call.key for call in servers.calls)
    repeated = {key for key, times in begun.items() if times > 1}
    violations = [f"{fault}: {begun[key]} times {key}" for key in repeated if begun[key] > 2]
    allowed = {call.key for call in servers.calls if call.process == lost} if fault in OF_ONE else set[str]()
    violations += [f"{fault}: {key} began twice, and its owner was not lost" for key in repeated - allowed]
    if len(begun) != STARTED * LONG_STEPS:
        violations.append(f"{fault}: {len(begun)} of {STARTED * LONG_STEPS} steps began")
    times: dict[str, list[float]] = {}
    for call in servers.calls:
        times.setdefault(call.execution, []).append(call.at)
    still_s = max(later - at for ats in times.values() for at, later in pairwise(ats))
    return Round(violations, len(repeated), still_s)


def examine(size: int, seed: int) -> Finding:
    """Let `size` faults happen, each in a round of its own."""
    rounds: list[Round] = []
    faults = [FAULTS[(seed - 1 + number) % len(FAULTS)] for number in range(size)]
    with server() as cluster:
        cluster.sql(f"CREATE ROLE {USER} LOGIN")
        for fault in faults:
            with tempfile.TemporaryDirectory() as folder:
                rounds.append(asyncio.run(round_of(fault, cluster, Path(folder))))
            cluster.sql(f"DROP SCHEMA {fault} CASCADE")
    still_s = max(one.still_s for one in rounds)
    violations = [line for one in rounds for line in one.violations]
    late = [f"an execution was still for {still_s:.0f} s"] if still_s > STILL_S_MAX else []
    repeated = sum(one.repeated for one in rounds)
    figure = f"{' '.join(faults)}: {repeated} calls in flight repeated, at most {still_s:.0f} s still"
    return Finding(f"{figure}; {len(violations)} violations", tuple(violations), tuple(late))
