"""Profile: `python -m bench.profiling SHAPE SIZE [STORE [ADDRESS]]` samples runs through the public API, and prints the
shares of functions as JSON.

Sampled, not traced: tracing makes small functions look expensive, and here all functions are small.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Final

import msgspec

from bench.meter import Place, Spent
from bench.public import cases

INTERVAL_S: Final = 0.004
CPU_S: Final = 10.0
FUNCTIONS_MAX: Final = 14


class Shares(msgspec.Struct, frozen=True):
    """Shares of the samples, greatest first."""

    samples: int
    own: list[tuple[str, float]]
    """By function: what runs in it."""
    below: list[tuple[str, float]]
    """By function of the product: what runs in it and in what it calls."""


class Sampler:
    """Notes where the main thread is, in even steps of CPU time."""

    def __init__(self) -> None:
        self._own: Counter[str] = Counter()
        self._below: Counter[str] = Counter()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if frame is None:
            return
        self._own[_name(frame)] += 1
        seen: set[str] = set()
        while frame is not None:
            seen.add(_name(frame))
            frame = frame.f_back
        self._below.update(name for name in seen if "pointsman" in name)

    def shares(self, most: int) -> Shares:
        total = self._own.total()
        return Shares(
            total,
            [(name, count / total) for name, count in self._own.most_common(most)],
            [(name, count / total) for name, count in self._below.most_common(most)],
        )


def _name(frame: FrameType) -> str:
    code = frame.f_code
    _, inside, module = code.co_filename.rpartition("/pointsman/")
    place = (
        f"pointsman.{module.removesuffix('.py').replace('/', '.')}" if inside else code.co_filename.rpartition("/")[2]
    )
    return f"{place}.{code.co_qualname}"


async def sampled(name: str, size: int, place: Place) -> Shares:
    async with cases()[name](size, place) as run:
        await run()
        sampler = Sampler()
        signal.signal(signal.SIGPROF, sampler)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)
        spent = Spent()
        while spent.cpu() < CPU_S * 1e6:
            await run()
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    return sampler.shares(FUNCTIONS_MAX)


def main() -> None:
    name, size, *rest = sys.argv[1:]
    store, address = (*rest, "", "")[:2]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        found = asyncio.run(sampled(name, int(size), Place(store or "memory", Path(folder), address)))
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()
