"""Agents and their tools; settings that contradict each other."""

from __future__ import annotations

from typing import Final

import pytest

from pointsman.definition.checks.subject import Installation, ToolFacts
from pointsman.definition.problems import Problem
from pointsman.values import Json, JsonObject
from tests.definition.check.problems_in import Configs, codes, drawn, found, the

CHAT = "start -> agent1; agent1 -#e-> end"


@pytest.mark.requirement("T0-4")
def test_the_names_of_injected_tools_are_reserved() -> None:
    problems = drawn(CHAT, configs={"agent1": {"routing": "label", "tools": ["router", "search", "end"]}})
    taken = [p.pointer for p in problems if p.code == "reserved-tool-name"]
    assert taken == ["/nodes/1/config/tools/0", "/nodes/1/config/tools/2"]


@pytest.mark.requirement("S0-36")
def test_in_rows_an_agent_with_tools_needs_a_tool_executor() -> None:
    configs: Configs = {"agent1": {"routing": "label", "tools": ["search"]}}
    assert "no-tool-executor" in codes(drawn(CHAT, configs=configs, dialect="rows"))
    assert codes(drawn(CHAT, configs=configs)) == []


@pytest.mark.requirement("S0-37", "S0-46")
def test_an_agent_with_server_tools_needs_an_edge_to_the_tool_executor() -> None:
    drawing = "start -> agent1; agent1 -#two-> agent2; agent2 -#t-> tools; agent2 -#e-> end"
    configs: Configs = {"agent1": {"routing": "label", "tools": ["search"]}, "agent2": {"routing": "label"}}
    assert the(drawn(drawing, configs=configs), "agent-without-tool-edge").pointer == "/nodes/1"
    client = Installation(tools={"search": ToolFacts(client_side=True)})
    assert "agent-without-tool-edge" not in codes(drawn(drawing, configs=configs, known=client))


def test_tools_of_named_agents_are_checked() -> None:
    agents: JsonObject = {"one": {"tools": ["search"]}}
    configs: Configs = {"agent1": {"routing": "label", "agent": "one"}}
    assert "no-tool-executor" in codes(drawn(CHAT, configs=configs, dialect="rows", agents=agents))


def test_a_decision_has_exactly_one_method() -> None:
    configs: Configs = {"dec": {"expression": "x", "cases": [{"when": "y", "label": "a"}]}}
    assert "several-deciders" in codes(drawn("start -> dec; dec -#a-> end", configs=configs))
    assert codes(drawn("start -> dec; dec -> end", configs={"dec": {"llmPrompt": "Which?"}})) == ["no-choices"]
    assert codes(drawn("start -> dec; dec -#a-> end", configs={"dec": {"llmPrompt": "Which?"}})) == []


@pytest.mark.requirement("T1-17")
def test_gates_without_persistence_are_errors() -> None:
    drawing = "start -> ask; ask -#approve-> end"
    assert codes(drawn(drawing, config={"persistence": "none"})) == ["gate-without-persistence"]
    assert codes(drawn(drawing, config={"humanInLoop": "none"})) == ["gate-without-people"]
    approval: Configs = {"tool": {"requiresApproval": True}}
    assert codes(drawn("start -> tool; tool -> end", configs=approval, config={"persistence": "none"})) == [
        "gate-without-persistence"
    ]
    assert codes(drawn("start -> a; a -> end", config={"persistence": "none", "conversational": True})) == [
        "history-not-stored"
    ]


@pytest.mark.parametrize(
    ("drawing", "config"),
    [
        ("start -> tool1; tool1 -> end", {"tool": "pay"}),
        ("start -> agent1; agent1 -> end", {"prompt": "Pay", "tools": ["look_up", "pay"]}),
        ("start -> agent1; agent1 -> end", {"prompt": "Pay", "agent": "payer"}),
    ],
)
def test_tool_approvals_without_persistence_are_errors(drawing: str, config: dict[str, Json]) -> None:
    known = Installation(
        tools={"pay": ToolFacts(requires_approval=True), "look_up": ToolFacts()}, agents={"payer": frozenset({"pay"})}
    )
    configs: Configs = {drawing.split()[2].rstrip(";"): config}
    problems = drawn(drawing, configs=configs, known=known, config={"persistence": "none", "humanInLoop": "none"})
    assert codes(problems) == ["gate-without-people", "gate-without-persistence"]
    assert "before it calls 'pay'" in the(problems, "gate-without-persistence").message
    assert codes(drawn(drawing, configs=configs, known=known)) == []


@pytest.mark.requirement("S1-26")
def test_the_limit_of_nodes_does_not_count_notes() -> None:
    limits: JsonObject = {"limits": {"nodes": 3}}
    assert codes(drawn("start -> a; a -> end; note1", config=limits)) == []
    problem = the(drawn("start -> a; a -> b; b -> end", config=limits), "too-many-nodes")
    assert problem.pointer == "/config/limits/nodes"


def test_a_node_timeout_beyond_the_execution_timeout_is_reported() -> None:
    configs: Configs = {"a": {"execution": {"timeout": "10m"}}}
    limits: JsonObject = {"limits": {"executionTime": "5m"}}
    assert the(drawn("start -> a; a -> end", configs=configs, config=limits), "timeout-beyond-limit").pointer == (
        "/nodes/1/execution/timeout"
    )


@pytest.mark.requirement("S1-20")
def test_disabled_and_draft_workflows_get_a_note() -> None:
    problems = drawn("start -> end", enabled=False, status="draft")
    assert [(p.code, p.severity) for p in problems] == [("disabled", "note"), ("draft", "note")]


def test_the_answer_on_timeout_must_be_an_action() -> None:
    drawing = "start -> ask; ask -#approve-> end"
    assert codes(drawn(drawing, configs={"ask": {"timeout": "1h", "onTimeout": "aprove"}})) == ["unknown-action"]
    assert codes(drawn(drawing, configs={"ask": {"onTimeout": "approve"}})) == ["timeout-missing"]
    for answer in ("fail", "reject", "end"):
        assert codes(drawn(drawing, configs={"ask": {"timeout": "1h", "onTimeout": answer}})) == []


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"approvers": {"groups": []}}, ["approvers-empty"]),
        ({"approvers": {"users": ["ann", "ann"], "quorum": 2}}, ["quorum-unmet"]),
        ({"approvers": {"users": ["ann"], "rejectQuorum": 2}}, ["quorum-unmet"]),
        ({"approvers": {"users": ["ann"], "groups": ["all"], "quorum": 2}}, []),
        ({"timeout": "1h", "escalation": [{"approvers": {"users": ["ann"], "quorum": 2}}]}, ["quorum-unmet"]),
        ({"escalation": [{"approvers": {"users": ["ann"]}}]}, ["escalation-idle"]),
        (
            {"approvers": {"users": ["b"]}, "timeout": "1h", "escalation": [{"approvers": {"users": ["b"]}}]},
            ["escalation-idle"],
        ),
    ],
)
def test_approvers_must_be_able_to_answer(config: dict[str, Json], found: list[str]) -> None:
    assert codes(drawn("start -> ask; ask -#approve-> end", configs={"ask": config})) == found


def test_a_quorum_must_be_reachable_and_actions_distinct() -> None:
    configs: Configs = {"ask": {"approvers": {"users": ["ann"], "quorum": 2}, "actions": ["approve", "approve"]}}
    assert codes(drawn("start -> ask; ask -#approve-> end", configs=configs)) == ["duplicate-action", "quorum-unmet"]


def test_a_wait_without_a_condition_is_an_error() -> None:
    assert codes(drawn("start -> wait; wait -> end")) == ["wait-without-end"]


def test_tools_that_may_run_twice_are_reported_for_weak_durability() -> None:
    configs: Configs = {"tool1": {"tool": "pay"}}
    known = Installation(tools={"pay": ToolFacts(), "look_up": ToolFacts(idempotent=True)})
    drawing = "start -> tool1; tool1 -> tool2; tool2 -> end"
    problem = the(drawn(drawing, configs=configs, known=known, config={"durability": "async"}), "not-idempotent")
    assert problem.pointer == "/nodes/1/config/tool"
    assert codes(drawn(drawing, configs=configs, known=known)) == []


def test_fields_with_reserved_names_are_reported() -> None:
    configs: Configs = {"a": {"outputs": {"result": "1"}}}
    assert codes(drawn("start -> a; a -> end", configs=configs)) == ["reserved-name"]
    assert codes(drawn("start -> a; a -> end", configs=configs, dialect="graph")) == []


def test_triggers_without_a_condition_are_errors() -> None:
    base: JsonObject = {"id": "w", "nodes": [{"id": "a", "type": "transform"}], "edges": []}
    triggers: list[Json] = [
        {"id": "t1", "type": "schedule"},
        {"id": "t2", "type": "schedule", "cron": "every day"},
        {"id": "t3", "type": "webhook", "path": "in", "secret": "short"},
        {"id": "t4", "type": "schedule", "cron": "0 7 * * 1-5"},
    ]
    problems = found({**base, "triggers": triggers})
    assert [(p.code, p.pointer) for p in problems] == [
        ("trigger-incomplete", "/triggers/0"),
        ("cron-invalid", "/triggers/1/cron"),
        ("weak-secret", "/triggers/2/secret"),
    ]


NONE: Final[Json] = {"persistence": "none"}


@pytest.mark.requirement("S1-03")
@pytest.mark.parametrize("config", [{"event": "paid"}, {"until": "input.then"}, {"duration": "2h"}])
def test_long_waits_without_persistence_are_errors(config: JsonObject) -> None:
    waits = drawn("start -> wait; wait -> end", configs={"wait": config}, config=NONE)
    assert the(waits, "wait-without-persistence").severity == "error"
    kept = drawn("start -> wait; wait -> end", configs={"wait": config}, config={"persistence": "session"})
    assert "wait-without-persistence" not in codes(kept)


def test_a_short_wait_needs_no_persistence() -> None:
    assert codes(drawn("start -> wait; wait -> end", configs={"wait": {"duration": "5s"}}, config=NONE)) == []


def test_shared_memory_requires_persistence() -> None:
    def remembering(scope: str) -> tuple[Problem, ...]:
        memory: JsonObject = {"scope": scope, "operation": "set", "key": "k"}
        nodes: list[Json] = [{"id": "keep", "type": "memory", "config": memory}]
        return found({"id": "remember", "nodes": nodes, "edges": [], "config": NONE})

    assert the(remembering("long_term"), "memory-not-stored").pointer == "/nodes/0/config/scope"
    assert "memory-not-stored" in codes(remembering("user"))
    assert "memory-not-stored" not in codes(remembering("execution"))


@pytest.mark.parametrize(
    ("memory", "says"),
    [
        ({"scope": "shared", "operation": "get", "key": "k"}, "the name of the shared memory"),
        ({"scope": "user", "operation": "search"}, "the text to search for"),
        ({"scope": "user", "operation": "delete"}, "lacks the key"),
    ],
)
def test_incomplete_memory_nodes_are_errors(memory: JsonObject, says: str) -> None:
    def checked(**more: Json) -> tuple[Problem, ...]:
        nodes: list[Json] = [{"id": "keep", "type": "memory", "config": {**memory, **more}}]
        return found({"id": "remember", "nodes": nodes, "edges": []})

    assert says in the(checked(), "memory-incomplete").message
    assert "memory-incomplete" not in codes(checked(key="k", namespace="n"))


def test_settings_that_are_ignored_are_reported() -> None:
    nodes: list[Json] = [
        {
            "id": "text",
            "type": "template-render",
            "config": {"template": "Hi", "artifactName": "a.md"},
            "progress": "x",
        },
        {"id": "plain", "type": "template-render", "config": {"template": "Hi"}},
        {"id": "say", "type": "progress", "config": {"message": "Hi"}},
    ]
    edges: list[Json] = [{"source": "text", "target": "plain"}, {"source": "plain", "target": "say"}]
    problems = found({"id": "w", "nodes": nodes, "edges": edges})
    unheeded = [(problem.pointer, problem.severity) for problem in problems if problem.code == "field-without-effect"]
    assert unheeded == [("/nodes/0/config/artifactName", "warning"), ("/nodes/0/progress", "warning")]


def gate_problems(**config: Json) -> list[str]:
    drawing = "start -> a; a -> ask; ask -#approve-> end; ask -#edit-> end"
    letter: JsonObject = {"outputs": {"letter": "1"}}
    return [one for one in codes(drawn(drawing, configs={"a": letter, "ask": config})) if "edit" in one]


def test_an_edit_needs_fields_and_editable_fields_need_an_edit() -> None:
    both: list[Json] = ["approve", "edit"]
    assert gate_problems(actions=both, editable=["letter"]) == []
    assert gate_problems(actions=both) == ["edit-without-fields"]
    assert gate_problems(actions=both, editable=[]) == ["edit-without-fields"]
    assert gate_problems(options=[{"value": "approve"}, {"value": "edit"}]) == ["edit-without-fields"]
    assert gate_problems(actions=["approve"], editable=["letter"]) == ["editable-without-edit"]
    assert gate_problems(editable=["letter"]) == ["editable-without-edit"], "a gate offers approve and reject by itself"


def test_an_edit_may_take_its_data_by_the_form() -> None:
    form: JsonObject = {"type": "object", "properties": {"tone": {"type": "string"}}}
    assert gate_problems(actions=["approve", "edit"], form=form) == []


@pytest.mark.parametrize(
    ("type", "config", "placement", "expected"),
    [
        ("code", {"source": "1"}, "worker:gpu", []),
        ("code", {"source": "1"}, "gpu", ["placement-invalid"]),
        ("code", {"source": "1"}, "worker:GPU", ["placement-invalid"]),
        ("wait", {"duration": "1s"}, "worker:gpu", ["placement-unsupported"]),
        ("transform", {"set": {"n": "1"}}, "worker:gpu", ["placement-unsupported"]),
    ],
)
def test_a_placement_names_a_queue_and_belongs_to_work(
    type: str, config: JsonObject, placement: str, expected: list[str]
) -> None:
    assert codes(found(placed(type, config, placement))) == expected


def test_only_the_workers_of_its_queue_need_the_tool_of_a_placed_node() -> None:
    known = Installation(tools={"search": ToolFacts()})
    missing = the(found(placed("tool", {"tool": "draw"}, "worker:gpu"), known=known), "unknown-tool")
    assert (missing.severity, "worker of the queue 'gpu'" in missing.message) == ("warning", True)


def placed(type: str, config: JsonObject, placement: str) -> JsonObject:
    node: JsonObject = {"id": "work", "type": type, "config": config, "placement": placement}
    return {"pointsman": 1, "id": "placed", "nodes": [node], "edges": []}
