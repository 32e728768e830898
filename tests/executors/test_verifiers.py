"""Planners, verifiers and records in workflows: across restarts, and in foreign formats."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from pointsman.app import Workflow
from pointsman.executions.opening import drive
from pointsman.testing.clock import run_virtually
from pointsman.values import Json, JsonObject
from tests.scenarios import installation, play, written

REVISED = """
pointsman: 1
id: revised
entry: write
nodes:
  - {id: write, type: human, config: {message: Write., options: [{value: done}]}}
  - {id: check, type: verifier, config: {criteria: Good., maxRetries: 2}}
  - {id: good, type: end}
  - {id: bad, type: end, config: {status: rejected}}
edges:
  - {source: write, target: check, label: done}
  - {source: check, target: write, label: retry}
  - {source: check, target: good, label: pass}
  - {source: check, target: bad, label: fail}
"""
NEVER = "rules: [{node: check, json: {verdict: retry, score: 10, issues: [Weak.], reason: No.}}]"

ASSIGNED = """
pointsman: 1
id: assigned
input: {type: object, required: [goal], properties: {goal: {type: string}}}
agents: {finder: {system: You find.}, writer: {system: You write.}}
nodes:
  - {id: plan, type: planner, outputs: {plan: result}, config: {goal: "{{goal}}", agents: [finder, writer]}}
  - id: find
    type: agent
    inputs: {task: "find(plan.tasks, t => t.assigned_agent == 'finder')"}
    config: {agent: finder, prompt: "{{task.description}}"}
  - id: write
    type: agent
    inputs: {task: "find(plan.tasks, t => t.assigned_agent == 'writer')"}
    config: {agent: writer, prompt: "{{task.description}}"}
edges: [{source: plan, target: find}, {source: find, target: write}]
"""
TWO_TASKS = """
rules:
  - node: plan
    json:
      tasks:
        - {title: Text, description: Write it., assigned_agent: writer}
        - {title: Facts, description: Find them., assigned_agent: finder}
"""


@pytest.mark.integration
def test_a_verifier_counts_its_revisions_across_restarts(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"

    async def run() -> tuple[list[Json], list[Json]]:
        async with installation(NEVER, store=store) as app:
            execution = await app.start(written(REVISED), {})
            await drive(execution)
            name = execution.id
        verdicts, end = list[Json](), list[Json]()
        for _ in range(3):
            async with installation(NEVER, store=store) as app:
                execution = await app.open(name)
                await execution.answer("write", "done")
                await drive(execution)
                verdicts.append(cast("JsonObject", execution.state.root.nodes["check"])["verdict"])
                end = [execution.status, *cast("list[Json]", (await execution.view())["path"])[-1:]]
        return verdicts, end

    assert run_virtually(run()) == (["retry", "retry", "fail"], ["completed", "bad"])


def test_a_verdict_without_an_edge_fails_with_no_route_and_no_second_call() -> None:
    document = """
    pointsman: 1
    id: narrow
    nodes:
      - {id: check, type: verifier, config: {criteria: Good.}}
      - {id: good, type: end}
    edges: [{source: check, target: good, label: pass}]
    """
    played = play(document, script=NEVER)
    assert played.status == "failed"
    assert [error["code"] for error in played.errors] == ["no-route"]
    assert len(played.told("attempt_started")) == 0


def test_a_verifier_with_one_plain_edge_passes_the_value_on() -> None:
    document = """
    pointsman: 1
    id: open
    nodes:
      - {id: start, type: start, config: {set: {text: "'x'"}}}
      - {id: shape, type: transform, config: {set: {text: "'y'"}}}
      - {id: check, type: verifier, config: {criteria: Good., input: text}}
      - {id: end, type: end, config: {output: {text: text, score: nodes.check.score, verdict: nodes.check.branch}}}
    edges: [{source: start, target: shape}, {source: shape, target: check}, {source: check, target: end}]
    """
    assert play(document, script=NEVER).view["output"] == {"text": "y", "score": 10, "verdict": "retry"}


@pytest.mark.requirement("S2-O5")
def test_a_planner_assigns_tasks_and_nodes_select_theirs() -> None:
    played = play(ASSIGNED, {"goal": "Explain tides."}, script=TWO_TASKS)
    assert played.status == "completed"
    plan = cast("JsonObject", played.data["plan"])
    assert [task["assigned_agent"] for task in cast("list[JsonObject]", plan["tasks"])] == ["writer", "finder"]
    given = {event["node"]: cast("JsonObject", event["input"]) for event in played.told("step_started")}
    assert (given["find"]["prompt"], given["write"]["prompt"]) == ("Find them.", "Write it.")


def test_tasks_read_the_data_around_the_planner() -> None:
    document = """
    pointsman: 1
    id: styled
    input: {type: object, properties: {style: {type: string}, goal: {type: string}}}
    config: {settings: {tone: calm}}
    nodes:
      - {id: before, type: transform, config: {set: {fact: "'water'"}}}
      - id: plan
        type: planner
        inputs: {own: "'own'"}
        outputs: {plan: result}
        config:
          goal: "{{goal}}"
          taskTemplate:
            prompt: "{{task.title}} {{style}} {{fact}} {{config.tone}} {{own}} {{goal}}"
    edges: [{source: before, target: plan}]
    """
    script = "rules: [{purpose: planning, json: {tasks: [{title: One, description: d}]}}]"
    played = play(document, {"style": "short", "goal": "g"}, script=script)
    (task,) = cast("list[JsonObject]", cast("JsonObject", played.data["plan"])["tasks"])
    assert str(task["result"]).endswith("to: One short water calm own g")


@pytest.mark.requirement("S1-O2")
def test_every_type_of_a_foreign_format_is_built_in_or_kept_with_a_suggestion() -> None:
    built = ["planner", "verifier", "loop", "http", "code", "structured-record", "template-render", "progress"]
    kept = ["query-plan", "corpus-search", "quote-validator", "inbox-load", "inbox-finalize", "memory-finalize"]
    config: dict[str, JsonObject] = {
        "planner": {"goal": "g"},
        "verifier": {"criteria": "c"},
        "http": {"url": "https://example.org"},
        "code": {"language": "python", "code": "1"},
        "structured-record": {"schema": {}, "inputPath": "$.x", "recordsVar": "r"},
        "template-render": {"template": "t"},
        "progress": {"message": "m"},
        "loop": {"maxIterations": 1},
    }
    nodes: list[Json] = [
        {"id": kind, "type": kind, "name": {"en": kind}, "position": {"x": 0, "y": 0}, "config": config.get(kind, {})}
        for kind in (*built, *kept)
    ]
    document: JsonObject = {"id": "w", "config": {"maxNodes": 20}, "nodes": nodes, "edges": []}

    async def run() -> dict[str, str]:
        async with installation() as app:
            problems = await app.check(Workflow.of(document))
            return {p.message.split("'")[1]: p.hint for p in problems.problems if p.code == "unbound-node-type"}

    unbound = run_virtually(run())
    assert sorted(unbound) == sorted(kept)
    assert all("plug-in" in hint and "`" in hint for hint in unbound.values())


GUARDED = """
pointsman: 1
id: guarded
input: {type: object, properties: {topic: {type: string}, limit: {type: integer}}}
nodes:
  - id: say
    type: agent
    inputs: {topic: topic}
    config:
      prompt: "About {{topic}}."
      guardrails:
        before: [{name: topic, expression: "len(topic) > 2", message: A topic is needed.}]
        after: [{name: short, expression: "len(text) <= limit and not contains(result, topic)"}]
  - {id: end, type: end}
  - {id: sorry, type: end, config: {status: refused}}
edges:
  - {source: say, target: end}
  - {source: say, target: sorry, condition: {type: error, codes: [guardrail]}}
"""


@pytest.mark.parametrize(
    ("topic", "limit", "calls", "end"),
    [("tides", 20, 2, "end"), ("tides", 2, 3, "sorry"), ("x", 20, 0, "sorry")],
)
def test_guardrails_read_the_data_and_an_error_edge_takes_their_refusals(
    topic: str, limit: int, calls: int, end: str
) -> None:
    script = "rules: [{answers: [{text: All about tides.}, {text: Water moves.}]}]"
    played = play(GUARDED, {"topic": topic, "limit": limit}, script=script)
    assert (played.status, played.path[-1]) == ("completed", end)
    assert cast("JsonObject", played.view["usage"])["modelCalls"] == calls


def test_a_guardrail_has_exactly_one_rule() -> None:
    document = GUARDED.replace("message: A topic", "prompt: Is it a topic?, message: A topic")

    async def run() -> list[tuple[str, str]]:
        async with installation() as app:
            return [(p.code, p.pointer) for p in (await app.check(written(document))).problems if p.severity == "error"]

    assert run_virtually(run()) == [("bad-value", "/nodes/0/config/guardrails/before/0")]
