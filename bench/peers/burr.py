"""Burr: async actions, run by `Application.arun`; tracking and telemetry are off.

The graph is built once; an `Application` belongs to one run, so each run builds one with `with_graph`. Durable shapes
use `AsyncSQLitePersister`, which commits after each action, on a connection switched to WAL mode (its default is a
rollback journal, which is slower); SQLite's own default for `synchronous` is FULL.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import count, pairwise
from typing import Any

import aiosqlite
from burr.core import ApplicationBuilder, ApplicationContext, GraphBuilder, State, action, expr
from burr.core.parallelism import MapStates
from burr.integrations.persisters.b_aiosqlite import AsyncSQLitePersister

from bench import meter
from bench.meter import Place, Run, Runs

CANNOT = {
    "agent": "it has no agent of its own: its users write the loop with a client library",
    "sub-graphs": "branches of a mapped graph cannot split again without another parallel action",
}


@asynccontextmanager
async def persister_of(place: Place) -> AsyncGenerator[Any, None]:
    if place.store == "memory":
        yield None
        return
    connection = await aiosqlite.connect(place.folder / "store.db")
    await connection.execute("PRAGMA journal_mode = WAL")
    persister = AsyncSQLitePersister(connection)
    await persister.initialize()
    yield persister
    await connection.close()


def run_of(graph: Any, last: str, persister: Any, start: dict[str, Any], at_once: int = 1) -> Run:
    names = count()

    async def one() -> None:
        builder = ApplicationBuilder().with_graph(graph).with_state(**start).with_entrypoint(graph.actions[0].name)
        if persister is not None:
            builder = builder.with_identifiers(app_id=f"run-{next(names)}").with_state_persister(persister)
        app = await builder.abuild()
        await app.arun(halt_after=[last])

    async def run() -> None:
        await asyncio.gather(*(one() for _ in range(at_once)))

    return run


@action(reads=[], writes=["number"])
async def node(state: State) -> State:
    return state.update(number=await meter.answer())


@action(reads=[], writes=["number"])
def node_sync(state: State) -> State:
    return state.update(number=meter.answer_sync())


def chain_graph(length: int, one: Callable[..., Any] = node) -> Any:
    names = [f"n{at}" for at in range(length)]
    builder = GraphBuilder().with_actions(**dict.fromkeys(names, one))
    return builder.with_transitions(*pairwise(names)).build()


@asynccontextmanager
async def chain(size: int, place: Place) -> Runs:
    async with persister_of(place) as persister:
        yield run_of(chain_graph(size), f"n{size - 1}", persister, {"number": 0})


@asynccontextmanager
async def chain_sync(size: int, place: Place) -> Runs:
    """`run`, with actions that are not async."""
    graph = chain_graph(size, node_sync)

    async def run() -> None:
        builder = ApplicationBuilder().with_graph(graph).with_state(number=0).with_entrypoint("n0")
        builder.build().run(halt_after=[f"n{size - 1}"])

    yield run


@asynccontextmanager
async def at_once(size: int, place: Place) -> Runs:
    async with persister_of(place) as persister:
        yield run_of(chain_graph(10), "n9", persister, {"number": 0}, size)


@asynccontextmanager
async def cycle(size: int, place: Place) -> Runs:
    @action(reads=[], writes=["number"])
    async def first(state: State) -> State:
        await meter.answer()
        return state.update(number=0)

    @action(reads=["number"], writes=["number"])
    async def work(state: State) -> State:
        return state.update(number=await meter.add_one(state["number"]))

    @action(reads=["number"], writes=["number"])
    async def last(state: State) -> State:
        await meter.answer()
        return state.update(number=state["number"])

    builder = GraphBuilder().with_actions(first=first, work=work, last=last)
    builder = builder.with_transitions(("first", "work"), ("work", "work", expr(f"number < {size}")), ("work", "last"))
    async with persister_of(place) as persister:
        yield run_of(builder.build(), "last", persister, {"number": 0})


@action(reads=[], writes=["result"])
async def work(state: State) -> State:
    return state.update(result=await meter.answer())


class Branches(MapStates):
    """One action for each item, gathered."""

    def action(self, state: State, inputs: dict[str, Any]) -> Any:
        return work

    async def states(
        self, state: State, context: ApplicationContext, inputs: dict[str, Any]
    ) -> AsyncGenerator[State, None]:
        for item in state["items"]:
            yield state.update(item=item)

    async def reduce(self, state: State, states: AsyncGenerator[State, None]) -> State:
        return state.update(results=[one["result"] async for one in states])

    def is_async(self) -> bool:
        return True

    @property
    def reads(self) -> list[str]:
        return ["items"]

    @property
    def writes(self) -> list[str]:
        return ["results"]


@asynccontextmanager
async def fan_out(size: int, place: Place) -> Runs:
    @action(reads=["results"], writes=["number"])
    async def last(state: State) -> State:
        assert len(state["results"]) == size
        return state.update(number=await meter.answer())

    graph = GraphBuilder().with_actions(each=Branches(), last=last).with_transitions(("each", "last")).build()
    async with persister_of(place) as persister:
        yield run_of(graph, "last", persister, {"items": [f"x{at}" for at in range(size)]})


@asynccontextmanager
async def wide_state(size: int, place: Place) -> Runs:
    @action(reads=["wide"], writes=["wide"])
    async def write(state: State) -> State:
        return state.update(wide={**state["wide"], **await meter.wide(size)})

    async with persister_of(place) as persister:
        yield run_of(chain_graph(25, write), "n24", persister, {"wide": {}})


CASES = {
    "chain": chain,
    "chain-sync": chain_sync,
    "at-once": at_once,
    "cycle": cycle,
    "fan-out": fan_out,
    "wide-state": wide_state,
}

if __name__ == "__main__":
    meter.main(CASES)
