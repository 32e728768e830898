"""Costs of a tool step through the public API, as counts: they do not depend on the speed or the load of a machine."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, TypeAlias

import pytest

from pointsman import Pointsman, Workflow, tool
from pointsman.settings import load_settings
from pointsman.values import Json, JsonObject

Work: TypeAlias = Coroutine[Any, Any, Any] | Generator[Any, None, Any]
FEW, MANY = 20, 70
PYTHON_CALLS_MAX: Final = 170
"""Calls of Python functions for one step. Lower it after each improvement."""
START_CALLS_MAX: Final = 550
"""Calls of Python functions for the start and the end of one execution."""


@tool
async def answer() -> int:
    """Answer at once."""
    return 1


def chain(steps: int) -> Workflow:
    nodes: list[Json] = [{"id": f"n{i}", "type": "tool", "config": {"tool": "answer"}} for i in range(steps)]
    edges: list[Json] = [{"source": f"n{i}", "target": f"n{i + 1}"} for i in range(steps - 1)]
    return Workflow.of({"id": f"chain-{steps}", "nodes": nodes, "edges": edges})


def fan_out() -> Workflow:
    document: JsonObject = {
        "id": "fan-out",
        "nodes": [
            {"id": "open", "type": "parallel", "config": {"items": "xs"}},
            {"id": "work", "type": "tool", "config": {"tool": "answer"}},
            {"id": "close", "type": "join"},
        ],
        "edges": [{"source": "open", "target": "work"}, {"source": "work", "target": "close"}],
    }
    return Workflow.of(document)


@contextmanager
def counted_calls() -> Generator[Counter[str]]:
    """Count calls in this thread: of Python functions under `python`, of built-in ones under their names."""
    found: Counter[str] = Counter()

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            found["python"] += 1
        elif event == "c_call":
            found[str(getattr(arg, "__name__", ""))] += 1

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield found
    finally:
        sys.setprofile(before)


async def costs(workflow: Workflow, input: JsonObject) -> Counter[str]:
    """Return the calls, and under `tasks` the tasks, of one execution whose definition was checked before."""
    loop = asyncio.get_running_loop()
    tasks = 0

    def new_task(loop: asyncio.AbstractEventLoop, work: Work, **how: Any) -> asyncio.Task[Any]:
        nonlocal tasks
        tasks += 1
        return asyncio.Task(work, loop=loop, **how)

    async with Pointsman("memory:", tools=[answer], settings=load_settings(environment={})) as app:
        for _ in range(2):
            await (await app.start(workflow, input)).output()
        loop.set_task_factory(new_task)
        with counted_calls() as found:
            await (await app.start(workflow, input)).output()
        loop.set_task_factory(None)
    found["tasks"] = tasks
    return found


def per_step(few: Counter[str], many: Counter[str]) -> dict[str, float]:
    return {name: (many[name] - few[name]) / (MANY - FEW) for name in many}


def test_a_step_of_a_chain_calls_few_functions_and_makes_no_task(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ.keys() - {"PATH", "HOME"}:  # A start looks for variables of workflows in the environment.
        monkeypatch.delenv(name)
    few, many = asyncio.run(costs(chain(FEW), {})), asyncio.run(costs(chain(MANY), {}))
    step = per_step(few, many)
    assert step["python"] <= PYTHON_CALLS_MAX
    assert few["python"] - FEW * step["python"] <= START_CALLS_MAX
    assert step["tasks"] == 0


def test_a_step_of_a_chain_encodes_its_request_its_result_and_its_record_once() -> None:
    step = per_step(asyncio.run(costs(chain(FEW), {})), asyncio.run(costs(chain(MANY), {})))
    assert step["openssl_sha256"] == 1
    assert step["encode"] + step["json_encode"] == 3


def test_a_branch_of_a_parallel_beyond_the_limit_of_parallel_steps_makes_no_task() -> None:
    few = asyncio.run(costs(fan_out(), {"xs": [*map(str, range(FEW))]}))
    many = asyncio.run(costs(fan_out(), {"xs": [*map(str, range(MANY))]}))
    step = per_step(few, many)
    assert step["tasks"] == 0
    assert step["python"] <= PYTHON_CALLS_MAX * 1.5
