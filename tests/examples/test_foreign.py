"""The examples in foreign formats: their meaning for their authors, and the results of `check`."""

from __future__ import annotations

from typing import cast

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.auth.subjects import InputInvalid
from pointsman.engine.decide.human_task_answers import ActionNotOffered
from pointsman.executions.opening import GivenAnswer
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject
from pointsman.workflows.scripts import parse_script
from tests.examples.example_runs import EXAMPLES, RunResult, play

DESK = "news-desk/news-desk.json"
FINDER = "restaurant-finder/restaurant-finder.json"
GATE = "review_checkpoint"
AGENTS = ("TRIAGE", "AISEARCH", "AISEARCHSQL", "REPORTER", "REVIEWER")


async def codes(file: str, settings: Settings) -> list[tuple[str, str, str]]:
    async with Pointsman("memory:", settings=settings, model="scripted") as app:
        checked = await app.check(Workflow.load(EXAMPLES / file))
    return [(p.severity, p.code, p.pointer) for p in checked.problems if p.code != "unknown-tool"]


def reporter(rules: str, given: Json) -> RunResult:
    """Run the news reporter with its agents named by variables."""
    variables = {f"AGENT_ID_{name}": name.lower() for name in AGENTS}
    return play("news-desk/news-reporter.json", given, script=f"rules:\n{rules}", settings={"variables": variables})


def verdicts(played: RunResult) -> dict[str, int]:
    """Return item -> the number of its reviews."""
    state = cast(JsonObject, played.view["state"])
    return {item: len(cast("list[Json]", said)) for item, said in cast(JsonObject, state["verdicts"]).items()}


@pytest.mark.requirement("S3-67", "T3-1", "T3-2", "T3-8", "S3-65", "S3-66")
async def test_the_news_reporter_loads_with_the_warnings_it_deserves() -> None:
    found = await codes("news-desk/news-reporter.json", Settings())
    assert [one for one in found if one[0] != "error"] == [
        ("note", "fanout-without-items", "/nodes/4"),
        ("note", "parallel-without-join", "/nodes/4"),
        ("warning", "loop-changes-nothing", "/nodes/6"),
    ]
    assert [code for severity, code, _ in found if severity == "error"] == ["unresolved-variable"] * 5


@pytest.mark.requirement("S3-68", "S3-69", "S3-63")
@pytest.mark.parametrize(("preferred", "search"), [("sql", "search_sql"), ("text", "search_aisearch")])
def test_one_search_runs(preferred: str, search: str) -> None:
    rules = (
        f"- {{node: triage, json: {{preferred_agent: {preferred}}}}}\n- {{node: review, json: {{decision: accept}}}}\n"
    )
    played = reporter(rules, "harbour strike")
    assert played.path == ["triage", "select_search", search, "report_branch", "review_loop", "review", "report_fanout"]


@pytest.mark.requirement("S3-70", "S3-71", "S3-72", "S3-73", "T3-4", "T3-5", "T3-6")
def test_each_item_is_drafted_once_and_reviewed_until_accepted_three_times_at_most() -> None:
    rules = (
        "- {node: review, item: first, json: {decision: accept}}\n"
        "- {node: review, item: third, visit: 3, json: {decision: accept}}\n"
        "- {node: review, json: {decision: revise}}\n"
    )
    played = reporter(rules, {"goal": "strike", "targets": ["first", "third", "never"]})
    assert played.view["status"] == "completed"
    assert played.path.count("report_branch") == 3
    assert list(cast(JsonObject, cast(JsonObject, played.view["state"])["drafts"])) == ["first", "third", "never"]
    assert verdicts(played) == {"first": 1, "third": 3, "never": 3}


@pytest.mark.requirement("S3-O1", "S3-O2", "S3-O4")
async def test_the_full_desk_has_nothing_to_complain_about() -> None:
    assert await codes(DESK, Settings()) == []


@pytest.mark.requirement("S3-O6")
@pytest.mark.parametrize(
    ("strategy", "output"),
    [("stitch", "### radio\nR\n\n---\n\n### web\nW"), ("concat_text", "R | W"), ("collect_list", ["R", "W"])],
)
async def test_the_desk_merges_as_its_document_requires(strategy: str, output: Json) -> None:
    document = cast(JsonObject, Workflow.load(EXAMPLES / DESK).original)
    nodes = cast("list[JsonObject]", document["nodes"])
    nodes[-1] = {**nodes[-1], "params": {"merge_key": "drafts", "strategy": strategy}}
    drafts = await _drafted(Workflow.of({**document, "nodes": [*nodes]}, name="news-desk"))
    assert drafts == output


@pytest.mark.requirement("S3-O7", "T3-8", "T3-9")
def test_the_improved_script_is_what_the_next_review_sees() -> None:
    played = play(DESK, {"goal": "harbour strike", "targets": ["web"]})
    seen = [str(cast(JsonObject, request.messages[-1])["content"]) for request in played.asked_of("review")]
    assert len(seen) == 3
    assert ["two ships wait" in text for text in seen] == [False, False, True]


@pytest.mark.requirement("S4-30", "S4-28", "S4-29", "T4-2", "S4-19")
def test_the_restaurant_finder_waits_for_a_person_who_sees_the_list() -> None:
    played = play(FINDER, {"user_query": "ramen"})
    (gate,) = cast("list[JsonObject]", played.view["waiting"])
    assert (played.view["status"], gate["nodeId"]) == ("waiting", GATE)
    assert [option["value"] for option in cast("list[JsonObject]", gate["options"])] == ["approve", "edit", "reject"]
    assert "Koie" in str(gate["shown"])
    assert "Extract restaurant criteria from: ramen" in str(played.asked_of("understand")[0].messages)


@pytest.mark.requirement("S4-31", "S4-32", "S4-33", "T4-6")
@pytest.mark.parametrize(
    ("answer", "status", "restaurants"),
    [
        (GivenAnswer(GATE, "approve"), "completed", ["Koie", "Hrimnir"]),
        (GivenAnswer(GATE, "edit", {"restaurants": [{"name": "Nam"}]}), "completed", ["Nam"]),
        (GivenAnswer(GATE, "reject"), "cancelled", ["Koie", "Hrimnir"]),
    ],
)
def test_a_person_approves_edits_or_rejects(answer: GivenAnswer, status: str, restaurants: list[str]) -> None:
    played = play(FINDER, {"user_query": "ramen"}, answers=(answer,))
    state = cast(JsonObject, played.view["state"])
    assert played.view["status"] == status
    assert [one["name"] for one in cast("list[JsonObject]", state["restaurants"])] == restaurants


@pytest.mark.requirement("S4-33")
def test_an_action_the_checkpoint_does_not_offer_is_refused() -> None:
    with pytest.raises(ActionNotOffered):
        play(FINDER, {"user_query": "ramen"}, answers=(GivenAnswer(GATE, "skip"),))


@pytest.mark.requirement("S4-34", "T4-7")
def test_a_query_that_is_missing_is_asked_for_by_name() -> None:
    with pytest.raises(InputInvalid, match="user_query"):
        play(FINDER, {})


@pytest.mark.requirement("S4-16", "S4-17")
def test_a_step_sees_its_own_tools_and_fields_only() -> None:
    played = play(FINDER, {"user_query": "ramen in Oslo"})
    tools = {node: [tool.name for tool in played.asked_of(node)[0].tools] for node in ("understand", "search")}
    assert tools == {"understand": [], "search": ["web_search"]}
    assert "ramen in Oslo" not in str(played.asked_of("search")[0].messages)


@pytest.mark.requirement("S4-05", "S4-06", "S4-08", "T4-8", "T4-9")
def test_the_migrated_plan_is_what_lies_beside_it() -> None:
    migrated = Workflow.load(EXAMPLES / "compare-clouds/compare-clouds.plan.json").definition.to_document()
    assert migrated == Workflow.load(EXAMPLES / "compare-clouds/compare-clouds.json").original
    (step,) = cast("list[JsonObject]", migrated["nodes"])
    assert cast(JsonObject, step["config"])["tools"] == ["map_reduce", "deep_research"]
    for said in ("Research each provider", "Use map_reduce", "Need to compare multiple items", "Provider details"):
        assert said in str(cast(JsonObject, step["config"])["prompt"])


@pytest.mark.requirement("S4-O7")
async def test_an_unwritten_field_is_reported_with_a_suggestion() -> None:
    async with Pointsman("memory:", settings=Settings(), model="scripted") as app:
        checked = await app.check(Workflow.load(EXAMPLES / "data-flow-error/finder.json"))
    (found,) = (p for p in checked.problems if p.pointer == "/nodes/search/step/input_fields/0")
    assert (found.code, found.line, found.column) == ("never-written", 27, 26)
    assert "'criterias'" in found.message
    assert "'criteria'" in found.hint


async def _drafted(workflow: Workflow) -> Json:
    """Return the drafts of the desk for radio (R) and web (W)."""
    rules = (
        "rules:\n- {node: triage, json: {preferred_agent: text, intents: [news]}}\n"
        "- {node: report_branch, item: radio, text: R}\n- {node: report_branch, text: W}\n"
        "- {node: review, json: {decision: accept}}\n"
    )
    script = parse_script(rules)
    async with Pointsman("memory:", settings=Settings(), model="scripted", script=script) as app:
        execution = await app.start(workflow, {"goal": "strike", "targets": ["radio", "web"]})
        return await execution.output()
