"""Log of effects in the outside world: each effect writes a line to a separate file when it begins and when it
happened.

The file contains nothing from the store, and no line is ever removed. The order in which effects began shows which
effects were in flight when a process died: the last ones of an execution, after which none had begun. All earlier
effects were recorded; otherwise the engine continued too early.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, cast

Verb: TypeAlias = Literal["begins", "happened"]


class Deed(NamedTuple):
    """One line of the log."""

    verb: Verb
    key: str
    """The idempotency key: `execution:step:number:hash`."""
    life: int
    """The process that performed the effect."""

    @property
    def execution(self) -> str:
        return self.key.partition(":")[0]

    @property
    def step(self) -> str:
        return self.key.partition(":")[2].rsplit(":", 2)[0]

    @property
    def number(self) -> int:
        return int(self.key.rsplit(":", 2)[1])

    @property
    def wave(self) -> str:
        """The wave of the effect: effects of one wave run in parallel; each waits for the previous wave only."""
        return "each" if self.step.startswith("each[") else f"{self.step}:{self.number}"


def write_down(world: Path, verb: Verb, key: str) -> None:
    """Append one line in one write, so that concurrent writers never mix lines."""
    file = os.open(world, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, f"{verb} {key} {os.getpid()}\n".encode())
    finally:
        os.close(file)


def deeds_in(world: Path) -> list[Deed]:
    lines = world.read_text().splitlines() if world.exists() else []
    return [Deed(cast("Verb", verb), key, int(life)) for verb, key, life in (line.split() for line in lines)]


def happened_in(world: Path) -> Counter[str]:
    """Return how often each effect happened, by key."""
    return Counter(deed.key for deed in deeds_in(world) if deed.verb == "happened")


def in_flight_of(deeds: list[Deed], life: int) -> set[str]:
    """Return the keys of all effects that were in flight when a process died, at any stage."""
    began: dict[str, list[Deed]] = {}
    for deed in deeds:
        if deed.life == life and deed.verb == "begins":
            began.setdefault(deed.execution, []).append(deed)
    return {deed.key for waves in began.values() for deed in waves if deed.wave == waves[-1].wave}


def wrong_repeats(happened: Counter[str], flown: Counter[str], recorded: set[str]) -> list[str]:
    """Return the effects that did not happen exactly once, plus once for each time they were in flight at a crash."""
    wrong: list[str] = []
    for key in sorted({*happened, *flown}):
        times, may = happened[key], 1 + flown[key]
        if times > may:
            wrong.append(f"{key}: {'recorded' if key in recorded else 'not in flight'}, and paid again")
        elif times < may:
            wrong.append(f"{key}: its answer was lost in flight, and it was not asked for again")
    return wrong
