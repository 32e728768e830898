"""pydantic-ai for agents (`Agent` with `OpenAIChatModel`), pydantic-graph for graphs (`GraphBuilder`, `graph.run`).

A graph is built once. Spans are off (`auto_instrument=False`).
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pydantic_graph import GraphBuilder, StepContext, reduce_list_append

from bench import meter
from bench.meter import Place, Run, Runs

CANNOT = {
    "sqlite": "neither package stores the state of a run in SQLite; it needs Temporal, DBOS, Prefect or Restate",
    "chain-sync": "a step of a graph must be async",
}


@dataclass
class Number:
    number: int = 0


def builder_of(output: type) -> Any:
    return GraphBuilder(state_type=Number, input_type=int, output_type=output, auto_instrument=False)


def run_of(graph: Any, at_once: int = 1) -> Run:
    async def run() -> None:
        await asyncio.gather(*(graph.run(state=Number(), inputs=0) for _ in range(at_once)))

    return run


def chain_graph(length: int) -> Any:
    builder = builder_of(int)

    async def node(ctx: StepContext[Number, None, int]) -> int:
        ctx.state.number = await meter.answer()
        return ctx.state.number

    steps = [builder.step(node, node_id=f"n{at}") for at in range(length)]
    for before, after in zip([builder.start_node, *steps], [*steps, builder.end_node], strict=True):
        builder.add_edge(before, after)
    return builder.build()


@asynccontextmanager
async def chain(size: int, place: Place) -> Runs:
    yield run_of(chain_graph(size))


@asynccontextmanager
async def at_once(size: int, place: Place) -> Runs:
    yield run_of(chain_graph(10), size)


@asynccontextmanager
async def cycle(size: int, place: Place) -> Runs:
    builder = builder_of(int)

    @builder.step
    async def first(ctx: StepContext[Number, None, int]) -> int:
        await meter.answer()
        return 0

    @builder.step
    async def work(ctx: StepContext[Number, None, int]) -> int:
        return await meter.add_one(ctx.inputs)

    @builder.step
    async def last(ctx: StepContext[Number, None, int]) -> int:
        await meter.answer()
        return ctx.inputs

    decision = builder.decision().branch(builder.match(int, matches=lambda number: number < size).to(work))
    decision = decision.branch(builder.match(int).to(last))
    builder.add(
        builder.edge_from(builder.start_node).to(first),
        builder.edge_from(first).to(work),
        builder.edge_from(work).to(decision),
        builder.edge_from(last).to(builder.end_node),
    )
    yield run_of(builder.build())


@asynccontextmanager
async def fan_out(size: int, place: Place) -> Runs:
    builder = builder_of(int)

    @builder.step
    async def items(ctx: StepContext[Number, None, int]) -> list[str]:
        return [f"x{at}" for at in range(size)]

    @builder.step
    async def work(ctx: StepContext[Number, None, str]) -> int:
        return await meter.answer()

    @builder.step
    async def last(ctx: StepContext[Number, None, list[int]]) -> int:
        assert len(ctx.inputs) == size
        return await meter.answer()

    close = builder.join(reduce_list_append, initial_factory=list[int])
    builder.add(
        builder.edge_from(builder.start_node).to(items),
        builder.edge_from(items).map().to(work),
        builder.edge_from(work).to(close),
        builder.edge_from(close).to(last),
        builder.edge_from(last).to(builder.end_node),
    )
    yield run_of(builder.build())


@asynccontextmanager
async def sub_graphs(size: int, place: Place) -> Runs:
    """Each branch forks in two and joins again inside the mapped branch."""
    builder = builder_of(int)

    @builder.step
    async def items(ctx: StepContext[Number, None, int]) -> list[str]:
        return [f"x{at}" for at in range(size)]

    async def node(ctx: StepContext[Number, None, Any]) -> int:
        return await meter.answer()

    a, b, c, d = (builder.step(node, node_id=name) for name in "abcd")

    @builder.step
    async def last(ctx: StepContext[Number, None, list[int]]) -> int:
        assert len(ctx.inputs) == size
        return await meter.answer()

    meet = builder.join(reduce_list_append, initial_factory=list[int], node_id="meet", preferred_parent_fork="closest")
    close = builder.join(reduce_list_append, initial_factory=list[int], node_id="close")
    builder.add(
        builder.edge_from(builder.start_node).to(items),
        builder.edge_from(items).map().to(a),
        builder.edge_from(a).to(b, c),
        builder.edge_from(b, c).to(meet),
        builder.edge_from(meet).to(d),
        builder.edge_from(d).to(close),
        builder.edge_from(close).to(last),
        builder.edge_from(last).to(builder.end_node),
    )
    yield run_of(builder.build())


@asynccontextmanager
async def wide_state(size: int, place: Place) -> Runs:
    builder = GraphBuilder(state_type=dict, input_type=int, output_type=int, auto_instrument=False)

    async def node(ctx: StepContext[dict[str, int], None, int]) -> int:
        ctx.state.update(await meter.wide(size))
        return 0

    steps = [builder.step(node, node_id=f"n{at}") for at in range(25)]
    for before, after in zip([builder.start_node, *steps], [*steps, builder.end_node], strict=True):
        builder.add_edge(before, after)
    graph = builder.build()

    async def run() -> None:
        await graph.run(state={}, inputs=0)

    yield run


@asynccontextmanager
async def agent(size: int, place: Place) -> Runs:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.usage import UsageLimits

    model = OpenAIChatModel("rounds", provider=OpenAIProvider(base_url=place.address, api_key="key"))
    one = Agent(model, instructions="Find out.", tools=[meter.look])

    async def run() -> None:
        await one.run("Find out.", usage_limits=UsageLimits(request_limit=None))

    yield run


CASES = {
    "chain": chain,
    "at-once": at_once,
    "cycle": cycle,
    "fan-out": fan_out,
    "sub-graphs": sub_graphs,
    "wide-state": wide_state,
    "agent": agent,
}

if __name__ == "__main__":
    meter.main(CASES)
