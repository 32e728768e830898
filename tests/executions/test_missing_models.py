"""A model that cannot be called is never replaced silently: triggers report why they start nothing, memory reports the
kind of search, and a ping reports an answer of the scripted model.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from pointsman import Pointsman, Workflow
from pointsman.auth.callers import LOCAL
from pointsman.operations.model_catalogue import ping_models
from pointsman.settings import Settings
from pointsman.triggers.views import delivery_views, fired_view
from pointsman.values import Json, JsonObject
from tests.installation import HandClock
from tests.triggers.test_webhooks import BODY, hook, standard

REAL = "anthropic:claude-sonnet-4-5"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)


def says(*triggers: Json) -> Workflow:
    node: JsonObject = {"id": "n", "type": "agent", "config": {"prompt": "Hi.", "model": REAL}}
    return Workflow.parse(json.dumps({"pointsman": 1, "id": "says", "nodes": [node], "triggers": [*triggers]}))


@pytest.mark.integration
async def test_a_refused_scheduled_start_is_shown_with_its_reason(tmp_path: Path) -> None:
    clock = HandClock()
    async with Pointsman(f"sqlite:///{tmp_path}/s.db", settings=Settings(), clock=clock) as app:
        await app.save(says())
        await app.schedule("says", every=60)
        clock.move(61)
        (fired,) = await app.triggers.scheduler.fire(clock.now())
        assert (fired.outcome, fired.code) == ("failed", "model-unusable")
        assert REAL in fired.message
        assert "ANTHROPIC_API_KEY" in fired.hint
        shown = fired_view(fired)["error"]
        assert isinstance(shown, dict)
        assert shown["hint"] == fired.hint
        assert await app.executions() == []


@pytest.mark.integration
async def test_a_webhook_that_cannot_start_its_workflow_reports_the_reason(tmp_path: Path) -> None:
    clock = HandClock()
    async with Pointsman(f"sqlite:///{tmp_path}/s.db", settings=Settings(), clock=clock) as app:
        await app.save(says(hook()))
        with pytest.raises(Exception, match=REAL) as refused:
            await app.webhook("issues", BODY, standard(clock.now()))
        assert getattr(refused.value, "code", "") == "model-unusable"
        (call,) = await delivery_views(app.context, LOCAL, "says", "hook")
        assert (call["outcome"], REAL in str(call["why"])) == ("failed", True)
        assert "ANTHROPIC_API_KEY" in str(call["hint"])
        assert await app.executions() == []


async def test_memory_without_semantic_search_reports_it() -> None:
    document: JsonObject = {
        "pointsman": 1,
        "id": "w",
        "nodes": [
            {"id": "m", "type": "memory", "config": {"operation": "search", "scope": "workflow", "query": "tides"}}
        ],
    }
    providers: JsonObject = {"own": {"base_url": "http://127.0.0.1:9/v1"}}
    settings = Settings.model_validate({"providers": providers, "memory": {"embeddings": {"model": "own:e"}}})
    async with Pointsman("memory:", settings=settings, model="scripted") as app:
        execution = await app.start(Workflow.parse(json.dumps(document)))
        await execution.settled()
        view = await execution.view()
    assert view["errors"] == []
    told = [str(one["message"]) for one in cast("list[JsonObject]", view["warnings"])]
    assert any("searched by words only" in one for one in told)


async def test_a_ping_of_the_scripted_model_reports_that_it_is_scripted() -> None:
    async with Pointsman("memory:", settings=Settings(), model="scripted") as app:
        [told] = await ping_models(app.context)
    assert (told["name"], told.get("scripted")) == ("scripted", True)
