"""2nChat: the problems of its literal rows are reported exactly; repaired, it routes as its author intended."""

from __future__ import annotations

from typing import cast

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.definition.problems import Problem, WorkflowInvalid
from pointsman.dialects.detect import write_workflow
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject
from tests.examples.example_runs import EXAMPLES, play

LITERAL = EXAMPLES / "2nchat" / "2nchat.literal.json"
REPAIRED = EXAMPLES / "2nchat" / "2nchat.json"
ROUTER, RC2, DM2, TOOLS, CALLER = "node-uuid-1", "node-uuid-2", "node-uuid-3", "node-uuid-5", "node-uuid-6"


async def problems_of(workflow: Workflow, *, lenient: bool = False) -> list[Problem]:
    """Return the problems, without those that depend on the agents and tools of the installation."""
    async with Pointsman("memory:", settings=Settings(), model="scripted") as app:
        checked = await app.check(workflow, lenient=lenient)
    return [problem for problem in checked.problems if problem.code not in ("unknown-agent", "unknown-tool")]


@pytest.mark.requirement("S0-60", "T0-1", "T0-2")
async def test_the_literal_rows_lack_one_node_named_by_three_edges() -> None:
    found = [(p.severity, p.code, p.pointer, p.line) for p in await problems_of(Workflow.load(LITERAL))]
    assert found == [
        ("error", "dangling-edge", "/edges/14/targetNodeId", 63),
        ("warning", "dead-end", "/edges/15", 65),
        ("error", "dangling-edge", "/edges/15/sourceNodeId", 65),
        ("error", "dangling-edge", "/edges/16/targetNodeId", 67),
    ]


@pytest.mark.requirement("T0-1", "S0-03", "S0-16")
async def test_the_literal_rows_load_and_come_back_unchanged_but_do_not_run() -> None:
    workflow = Workflow.load(LITERAL)
    assert (workflow.definition.id, len(workflow.definition.nodes), len(workflow.definition.edges)) == ("2nChat", 5, 18)
    original = cast(JsonObject, workflow.original)
    assert write_workflow(workflow.definition, dialect="rows", original=original).document == original
    async with Pointsman("memory:", settings=Settings(), model="scripted") as app:
        with pytest.raises(WorkflowInvalid, match="node-uuid-6"):
            await app.start(workflow, "hello")


@pytest.mark.requirement("T0-1")
async def test_leniency_drops_the_three_edges_with_a_warning_each() -> None:
    found = [(p.severity, p.code) for p in await problems_of(Workflow.load(LITERAL), lenient=True)]
    assert found == [("warning", "dropped-edge")] * 3


@pytest.mark.requirement("T0-1", "T0-2")
async def test_the_repaired_rows_are_the_literal_ones_and_what_was_missing() -> None:
    literal = cast(JsonObject, Workflow.load(LITERAL).original)
    repaired = cast(JsonObject, Workflow.load(REPAIRED).original)
    assert await problems_of(Workflow.load(REPAIRED)) == []
    assert {key: value for key, value in repaired.items() if key not in ("nodes", "edges", "agents")} == {
        key: value for key, value in literal.items() if key not in ("nodes", "edges")
    }
    assert (*_added(repaired, literal, "nodes"), *_added(repaired, literal, "edges")) == (CALLER, "edge-uuid-19")


@pytest.mark.requirement("S0-47")
@pytest.mark.parametrize(
    "words",
    [["`next`"], ["Tools:"], ["Never", "Do not", "One search"]],
    ids=["where to go next", "which tools to use", "how not to go in circles"],
)
def test_every_system_prompt_covers_its_topics(words: list[str]) -> None:
    agents = Workflow.load(REPAIRED).definition.agents or {}
    assert len(agents) == 5
    for name, agent in agents.items():
        assert agent.system is not None
        assert any(word in agent.system.in_("en") for word in words), name


@pytest.mark.requirement("S0-61", "S0-45", "S0-41", "S1-156")
def test_a_question_goes_to_a_worker_its_tool_back_to_the_router_and_ends() -> None:
    played = play("2nchat/2nchat.json", "Which companies in Oslo have we not called this month?")
    assert played.path == [ROUTER, RC2, TOOLS, ROUTER]
    assert played.view["status"] == "completed"


@pytest.mark.requirement("S0-45", "S0-40")
def test_external_research_returns_to_its_caller() -> None:
    played = play("2nchat/2nchat.json", "What is known about Fjordkraft outside our records?")
    assert played.path == [ROUTER, CALLER, TOOLS, CALLER, ROUTER]


@pytest.mark.requirement("S0-62")
@pytest.mark.parametrize(("worker", "node"), [("RC2", RC2), ("DM2", DM2), ("2N", "node-uuid-4")])
def test_each_worker_can_hand_back_call_tools_or_end(worker: str, node: str) -> None:
    tool = {"RC2": "find_records", "DM2": "update_record", "2N": "search_help"}[worker]

    def path(rule: str) -> list[Json]:
        rules = f"rules:\n- {{node: Router, visit: 1, next: '{worker}'}}\n- {{node: '{worker}', {rule}}}\n"
        tools = f"tools:\n  {tool}: {{result: 1}}\n"
        return play(
            "2nchat/2nchat.json", "go", script=f"{rules}- {{node: Router, text: done, next: END}}\n{tools}"
        ).path

    assert path("text: not mine, next: Router") == [ROUTER, node, ROUTER]
    assert path(f"toolCalls: [{{name: {tool}}}]") == [ROUTER, node, TOOLS, ROUTER]
    assert path("text: bye, next: END") == [ROUTER, node]


def _added(more: JsonObject, fewer: JsonObject, key: str) -> list[str]:
    known = cast("list[JsonObject]", fewer[key])
    return [str(row["id"]) for row in cast("list[JsonObject]", more[key]) if row not in known]
