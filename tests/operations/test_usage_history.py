"""Usage of ended executions is added up once, by any process, across restarts, and can be queried."""

from __future__ import annotations

from pathlib import Path

import pytest

from pointsman.app import Pointsman
from pointsman.engine.state import ExecutionState
from pointsman.executions.opening import GivenAnswer, drive
from pointsman.executions.usage_rollup import DIMENSIONS, Dimension, PeriodInvalid, UsageRollup, UsageRow
from pointsman.operations.usage import UsageUnknown, csv_of, narrowed
from pointsman.store.records import Summary, UsageQuery
from pointsman.testing.clock import run_virtually
from pointsman.values import ExecutionId, Json, JsonObject
from tests.scenarios import installation, written

CANARY = "canary-3b8811ffee"
NEWS = """\
pointsman: 1
id: news
config: {observability: %s}
input: {type: object}
output: {said: a}
nodes:
  - {id: ask, type: agent, config: {prompt: "Say {goal}", tools: [look]}, execution: {retries: 1}, outputs: {a: result}}
  - {id: review, type: agent, config: {prompt: "Is it good: {a}"}}
edges: [{source: ask, target: review}]
"""
SCRIPT = """\
rules:
  - {node: ask, attempt: 1, fail: 503}
  - {node: ask, attempt: 2, call: 1, toolCalls: [{name: look}], usage: {inputTokens: 100, outputTokens: 10}}
  - {node: ask, attempt: 2, text: "The Harbour opens", usage: {inputTokens: 200, outputTokens: 20}}
  - {node: review, text: fine, usage: {inputTokens: 7, outputTokens: 3}}
tools: {look: {result: fog}}
"""
FAILING = SCRIPT.replace("- {node: review,", "- {node: review, attempt: 1, fail: 400}\n  - {node: review,")


async def everybody(_: Summary) -> bool:
    return True


async def ran(app: Pointsman, goal: str = "tides", level: str = "standard") -> str:
    execution = await app.start(written(NEWS % level), {"goal": goal})
    await execution.settled()
    assert execution.status == "completed"
    return execution.id


async def found(app: Pointsman, words: str) -> list[str]:
    return [one.execution for one in await UsageRollup(app.context).search(words, sees=everybody)]


def test_steps_calls_and_tokens_are_summed_by_the_requested_group() -> None:
    async def run() -> dict[Dimension, list[UsageRow]]:
        async with installation(SCRIPT) as app:
            await ran(app)
            await ran(app)
            return {one: await UsageRollup(app.context).usage((one,)) for one in DIMENSIONS}

    tables = run_virtually(run())
    (news,) = tables["workflow"]
    wanted: JsonObject = {"workflow": "news", "steps": 4, "retries": 2, "failures": 0, "modelCalls": 6, "toolCalls": 2}
    assert {name: news[name] for name in wanted} == wanted
    assert (news["inputTokens"], news["outputTokens"]) == (2 * 307, 2 * 33)
    by_node = {str(row.get("node")): row for row in tables["node"]}
    assert (by_node["ask"]["inputTokens"], by_node["review"]["inputTokens"]) == (600, 14)
    assert (by_node["ask"]["retries"], by_node["review"]["retries"]) == (2, 0)
    by_model = {str(row.get("model")): row for row in tables["model"]}
    assert by_model["scripted"]["modelCalls"] == 6
    assert by_model[""]["steps"] == 4, "time and steps belong to no model"
    assert [len(str(row.get("day"))) for row in tables["day"]] == [10]


def test_scripted_calls_are_marked_and_not_counted_as_unpriced() -> None:
    async def run() -> list[UsageRow]:
        async with installation(SCRIPT) as app:
            await ran(app)
            return await UsageRollup(app.context).usage(("model",), of={"model": "scripted"})

    (row,) = run_virtually(run())
    assert (row["scriptedCalls"], row["unpricedCalls"], row["costUsd"]) == (3, 0, None)


@pytest.mark.integration
def test_a_usage_row_is_broken_down_by_execution_even_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"

    async def run() -> tuple[list[str], list[UsageRow], list[UsageRow], list[UsageRow]]:
        async with installation(SCRIPT, store=store) as app:
            names = [await ran(app) for _ in range(2)]
        async with installation(SCRIPT, store=store) as app:
            history = UsageRollup(app.context)
            asks = await history.usage(("execution",), of={"node": "ask", "model": "scripted"})
            one = await history.usage(("node",), of={"execution": names[0]})
            return names, asks, one, await history.usage(("execution",), of={"model": "other"})

    names, asks, one, none = run_virtually(run())
    assert {(row.get("execution"), row["modelCalls"], row["steps"]) for row in asks} == {(name, 2, 0) for name in names}
    assert {(row.get("node"), row["steps"]) for row in one} == {("ask", 1), ("review", 1)}
    assert none == []


@pytest.mark.parametrize("wrong", ["model", "colour:red", ":x"])
def test_an_unknown_grouping_is_refused(wrong: str) -> None:
    assert narrowed(["model:a:b", "key:"]) == {"model": "a:b", "key": ""}
    with pytest.raises(UsageUnknown, match="has no dimension"):
        narrowed([wrong])


def test_usage_is_counted_once_and_a_later_retry_adds_its_own() -> None:
    async def run() -> list[list[UsageRow]]:
        async with installation(FAILING) as app:
            execution = await app.start(written(NEWS % "standard"), {"goal": "x"})
            await execution.settled()
            assert execution.status == "failed"
            first = await UsageRollup(app.context).usage(("day", "workflow"))
            again = await UsageRollup(app.context).usage(("day", "workflow"))
            assert again == first
            await app.clock.sleep_until(app.clock.now() + 86_400)
            await execution.retry()
            await execution.settled()
            return [first, await UsageRollup(app.context).usage(("day", "workflow"))]

    first, later = run_virtually(run())
    assert [row["failures"] for row in first] == [1]
    assert sorted((str(row.get("day")), row["steps"]) for row in later)[0][1] == first[0]["steps"]
    assert len({row.get("day", "") for row in later}) == 2


@pytest.mark.integration
def test_another_process_continues_the_rollup_and_can_rebuild_it(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"

    async def run() -> tuple[list[UsageRow], list[UsageRow], int, list[UsageRow]]:
        async with installation(SCRIPT, store=store) as app:
            await ran(app)
            first = await UsageRollup(app.context).usage()
        async with installation(SCRIPT, store=store) as app:
            assert await UsageRollup(app.context).catch_up() == 0
            await ran(app, "quays")
            assert await UsageRollup(app.context).catch_up() == 1
            both = await UsageRollup(app.context).usage()
        async with installation(SCRIPT, store=store) as app:
            return first, both, await UsageRollup(app.context).rebuild(), await UsageRollup(app.context).usage()

    first, both, count, rebuilt = run_virtually(run())
    assert [row["steps"] for row in (*first, *both)] == [2, 4]
    assert (count, rebuilt) == (2, both)


@pytest.mark.integration
def test_usage_of_a_deleted_execution_stays_and_its_words_are_deleted(tmp_path: Path) -> None:
    async def run() -> tuple[list[str], list[str], list[Json]]:
        async with installation(SCRIPT, store=f"sqlite:///{tmp_path / 'store.db'}") as app:
            execution = await ran(app)
            before = await found(app, "harbour")
            await app.storage.delete(execution)
            usage = await UsageRollup(app.context).usage()
            return before, await found(app, "harbour"), [row["modelCalls"] for row in usage]

    before, after, calls = run_virtually(run())
    assert (len(before), after, calls) == (1, [], [3])


def test_an_execution_deleted_during_the_rollup_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader adds up ended executions while users delete some, which must not end it."""

    async def run() -> tuple[int, list[bool]]:
        async with installation(SCRIPT) as app:
            first, second = await ran(app), await ran(app)
            load = app.runtime.load

            async def late(execution: ExecutionId) -> ExecutionState:
                if execution == second:
                    await app.storage.delete(second)
                return await load(execution)

            monkeypatch.setattr(app.runtime, "load", late)
            count = await UsageRollup(app.context).catch_up()
            return count, [*(one == first for one in await found(app, "harbour"))]

    assert run_virtually(run()) == (1, [True])


def test_executions_are_found_by_all_words_of_inputs_outputs_and_errors() -> None:
    async def run() -> list[int]:
        async with installation(SCRIPT) as app:
            await ran(app, "Café tides")
            await ran(app, "quays")
            counts = [len(await found(app, words)) for words in ("harbour", "cafe HARBOUR", "cafe quays", "nothing")]
            return [*counts, len(await found(app, "")), len(await found(app, '" OR tides*'))]

    assert run_virtually(run()) == [2, 1, 0, 0, 0, 0]


def test_failures_are_found_by_their_words() -> None:
    async def run() -> tuple[list[str], str]:
        async with installation(FAILING) as app:
            execution = await app.start(written(NEWS % "standard"), {"goal": "x"})
            await execution.settled()
            failure = execution.state.outcome.failure
            assert failure is not None
            return await found(app, failure.message), execution.id

    told, execution = run_virtually(run())
    assert told == [execution]


def test_search_omits_hidden_executions() -> None:
    async def run() -> tuple[int, int]:
        async with installation(SCRIPT) as app:
            hidden = await ran(app)
            await ran(app)

            async def sees(one: Summary) -> bool:
                return one.execution != hidden

            return len(await found(app, "harbour")), len(await UsageRollup(app.context).search("harbour", sees=sees))

    assert run_virtually(run()) == (2, 1)


@pytest.mark.parametrize(("level", "count"), [("minimal", 0), ("standard", 1), ("full", 1)])
def test_minimal_executions_are_not_searchable_but_counted(level: str, count: int) -> None:
    async def run() -> tuple[int, int, int]:
        async with installation(SCRIPT, settings={"secrets": {"DOOR": CANARY}}) as app:
            await ran(app, f"open {CANARY}", level)
            usage = await UsageRollup(app.context).usage()
            return len(await found(app, "harbour")), len(await found(app, CANARY)), len(usage)

    assert run_virtually(run()) == (count, 0, 1)


def test_the_leader_counts_ended_executions_automatically() -> None:
    async def run() -> int:
        async with installation(SCRIPT) as app, app.leading():
            await ran(app)
            await app.clock.sleep_until(app.clock.now() + 90)
            return len(await app.store.usage.sums(UsageQuery(by=("execution",))))

    assert run_virtually(run()) == 1


def test_sub_workflows_are_not_counted_twice() -> None:
    outer = """\
pointsman: 1
id: outer
nodes: [{id: call, type: workflow, config: {workflow: news, input: {goal: "'x'"}}}]
"""

    async def run() -> list[UsageRow]:
        async with installation(SCRIPT) as app:
            await app.save(written(NEWS % "standard"))
            execution = await app.start(written(outer), {})
            await drive(execution, (GivenAnswer("none", "x"),))
            return await UsageRollup(app.context).usage(("workflow",))

    calls = {row.get("workflow"): row["modelCalls"] for row in run_virtually(run())}
    assert calls == {"news": 3, "outer": 0}


@pytest.mark.parametrize("day", ["yesterday", "2026-13-01", "20261121", "2026-11-21T00:00"])
def test_an_invalid_day_is_refused(day: str) -> None:
    async def run() -> None:
        async with installation() as app:
            with pytest.raises(PeriodInvalid, match="is not a date"):
                await UsageRollup(app.context).usage(since=day)

    run_virtually(run())


def test_a_period_includes_its_first_and_last_day() -> None:
    async def run() -> list[int]:
        async with installation(SCRIPT) as app:
            await ran(app)
            history = UsageRollup(app.context)
            (day,) = {row.get("day", "") for row in await history.usage(("day",))}
            return [
                len(await history.usage(since=since, until=until))
                for since, until in ((day, day), ("", day), (day, ""), ("9999-01-01", ""), ("", "1960-01-01"))
            ]

    assert run_virtually(run()) == [1, 1, 1, 0, 0]


def test_csv_cells_contain_no_formulas() -> None:
    assert csv_of([{"workflow": "=cmd()", "steps": 1}]) == "workflow,steps\r\n'=cmd(),1\r\n"
    assert csv_of([]) == ""
