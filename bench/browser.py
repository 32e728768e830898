"""What a browser tells of itself while it is measured."""

from __future__ import annotations

from itertools import pairwise
from statistics import median, quantiles
from typing import Final, TypedDict, cast

from playwright.async_api import CDPSession, ViewportSize

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
    told = cast("Counters", await line.send("Performance.getMetrics"))  # pyright: ignore[reportUnknownMemberType] - untyped there
    return {one["name"]: one["value"] for one in told["metrics"]}


def spread(times: list[float]) -> tuple[float, float]:
    """Milliseconds between frames: the median and the 95th of a hundred."""
    gaps = [after - before for before, after in pairwise(times)]
    return median(gaps), quantiles(gaps, n=20)[-1]
