"""Guardrails, errors and people: rules that the runtime enforces regardless of prompts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import partialmethod
from pathlib import Path
from typing import cast

import pytest

from pointsman import Pointsman, Workflow, tool
from pointsman.definition.model.policies import DEFAULTS
from pointsman.definition.problems import WorkflowInvalid
from pointsman.engine.actions import WorkAction
from pointsman.engine.compile import compile_workflow
from pointsman.engine.decide import outputs
from pointsman.engine.decide.outputs import StateTooLarge
from pointsman.engine.steps import Step
from pointsman.executions.opening import GivenAnswer
from pointsman.ports import EffectKind
from pointsman.runtime.attempts import LocalAttempt
from pointsman.testing.clock import run_virtually
from pointsman.testing.simulation import Simulation
from pointsman.values import ExecutionId, Json, JsonObject
from tests.scenarios import agent_row, edge_row, installation, play, rows, written

ROOT = Path(__file__).parents[2]

PING_PONG = rows(
    [agent_row("A"), agent_row("B")],
    [edge_row("a", "b", "B"), edge_row("b", "a", "A"), edge_row("b", None, "END")],
)


def talking(rounds: int) -> str:
    """Return two agents that always hand over to each other with different texts."""
    rules = [
        f"- {{node: {name}, visit: {visit}, text: {name} {visit}, next: {other}}}"
        for visit in range(1, rounds)
        for name, other in (("A", "B"), ("B", "A"))
    ]
    return "\n".join(["rules:", *rules])


@pytest.mark.requirement("S0-49")
def test_two_agents_that_repeat_their_answers_are_stopped() -> None:
    played = play(PING_PONG, script="rules: [{node: A, text: do it, next: B}, {node: B, text: no, next: A}]")
    assert (played.status, played.state.limits.interruption) == ("interrupted", "no-progress")
    assert "3 times" in str(played.errors[0]["message"])


@pytest.mark.requirement("S0-50", "S0-53", "T0-8")
def test_an_endless_conversation_is_interrupted_at_the_limit_and_kept() -> None:
    played = play(PING_PONG, {"message": "go"}, script=talking(30))
    (event,) = played.told("interrupted")
    assert (played.status, event["limit"], event["message"]) == (
        "interrupted",
        "steps",
        "the limit of 15 steps is reached (`steps`, set by the workflow)",
    )
    assert (played.view["steps"], len(played.path), played.data["message"]) == (15, 15, "go")


@pytest.mark.requirement("S0-52", "T0-8")
@pytest.mark.parametrize("steps", [1, 4, 21])
def test_the_step_limit_is_configurable_and_counts_visits_of_nodes(steps: int) -> None:
    document: JsonObject = {
        "id": "endless",
        "entry": "a",
        "config": {"limits": {"steps": steps}},
        "nodes": [{"id": "a", "type": "transform", "config": {"set": {"n": "(n ?? 0) + 1"}}}],
        "edges": [{"source": "a", "target": "a", "condition": {"type": "expression", "expression": "n > 0"}}],
    }
    played = play(document)
    assert (played.state.limits.interruption, played.data["n"], played.view["steps"]) == ("steps", steps, steps)


@pytest.mark.requirement("X-3", "S1-69")
@pytest.mark.parametrize("by", ["edges", "node"])
def test_edge_cycles_and_loop_nodes_obey_one_limit(by: str) -> None:
    count: JsonObject = {"id": "count", "type": "transform", "config": {"set": {"n": "(n ?? 0) + 1"}}}
    again: JsonObject = {"id": "again", "type": "loop", "config": {"maxIterations": 100}}
    onward: JsonObject = {"type": "expression", "expression": "n < 100"}
    drawn: dict[str, JsonObject] = {
        "edges": {"nodes": [count], "edges": [{"source": "count", "target": "count", "condition": onward}]},
        "node": {
            "nodes": [again, count],
            "edges": [{"source": "again", "target": "count", "mark": "body"}, {"source": "count", "target": "again"}],
        },
    }
    head: JsonObject = {"id": "w", "entry": "count" if by == "edges" else "again", "config": {"limits": {"steps": 9}}}
    assert play({**head, **drawn[by]}).state.limits.interruption == "steps"


@pytest.mark.requirement("S1-69", "S1-115")
def test_a_workflow_with_more_nodes_than_its_limit_does_not_run() -> None:
    document: JsonObject = {
        "id": "wide",
        "config": {"limits": {"nodes": 2}},
        "nodes": [{"id": name, "type": "transform"} for name in "abc"],
        "edges": [{"source": "a", "target": "b"}, {"source": "b", "target": "c"}],
    }
    with pytest.raises(WorkflowInvalid, match="3 nodes, and its limit is 2"):
        play(document)


@pytest.mark.requirement("S0-58")
def test_a_person_takes_over_and_the_execution_continues() -> None:
    document = rows(
        [agent_row("A"), agent_row("B"), {**agent_row("Help"), "nodeType": "HUMAN_HANDOFF", "agentId": None}],
        [edge_row("a", "b", "B"), edge_row("b", "a", "A"), edge_row("help", "b", "go on"), edge_row("b", None, "END")],
    )
    script = talking(8) + "\n- {node: B, text: thanks, next: END}"
    handed = play(document, script=script)
    assert (handed.status, [gate["nodeId"] for gate in cast("list[JsonObject]", handed.view["waiting"])]) == (
        "waiting",
        ["help"],
    )
    mended = play(document, script=script, answers=(GivenAnswer("help", "go on"),))
    assert (mended.status, mended.path[-2:], mended.view["output"]) == ("completed", ["help", "b"], "thanks")


GATE = """\
pointsman: 1
id: gate
entry: ok
nodes:
  - {id: ok, type: human, config: {message: Well?, options: [{value: approve}, {value: later}], timeout: 1h%s}}
  - {id: done, type: transform, config: {set: {went: "'done'"}}}
  - {id: other, type: transform, config: {set: {went: "'other'"}}}
edges:
  - {source: ok, target: done, condition: {type: label, label: approve}}
  - {source: ok, target: other, condition: {type: label, label: later}}
"""


@pytest.mark.requirement("T1-14")
@pytest.mark.parametrize(
    ("said", "status", "path"),
    [
        ("", "failed", ("ok",)),
        (", onTimeout: fail", "failed", ("ok",)),
        (", onTimeout: later", "completed", ("ok", "other")),
        (", onTimeout: done", "completed", ("ok", "done")),
    ],
    ids=["nothing said", "fail", "an option", "a route"],
)
def test_an_unanswered_gate_times_out(said: str, status: str, path: tuple[str, ...]) -> None:
    plan = compile_workflow(written(GATE % said).definition)
    outcome = Simulation(plan, 1, answer=lambda step, gate: None).run({})
    assert (outcome.status, outcome.path) == (status, path)


FAILING = """\
pointsman: 1
id: failing
config: {errorHandling: %s}
nodes:
  - {id: first, type: agent, config: {prompt: x}}
  - {id: second, type: agent, config: {prompt: "{result}"}}
edges: [{source: first, target: second}]
"""


@pytest.mark.requirement("S1-06", "S1-130")
def test_a_failure_ends_the_execution_is_retried_or_is_put_to_a_model() -> None:
    broken = "rules: [{node: first, attempt: 1, fail: 400}, {text: fine}]"
    unlucky = "rules: [{node: first, attempt: 1, fail: 503}, {text: fine}]"
    advice = "{purpose: recover, json: {choice: substitute, value: a guess, reason: it is down}}"
    advised = f"rules: [{advice}, {{node: first, fail: 400}}, {{text: fine}}]"
    failed, retried = play(FAILING % "fail", script=broken), play(FAILING % "retry", script=unlucky)
    recovered = play(FAILING % "llm_recovery", script=advised)
    assert (failed.status, failed.path) == ("failed", ["first"])
    assert (retried.status, retried.path, retried.told("step_failed")[0]["final"]) == (
        "completed",
        ["first", "second"],
        False,
    )
    assert (recovered.status, recovered.told("step_succeeded")[0]["result"]) == ("completed", "a guess")


@pytest.mark.requirement("S1-99", "T1-19")
def test_a_step_that_makes_the_state_too_large_fails_before_it_writes() -> None:
    document = """\
pointsman: 1
id: big
config: {limits: {stateSize: 2KB}}
nodes:
  - {id: small, type: transform, config: {set: {a: "'ä'"}}}
  - {id: grow, type: transform, config: {set: {copies: "[text, text, text, text]"}}}
edges: [{source: small, target: grow}]
"""
    played = play(document, {"text": "y" * 600})
    (failure,) = played.errors
    assert (played.status, failure["code"], failure["nodeId"]) == ("failed", "state-too-large", "grow")
    assert "copies" in str(failure)
    assert (played.data["a"], "copies" in played.data) == ("ä", False)


SLOW_CODE = 'pointsman: 1\nid: today\nnodes: [{id: a, type: code, config: {source: "return 1"}}]\n'


@pytest.mark.requirement("S1-99", "S1-116")
def test_the_default_limits_are_fifty_megabytes_and_thirty_seconds() -> None:
    assert DEFAULTS.state_size == 50_000_000
    documents = 'id: old\nnodes: [{id: a, type: code, config: {source: "return 1"}}]\n', SLOW_CODE
    of_001, of_today = (compile_workflow(written(one).definition).nodes["a"].action for one in documents)
    assert isinstance(of_001, WorkAction)
    assert isinstance(of_today, WorkAction)
    assert (of_001.timeout_s, of_today.timeout_s) == (30.0, 120.0)
    assert compile_workflow(written(FAILING % "fail").definition).limits.state_bytes == 50_000_000


@pytest.mark.requirement("T0-7")
def test_a_result_after_its_timeout_is_refused() -> None:
    chain = """\
pointsman: 1
id: chain
nodes: [{id: a, type: tool, config: {tool: x}, execution: {retries: 2}}, {id: b, type: tool, config: {tool: x}}]
edges: [{source: a, target: b}]
"""
    plan = compile_workflow(written(chain).definition)
    calm = Simulation(plan, 3).run({})
    wild = Simulation(plan, 3, chance_of_zombie=0.9, chance_of_duplicate=0.9).run({})
    assert (wild.status, wild.output, wild.steps) == (calm.status, calm.output, (Step("a"), Step("b")))


@pytest.mark.requirement("S1-10", "T1-1")
def test_the_dependencies_include_no_agentic_framework() -> None:
    frameworks = re.compile(
        r"^(langchain|langgraph|crewai|autogen|ag2|llama.index|haystack|semantic.kernel|agno|smolagents|openai.agents"
        r"|google.adk|prefect|dspy|metagpt|swarm|letta|burr)\b",
        re.IGNORECASE,
    )
    locked = [
        line
        for file in sorted((ROOT / "requirements").glob("*.lock"))
        for line in file.read_text(encoding="utf-8").splitlines()
        if line and not line.startswith((" ", "#"))
    ]
    assert len(locked) > 20
    assert [line for line in locked if frameworks.match(line)] == []
    # Temporal and Restate place executions on machines, for those who choose it: no installation needs their clients.
    needed = [(ROOT / "requirements" / name).read_text(encoding="utf-8") for name in ("core.lock", "runtime.lock")]
    assert [text for text in needed if re.search(r"^(temporalio|restate)", text, re.MULTILINE)] == []


@pytest.mark.requirement("S1-117", "T1-4")
def test_sequential_execution_follows_the_document_order() -> None:
    nodes: list[Json] = [{"id": name, "type": "agent", "config": {"prompt": name}} for name in "szyx"]
    document: JsonObject = {
        "id": "wide",
        "config": {"limits": {"parallel": 1}},
        "nodes": nodes,
        "edges": [{"source": "s", "target": name} for name in "xyz"],
    }
    script = "rules: [{node: x, delay: 3s, text: x}, {node: y, delay: 2s, text: y}, {node: z, delay: 1s, text: z}]"
    played = play(document, script=script)
    wide = play({**document, "config": {"limits": {"parallel": 3}}}, script=script)
    order: list[Json] = ["s", "x", "y", "z"]
    assert (played.path, wide.path) == (order, ["s", "z", "y", "x"])
    assert (played.view["durationMs"], wide.view["durationMs"]) == (6000, 3000)


@pytest.mark.parametrize("fits", [True, False])
async def test_an_input_is_encoded_again_for_the_limit_of_the_state_only_where_it_may_not_fit(
    monkeypatch: pytest.MonkeyPatch, *, fits: bool
) -> None:
    sized: list[Json] = []

    def size_of(value: Json) -> int:
        sized.append(value)
        return measured(value)

    measured = outputs.size_of
    monkeypatch.setattr(outputs, "size_of", size_of)
    text = "y" * (500 if fits else 1_000)
    nodes: list[Json] = [{"id": "a", "type": "end"}]
    document: JsonObject = {"pointsman": 1, "id": "a", "config": {"limits": {"stateSize": 1000}}, "nodes": nodes}
    async with Pointsman("memory:", model="scripted") as app:
        with nullcontext() if fits else pytest.raises(StateTooLarge, match="text"):
            await (await app.start(Workflow.of(document), {"text": text})).output()
    assert any("text" in one for one in sized if isinstance(one, dict)) is not fits


def test_a_deadline_does_not_count_the_wait_for_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    @tool
    async def charge() -> str:
        """Charge a card."""
        return "charged"

    node: Json = {"id": "work", "type": "tool", "config": {"tool": "charge"}, "execution": {"timeout": "200ms"}}
    workflow = Workflow.of({"id": "late", "nodes": [node], "edges": []})

    async def scene() -> None:
        async with installation(tools=(charge,)) as app:
            record, slow = app.store.effects.record, 0

            async def recorded(execution: ExecutionId, attempt: str, number: int, value: Json) -> None:
                nonlocal slow
                slow += 1
                await asyncio.sleep(60)
                await record(execution, attempt, number, value)

            monkeypatch.setattr(app.store.effects, "record", recorded)
            monkeypatch.setattr(LocalAttempt, "record", partialmethod(_at_once, LocalAttempt.record))
            execution = await app.start(workflow)
            assert await execution.settled() == "completed"
            assert slow == 1

    run_virtually(scene())


async def _at_once(
    attempt: LocalAttempt,
    record: Callable[..., Awaitable[None]],
    number: int,
    kind: EffectKind,
    value: Json,
    *,
    request: str = "",
    later: bool = False,
) -> None:
    """Record an answer at once, as an attempt does before its next call."""
    await record(attempt, number, kind, value, request=request)
