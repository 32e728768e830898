"""The world: every effect writes down, in a file of its own, when it begins and when it has happened.

Nothing of the store goes into this file, and it forgets nothing. From the order in which effects began it follows what
was in flight when a process died: the last ones of an execution, behind which nothing had begun. Everything before
them was recorded, or the engine went on too early.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, cast

Verb: TypeAlias = Literal["begins", "happened"]


class Deed(NamedTuple):
    """One line."""

    verb: Verb
    key: str
    """The idempotency key: `execution:step:number:hash`."""
    life: int
    """The process that did it."""

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
        """Effects of one wave are side by side: each waits for the wave before, and for no other of its own."""
        return "each" if self.step.startswith("each[") else f"{self.step}:{self.number}"


def write_down(world: Path, verb: Verb, key: str) -> None:
    """One line, in one write: whole or not at all, whoever else writes."""
    file = os.open(world, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, f"{verb} {key} {os.getpid()}\n".encode())
    finally:
        os.close(file)


def deeds_in(world: Path) -> list[Deed]:
    lines = world.read_text().splitlines() if world.exists() else []
    return [Deed(cast("Verb", verb), key, int(life)) for verb, key, life in (line.split() for line in lines)]


def happened_in(world: Path) -> Counter[str]:
    """How often each effect happened, by key."""
    return Counter(deed.key for deed in deeds_in(world) if deed.verb == "happened")


def flights_of(deeds: list[Deed], life: int) -> set[str]:
    """The keys of what one process had in flight in the end, however far it had come."""
    began: dict[str, list[Deed]] = {}
    for deed in deeds:
        if deed.life == life and deed.verb == "begins":
            began.setdefault(deed.execution, []).append(deed)
    return {deed.key for waves in began.values() for deed in waves if deed.wave == waves[-1].wave}


def wrong_repeats(happened: Counter[str], flown: Counter[str], recorded: set[str]) -> list[str]:
    """What was not done exactly once, and once more for each time it was in flight when its process died."""
    wrong: list[str] = []
    for key in sorted({*happened, *flown}):
        times, may = happened[key], 1 + flown[key]
        if times > may:
            wrong.append(f"{key}: {'recorded' if key in recorded else 'not in flight'}, and paid again")
        elif times < may:
            wrong.append(f"{key}: its answer was lost in flight, and it was not asked for again")
    return wrong
