"""Answers of the scripted model are marked in all views, and the mark is stored with the execution."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from pointsman import Pointsman, Workflow
from pointsman.auth.callers import LOCAL
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject, json_of
from pointsman.workflows.scripts import parse_script


def document(*nodes: Json, id: str = "flow", edges: list[Json] | None = None) -> Workflow:
    return Workflow.parse(json.dumps({"pointsman": 1, "id": id, "nodes": [*nodes], "edges": edges or []}))


SAYS: JsonObject = {"id": "n", "type": "agent", "config": {"prompt": "Hi."}}
SETS: JsonObject = {"id": "t", "type": "transform", "config": {"set": {"x": "1"}}}
ASKS: JsonObject = {"id": "g", "type": "human", "config": {"message": "Go on?"}}
SETTINGS = Settings(delays=False)


def codes(view: JsonObject) -> list[Json]:
    return [one["code"] for one in cast("list[JsonObject]", view["warnings"])]


async def test_the_view_and_the_list_mark_scripted_answers() -> None:
    async with Pointsman("memory:", settings=SETTINGS, model="scripted") as app:
        execution = await app.start(document(SAYS))
        assert execution.is_scripted, "known before the first answer"
        await execution.settled()
        view = json_of(await execution.view())
        assert (view["scripted"], codes(view)) == (True, ["scripted-answers"])
        assert [one["scripted"] for one in (await app.acting_as(LOCAL).executions.list())["executions"]] == [True]


async def test_an_execution_without_a_model_is_not_marked() -> None:
    async with Pointsman("memory:", settings=SETTINGS, model="scripted") as app:
        execution = await app.start(document(SETS))
        await execution.settled()
        view = json_of(await execution.view())
        assert (view["scripted"], codes(view)) == (False, [])
        assert [one["scripted"] for one in (await app.acting_as(LOCAL).executions.list())["executions"]] == [False]


async def test_an_agent_that_names_the_scripted_model_marks_its_execution() -> None:
    says: JsonObject = {"id": "n", "type": "agent", "config": {"prompt": "Hi.", "model": "scripted"}}
    async with Pointsman("memory:", settings=SETTINGS) as app:
        execution = await app.start(document(says))
        assert execution.is_scripted


async def test_a_sub_workflow_marks_the_execution_that_calls_it() -> None:
    async with Pointsman("memory:", settings=SETTINGS, model="scripted") as app:
        await app.save(document(SAYS, id="sub"))
        execution = await app.start(document({"id": "c", "type": "workflow", "config": {"workflow": "sub"}}))
        await execution.settled()
        assert (await execution.view())["scripted"] is True
        assert [one["scripted"] for one in (await app.acting_as(LOCAL).executions.list())["executions"]] == [True, True]


@pytest.mark.integration
async def test_the_scripted_mark_is_stored(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    async with Pointsman(store, settings=SETTINGS, model="scripted") as app:
        execution = await app.start(document(SAYS, ASKS, edges=[{"source": "n", "target": "g"}]))
        assert await execution.settled() == "waiting"
    async with Pointsman(store, settings=SETTINGS) as app:
        assert [one["scripted"] for one in (await app.acting_as(LOCAL).executions.list())["executions"]] == [True]
        assert (await app.view(execution.id))["scripted"] is True
        again = await app.open(execution.id)
        await again.answer("g", "approve")
        await again.settled()
        assert (await again.view())["scripted"] is True


@pytest.mark.integration
@pytest.mark.parametrize("cache", ["session", "long_term"])
async def test_a_cached_answer_of_the_scripted_model_is_marked(cache: str) -> None:
    """The cached step makes no call: the cache stores the mark."""
    config: JsonObject = {"prompt": "Hi.", "model": "own:m", "fallback": ["scripted"]}
    says: JsonObject = {"id": "n", "type": "agent", "config": config, "execution": {"cache": cache}}
    providers = {"own": {"base_url": "http://127.0.0.1:9/v1", "retries": 0}}
    settings = Settings.model_validate({"delays": False, "providers": providers})
    async with Pointsman("memory:", settings=settings) as app:
        views: list[JsonObject] = []
        for _ in range(2):
            execution = await app.start(document(says), session=None if cache == "long_term" else "s")
            assert not execution.is_scripted, "a real model is asked first"
            await execution.settled()
            views.append(json_of(await execution.view()))
    assert [cast("JsonObject", view["usage"])["modelCalls"] for view in views] == [1, 0]
    assert [view["scripted"] for view in views] == [True, True]


@pytest.mark.integration
async def test_an_answer_of_the_scripted_model_is_never_cached_for_a_real_one() -> None:
    says: JsonObject = {
        "id": "n",
        "type": "agent",
        "config": {"prompt": "Hi.", "model": "own:m"},
        "execution": {"cache": "long_term"},
    }
    providers = {"own": {"base_url": "http://127.0.0.1:9/v1", "retries": 0}}
    settings = Settings.model_validate({"delays": False, "providers": providers})
    async with Pointsman("memory:", settings=settings) as app:
        scripted = await app.start(document(says), model="scripted")
        assert await scripted.settled() == "completed"
        real = await app.start(document(says))
        assert await real.settled() == "failed"
        assert (await real.view())["scripted"] is False


@pytest.mark.integration
async def test_scripts_of_other_rules_do_not_share_the_cache(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    says: JsonObject = {**SAYS, "execution": {"cache": "long_term"}}
    outputs: list[Json] = []
    for text in ("one", "two"):
        async with Pointsman(store, settings=SETTINGS, script=parse_script(f"rules: [{{text: {text}}}]")) as app:
            outputs.append(await (await app.start(document(says))).output())
    assert outputs == ["one", "two"]


async def test_a_scripted_tool_marks_its_execution_with_any_model() -> None:
    script = parse_script("tools: {look: {result: made up}}")
    calls: JsonObject = {"id": "t", "type": "tool", "config": {"tool": "look", "parameters": {}}}
    async with Pointsman("memory:", settings=SETTINGS, model="openai:gpt-5-mini", script=script) as app:
        execution = await app.start(document(calls))
        assert await execution.settled() == "completed"
        view = json_of(await execution.view())
        assert (view["scripted"], codes(view)) == (True, ["scripted-answers"])
        assert [one["scripted"] for one in (await app.acting_as(LOCAL).executions.list())["executions"]] == [True]


async def test_a_failure_that_a_script_gives_for_a_tool_marks_its_execution() -> None:
    script = parse_script("tools: {look: {fail: out of order}}")
    calls: JsonObject = {"id": "t", "type": "tool", "config": {"tool": "look", "parameters": {}}}
    async with Pointsman("memory:", settings=SETTINGS, model="openai:gpt-5-mini", script=script) as app:
        execution = await app.start(document(calls))
        assert await execution.settled() == "failed"
        assert (await execution.view())["scripted"] is True
