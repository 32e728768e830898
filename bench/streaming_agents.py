"""Cost of many streaming agents for a browser that shows them: a part of `python -m bench.web --executions`."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

import httpx2
from playwright.async_api import Browser

from bench.watching import FRAMES, WINDOW, counters, spread

BRANCHES: Final = (8, 300)
"""Number of steps of each branch."""
STEPS: Final = 10
WATCHED_S: Final = 5.0
BEGINS_MS: Final = 3000
WORDS: Final = 80
SCRIPT: Final = f"""\
rules:
  - {{text: "{" ".join(f"word{number}" for number in range(WORDS))}", tokenDelay: 200ms}}
"""
LONG: Final = """() => { window.long = []; new PerformanceObserver(found => {
    for (const one of found.getEntries()) window.long.push(one.duration); }).observe({type: "longtask"}); }"""
ABOUT: Final = (
    f"Parallel branches of {STEPS} agents each that stream a few words every 200 ms: CPU of the main thread per "
    "second, and its share of scripts; milliseconds between frames (median / 95th percentile); tasks above 50 ms "
    "per second; with the whole graph visible, and with the details of one step open, which show its text as "
    "it arrives."
)


class StreamingFigures(NamedTuple):
    """Parallel agents on the page of their execution."""

    branches: int
    picked: bool
    cpu: float
    scripts: float
    frames_ms: tuple[float, float]
    long: float
    heap_mb: float


def speaking(branches: int) -> str:
    """Return a workflow with a wait, and then that many branches in parallel."""
    last = STEPS - 1
    nodes = [{"id": f"say{at}", "type": "agent", "config": {"prompt": "Speak."}} for at in range(STEPS)]
    chain = [{"source": f"say{at}", "target": f"say{at + 1}"} for at in range(last)]
    ways = [("hold", "each"), ("each", "say0"), (f"say{last}", "meet")]
    return json.dumps(
        {
            "pointsman": 1,
            "id": f"speaking-{branches}",
            "entry": "hold",
            "input": {"type": "object"},
            "config": {"limits": {"parallel": branches}},
            "nodes": [
                {"id": "hold", "type": "wait", "config": {"event": "go"}},
                {"id": "each", "type": "parallel", "config": {"items": "items", "maxParallel": branches}},
                *nodes,
                {"id": "meet", "type": "join"},
            ],
            "edges": [*({"source": source, "target": target} for source, target in ways), *chain],
        }
    )


async def measured(browser: Browser, base: str, branches: int, *, picked: bool) -> StreamingFigures:
    async with httpx2.AsyncClient(base_url=base, timeout=300) as client:
        (await client.post("/api/workflows", content=speaking(branches))).raise_for_status()
        asked = {"input": {"items": list(range(branches))}, "wait": True}
        begun = await client.post(f"/api/workflows/speaking-{branches}/execute", json=asked)
        execution = f"/api/workflows/executions/{begun.raise_for_status().json()['executionId']}"
        context = await browser.new_context(viewport=WINDOW)
        page = await context.new_page()
        line = await context.new_cdp_session(page)
        await line.send("Performance.enable", {"timeDomain": "threadTicks"})  # pyright: ignore[reportUnknownMemberType] - untyped there
        await page.goto(base + execution.removeprefix("/api/workflows"))
        await page.locator(".react-flow__node").first.wait_for()
        (await client.post(f"{execution}/signals", json={"name": "go"})).raise_for_status()
        await page.wait_for_timeout(BEGINS_MS)
        if picked:
            await page.locator(".react-flow__node").filter(has_text="say1").first.click()
        await page.evaluate(LONG)
        before = await counters(line)
        times: list[float] = await page.evaluate(FRAMES, WATCHED_S)
        after = await counters(line)
        long: list[float] = await page.evaluate("window.long")
        await line.send("HeapProfiler.collectGarbage")  # pyright: ignore[reportUnknownMemberType] - untyped there
        heap = (await counters(line))["JSHeapUsedSize"] / 1_000_000
        await context.close()
        (await client.post(f"{execution}/cancel", json={})).raise_for_status()
    cpu, scripts = ((after[name] - before[name]) / WATCHED_S for name in ("TaskDuration", "ScriptDuration"))
    return StreamingFigures(branches, picked, cpu, scripts, spread(times), len(long) / WATCHED_S, heap)


def section(found: list[StreamingFigures], machine: str) -> str:
    lines = [
        "",
        "## Agents that stream at the same time",
        "",
        f"`python -m bench.web --executions` on {machine}. {ABOUT}",
        "",
        "| branches | picked | CPU per s | scripts | frames | long tasks per s | heap, MB |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {one.branches} | {'one step' if one.picked else '–'} | {one.cpu:.2f} | {one.scripts:.3f} "
            f"| {one.frames_ms[0]:.0f} / {one.frames_ms[1]:.0f} | {one.long:.1f} | {one.heap_mb:.0f} |"
            for one in found
        ),
        "",
    ]
    return "\n".join(lines)
