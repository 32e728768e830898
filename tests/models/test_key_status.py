"""Status of the keys of models, by name and without any part of their values."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from pointsman.app import Pointsman, Workflow
from pointsman.engine.failures import Failure
from pointsman.models.failures import ModelFailed
from pointsman.models.key_pool import KeyPool, KeyState, Pacing
from pointsman.models.providers import Providers
from pointsman.models.transcript import user_message
from pointsman.models.transport import ModelCaller, TextListener
from pointsman.operations.model_catalogue import list_models
from pointsman.operations.provider_keys import ModelKeys, ModelKeyView, StoredKeyLeases, model_keys
from pointsman.ports import ModelRequest
from pointsman.settings import Settings
from pointsman.testing.clock import run_virtually
from pointsman.values import JsonObject
from tests.models.slow_provider import END, provider, words
from tests.models.test_calling import Service, house, refused
from tests.patience import PATIENCE_S

LIMITED = Failure(code="model-rate-limited", message="slow down", retryable=True)
SAYS: JsonObject = {
    "pointsman": 1,
    "id": "w",
    "nodes": [{"id": "say", "type": "agent", "config": {"prompt": "Speak.", "model": "own:m"}}],
    "edges": [],
}


def keys_of(told: ModelKeys, number: int = 0) -> list[ModelKeyView]:
    return told["providers"][number]["keys"]


def looked(answer: dict[str, int], *, pacing: Pacing | None = None) -> tuple[list[KeyState], list[KeyState]]:
    """Return the status of keys during a call, and after two calls; `answer`: key -> status of its refusal."""
    during: list[KeyState] = []
    told: list[KeyPool] = []

    def reply(key: str, number: int) -> httpx2.Response | None:
        during[:] = during or told[0].look()
        return refused(answer[key], **{"retry-after": "20"}) if key in answer else None

    async def story() -> list[KeyState]:
        providers = Providers({"house": house(Service(reply), pacing=pacing)})
        line = providers.line("house", "small")
        told.append(line.pool)
        request = ModelRequest(model="house:small", messages=[user_message("hello")])
        for _ in range(2):
            with contextlib.suppress(ModelFailed):
                await ModelCaller(providers).call(line, request, TextListener(None))
        found = line.pool.look()
        await providers.close()
        return found

    return during, run_virtually(story())


def test_a_key_is_busy_during_a_call_and_shows_its_result() -> None:
    during, after = looked({"first": 429, "second": 401}, pacing=Pacing(concurrency=1, key_interval_s=5.0, calls_max=4))
    assert [(one.condition, one.open) for one in during] == [("busy", 1), ("free", 0), ("free", 0)]
    assert [(one.condition, one.open, one.calls, one.failed) for one in after] == [
        ("cooling", 0, 1, "model-rate-limited"),
        ("refused", 0, 1, "model-unauthorized"),
        ("pausing", 0, 2, ""),
    ]
    cooling, rejected, pausing = after
    assert cooling.for_s is not None
    assert 10 < cooling.for_s <= 20
    assert rejected.for_s is not None
    assert rejected.for_s > 500
    assert pausing.for_s == pytest.approx(5.0)
    assert cooling.why == "model-rate-limited"


def test_a_key_over_its_limit_is_spent_until_it_is_reset() -> None:
    _, after = looked({}, pacing=Pacing(calls_max=1))
    assert [(one.condition, one.for_s) for one in after] == [("spent", None), ("spent", None), ("free", None)]


@pytest.mark.integration
async def test_keys_are_listed_by_name_with_their_usage_even_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRST_KEY", "canary-variable-0123")
    async with asyncio.timeout(PATIENCE_S), provider([*words("Aye."), *END]) as own:
        described: JsonObject = {
            "base_url": own.address,
            "keys": ["env:FIRST_KEY", "canary-literal-4567"],
            "day": {"calls": 1},
        }
        settings = Settings.model_validate(
            {"store": f"sqlite:///{tmp_path / 'store.db'}", "providers": {"own": described}}
        )
        async with Pointsman(settings=settings) as app:
            execution = await app.start(Workflow.of(SAYS), {})
            await execution.settled()
            first = await model_keys(app.context)
        async with Pointsman(settings=settings) as app:
            again = await model_keys(app.context)
    for told in (first, again):
        spent, free = keys_of(told)
        assert (spent["id"], spent["name"], spent["condition"], spent["why"]) == (
            "own/0",
            "env:FIRST_KEY",
            "spent",
            "model-key-budget-spent",
        )
        assert (free["name"], free["condition"], free["until"]) == ("settings", "free", None)
        assert spent["until"] == told["beginsAnew"]
        assert spent["today"]["calls"] == 1
        assert spent["mostToday"] == {"calls": 1, "tokens": None, "costUsd": None}
        assert "canary" not in json.dumps(told)
        assert "4567" not in json.dumps(told)
    assert [keys_of(told)[0]["calls"] for told in (first, again)] == [1, 0], "of this process"


@pytest.mark.integration
async def test_ephemeral_executions_use_the_same_key_limits(tmp_path: Path) -> None:
    fleeting = Workflow.of({**SAYS, "config": {"persistence": "none"}})
    async with asyncio.timeout(PATIENCE_S), provider([*words("Aye."), *END]) as own:
        described: JsonObject = {"base_url": own.address, "keys": ["canary"], "day": {"calls": 2}}
        settings = Settings.model_validate(
            {"store": f"sqlite:///{tmp_path / 'store.db'}", "providers": {"own": described}}
        )
        statuses: list[str] = []
        async with Pointsman(settings=settings) as app:
            for document in (fleeting, Workflow.of(SAYS), fleeting):
                execution = await app.start(document, {})
                await execution.settled()
                statuses.append(execution.status)
            (key,) = keys_of(await model_keys(app.context))
    assert statuses == ["completed", "completed", "failed"]
    assert (key["condition"], key["today"]["calls"]) == ("spent", 2)
    assert len(own.asked) == 2


async def test_a_rest_set_by_another_process_is_shown_and_a_missing_key_has_a_hint() -> None:
    described: JsonObject = {"base_url": "http://own.test/v1", "keys": ["canary", "second"], "shared": True}
    lost: JsonObject = {"base_url": "http://lost.test/v1", "keys": ["env:NOT_SET_ANYWHERE"]}
    settings = Settings.model_validate({"store": "memory:", "providers": {"own": described, "lost": lost}})
    async with Pointsman(settings=settings) as app:
        await StoredKeyLeases(app.store, app.clock).rest("own", 1, 300.0)
        told = await model_keys(app.context)
        free, cooling = keys_of(told)
        now = app.clock.now()
    assert (free["condition"], cooling["condition"], cooling["why"]) == ("free", "cooling", "model-rate-limited")
    assert isinstance(cooling["until"], float)
    assert 290 < cooling["until"] - now <= 300
    missing = told["providers"][1]
    assert missing["keys"] == []
    assert "NOT_SET_ANYWHERE" in str(missing["missing"])


async def test_a_provider_known_only_to_its_client_is_listed_after_its_first_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pointsman.models.clients.infer", refusing)
    document = json.loads(json.dumps(SAYS).replace("own:m", "cohere:m"))
    async with Pointsman("memory:", settings=Settings(model="cohere:m", delays=False)) as app:
        assert (await model_keys(app.context))["providers"] == list_models(app.context)["providers"] == []
        execution = await app.start(Workflow.of(document))
        assert await execution.settled() == "failed"
        (told,) = (await model_keys(app.context))["providers"]
        assert (told["name"], told["missing"], told["waiting"]) == ("cohere", None, 0)
        (listed,) = list_models(app.context)["providers"]
        assert (listed["name"], listed["keys"], listed["masked"], listed["source"]) == ("cohere", 1, [], "client")
        (key,) = told["keys"]
        assert (key["id"], key["name"], key["calls"], key["failed"]) == ("cohere/0", None, 1, "model-failed")


def refusing(provider: str, model: str) -> Model:
    why = ModelHTTPError(401, f"{provider}:{model}", {"error": "no such key"})

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise why

    async def said(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        raise why
        yield ""

    return FunctionModel(answer, stream_function=said)
