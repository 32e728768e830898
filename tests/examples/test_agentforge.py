"""The agentforge pipeline: requests, keys and times, counts, and the result."""

from __future__ import annotations

import json
from typing import cast

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.executions.opening import GivenAnswer
from pointsman.ports import ModelRequest
from pointsman.settings import Settings
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.values import Json, JsonObject
from pointsman.workflows.scripts import parse_script
from tests.examples.example_runs import EXAMPLES, RunResult, overheard, play

PIPELINE = "agentforge/agentforge.yaml"
PROPOSAL: JsonObject = {"goal": "Write a proposal for optimizing warehouse operations"}
MEMO: JsonObject = {"goal": "Write a memo about the warehouse"}
PAUSED = ("developer", "writer", "validation", "reviewer")


@pytest.fixture(scope="module")
def repaired() -> RunResult:
    """The document has issues."""
    return play(PIPELINE, PROPOSAL)


@pytest.fixture(scope="module")
def clean() -> RunResult:
    """The document has no issues."""
    return play(PIPELINE, MEMO)


@pytest.mark.requirement("S2-09", "S2-13", "S2-15")
def test_five_agents_work_one_after_another_with_one_call_each(repaired: RunResult) -> None:
    agents = ["ceo_research", "developer", "writer", "validation", "reviewer"]
    assert [node for node in repaired.path if node not in ("metrics", "end")] == agents
    assert [request.hints["node"] for request in repaired.asked] == agents
    assert cast(JsonObject, repaired.view["usage"])["modelCalls"] == 5


@pytest.mark.requirement(
    "S2-16", "S2-17", "S2-18", "S2-19", "S2-22", "S2-25", "S2-30", "S2-35", "S2-36", "S2-68", "S2-72", "T2-21"
)
@pytest.mark.parametrize(
    ("node", "role", "temperature", "key", "purpose"),
    [
        ("ceo_research", "you are the CEO agent.", 0.7, 0, "generation"),
        ("developer", "you are the developer agent.", 0.7, 1, "generation"),
        ("writer", "you are the writer agent.", 0.7, 2, "generation"),
        ("validation", "you are the confidence agent.", 0.3, 0, "validation"),
        ("reviewer", "you are the reviewer agent.", 0.5, 1, "generation"),
    ],
)
def test_each_agent_has_its_role_temperature_key_and_purpose(
    repaired: RunResult, node: str, role: str, temperature: float, key: int, purpose: str
) -> None:
    (request,) = repaired.asked_of(node)
    assert (request.system, request.temperature, request.key_index, request.purpose) == (
        role,
        temperature,
        key,
        purpose,
    )
    (account,) = (one for one in _accounts(repaired) if one["node"] == node)
    assert account["model"] == "groq:llama-3.1-8b-instant"


@pytest.mark.requirement("S2-10", "S2-11", "S2-71")
def test_every_agent_but_the_first_waits_two_seconds(repaired: RunResult) -> None:
    assert _pauses(repaired) == dict.fromkeys(PAUSED, 2000)


@pytest.mark.requirement("S2-11")
def test_the_pauses_can_be_left_out() -> None:
    assert _pauses(play(PIPELINE, PROPOSAL, settings={"delays": False})) == {}


@pytest.mark.requirement("S2-20", "S2-24", "S2-28", "S2-31", "S2-08", "S2-14")
def test_each_agent_leaves_its_part_of_the_state(repaired: RunResult) -> None:
    state = cast(JsonObject, repaired.view["state"])
    assert list(state) == ["goal", "plan", "research", "developer", "writer", "confidence", "actions", "reviewer"]
    assert cast("list[Json]", state["plan"])[0] == {"step": 1, "task": "Analyze current warehouse layout"}
    assert "```mermaid" in str(state["developer"])
    assert cast(JsonObject, state["confidence"])["hallucination_risk"] == "medium"


@pytest.mark.requirement("S2-20")
def test_a_fenced_and_chatty_plan_is_understood() -> None:
    plan = json.dumps({"plan": [{"step": 1, "task": "look"}], "research": "none"})
    chatty = json.dumps(f"Sure! Here it is:\n```json\n{plan}\n```\nAnything else?")
    played = play(PIPELINE, MEMO, script=f"rules:\n- {{node: ceo_research, text: {chatty}}}\n")
    assert (played.output["plan"], played.output["research"]) == ([{"step": 1, "task": "look"}], "none")


def _report(**said: Json) -> JsonObject:
    about: JsonObject = {"confidence_reasoning": "", "hallucination_reasoning": "", "hallucination_issues": []}
    return {**about, "confidence_score": 90, "hallucination_risk": "low", **said}


@pytest.mark.requirement("S2-31")
def test_a_report_that_is_not_one_is_asked_for_again() -> None:
    wrong, right = json.dumps(_report(hallucination_risk="extreme")), json.dumps(_report(confidence_score=99))
    rules = f"rules:\n- {{node: validation, answers: [{{json: {wrong}}}, {{json: {right}}}]}}\n"
    played = play(PIPELINE, MEMO, script=rules)
    assert cast(JsonObject, played.output["confidence"])["confidence_score"] == 99
    assert len(played.asked_of("validation")) == 2


@pytest.mark.requirement("S2-31", "S2-O7", "T2-16")
@pytest.mark.parametrize(
    ("said", "score", "risk"),
    [
        ({"confidence_score": 130, "hallucination_risk": "HIGH"}, 100, "high"),
        ({"confidence_score": -4}, 0, "low"),
        ({"confidence_score": "85 %", "hallucination_risk": " Medium "}, 85, "medium"),
        ({"confidence_score": "17/20"}, 85, "low"),
    ],
)
def test_a_score_of_any_notation_is_a_number_from_0_to_100(said: JsonObject, score: int, risk: str) -> None:
    rules = f"rules:\n- {{node: validation, answers: [{{json: {json.dumps(_report(**said))}}}]}}\n"
    played = play(PIPELINE, MEMO, script=rules)
    confidence = cast(JsonObject, played.output["confidence"])
    assert (confidence["confidence_score"], confidence["hallucination_risk"]) == (score, risk)
    assert len(played.asked_of("validation")) == 1


@pytest.mark.requirement("S2-O7")
def test_the_reviewer_reports_what_it_changed(repaired: RunResult) -> None:
    reviewer = cast(JsonObject, repaired.output["reviewer"])
    changes = cast("list[str]", reviewer["changes_made"])
    assert "# Warehouse Optimization Proposal (REVISED)" in changes
    assert all(line in str(reviewer["document"]) for line in changes)
    assert "## Executive Summary" not in changes


@pytest.mark.requirement("S2-23", "S2-26", "S2-37", "S2-39", "T2-10", "T2-11", "T2-18")
def test_the_prompts_carry_what_earlier_agents_made(repaired: RunResult) -> None:
    prompts = {str(request.hints["node"]): _prompt(request) for request in repaired.asked}
    state = cast(JsonObject, repaired.view["state"])
    assert "Mermaid diagram" in prompts["developer"]
    assert str(state["research"]) in prompts["writer"]
    assert str(state["developer"]) in prompts["writer"]
    for section in ("Executive Summary", "Background & Research", "Proposed Solution", "Implementation Plan"):
        assert f"- {section}" in prompts["writer"]
    assert '"hallucination_issues": ["issue 1", "issue 2", ...]' in prompts["validation"]
    assert str(state["writer"]) in prompts["validation"], "the whole document, not its beginning"
    assert str(state["writer"]) in prompts["reviewer"]
    assert "Implementation timeline (6 months) not validated" in prompts["reviewer"]
    assert "Do NOT introduce new assumptions" in prompts["reviewer"]


@pytest.mark.requirement("S2-37")
def test_the_reviewer_receives_the_goal_and_the_parts_to_keep() -> None:
    wishes: JsonObject = {"revision_instruction": "No prices.", "constraints": {"pages": 2}}
    prompt = _prompt(play(PIPELINE, {**PROPOSAL, **wishes}).asked_of("reviewer")[0])
    assert "No prices." in prompt
    assert '{"pages": 2}' in prompt


@pytest.mark.requirement("S2-34", "S2-41", "T2-5")
@pytest.mark.parametrize(
    ("score", "issues", "reviewed"), [(80, [], False), (79, [], True), (100, ["one"], True), (79, ["one"], True)]
)
def test_the_reviewer_works_below_80_or_with_an_issue(*, score: int, issues: list[Json], reviewed: bool) -> None:
    report: JsonObject = {
        "confidence_score": score,
        "confidence_reasoning": "",
        "hallucination_risk": "low",
        "hallucination_reasoning": "",
        "hallucination_issues": issues,
    }
    played = play(PIPELINE, MEMO, script=f"rules:\n- {{node: validation, json: {json.dumps(report)}}}\n")
    assert ("reviewer" in played.path) is reviewed


@pytest.mark.requirement("S2-38", "S2-40", "S2-41", "S2-47", "S2-48", "S2-49", "T2-12", "T2-13", "T2-14")
def test_the_output_is_the_whole_record(repaired: RunResult, clean: RunResult) -> None:
    fields = "session_id goal plan research developer writer confidence reviewer final email_sent created_at"
    assert list(repaired.output) == fields.split()
    reviewer = cast(JsonObject, repaired.output["reviewer"])
    assert reviewer["status"] == "repaired"
    assert repaired.output["final"] == reviewer["document"] != repaired.output["writer"]
    assert clean.output["reviewer"] is None
    assert clean.output["final"] == clean.output["writer"]
    assert repaired.output["email_sent"] is False
    assert json.loads(json.dumps(repaired.output)) == repaired.output


@pytest.mark.requirement("S2-65")
def test_the_metrics_are_published_and_block_nothing() -> None:
    played = play(PIPELINE, PROPOSAL)
    assert (played.view["status"], "metrics" in played.path) == ("completed", True)


@pytest.mark.requirement("S2-50", "S2-51", "T2-4")
def test_calls_keys_and_time_are_accounted_per_node(repaired: RunResult) -> None:
    rows = [(row["node"], row["modelCalls"], row["keyIndex"]) for row in _accounts(repaired)]
    assert rows == [
        ("ceo_research", 1, 0),
        ("developer", 1, 1),
        ("writer", 1, 2),
        ("validation", 1, 0),
        ("reviewer", 1, 1),
    ]
    timed = play(PIPELINE, MEMO, script="rules:\n- {node: developer, delay: 7s}\n")
    assert {row["node"]: row["seconds"] for row in _accounts(timed)}["developer"] == 7


@pytest.mark.requirement("S2-52", "T2-2")
def test_a_saving_in_calls_follows_from_two_executions(repaired: RunResult, clean: RunResult) -> None:
    calls = [sum(cast(int, row["modelCalls"]) for row in _accounts(played)) for played in (repaired, clean)]
    assert calls == [5, 4]
    assert calls[1] == cast(JsonObject, clean.view["usage"])["modelCalls"]


@pytest.mark.requirement("S2-53", "S2-55", "T2-6", "T2-7")
def test_an_agent_has_two_attempts_a_second_apart() -> None:
    played = play(PIPELINE, MEMO, script="rules:\n- {node: ceo_research, attempt: 1, fail: 503}\n")
    spans = [span for span in _spans(played) if span["node"] == "ceo_research"]
    assert [(span["kind"], span["status"]) for span in spans] == [
        ("work", "retried"),
        ("wait", "done"),
        ("work", "done"),
    ]
    assert 900 <= cast(float, spans[1]["endMs"]) - cast(float, spans[1]["startMs"]) <= 1100
    assert len(play(PIPELINE, MEMO, script="rules:\n- {node: ceo_research, fail: 503}\n").asked) == 2


@pytest.mark.requirement("S2-54", "T2-8")
def test_a_failure_is_never_taken_for_content() -> None:
    played = play(PIPELINE, MEMO, script="rules:\n- {node: developer, fail: 503}\n")
    assert (played.view["status"], played.view["output"]) == ("failed", None)
    assert played.asked_of("writer") == []
    assert "ERROR" not in json.dumps(played.view["state"])


@pytest.mark.requirement("S2-58", "S2-59", "S2-O6", "T2-17")
def test_the_retrying_variant_rewrites_with_the_issues_and_stops_at_three() -> None:
    again = play("agentforge/retry.yaml", {"goal": "Write a report"}).asked_of("writer")
    assert len(again) == 2
    assert "Costs have no source" not in _prompt(again[0])
    assert "Costs have no source" in _prompt(again[1])
    assert len(play("agentforge/retry.yaml", {"goal": "Write a pamphlet"}).asked_of("writer")) == 3


@pytest.mark.requirement("S2-66")
def test_the_blocking_variant_lets_nothing_weak_pass_without_a_person() -> None:
    held = play("agentforge/blocking.yaml", {"goal": "Write a pamphlet"})
    assert (held.view["status"], held.view["output"]) == ("waiting", None)
    assert (len(held.asked_of("reviewer")), len(held.asked_of("validation"))) == (2, 3)
    released = play(
        "agentforge/blocking.yaml", {"goal": "Write a pamphlet"}, answers=(GivenAnswer("release", "approve"),)
    )
    assert str(released.output["final"]).startswith("# Warehouse Optimization Proposal (REVISED)")


@pytest.mark.requirement("S2-61", "S2-62", "T2-15")
def test_a_failed_pipeline_resumes_at_its_failed_step_without_repeated_calls() -> None:
    rules = "rules:\n- {node: validation, times: 1, fail: 401}\n"

    async def run() -> tuple[str, JsonObject, str]:
        script, settings = parse_script(rules), Settings(store="memory:")
        async with Pointsman(settings=settings, model="scripted", script=script, clock=VirtualClock()) as app:
            failed = await app.start(Workflow.load(EXAMPLES / PIPELINE), MEMO)
            status, state = await failed.settled(), cast(JsonObject, (await failed.view())["state"])
            taken_up = await app.open(failed.id)
            await taken_up.retry()
            return status, state, await taken_up.settled()

    with overheard() as requests:
        status, state, after = run_virtually(run())
    asked = [request.hints["node"] for request in requests]
    assert (status, after) == ("failed", "completed")
    assert {"plan", "research", "developer", "writer"} <= set(state), "all that was made before is kept"
    assert [asked.count(node) for node in ("ceo_research", "developer", "writer", "validation")] == [1, 1, 1, 2]


def _accounts(played: RunResult) -> list[JsonObject]:
    return cast("list[JsonObject]", played.timeline["nodes"])


def _spans(played: RunResult) -> list[JsonObject]:
    return cast("list[JsonObject]", played.timeline["spans"])


def _pauses(played: RunResult) -> dict[str, int]:
    """Return node -> milliseconds of its pause before its start."""
    waits = [span for span in _spans(played) if span["kind"] == "wait"]
    return {str(span["node"]): round(cast(float, span["endMs"]) - cast(float, span["startMs"])) for span in waits}


def _prompt(request: ModelRequest) -> str:
    return str(cast(JsonObject, request.messages[-1])["content"])
