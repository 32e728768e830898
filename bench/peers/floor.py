"""Python alone, the floor: the node functions are awaited in a loop or gathered, with nothing around them.

Durable shapes encode the state as JSON and commit one row per call of a node function, with the module `sqlite3` in WAL
mode and `synchronous=FULL`. The agent is a loop of httpx2 and JSON.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Generator
from contextlib import asynccontextmanager, contextmanager

from bench import meter
from bench.meter import Place, Runs, in_sqlite

CANNOT: dict[str, str] = {}


@contextmanager
def commits(place: Place) -> Generator[Callable[[object], object], None, None]:
    """Return a function that makes a state durable."""
    if place.store == "memory":
        yield lambda state: None
        return
    with in_sqlite(place.folder / "store.db") as insert:
        yield lambda state: (json.dumps(state), insert())


@asynccontextmanager
async def chain(size: int, place: Place) -> Runs:
    with commits(place) as commit:

        async def run() -> None:
            for _ in range(size):
                commit(await meter.answer())

        yield run


@asynccontextmanager
async def chain_sync(size: int, place: Place) -> Runs:
    async def run() -> None:
        for _ in range(size):
            meter.answer_sync()

    yield run


@asynccontextmanager
async def at_once(size: int, place: Place) -> Runs:
    async with chain(10, place) as one:

        async def run() -> None:
            await asyncio.gather(*(one() for _ in range(size)))

        yield run


@asynccontextmanager
async def cycle(size: int, place: Place) -> Runs:
    with commits(place) as commit:

        async def run() -> None:
            commit(await meter.answer())
            number = 0
            while number < size:
                number = await meter.add_one(number)
                commit(number)
            commit(await meter.answer())

        yield run


@asynccontextmanager
async def fan_out(size: int, place: Place) -> Runs:
    async def run() -> None:
        results = await asyncio.gather(*(meter.answer() for _ in range(size)))
        assert len(results) == size
        await meter.answer()

    yield run


@asynccontextmanager
async def sub_graphs(size: int, place: Place) -> Runs:
    async def branch() -> int:
        await meter.answer()
        await asyncio.gather(meter.answer(), meter.answer())
        return await meter.answer()

    async def run() -> None:
        results = await asyncio.gather(*(branch() for _ in range(size)))
        assert len(results) == size
        await meter.answer()

    yield run


@asynccontextmanager
async def wide_state(size: int, place: Place) -> Runs:
    with commits(place) as commit:

        async def run() -> None:
            state: dict[str, int] = {}
            for _ in range(25):
                state |= await meter.wide(size)
                commit(state)

        yield run


LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": meter.look.__doc__,
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}


@asynccontextmanager
async def agent(size: int, place: Place) -> Runs:
    import httpx2

    async with httpx2.AsyncClient(base_url=place.address) as client:
        with commits(place) as commit:

            async def run() -> None:
                messages: list[dict[str, object]] = [{"role": "user", "content": "Find out."}]
                while True:
                    body = {"model": "rounds", "messages": messages, "tools": [LOOK]}
                    answer = await client.post("/chat/completions", json=body)
                    message = answer.raise_for_status().json()["choices"][0]["message"]
                    messages.append(message)
                    if not message.get("tool_calls"):
                        return
                    for call in message["tool_calls"]:
                        result = await meter.look(**json.loads(call["function"]["arguments"]))
                        messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
                        commit(messages[-2:])

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
