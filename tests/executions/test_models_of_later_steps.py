"""An execution continues only if the models that it still needs can be called; a refusal changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

from pointsman import Pointsman, Workflow
from pointsman.errors import PointsmanError
from pointsman.executions.execution import Execution
from pointsman.models.provider import KEYS_OF_PROVIDERS
from pointsman.models.transport import PydanticModels
from pointsman.ports import ModelReply, ModelRequest, TextCallback
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject

pytestmark = pytest.mark.integration

REAL = "anthropic:claude-sonnet-4-5"
SETTINGS = Settings(delays=False)


@pytest.fixture(autouse=True)
def a_key_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POINTSMAN_MODEL", *KEYS_OF_PROVIDERS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "for-tests")


def chain(*nodes: JsonObject) -> Workflow:
    edges: list[Json] = [{"source": one["id"], "target": two["id"]} for one, two in pairwise(nodes)]
    return Workflow.parse(json.dumps({"pointsman": 1, "id": "flow", "nodes": [*nodes], "edges": edges}))


def agent(id: str, model: str = REAL) -> JsonObject:
    return {"id": id, "type": "agent", "config": {"prompt": "Hi.", "model": model}}


GATE: JsonObject = {"id": "gate", "type": "human", "config": {"message": "Go on?"}}
SETS: JsonObject = {"id": "sets", "type": "transform", "config": {"set": {"x": "1"}}}


async def left(store: str, workflow: Workflow, *, paused: bool = False) -> str:
    """Return an execution that waits or is paused at its gate."""
    async with Pointsman(store, settings=SETTINGS) as app:
        execution = await app.start(workflow)
        await execution.settled()
        if paused:
            await execution.pause()
        return execution.id


async def refused(
    store: str, execution: str, act: Callable[[Pointsman, Execution], Coroutine[None, None, object]]
) -> None:
    """Check that it is refused with the variable to set, and that the journal is unchanged."""
    async with Pointsman(store, settings=SETTINGS) as app:
        taken = await app.reach(execution)
        before = (taken.status, len(await taken.rows()), len(await app.executions()))
        with pytest.raises(PointsmanError) as caught:
            await act(app, taken)
        assert caught.value.code == "model-unusable"
        assert REAL in str(caught.value)
        assert "ANTHROPIC_API_KEY" in caught.value.hint
        again = await app.reach(execution)
        assert (again.status, len(await again.rows()), len(await app.executions())) == before


async def test_resume_is_refused_if_a_later_step_needs_an_unavailable_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    execution = await left(store, chain(GATE, agent("later")), paused=True)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    await refused(store, execution, lambda _, taken: taken.resume())


async def test_fork_is_refused_if_a_later_step_needs_an_unavailable_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    execution = await left(store, chain(GATE, agent("later")))
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    await refused(store, execution, lambda app, _: app.fork(execution))


async def test_retry_is_refused_until_the_model_is_available(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    broken: JsonObject = {"id": "sets", "type": "transform", "config": {"set": {"x": "1 / input.n"}}}
    async with Pointsman(store, settings=SETTINGS) as app:
        execution = await app.start(chain(broken, agent("later")), {"n": 0})
        assert await execution.settled() == "failed"
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    await refused(store, execution.id, lambda _, taken: taken.retry())


def calls(workflow: str) -> JsonObject:
    return {"id": "call", "type": "workflow", "config": {"workflow": workflow}}


def named(id: str, workflow: Workflow) -> Workflow:
    return Workflow.of({**cast("JsonObject", json.loads(workflow.document.text)), "id": id})


async def left_above(store: str, flow: Workflow, *below: Workflow) -> str:
    """Return a paused execution of `flow`, which calls the others."""
    async with Pointsman(store, settings=SETTINGS) as app:
        for one in below:
            await app.save(one)
    return await left(store, flow, paused=True)


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("verb", ["resume", "fork"])
async def test_resume_is_refused_if_a_sub_workflow_needs_an_unavailable_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, deep: bool
) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    below = [named("inner", chain(agent("later"))), named("outer", chain(calls("inner")))]
    execution = await left_above(store, chain(GATE, calls("outer" if deep else "inner")), *below)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    await refused(store, execution, lambda app, taken: taken.resume() if verb == "resume" else app.fork(execution))


async def test_retry_is_refused_if_a_later_sub_workflow_needs_an_unavailable_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    broken: JsonObject = {"id": "sets", "type": "transform", "config": {"set": {"x": "1 / input.n"}}}
    async with Pointsman(store, settings=SETTINGS) as app:
        await app.save(named("inner", chain(agent("later"))))
        execution = await app.start(chain(broken, calls("inner")), {"n": 0})
        assert await execution.settled() == "failed"
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    await refused(store, execution.id, lambda _, taken: taken.retry())


@pytest.mark.parametrize("ahead", [False, True])
async def test_only_models_of_later_steps_of_a_started_sub_workflow_are_required(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: bool
) -> None:
    async def ask(self: PydanticModels, request: ModelRequest, *, on_text: TextCallback | None = None) -> ModelReply:
        return ModelReply(text="fine")

    monkeypatch.setattr(PydanticModels, "ask", ask)
    store = f"sqlite:///{tmp_path}/store.db"
    inner = named("inner", chain(GATE, agent("later")) if ahead else chain(agent("first"), GATE))
    execution = await left_above(store, chain(calls("inner"), SETS), inner)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    if ahead:
        await refused(store, execution, lambda _, taken: taken.resume())
        return
    async with Pointsman(store, settings=SETTINGS) as app:
        taken = await app.open(execution)
        await taken.resume()
        await taken.answer("gate", "approve")
        assert await taken.settled() == "completed"


async def test_models_of_finished_steps_are_not_required(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(self: PydanticModels, request: ModelRequest, *, on_text: TextCallback | None = None) -> ModelReply:
        return ModelReply(text="fine")

    monkeypatch.setattr(PydanticModels, "ask", ask)
    store = f"sqlite:///{tmp_path}/store.db"
    execution = await left(store, chain(agent("first"), GATE, SETS), paused=True)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    async with Pointsman(store, settings=SETTINGS) as app:
        taken = await app.open(execution)
        await taken.resume()
        await taken.answer("gate", "approve")
        assert await taken.settled() == "completed"
        forked = await app.fork(execution, before="gate")
        assert await forked.settled() == "waiting"
        view = await forked.view()
        assert cast("list[JsonObject]", view["errors"]) == []
