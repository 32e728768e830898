"""`python -m bench.web`: the size of the web app, and the cost of large workflows for a browser; writes WEB.md.

A real Chromium with a real server. CPU is that of the page's main thread, from the browser's own counters. Rendering is
done in software, so frame times are those of a machine without a graphics card.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
from collections.abc import Awaitable
from pathlib import Path
from statistics import median, quantiles
from typing import Final, NamedTuple

import httpx2
from playwright.async_api import Browser, Page, Request, async_playwright

from bench import streaming_agents
from bench.serving import GATE, machine, server
from bench.watching import FRAMES, READ_MS_MAX, STEPS, WINDOW, counters, section, spread, watched

CHROMIUM: Final = next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), None
)
PAGE: Final = Path(__file__).parent / "WEB.md"
EXECUTIONS: Final = "<!-- executions -->"
"""Below this line are the figures of executions: `--executions` replaces them, a run without it leaves them."""
SIZES: Final = (100, 500, 2000)
FRAMES_S: Final = 2.0
SETTLES_MS: Final = 2000
ABOUT: Final = (
    "CPU of the main thread until the first nodes are painted, with the layout of the app; milliseconds between frames "
    "(median / 95th percentile) while the canvas is dragged, zoomed by the wheel, and dragged with all nodes visible."
)


IDLE_S: Final = 10
KEYS: Final = "harbour"
LONGEST_PAINT: Final = """window.paintedMs = 0;
new PerformanceObserver((list) => { for (const one of list.getEntries()) window.paintedMs = one.startTime; })
  .observe({ type: "largest-contentful-paint", buffered: true });"""
KEY_PRESSES: Final = """() => {
  window.keyMs = [];
  document.addEventListener("keydown", () => {
    const pressed = performance.now();
    requestAnimationFrame(() => setTimeout(() => window.keyMs.push(performance.now() - pressed)));
  }, true);
}"""
"""Records the milliseconds from each key press until the browser has painted its effect."""


class Weight(NamedTuple):
    """A first visit: all requests of the page, with their headers and as the server compresses them."""

    page: str
    requests: int
    kb: float
    scripts_kb: float
    styles_kb: float
    painted_s: float
    """Largest contentful paint."""


class OpeningFigures(NamedTuple):
    """One workflow in the editor."""

    nodes: int
    cpu_s: float
    scripting_s: float
    heap_mb: float
    pan_ms: tuple[float, float]
    zoom_ms: tuple[float, float]
    drag_ms: tuple[float, float]
    drawn: int


def layered(nodes: int) -> str:
    """Return a workflow of that many nodes: ranks of eight, each node leads to two of the next rank."""
    made = [{"id": f"n{at}", "type": "transform", "config": {"set": {f"x{at}": "1"}}} for at in range(nodes)]
    edges = [
        {"source": f"n{at}", "target": f"n{to}"}
        for at in range(nodes)
        for to in {(at // 8 + 1) * 8 + at % 8, (at // 8 + 1) * 8 + (at + 3) % 8}
        if to < nodes
    ]
    return json.dumps({"pointsman": 1, "id": f"large-{nodes}", "entry": "n0", "nodes": made, "edges": edges})


async def weight(browser: Browser, base: str, name: str, path: str) -> Weight:
    page = await browser.new_page(viewport=WINDOW)
    await page.add_init_script(LONGEST_PAINT)
    finished: list[Request] = []
    page.on("requestfinished", lambda one: finished.append(one))
    async with page.expect_response("**/api/me"):
        await page.goto(base + path)
    await page.wait_for_timeout(SETTLES_MS)
    painted: float = await page.evaluate("window.paintedMs")
    sizes = {one.url: await one.sizes() for one in finished}
    kb = {url: (one["responseBodySize"] + one["responseHeadersSize"]) / 1000 for url, one in sizes.items()}
    await page.close()
    scripts, styles = (sum(size for url, size in kb.items() if url.endswith(end)) for end in (".js", ".css"))
    return Weight(name, len(finished), sum(kb.values()), scripts, styles, painted / 1000)


async def idle_percent(browser: Browser, address: str) -> float:
    """Return the CPU of the main thread of a page without input."""
    page = await browser.new_page(viewport=WINDOW)
    line = await page.context.new_cdp_session(page)
    await line.send("Performance.enable", {"timeDomain": "threadTicks"})  # pyright: ignore[reportUnknownMemberType] - untyped there
    await page.goto(address)
    await page.wait_for_timeout(2 * SETTLES_MS)
    before = (await counters(line))["TaskDuration"]
    await page.wait_for_timeout(IDLE_S * 1000)
    spent = (await counters(line))["TaskDuration"] - before
    await page.close()
    return 100 * spent / IDLE_S


async def key_press_ms(browser: Browser, base: str, nodes: int) -> tuple[float, float]:
    """Milliseconds until a key press in the name of a node is painted: the median and the 95th percentile."""
    page = await browser.new_page(viewport=WINDOW)
    await page.goto(f"{base}/workflows/large-{nodes}")
    await page.locator(".react-flow__node").first.click()
    field = page.get_by_role("complementary").get_by_role("textbox").first
    await field.click()
    await page.evaluate(KEY_PRESSES)
    await field.press_sequentially(KEYS, delay=100, timeout=READ_MS_MAX)
    times: list[float] = await page.evaluate("window.keyMs")
    await page.close()
    return median(times), quantiles(times, n=20)[18]


async def opened(browser: Browser, base: str, nodes: int) -> OpeningFigures:
    context = await browser.new_context(viewport=WINDOW)
    page = await context.new_page()
    line = await context.new_cdp_session(page)
    await line.send("Performance.enable", {"timeDomain": "threadTicks"})  # pyright: ignore[reportUnknownMemberType] - untyped there
    await page.goto(f"{base}/workflows/large-{nodes}")
    await page.locator(".react-flow__node, .far-canvas").first.wait_for()
    await page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    first = await counters(line)
    await page.wait_for_timeout(SETTLES_MS)
    pan = await frames(page, drag(page, 760, 300))
    zoom = await frames(page, wheel(page))
    await page.get_by_role("button", name="Fit View").click()
    await page.wait_for_timeout(300)
    drawn = await page.locator(".react-flow__node").count()
    whole = await frames(page, drag(page, 760, 300))
    await context.close()
    heap = first["JSHeapUsedSize"] / 1_000_000
    return OpeningFigures(nodes, first["TaskDuration"], first["ScriptDuration"], heap, pan, zoom, whole, drawn)


async def drag(page: Page, x: int, y: int) -> None:
    """Drag the canvas with the mouse."""
    await page.mouse.move(x, y)
    await page.mouse.down()
    for at in range(40):
        await page.mouse.move(x - 300 + abs(20 - at) * 15, y + (at % 20) * 4)
    await page.mouse.up()


async def wheel(page: Page) -> None:
    await page.mouse.move(500, 420)
    for at in range(40):
        await page.mouse.wheel(0, 60 if at < 20 else -60)


async def frames(page: Page, doing: Awaitable[None]) -> tuple[float, float]:
    """Return the milliseconds between frames while something moves: the median and the 95th percentile."""
    watching = asyncio.ensure_future(page.evaluate(FRAMES, FRAMES_S))
    await doing
    times: list[float] = await watching
    return spread(times)


class Measured(NamedTuple):
    """All figures of a run."""

    weights: list[Weight]
    idle: dict[str, float]
    key_ms: tuple[float, float]
    found: list[OpeningFigures]


async def measured(base: str, sizes: tuple[int, ...]) -> Measured:
    async with httpx2.AsyncClient(base_url=base, timeout=60) as client:
        for nodes in sizes:
            (await client.post("/api/workflows", content=layered(nodes))).raise_for_status()
        (await client.post("/api/workflows", content=GATE)).raise_for_status()
        begun = await client.post("/api/workflows/gate/execute", json={"input": {}, "wait": True})
        waiting = str(begun.raise_for_status().json()["executionId"])
    await asyncio.sleep(IDLE_S)  # Lists are read again while an execution changes.
    async with async_playwright() as player:
        browser = await player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        places = (("list", "/workflows"), ("editor", f"/workflows/large-{sizes[0]}"), ("inbox", "/inbox"))
        weights = [await weight(browser, base, name, path) for name, path in places]
        still = (*places, ("waiting execution", f"/executions/{waiting}"))
        idle = {name: await idle_percent(browser, base + path) for name, path in still}
        key_ms = await key_press_ms(browser, base, sizes[1])
        found = [await opened(browser, base, nodes) for nodes in sizes]
        await browser.close()
    return Measured(weights, idle, key_ms, found)


def page_of(figures: Measured, nodes: int) -> str:
    """`nodes`: of the workflow in which keys were pressed."""
    lines = [
        "# What the web app costs",
        "",
        f"`python -m bench.web` on {machine()}; Chromium without a graphics card, window 1280×800.",
        "",
        "## What a first visit loads",
        "",
        "All requests of the page, with their headers and as the server compresses them, and the largest paint.",
        "The worker of all windows requests two more: its script, and the stream of executions, which stays open.",
        "",
        "| page | requests | KB | of which scripts | styles | painted, s |",
        "|---|---|---|---|---|---|",
        *(
            f"| {one.page} | {one.requests} | {one.kb:.0f} | {one.scripts_kb:.0f} | {one.styles_kb:.0f} "
            f"| {one.painted_s:.2f} |"
            for one in figures.weights
        ),
        "",
        "## Idle pages",
        "",
        f"CPU of the main thread without any input, over {IDLE_S} seconds.",
        "",
        "| page | CPU, % |",
        "|---|---|",
        *(f"| {name} | {percent:.1f} |" for name, percent in figures.idle.items()),
        "",
        "## Keys",
        "",
        "From a key press in the name of a node until its effect is painted, in ms (median / 95th percentile):",
        f"{figures.key_ms[0]:.0f} / {figures.key_ms[1]:.0f} in the editor with {nodes} nodes.",
        "",
        "## Large workflows in the editor",
        "",
        ABOUT,
        "",
        "| nodes | first paint, CPU s | scripting, s | heap, MB | pan | zoom | pan, all visible | nodes drawn then |",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {one.nodes} | {one.cpu_s:.2f} | {one.scripting_s:.2f} | {one.heap_mb:.0f} "
            f"| {one.pan_ms[0]:.0f} / {one.pan_ms[1]:.0f} | {one.zoom_ms[0]:.0f} / {one.zoom_ms[1]:.0f} "
            f"| {one.drag_ms[0]:.0f} / {one.drag_ms[1]:.0f} | {one.drawn} |"
            for one in figures.found
        ),
        "",
        EXECUTIONS,
    ]
    return "\n".join(lines)


async def executions(base: str, sizes: tuple[int, ...]) -> str:
    async with async_playwright() as player:
        browser = await player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        found = [await watched(browser, base, steps) for steps in sizes]
        streaming = [
            await streaming_agents.measured(browser, base, branches, picked=picked)
            for branches in streaming_agents.BRANCHES
            for picked in (False, True)
        ]
        await browser.close()
    return section(found, machine()) + streaming_agents.section(streaming, machine())


def section_of_executions() -> str:
    text = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    return text.partition(EXECUTIONS)[2] or "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.web", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer nodes; prints, writes nothing")
    parser.add_argument("--executions", action="store_true", help="only what long executions cost")
    options = parser.parse_args()
    with server(streaming_agents.SCRIPT) as one:
        base = f"http://127.0.0.1:{one.port}"
        if options.executions:
            found = asyncio.run(executions(base, STEPS[:2] if options.quick else STEPS))
            print(found)
            if not options.quick:
                before = PAGE.read_text(encoding="utf-8").partition(EXECUTIONS)[0]
                PAGE.write_text(f"{before}{EXECUTIONS}\n{found}", encoding="utf-8")
            return
        sizes = SIZES[:2] if options.quick else SIZES
        report = page_of(asyncio.run(measured(base, sizes)), sizes[1])
    if options.quick:
        print(report)
    else:
        PAGE.write_text(report + section_of_executions(), encoding="utf-8")
        print("bench/WEB.md is written.")


if __name__ == "__main__":
    main()
