"""Verifiers, planners and records: work of several model calls, or of none."""

from __future__ import annotations

from typing import cast

import pytest

from pointsman.executors.verifier import Judgement, VerifierLimits, judged
from pointsman.tools.functions import tool
from pointsman.values import Json, JsonObject
from tests.executors.stage import Stage, StagedRun, agent, work

FIRST = Judgement()
PLAN = """
rules:
  - {purpose: planning, json: {tasks: [{title: A, description: Do A.}, {title: B, description: Do B.}]}}
  - {purpose: task, contains: Do B, text: B is done.}
  - {purpose: task, contains: Do A, text: A is done.}
  - {purpose: synthesis, text: All is done.}
"""


def said(verdict: str, score: float = 50, *issues: str) -> Judgement:
    return Judgement(verdict=verdict, score=score, issues=[*issues])


def test_work_below_the_threshold_does_not_pass() -> None:
    bounds = VerifierLimits(threshold=80)
    assert judged(said("pass", 79.5), FIRST, bounds).verdict == "retry"
    assert judged(said("pass", 80), FIRST, bounds).verdict == "pass"
    assert judged(said("pass", 1), FIRST, VerifierLimits()).verdict == "pass"


def test_a_verifier_fails_after_the_maximum_of_revisions() -> None:
    bounds, verdicts = VerifierLimits(max_retries=2), list[str]()
    last = FIRST
    for number in range(3):
        last = judged(said("retry", number), last, bounds)
        verdicts.append(last.verdict)
    assert verdicts == ["retry", "retry", "fail"]
    assert last.reason == "(after 2 revisions)"
    assert judged(said("retry"), last, bounds).retries == 1


def test_a_verifier_can_allow_no_revision() -> None:
    assert judged(said("retry"), FIRST, VerifierLimits(max_retries=0)).verdict == "fail"


def test_a_verifier_allows_three_revisions_by_default() -> None:
    last = FIRST
    for number in range(3):
        last = judged(said("retry", number), last, VerifierLimits())
    assert (last.verdict, last.retries) == ("retry", 3)
    assert judged(said("retry", 9), last, VerifierLimits()).verdict == "fail"


def test_a_repeated_verdict_fails_in_any_order_of_its_issues() -> None:
    bounds = VerifierLimits(max_retries=9, stall_limit=3)
    one = judged(said("retry", 40, "No source.", "Too long."), FIRST, bounds)
    two = judged(said("retry", 40, "too  long.", "no source."), one, bounds)
    three = judged(said("retry", 40, "No source.", "Too long."), two, bounds)
    assert [(at.verdict, at.stalls) for at in (one, two, three)] == [("retry", 0), ("retry", 1), ("fail", 0)]
    assert judged(said("retry", 41, "No source.", "Too long."), two, bounds).verdict == "retry"


async def test_a_verifier_receives_criteria_work_and_its_earlier_verdicts() -> None:
    stage = Stage("rules: [{json: {verdict: retry, score: 30, issues: [Whales.], reason: Untrue.}}]")
    before: JsonObject = {
        "verdict": "retry",
        "score": 10,
        "issues": ["Sharks."],
        "reason": "",
        "retries": 1,
        "stalls": 0,
    }
    given: JsonObject = {"criteria": "True.", "system": None, "value": {"text": "x"}, "before": before}
    report = await stage.done(work("verifier", given), agent(kind="verifier", criteria="True.", mode="adversarial"))
    assert report.next == "retry"
    assert report.result == {
        "verdict": "retry",
        "score": 30,
        "issues": ["Whales."],
        "reason": "Untrue.",
        "retries": 2,
        "stalls": 0,
    }
    (asked,) = stage.models.requests
    assert asked.purpose == "validation"
    assert "try to refute it" in asked.system
    told = cast("str", cast("JsonObject", stage.models.messages[0][0])["content"])
    assert told == 'Criteria:\nTrue.\n\nThe work:\n{"text": "x"}\n\nOf the version before you said:\n- Sharks.'


async def test_a_verifier_may_use_tools() -> None:
    @tool
    def look_up(what: str) -> str:
        """Look it up."""
        return f"{what}: no"

    script = """
    rules:
      - answers:
          - {toolCalls: [{name: look_up, arguments: {what: whales}}]}
          - {json: {verdict: fail, score: 0, issues: [], reason: Looked up.}}
    """
    stage = Stage(script, look_up)
    spec = agent(kind="verifier", criteria="True.", tools=["look_up"], maxToolRounds=2)
    report = await stage.done(work("verifier", {"criteria": "True.", "value": "x", "before": None}), spec)
    assert report.next == "fail"
    assert report.usage is not None
    assert (report.usage.model_calls, report.usage.tool_calls) == (2, 1)


async def test_a_verifier_without_a_verdict_fails() -> None:
    stage = Stage('rules: [{text: "I would say it is fine."}]')
    given: JsonObject = {"criteria": "True.", "value": "x", "before": None}
    failure = await stage.failure(work("verifier", given), agent(kind="verifier", criteria="True."))
    assert failure.code == "output-schema"


async def test_a_planner_assigns_tasks_only_to_known_agents() -> None:
    script = "rules: [{json: {tasks: [{title: A, description: Do A., assigned_agent: writer}]}}]"
    stage = Stage(script)
    given: JsonObject = {"goal": "All.", "agents": {"writer": "You write."}}
    report = await stage.done(work("planner", given), agent(kind="planner", goal="All."))
    assert report.result == {
        "tasks": [{"id": "task-1", "title": "A", "description": "Do A.", "assigned_agent": "writer"}]
    }
    strange = Stage(script.replace("assigned_agent: writer", "assigned_agent: nobody"))
    assert (await strange.failure(work("planner", given), agent(kind="planner", goal="All."))).code == "output-schema"


async def test_a_plan_has_a_maximum_of_tasks() -> None:
    tasks = ", ".join(f"{{title: t{n}, description: d}}" for n in range(3))
    stage = Stage(f"rules: [{{json: {{tasks: [{tasks}]}}}}]")
    failure = await stage.failure(work("planner", {"goal": "x"}), agent(kind="planner", goal="x", maxTasks=2))
    assert failure.code == "output-schema"


async def test_tasks_run_in_order_with_earlier_results_and_a_summary() -> None:
    stage, run = Stage(PLAN), StagedRun()
    report = await stage.done(
        work("planner", {"goal": "All."}), agent(kind="planner", goal="All.", synthesize=True), run
    )
    assert report.result == {
        "tasks": [
            {"id": "task-1", "title": "A", "description": "Do A.", "result": "A is done."},
            {"id": "task-2", "title": "B", "description": "Do B.", "result": "B is done."},
        ],
        "text": "All is done.",
    }
    second = cast("str", cast("JsonObject", stage.models.messages[2][0])["content"])
    assert "What came of the tasks before:\n\nA:\nA is done." in second
    assert [delta["number"] for delta in run.deltas if delta["kind"] == "task"] == [1, 2]


async def test_a_planner_continues_with_its_present_task_after_a_crash() -> None:
    whole = StagedRun()
    await Stage(PLAN).done(
        work("planner", {"goal": "All."}), agent(kind="planner", goal="All.", synthesize=True), whole
    )
    assert [kind for _, kind in whole.effects.paid] == ["model"] * 4
    again = StagedRun({number: value for number, value in whole.effects.values.items() if number <= 2})
    report = await Stage(PLAN).done(
        work("planner", {"goal": "All."}), agent(kind="planner", goal="All.", synthesize=True), again
    )
    assert [number for number, _ in again.effects.paid] == [3, 4]
    assert cast("JsonObject", report.result)["text"] == "All is done."


async def test_a_failed_task_fails_the_planner() -> None:
    stage = Stage("rules: [{purpose: task, fail: 503}]")
    failure = await stage.failure(work("planner", {"goal": "x"}), agent(kind="planner", goal="x", taskTemplate={}))
    assert failure.code == "model-unavailable"


@pytest.mark.parametrize(
    ("extraction", "source", "status", "quotes"),
    [
        ({"fact": "a"}, None, "valid", None),
        ('Here: {"fact": "a"}', None, "valid", None),
        ({"fact": 1}, None, "invalid", None),
        ("no JSON at all", None, "invalid", None),
        (None, None, "invalid", None),
        ({"fact": "a", "quote": "It  IS “so”"}, 'and it is "so".', "valid", [("It  IS “so”", True)]),
        ({"fact": "a", "quote": "made up"}, "and it is so.", "unsupported", [("made up", False)]),
        ({"fact": "a", "quote": "somewhere"}, None, "valid", [("somewhere", None)]),
        (
            {"fact": "a", "evidence": [{"quotes": ["one", {"text": "two"}]}, {"quote": " "}]},
            "one",
            "unsupported",
            [("one", True), ("two", False)],
        ),
    ],
)
async def test_a_record_states_whether_it_is_valid(
    extraction: Json, source: Json, status: str, quotes: list[tuple[str, bool | None]] | None
) -> None:
    schema: JsonObject = {"type": "object", "required": ["fact"], "properties": {"fact": {"type": "string"}}}
    spec = agent(kind="structured-record", schema=schema, sourceSystem="archive")
    report = await Stage().done(
        work("structured-record", {"extraction": extraction, "source": source, "index": 3}), spec
    )
    record = cast("JsonObject", report.result)
    assert (record["status"], record["sourceSystem"], record["index"]) == (status, "archive", 3)
    found = cast("list[JsonObject] | None", record.get("quotes"))
    assert (None if found is None else [(quote["text"], quote["found"]) for quote in found]) == quotes
    assert ("problems" in record) is (status == "invalid")


async def test_a_record_with_an_invalid_schema_is_a_failure() -> None:
    spec = agent(kind="structured-record", schema={"type": "nonsense"})
    failure = await Stage().failure(work("structured-record", {"extraction": {}}), spec)
    assert failure.code == "output-schema-invalid"
