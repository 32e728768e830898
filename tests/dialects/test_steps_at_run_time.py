"""Steps and plans: data from end to end, one executor, saved in revisions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from pointsman.definition.problems import WorkflowInvalid
from pointsman.executions.opening import GivenAnswer
from pointsman.testing.clock import run_virtually
from pointsman.tools.functions import tool
from pointsman.values import Json, JsonObject
from pointsman.workflows.revisions import diff_revisions
from pointsman.workflows.sources import Workflow
from tests.scenarios import RunResult, installation, play, written

READ: JsonObject = {
    "goal": "Read the note",
    "tools": [],
    "input_fields": ["note"],
    "output_field": "facts",
    "prompt_template": "Facts of {note}",
    "instructions": "Be brief.",
}
LOOK: JsonObject = {
    "goal": "Look it up",
    "tools": ["look"],
    "input_fields": ["facts"],
    "output_field": "found",
    "prompt_template": "Look up {facts}",
}


def steps(*edges: tuple[str, str, str | None], ident: str = "notes", **nodes: JsonObject) -> JsonObject:
    """Return a document whose first node is the entry."""
    return {
        "id": ident,
        "name": "Notes",
        "description": "",
        "entry_node": next(iter(nodes)),
        "nodes": {name: {"id": name, **node} for name, node in nodes.items()},
        "edges": [{"from": a, "to": b, **({"condition": c} if c is not None else {})} for a, b, c in edges],
    }


def step(data: JsonObject, **more: Json) -> JsonObject:
    return {"type": "execute", "step": {**data, **more}}


def checkpoint(*actions: Json) -> JsonObject:
    return {"type": "checkpoint", "checkpoint": {"title": "Well?", "description": "", "allowed_actions": [*actions]}}


NOTES = steps(
    ("read", "search", None),
    ("search", "ok", None),
    read=step(READ),
    search=step(LOOK),
    ok=checkpoint("approve", "reject"),
)


@tool
async def look(query: str) -> str:
    """Look something up."""
    return f"seen: {query}"


SAID = """
rules:
  - {node: read, contains: Be brief, text: three facts}
  - {node: search, call: 2, text: it is known}
  - {node: search, contains: three facts, toolCalls: [{name: look, arguments: {query: three facts}}]}
"""


def noted(document: JsonObject, *answers: GivenAnswer) -> RunResult:
    return play(document, {"note": "a long note"}, script=SAID, tools=(look,), answers=answers)


@pytest.mark.requirement("S4-10", "S4-22", "S4-23", "S4-44", "S4-46")
def test_a_step_reads_fields_uses_tools_and_stores_its_result() -> None:
    waiting = noted(NOTES)
    assert (waiting.status, waiting.path) == ("waiting", ["read", "search"])
    assert (waiting.data["facts"], waiting.data["found"]) == ("three facts", "it is known")
    assert [event["node"] for event in waiting.told("step_succeeded")] == ["read", "search"]
    done = noted(NOTES, GivenAnswer("ok", "approve"))
    assert (done.status, done.view["output"]) == ("completed", "it is known")


@pytest.mark.requirement("S4-10")
@pytest.mark.parametrize(
    ("verdicts", "path"), [(["no", "yes"], ["read", "judge", "read", "judge"]), (["yes"], ["read", "judge"])]
)
def test_edges_may_be_conditional_and_form_cycles(verdicts: list[str], path: list[str]) -> None:
    judge: JsonObject = {**READ, "goal": "Judge", "input_fields": ["facts"], "output_field": "verdict"}
    judge["prompt_template"] = "Judge {facts}"
    document = steps(("read", "judge", None), ("judge", "read", 'verdict == "no"'), read=step(READ), judge=step(judge))
    answers = ", ".join(f"{{text: '{verdict}'}}" for verdict in verdicts)
    rules = f"rules:\n  - {{node: judge, answers: [{answers}]}}\n  - {{text: facts}}\n"
    assert play(document, {"note": "n"}, script=rules).path == path


@pytest.mark.requirement("S4-14", "S4-45")
def test_a_steps_workflow_runs_from_json_alone() -> None:
    text = json.dumps(NOTES)
    source = Workflow.parse(text, name="notes.json")
    assert json.loads(text) == source.original
    again, problems = type(source.definition).from_document(source.definition.to_document())
    assert (again, problems) == (source.definition, [])
    assert noted(cast(JsonObject, json.loads(text))).path == ["read", "search"]
    assert not [node.type for node in source.definition.nodes if node.type == "code"]


@pytest.mark.requirement("S4-39", "S4-42", "S4-49")
def test_a_steps_workflow_is_saved_run_changed_and_deleted() -> None:
    async def run() -> tuple[list[str], Json, list[str]]:
        async with installation(SAID, tools=(look,)) as app:
            short = steps(read=step(READ))
            saved = await app.save(written(short))
            listed = [entry.id for entry in await app.workflows()]
            first = await (await app.start("notes", {"note": "n"})).output()
            changed = await app.save(written(NOTES))
            assert (saved.revision, changed.revision) == (1, 2)
            assert await (await app.start("notes", {"note": "n"})).settled() == "waiting"
            assert await app.store.workflows.delete(saved.draft.id)
            return [*listed], first, [entry.id for entry in await app.workflows()]

    assert run_virtually(run()) == (["notes"], "three facts", [])


@pytest.mark.requirement("S4-55")
async def test_each_save_is_a_revision_that_can_be_compared_and_restored() -> None:
    async with installation(tools=(look,)) as app:
        await app.save(written(json.loads(json.dumps(steps(read=step(READ))))))
        await app.save(written(steps(read=step(READ, goal="Read it twice"))))
        assert (await app.source("notes@1")).original == steps(read=step(READ))
        difference = await diff_revisions(app.context, "notes", 1, 2)
        assert "Read the note" in difference
        assert "Read it twice" in difference
        back = await app.save(await app.source("notes@1"))
        assert back.revision == 3
        assert (await app.source("notes")).original == steps(read=step(READ))


@pytest.mark.requirement("S4-50")
def test_a_plan_is_migrated_to_a_graph_and_plans_are_not_written() -> None:
    plan: JsonObject = {
        "title": "Compare",
        "goal": "Compare two towns",
        "steps": [
            {
                "description": "Compare",
                "input_sources": ["user"],
                "output_description": "Comparison",
                "method": {"approach": "Think", "tools": [], "reasoning": "Simple"},
            }
        ],
    }
    source = written(plan)
    document = source.definition.to_document()
    assert source.read.dialect == "plan"
    assert "steps" not in document
    assert [node["type"] for node in cast("list[JsonObject]", document["nodes"])] == ["agent"]
    assert play(plan, "towns", script="rules: [{text: equal}]").view["output"] == "equal"


@pytest.mark.requirement("S4-O4")
def test_an_execution_reports_its_statuses_and_events() -> None:
    async def run() -> tuple[list[str], list[str]]:
        seen: list[JsonObject] = []
        async with installation(SAID + "  - {node: fails, fail: 400}\n", tools=(look,)) as app:
            leave = app.watch(seen.append)
            execution = await app.start(written(NOTES), {"note": "n"})
            statuses = [execution.status, await execution.settled()]
            await execution.pause()
            statuses.append(execution.status)
            await execution.resume()
            await execution.answer("ok", "approve")
            statuses.append(await execution.settled())
            other = await app.start(written(NOTES), {"note": "n"})
            await other.settled()
            await other.cancel()
            statuses.append(other.status)
            failing = await app.start(written(steps(fails=step(READ))), {"note": "n"})
            statuses.append(await failing.settled())
            leave()
        return statuses, [str(event["kind"]) for event in seen]

    statuses, kinds = run_virtually(run())
    assert statuses == ["running", "waiting", "paused", "completed", "cancelled", "failed"]
    assert {"step_started", "step_succeeded", "gate_opened", "step_failed", "completed", "cancelled"} <= {*kinds}


@pytest.mark.requirement("S4-O10", "T4-14")
def test_envelopes_are_opened_and_broken_json_has_a_position_and_a_fix(tmp_path: Path) -> None:
    wrapped = json.dumps({"type": "workflow_graph", "workflow": steps(read=step(READ))})
    assert Workflow.parse(wrapped, name="a.json").definition.id == "notes"
    broken = wrapped.replace("Facts of {note}", 'Facts of "{note}" only')
    source = Workflow.parse(broken, name="a.json")
    (problem,) = source.problems
    assert problem.line == 1
    assert broken[: (problem.column or 0)].endswith('"Facts of "')
    assert "repaired" in problem.hint
    with pytest.raises(WorkflowInvalid):
        play(cast(JsonObject, source.original or {}))
    repaired = source.document.repaired
    assert repaired is not None
    assert 'Facts of \\"{note}\\" only' in repaired
    assert Workflow.parse(repaired, name="a.json").definition.id == "notes"
