"""LlamaIndex workflows for graphs (`Workflow` and `@step`), `FunctionAgent` with `OpenAILike` for agents.

Steps are generated with one event class per edge; timeouts are off. Steps that run in parallel have as many workers as
there are branches. The agent does not stream (`streaming=False`).
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import Any

from workflows.events import Event, StartEvent, StopEvent

from bench import meter
from bench.meter import CALLS, Place, Run, Runs
from workflows import Context, Workflow, step

CANNOT = {
    "chain 1000": "its cost per step grows with the number of steps: one run takes minutes",
    "fan-out 1000": "its cost per event grows with the number of events: one run takes minutes",
    "sqlite": "a context is serialised by its user; the package has no store that it writes at each step",
    "wide-state": "only compared where it is durable",
    "sub-graphs": "collect_events has no notion of the branch that an event belongs to",
}


def run_of(workflow: Workflow, at_once: int = 1) -> Run:
    async def run() -> None:
        async def one() -> Any:
            return await workflow.run()

        await asyncio.gather(*(one() for _ in range(at_once)))

    return run


def chain_workflow(length: int, *, is_async: bool = True) -> Workflow:
    events = [StartEvent, *(type(f"Event{at}", (Event,), {}) for at in range(length - 1)), StopEvent]

    chained = type("Chain", (Workflow,), {})

    def add(at: int) -> None:
        if is_async:

            async def node(ev: Any) -> Any:
                number = await meter.answer()
                return StopEvent(result=number) if at == length - 1 else events[at + 1](number=number)
        else:

            def node(ev: Any) -> Any:
                number = meter.answer_sync()
                return StopEvent(result=number) if at == length - 1 else events[at + 1](number=number)

        node.__name__ = f"n{at}"
        node.__annotations__ = {"ev": events[at], "return": events[at + 1]}
        step(workflow=chained)(node)

    for at in range(length):
        add(at)
    return chained(timeout=None)


@asynccontextmanager
async def chain(size: int, place: Place) -> Runs:
    yield run_of(chain_workflow(size))


@asynccontextmanager
async def chain_sync(size: int, place: Place) -> Runs:
    yield run_of(chain_workflow(size, is_async=False))


@asynccontextmanager
async def at_once(size: int, place: Place) -> Runs:
    yield run_of(chain_workflow(10), size)


class Work(Event):
    number: int


class Last(Event):
    number: int


class Cycle(Workflow):
    def __init__(self, size: int) -> None:
        super().__init__(timeout=None)
        self.size = size

    @step
    async def first(self, ev: StartEvent) -> Work:
        await meter.answer()
        return Work(number=0)

    @step
    async def work(self, ev: Work) -> Work | Last:
        number = await meter.add_one(ev.number)
        return Work(number=number) if number < self.size else Last(number=number)

    @step
    async def last(self, ev: Last) -> StopEvent:
        await meter.answer()
        return StopEvent(result=ev.number)


@asynccontextmanager
async def cycle(size: int, place: Place) -> Runs:
    yield run_of(Cycle(size))


class Item(Event):
    item: str


class Done(Event):
    result: int


def fan_out_workflow(size: int) -> Workflow:
    class FanOut(Workflow):
        @step
        async def open(self, ctx: Context, ev: StartEvent) -> Item | None:
            for at in range(size):
                ctx.send_event(Item(item=f"x{at}"))

        @step(num_workers=size)
        async def work(self, ev: Item) -> Done:
            return Done(result=await meter.answer())

        @step
        async def last(self, ctx: Context, ev: Done) -> StopEvent | None:
            results = ctx.collect_events(ev, [Done] * size)
            if results is None:
                return None
            return StopEvent(result=await meter.answer())

    return FanOut(timeout=None)


@asynccontextmanager
async def fan_out(size: int, place: Place) -> Runs:
    yield run_of(fan_out_workflow(size))


@asynccontextmanager
async def agent(size: int, place: Place) -> Runs:
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.llms.openai_like import OpenAILike

    model = OpenAILike(
        model="rounds", api_base=place.address, api_key="key", is_chat_model=True, is_function_calling_model=True
    )
    one = FunctionAgent(tools=[meter.look], llm=model, system_prompt="Find out.", streaming=False, timeout=None)

    async def run() -> None:
        before = CALLS.count
        await one.run(user_msg="Find out.", max_iterations=10 * size)
        assert CALLS.count - before == size

    yield run


CASES = {
    "chain": chain,
    "chain-sync": chain_sync,
    "at-once": at_once,
    "cycle": cycle,
    "fan-out": fan_out,
    "agent": agent,
}

if __name__ == "__main__":
    meter.main(CASES)
