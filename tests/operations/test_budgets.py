"""Budgets of executions, their sources, and the use of limits: also for waiting executions, and across restarts."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import NoReturn

import pytest

from pointsman.app import Pointsman
from pointsman.auth.callers import Caller
from pointsman.engine.events.waits import WarningRaised
from pointsman.executions.usage_rollup import day_of
from pointsman.operations.health import damage
from pointsman.operations.usage import BudgetRow, budgets, usage_audience
from pointsman.store.memory import MemoryJournal
from pointsman.testing.clock import run_virtually
from pointsman.values import ExecutionId, Json
from tests.scenarios import installation, written

SCRIPT = """\
rules:
  - {node: dear, text: fine, usage: {inputTokens: 80, outputTokens: 10}}
  - {node: slow, text: fine, delay: 10s}
  - {node: cheap, text: fine, usage: {inputTokens: 4, outputTokens: 1}}
"""
DOCUMENT = """\
pointsman: 1
id: %s
config: {limits: {tokens: 100, modelCalls: 2}, budget: {policy: %s, warnAt: 0.5}}
nodes: [%s]
edges: [%s]
"""

TALK = """\
pointsman: 1
id: talk
config: {conversational: true, limits: {modelCalls: 3}}
nodes: [{id: say, type: agent, config: {prompt: Say it}}]
"""


def flow(name: str, *nodes: str, policy: str = "stop") -> str:
    """Return agents in sequence."""
    made = ", ".join(f"{{id: {one}, type: agent, config: {{prompt: Speak}}}}" for one in nodes)
    edges = ", ".join(f"{{source: {a}, target: {b}}}" for a, b in itertools.pairwise(nodes))
    return DOCUMENT % (name, policy, made, edges)


async def ran(app: Pointsman, name: str) -> str:
    execution = await app.start(name, {})
    await execution.settled()
    return execution.id


def by_measure(rows: list[BudgetRow], workflow: str) -> dict[str, BudgetRow]:
    return {str(row["measure"]): row for row in rows if row["workflow"] == workflow}


@pytest.mark.integration
def test_budget_usage_and_remainder_are_shown_even_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"

    async def run() -> tuple[str, list[BudgetRow], list[BudgetRow]]:
        async with installation(SCRIPT, store=store) as app:
            await app.save(written(flow("dear", "dear")))
            await app.save(written(flow("cheap", "cheap")))
            names = [await ran(app, name) for name in ("dear", "cheap", "cheap")]
            first = await budgets(app.context)
        async with installation(SCRIPT, store=store) as app:
            return names[0], first, await budgets(app.context)

    dearest, first, again = run_virtually(run())
    assert first == again
    assert (first[0]["workflow"], first[0]["measure"]) == ("dear", "tokens"), "the nearest to its end comes first"
    tokens = by_measure(first, "dear")["tokens"]
    assert (tokens["most"], tokens["highest"], tokens["left"], tokens["dearest"]) == (100, 90, 10, dearest)
    assert (tokens["near"], tokens["over"], tokens["setBy"], tokens["policy"]) == (1, 0, "workflow", "stop")
    cheap = by_measure(first, "cheap")
    assert (cheap["tokens"]["executions"], cheap["tokens"]["near"], cheap["tokens"]["highest"]) == (2, 0, 5)
    assert (cheap["modelCalls"]["near"], cheap["modelCalls"]["warnAt"]) == (2, 0.5)


def test_executions_stopped_by_a_budget_are_counted() -> None:
    async def run() -> tuple[str, list[BudgetRow]]:
        async with installation(SCRIPT) as app:
            await app.save(written(flow("long", "dear", "cheap", "again", policy="pause")))
            stopped = await ran(app, "long")
            return stopped, await budgets(app.context)

    stopped, rows = run_virtually(run())
    calls = by_measure(rows, "long")["modelCalls"]
    assert (calls["over"], calls["near"], calls["left"], calls["dearest"]) == (1, 0, 0, stopped)


def test_operator_budgets_apply_to_workflows_without_budgets_and_count_sub_workflows() -> None:
    plain = "pointsman: 1\nid: plain\nnodes: [{id: dear, type: agent, config: {prompt: Speak}}]\n"
    outer = "pointsman: 1\nid: outer\nnodes: [{id: call, type: workflow, config: {workflow: plain, input: {}}}]\n"

    async def run() -> list[BudgetRow]:
        async with installation(SCRIPT, settings={"limits": {"tokens": 500}}) as app:
            for document in (plain, outer, flow("own", "cheap")):
                await app.save(written(document))
            await ran(app, "outer")
            return await budgets(app.context)

    rows = run_virtually(run())
    outermost = by_measure(rows, "outer")["tokens"]
    assert (outermost["most"], outermost["setBy"], outermost["highest"]) == (500, "operator", 90)
    assert by_measure(rows, "own")["tokens"]["setBy"] == "workflow"
    never = by_measure(rows, "own")["tokens"]
    assert (never["executions"], never["highest"], never["dearest"]) == (0, 0, None)


def test_a_workflow_without_a_budget_has_no_row() -> None:
    async def run() -> list[BudgetRow]:
        async with installation(SCRIPT) as app:
            await app.save(written("pointsman: 1\nid: free\nnodes: [{id: cheap, type: agent, config: {prompt: x}}]\n"))
            return await budgets(app.context)

    assert run_virtually(run()) == []


def test_a_cost_budget_counts_the_scripted_model_even_in_called_workflows() -> None:
    priced = "pointsman: 1\nid: %s\nconfig: {limits: {costUsd: 1}}\nnodes: [%s]\n"
    agent = "{id: dear, type: agent, config: {prompt: Speak}}"
    call = "{id: call, type: workflow, config: {workflow: inner, input: {}}}"

    async def run() -> list[str]:
        async with installation(SCRIPT) as app:
            await app.save(written(priced % ("inner", agent)))
            await app.save(written(priced % ("outer", call)))
            names = [await ran(app, name) for name in ("inner", "outer")]
            rows = [row for name in names async for row in app.store.journal.read(ExecutionId(name))]
            return [event.code for row in rows for event in row.events if isinstance(event, WarningRaised)]

    assert run_virtually(run()) == [], "it has no price because nobody is asked: nothing is unknown"


def test_the_cost_of_a_step_is_shown_while_the_next_one_runs() -> None:
    async def run() -> tuple[str, list[BudgetRow], list[str]]:
        async with installation(SCRIPT) as app:
            await app.save(written(flow("long", "dear", "slow")))
            execution = await app.start("long", {})
            await app.clock.sleep_until(app.clock.now() + 5)
            told = await app.store.executions.find(execution.id)
            assert told is not None
            return told.status, await budgets(app.context), await damage(app.context)

    status, rows, wrong = run_virtually(run())
    assert (status, by_measure(rows, "long")["tokens"]["highest"], wrong) == ("running", 90, [])


def test_budgets_read_no_journal_and_count_all_waiting_executions(monkeypatch: pytest.MonkeyPatch) -> None:
    many = 230

    async def run() -> list[BudgetRow]:
        async with installation(SCRIPT) as app:
            await app.save(written(flow("long", "dear", "cheap", "again", policy="pause")))
            for _ in range(many):
                await ran(app, "long")

            def read(*_: object, **__: object) -> NoReturn:
                raise AssertionError("a journal was read")

            monkeypatch.setattr(MemoryJournal, "read", read)
            return await budgets(app.context)

    calls = by_measure(run_virtually(run()), "long")["modelCalls"]
    assert (calls["executions"], calls["over"]) == (many, many)


@pytest.mark.integration
def test_a_day_selects_ended_executions_and_keeps_open_ones(tmp_path: Path) -> None:
    async def run() -> list[list[Json]]:
        async with installation(SCRIPT, store=f"sqlite:///{tmp_path / 'store.db'}") as app:
            await app.save(written(flow("cheap", "cheap")))
            await app.save(written(flow("long", "dear", "cheap", "again", policy="pause")))
            today = day_of(app.clock.now())
            before, behind = day_of(app.clock.now() - 86_400), day_of(app.clock.now() + 86_400)
            for name in ("cheap", "long"):
                await ran(app, name)
            periods = [(today, today), ("", before), (behind, ""), ("0001-01-01", "9999-12-31")]
            told = [await budgets(app.context, since=since, until=until) for since, until in periods]
            return [[by_measure(one, name)["tokens"]["executions"] for name in ("cheap", "long")] for one in told]

    assert run_virtually(run()) == [[1, 1], [0, 1], [0, 1], [1, 1]]


def test_budgets_count_only_visible_executions() -> None:
    async def run() -> list[tuple[Json, str | None]]:
        async with installation(SCRIPT) as app:
            await app.save(written(flow("dear", "dear")))
            await app.save(written(TALK))
            names = [await ran(app, "dear")]
            for who in ("ann", "bob"):
                told = await app.start("talk", {"message": "hello"}, session=f"of-{who}", by=who)
                await told.settled()
                names.append(told.id)
            found: list[tuple[Json, str | None]] = []
            for who in ("ann", "bob", "eve"):
                rows = await budgets(app.context, sees=usage_audience(app.context, Caller(name=who, role="viewer")))
                told = by_measure(rows, "talk")["modelCalls"]
                found.append((told["executions"], None if told["dearest"] is None else who))
                assert by_measure(rows, "dear")["tokens"]["dearest"] == names[0], "its workflow is everybody's"
            return found

    assert run_virtually(run()) == [(1, "ann"), (1, "bob"), (0, None)]
