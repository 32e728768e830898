"""LangGraph: graphs of `StateGraph`, run by `ainvoke`.

Durable shapes use `AsyncSqliteSaver` with `durability="sync"`: a checkpoint is on the disk before the next super-step.
The saver opens its file in WAL mode, SQLite's own default for `synchronous` is FULL. A graph is compiled once.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from bench import meter
from bench.meter import CALLS, Place, Run, Runs

STEPS_MAX = 1_000_000
CANNOT: dict[str, str] = {}


@asynccontextmanager
async def saver_of(place: Place) -> AsyncGenerator[Any, None]:
    if place.store == "memory":
        yield None
    else:
        async with AsyncSqliteSaver.from_conn_string(str(place.folder / "store.db")) as saver:
            yield saver


def run_of(graph: Any, place: Place, start: dict[str, Any], at_once: int = 1) -> Run:
    threads = count()

    async def one() -> dict[str, Any]:
        config: dict[str, Any] = {"recursion_limit": STEPS_MAX}
        if place.store == "memory":
            return await graph.ainvoke(start, config)
        config["configurable"] = {"thread_id": str(next(threads))}
        return await graph.ainvoke(start, config, durability="sync")

    async def run() -> None:
        await asyncio.gather(*(one() for _ in range(at_once)))

    return run


class Number(TypedDict):
    number: int


def chain_graph(length: int, *, is_async: bool = True) -> StateGraph:
    async def node(state: Number) -> Number:
        return {"number": await meter.answer()}

    def node_sync(state: Number) -> Number:
        return {"number": meter.answer_sync()}

    graph = StateGraph(Number)
    names = [f"n{at}" for at in range(length)]
    for name in names:
        graph.add_node(name, node if is_async else node_sync)
    for before, after in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(before, after)
    return graph


@asynccontextmanager
async def chain(size: int, place: Place) -> Runs:
    async with saver_of(place) as saver:
        yield run_of(chain_graph(size).compile(checkpointer=saver), place, {"number": 0})


@asynccontextmanager
async def chain_sync(size: int, place: Place) -> Runs:
    """`invoke`, the fastest way for functions that are not async: nodes run in the calling thread."""
    graph = chain_graph(size, is_async=False).compile()

    async def run() -> None:
        graph.invoke({"number": 0}, {"recursion_limit": STEPS_MAX})

    yield run


@asynccontextmanager
async def at_once(size: int, place: Place) -> Runs:
    async with saver_of(place) as saver:
        yield run_of(chain_graph(10).compile(checkpointer=saver), place, {"number": 0}, size)


@asynccontextmanager
async def cycle(size: int, place: Place) -> Runs:
    async def first(state: Number) -> Number:
        await meter.answer()
        return {"number": 0}

    async def work(state: Number) -> Number:
        return {"number": await meter.add_one(state["number"])}

    async def last(state: Number) -> Number:
        await meter.answer()
        return {"number": state["number"]}

    graph = StateGraph(Number)
    graph.add_node("first", first)
    graph.add_node("work", work)
    graph.add_node("last", last)
    graph.add_edge(START, "first")
    graph.add_edge("first", "work")
    graph.add_conditional_edges("work", lambda state: "work" if state["number"] < size else "last", ["work", "last"])
    graph.add_edge("last", END)
    async with saver_of(place) as saver:
        yield run_of(graph.compile(checkpointer=saver), place, {"number": 0})


class Branches(TypedDict):
    items: list[str]
    results: Annotated[list[int], operator.add]


@asynccontextmanager
async def fan_out(size: int, place: Place) -> Runs:
    async def work(state: dict[str, Any]) -> dict[str, Any]:
        return {"results": [await meter.answer()]}

    async def last(state: Branches) -> dict[str, Any]:
        assert len(state["results"]) == size
        await meter.answer()
        return {}

    graph = StateGraph(Branches)
    graph.add_node("work", work)
    graph.add_node("last", last)
    graph.add_conditional_edges(START, lambda state: [Send("work", {"item": one}) for one in state["items"]], ["work"])
    graph.add_edge("work", "last")
    graph.add_edge("last", END)
    async with saver_of(place) as saver:
        items = [f"x{at}" for at in range(size)]
        yield run_of(graph.compile(checkpointer=saver), place, {"items": items, "results": []})


class Branch(TypedDict):
    item: str
    results: Annotated[list[int], operator.add]


@asynccontextmanager
async def sub_graphs(size: int, place: Place) -> Runs:
    """Each branch is a compiled graph that splits in two and meets again."""

    async def quiet(state: Branch) -> dict[str, Any]:
        await meter.answer()
        return {}

    async def met(state: Branch) -> dict[str, Any]:
        return {"results": [await meter.answer()]}

    async def last(state: Branches) -> dict[str, Any]:
        assert len(state["results"]) == size
        await meter.answer()
        return {}

    inner = StateGraph(Branch)
    for name in "abc":
        inner.add_node(name, quiet)
    inner.add_node("d", met)
    inner.add_edge(START, "a")
    inner.add_edge("a", "b")
    inner.add_edge("a", "c")
    inner.add_edge(["b", "c"], "d")
    inner.add_edge("d", END)
    graph = StateGraph(Branches)
    graph.add_node("branch", inner.compile())
    graph.add_node("last", last)
    graph.add_conditional_edges(
        START, lambda state: [Send("branch", {"item": one, "results": []}) for one in state["items"]], ["branch"]
    )
    graph.add_edge("branch", "last")
    graph.add_edge("last", END)
    async with saver_of(place) as saver:
        items = [f"x{at}" for at in range(size)]
        yield run_of(graph.compile(checkpointer=saver), place, {"items": items, "results": []})


class Wide(TypedDict):
    wide: Annotated[dict[str, int], operator.or_]


@asynccontextmanager
async def wide_state(size: int, place: Place) -> Runs:
    async def node(state: Wide) -> Wide:
        return {"wide": await meter.wide(size)}

    graph = StateGraph(Wide)
    names = [f"n{at}" for at in range(25)]
    for name in names:
        graph.add_node(name, node)
    for before, after in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(before, after)
    async with saver_of(place) as saver:
        yield run_of(graph.compile(checkpointer=saver), place, {"wide": {}})


@asynccontextmanager
async def agent(size: int, place: Place) -> Runs:
    """`langchain.agents.create_agent`, the prebuilt agent, over Chat Completions."""
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model=f"rounds-{size}", base_url=place.address, api_key="key")
    async with saver_of(place) as saver:
        graph = create_agent(model, [meter.look], system_prompt="Find out.", checkpointer=saver)
        start = {"messages": [{"role": "user", "content": "Find out."}]}
        whole = run_of(graph, place, start)

        async def run() -> None:
            before = CALLS.count
            await whole()
            assert CALLS.count - before == size

        yield run


CASES = {
    "chain": chain,
    "chain-sync": chain_sync,
    "at-once": at_once,
    "cycle": cycle,
    "fan-out": fan_out,
    "sub-graphs": sub_graphs,
    "wide-state": wide_state,
    "agent": agent,
}

if __name__ == "__main__":
    meter.main(CASES)
