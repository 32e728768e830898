"""`python -m bench.web`: the size of the web app, and the cost of large workflows for a browser; writes WEB.md.

A real Chromium with a real server. CPU is that of the page's main thread, from the browser's own counters. Rendering is
done in software, so frame times are those of a machine without a graphics card.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import shutil
from collections.abc import Awaitable
from pathlib import Path
from typing import Final, NamedTuple

import httpx2
from playwright.async_api import Browser, Page, async_playwright

from bench import crowd
from bench.serving import machine, server
from bench.watching import FRAMES, STEPS, WINDOW, counters, section, spread, watched

PAGE: Final = Path(__file__).parent / "WEB.md"
EXECUTIONS: Final = "<!-- executions -->"
"""Below this line stand executions; `--executions` measures them alone, without it they are kept as they are."""
SIZES: Final = (100, 500, 2000)
FRAMES_S: Final = 2.0
SETTLES_MS: Final = 2000
ABOUT: Final = (
    "CPU of the main thread until the first nodes are painted, laid out by the app; milliseconds between frames as "
    "median / 95th of a hundred while the canvas is dragged, zoomed by the wheel, and dragged while all is in sight."
)


class Weight(NamedTuple):
    """The files of a first visit, after gzip -9."""

    page: str
    scripts_kb: float
    styles_kb: float


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
    scripts: dict[str, float] = {}
    styles: dict[str, float] = {}
    async with page.expect_response("**/api/me"):
        await page.goto(base + path)
    await page.wait_for_timeout(SETTLES_MS)
    names: list[str] = await page.evaluate("performance.getEntriesByType('resource').map(one => one.name)")
    for one in names:
        into = scripts if one.endswith(".js") else styles if one.endswith(".css") else None
        if into is not None:
            into[one] = len(gzip.compress(await (await page.request.get(one)).body(), 9)) / 1000
    await page.close()
    return Weight(name, sum(scripts.values()), sum(styles.values()))


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
    """The pane is pulled about by the mouse."""
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
    """Milliseconds between frames while something moves: the median and the 95th of a hundred."""
    watching = asyncio.ensure_future(page.evaluate(FRAMES, FRAMES_S))
    await doing
    times: list[float] = await watching
    return spread(times)


async def measured(base: str, sizes: tuple[int, ...]) -> tuple[list[Weight], list[OpeningFigures]]:
    async with httpx2.AsyncClient(base_url=base, timeout=60) as client:
        for nodes in sizes:
            (await client.post("/api/workflows", content=layered(nodes))).raise_for_status()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    async with async_playwright() as player:
        browser = await player.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        places = (("list", "/workflows"), ("editor", f"/workflows/large-{sizes[0]}"), ("inbox", "/inbox"))
        weights = [await weight(browser, base, name, path) for name, path in places]
        found = [await opened(browser, base, nodes) for nodes in sizes]
        await browser.close()
    return weights, found


def page_of(weights: list[Weight], found: list[OpeningFigures]) -> str:
    lines = [
        "# What the web app costs",
        "",
        f"`python -m bench.web` on {machine()}; Chromium without a graphics card, window 1280×800.",
        "",
        "## What a first visit loads (gzip)",
        "",
        "| page | scripts, KB | styles, KB |",
        "|---|---|---|",
        *(f"| {one.page} | {one.scripts_kb:.0f} | {one.styles_kb:.0f} |" for one in weights),
        "",
        "## Large workflows in the editor",
        "",
        ABOUT,
        "",
        "| nodes | first paint, CPU s | scripting, s | heap, MB | pan | zoom | pan, all in sight | drawn then |",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {one.nodes} | {one.cpu_s:.2f} | {one.scripting_s:.2f} | {one.heap_mb:.0f} "
            f"| {one.pan_ms[0]:.0f} / {one.pan_ms[1]:.0f} | {one.zoom_ms[0]:.0f} / {one.zoom_ms[1]:.0f} "
            f"| {one.drag_ms[0]:.0f} / {one.drag_ms[1]:.0f} | {one.drawn} |"
            for one in found
        ),
        "",
        EXECUTIONS,
    ]
    return "\n".join(lines)


async def executions(base: str, sizes: tuple[int, ...]) -> str:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    async with async_playwright() as player:
        browser = await player.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        found = [await watched(browser, base, steps) for steps in sizes]
        crowds = [
            await crowd.crowded(browser, base, branches, picked=picked)
            for branches in crowd.CROWDS
            for picked in (False, True)
        ]
        await browser.close()
    return section(found, machine()) + crowd.section(crowds, machine())


def kept() -> str:
    text = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    return text.partition(EXECUTIONS)[2] or "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.web", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer nodes; prints, writes nothing")
    parser.add_argument("--executions", action="store_true", help="only what long executions cost")
    options = parser.parse_args()
    with server(crowd.SCRIPT) as one:
        base = f"http://127.0.0.1:{one.port}"
        if options.executions:
            found = asyncio.run(executions(base, STEPS[:2] if options.quick else STEPS))
            print(found)
            if not options.quick:
                before = PAGE.read_text(encoding="utf-8").partition(EXECUTIONS)[0]
                PAGE.write_text(f"{before}{EXECUTIONS}\n{found}", encoding="utf-8")
            return
        report = page_of(*asyncio.run(measured(base, SIZES[:2] if options.quick else SIZES)))
    if options.quick:
        print(report)
    else:
        PAGE.write_text(report + kept(), encoding="utf-8")
        print("bench/WEB.md is written.")


if __name__ == "__main__":
    main()
