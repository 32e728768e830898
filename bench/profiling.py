"""Where the time goes: `python -m bench.profiling SHAPE SIZE` samples a run in memory and prints shares by function.

Sampled, not traced: tracing makes small functions look expensive, and here all functions are small.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import Counter
from itertools import count
from types import FrameType
from typing import Final

import msgspec

from bench.measure import Spent, Stage
from bench.shapes import read_shapes
from pointsman.store.api import open_store

INTERVAL_S: Final = 0.004
CPU_S: Final = 10.0


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


async def sampled(name: str, size: int) -> Shares:
    shape = read_shapes()[name]
    stage = Stage(shape, size, await open_store("memory:"))
    await stage.run("warm")
    sampler = Sampler()
    signal.signal(signal.SIGPROF, sampler)
    signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)
    turns, spent = count(), Spent()
    while spent.cpu() < CPU_S * 1e6:
        await stage.run(f"turn-{next(turns)}")
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    return sampler.shares(14)


def main() -> None:
    found = asyncio.run(sampled(sys.argv[1], int(sys.argv[2])))
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()
