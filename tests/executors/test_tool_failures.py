"""Failures of tools name the position in the author's code, for any exception, and end nothing else."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from pointsman import Pointsman, Workflow, tool
from pointsman.definition.model.base import Duration
from pointsman.definition.model.policies import Limits
from pointsman.engine.actions import WorkAction
from pointsman.engine.compile import compile_workflow
from pointsman.engine.events.steps import StepSucceeded
from pointsman.engine.failures import Failure
from pointsman.executions.execution import ExecutionFailed
from pointsman.executors.effect_ledger import CallTimes
from pointsman.models.script import read_script
from pointsman.settings import Settings
from pointsman.testing.clock import run_virtually
from pointsman.tool_output import apart_from_tools
from pointsman.tools.tool import CHARS_MAX, RaisedElsewhere, Tool
from pointsman.values import Json, JsonObject, Seconds

HERE = Path(__file__).name


def calling(name: str, **parameters: Json) -> Workflow:
    node: Json = {"id": "work", "type": "tool", "config": {"tool": name, "parameters": parameters}}
    return Workflow.of({"id": "calls", "nodes": [node], "edges": []})


async def failed(one: Tool, **parameters: Json) -> ExecutionFailed:
    async with Pointsman("memory:", tools=[one], model="scripted", settings=Settings()) as app:
        execution = await app.start(calling(one.name, **parameters))
        with pytest.raises(ExecutionFailed) as caught:
            await asyncio.wait_for(execution.output(), 20)
        assert caught.value.execution == execution.id
        return caught.value


def failure_in(why: ExecutionFailed) -> Failure:
    assert why.failure is not None
    return why.failure


def traceback_in(why: ExecutionFailed) -> str:
    text = (failure_in(why).details or {})["traceback"]
    assert isinstance(text, str)
    return text


def helper(by: int) -> float:
    return 1 / by


@tool
def divide(by: int) -> float:
    """Divide."""
    print("dividing")  # noqa: T201 - what tools print is tested
    logging.getLogger("divide").warning("by %s", by)
    try:
        return helper(by)
    except ZeroDivisionError as why:
        raise ValueError("no such number") from why


async def test_a_failed_tool_has_its_traceback_from_the_authors_first_frame_on() -> None:
    why = await failed(divide, by=0)
    text = traceback_in(why)
    assert text.startswith("Traceback (most recent call last):\n")
    first_frame = text.splitlines()[1]
    assert HERE in first_frame
    assert "in divide" in first_frame
    assert "ZeroDivisionError: division by zero" in text
    assert text.endswith("ValueError: no such number")
    assert "pointsman/tools" not in text
    assert f"{HERE}:" in str((failure_in(why).details or {})["where"])


async def test_the_python_exception_names_code_node_step_and_execution_and_has_the_cause() -> None:
    why = await failed(divide, by=0)
    assert (why.code, why.node, why.step) == ("tool-failed", "work", "work")
    assert f"execution {why.execution} failed at 'work': [tool-failed] the tool 'divide' failed" in str(why)
    assert isinstance(why.__cause__, ValueError)
    assert isinstance(why.__cause__.__cause__, ZeroDivisionError)
    assert ExecutionFailed.code == "execution-failed"


@pytest.mark.integration
async def test_another_process_has_the_traceback_as_the_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    async with Pointsman(url, tools=[divide], model="scripted", settings=Settings()) as app:
        execution = await app.start(calling("divide", by=0))
        await execution.settled()
    monkeypatch.setattr("pointsman.tools.tool._causes", {})
    async with Pointsman(url, settings=Settings()) as app:
        with pytest.raises(ExecutionFailed) as caught:
            await (await app.open(execution.id)).output()
    assert isinstance(caught.value.__cause__, RaisedElsewhere)
    assert "in divide" in str(caught.value.__cause__)


async def test_a_failed_tool_has_its_logs_and_output(capsys: pytest.CaptureFixture[str]) -> None:
    with apart_from_tools():
        why = await failed(divide, by=0)
        print("the output")  # noqa: T201 - as above
    assert (failure_in(why).details or {})["output"] == "dividing\nwarning divide: by 0\n"
    shown = capsys.readouterr()
    assert (shown.out, "dividing" in shown.err) == ("the output\n", True)


async def test_output_of_tools_is_stored_with_their_step_without_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("POINTSMAN_SECRET_WORD", "hunter2hunter2")

    @tool
    async def chat() -> str:
        """Print."""
        print("with hunter2hunter2")  # noqa: T201 - what is tested
        return "done"

    async with Pointsman("memory:", tools=[chat], model="scripted", settings=Settings()) as app:
        with apart_from_tools():
            execution = await app.start(calling("chat"))
            assert await execution.output() == "done"
        rows = await execution.rows()
    printed = [event.printed for row in rows for event in row.events if isinstance(event, StepSucceeded)]
    assert printed == ["with ***\n"]


async def test_bytes_and_programs_of_a_tool_do_not_reach_the_output_of_the_command(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POINTSMAN_SECRET_WORD", "hunter2hunter2")

    @tool
    async def chat() -> str:
        """Write bytes to the stream, and to its descriptor as programs do."""
        sys.stdout.buffer.write(b"bytes with hunter2hunter2\n")
        os.write(sys.stdout.fileno(), b"a program\n")
        return "done"

    async with Pointsman("memory:", tools=[chat], model="scripted", settings=Settings()) as app:
        with apart_from_tools():
            execution = await app.start(calling("chat"))
            assert await execution.output() == "done"
            sys.stdout.buffer.write(b"the output\n")
            sys.stdout.flush()
        rows = await execution.rows()
    printed = [event.printed for row in rows for event in row.events if isinstance(event, StepSucceeded)]
    assert printed == ["bytes with ***\n"]
    shown = capfd.readouterr()
    assert shown.out == "the output\n"
    assert "a program" in shown.err


async def test_output_of_an_agents_tools_is_stored_with_its_step() -> None:
    @tool
    async def look() -> str:
        """Print."""
        print("looking")  # noqa: T201 - what is tested
        return "found"

    script = read_script(
        "rules:\n  - {node: ask, call: 1, toolCalls: [{name: look, arguments: {}}, {name: look, arguments: {}}]}\n"
        "  - {node: ask, text: Done.}\n"
    )
    agent: JsonObject = {"id": "ask", "type": "agent", "config": {"prompt": "Look.", "tools": ["look"]}}
    async with Pointsman("memory:", tools=[look], model="scripted", script=script, settings=Settings()) as app:
        with apart_from_tools():
            execution = await app.start(Workflow.of({"id": "asks", "nodes": [agent], "edges": []}))
            assert await execution.output() == "Done."
        rows = await execution.rows()
    printed = [event.printed for row in rows for event in row.events if isinstance(event, StepSucceeded)]
    assert printed == ["looking\nlooking\n"]


async def test_secrets_are_masked_in_message_and_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_SECRET_WORD", "hunter2hunter2")

    @tool
    async def leak() -> str:
        """Print a secret."""
        raise ValueError("hunter2hunter2 was refused")

    why = await failed(leak)
    assert "hunter2" not in repr(failure_in(why))
    assert failure_in(why).message == "the tool 'leak' failed: ValueError: *** was refused"


@pytest.mark.parametrize("pieces", [("hunter2hunter2\n",), ("hunt", "er2hun", "ter2", "\n"), ("hunter2", "hunter2")])
async def test_secrets_are_masked_in_the_output_of_a_tool(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], pieces: tuple[str, ...]
) -> None:
    monkeypatch.setenv("POINTSMAN_SECRET_WORD", "hunter2hunter2")

    @tool
    def leak(to_error: bool) -> str:
        """Print a secret."""
        for piece in ("key: ", *pieces):
            print(piece, end="", file=sys.stderr if to_error else None)
        return "done"

    for to_error in (False, True):
        with apart_from_tools():
            async with Pointsman("memory:", tools=[leak], model="scripted", settings=Settings()) as app:
                await (await app.start(calling("leak", to_error=to_error))).output()
        shown = capsys.readouterr()
        assert (shown.out, shown.err.strip()) == ("", "key: ***")


class Unshowable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def raising(make: Callable[[], BaseException]) -> Tool:
    @tool
    async def raiser() -> str:
        """Raise."""
        raise make()

    return raiser


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt, "KeyboardInterrupt"),
        (lambda: asyncio.CancelledError("mine"), "CancelledError: mine"),
        (
            lambda: ExceptionGroup("both", [ValueError("a"), ExceptionGroup("in", [KeyError("k")])]),
            (
                "ExceptionGroup: both (2 sub-exceptions): ValueError: a; "
                "ExceptionGroup: in (1 sub-exception): KeyError: 'k'"
            ),
        ),
        (lambda: BaseExceptionGroup("both", [ValueError("a"), SystemExit(1)]), "BaseExceptionGroup: both"),
        (GeneratorExit, "GeneratorExit"),
        (lambda: ValueError("half \ud800"), "ValueError: half \\ud800"),
        (lambda: StopIteration(1), "RuntimeError: coroutine raised StopIteration"),
        (lambda: TimeoutError("slow"), "TimeoutError: slow"),
        (Unshowable, "Unshowable: (its message cannot be shown: RuntimeError)"),
    ],
)
async def test_any_exception_of_a_tool_fails_its_step(make: Callable[[], BaseException], message: str) -> None:
    why = await failed(raising(make))
    assert failure_in(why).code == "tool-failed"
    assert failure_in(why).message.startswith(f"the tool 'raiser' failed: {message}")
    assert "Traceback" in traceback_in(why)


@pytest.mark.parametrize("make", [lambda: SystemExit(3), KeyboardInterrupt, GeneratorExit, lambda: StopIteration(1)])
async def test_any_exception_of_a_tool_in_a_thread_fails_its_step(make: Callable[[], BaseException]) -> None:
    @tool
    def raiser() -> str:
        """Raise in a thread."""
        raise make()

    assert failure_in(await failed(raiser)).code == "tool-failed"


async def test_message_and_traceback_are_bounded() -> None:
    why = await failed(raising(lambda: ValueError("x" * 5_000_000)))
    assert len(failure_in(why).message) <= 500
    assert len(traceback_in(why)) < CHARS_MAX + 100


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda: {"a": [1, {"b": object()}]}, "result.a[1].b is a value of type object"),
        (lambda: {"at": [1.0, float("nan")]}, "result.at[1] is nan"),
        (lambda: sys, "result is a value of type module"),
        (lambda: {"in": [{1: "a", "1": "b"}]}, "an object has the keys 1 and '1', which are the same key in JSON"),
        (lambda: {None: 1}, "an object has a key of type NoneType"),
        (lambda: {"in": ({(1, 2): 1},)}, "an object has a key of type tuple"),
    ],
)
async def test_a_result_that_is_not_json_is_refused_with_path_and_type(
    result: Callable[[], object], message: str
) -> None:
    @tool
    async def answer() -> object:
        """Answers."""
        return result()

    assert message in failure_in(await failed(answer)).message


async def test_a_result_that_contains_itself_is_refused() -> None:
    @tool
    async def answer() -> object:
        """Answers."""
        circle: list[object] = []
        circle.append(circle)
        return circle

    assert "contains itself" in failure_in(await failed(answer)).message


async def test_a_failure_in_a_sub_workflow_names_the_chain_of_nodes() -> None:
    above: JsonObject = {
        "id": "above",
        "nodes": [{"id": "call", "type": "workflow", "config": {"workflow": "calls"}}],
        "edges": [],
    }
    async with Pointsman("memory:", tools=[divide], model="scripted", settings=Settings()) as app:
        await app.save(calling("divide", by=0))
        execution = await app.start(Workflow.of(above))
        with pytest.raises(ExecutionFailed) as caught:
            await execution.output()
    assert caught.value.node == "call"
    (within,) = cast("list[JsonObject]", (failure_in(caught.value).details or {})["within"])
    assert (within["workflowId"], within["nodeId"]) == ("calls", "work")


AGENT: JsonObject = {"id": "a", "type": "agent", "config": {"prompt": "Hi."}}


def times(document: JsonObject, caps: Limits | None = None) -> tuple[Json, Json]:
    definition, problems = Workflow.of(document).definition, ()
    assert definition is not None, problems
    does = compile_workflow(definition, caps=caps or Limits()).nodes["a"].action
    assert isinstance(does, WorkAction)
    return does.spec.settings["modelCallTime"], does.spec.settings["toolCallTime"]


@pytest.mark.parametrize(
    ("document", "caps", "found"),
    [
        ({"pointsman": 1, "id": "w", "nodes": [AGENT]}, None, (600.0, 120.0)),
        ({"id": "w", "nodes": [AGENT]}, None, (30.0, 30.0)),
        ({"pointsman": 1, "id": "w", "nodes": [AGENT], "config": {"limits": {"nodeTime": "5s"}}}, None, (5.0, 5.0)),
        ({"pointsman": 1, "id": "w", "nodes": [AGENT]}, 300.0, (300.0, 120.0)),
        ({"pointsman": 1, "id": "w", "nodes": [AGENT]}, 60.0, (60.0, 60.0)),
        ({"id": "w", "nodes": [AGENT]}, 10.0, (10.0, 10.0)),
    ],
)
def test_a_document_sets_the_timeout_of_calls(
    document: JsonObject, caps: float | None, found: tuple[float, float]
) -> None:
    operator = None if caps is None else Limits(node_time=Duration(Seconds(caps)))
    assert times(document, operator) == found


@tool(timeout_s=45)
async def patient() -> str:
    """Take 40 s."""
    import asyncio

    await asyncio.sleep(40)
    return "done"


@tool(timeout_s=5)
async def hurried() -> str:
    """Take 40 s with a limit of 5 s."""
    import asyncio

    await asyncio.sleep(40)
    return "done"


@tool
async def unhurried() -> str:
    """Take 40 s with the limits of its workflow."""
    import asyncio

    await asyncio.sleep(40)
    return "done"


def node_of(name: str) -> JsonObject:
    return {"id": "a", "type": "tool", "config": {"tool": name}}


def calling_slowly(name: str, **more: Json) -> Workflow:
    return Workflow.of({"id": "w", "nodes": [node_of(name)], **more})


def outcome(workflow: Workflow, *, caps: Limits | None = None) -> tuple[str, Failure | None]:
    async def run() -> tuple[str, Failure | None]:
        settings = Settings(store="memory:", limits=caps or Limits())
        async with Pointsman(tools=[patient, hurried, unhurried], model="scripted", settings=settings) as app:
            execution = await app.start(workflow)
            return await execution.settled(), execution.state.outcome.failure

    return run_virtually(run())


def test_a_tool_keeps_its_own_longer_time_in_old_and_new_documents() -> None:
    assert outcome(calling_slowly("patient"))[0] == "completed"
    assert outcome(calling_slowly("patient", pointsman=1))[0] == "completed"


def test_a_timeout_names_the_tool_the_limit_and_the_setting() -> None:
    status, failure = outcome(calling_slowly("hurried"))
    assert status == "failed"
    assert failure is not None
    assert (failure.code, failure.message) == ("tool-timeout", "the tool 'hurried' did not answer within 5 s")
    assert "timeout_s" in failure.hint


def test_a_call_may_take_as_long_as_the_timeout_of_its_node() -> None:
    for work in (AGENT, node_of("patient")):
        patient_node: JsonObject = {**work, "execution": {"timeout": 200_000}}
        assert times({"id": "w", "nodes": [patient_node]}) == (200.0, 200.0)
        assert times({"id": "w", "nodes": [patient_node]}, Limits(node_time=Duration(Seconds(60.0)))) == (60.0, 60.0)
        hasty: JsonObject = {**work, "execution": {"timeout": "10s"}}
        assert times({"pointsman": 1, "id": "w", "nodes": [hasty]}) == (600.0, 120.0)


def test_the_timeout_of_a_node_in_an_old_document_replaces_its_thirty_seconds() -> None:
    node: JsonObject = {**node_of("unhurried"), "execution": {"timeout": 60_000}}
    assert outcome(Workflow.of({"id": "w", "nodes": [node]}))[0] == "completed"
    del node["execution"]
    status, failure = outcome(Workflow.of({"id": "w", "nodes": [node]}))
    assert status == "failed"
    assert failure is not None
    assert "execution.timeout" in failure.hint


def test_the_operator_caps_the_time_of_a_tool() -> None:
    status, failure = outcome(calling_slowly("patient"), caps=Limits(node_time=Duration(Seconds(2.0))))
    assert status == "failed"
    assert failure is not None
    assert failure.message == "the tool 'patient' did not answer within 2 s"
    assert "operator" in failure.hint


def test_a_tool_without_a_timeout_has_that_of_the_workflow() -> None:
    assert CallTimes(None, {"toolCallTime": 7.0}).of_tool(None)[0] == 7.0
    assert CallTimes(9.0, {"toolCallTime": 7.0}).of_tool(None)[0] == 9.0, "what was raised for this execution counts"


def test_an_error_edge_for_timeouts_takes_timeouts_of_calls() -> None:
    document: JsonObject = {
        "id": "w",
        "nodes": [
            {"id": "a", "type": "tool", "config": {"tool": "hurried"}},
            {"id": "late", "type": "transform", "config": {"set": {"late": "true"}}},
        ],
        "edges": [{"source": "a", "target": "late", "condition": {"type": "error", "codes": ["timeout"]}}],
    }
    assert outcome(Workflow.of(document))[0] == "completed"


async def test_refused_arguments_of_a_tool_node_have_a_hint_for_its_author() -> None:
    failure = failure_in(await failed(divide, by="{input.by?}"))
    assert (failure.code, failure.hint) == ("tool-arguments", "Correct `parameters` of node 'work'.")
