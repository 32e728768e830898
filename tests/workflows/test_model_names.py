"""Names of models: without a provider, of an unknown provider, misspelt, and arbitrary ones."""

from __future__ import annotations

import pytest

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem
from pointsman.settings import Settings
from pointsman.values import Json
from pointsman.workflows.models import model_name_problems


def problems(name: str, *, settings: Settings | None = None, model: str | None = None) -> list[Problem]:
    nodes: list[Json] = [{"id": "a", "type": "agent", "config": {"model": name, "prompt": "x"}}]
    workflow, wrong = WorkflowDefinition.from_document({"pointsman": 1, "id": "x", "nodes": nodes, "edges": []})
    assert workflow is not None
    assert not wrong
    return [*model_name_problems(workflow, (settings or Settings()).providers, model)]


@pytest.mark.parametrize(
    ("name", "severity", "meant"),
    [
        ("gtp-5", "error", "openai:gpt-5"),
        ("gpt-4o", "error", "openai:gpt-4o"),
        ("claude-sonnet-4-5", "error", "anthropic:claude-sonnet-4-5"),
        ("gemini-2.0-flash", "error", "google:gemini-2.0-flash"),
        ("xyzzy", "error", None),
        ("openai:", "error", None),
        ("opnai:gpt-5", "error", "openai:gpt-5"),
        ("nobody:none", "error", None),
        ("openai:gtp-5", "warning", "openai:gpt-5"),
        ("anthropic:claude-sonet-4-5", "warning", "anthropic:claude-sonnet-4-5"),
    ],
)
def test_an_unknown_model_name_is_reported_with_a_suggestion(name: str, severity: str, meant: str | None) -> None:
    (problem,) = problems(name)
    assert (problem.code, problem.severity, problem.pointer) == ("unknown-model", severity, "/nodes/0/config/model")
    assert (problem.fix[0]["value"] if problem.fix else None) == meant
    assert [one.severity for one in problems(name, model="scripted")] == ["warning"]


@pytest.mark.parametrize(
    "name",
    [
        "scripted",
        "scripted:x",
        "${MODEL}",
        "openai:gpt-5",
        "openai:ft:gpt-4o:me::1",
        "ollama:whatever",
        "vllm:mine/own",
        "openai-compatible:any",
        "openrouter:some/new",
        "xai:grok-99",
        "azure:my-deployment",
        "mine:gtp-5",
    ],
)
def test_names_that_may_exist_are_not_reported(name: str) -> None:
    mine = Settings.model_validate({"providers": {"mine": {"base_url": "http://a/v1"}}})
    assert problems(name, settings=mine if name.startswith("mine") else None) == []


def test_the_default_model_of_a_workflow_is_checked() -> None:
    document: dict[str, Json] = {
        "pointsman": 1,
        "id": "x",
        "config": {"defaultModel": "gtp-5"},
        "nodes": [],
        "edges": [],
    }
    workflow, _ = WorkflowDefinition.from_document(document)
    assert workflow is not None
    assert [one.pointer for one in model_name_problems(workflow, (), None)] == ["/config/defaultModel"]
