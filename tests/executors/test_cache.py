"""The step cache: equal work is done once, and only for nodes that request it."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from pointsman.engine.failures import Failure
from pointsman.executions.timeline import timeline
from pointsman.testing.clock import run_virtually
from pointsman.tools.functions import tool
from pointsman.tools.tool import Tool, ToolFailed
from pointsman.values import Json, JsonObject, json_of
from tests.scenarios import RunResult, installation, play, written


def node(name: str, cache: str | None = None, *, of: str = "input.q", **execution: Json) -> JsonObject:
    asked: JsonObject = {**execution, **({"cache": cache} if cache is not None else {})}
    return {
        "id": name,
        "type": "tool",
        "inputs": {"query": of},
        "config": {"tool": "search"},
        **({"execution": asked} if asked else {}),
    }


def looping(cache: str | None, *, of: str = "input.q") -> JsonObject:
    """Return three rounds around one search."""
    return {
        "id": "rounds",
        "entry": "again",
        "nodes": [{"id": "again", "type": "loop", "config": {"maxIterations": 3}}, node("look", cache, of=of)],
        "edges": [{"source": "again", "target": "look"}, {"source": "look", "target": "again"}],
    }


class Searches:
    """A search that counts its calls, and fails as often as the test requires."""

    def __init__(self, *, failing: int = 0) -> None:
        self.queries: list[str] = []
        self.failing = failing

    def tool(self) -> Tool:
        @tool(name="search")
        async def search(query: str) -> str:
            """Search."""
            self.queries.append(query)
            await asyncio.sleep(1.0)
            if len(self.queries) <= self.failing:
                raise ToolFailed(Failure(code="busy", message="come back later", retryable=True))
            return f"{query} #{len(self.queries)}"

        return search


def cached(played: RunResult) -> list[Json]:
    return [event.get("cached", False) for event in played.told("step_succeeded")]


@pytest.mark.requirement("S3-16", "S3-95")
def test_a_cached_step_returns_the_result_of_an_equal_visit() -> None:
    searches = Searches()
    played = play(looping("execution"), {"q": "cranes"}, tools=(searches.tool(),))
    assert (played.status, searches.queries) == ("completed", ["cranes"])
    assert cached(played) == [False, True, True]
    assert [event["result"] for event in played.told("step_succeeded")] == ["cranes #1"] * 3
    assert cast(JsonObject, played.view["usage"])["toolCalls"] == 1


@pytest.mark.requirement("T3-9")
@pytest.mark.parametrize("cache", [None, "off"])
def test_every_round_of_a_loop_executes_its_steps_unless_cached(cache: str | None) -> None:
    searches = Searches()
    played = play(looping(cache), {"q": "cranes"}, tools=(searches.tool(),))
    assert (searches.queries, cached(played)) == (["cranes"] * 3, [False] * 3)


@pytest.mark.requirement("S3-95")
def test_other_inputs_and_other_nodes_are_not_equal() -> None:
    searches = Searches()
    play(looping("execution", of="'round ' + str(loop.iteration)"), {"q": ""}, tools=(searches.tool(),))
    assert searches.queries == ["round 1", "round 2", "round 3"]
    searches = Searches()
    two: JsonObject = {
        "id": "two",
        "nodes": [node("one", "execution"), node("other", "execution")],
        "edges": [{"source": "one", "target": "other"}],
    }
    play(two, {"q": "cranes"}, tools=(searches.tool(),))
    assert searches.queries == ["cranes", "cranes"]


@pytest.mark.requirement("S3-95")
def test_a_failure_is_not_cached() -> None:
    searches = Searches(failing=1)
    document = looping("execution")
    cast("list[JsonObject]", document["nodes"])[1]["execution"] = {"cache": "execution", "errorHandler": "continue"}
    played = play(document, {"q": "cranes"}, tools=(searches.tool(),))
    assert searches.queries == ["cranes", "cranes"]
    assert cached(played) == [False, False, True]


@pytest.mark.requirement("S3-95")
@pytest.mark.parametrize(
    ("cache", "made"), [("execution", 3), ("session", 2), ("long_term", 1)], ids=["execution", "session", "long_term"]
)
def test_the_cache_of_a_node_has_its_declared_scope(cache: str, made: int) -> None:
    searches = Searches()
    document: JsonObject = {"id": "one", "nodes": [node("look", cache)], "edges": []}

    async def run() -> None:
        async with installation(tools=(searches.tool(),)) as app:
            for session in ("anna", "anna", "ben"):
                await (await app.start(written(document), {"q": "cranes"}, session=session)).output()

    run_virtually(run())
    assert len(searches.queries) == made


@pytest.mark.requirement("S3-20", "S3-94")
def test_each_node_has_its_duration_retries_cache_hits_and_status() -> None:
    searches = Searches(failing=1)
    document = looping("execution")
    cast("list[JsonObject]", document["nodes"])[1]["execution"] = {
        "cache": "execution",
        "retries": 1,
        "retryDelay": "5s",
    }

    async def run() -> tuple[JsonObject, list[JsonObject]]:
        seen: list[JsonObject] = []
        async with installation(tools=(searches.tool(),)) as app:
            leave = app.watch(seen.append)
            execution = await app.start(written(document), {"q": "cranes"})
            await execution.output()
            leave()
            return json_of(await timeline(app.context, execution.id)), seen

    measured, seen = run_virtually(run())
    (look,) = [row for row in cast("list[JsonObject]", measured["nodes"]) if row["node"] == "look"]
    assert (look["steps"], look["seconds"], look["toolCalls"]) == (3, 2.0, 2)
    assert (look["retries"], look["cached"], look["status"]) == (1, 2, "cached")
    spans = [span for span in cast("list[JsonObject]", measured["spans"]) if span["kind"] == "work"]
    assert [span["status"] for span in spans] == ["retried", "done", "cached", "cached"]
    assert [event["kind"] for event in seen].count("step_succeeded") == 3
