"""A model that cannot be called from an installation is an error before the first step; the scripted model never
replaces it without a request.
"""

from __future__ import annotations

import json
from typing import cast

import pytest

from pointsman import Pointsman, Workflow
from pointsman.errors import PointsmanError
from pointsman.models.provider import KEYS_OF_PROVIDERS
from pointsman.models.script import Script
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject

REAL = "anthropic:claude-sonnet-4-5"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POINTSMAN_MODEL", *KEYS_OF_PROVIDERS):
        monkeypatch.delenv(name, raising=False)


def document(
    *nodes: Json, id: str = "flow", edges: list[Json] | None = None, config: JsonObject | None = None
) -> Workflow:
    made: JsonObject = {"id": id, "nodes": [*nodes], "edges": edges or []}
    return Workflow.parse(json.dumps(made if config is None else {**made, "config": config}))


def agent(**config: Json) -> JsonObject:
    return {"id": "n", "type": "agent", "config": {"prompt": "Hi.", **config}}


async def refusal(workflow: Workflow, settings: Settings | None = None) -> PointsmanError:
    """Return why it is not started. Nothing was written, and `check` warns of the same."""
    async with Pointsman("memory:", settings=settings or Settings()) as app:
        with pytest.raises(PointsmanError) as caught:
            await app.start(workflow)
        assert await app.executions() == []
        problems = (await app.check(workflow)).problems
        assert (caught.value.code, "warning") in [(one.code, one.severity) for one in problems]
    return caught.value


USES = {
    "agent": document(agent(model=REAL)),
    "default model": document(agent(), config={"defaultModel": REAL}),
    "guardrail": document(agent(model="scripted", guardrails={"after": [{"prompt": "Polite?", "model": REAL}]})),
    "decision": document(
        {"id": "n", "type": "decision", "config": {"llmPrompt": "Which?", "choices": ["a", "b"], "model": REAL}},
        {"id": "a", "type": "end"},
        {"id": "b", "type": "end"},
        edges=[
            {"source": "n", "target": "a", "condition": {"type": "label", "label": "a"}},
            {"source": "n", "target": "b", "condition": {"type": "label", "label": "b"}},
        ],
    ),
    "question on an edge": document(
        {"id": "n", "type": "agent", "config": {"prompt": "Hi.", "model": "scripted"}},
        {"id": "e", "type": "end"},
        edges=[{"source": "n", "target": "e", "condition": {"type": "llm", "prompt": "Done?", "model": REAL}}],
    ),
    "verifier": document({"id": "n", "type": "verifier", "config": {"criteria": "Good.", "model": REAL}}),
    "planner": document({"id": "n", "type": "planner", "config": {"goal": "Win.", "model": REAL}}),
    "task of a planner": document(
        {"id": "n", "type": "planner", "config": {"goal": "x", "model": "scripted", "taskTemplate": {"model": REAL}}}
    ),
    "advice after a failure": document(
        {
            "id": "n",
            "type": "tool",
            "config": {"tool": "calculator", "parameters": {"expression": "1"}},
            "execution": {"errorHandler": "llm_recovery"},
        },
        config={"defaultModel": REAL},
    ),
}


@pytest.mark.parametrize("use", USES)
async def test_a_start_is_refused_if_the_provider_has_no_key(use: str) -> None:
    why = await refusal(USES[use])
    assert why.code == "model-unusable"
    assert "'n'" in str(why)
    assert REAL in str(why)
    assert "ANTHROPIC_API_KEY" in why.hint
    assert "--model scripted" in why.hint


async def test_a_start_is_refused_if_no_model_is_named() -> None:
    why = await refusal(document(agent()))
    assert why.code == "model-unnamed"
    assert "config.defaultModel" in why.hint


async def test_a_start_is_refused_if_a_sub_workflow_needs_the_model() -> None:
    async with Pointsman("memory:", settings=Settings()) as app:
        await app.save(document(agent(model=REAL), id="sub"))
        with pytest.raises(PointsmanError, match=REAL):
            await app.start(document({"id": "call", "type": "workflow", "config": {"workflow": "sub"}}))
        assert await app.executions() == []


async def test_a_variable_with_a_model_name_is_resolved_before_the_check() -> None:
    why = await refusal(document(agent(model="${MODEL}")), Settings(variables={"MODEL": REAL}))
    assert REAL in str(why)


@pytest.mark.parametrize("model", ["antropic:claude", "gpt-5"])
async def test_a_model_name_without_a_provider_is_reported_once_and_refused(model: str) -> None:
    async with Pointsman("memory:", settings=Settings()) as app:
        problems = (await app.check(document(agent(model=model)))).problems
        assert [one.code for one in problems if "model" in one.code] == ["unknown-model"]
        with pytest.raises(PointsmanError):
            await app.start(document(agent(model=model)))
        assert await app.executions() == []


def _missing(module: str) -> bool:
    return False


async def test_a_missing_client_is_reported_with_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    monkeypatch.setattr("pointsman.models.providers.is_importable", _missing)
    why = await refusal(document(agent(model=REAL)))
    assert "pip install 'pointsman[anthropic]'" in why.hint


async def test_a_chain_of_models_needs_one_available_model() -> None:
    async with Pointsman("memory:", settings=Settings()) as app:
        execution = await app.start(document(agent(model=REAL, fallback=["scripted"])))
        assert await execution.settled() == "completed"


async def test_services_without_a_key_can_be_called(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.model_validate({"providers": {"own": {"base_url": "http://127.0.0.1:9/v1"}}})
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://127.0.0.1:9/v1")
    async with Pointsman("memory:", settings=settings) as app:
        for model in ("own:any", "ollama:any"):
            problems = (await app.check(document(agent(model=model)))).problems
            assert [one.code for one in problems if one.code.startswith("model-")] == []


async def test_workflows_that_call_no_model_start_without_one() -> None:
    async with Pointsman("memory:", settings=Settings()) as app:
        execution = await app.start(document({"id": "t", "type": "transform", "config": {"set": {"x": "1"}}}))
        assert await execution.settled() == "completed"


async def test_a_partial_run_needs_only_its_own_models() -> None:
    workflow = document(
        agent(model=REAL),
        {"id": "t", "type": "transform", "config": {"set": {"x": "1"}}},
        edges=[{"source": "n", "target": "t"}],
    )
    async with Pointsman("memory:", settings=Settings()) as app:
        execution = await app.start(workflow, trial={"pinned": {"n": "said"}})
        assert await execution.settled() == "completed"


@pytest.mark.parametrize("way", ["argument", "script", "settings", "start"])
async def test_the_scripted_model_answers_every_agent_on_request(way: str) -> None:
    app = Pointsman(
        "memory:",
        settings=Settings(model="scripted" if way == "settings" else ""),
        model="scripted" if way == "argument" else None,
        script=Script() if way == "script" else None,
    )
    async with app:
        for workflow in USES.values():
            execution = await app.start(workflow, model="scripted" if way == "start" else None)
            assert await execution.settled() in ("completed", "failed", "cancelled")
            errors = cast("list[JsonObject]", (await execution.view())["errors"])
            assert [one for one in errors if str(one["code"]).startswith("model-")] == []


async def test_a_dry_run_needs_no_model() -> None:
    async with Pointsman("memory:", settings=Settings()) as app:
        found = await app.dry_run(document(agent(model=REAL)))
    assert [(one.kind, one.name) for one in found.calls] == [("model", REAL)]


async def test_a_file_can_be_checked_without_any_key() -> None:
    checked = await Pointsman(settings=Settings()).check(document(agent(model=REAL)))
    assert checked.ok
    assert [one.code for one in checked.problems] == ["model-unusable"]


async def test_a_missing_key_does_not_hide_a_misspelt_tool() -> None:
    checked = await Pointsman(settings=Settings()).check(document(agent(model=REAL, tools=["nowhere"])))
    found = {one.code: one.severity for one in checked.problems}
    assert found == {"model-unusable": "warning", "unknown-tool": "error"}
