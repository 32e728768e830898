"""Rows at run time: labels, tools and ends route as the stored nodes and edges define, in any shape."""

from __future__ import annotations

from typing import cast

import pytest

from pointsman.engine.actions import WorkAction
from pointsman.engine.compile import compile_workflow
from pointsman.executions.opening import drive
from pointsman.testing.clock import run_virtually
from pointsman.values import Json, JsonObject, json_of
from tests.scenarios import agent_row, edge_row, installation, play, rows, tools_row, written

ROUTER, WORKER, OTHER = agent_row("Router"), agent_row("Worker"), agent_row("Other")
TOOLS = "tools:\n  look: {result: 1}\n  ask: {result: 2}\n"


def said(*rules: str) -> str:
    return "".join(["rules:\n", *(f"- {{{rule}}}\n" for rule in rules), TOOLS])


def pair(**head: Json) -> JsonObject:
    """Router → Worker → END."""
    return rows([ROUTER, WORKER], [edge_row("router", "worker", "Worker"), edge_row("worker", None, "END")], **head)


@pytest.mark.requirement("S0-04")
def test_names_are_plain_or_localized_texts() -> None:
    plain = written(pair(name="Desk", description="Helps.")).definition
    by_language = written(pair(name={"en": "Desk", "de": "Tisch"}, description={"de": "Hilft."})).definition
    assert plain.name is not None
    assert by_language.name is not None
    assert by_language.description is not None
    assert (plain.name.in_("de"), by_language.name.in_("de"), by_language.name.in_("fr")) == ("Desk", "Tisch", "Desk")
    assert by_language.description.in_("de") == "Hilft."


@pytest.mark.requirement("S0-18", "S0-19")
async def test_saving_again_is_idempotent_and_omitted_parts_are_deleted() -> None:
    async with installation() as app:
        first = await app.save(written(pair()))
        assert (await app.save(written(pair()))).revision == first.revision
        await app.save(written(rows([ROUTER], [edge_row("router", None, "END")])))
        found = (await app.source("rows")).definition
        assert [node.id for node in found.nodes] == ["router"]
        assert [edge.id for edge in found.edges] == ["router-END-None"]


A, B, C, D = (agent_row(name) for name in "ABCD")
SHAPES: dict[str, tuple[list[JsonObject], tuple[str, ...], list[str]]] = {
    "a line": (
        [edge_row("a", "b", "B"), edge_row("b", "c", "C"), edge_row("c", "d", "D"), edge_row("d", None, "END")],
        ("node: A, next: B", "node: B, next: C", "node: C, next: D", "node: D, next: END"),
        ["a", "b", "c", "d"],
    ),
    "a tree": (
        [edge_row("a", "b", "B"), edge_row("a", "c", "C"), edge_row("c", "d", "D")],
        ("node: A, next: C", "node: C, next: D", "node: D, text: leaf"),
        ["a", "c", "d"],
    ),
    "a star": (
        [edge_row("a", name, name.upper()) for name in "bcd"]
        + [edge_row(name, "a", "A") for name in "bcd"]
        + [edge_row("a", None, "END")],
        (
            "node: A, visit: 1, next: B",
            "node: A, visit: 2, next: D",
            "node: A, next: END",
            "node: [B, C, D], next: A",
        ),
        ["a", "b", "a", "d", "a"],
    ),
    "a mesh with cycles": (
        [edge_row(one, other, other.upper()) for one in "abcd" for other in "abcd" if one != other]
        + [edge_row("d", None, "END")],
        (
            "node: A, next: B",
            "node: B, visit: 1, next: A",
            "node: B, next: C",
            "node: C, next: D",
            "node: D, next: END",
        ),
        ["a", "b", "a", "b", "c", "d"],
    ),
}


@pytest.mark.requirement("S0-26", "S0-27")
@pytest.mark.parametrize("shape", SHAPES)
def test_stored_rows_of_each_shape_take_the_drawn_path(shape: str) -> None:
    edges, rules, path = SHAPES[shape]

    async def run() -> JsonObject:
        async with installation(said(*rules)) as app:
            await app.save(written(rows([A, B, C, D], edges)))
            execution = await app.start("rows", {"message": "go"})
            await drive(execution)
            return json_of(await execution.view())

    view = run_virtually(run())
    assert (view["status"], view["path"]) == ("completed", path)


@pytest.mark.requirement("S0-28", "T0-5")
@pytest.mark.parametrize("rule", ["node: Router, next: Nobody", "node: Router, text: no label at all"])
def test_an_unknown_next_node_is_asked_again_and_then_fails(rule: str) -> None:
    played = play(pair(), script=said(rule))
    (failure,) = played.errors
    details = failure["details"]
    assert isinstance(details, dict)
    found = (played.status, failure["code"], details["legal"])
    assert found == ("failed", "no-route", ["Worker"])
    assert len([event for event in played.told("attempt_started") if event["reason"] == "reask"]) == 2


@pytest.mark.requirement("T0-5", "S0-O9")
def test_a_label_is_matched_exactly_else_ignoring_case_with_a_warning() -> None:
    exact = play(pair(), script=said("node: Router, next: Worker", "node: Worker, next: END"))
    loose = play(pair(), script=said("node: Router, next: wORKER", "node: Worker, next: END"))
    assert (exact.path, exact.warnings) == (["router", "worker"], [])
    assert (loose.path, [warning["code"] for warning in loose.warnings]) == (["router", "worker"], ["label-case"])


@pytest.mark.requirement("S0-O9")
def test_a_label_that_matches_two_edges_ignoring_case_takes_neither() -> None:
    two = rows([A, B, C], [edge_row("a", "b", "Next"), edge_row("a", "c", "NEXT")])
    assert play(two, script=said("node: A, next: next")).errors[0]["code"] == "no-route"
    assert play(two, script=said("node: A, next: NEXT")).path == ["a", "c"]


@pytest.mark.requirement("T0-5", "T0-13")
def test_without_a_label_the_only_plain_edge_is_taken() -> None:
    both = rows([ROUTER, WORKER, OTHER], [edge_row("router", "worker", "Worker"), edge_row("router", "other")])
    assert play(both, script=said("node: Router, text: hm")).path == ["router", "other"]
    assert play(both, script=said("node: Router, next: Worker")).path == ["router", "worker"]


@pytest.mark.requirement("T0-5")
def test_a_turn_ends_without_a_label_and_a_plain_edge() -> None:
    turn = play(pair(isConversational=True), "hello", script=said("node: Router, text: hm"))
    leaf = play(rows([ROUTER], []), script=said("node: Router, text: hm"))
    assert [(one.status, one.path, one.state.outcome.closes_session) for one in (turn, leaf)] == [
        ("completed", ["router"], False),
        ("completed", ["router"], False),
    ]


@pytest.mark.requirement("S0-29")
def test_next_end_with_an_edge_to_the_end_completes_at_once() -> None:
    both = rows([ROUTER, WORKER], [edge_row("router", "worker", "Worker"), edge_row("router", None, "END")])
    played = play(both, script=said("node: Router, text: bye, next: END"))
    assert (played.status, played.path, played.view["output"]) == ("completed", ["router"], "bye")


@pytest.mark.requirement("S0-30")
def test_next_end_without_an_edge_to_the_end_is_invalid() -> None:
    played = play(pair(), script=said("node: Router, next: END"))
    assert (played.status, played.errors[0]["code"]) == ("failed", "no-route")
    assert "'END'" in str(played.errors[0]["message"])


@pytest.mark.requirement("S0-35")
def test_a_conversation_ends_without_an_edge_to_the_end() -> None:
    back = rows([ROUTER, WORKER], [edge_row("router", "worker", "Worker")], isConversational=True)
    by_tool = play(back, "hello", script=said("node: Router, text: bye, end: true"))
    by_edge = play(pair(), script=said("node: Router, next: Worker", "node: Worker, text: bye, next: END"))
    assert (by_tool.status, by_tool.path, by_tool.state.outcome.closes_session) == ("completed", ["router"], True)
    assert (by_edge.status, by_edge.path, by_edge.state.outcome.closes_session) == (
        "completed",
        ["router", "worker"],
        False,
    )


def with_tools(*edges: JsonObject, nodes: tuple[JsonObject, ...] = (), **head: Json) -> JsonObject:
    calls, given = edge_row("router", "tools", "tools"), {"router": cast(Json, ["look", "ask"])}
    ends = edge_row("router", None, "END")
    return rows([ROUTER, tools_row(), *nodes], [calls, ends, *edges], tools=given, **head)


@pytest.mark.requirement("S0-39")
async def test_no_tool_executor_and_no_edge_of_one_is_added() -> None:
    document = with_tools()
    async with installation(said("text: done")) as app:
        await app.save(written(document))
        found = await app.source("rows")
    assert found.original == document
    assert [edge.id for edge in found.definition.edges] == ["router-tools-tools", "router-END-None"]
    lone = written(pair()).definition
    assert [node.type for node in lone.nodes] == ["agent", "agent"]


@pytest.mark.requirement("S0-43", "S0-44", "T0-15")
def test_without_an_outgoing_edge_the_executor_returns_to_its_caller() -> None:
    rules = said("node: Router, visit: 1, toolCalls: [{name: ask}]", "node: Router, text: done, next: END")
    assert play(with_tools(), script=rules).path == ["router", "tools", "router"]
    elsewhere = with_tools(edge_row("tools", "worker", "look"), nodes=(WORKER,))
    assert play(elsewhere, script=rules).path == ["router", "tools", "router"]


@pytest.mark.requirement("S0-43")
def test_the_executor_returns_to_each_caller() -> None:
    given: JsonObject = {"router": ["look"], "worker": ["ask"]}
    edges = [edge_row("router", "tools", "tools"), edge_row("worker", "tools", "tools")]
    edges += [edge_row("router", "worker", "Worker"), edge_row("worker", None, "END")]
    rules = said(
        "node: Router, visit: 1, toolCalls: [{name: look}]",
        "node: Router, next: Worker",
        "node: Worker, visit: 1, toolCalls: [{name: ask}]",
        "node: Worker, text: done, next: END",
    )
    played = play(rows([ROUTER, WORKER, tools_row()], edges, tools=given), script=rules)
    assert played.path == ["router", "tools", "router", "worker", "tools", "worker"]


@pytest.mark.requirement("T0-10", "S0-40", "S0-41")
@pytest.mark.parametrize(
    ("calls", "then"),
    [(["look", "ask"], "worker"), (["ask", "look"], "worker"), (["ask"], "other")],
    ids=["the routed call first", "the routed call last", "none routed"],
)
def test_the_last_call_with_an_edge_decides_else_the_plain_edge(calls: list[str], then: str) -> None:
    document = with_tools(edge_row("tools", "worker", "look"), edge_row("tools", "other"), nodes=(WORKER, OTHER))
    asked = ", ".join(f"{{name: {name}}}" for name in calls)
    played = play(document, script=said(f"node: Router, toolCalls: [{asked}]", "node: [Worker, Other], text: done"))
    results = cast("list[JsonObject]", played.told("step_succeeded")[1]["result"])
    assert (played.path, [result["tool"] for result in results]) == (["router", "tools", then], calls)


@pytest.mark.requirement("T0-15", "S0-O7")
def test_a_pending_call_goes_to_the_executor_regardless_of_next() -> None:
    document = with_tools(edge_row("router", "worker", "Worker"), nodes=(WORKER,))
    both = "node: Router, visit: 1, toolCalls: [{name: ask}, {name: router, arguments: {next: Worker}}]"
    played = play(document, script=said(both, "node: Router, text: done, next: END"))
    assert played.path == ["router", "tools", "router"]


@pytest.mark.requirement("S0-O7")
def test_the_tool_executor_is_not_offered_to_models() -> None:
    router = compile_workflow(written(with_tools()).definition).nodes["router"].action
    assert isinstance(router, WorkAction)
    assert router.spec.routes == ("END",)
    played = play(with_tools(), script=said("node: Router, visit: 1, next: tools", "node: Router, next: END"))
    assert [warning["code"] for warning in played.warnings] == ["nothing-pending"]
