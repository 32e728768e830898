"""Settings without an effect, and impossible compensations."""

from __future__ import annotations

import pytest

from pointsman.definition.problems import Problem
from pointsman.values import Json, JsonObject
from tests.definition.check.problems_in import codes, found

ALONE: JsonObject = {"id": "w", "nodes": [{"id": "a", "type": "tool", "config": {"tool": "t"}}], "edges": []}


def one(kind: str, config: JsonObject, *, more: JsonObject | None = None, **keys: Json) -> tuple[Problem, ...]:
    """Return the problems of a workflow with one node."""
    node: JsonObject = {"id": "a", "type": kind, "config": config, **(more or {})}
    nodes: list[Json] = [
        {"id": "start", "type": "start"},
        node,
        {"id": "undo", "type": "tool", "config": {"tool": "t"}},
    ]
    edges: list[Json] = [{"source": "start", "target": "a"}]
    problems = found({"id": "w", "nodes": nodes, "edges": edges, **keys})
    return tuple(problem for problem in problems if problem.code not in ("no-end-node", "unreachable-node"))


@pytest.mark.parametrize("key", ["timeout", "retries", "delay", "cache", "errorHandler", "backoff", "retryDelay"])
@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("transform", {"set": {"x": "1"}}),
        ("human", {}),
        ("wait", {"duration": "1s"}),
        ("decision", {"cases": [], "default": "x"}),
    ],
)
def test_policies_of_work_on_control_nodes_are_reported(kind: str, config: JsonObject, key: str) -> None:
    value: Json = {"retries": 1, "backoff": 2, "cache": "execution", "errorHandler": "continue"}.get(key, "5s")
    (problem,) = (p for p in one(kind, config, more={"execution": {key: value}}) if p.code == "setting-without-effect")
    assert (problem.pointer, problem.severity) == (f"/nodes/1/execution/{key}", "warning")
    assert problem.fix == ({"op": "remove", "path": problem.pointer},)


def test_work_nodes_have_all_policies_and_sub_workflows_have_retries() -> None:
    everything: JsonObject = {"timeout": "5s", "retries": 1, "delay": "1s", "cache": "execution", "backoff": 2}
    assert codes(one("tool", {"tool": "t"}, more={"execution": everything})) == []
    problems = one("workflow", {"workflow": "w"}, more={"execution": everything})
    assert [p.pointer.rpartition("/")[2] for p in problems] == ["cache", "delay", "timeout"]


def test_a_decision_by_a_model_has_policies_of_work() -> None:
    config: JsonObject = {"llmPrompt": "which?", "choices": [{"label": "x"}, {"label": "y"}]}
    problems = one("decision", config, more={"execution": {"retries": 1}})
    assert "setting-without-effect" not in codes(problems)


def test_steps_without_effects_need_no_compensation() -> None:
    problems = one("transform", {"set": {"x": "1"}}, more={"compensate": "undo"})
    assert codes(problems) == ["setting-without-effect"]
    assert codes(one("human", {}, more={"compensate": "undo"})) == []
    assert "setting-without-effect" in codes(found({**ALONE, "config": {"onCancel": "stop"}}))


def compensated(undo: JsonObject, *edges: Json, **keys: Json) -> list[str]:
    nodes: list[Json] = [
        {"id": "start", "type": "start"},
        {"id": "a", "type": "tool", "config": {"tool": "t"}, "compensate": "undo"},
        {"id": "undo", "type": "tool", "config": {"tool": "t"}, **undo},
    ]
    return codes(found({"id": "w", "nodes": nodes, "edges": [{"source": "start", "target": "a"}, *edges], **keys}))


def test_a_compensation_is_a_separate_node_that_reads_its_step() -> None:
    sees: JsonObject = {"tool": "t", "parameters": {"id": "{{compensated.result.id}}", "was": "{{nodes.a.id}}"}}
    assert compensated({"config": sees}) == []


def test_a_compensation_is_on_no_other_path() -> None:
    assert compensated({}, {"source": "a", "target": "undo"}) == ["compensation-on-path"]
    assert compensated({}, {"source": "undo", "target": "a"}) == ["compensation-on-path"]
    assert compensated({}, onError="undo") == ["compensation-on-path"]


def test_a_compensation_has_an_effect_and_no_compensation() -> None:
    assert compensated({"compensate": "undo"}) == ["compensation-nested"]
    assert "compensation-nested" in compensated({"compensate": "a"})
    assert "compensation-impossible" in compensated({"type": "parallel", "config": {}})
    assert compensated({"compensate": "nobody"}) == ["compensation-nested", "unknown-node"]


@pytest.mark.parametrize(("on_limit", "expected"), [(None, ["setting-without-effect"]), ("ask", [])])
def test_more_is_valid_only_at_limit_gates(on_limit: str | None, expected: list[str]) -> None:
    options: list[Json] = [{"value": "continue", "more": {"steps": 1}}]
    config: JsonObject = {"limits": {"steps": 5}, **({"onLimit": on_limit} if on_limit else {})}
    document: JsonObject = {
        "id": "w",
        "entry": "start",
        "config": config,
        "nodes": [
            {"id": "start", "type": "start"},
            {"id": "ask", "type": "human", "config": {"options": options}},
        ],
        "edges": [] if on_limit else [{"source": "start", "target": "ask"}],
    }
    assert codes(found(document)) == expected
