"""Microsoft Agent Framework: `WorkflowBuilder` and executors for graphs, `Agent` with `OpenAIChatCompletionClient`.

A workflow instance refuses a second run while one is open, so executions at once have an instance each, built before
the measurement. Telemetry is off, its default.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import Any

from agent_framework import FunctionExecutor, WorkflowBuilder, WorkflowContext

from bench import meter
from bench.meter import CALLS, Place, Run, Runs

STEPS_MAX = 1_000_000
CANNOT = {
    "sqlite": "it has no SQLite store, and its FileCheckpointStorage does not wait for the disk",
    "chain-sync": "a function that is not async cannot send the message that the next executor needs",
    "wide-state": "only compared where it is durable",
    "sub-graphs": "the number of branches is fixed when the graph is built",
}


def run_of(*workflows: Any) -> Run:
    async def run() -> None:
        await asyncio.gather(*(one.run(0) for one in workflows))

    return run


async def pass_on(number: int, ctx: WorkflowContext[int]) -> None:
    await ctx.send_message(await meter.answer())


async def finish(number: int, ctx: WorkflowContext[Any, int]) -> None:
    await ctx.yield_output(await meter.answer())


def chain_workflow(length: int) -> Any:
    nodes = [FunctionExecutor(pass_on, id=f"n{at}") for at in range(length - 1)]
    nodes.append(FunctionExecutor(finish, id=f"n{length - 1}"))
    builder = WorkflowBuilder(max_iterations=STEPS_MAX, start_executor=nodes[0], output_from=[nodes[-1]])
    return builder.add_chain(nodes).build()


@asynccontextmanager
async def chain(size: int, place: Place) -> Runs:
    yield run_of(chain_workflow(size))


@asynccontextmanager
async def at_once(size: int, place: Place) -> Runs:
    yield run_of(*(chain_workflow(10) for _ in range(size)))


@asynccontextmanager
async def cycle(size: int, place: Place) -> Runs:
    async def begin(number: int, ctx: WorkflowContext[int]) -> None:
        await meter.answer()
        await ctx.send_message(0)

    async def turn(number: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(await meter.add_one(number))

    first, work, last = FunctionExecutor(begin, id="first"), FunctionExecutor(turn, id="work"), FunctionExecutor(finish)
    builder = WorkflowBuilder(max_iterations=STEPS_MAX, start_executor=first, output_from=[last])
    builder.add_edge(first, work).add_edge(work, work, condition=lambda number: number < size)
    yield run_of(builder.add_edge(work, last, condition=lambda number: number >= size).build())


@asynccontextmanager
async def fan_out(size: int, place: Place) -> Runs:
    async def spread(number: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(number)

    async def join(numbers: list[int], ctx: WorkflowContext[Any, int]) -> None:
        assert len(numbers) == size
        await ctx.yield_output(await meter.answer())

    first, last = FunctionExecutor(spread, id="open"), FunctionExecutor(join, id="last")
    branches = [FunctionExecutor(pass_on, id=f"work{at}") for at in range(size)]
    builder = WorkflowBuilder(max_iterations=STEPS_MAX, start_executor=first, output_from=[last])
    yield run_of(builder.add_fan_out_edges(first, branches).add_fan_in_edges(branches, last).build())


@asynccontextmanager
async def agent(size: int, place: Place) -> Runs:
    from agent_framework import Agent
    from agent_framework.openai import OpenAIChatCompletionClient

    client = OpenAIChatCompletionClient(
        "rounds",
        base_url=place.address,
        api_key="key",
        function_invocation_configuration={"max_iterations": 10 * size},
    )
    one = Agent(client, "Find out.", tools=[meter.look])

    async def run() -> None:
        before = CALLS.count
        await one.run("Find out.")
        assert CALLS.count - before == size

    yield run


CASES = {"chain": chain, "at-once": at_once, "cycle": cycle, "fan-out": fan_out, "agent": agent}

if __name__ == "__main__":
    meter.main(CASES)
