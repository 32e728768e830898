"""Work without a model: tool nodes, pending calls, memory, code; and who does which kind."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from pointsman.engine.commands import Execute
from pointsman.engine.kinds import WorkSpec
from pointsman.engine.reports import WorkDone
from pointsman.executors import registry as registry_module
from pointsman.executors.ledger import World
from pointsman.executors.registry import ExecutorNotLoaded, Executors, KindUnknown
from pointsman.ports import Run
from pointsman.tools.functions import tool
from pointsman.values import Json, JsonObject
from tests.executors.stage import Stage, StagedRun, agent, execute, work

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
async def test_the_failure_of_a_tool_is_the_failure_of_its_node(name: str, code: str) -> None:
    assert (await Stage(SCRIPT).failure(execute("tool", tool=name), TOOL)).code == code


@pytest.mark.requirement("S0-38", "S0-O8")
async def test_pending_calls_run_in_order_and_are_told_to_their_caller() -> None:
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


async def remember(stage: Stage, operation: str, run: StagedRun | None = None, **given: Json) -> Json:
    command = work("memory", {"scope": "session", "session": "s1", "operation": operation, **given})
    return (await stage.done(command, agent(kind="memory"), run)).result


async def test_memory_is_written_read_searched_and_deleted() -> None:
    stage = Stage()
    assert await remember(stage, "get", key="topic") is None
    assert await remember(stage, "set", key="topic", value={"on": "port"}) == {"on": "port"}
    assert await remember(stage, "get", key="topic") == {"on": "port"}
    assert await remember(stage, "append", key="log", value=1) == [1]
    assert await remember(stage, "append", key="log", value=2) == [1, 2]
    assert await remember(stage, "search", query="port", limit=3) == [{"key": "topic", "value": {"on": "port"}}]
    assert await remember(stage, "delete", key="topic") is True
    assert await remember(stage, "delete", key="topic") is False


async def test_a_recorded_change_of_memory_is_not_made_again() -> None:
    stage, run = Stage(), StagedRun()
    await remember(stage, "append", run, key="log", value=1)
    assert await remember(stage, "append", run, key="log", value=1) == [1]
    assert await remember(stage, "get", key="log") == [1]


@pytest.mark.requirement("S1-73")
async def test_memory_belongs_to_its_execution_session_or_workflow() -> None:
    stage, spec = Stage(), agent(kind="memory", settings={"workflow": "news-desk"})
    owners: list[JsonObject] = [
        {"scope": "execution"},
        {"scope": "session", "session": "s1"},
        {"scope": "session", "session": "s1", "namespace": "notes"},
        {"scope": "session"},
        {"scope": "long_term"},
        {"scope": "long_term", "namespace": "shared"},
    ]
    for owner in owners:
        await stage.done(work("memory", {"operation": "set", "key": "a", "value": 1, **owner}), spec)
    assert list(stage.memory.values) == [
        ("execution", "exec-1", "a"),
        ("session", "s1", "a"),
        ("session", "s1", "notes/a"),
        ("session", "exec-1", "a"),
        ("long_term", "news-desk", "a"),
        ("long_term", "shared", "a"),
    ]
    found = await remember(stage, "search", query="1", namespace="notes")
    assert found == [{"key": "a", "value": 1}]


async def test_a_section_of_a_text_can_be_read_alone() -> None:
    stage = Stage()
    await remember(stage, "set", key="doc", value="# Doc\n## Facts\nIt rains.\n### More\nA lot.\n## Plan\nWait.")
    assert await remember(stage, "get", key="doc", section="Facts") == "It rains.\n### More\nA lot."
    assert await remember(stage, "get", key="doc", section="Nothing") is None


@pytest.mark.parametrize(
    ("given", "code"),
    [({"operation": "get", "key": ""}, "memory-key-missing"), ({"operation": "forget", "key": "a"}, "config-wrong")],
)
async def test_memory_that_cannot_be_used_is_a_failure(given: JsonObject, code: str) -> None:
    failure = await Stage().failure(work("memory", {"scope": "session", **given}), agent(kind="memory"))
    assert (failure.code, failure.retryable) == (code, False)


class Echo:
    """A plug-in's executor."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def execute(self, command: Execute, spec: WorkSpec, run: Run) -> WorkDone:
        return WorkDone(step=command.step, attempt=command.attempt, result=command.input)


async def test_packages_may_do_kinds_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def announced(**_: str) -> list[EntryPoint]:
        return [
            EntryPoint("echo", f"{__name__}:Echo", "pointsman.executors"),
            EntryPoint("gone", "no_such_package:make", "pointsman.executors"),
        ]

    monkeypatch.setattr(registry_module, "entry_points", announced)
    stage = Stage()
    executors = Executors(models=stage.models, tools=stage.tools, memory=stage.memory)
    echo = executors.executor_for(execute("echo"))
    report = await echo.execute(execute("echo", a=1), agent(kind="echo"), StagedRun())
    assert isinstance(report, WorkDone)
    assert report.result == {"a": 1}
    assert {"agent", "decision", "echo", "gone", "judge", "memory", "tool", "tool_executor"} <= {*executors.kinds()}
    with pytest.raises(ExecutorNotLoaded):
        executors.executor_for(execute("gone"))
    with pytest.raises(KindUnknown, match="'dance'"):
        executors.executor_for(execute("dance"))
