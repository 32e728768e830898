"""The engine alone: which nodes may run, what branches see, what is stored, what an execution shows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from pointsman import Pointsman, tool
from pointsman.definition.problems import WorkflowInvalid
from pointsman.engine.compile import compile_workflow
from pointsman.engine.decide.dispatch import decide
from pointsman.engine.reports import Start
from pointsman.engine.state import ExecutionState
from pointsman.executions.opening import GivenAnswer
from pointsman.models.transport import PydanticModels
from pointsman.ports import ModelReply, ModelRequest, TextCallback
from pointsman.settings import Settings
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.testing.simulation import Simulation, describe, refolded
from pointsman.values import JsonObject
from tests.quick_starts import fresh_starts
from tests.scenarios import installation, play, written

DIAMOND = """\
pointsman: 1
id: diamond
config: {limits: {parallel: 4}}
nodes:
  - {id: begin, type: agent, config: {prompt: x}}
  - {id: quick, type: agent, config: {prompt: x}, outputs: {quick: result}}
  - {id: slow, type: agent, config: {prompt: x}, outputs: {slow: result}}
  - {id: both, type: agent, config: {prompt: "{quick} {slow}"}, outputs: {both: result}}
edges:
  - {source: begin, target: quick}
  - {source: begin, target: slow}
  - {source: quick, target: both}
  - {source: slow, target: both}
"""
PACE = "rules: [{node: quick, text: q, delay: 1s}, {node: slow, text: s, delay: 5s}, {text: done}]"


@pytest.mark.integration
@pytest.mark.requirement("S1-61", "S1-62", "S1-63", "S1-65", "T1-4")
def test_a_node_runs_after_its_dependencies_and_independent_nodes_run_concurrently() -> None:
    played = play(DIAMOND, {}, script=PACE)
    assert (played.path, played.view["durationMs"]) == (["begin", "quick", "slow", "both"], 5000)
    assert played.data == {"quick": "q", "slow": "s", "both": "done"}


@pytest.mark.requirement("S1-64")
def test_branches_change_copies_and_the_join_merges_their_writes() -> None:
    document = """\
pointsman: 1
id: branches
entry: split
nodes:
  - {id: split, type: parallel, config: {items: "[1, 2, 3]", as: n}}
  - {id: grow, type: transform, config: {set: {"seen.current_fanout_item": "[base.list, n]"}}}
  - {id: look, type: transform, config: {set: {"saw.current_fanout_item": "count(seen)"}}}
  - {id: all, type: join}
edges: [{source: split, target: grow}, {source: grow, target: look}, {source: look, target: all}]
"""
    played = play(document.replace("count(seen)", "seen"), {"base": {"list": [0]}})
    saw = cast(JsonObject, played.data["saw"])
    assert saw == {str(n): {str(n): [[0], n]} for n in (1, 2, 3)}
    assert played.data["base"] == {"list": [0]}
    assert played.data["seen"] == {str(n): [[0], n] for n in (1, 2, 3)}


@pytest.mark.integration
@pytest.mark.requirement("S1-09", "S1-15", "S1-13")
def test_the_engine_runs_without_store_models_tools_or_interfaces() -> None:
    program = """
import json, sys
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.compile import compile_workflow
from pointsman.engine.decide.dispatch import decide
from pointsman.engine.reports import Start, WorkDone
from pointsman.engine.state import ExecutionState
from pointsman.engine.steps import Step
document = {"id": "w", "nodes": [{"id": "a", "type": "agent", "config": {"prompt": "x"}}]}
workflow, _ = WorkflowDefinition.from_document(document)
plan, state = compile_workflow(workflow), ExecutionState("exec-1")
decide(plan, state, Start(input={}), 0.0)
decide(plan, state, WorkDone(step=Step("a"), attempt=1, result="done"), 1.0)
loaded = {name.split(".")[1] for name in sys.modules if name.startswith("pointsman.")}
print(json.dumps([state.status, state.outcome.output, sorted(loaded)]))
"""
    with fresh_starts():
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
            capture_output=True,
            check=True,
            text=True,
        )
    status, output, loaded = json.loads(done.stdout)
    assert (status, output) == ("completed", "done")
    assert set(loaded) <= {"definition", "engine", "errors", "expressions", "json_meter", "values", "version"}


@pytest.mark.requirement("S1-45")
def test_a_node_type_without_an_executor_is_an_error_that_names_it() -> None:
    with pytest.raises(WorkflowInvalid, match="teleport"):
        play({"id": "w", "nodes": [{"id": "a", "type": "teleport"}]})


@pytest.mark.requirement("X-2", "S1-34")
@pytest.mark.parametrize(
    ("ends", "path"),
    [
        ([], ["a", "b"]),
        ([{"id": "z", "type": "end"}], ["a", "b", "z"]),
        ([{"id": "z", "type": "end"}, {"id": "y", "type": "end"}], ["a", "b", "z", "y"]),
    ],
    ids=["none: control runs out", "one", "several"],
)
def test_a_workflow_may_have_any_number_of_ends(ends: list[JsonObject], path: list[str]) -> None:
    document: JsonObject = {
        "id": "w",
        "nodes": [{"id": "a", "type": "start"}, {"id": "b", "type": "transform", "config": {"set": {"n": "1"}}}, *ends],
        "edges": [{"source": "a", "target": "b"}, *({"source": "b", "target": end["id"]} for end in ends)],
    }
    played = play(document)
    assert (played.status, played.path) == ("completed", path)


@pytest.mark.requirement("X-2", "S1-32")
def test_an_execution_begins_at_the_start_the_entry_or_the_node_without_incoming_edges() -> None:
    chain: JsonObject = {
        "nodes": [{"id": "a", "type": "transform"}, {"id": "b", "type": "transform"}],
        "edges": [{"source": "a", "target": "b"}],
    }
    assert play({"id": "w", **chain}).path == ["a", "b"]
    assert play({"id": "w", "entry": "b", **chain}).path == ["b"]


@pytest.mark.requirement("X-2")
def test_a_terminating_end_stops_running_steps() -> None:
    document = """\
pointsman: 1
id: w
nodes:
  - {id: a, type: transform}
  - {id: slow, type: agent, config: {prompt: x}}
  - {id: quick, type: end, config: {terminate: true, output: {said: "'over'"}}}
edges: [{source: a, target: slow}, {source: a, target: quick}]
"""
    played = play(document, script="rules: [{text: late, delay: 60s}]")
    assert (played.status, played.view["output"], played.view["durationMs"]) == ("completed", {"said": "over"}, 0)


@pytest.mark.requirement("T1-18")
def test_stored_bytes_grow_with_the_changes() -> None:
    document = """\
pointsman: 1
id: rounds
entry: again
nodes:
  - {id: again, type: loop, config: {maxIterations: %d}}
  - {id: note, type: agent, config: {prompt: x}, outputs: {log: result}}
edges: [{source: again, target: note, mark: body}, {source: note, target: again}]
state: {log: {reduce: append, default: []}}
"""

    def stored(rounds: int) -> int:
        plan = compile_workflow(written(document % rounds).definition)
        return sum(len(str(row.events)) for row in Simulation(plan, 1, checked=False).run({}).rows)

    few, many = stored(50), stored(200)
    assert many < few * 4.5


@pytest.mark.requirement("S1-59", "S1-121", "S1-154")
def test_the_state_equals_the_fold_of_its_journal() -> None:
    outcome = Simulation(compile_workflow(written(DIAMOND).definition), 1).run({})
    assert describe(refolded(outcome.state.id, list(outcome.rows))) == describe(outcome.state)


@pytest.mark.requirement("S1-53")
def test_an_execution_is_always_in_one_of_eight_states() -> None:
    gate = """\
pointsman: 1
id: w
nodes:
  - {id: a, type: agent, config: {prompt: x}}
  - {id: ok, type: human, config: {message: Well?, options: [{value: go}, {value: reject}]}}
  - {id: b, type: agent, config: {prompt: x}}
edges: [{source: a, target: ok}, {source: ok, target: b, condition: {type: label, label: go}}]
"""
    limited = gate.replace("id: w", "id: w\nconfig: {limits: {steps: 1}}", 1)
    seen = [
        play(gate).status,
        play(gate, answers=(GivenAnswer("ok", "go"),)).status,
        play(gate, answers=(GivenAnswer("ok", "reject"),)).status,
        play(gate, script="rules: [{fail: 400}]").status,
        play(limited).status,
    ]
    assert seen == ["waiting", "completed", "cancelled", "failed", "interrupted"]

    async def run() -> list[str]:
        async with installation("rules: [{text: x, delay: 9s}]") as app:
            execution = await app.start(written(gate), {})
            running = execution.status
            await execution.pause()
            return [running, execution.status]

    assert run_virtually(run()) == ["running", "paused"]


@pytest.mark.requirement("S1-134")
def test_cost_is_counted_in_tokens_and_calls() -> None:
    played = play(DIAMOND, script="rules: [{text: x, usage: {inputTokens: 3, outputTokens: 4}}]")
    usage = cast(JsonObject, played.view["usage"])
    assert (usage["inputTokens"], usage["outputTokens"], usage["modelCalls"]) == (12, 16, 4)


@pytest.mark.requirement("S1-122", "S1-123", "S1-127", "S1-119")
def test_start_agent_tool_decision_and_end_run_in_sequence_in_one_process() -> None:
    document = """\
pointsman: 1
id: w
nodes:
  - {id: begin, type: start, config: {set: {score: "70"}}}
  - {id: think, type: agent, config: {prompt: x}, outputs: {thought: result}}
  - {id: look, type: tool, config: {tool: find}, outputs: {found: result}}
  - {id: choose, type: decision, config: {expression: "score >= 80"}}
  - {id: good, type: transform, config: {set: {went: "'up'"}}}
  - {id: bad, type: transform, config: {set: {went: "'down'"}}}
  - {id: over, type: end, config: {output: {went: went, found: found}}}
edges:
  - {source: begin, target: think}
  - {source: think, target: look}
  - {source: look, target: choose}
  - {source: choose, target: good, condition: {type: label, label: "true"}}
  - {source: choose, target: bad, condition: {type: label, label: "false"}}
  - {source: good, target: over}
  - {source: bad, target: over}
"""
    played = play(document, script="rules: [{text: hm}]\ntools: {find: {result: 7}}")
    assert played.path == ["begin", "think", "look", "choose", "bad", "over"]
    assert played.view["output"] == {"went": "down", "found": 7}


@pytest.mark.integration
@pytest.mark.requirement("S1-70")
async def test_a_step_is_stored_before_the_next_one_starts(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    settings = Settings(store=f"sqlite:///{tmp_path / 'a.db'}")

    @tool
    async def peek() -> int:
        """Return the rows that another process would find in the store."""
        async with Pointsman(settings=settings, model="scripted") as other:
            (summary,) = await other.executions()
            _, events = await other.state_and_events(summary.execution)
        seen.append([str(event["kind"]) for event in events])
        return len(events)

    document = """\
pointsman: 1
id: w
nodes: [{id: a, type: agent, config: {prompt: x}}, {id: b, type: tool, config: {tool: peek}}]
edges: [{source: a, target: b}]
"""

    async with Pointsman(settings=settings, model="scripted", tools=[peek]) as app:
        execution = await app.start(written(document), {}, durability="step")
        assert await execution.settled() == "completed"
        whole = [str(event["kind"]) for event in (await app.state_and_events(execution.id))[1]]
    assert seen == [["started", "step_started", "step_succeeded", "step_started"]]
    assert whole[-1] == "completed"


@pytest.mark.requirement("S1-100")
def test_of_ten_thousand_branches_only_running_ones_use_memory() -> None:
    document = """\
pointsman: 1
id: wide
entry: split
nodes:
  - {id: split, type: parallel, config: {items: input.items, maxParallel: 2}}
  - {id: each, type: agent, config: {prompt: x}}
  - {id: all, type: join}
edges: [{source: split, target: each}, {source: each, target: all}]
"""
    plan, state = compile_workflow(written(document).definition), ExecutionState("exec-1")
    begun = decide(plan, state, Start(input={"items": [*range(10_000)]}), 0.0)
    assert len(begun.commands) == 2
    assert (len(state.scopes), len(state.steps)) == (3, 3)


@pytest.mark.parametrize(
    ("own", "default", "settings", "asked"),
    [
        ("ollama:own", "ollama:flow", "ollama:house", "ollama:own"),
        (None, "ollama:flow", "ollama:house", "ollama:flow"),
        (None, None, "ollama:house", None),
    ],
)
def test_the_model_comes_from_the_node_then_the_workflow_then_the_settings(
    own: str | None, default: str | None, settings: str, asked: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str | None] = []

    async def ask(self: PydanticModels, request: ModelRequest, *, on_text: TextCallback | None = None) -> ModelReply:
        found.append(request.model or None)
        return ModelReply(text="fine")

    monkeypatch.setattr(PydanticModels, "ask", ask)
    config: JsonObject = {} if default is None else {"defaultModel": default}
    agent: JsonObject = {"prompt": "x"} if own is None else {"prompt": "x", "model": own}
    document: JsonObject = {"id": "w", "config": config, "nodes": [{"id": "a", "type": "agent", "config": agent}]}

    async def run(app: Pointsman) -> None:
        async with app:
            execution = await app.start(written(document), {})
            assert await execution.settled() == "completed"

    providers = {"ollama": {"base_url": "http://127.0.0.1:9"}, "user": {"base_url": "http://127.0.0.1:9/v1"}}
    known = Settings.model_validate({"store": "memory:", "model": settings, "providers": providers})
    run_virtually(run(Pointsman(settings=known, clock=VirtualClock())))
    run_virtually(run(Pointsman(settings=known, model="user:m", clock=VirtualClock())))
    assert found == [asked, "user:m"]
