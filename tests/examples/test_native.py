"""The native examples: the research workflow, and common patterns."""

from __future__ import annotations

from typing import cast

import pytest

from pointsman.app import Workflow
from pointsman.executions.opening import GivenAnswer
from pointsman.values import Json, JsonObject
from tests.examples.example_runs import EXAMPLES, play

RESEARCH = "research/research.json"
TOPIC: JsonObject = {"topic": "tidal power"}


@pytest.mark.requirement("S1-16", "S1-17", "S1-18", "S1-19", "S1-21", "S1-22", "S1-23", "S1-24", "S1-25", "S1-26")
def test_the_research_workflow_has_the_texts_of_its_document() -> None:
    workflow = Workflow.load(EXAMPLES / RESEARCH).definition
    assert (workflow.id, workflow.version, workflow.enabled) == ("research-workflow", "1.0.0", True)
    assert workflow.name is not None
    assert [workflow.name.in_(language) for language in ("en", "de", "fr")] == [
        "Research Workflow",
        "Forschungs-Workflow",
        "Research Workflow",
    ]
    config = workflow.config
    assert config is not None
    assert config.limits is not None
    assert (config.observability, config.persistence) == ("full", "session")
    assert (config.error_handling, config.human_in_loop) == ("llm_recovery", "approval_gates")
    assert config.limits.execution_time is not None
    assert (config.limits.execution_time.seconds, config.limits.nodes) == (300, 50)


@pytest.mark.requirement("S1-30", "T1-21")
def test_its_comments_are_read_over() -> None:
    text = (EXAMPLES / RESEARCH).read_text(encoding="utf-8")
    assert '"full",           // minimal | standard | full' in text
    assert Workflow.load(EXAMPLES / RESEARCH).problems == ()


@pytest.mark.requirement("S1-40", "S1-41", "S1-43", "S1-141", "S1-128")
def test_one_search_per_question_and_the_findings_in_their_order() -> None:
    state = cast(JsonObject, play(RESEARCH, TOPIC).view["state"])
    questions = cast("list[Json]", cast(JsonObject, state["plan"])["questions"])
    assert len(questions) == len(cast("list[Json]", state["findings"])) == 3
    assert state["sources"] == ["Energy Atlas", "Cost Review", "Harbour Post"]


@pytest.mark.requirement("S1-35", "S1-36")
def test_each_search_calls_its_tool_and_answers_from_what_it_found() -> None:
    asked = play(RESEARCH, TOPIC).asked_of("search")
    assert len(asked) == 6
    found = [str(request.messages[-1]) for request in asked if "Silt and permits." in str(request.messages[-1])]
    assert len(found) == 1


@pytest.mark.requirement("S1-42", "S1-O11", "T1-13", "S1-129")
def test_a_person_publishes_or_has_it_written_again() -> None:
    published = play(RESEARCH, TOPIC, answers=(GivenAnswer("review", "publish"),))
    rewritten = play(RESEARCH, TOPIC, answers=(GivenAnswer("review", "rewrite", {"wish": "shorter"}),))
    assert published.path[-3:] == ["review", "remember", "end"]
    assert rewritten.path[-5:] == ["review", "synthesis", "sure", "remember", "end"]
    response = cast(JsonObject, cast(JsonObject, rewritten.view["state"])["humanResponse_review"])
    assert response == {"response": "rewrite", "data": {"wish": "shorter"}}


@pytest.mark.requirement("S1-04", "S0-63")
@pytest.mark.parametrize(
    ("pattern", "given", "path"),
    [
        ("sequential", {"topic": "tides"}, ["outline", "write", "shorten"]),
        ("fan-out-map-reduce", {"reviews": ["fine", "broken"]}, ["map", "map", "each", "all", "reduce"]),
        (
            "supervisor",
            {"goal": "tides"},
            ["start", "supervisor", "researcher", "supervisor", "writer", "supervisor"],
        ),
    ],
)
def test_each_way_to_work_together_has_a_template_that_runs(pattern: str, given: Json, path: list[str]) -> None:
    assert play(f"patterns/{pattern}.yaml", given).path == path


@pytest.mark.requirement("S0-63")
def test_the_supervisor_receives_the_answers_of_its_workers() -> None:
    last = play("patterns/supervisor.yaml", {"goal": "tides"}).asked_of("supervisor")[-1]
    assert "Tides are regular." in str(last.messages)
    assert "Tides turn turbines." in str(last.messages)
