"""The client library `openai` alone: a loop of `AsyncOpenAI().chat.completions.create` and the tool's function."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import Any

from openai import AsyncOpenAI

from bench import meter
from bench.meter import Place, Runs
from bench.peers.floor import LOOK

CANNOT = {"graphs": "a client library has no graphs", "sqlite": "a client library stores nothing"}


@asynccontextmanager
async def agent(size: int, place: Place) -> Runs:
    async with AsyncOpenAI(base_url=place.address, api_key="key") as client:

        async def run() -> None:
            messages: list[Any] = [{"role": "user", "content": "Find out."}]
            while True:
                answer = await client.chat.completions.create(model="rounds", messages=messages, tools=[LOOK])
                message = answer.choices[0].message
                messages.append(message.model_dump(exclude_none=True))
                if not message.tool_calls:
                    return
                for call in message.tool_calls:
                    result = await meter.look(**json.loads(call.function.arguments))
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

        yield run


if __name__ == "__main__":
    meter.main({"agent": agent})
