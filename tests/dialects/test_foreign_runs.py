"""Foreign documents run as their authors expect: read, checked, compiled and executed with a scripted model."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from pointsman.app import Pointsman
from pointsman.definition.model.agents import AgentConfig
from pointsman.executions.execution import Execution
from pointsman.models.script import read_script
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject, json_of
from pointsman.workflows.sources import Workflow
from tests.dialects.corpus_files import CORPUS
from tests.patience import PATIENCE_S

ROLES = ("TRIAGE", "AISEARCH", "AISEARCHSQL", "REPORTER", "REVIEWER", "CLASSIFY", "TABLES", "GRAPH", "TEXT", "WRITE")
VARIABLES = {f"AGENT_ID_{role}": role.lower() for role in (*ROLES, "JUDGE")}
AGENTS = (*VARIABLES.values(), "a", "b", "c", "d", "writer", "editor", "publisher", "checker", "counter", "triage")


async def run(file: str, script: str, given: Json, *answers: tuple[str, str, Json]) -> JsonObject:
    """Return the view of the execution after all answers."""
    settings = Settings(store="memory:", variables=VARIABLES, agents={name: AgentConfig() for name in AGENTS})
    async with Pointsman(settings=settings, model="scripted", script=read_script(script)) as installation:
        source = Workflow.load(str(CORPUS / f"{file}.json"))
        execution = await installation.start(source, given)
        await _settle(execution)
        for gate, action, data in answers:
            await execution.answer(gate, action, data)
            await _settle(execution)
        return json_of(await execution.view())


async def _settle(execution: Execution) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await execution.settled()


def reviews(accepted_at: int | None) -> str:
    said = [f"{{json: {{decision: revise, note: n{number}}}}}" for number in range(1, accepted_at or 9)]
    answers = ", ".join([*said, "{json: {decision: accept}}"])
    return f"""
rules:
  - {{node: triage, json: {{preferred_agent: sql, database_id: d}}}}
  - {{node: report_branch, text: my draft}}
  - {{node: review, answers: [{answers}]}}
"""


@pytest.mark.parametrize(("accepted_at", "rounds"), [(1, 1), (3, 3), (None, 3)])
@pytest.mark.requirement("S3-68", "S3-71", "S3-72", "S3-73", "T3-6")
async def test_a_draft_is_reviewed_until_it_is_accepted_and_at_most_three_times(
    accepted_at: int | None, rounds: int
) -> None:
    seen = await run("graph/news-reporter", reviews(accepted_at), "harbour strike")
    path = cast(list[str], seen["path"])
    state = cast(JsonObject, seen["state"])
    assert seen["status"] == "completed"
    assert path[:4] == ["triage", "select_search", "search_sql", "report_branch"]
    assert path.count("review") == rounds
    assert len(cast(list[Json], cast(JsonObject, state["verdicts"])["default"])) == rounds
    assert seen["output"] == {"default": "my draft"}


@pytest.mark.requirement("S3-69", "S3-70")
async def test_each_target_gets_its_own_draft() -> None:
    script = reviews(1).replace("preferred_agent: sql", "preferred_agent: web")
    seen = await run("graph/news-reporter", script, {"goal": "strike", "targets": ["north", "south"]})
    assert "search_aisearch" in cast(list[str], seen["path"])
    assert "search_sql" not in cast(list[str], seen["path"])
    assert seen["output"] == {"north": "my draft", "south": "my draft"}


@pytest.mark.requirement("S3-O1", "T3-13", "T3-17", "S3-83")
async def test_drafts_are_improved_and_stitched_with_their_headers() -> None:
    script = """
rules:
  - {node: classify, json: {kind: text, intents: [news]}}
  - {node: write, text: first}
  - {node: judge, answers: [{json: {decision: revise}}, {json: {decision: accept}}]}
  - {node: improve, text: better}
"""
    seen = await run("graph/improvement-desk", script, {"goal": "g", "targets": ["north", "south"]})
    assert seen["output"] == "### north\nbetter\n\n---\n\n### south\nbetter"
    path = cast(list[str], seen["path"])
    assert [path.count(node) for node in ("look_up_text", "judge", "improve", "stitch")] == [1, 4, 2, 1]


async def test_the_loop_drawn_by_the_editor_runs_its_iterations() -> None:
    seen = await run("graph/editor-artefacts", "rules:\n  - {node: publish, text: out}\n", "go")
    assert (seen["status"], seen["output"]) == ("completed", "out")
    assert cast(list[str], seen["path"]).count("shine") == 2


async def test_a_fan_out_over_items_and_one_over_branches_are_both_merged() -> None:
    script = """
rules:
  - {node: write, json: {title: T, text: x}}
  - {node: check, text: checked}
  - {node: count, text: counted}
"""
    seen = await run("graph/merges", script, "go")
    state = cast(JsonObject, seen["state"])
    assert state["titles"] == {"reporter_1": "T", "reporter_2": "T"}
    assert seen["output"] == ["checked", "counted"]


@pytest.mark.parametrize(
    ("action", "data", "status", "output"),
    [
        ("approve", None, "completed", "list"),
        ("edit", {"restaurants": "shorter list"}, "completed", "shorter list"),
        ("reject", None, "cancelled", None),
    ],
)
@pytest.mark.requirement("S4-30", "S4-31", "S4-32", "S4-33", "T4-6")
async def test_the_restaurant_list_is_approved_edited_or_rejected(
    action: str, data: Json, status: str, output: Json
) -> None:
    script = """
rules:
  - {node: understand, text: thai}
  - {node: search, text: list}
tools:
  web_search: {result: []}
"""
    waiting = await run("steps/restaurant-finder", script, "thai food")
    assert waiting["status"] == "waiting"
    assert cast(list[str], waiting["path"]) == ["understand", "search"]
    seen = await run("steps/restaurant-finder", script, "thai food", ("review_checkpoint", action, data))
    assert (seen["status"], seen["output"]) == (status, output)


@pytest.mark.requirement("S4-O2", "S4-O5")
async def test_a_decision_repeats_the_search() -> None:
    script = """
rules:
  - {node: judge, answers: [{json: search_again}, {json: found}]}
tools:
  web_search: {result: [hit]}
"""
    seen = await run("steps/implemented-spelling", script, {"name": "N", "company": "C"}, ("confirm", "approve", None))
    assert seen["path"] == ["first_search", "extract", "judge", "first_search", "extract", "judge", "confirm"]
    assert cast(JsonObject, seen["state"])["results"] == ["hit"]


@pytest.mark.requirement("S4-05", "S4-09")
async def test_a_migrated_plan_runs_its_diamond_and_its_map() -> None:
    script = """
rules:
  - {node: step_3, json: [price, green]}
  - {node: step_4, contains: price, text: cheap}
  - {node: step_4, contains: green, text: leafy}
  - {node: step_5, text: decided}
tools:
  web_search: {result: 1}
"""
    seen = await run("plan/diamond", script, "two towns")
    assert cast(JsonObject, seen["state"])["weights"] == ["cheap", "leafy"]
    assert seen["output"] == "decided"


async def test_a_person_answers_by_the_labels_of_the_rows() -> None:
    script = "rules:\n  - {node: Triage, next: Approval}\n"
    seen = await run("rows/human-handoff", script, {"message": "hi"}, ("n3", "again", None), ("n3", "END", None))
    assert (seen["status"], seen["path"]) == ("completed", ["n1", "n3", "n1", "n3"])


@pytest.mark.parametrize(("retries", "status"), [(0, "failed"), (1, "failed"), (2, "completed"), (None, "completed")])
async def test_a_graph_node_is_tried_as_configured_or_three_times(retries: int | None, status: str) -> None:
    own: JsonObject = {} if retries is None else {"execution": {"retries": retries, "retryDelay": "1ms"}}
    document: JsonObject = {
        "name": "tries",
        "entry_node_id": "write",
        "nodes": [{"id": "write", "type": "agent", "agent_id": "writer", **own}],
        "edges": [],
    }
    if retries is None:
        document["nodes"] = [{"id": "write", "type": "agent", "agent_id": "writer", "execution": {"retryDelay": "1ms"}}]
    script = "rules: [{attempt: 1, fail: 500}, {attempt: 2, fail: 500}, {text: done}]"
    settings = Settings(store="memory:", agents={"writer": AgentConfig()})
    async with Pointsman(settings=settings, model="scripted", script=read_script(script)) as installation:
        execution = await installation.start(Workflow.of(document), {"goal": "x"})
        await _settle(execution)
        assert execution.status == status
