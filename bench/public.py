"""Pointsman through its public API: `python -m bench.public SHAPE SIZE STORE [ADDRESS]` prints one sample as JSON.

memory          `Pointsman("memory:")`
sqlite          a new file with the default durability: each step is on the disk before the next one
sqlite-async    the same file with `durability="async"`

ADDRESS is that of the model server, for agents. The documents are those of `bench/shapes`; their tools are Python
functions with `@tool`, run by the product as in any program. Settings are the defaults; environment variables have no
effect. A run includes the start, all steps, and reading the output.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from bench import meter
from bench.meter import Case, Place, Runs
from bench.shapes import Shape, read_shapes
from pointsman import Pointsman, Workflow, tool
from pointsman.settings import load_settings

TOOLS: Final = [
    tool(meter.answer),
    tool(name="answer_sync")(meter.answer_sync),
    tool(name="count")(meter.add_one),
    tool(meter.wide),
    tool(meter.look),
]


def store_of(place: Place) -> str:
    return "memory:" if place.store == "memory" else f"sqlite:///{place.folder}/store.db"


@asynccontextmanager
async def shaped(shape: Shape, size: int, place: Place) -> Runs:
    workflow = Workflow.of(shape.document(size))
    start, at_once = shape.start(size), shape.at_once(size)
    durability = "async" if place.store == "sqlite-async" else None
    flags = {"providers": {"bench": {"base_url": place.address, "keys": ["key"]}}} if place.address else {}
    async with Pointsman(store_of(place), tools=TOOLS, settings=load_settings(flags=flags, environment={})) as app:

        async def one() -> None:
            execution = await app.start(workflow, start, durability=durability)
            await execution.output()

        async def run() -> None:
            await asyncio.gather(*(one() for _ in range(at_once)))

        for name in shape.children:
            await app.save(Workflow.of(shape.child(name, size)))
        yield run


def cases() -> dict[str, Case]:
    return {name: partial(shaped, shape) for name, shape in read_shapes().items()}


if __name__ == "__main__":
    meter.main(cases())
