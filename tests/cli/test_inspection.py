"""Views of executions: list, show, events, timeline."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import cast, get_args

import pytest
from click import unstyle
from rich.console import Console

from pointsman import Pointsman, Workflow
from pointsman.cli.inspection import bar_lines
from pointsman.cli.progress import TEXT_LINES, ProgressDisplay
from pointsman.cli.results import outcome_lines
from pointsman.cli.times import when_and_distance
from pointsman.engine.state import Status
from pointsman.executions.public_events import DIALECTS, STATUSES, Dialect
from pointsman.executions.timeline import SpanView, TimelineView
from pointsman.values import Json, JsonObject, json_of
from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_executions_are_listed_newest_first_and_filtered(prompt: Prompt) -> None:
    done = prompt("run", written("chain.yaml", flows.CHAIN), "--json").json["executionId"]
    waits = prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=x", "--json").json["executionId"]
    listed = prompt("list", "--json").json["executions"]
    assert [one["executionId"] for one in listed] == [waits, done]
    assert [one["status"] for one in listed] == ["waiting", "completed"]
    narrowed = prompt("list", "--status", "waiting", "--json").json["executions"]
    assert [one["executionId"] for one in narrowed] == [waits]
    assert prompt("list", "--workflow", "chain", "--limit", "1").out.split()[0] == done


def test_show_prints_the_path_the_state_and_the_next_command(prompt: Prompt) -> None:
    prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=ships")
    execution = prompt("list").out.split()[0]
    printed = prompt("show", execution)
    assert printed.code == 0
    assert "path: write" in printed.out
    assert "goal: ships" in printed.out
    assert f"pointsman answer {execution} review approve|again" in printed.out


async def test_show_prints_until_when_steps_wait() -> None:
    nodes: list[Json] = [
        {"id": "hold", "type": "wait", "config": {"duration": "1h"}},
        {"id": "knock", "type": "wait", "config": {"event": {"name": "door"}, "timeout": "2h"}},
        {"id": "both", "type": "parallel", "config": {"branches": ["hold", "knock"]}},
    ]
    document: JsonObject = {"pointsman": 1, "id": "w", "entry": "both", "nodes": nodes, "edges": []}
    async with Pointsman("memory:") as app:
        execution = await app.start(Workflow.of(document), {})
        await asyncio.sleep(0)
        view = await execution.view()
    timers = cast("list[JsonObject]", view["timers"])
    assert [(one["nodeId"], one["purpose"]) for one in timers] == [("hold", "wait"), ("knock", "event")]
    lines = [unstyle(line) for line in outcome_lines(json_of(view), stopped=False, store=None, lasting=True)]
    assert f"waiting at 'hold' until {when_and_distance(timers[0]['at'])}" in lines
    assert f"waiting at 'knock' for its event until {when_and_distance(timers[1]['at'])} at the latest" in lines


@pytest.mark.requirement("S2-33")
def test_messages_of_progress_nodes_are_printed_live_and_shown_later(prompt: Prompt) -> None:
    script = EXAMPLES / "agentforge" / "script.yaml"
    paced = (EXAMPLES / "agentforge" / "agentforge.yaml").read_text("utf-8")
    pipeline = written("agentforge.yaml", paced.replace("delay: 2s", "delay: 1ms"))
    ran = prompt("run", pipeline, "--script", str(script), "-i", "goal=Write a proposal")
    told = [
        "Confidence Score: 75%",
        "Hallucination Risk: medium",
        "  1. AGV cost estimate ($50K-100K) needs verification",
        "  2. Implementation timeline (6 months) not validated",
        "  3. ROI calculation based on assumed labor reduction",
    ]
    assert ran.err.splitlines()[1 : 1 + len(told)] == told
    execution = prompt("list").out.split()[0]
    shown = prompt("show", execution).out.splitlines()
    at = shown.index(told[0])
    assert shown[at : at + len(told)] == told
    assert [one["nodeId"] for one in prompt("show", execution, "--json").json["progress"]] == ["metrics"]
    quiet = prompt("run", "-q", pipeline, "--script", str(script), "-i", "goal=Write a proposal")
    assert "Confidence" not in quiet.err


def test_events_are_printed_in_order_from_any_row(prompt: Prompt) -> None:
    execution = prompt("run", written("chain.yaml", flows.CHAIN), "--json").json["executionId"]
    events = [json.loads(line) for line in prompt("events", execution, "--jsonl").out.splitlines()]
    assert [(event["seq"], event["n"]) for event in events] == sorted((event["seq"], event["n"]) for event in events)
    assert events[0]["kind"] == "started"
    assert events[-1]["kind"] == "completed"
    later = prompt("events", execution, "--jsonl", "--after", "2").out.splitlines()
    assert [json.loads(line) for line in later] == [event for event in events if event["seq"] > 2]
    assert len(prompt("events", execution).out.splitlines()) == len(events)


def test_following_ends_when_the_execution_ends_or_waits(prompt: Prompt) -> None:
    execution = prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=x", "--json").json["executionId"]
    printed = prompt("events", execution, "--follow", "--jsonl")
    assert json.loads(printed.out.splitlines()[-1])["kind"] == "gate_opened"


def test_a_timeline_has_a_span_per_attempt_and_usage_per_node(prompt: Prompt) -> None:
    text = flows.CHAIN.replace(
        "config: {prompt: two}", "execution: {retries: 1, retryDelay: 1ms}, config: {prompt: two}"
    )
    script = written("s.yaml", "rules: [{node: second, attempt: 1, fail: 500}]")
    execution = prompt("run", written("chain.yaml", text), "--script", script, "--json").json["executionId"]
    told = prompt("timeline", execution, "--json").json
    second = [(span["kind"], span["attempt"], span["status"]) for span in told["spans"] if span["node"] == "second"]
    assert second == [("work", 1, "retried"), ("wait", 1, "done"), ("work", 2, "done")]
    assert all(span["endMs"] >= span["startMs"] for span in told["spans"])
    assert [(node["node"], node["modelCalls"]) for node in told["nodes"]] == [("first", 1), ("second", 1), ("third", 1)]


def test_a_timeline_in_the_terminal_has_a_lane_per_node_and_branch(prompt: Prompt) -> None:
    execution = prompt("run", written("fans.yaml", flows.FANS), "--json").json["executionId"]
    lines = prompt("timeline", execution).out.splitlines()
    labels = [line.split("│")[0].strip() for line in lines if "│" in line]
    assert labels == ["split", "split[0] ask", "split[1] ask", "split[2] ask"]
    assert any(line.startswith("all ") for line in lines)


def test_the_length_of_a_bar_matches_its_duration() -> None:
    def span(node: str, begin: float, end: float) -> SpanView:
        return {
            "step": node,
            "node": node,
            "name": node,
            "scope": [],
            "visit": 1,
            "kind": "work",
            "attempt": 1,
            "startMs": begin,
            "endMs": end,
            "status": "done",
        }

    timeline: TimelineView = {
        "executionId": "exec-1",
        "workflowId": "fans",
        "status": "completed",
        "model": None,
        "startedAt": 0.0,
        "durationMs": 1000.0,
        "spans": [span("a", 0, 250), span("b", 250, 1000)],
        "nodes": [],
    }
    lines = bar_lines(timeline)
    a, b = (line.split("│")[1] for line in lines[:2])
    assert abs(a.count("█") * 3 - b.count("█")) <= 3
    assert b.index("█") == a.count("█")


def event(kind: str, step: str = "", **more: Json) -> JsonObject:
    return {"execution": "exec-1", "parent": None, "kind": kind, "step": step, "node": step.split("/")[-1], **more}


def shown(board: ProgressDisplay) -> str:
    with board.console.capture() as captured:
        board.console.print(board)
    return captured.get()


def test_progress_shows_running_steps_branches_rounds_and_text() -> None:
    board = ProgressDisplay(Console(width=100, force_terminal=False))
    board.names["ask"] = "Ask them"
    board.see(event("scopes_opened", "fan", starts=["e"], items=[1, 2, 3]))
    board.see(event("step_started", "ask", scope=[{"parallel": "fan", "visit": 1, "branch": 0}]))
    board.see(event("delta", "ask", delta={"kind": "text", "text": "Once upon\na time"}))
    board.see(event("branch_settled", "fan", outcome="arrived"))
    board.see(event("loop_round", "again", round=2))
    text = shown(board)
    assert "Ask them" in text
    assert [line.strip() for line in text.splitlines() if "upon" in line or "time" in line] == ["Once upon", "a time"]
    assert "fan 1/3" in text
    assert "again round 2" in text
    board.see(event("step_succeeded", "ask", usage={"model_calls": 1, "input_tokens": 3, "output_tokens": 4}))
    assert "1 steps, 1 model calls, 7 tokens" in shown(board)
    assert "Ask them" not in shown(board)


def test_progress_shows_the_last_lines_of_the_text_that_a_model_writes() -> None:
    board = ProgressDisplay(Console(width=40, force_terminal=False))
    board.see(event("step_started", "write"))
    for number in range(40):
        board.see(event("delta", "write", delta={"kind": "text", "text": f"line {number}\x1b[2J\n"}))
    lines = [line.strip() for line in shown(board).splitlines() if line.startswith("line")]
    assert len(lines) == TEXT_LINES
    assert lines[-1].startswith("line 39")
    assert "\x1b" not in shown(board)
    board.see(event("delta", "write", delta={"kind": "discarded"}))
    assert "line" not in shown(board)


def test_progress_prints_retries_failures_and_gates_permanently() -> None:
    board = ProgressDisplay(Console(width=100, force_terminal=False))
    with board.console.capture() as captured:
        board.see(event("step_started", "write"))
        board.see(event("step_failed", "write", final=False, failure={"code": "model-busy", "message": "429"}))
        assert "model-busy: will be retried" in str(board.running["exec-1/write"].note)
        board.see(event("attempt_started", "write", attempt=2, reason="retry"))
        board.see(event("step_failed", "write", final=True, failure={"code": "model-busy", "message": "\x1b[2J429"}))
    assert "✗ write" in captured.get()
    assert "\x1b" not in captured.get()


@pytest.mark.requirement("S1-134", "S2-50", "S2-51")
def test_a_timeline_sums_calls_tokens_time_and_keys_per_node(prompt: Prompt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_DELAYS", "false")
    folder = Path(__file__).parents[2] / "examples" / "agentforge"
    flow, script = str(folder / "agentforge.yaml"), str(folder / "script.yaml")
    execution = prompt("run", flow, "--script", script, "-i", "goal=x", "--json").json["executionId"]
    nodes = prompt("timeline", execution, "--json").json["nodes"]
    asked = [(node["node"], node["keyIndex"], node["modelCalls"]) for node in nodes if node["modelCalls"]]
    assert asked == [
        ("ceo_research", 0, 1),
        ("developer", 1, 1),
        ("writer", 2, 1),
        ("validation", 0, 1),
        ("reviewer", 1, 1),
    ]
    assert all(node["seconds"] > 0 for node in nodes if node["modelCalls"])
    table = prompt("timeline", execution).out.splitlines()
    total = next(line for line in table if line.startswith("all ")).split()
    assert total[1:5] == [
        "5",
        "0",
        str(sum(n["inputTokens"] for n in nodes)),
        str(sum(n["outputTokens"] for n in nodes)),
    ]


WORDS: dict[str, tuple[str, str, str]] = {
    "native": ("paused", "failed", "workflow.human.required"),
    "rows": ("waiting", "cancelled", "workflow.human.required"),
    "graph": ("waiting", "cancelled", "node_result"),
    "steps": ("waiting", "cancelled", "checkpoint"),
    "plan": ("waiting", "cancelled", "checkpoint"),
}
"""Per dialect: the status at a gate, the status after a cancellation, and the last event before the answer."""


@pytest.mark.requirement("T1-6", "X-9", "S4-O4", "S3-77")
@pytest.mark.parametrize("words", WORDS)
def test_statuses_and_events_use_the_words_of_a_dialect(prompt: Prompt, words: str) -> None:
    waiting, cancelled, last = WORDS[words]
    execution = prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=x", "--json").json["executionId"]
    shown = prompt("show", execution, "--words", words).json
    assert (shown["status"], shown["is"]) == (waiting, "waiting")
    told = [json.loads(line) for line in prompt("events", execution, "--words", words).out.splitlines()]
    asked = [one for one in told if one["event"] != "workflow.checkpoint.saved"]
    assert asked[-1]["event"] == last
    assert all(one["executionId"] == execution and one["id"] for one in told)
    prompt("cancel", execution)
    assert prompt("show", execution, "--words", words).json["status"] == cancelled
    again = [
        json.loads(line) for line in prompt("events", execution, "--words", words, "--after", "1").out.splitlines()
    ]
    assert [one for one in told if one["seq"] > 1] == again[: len([one for one in told if one["seq"] > 1])]


@pytest.mark.requirement("X-9")
@pytest.mark.parametrize("status", get_args(Status))
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_status_has_a_word_in_every_dialect(dialect: Dialect, status: Status) -> None:
    word = STATUSES[dialect][status]
    assert word in get_args(Status)
    assert dialect != "native" or word in ("running", "paused", "completed", "failed")
    assert dialect not in ("steps", "plan") or word != "interrupted"


def test_the_view_of_a_graph_has_the_status_of_each_node(prompt: Prompt) -> None:
    broken = "{id: third, type: tool, config: {tool: calculator, parameters: {expression: 1 +}}"
    text = flows.CHAIN.replace("{id: second,", "{id: second, skipWhen: 'true',")
    text = text.replace("{id: third, type: agent, config: {prompt: three}", broken)
    execution = prompt("run", written("chain.yaml", text), "--json").json["executionId"]
    told = [json.loads(line) for line in prompt("events", execution, "--words", "graph").out.splitlines()]
    assert [(one["nodeId"], one["status"]) for one in told] == [
        ("first", "SUCCESS"),
        ("second", "SKIPPED"),
        ("third", "FAILED"),
    ]
