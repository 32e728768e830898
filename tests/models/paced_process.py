"""python -m tests.models.paced_process STORE ADDRESS COUNT PACE: a process with many agents that use paced keys.

It makes one call, prints `ready`, waits for a line, runs COUNT agents concurrently, and prints the status of their
execution.
"""

from __future__ import annotations

import asyncio
import sys

from pointsman import Pointsman, Workflow
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject


def document() -> Workflow:
    each: JsonObject = {"id": "each", "type": "parallel", "config": {"items": "items", "as": "one"}}
    say: JsonObject = {"id": "say", "type": "agent", "config": {"prompt": "Item {{one}}.", "model": "own:m"}}
    join: JsonObject = {"id": "all", "type": "join"}
    edges: list[Json] = [{"source": "each", "target": "say"}, {"source": "say", "target": "all"}]
    return Workflow.of({"id": "crowd", "nodes": [each, say, join], "edges": edges})


async def run(store: str, address: str, count: int, pace: str) -> None:
    own: JsonObject = {
        "base_url": address,
        "keys": ["first", "second", "third"],
        "interval": f"{pace}s",
        "shared": True,
    }
    async with Pointsman(store, settings=Settings.model_validate({"providers": {"own": own}})) as app:
        assert "Aye." in str(await (await app.start(document(), {"items": [0]})).output())
        say("ready")
        sys.stdin.readline()
        say(await (await app.start(document(), {"items": [*range(count)]})).settled())


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]))
