"""Cost of long executions for a browser that shows them: a part of `python -m bench.web`."""

from __future__ import annotations

from itertools import pairwise
from statistics import median, quantiles
from typing import Final, NamedTuple, TypedDict, cast

import httpx2
from playwright.async_api import Browser, CDPSession, ViewportSize

STEPS: Final = (1_000, 10_000, 100_000)
UNLIMITED: Final = 1_000_000
LIVE_STEPS: Final = 600
LIVE_EVERY_MS: Final = 10
WATCHED_S: Final = 4.0
PAGE: Final = 1000
READ_MS_MAX: Final = 120_000
ABOUT: Final = (
    "CPU of the main thread until the whole journal is read and drawn; milliseconds between frames (median / 95th "
    "percentile) and CPU per second while the execution continues and its events arrive; the heap after a garbage "
    "collection."
)


class WatchFigures(NamedTuple):
    """One execution on its page."""

    steps: int
    events: int
    cpu_s: float
    per_s: float
    frames_ms: tuple[float, float]
    live_cpu: float
    heap_mb: float


def turning(steps: int) -> str:
    """Return a loop of that many steps, a wait, and a slower loop for the browser to show."""
    return f"""\
pointsman: 1
id: turning-{steps}
entry: tick
config: {{durability: async, limits: {{steps: {UNLIMITED}, executionTime: 1h}}}}
nodes:
  - {{id: tick, type: transform, config: {{set: {{n: "(n ?? 0) + 1"}}}}}}
  - {{id: hold, type: wait, config: {{event: go}}}}
  - {{id: slow, type: transform, config: {{set: {{n: "n + 1"}}}}, execution: {{delay: {LIVE_EVERY_MS}ms}}}}
  - {{id: done, type: end}}
edges:
  - {{source: tick, target: tick, condition: {{type: expression, expression: "n < {steps}"}}}}
  - {{source: tick, target: hold, condition: {{type: expression, expression: "n >= {steps}"}}}}
  - {{source: hold, target: slow}}
  - {{source: slow, target: slow, condition: {{type: expression, expression: "n < {steps + LIVE_STEPS}"}}}}
  - {{source: slow, target: done, condition: {{type: expression, expression: "n >= {steps + LIVE_STEPS}"}}}}
"""


async def watched(browser: Browser, base: str, steps: int) -> WatchFigures:
    async with httpx2.AsyncClient(base_url=base, timeout=300) as client:
        (await client.post("/api/workflows", content=turning(steps))).raise_for_status()
        begun = await client.post(f"/api/workflows/turning-{steps}/execute", json={"input": {}, "wait": True})
        execution = str(begun.raise_for_status().json()["executionId"])
        context = await browser.new_context(viewport=WINDOW)
        page = await context.new_page()
        line = await context.new_cdp_session(page)
        await line.send("Performance.enable", {"timeDomain": "threadTicks"})  # pyright: ignore[reportUnknownMemberType] - untyped there
        await page.goto(f"{base}/executions/{execution}")
        await page.get_by_text(f"{steps}/{steps}").first.wait_for(timeout=READ_MS_MAX)
        first = await counters(line)
        events, last = await events_of(client, execution)
        await client.post(f"/api/workflows/executions/{execution}/signals", json={"name": "go"})
        times: list[float] = await page.evaluate(FRAMES, WATCHED_S)
        live = await counters(line)
        new, _ = await events_of(client, execution, last)
        await line.send("HeapProfiler.collectGarbage")  # pyright: ignore[reportUnknownMemberType] - untyped there
        heap = (await counters(line))["JSHeapUsedSize"] / 1_000_000
        await context.close()
    spent = (live["TaskDuration"] - first["TaskDuration"]) / WATCHED_S
    return WatchFigures(steps, events, first["TaskDuration"], new / WATCHED_S, spread(times), spent, heap)


async def events_of(client: httpx2.AsyncClient, execution: str, after: str = "") -> tuple[int, str]:
    """Return the number of events after a position, and the position of the last one."""
    count = 0
    while True:
        wanted = {"limit": PAGE, **({"after": after} if after else {})}
        found = (await client.get(f"/api/workflows/executions/{execution}/events", params=wanted)).json()
        count, after = count + len(found["events"]), found["last"] or after
        if len(found["events"]) < PAGE:
            return count, after


def section(found: list[WatchFigures], machine: str) -> str:
    lines = [
        "",
        "## Long executions on their page",
        "",
        f"`python -m bench.web --executions` on {machine}. {ABOUT}",
        "",
        "| steps | events | open, CPU s | events per s | frames | CPU per s | heap, MB |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {one.steps} | {one.events} | {one.cpu_s:.2f} | {one.per_s:.0f} "
            f"| {one.frames_ms[0]:.0f} / {one.frames_ms[1]:.0f} | {one.live_cpu:.2f} | {one.heap_mb:.0f} |"
            for one in found
        ),
        "",
    ]
    return "\n".join(lines)


WINDOW: Final[ViewportSize] = {"width": 1280, "height": 800}
FRAMES: Final = """seconds => new Promise(done => {
    const times = []; const first = performance.now();
    const step = now => { times.push(now); now - first < seconds * 1000 ? requestAnimationFrame(step) : done(times); };
    requestAnimationFrame(step);
})"""


class Counter(TypedDict):
    """One of the browser's own."""

    name: str
    value: float


class Counters(TypedDict):
    """All of them."""

    metrics: list[Counter]


async def counters(line: CDPSession) -> dict[str, float]:
    found = cast("Counters", await line.send("Performance.getMetrics"))  # pyright: ignore[reportUnknownMemberType] - untyped there
    return {one["name"]: one["value"] for one in found["metrics"]}


def spread(times: list[float]) -> tuple[float, float]:
    """Milliseconds between frames: the median and the 95th percentile."""
    gaps = [after - before for before, after in pairwise(times)]
    return median(gaps), quantiles(gaps, n=20)[-1]
