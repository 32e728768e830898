"""Work without a model: tool nodes, pending calls, code; and the executor of each kind."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.reports import WorkDone
from pointsman.executors import registry as registry_module
from pointsman.executors.effect_ledger import ExecutorDeps
from pointsman.executors.memory import MemoryExecutor
from pointsman.executors.registry import ExecutorNotLoaded, Executors, KindUnknown
from pointsman.ports import ExecutionPort, Quota
from pointsman.tools.functions import tool
from pointsman.values import Json
from tests.executors.stage import Stage, StagedRun, agent, execute
from tests.scenarios import play

SCRIPT = """
tools:
  search: {results: [{when: {q: port}, result: [harbour]}]}
  down: {fail: it is down}
"""
TOOL = agent(kind="tool")
PENDING = agent(kind="tool_executor", node="tools")


@pytest.mark.requirement("S1-38")
async def test_a_tool_node_calls_its_tool() -> None:
    run = StagedRun()
    report = await Stage(SCRIPT).done(execute("tool", tool="search", parameters={"q": "port"}), TOOL, run)
    assert report.result == ["harbour"]
    assert run.effects.paid == [(1, "tool")]
    assert report.usage is not None
    assert report.usage.tool_calls == 1


@pytest.mark.parametrize(("name", "code"), [("down", "tool-failed"), ("serach", "unknown-tool")])
async def test_a_failed_tool_fails_its_node(name: str, code: str) -> None:
    assert (await Stage(SCRIPT).failure(execute("tool", tool=name), TOOL)).code == code


@pytest.mark.requirement("S0-38", "S0-O8")
async def test_pending_calls_run_in_order_and_return_to_their_caller() -> None:
    order: list[str] = []

    @tool
    async def note(text: str) -> str:
        """Write down."""
        order.append(text)
        return text

    calls: list[Json] = [
        {"id": "c1", "name": "note", "arguments": {"text": "one"}},
        {"id": "c2", "name": "down", "arguments": {}},
        {"id": "c3", "name": "nobody", "arguments": {}},
        {"id": "c4", "name": "note", "arguments": {"text": "two"}},
    ]
    report = await Stage(SCRIPT, note).done(execute("tool_executor", calls=calls, caller="Router"), PENDING)
    assert order == ["one", "two"]
    assert report.labels == ("note", "nobody", "down")
    assert report.next is None
    assert report.result == [
        {"tool": "note", "toolCallId": "c1", "result": "one"},
        {"tool": "down", "toolCallId": "c2", "error": {"code": "tool-failed", "message": "it is down"}},
        {
            "tool": "nobody",
            "toolCallId": "c3",
            "error": {"code": "unknown-tool", "message": "there is no tool named 'nobody'"},
        },
        {"tool": "note", "toolCallId": "c4", "result": "two"},
    ]
    assert report.messages[0] == {
        "role": "tool",
        "content": "one",
        "toolCallId": "c1",
        "tool": "note",
        "name": "Router",
    }


async def test_recorded_pending_calls_are_not_run_again() -> None:
    ran: list[int] = []

    @tool
    async def pay(amount: int) -> int:
        """Pay."""
        ran.append(amount)
        return amount

    calls: list[Json] = [{"id": f"c{n}", "name": "pay", "arguments": {"amount": n}} for n in (1, 2)]
    first = StagedRun()
    whole = await Stage("rules: []", pay).done(execute("tool_executor", calls=calls), PENDING, first)
    again = StagedRun({1: first.effects.values[1]})
    assert await Stage("rules: []", pay).done(execute("tool_executor", calls=calls), PENDING, again) == whole
    assert ran == [1, 2, 2]


class Echo:
    """The executor of a plug-in."""

    def __init__(self, world: ExecutorDeps) -> None:
        self.world = world

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> WorkDone:
        return WorkDone(step=command.step, attempt=command.attempt, result=command.input)


async def test_packages_can_provide_kinds_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def announced(**_: str) -> list[EntryPoint]:
        return [
            EntryPoint("echo", f"{__name__}:Echo", "pointsman.executors"),
            EntryPoint("gone", "no_such_package:make", "pointsman.executors"),
        ]

    monkeypatch.setattr(registry_module, "entry_points", announced)
    stage = Stage()
    executors = Executors(
        models=stage.models, tools=stage.tools, memory=MemoryExecutor(stage.memory, stage.clock, Quota(1, 1))
    )
    echo = executors.executor_for(execute("echo"))
    report = await echo.execute(execute("echo", a=1), agent(kind="echo"), StagedRun())
    assert isinstance(report, WorkDone)
    assert report.result == {"a": 1}
    assert {"agent", "decision", "echo", "gone", "judge", "memory", "tool", "tool_executor"} <= {*executors.kinds()}
    with pytest.raises(ExecutorNotLoaded):
        executors.executor_for(execute("gone"))
    with pytest.raises(KindUnknown, match="'dance'"):
        executors.executor_for(execute("dance"))


TOGETHER = """
id: together
nodes:
  - {id: start, type: start}
  - {id: left, type: agent, config: {prompt: look left, tools: [look]}}
  - {id: right, type: agent, config: {prompt: look right, tools: [look]}}
  - {id: tools, type: tool_executor}
edges:
  - {source: start, target: left}
  - {source: start, target: right}
  - {source: left, target: tools, condition: {type: label, label: tools}}
  - {source: right, target: tools, condition: {type: label, label: tools}}
"""

SHARED_SCRIPT = """
rules:
  - {node: left, visit: 1, toolCalls: [{name: look, arguments: {side: left}}]}
  - {node: right, visit: 1, toolCalls: [{name: look, arguments: {side: right}}]}
  - {node: left, text: left is clear}
  - {node: right, text: right is clear}
"""


def test_calls_of_concurrent_agents_all_run_and_return_to_their_callers() -> None:
    asked: list[str] = []

    @tool
    async def look(side: str) -> str:
        """Look to one side."""
        asked.append(side)
        return "clear"

    played = play(TOGETHER, script=SHARED_SCRIPT, tools=(look,))
    assert played.status == "completed", played.errors
    assert sorted(asked) == ["left", "right"]
    assert sorted(str(node) for node in played.path) == ["left", "left", "right", "right", "start", "tools", "tools"]
