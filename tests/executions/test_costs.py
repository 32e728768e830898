"""Costs as counts, which do not depend on the machine: commits, encodings, checks and compilations per start and per
step."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.auth.vault import Vault
from pointsman.definition import json_schema
from pointsman.executors import effect_ledger
from pointsman.store import codec
from pointsman.store.sqlite import database, journal
from pointsman.store.sqlite.writer import WriterThread
from pointsman.tools.functions import tool
from pointsman.values import Json, JsonObject
from pointsman.workflows import definitions, library
from tests.scenarios import written

pytestmark = pytest.mark.integration
STEPS = 20


@tool
async def add_one(number: int) -> int:
    """Add one."""
    return number + 1


def chain(steps: int) -> Workflow:
    names = [f"step{number}" for number in range(steps)]
    config: JsonObject = {"tool": "add_one", "parameters": {"number": 1}}
    nodes: list[Json] = [{"id": name, "type": "tool", "config": config} for name in names]
    edges: list[Json] = [{"source": one, "target": other} for one, other in pairwise(names)]
    return written({"id": "chain", "nodes": nodes, "edges": edges})


COUNTED: tuple[tuple[str, object, str], ...] = (
    ("commits", WriterThread, "_committed"),
    ("summaries", journal, "put_summary"),
    ("rows encoded", journal, "encoded_row"),
    ("values encoded", codec, "encode_exactly"),
    ("schemas compiled", json_schema, "_validator"),
    ("workflows checked", definitions, "check_workflow"),
    ("definitions encoded", library, "encoded"),
    ("definitions compiled", library, "compile_workflow"),
    ("fingerprints", effect_ledger, "fingerprint"),
    ("timeouts", asyncio, "timeout"),
    ("readings of all secrets", Vault, "all"),
    ("contents put", database.SqliteBlobs, "put"),
)


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    found: Counter[str] = Counter()

    def count(what: str, owner: object, name: str) -> None:
        function: Callable[..., Any] = getattr(owner, name)

        def counted(*args: Any, **how: Any) -> Any:
            found[what] += 1
            return function(*args, **how)

        monkeypatch.setattr(owner, name, counted)

    for what, owner, name in COUNTED:
        count(what, owner, name)
    return found


async def cost_of(
    app: Pointsman, workflow: Workflow, counts: Counter[str], *, durability: str | None = None
) -> Counter[str]:
    """Run a workflow and return its counts."""
    counts.clear()
    assert await (await app.start(workflow, durability=durability)).output() is not None
    return Counter({what: number for what, number in counts.items() if number})


async def test_a_durable_tool_step_is_one_commit_of_one_row_and_one_answer(
    counts: Counter[str], tmp_path: Path
) -> None:
    async with Pointsman(f"sqlite:///{tmp_path}/store.db", tools=[add_one]) as app:
        short, long = chain(STEPS), chain(2 * STEPS)
        for workflow in (short, long):
            await cost_of(app, workflow, counts)
        once, twice = await cost_of(app, short, counts), await cost_of(app, long, counts)
    once.pop("readings of all secrets", None)
    twice.pop("readings of all secrets", None)  # At most one per second.
    steps = twice - once
    assert steps == {
        "commits": STEPS,
        "rows encoded": STEPS,
        "values encoded": 2 * STEPS,  # The row, and the answer of the tool.
        "fingerprints": STEPS,
    }
    assert once["commits"] == STEPS + 1, "the start is one commit, and the end is part of the last step"


@pytest.mark.parametrize("durability", ["async", "exit"])
async def test_a_tool_step_whose_rows_may_wait_is_one_commit_too(
    counts: Counter[str], tmp_path: Path, durability: str
) -> None:
    """The answer must be durable, and its row is written with it."""
    async with Pointsman(f"sqlite:///{tmp_path}/store.db", tools=[add_one]) as app:
        await cost_of(app, chain(STEPS), counts, durability=durability)
        found = await cost_of(app, chain(STEPS), counts, durability=durability)
    assert found["commits"] - found["contents put"] == STEPS + 1


async def test_an_ended_execution_is_freed_without_a_search_for_cycles() -> None:
    async with Pointsman("memory:", tools=[add_one]) as app:
        await (await app.start(chain(2))).output()
        gc.collect()
        gc.disable()
        try:
            execution = await app.start(chain(2))
            driver = weakref.ref(app.runtime.drivers[execution.id])
            await execution.output()
            del execution
            await asyncio.sleep(0)
            assert driver() is None
        finally:
            gc.enable()


async def test_a_second_start_checks_compiles_and_stores_nothing_again(counts: Counter[str], tmp_path: Path) -> None:
    async with Pointsman(f"sqlite:///{tmp_path}/store.db", tools=[add_one]) as app:
        workflow = chain(STEPS)
        first = await cost_of(app, workflow, counts)
        second = await cost_of(app, workflow, counts)
    assert first["workflows checked"] == first["definitions compiled"] == 1
    for what in ("workflows checked", "definitions compiled", "definitions encoded", "schemas compiled", "timeouts"):
        assert second[what] == 0, what
    assert second["summaries"] == 2, "the list changes when it starts and when it ends"
    assert second["commits"] == STEPS + 1


async def test_the_secrets_of_the_store_are_not_read_for_each_call(counts: Counter[str]) -> None:
    async with Pointsman("memory:", tools=[add_one]) as app:
        await cost_of(app, chain(2), counts)
        few = await cost_of(app, chain(2), counts)
        many = await cost_of(app, chain(200), counts)
    assert few["readings of all secrets"] <= 1
    assert many["readings of all secrets"] <= 5, "at most once in a second"
    assert many["fingerprints"] == 200
    assert many["timeouts"] == 0
