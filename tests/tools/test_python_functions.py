"""Functions as tools: plain functions, methods and partials; docstrings; the context; blocked event loops."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest

from pointsman import Pointsman, ToolContext, Workflow, tool
from pointsman.engine.reports import ToolCall
from pointsman.settings import Settings
from pointsman.tools.loop_monitor import LOG, BlockingTool, LoopCheck, stack_of, tool_in
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.tool import ToolInvalid
from pointsman.values import Json, JsonObject
from pointsman.workflows.sources import WorkflowUnusable


async def call(function: object, /, **arguments: Json) -> Json:
    """Call a function as the only tool of a registry."""
    registry = ToolRegistry([cast("Callable[..., object]", function)])
    (name,) = [one for one in registry.names() if registry.origin(one) == "function"]
    return await registry.call(ToolCall(id="1", name=name, arguments=arguments), key="key-1")


def parameters(function: object) -> JsonObject:
    registry = ToolRegistry([cast("Callable[..., object]", function)])
    (name,) = [one for one in registry.names() if registry.origin(one) == "function"]
    spec = registry.find(name)
    assert spec is not None
    return cast("JsonObject", spec.parameters["properties"])


def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Both are whole.

    Args:
        a: The first
            number.
        b: The second number.

    Returns:
        Their sum.
    """
    return a + b


class Desk:
    """An object with methods as tools."""

    def __init__(self, greeting: str) -> None:
        self.greeting = greeting

    def greet(self, name: str) -> str:
        """Greet a person."""
        return f"{self.greeting} {name}"

    @tool(name="part", idempotent=True)
    async def say_goodbye(self, name: str) -> str:
        """Say goodbye."""
        return f"{self.greeting} and goodbye {name}"

    @staticmethod
    @tool
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    @classmethod
    @tool
    def kind(cls) -> str:
        """Return the name of the class."""
        return cls.__name__

    async def __call__(self, name: str) -> str:
        """Call a person."""
        return f"{self.greeting}! {name}"


async def test_a_plain_function_is_a_tool() -> None:
    assert await call(add, a=1, b=2) == 3


async def test_the_docstring_describes_tool_and_parameters() -> None:
    registry = ToolRegistry([add])
    spec = registry.find("add")
    assert spec is not None
    assert spec.description == "Add two numbers.\n\nBoth are whole."
    assert spec.parameters["properties"] == {
        "a": {"type": "integer", "description": "The first number."},
        "b": {"type": "integer", "default": 1, "description": "The second number."},
    }


async def test_methods_of_an_object_are_tools() -> None:
    desk = Desk("Hello")
    assert await call(desk.greet, name="Ada") == "Hello Ada"
    assert await call(desk.say_goodbye, name="Ada") == "Hello and goodbye Ada"
    assert desk.say_goodbye.name == "part"
    assert desk.say_goodbye.spec.idempotent
    assert await desk.say_goodbye("Ada") == "Hello and goodbye Ada"
    assert await call(Desk.double, number=2) == 4
    assert await call(Desk.kind) == "Desk"
    assert await call(desk, name="Ada") == "Hello! Ada"


@pytest.mark.parametrize("method", [Desk.greet, Desk.say_goodbye])
def test_a_method_without_its_object_is_refused(method: Callable[..., object]) -> None:
    with pytest.raises(ToolInvalid, match=r"is a method without its object: nothing can fill in `self`") as caught:
        ToolRegistry([method])
    assert "tools=[desk." in caught.value.hint
    assert "desk = Desk(…)" in caught.value.hint


async def test_arguments_bound_by_a_partial_are_hidden() -> None:
    assert [*parameters(partial(add, 40))] == ["b"]
    assert [*parameters(partial(add, b=2))] == ["a"]
    assert await call(partial(add, 40), b=2) == 42
    assert await call(partial(add, b=2), a=40) == 42
    assert await call(partial(tool(name="sum")(add), b=2), a=1) == 3
    assert await call(partial(Desk("Hi").greet, name="Eve")) == "Hi Eve"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (lambda: 1, "a lambda has no name"),
        (3, "a 'int' object is not a tool"),
        ("add", "a 'str' object is not a tool"),
        (Desk, "the class 'Desk' is not a tool"),
    ],
)
def test_other_objects_are_refused(given: Any, why: str) -> None:
    with pytest.raises(ToolInvalid, match=why):
        Pointsman("memory:", tools=[given], settings=Settings())


async def test_a_named_lambda_is_a_tool() -> None:
    def nameless(number: int) -> int:
        return 2 * number

    nameless.__name__ = "<lambda>"
    assert await call(tool(name="double")(nameless), number=4) == 8


async def test_a_function_that_returns_a_coroutine_is_awaited() -> None:
    async def inner() -> str:
        return "waited"

    def outer() -> object:
        """Return a coroutine."""
        return inner()

    assert await call(outer) == "waited"


def of_context(who: ToolContext, context: str = "") -> list[Json]:
    """Show the context of the call."""
    return [who.idempotency_key, who.tool, who.node, context, threading.current_thread() is threading.main_thread()]


async def test_a_parameter_with_the_annotation_receives_the_context() -> None:
    assert [*parameters(of_context)] == ["context"]
    assert await call(of_context, context="of the caller") == ["key-1", "of_context", "", "of the caller", False]


def count(context: ToolContext) -> int:
    """Report progress from a thread."""
    context.logger.info("counting")
    for number in (1, 2):
        context.report_progress(f"page {number}", done=number, total=2)
    return 2


async def crawl(context: ToolContext) -> str:
    """Report progress."""
    context.report_progress(done=0.5)
    return f"{context.execution} {context.node}"


async def test_progress_and_logs_of_tools_are_shown(caplog: pytest.LogCaptureFixture) -> None:
    nodes: list[Json] = [
        {"id": "one", "type": "tool", "config": {"tool": "count"}},
        {"id": "two", "type": "tool", "config": {"tool": "crawl"}},
    ]
    document: JsonObject = {"id": "both", "nodes": nodes, "edges": [{"id": "e", "source": "one", "target": "two"}]}
    seen: list[JsonObject] = []
    with caplog.at_level(logging.INFO, "pointsman.tools"):
        async with Pointsman("memory:", tools=[count, crawl], model="scripted", settings=Settings()) as app:
            leave = app.watch(seen.append)
            execution = await app.run(document)
            assert await execution.output() == f"{execution.id} two"
            leave()
    deltas = [(one["node"], one["delta"]) for one in seen if one["kind"] == "delta"]
    assert deltas == [
        ("one", {"kind": "progress", "tool": "count", "message": "page 1", "done": 1, "total": 2}),
        ("one", {"kind": "progress", "tool": "count", "message": "page 2", "done": 2, "total": 2}),
        ("two", {"kind": "progress", "tool": "crawl", "done": 0.5}),
    ]
    (record,) = [one for one in caplog.records if one.name == "pointsman.tools.count"]
    assert vars(record)["node"] == "one"
    assert vars(record)["execution"] == execution.id


class Loop:
    """An event loop that runs callbacks when told to."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[[], object]] = []

    def call_soon_threadsafe(self, callback: Callable[[], object]) -> None:
        self.callbacks.append(callback)


def test_a_tool_that_blocks_the_loop_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    loop = Loop()
    running: list[BlockingTool | None] = [BlockingTool("slow", "tools.py:7 in slow")]
    check = LoopCheck(lambda: running[0], cast("asyncio.AbstractEventLoop", loop))
    with caplog.at_level(logging.WARNING, LOG.name):
        for _ in range(4):
            check.once()
        (record,) = caplog.records
        assert record.getMessage() == (
            "the tool 'slow' blocks the event loop at tools.py:7 in slow: every other execution of this process waits. "
            "Write `def` instead of `async def`, so that it runs in a thread, or await what takes long."
        )
        loop.callbacks.pop()()
        check.once()  # It runs again, or still: the loop has answered.
        loop.callbacks.pop()()
        running[0] = None
        check.once()
        check.once()
    assert len(caplog.records) == 1


async def test_the_position_of_a_running_tool_is_found() -> None:
    found: list[BlockingTool | None] = []
    thread = threading.get_ident()

    async def blocks() -> None:
        """Run on the loop."""
        found.append(tool_in(stack_of(thread)))

    await call(blocks)
    (first,) = found
    assert first is not None
    line = inspect.getsourcelines(blocks)[1] + 2
    assert (first.name, first.where) == ("blocks", f"{__file__}:{line} in blocks")
    assert tool_in(stack_of(thread)) is None


async def test_a_report_of_a_blocked_loop_is_a_part_of_the_output_of_its_step() -> None:
    loop, thread = Loop(), threading.get_ident()
    check = LoopCheck(lambda: tool_in(stack_of(thread)), cast("asyncio.AbstractEventLoop", loop))

    async def blocks() -> str:
        """Run on the loop, while the monitor looks twice."""
        check.once()
        check.once()
        return "done"

    wf = Workflow.build("slow", output="result")
    wf.tool("slow", tool=blocks)
    async with Pointsman("memory:", settings=Settings(), tools=[blocks]) as app:
        execution = await app.run(wf)
        assert await execution.output() == "done"
        (done,) = [one async for one in execution.journal() if one["kind"] == "step_succeeded"]
    printed = str(done["printed"])
    assert printed.startswith("warning pointsman.tools: the tool 'blocks' blocks the event loop at ")
    assert "Write `def` instead" in printed


async def test_threads_that_a_tool_starts_do_not_end_or_hold_its_execution() -> None:
    go_on, threads = threading.Event(), list[threading.Thread]()

    def spawns() -> str:
        """Start a thread that outlives the call."""
        threads.append(threading.Thread(target=go_on.wait))
        threads[0].start()
        return "done"

    wf = Workflow.build("spawns", output="result")
    wf.tool("spawns", tool=spawns)
    async with Pointsman("memory:", settings=Settings(), tools=[spawns]) as app:
        assert await (await app.run(wf)).output() == "done"
        assert threads[0].is_alive()
    go_on.set()
    threads[0].join()


@pytest.mark.parametrize("given", [3, b"text", ["list"], object()])
async def test_a_value_that_is_not_a_workflow_is_refused_with_its_type(given: object) -> None:
    async with Pointsman("memory:", settings=Settings()) as app:
        with pytest.raises(WorkflowUnusable, match=f"a '{type(given).__name__}' object is not a workflow"):
            await app.start(given)  # pyright: ignore[reportArgumentType] - wrong on purpose
