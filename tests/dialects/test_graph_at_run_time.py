"""Graphs at run time: tokens, branches, loops, merges, limits and failures, with the behaviour that authors expect."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

from pointsman.executions.timeline import timeline
from pointsman.testing.clock import run_virtually
from pointsman.values import Json, JsonObject, json_of
from pointsman.workflows.sources import Workflow
from tests.dialects.small_graphs import agent, edge, graph
from tests.scenarios import RunResult, installation, play, written

DESKS: list[Json] = ["north", "south", "west"]


def fan(*after: JsonObject, edges: list[JsonObject] | None = None, **params: Json) -> JsonObject:
    """Return a fan-out over three desks, each of which writes; `after` follows."""
    nodes: list[JsonObject] = [
        {"id": "desks", "type": "fanout", "branches": ["write"], "params": {"fanout_items": "targets", **params}},
        agent("write", "drafts.current_fanout_item", goal="goal", desk="current_fanout_item"),
    ]
    return graph([*nodes, *after], [edge("desks", "write"), *(edges or [])])


def at(played: RunResult, kind: str, node: str) -> list[float]:
    return [cast(float, event["at"]) for event in played.told(kind) if event.get("node") == node]


# From the entry to the output ----------------------------------------------------------------------------------------


@pytest.mark.requirement("S3-01", "S3-03", "S3-14", "S3-64")
def test_the_goal_is_the_input_and_the_final_text_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = graph([agent("only", "final", goal="goal")], [])
    cast("list[JsonObject]", document["nodes"])[0]["agent_id"] = "${AGENT_ID_ONLY}"
    path = tmp_path / "one.json"
    path.write_text(json.dumps(document))
    monkeypatch.setenv("AGENT_ID_ONLY", "one")

    async def run() -> tuple[Json, JsonObject]:
        script = "rules: [{node: only, contains: cranes, text: All about cranes, delay: 2s}]"
        async with installation(script, settings={"variables_from_env": ["AGENT_ID_*"]}) as app:
            execution = await app.start(Workflow.load(path), "cranes")
            return await execution.output(), json_of(await timeline(app.context, execution.id))

    output, measured = run_virtually(run())
    assert output == "All about cranes"
    (account,) = cast("list[JsonObject]", measured["nodes"])
    assert (account["node"], account["seconds"], account["status"], account["modelCalls"]) == ("only", 2, "done", 1)


@pytest.mark.requirement("S3-22", "S3-11")
@pytest.mark.parametrize(("steps", "status"), [(50, "completed"), (4, "interrupted")])
def test_an_execution_ends_or_reports_the_exceeded_step_limit(steps: int, status: str) -> None:
    nodes = [agent("ask", "said", goal="goal"), agent("answer", "latest", goal="goal")]
    edges = [edge("ask", "answer"), edge("answer", "ask", 'latest != "enough"')]
    rules = """
        rules:
          - {node: ask, answers: [{text: a}, {text: b}, {text: c}, {text: d}]}
          - {node: answer, answers: [{text: e}, {text: f}, {text: g}, {text: enough}]}
        """
    played = play(graph(nodes, edges, limits={"max_steps": steps}), "g", script=rules)
    assert played.status == status
    assert [error["code"] for error in played.errors] == ([] if status == "completed" else ["limit-steps"])
    assert len(played.path) == min(steps, 8)


@pytest.mark.requirement("S3-17")
def test_a_loop_of_ten_thousand_steps_completes() -> None:
    played = play(
        """
        id: long
        entry: again
        config: {limits: {steps: 50000}}
        nodes:
          - {id: again, type: loop, config: {maxIterations: 5000}}
          - {id: count, type: transform, config: {set: {n: "(n ?? 0) + 1"}}}
        edges: [{source: again, target: count}, {source: count, target: again}]
        """
    )
    assert (played.status, played.data["n"]) == ("completed", 5000)
    assert cast(int, played.view["steps"]) > 10_000


@pytest.mark.requirement("S3-18", "S3-19", "S3-84", "T3-10")
def test_a_step_is_identified_by_node_branch_and_visit() -> None:
    nodes: list[JsonObject] = [
        {"id": "desks", "type": "fanout", "branches": ["write"], "params": {"fanout_items": "targets"}},
        agent("write", "drafts.current_fanout_item", desk="current_fanout_item"),
        {"id": "rounds", "type": "loop", "max_iters": 2},
        agent("check", "verdicts.current_fanout_item", draft="drafts.current_fanout_item"),
    ]
    edges = [edge("desks", "write"), edge("write", "rounds"), edge("rounds", "check"), edge("check", "rounds")]
    rules = "rules: [{node: write, text: 'by {{ item }}'}, {node: check, text: seen}]"
    played = play(graph(nodes, edges), {"goal": "g", "targets": DESKS[:2]}, script=rules)
    steps = [str(event["step"]) for event in played.told("step_succeeded")]
    assert len(steps) == len(set(steps)) == 2 + 2 * 2, "no branch or round swallowed another's"
    checks = [event for event in played.told("step_started") if event["node"] == "check"]
    places = {cast(int, cast("list[JsonObject]", event["scope"])[0]["branch"]) for event in checks}
    assert places == {0, 1}
    assert [len(cast("list[Json]", said)) for said in cast(JsonObject, played.data["verdicts"]).values()] == [2, 2]


# Branches ------------------------------------------------------------------------------------------------------------


SLOW = """
rules:
  - {node: write, item: north, text: N, delay: 9s}
  - {node: write, item: south, text: S, delay: 1s}
  - {node: write, text: W, delay: 5s}
"""


@pytest.mark.requirement("S3-12", "S3-27", "S3-28", "S3-29", "S3-30", "S3-39", "S3-41", "S3-54")
def test_each_branch_has_its_item_and_the_merge_waits_for_all() -> None:
    merge: JsonObject = {"id": "all", "type": "merge", "params": {"strategy": "collect_list"}}
    document = fan(merge, agent("after", "final", drafts="drafts"), edges=[edge("write", "all"), edge("all", "after")])
    played = play(document, {"goal": "g", "targets": DESKS}, script=SLOW + "  - {node: after, text: done}\n")
    assert played.data["drafts"] == {"north": "N", "south": "S", "west": "W"}
    (opened,) = played.told("scopes_opened")
    assert (opened["node"], opened["items"], [*cast("list[Json]", opened["keys"])]) == ("desks", DESKS, DESKS)
    (closed,) = played.told("scopes_closed")
    assert cast(float, closed["at"]) - cast(float, played.told("started")[0]["at"]) == 9
    assert at(played, "step_started", "after") == [closed["at"]]
    assert played.path.index("all") > max(i for i, node in enumerate(played.path) if node == "write")


@pytest.mark.requirement("S3-10", "S3-43", "T3-11", "T3-14")
@pytest.mark.parametrize(("most", "took"), [(3, 9), (1, 15)])
def test_branches_run_in_parallel_up_to_the_limit(most: int, took: int) -> None:
    document = fan(max_parallel=most)
    played = play(document, {"goal": "g", "targets": DESKS}, script=SLOW)
    first, *_, last = played.events
    assert cast(float, last["at"]) - cast(float, first["at"]) == took


@pytest.mark.requirement("T3-12", "T3-11", "S3-43")
def test_an_arrival_that_waits_at_a_join_uses_no_steps() -> None:
    merge: JsonObject = {"id": "all", "type": "merge"}

    def steps(delay: str) -> tuple[Json, int]:
        rules = f"rules: [{{node: write, item: north, text: N, delay: {delay}}}, {{node: write, text: S}}]"
        document = fan(merge, edges=[edge("write", "all")])
        played = play(document, {"goal": "g", "targets": DESKS}, script=rules)
        return played.view["steps"], len(played.events)

    assert steps("0s") == steps("20s")


@pytest.mark.requirement("S3-40", "S3-41")
@pytest.mark.parametrize(("expected", "warned"), [(["north", "south"], []), (["north", "east"], ["missing-keys"])])
def test_a_merge_reports_expected_keys_that_never_arrived(expected: list[Json], warned: list[str]) -> None:
    merge: JsonObject = {
        "id": "all",
        "type": "merge",
        "params": {"merge_key": "drafts", "expected_keys": expected, "strategy": "merge_dict"},
    }
    document = fan(merge, edges=[edge("write", "all")])
    played = play(document, {"goal": "g", "targets": DESKS}, script=SLOW)
    assert [warning["code"] for warning in played.warnings] == warned
    assert played.status == "completed"
    assert played.told("scopes_closed")[0]["at"] == max(at(played, "step_succeeded", "write"))


# Conditions and loops ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S3-09", "S3-53")
@pytest.mark.parametrize(("said", "path"), [("short", "brief"), ("long", "essay")])
def test_a_conditional_routes_and_changes_no_data(said: str, path: str) -> None:
    nodes: list[JsonObject] = [
        agent("triage", "kind", goal="goal"),
        {"id": "which", "type": "conditional", "condition": 'kind == "short"'},
        agent("brief", "final", goal="goal"),
        agent("essay", "final", goal="goal"),
    ]
    edges = [
        edge("triage", "which"),
        edge("which", "brief", 'kind == "short"'),
        edge("which", "essay", 'kind != "short"'),
    ]
    played = play(graph(nodes, edges), "g", script=f"rules: [{{node: triage, text: {said}}}, {{text: done}}]")
    assert played.path == ["triage", "which", path]
    (passed,) = [event for event in played.told("step_passed") if event["node"] == "which"]
    assert passed.get("writes", []) == []


@pytest.mark.requirement("S3-25", "S3-34", "S3-35", "S3-54")
@pytest.mark.parametrize(("enough", "rounds"), [(2, 2), (9, 3)])
def test_a_loop_ends_on_its_condition_or_iteration_limit(enough: int, rounds: int) -> None:
    nodes: list[JsonObject] = [
        agent("write", "draft", goal="goal"),
        {"id": "again", "type": "loop", "max_iters": 3, "loop_condition": 'verdict != "good"'},
        agent("review", "verdict", draft="draft", round="loop.iteration"),
        agent("print", "final", draft="draft"),
    ]
    edges = [edge("write", "again"), edge("again", "review"), edge("review", "again"), edge("again", "print")]
    rules = f"rules: [{{node: review, visit: {enough}, text: good}}, {{node: review, text: bad}}, {{text: x}}]"
    played = play(graph(nodes, edges), "g", script=rules)
    reviews = [event for event in played.told("step_started") if event["node"] == "review"]
    counted = [cast(JsonObject, cast(JsonObject, event["input"])["inputs"])["round"] for event in reviews]
    assert counted == list(range(1, rounds + 1))
    assert (played.path[-1], played.path.count("print")) == ("print", 1), "exit edges are taken once, after the rounds"


@pytest.mark.requirement("S3-37")
async def test_a_loop_without_a_body_is_an_error() -> None:
    document = graph(
        [{"id": "again", "type": "loop", "max_iters": 3}, agent("print", "final", goal="goal")],
        [edge("again", "print")],
    )
    async with installation() as app:
        checked = await app.check(written(document))
    assert [p.code for p in checked.problems if p.severity == "error"] == ["loop-body-ambiguous"]


# Data ----------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S3-55")
def test_a_missing_input_is_null_with_a_warning() -> None:
    document = graph([agent("only", "final", goal="goal", extra="nobody.wrote.this")], [])

    async def check() -> list[tuple[str, str]]:
        async with installation() as app:
            return [(p.severity, p.code) for p in (await app.check(written(document))).problems]

    assert run_virtually(check()) == [("warning", "never-written")]
    played = play(document, "g", script="rules: [{text: fine}]")
    (started,) = played.told("step_started")
    given = cast(JsonObject, cast(JsonObject, started["input"])["inputs"])
    assert (given["extra"], played.status) == (None, "completed")


@pytest.mark.requirement("S3-55")
@pytest.mark.parametrize(("strict", "status"), [("false", "completed"), ("true", "failed")])
def test_a_strict_workflow_fails_on_a_missing_input(strict: str, status: str) -> None:
    document = f"""
        id: s
        strict: {strict}
        input: {{type: object, properties: {{maybe: {{type: string}}}}}}
        nodes: [{{id: only, type: agent, inputs: {{extra: input.maybe}}, config: {{prompt: hello}}}}]
        edges: []
        """
    played = play(document, {}, script="rules: [{text: fine}]")
    assert played.status == status
    assert ["maybe" in str(error["message"]) for error in played.errors] == [True] * (status == "failed")


@pytest.mark.requirement("S3-79", "S3-80", "S3-81")
def test_writes_create_missing_parents_and_unknown_fields() -> None:
    nodes: list[JsonObject] = [
        agent("one", "report.parts.first", goal="goal"),
        agent("two", "report.parts.second", a="report.parts.first"),
    ]
    rules = "rules: [{node: one, text: A}, {node: two, contains: A, text: B}]"
    played = play(graph(nodes, [edge("one", "two")]), {"goal": "g", "mine": 7}, script=rules)
    assert played.data["report"] == {"parts": {"first": "A", "second": "B"}}
    assert played.data["mine"] == 7


@pytest.mark.requirement("S3-O10")
def test_the_item_of_a_branch_can_be_a_key_of_any_field() -> None:
    nodes: list[JsonObject] = [
        {"id": "desks", "type": "fanout", "branches": ["write"], "params": {"fanout_items": "targets"}},
        agent("write", "pages.current_fanout_item.text", goal="goal"),
        agent("proof", "pages.current_fanout_item.proof", text="pages.current_fanout_item.text"),
    ]
    rules = """
        rules:
          - {node: write, item: north, text: N}
          - {node: write, text: S}
          - {node: proof, contains: N, text: n}
          - {node: proof, contains: S, text: s}
        """
    played = play(
        graph(nodes, [edge("desks", "write"), edge("write", "proof")]),
        {"goal": "g", "targets": DESKS[:2]},
        script=rules,
    )
    assert played.data["pages"] == {"north": {"text": "N", "proof": "n"}, "south": {"text": "S", "proof": "s"}}


@pytest.mark.requirement("S3-78")
def test_the_fields_of_the_news_desk_are_filled_during_the_run() -> None:
    nodes: list[JsonObject] = [
        agent("triage", "triage", goal="goal"),
        agent("search", "latest", goal="goal", database="triage.database_id"),
        {"id": "desks", "type": "fanout", "branches": ["write"], "params": {"fanout_items": "targets"}},
        agent("write", "drafts.current_fanout_item", news="latest"),
        agent("review", "verdicts.current_fanout_item", draft="drafts.current_fanout_item"),
        agent("polish", "final.current_fanout_item", draft="drafts.current_fanout_item"),
        agent("log", "logs", draft="drafts.current_fanout_item"),
    ]
    line = ["triage", "search", "desks", "write", "review", "polish", "log"]
    rules = "rules: [{node: triage, json: {database_id: harbour}}, {node: log, text: noted}, {text: x}]"
    document = graph(nodes, [edge(a, b) for a, b in pairwise(line)])
    played = play(document, {"goal": "g", "targets": DESKS[:2]}, script=rules)
    state = played.data
    assert (state["goal"], state["targets"], state["triage"]) == ("g", DESKS[:2], {"database_id": "harbour"})
    assert (state["drafts"], state["final"]) == ({"north": "x", "south": "x"},) * 2
    assert (state["verdicts"], state["logs"]) == ({"north": ["x"], "south": ["x"]}, ["noted", "noted"])
    assert played.view["output"] == {"north": "x", "south": "x"}


# Failures and limits -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("S3-15", "S3-85")
def test_the_wait_before_each_retry_doubles() -> None:
    document = graph([agent("only", "final", goal="goal")], [])
    played = play(document, "g", script="rules: [{attempt: 4, text: at last}, {fail: 503}]")
    failed, begun = at(played, "step_failed", "only"), at(played, "attempt_started", "only")
    waits = [b - a for a, b in zip(failed, begun, strict=False)]
    assert waits == [pytest.approx(wait, rel=0.1) for wait in (1, 2, 4)], "and a little chance"
    assert played.status == "completed"


@pytest.mark.requirement("S3-87", "T3-22")
def test_a_failure_is_recorded_without_a_fallback() -> None:
    nodes = [agent("one", "a", goal="goal"), agent("two", "final", goal="goal")]
    played = play(graph(nodes, [edge("one", "two")]), "g", script="rules: [{node: one, fail: 400}, {text: x}]")
    assert (played.status, played.path) == ("failed", ["one"])
    assert [(error["nodeId"], bool(error["code"])) for error in played.errors] == [("one", True)]


@pytest.mark.requirement("S3-04")
def test_a_failed_graph_with_a_fallback_keeps_its_failure() -> None:
    document = """
        id: twice
        onError: plain
        input: {type: object, properties: {goal: {type: string}}}
        nodes:
          - {id: one, type: agent, config: {prompt: "{goal}"}}
          - {id: plain, type: agent, config: {prompt: "Only {goal}"}}
        edges: []
        """
    rules = "rules: [{node: one, fail: 400}, {node: plain, contains: Only g, text: simpler}]"
    played = play(document, {"goal": "g"}, script=rules)
    assert (played.status, played.view["output"]) == ("completed", "simpler")
    assert [error["nodeId"] for error in played.errors] == ["one"]


@pytest.mark.requirement("S3-88", "S3-90", "S3-93")
def test_an_execution_beyond_its_time_limit_is_interrupted_and_resumable() -> None:
    nodes = [agent("one", "a", goal="goal"), agent("two", "b", goal="goal"), agent("three", "final", goal="goal")]
    document = graph(nodes, [edge("one", "two"), edge("two", "three")], limits={"timeout_ms": 5000})

    async def run() -> tuple[JsonObject, JsonObject]:
        async with installation("rules: [{text: x, delay: 3s}]") as app:
            execution = await app.start(written(document), "g")
            await execution.settled()
            stopped = await app.view(execution.id)
            again = await app.open(execution.id)
            await again.resume(limits={"executionTime": 60})
            await again.settled()
            return json_of(stopped), json_of(await again.view())

    stopped, ended = run_virtually(run())
    assert stopped["status"] == "interrupted"
    assert cast(JsonObject, stopped["state"])["a"] == "x"
    assert (stopped["workflowId"], cast("list[JsonObject]", stopped["errors"])[0]["code"]) == (
        "graph",
        "limit-executionTime",
    )
    assert (ended["status"], ended["output"]) == ("completed", "x")
