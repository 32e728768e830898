"""`python -m bench.lists`: the cost of lists with many entries, over real sockets; writes its part of SERVER.md.

A store is filled through the public verbs, then a separate server answers. The figures are its CPU time and the bytes
of one answer, at the second request, when nothing has to be computed again.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Awaitable, Iterable
from random import Random
from typing import Final, NamedTuple

from bench.serving import LISTS, PAGE, Line, Server, machine
from pointsman.app import Pointsman, Workflow
from pointsman.auth.audit import Audit
from pointsman.auth.callers import Caller
from pointsman.auth.keys import Keys
from pointsman.settings import Settings
from pointsman.store.records import NANOS, UsageAmounts, UsagePosition, UsageRecord
from pointsman.values import ExecutionId

ENTRIES: Final = 2_000
EXECUTIONS: Final = 8_000
ASKED: Final = 20
AT_ONCE: Final = 200
PATHS: Final = (
    "/api/schedules?limit=50",
    "/api/webhooks?limit=50",
    "/api/settings",
    "/api/settings/keys",
    "/api/people",
    "/api/audit?limit=50",
    "/api/audit?limit=50&what=nothing-like-it",
    "/api/usage",
    "/api/usage?by=day&by=model",
    "/api/usage?by=user",
    "/api/usage?by=execution&limit=100",
)
HOOKED: Final = """\
pointsman: 1
id: hooked{number:04}
triggers: [{{id: hook, type: webhook, path: shop/{number:04}}}]
nodes: [{{id: a, type: transform, config: {{set: {{x: "1"}}}}}}]
"""


class ListFigures(NamedTuple):
    """One path."""

    path: str
    ms: float
    """CPU of the server, for one answer."""
    kb: float


async def in_turns(deeds: Iterable[Awaitable[object]]) -> None:
    """Some at once: they share commits."""
    waiting: list[Awaitable[object]] = []
    for deed in deeds:
        waiting.append(deed)
        if len(waiting) == AT_ONCE:
            await asyncio.gather(*waiting)
            waiting.clear()
    await asyncio.gather(*waiting)


def takings(count: int) -> Iterable[UsageRecord]:
    chance = Random(152)
    for number in range(count):
        steps = [
            (UsagePosition(f"node{one}"), UsageAmounts(steps=1, micros=chance.randrange(10**6))) for one in range(5)
        ]
        paid = UsageAmounts(model_calls=1, input_tokens=900, output_tokens=80, nanos=NANOS // 300, priced_calls=1)
        yield UsageRecord(
            day=f"2026-{10 + number % 2}-{1 + number % 28:02}",
            execution=ExecutionId(f"exec-{number:06}"),
            workflow=f"hooked{number % 20:04}",
            revision=1,
            owner=f"user{number % 50}",
            entries=(*steps, (UsagePosition("node0", "gpt-5", "openai/1"), paid)),
        )


async def fill(url: str, entries: int, executions: int) -> str:
    """The key of an admin."""
    async with Pointsman(url, settings=Settings(delays=False), model="scripted") as app:
        for number in range(entries):
            await app.save(Workflow.parse(HOOKED.format(number=number)))
        await in_turns(
            app.schedule(f"hooked{number:04}", id=f"plan{number:04}", cron=f"{number % 60} 7 * * *")
            for number in range(entries)
        )
        keys, audit = Keys(app.store.entries, app.clock), Audit(app.store.entries, app.clock)
        for number in range(entries):
            await keys.make(f"person{number:04}", "viewer")
            await audit.record_request(
                Caller(name="admin", role="admin"), "PUT /api/workflows/{id}", target=f"hooked{number:04}"
            )
        await audit.close()
        await in_turns(app.store.usage.put(one) for one in takings(executions))
        return await keys.make("operator", "admin")


async def answered(server: Server, key: str, path: str) -> ListFigures:
    line = await Line.open(server.port)
    line.key = key
    body = await line.ask("GET", path)
    before = server.cpu_s()
    for _ in range(ASKED):
        await line.ask("GET", path)
    line.writer.close()
    return ListFigures(path, 1e3 * (server.cpu_s() - before) / ASKED, len(body) / 1e3)


async def measured(folder: str, entries: int, executions: int) -> list[ListFigures]:
    key = await fill(f"sqlite:///{folder}/store.db", entries, executions)
    server = await asyncio.to_thread(Server, folder)
    try:
        return [await answered(server, key, path) for path in PATHS]
    finally:
        server.process.kill()
        server.process.communicate()


def part(found: list[ListFigures], entries: int, executions: int) -> str:
    lines = [
        "## Lists where there is much",
        "",
        f"By `python -m bench.lists`: {machine()}.",
        f"{entries} workflows with webhook and schedule, as many keys and deeds; usage of {executions} executions.",
        "",
        "| answer | CPU ms of the server | KB |",
        "|---|---:|---:|",
        *(f"| `{one.path}` | {one.ms:.1f} | {one.kb:.1f} |" for one in found),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.lists", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth; prints, writes nothing")
    options = parser.parse_args()
    share = 10 if options.quick else 1
    entries, executions = ENTRIES // share, EXECUTIONS // share
    with tempfile.TemporaryDirectory() as folder:
        report = part(asyncio.run(measured(folder, entries, executions)), entries, executions)
    if options.quick:
        print(report)
    else:
        page = PAGE.read_text(encoding="utf-8").partition(LISTS)[0]
        PAGE.write_text(f"{page}{LISTS}\n{report}", encoding="utf-8")
        print(f"{PAGE.relative_to(PAGE.parents[1])} is written.")


if __name__ == "__main__":
    main()
