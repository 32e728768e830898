"""The records of the pipeline: stored under their session, step by step, and readable by later processes."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointsman.app import Pointsman, Workflow
from pointsman.engine.instants import instant_text, seconds_of
from pointsman.settings import Settings
from pointsman.store.records import ExecutionQuery
from pointsman.values import Json, JsonObject
from pointsman.workflows.scripts import load_script
from tests.scenarios import play

EXAMPLE = Path(__file__).parents[2] / "examples" / "agentforge"
SESSION = "ses_0badcafe"


async def worked(store: str) -> str:
    """Run the pipeline in a session and return its execution."""
    settings = Settings.model_validate({"store": store, "delays": False})
    async with Pointsman(settings=settings, model="scripted", script=load_script(EXAMPLE / "script.yaml")) as app:
        asked: JsonObject = {"goal": "Write a proposal for optimizing warehouse operations", "email": "a@example.com"}
        execution = await app.start(Workflow.load(EXAMPLE / "agentforge.yaml"), asked, session=SESSION)
        assert await execution.settled() == "completed"
        return execution.id


@pytest.mark.integration
@pytest.mark.requirement("S2-07", "S2-21", "S2-27", "S2-32", "S2-61", "S2-63", "T2-15")
async def test_plan_research_document_and_report_are_stored_and_found_by_session(
    tmp_path: Path,
) -> None:
    store = f"sqlite:///{tmp_path / 'records.db'}"
    execution = await worked(store)
    async with Pointsman(settings=Settings(store=store)) as app:
        (found,) = await app.executions(ExecutionQuery(session=SESSION))
        assert (found.execution, found.session) == (execution, SESSION)
        _, events = await app.state_and_events(execution)
        view = await app.view(execution)
    began, first, *_ = events
    assert (began["kind"], began["session"], first["kind"]) == ("started", SESSION, "step_started")
    assert began["input"] == {"goal": "Write a proposal for optimizing warehouse operations", "email": "a@example.com"}
    made = {str(event["node"]): _paths(event) for event in events if event["kind"] == "step_succeeded"}
    assert made["ceo_research"] == ["plan", "research"]
    assert (made["writer"], made["validation"]) == (["writer"], ["confidence", "actions"])
    rows = {str(event["node"]): event["seq"] for event in events if event["kind"] == "step_succeeded"}
    assert len(set(map(str, rows.values()))) == len(rows), "each is a row of its own, on disk before the next begins"
    output = cast(JsonObject, view["output"])
    assert output["session_id"] == SESSION
    created = datetime.fromisoformat(str(output["created_at"]))
    assert created.timestamp() == pytest.approx(cast(float, began["at"]), abs=0.001)


def _paths(event: JsonObject) -> list[Json]:
    """Return the fields that a step wrote."""
    writes = cast("tuple[tuple[tuple[str, ...], ...], ...]", event["writes"])
    return [write[0][0] for write in writes]


@pytest.mark.requirement("S2-29")
@pytest.mark.parametrize(("score", "kept"), [("-1", 0), ("101", 100), ('"high"', 75.5)])
def test_a_report_has_confidence_and_risk_within_their_scales(score: str, kept: float) -> None:
    """A number is limited to the scale; another value is requested again."""
    report: JsonObject = {
        "confidence_score": 75.5,
        "confidence_reasoning": "sound",
        "hallucination_risk": "low",
        "hallucination_reasoning": "cited",
        "hallucination_issues": [],
    }
    wrong = json.dumps(report).replace("75.5", score)
    rules = f"rules:\n- {{node: validation, answers: [{{json: {wrong}}}, {{json: {json.dumps(report)}}}]}}\n"
    document = (EXAMPLE / "agentforge.yaml").read_text(encoding="utf-8")
    played = play(document, {"goal": "Write a memo"}, script=rules + _rest())
    assert played.data["confidence"] == {**report, "confidence_score": kept}
    assert [e["node"] for e in played.told("step_succeeded")].count("validation") == 1


def _rest() -> str:
    plan = json.dumps({"plan": [{"step": 1, "task": "look"}], "research": "none"})
    return f"- {{node: ceo_research, json: {plan}}}\n- {{text: a document}}\n"


@pytest.mark.requirement("T2-1", "T2-3", "S2-O9")
def test_the_reviewer_of_the_pipeline_does_not_change_the_writers_work() -> None:
    workflow = Workflow.load(EXAMPLE / "agentforge.yaml").definition
    nodes = {str(node.id): node for node in workflow.nodes}
    assert nodes["validation"].name is not None
    assert nodes["validation"].name.in_("en") == "Confidence"
    assert [type_ for node in workflow.nodes if (type_ := node.type) == "code"] == []
    assert [*(nodes["reviewer"].outputs or {})] == ["reviewer"]


@given(st.floats(0, 4_000_000_000, allow_nan=False))
def test_every_time_is_an_iso_timestamp(at: float) -> None:
    written = instant_text(at)
    assert datetime.fromisoformat(written).timestamp() == pytest.approx(at, abs=0.001)
    assert seconds_of(written) == pytest.approx(at, abs=0.001)


@pytest.mark.requirement("T2-23")
async def test_an_execution_can_be_started_and_awaited_later() -> None:
    document = {
        "id": "one",
        "nodes": [{"id": "a", "type": "agent", "config": {"prompt": "hello"}}],
        "edges": [],
    }
    async with Pointsman(settings=Settings(store="memory:"), model="scripted") as app:
        execution = await app.start(Workflow.of(cast(JsonObject, document)), {})
        assert execution.status == "running"
        assert "hello" in str(await execution.output())


@pytest.mark.requirement("T2-9")
def test_a_rate_limited_agent_retries_once() -> None:
    document = (EXAMPLE / "agentforge.yaml").read_text(encoding="utf-8")
    played = play(document, {"goal": "Write a memo"}, script="rules: [{fail: 429}]")
    assert (played.status, len(played.told("step_failed"))) == ("failed", 2)


@pytest.mark.requirement("S2-12")
@pytest.mark.parametrize("pause", [2, 5])
def test_a_pause_before_the_end_is_a_node_with_a_duration(pause: int) -> None:
    document = (EXAMPLE / "agentforge.yaml").read_text(encoding="utf-8")
    document = document.replace(
        "  - {id: end, type: end}",
        f"  - {{id: pause, type: wait, config: {{duration: {pause}s}}}}\n  - {{id: end, type: end}}",
    ).replace(
        "reviewer, target: end, condition: {type: default}}",
        "reviewer, target: pause, condition: {type: default}}\n  - {source: pause, target: end}",
    )
    report = '{"confidence_score": 10, "confidence_reasoning": "", "hallucination_risk": "high", '
    report += '"hallucination_reasoning": "", "hallucination_issues": []}'
    rules = f"rules:\n- {{node: validation, json: {report}}}\n"
    played = play(document, {"goal": "Write a memo"}, script=rules + _rest())
    ended = {str(event["node"]): cast(float, event["at"]) for event in played.told("step_succeeded")}
    assert played.path[-3:] == ["reviewer", "pause", "end"]
    assert ended["pause"] - ended["reviewer"] == pause
