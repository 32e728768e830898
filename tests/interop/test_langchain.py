"""Tools of LangChain and graphs of LangGraph, from their packages, as tools of workflows and agents."""

from __future__ import annotations

import asyncio
import inspect
import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, ToolException
from langchain_core.tools import tool as langchain_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from pointsman import Execution, Pointsman, PointsmanError, Workflow
from pointsman.engine.failures import Failure
from pointsman.models.script import Script
from pointsman.settings import Settings
from pointsman.tools.conversion import ToolLike
from pointsman.tools.langchain import tool_of_graph, tool_of_langchain
from pointsman.tools.loop_monitor import BlockingTool, tool_in
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.tool import ToolInvalid
from pointsman.values import Json, JsonObject
from pointsman.workflows.scripts import parse_script


class Price(BaseModel):
    amount: float
    currency: str = "EUR"


@langchain_tool(parse_docstring=True)
def price(article: str, count: int = 1) -> Price:
    """Return the price of some articles.

    Args:
        article: Name of the article.
        count: Number of articles.
    """
    return Price(amount=1.5 * count)


@langchain_tool
async def stock(article: str) -> dict[str, int]:
    """Return the number of articles in stock."""
    if article == "book":
        raise ToolException("there is no shelf for books")
    return {article: 7}


class SearchArguments(BaseModel):
    words: str = Field(description="The words to find.", min_length=2)
    order: Literal["date", "rank"] = "rank"


def search(words: str, order: str) -> tuple[list[str], object]:
    return [f"{words} by {order}"], object()


class Counter(BaseTool):
    name: str = "count"
    description: str = "Count the letters of a text."

    def _run(self, text: str) -> int:
        return len(text)


def structured() -> StructuredTool:
    return StructuredTool.from_function(
        search,
        name="search",
        description="Search the archive.",
        args_schema=SearchArguments,
        response_format="content_and_artifact",
    )


async def called(tool: ToolLike, arguments: JsonObject) -> Execution:
    """Run a workflow with one tool node to its end."""
    registry = ToolRegistry([tool])
    (name,) = [name for name in registry.names() if registry.origin(name) == "function"]
    wf = Workflow.build("one", output="result")
    wf.tool("call", tool=name, parameters={one: f"{{input.{one}}}" for one in arguments})
    async with Pointsman("memory:", settings=Settings(), tools=[tool]) as app:
        return await app.run(wf, arguments)


async def output(tool: ToolLike, arguments: JsonObject) -> Json:
    return await (await called(tool, arguments)).output()


async def failure(tool: ToolLike, arguments: JsonObject) -> Failure:
    found = (await called(tool, arguments)).state.outcome.failure
    assert found is not None
    return found


def test_a_tool_keeps_its_name_description_and_schema() -> None:
    spec = ToolRegistry([price]).find("price")
    assert spec is not None
    assert spec.description == "Return the price of some articles."
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "article": {"type": "string", "description": "Name of the article."},
            "count": {"type": "integer", "default": 1, "description": "Number of articles."},
        },
        "required": ["article"],
    }


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        (price, {"article": "pen", "count": 2}, {"amount": 3.0, "currency": "EUR"}),
        (stock, {"article": "pen"}, {"pen": 7}),
        (structured(), {"words": "tides"}, ["tides by rank"]),
        (Counter(), {"text": "four"}, 4),
    ],
    ids=["sync", "async", "structured", "class"],
)
async def test_a_tool_runs_in_a_workflow(tool: BaseTool, arguments: JsonObject, expected: Json) -> None:
    assert await output(tool, arguments) == expected


async def test_an_exception_of_a_tool_fails_its_step_and_is_the_cause() -> None:
    execution = await called(stock, {"article": "book"})
    with pytest.raises(PointsmanError, match="ToolException: there is no shelf for books") as failed:
        await execution.output()
    assert isinstance(failed.value.__cause__, ToolException)


async def test_wrong_arguments_are_refused_with_their_name() -> None:
    wrong = await failure(structured(), {"words": "tides", "order": "size"})
    assert wrong.code == "tool-arguments"
    assert "order" in wrong.message


async def test_a_tool_that_handles_its_errors_returns_their_text() -> None:
    handled = StructuredTool.from_function(coroutine=stock.coroutine, name="stock", description=".")  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType, reportAttributeAccessIssue] - LangChain leaves it untyped
    handled.handle_tool_error = True
    assert await output(handled, {"article": "book"}) == "there is no shelf for books"


async def test_an_agent_calls_a_tool_of_langchain() -> None:
    script = parse_script(
        """
        rules:
          - {call: 1, toolCalls: [{name: price, arguments: {article: pen, count: 4}}]}
          - {contains: '6.0', text: It costs six.}
        """
    )
    wf = Workflow.build("shop", output="result")
    wf.agent("clerk", prompt="What do four pens cost?", tools=[price])
    async with Pointsman("memory:", settings=Settings(), tools=[price], script=script) as app:
        assert await (await app.run(wf)).output() == "It costs six."


async def test_options_of_a_tool_apply() -> None:
    asks = tool_of_langchain(price, requires_approval=True)
    assert (await called(asks, {"article": "pen"})).status == "waiting"
    small = tool_of_langchain(price, output_bytes_max=5)
    assert (await failure(small, {"article": "pen"})).code == "tool-output-too-large"


@langchain_tool
def owned(article: str, owner: Annotated[str, InjectedToolArg]) -> str:
    """Return the owner of an article."""
    return owner


async def test_a_tool_of_langchain_that_blocks_the_loop_is_found() -> None:
    found: list[BlockingTool | None] = []

    @langchain_tool
    async def blocks() -> str:
        """Run on the loop."""
        found.append(tool_in(inspect.currentframe()))
        return "done"

    assert await output(blocks, {}) == "done"
    (first,) = found
    assert first is not None
    line = inspect.getsourcelines(blocks.coroutine)[1] + 3  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType, reportAttributeAccessIssue] - LangChain leaves it untyped
    assert (first.name, first.where) == ("", f"{__file__}:{line} in blocks")


def test_a_tool_with_arguments_of_an_agent_of_langchain_is_refused() -> None:
    with pytest.raises(ToolInvalid, match="'owned' of LangChain requires 'owner'"):
        ToolRegistry([owned])


# Graphs


class Letter(TypedDict):
    topic: str
    lines: Annotated[list[str], operator.add]


class Lines(TypedDict):
    lines: list[str]


class Steps:
    """Nodes of a graph, which count their calls; `send` fails the first `failures` times."""

    def __init__(self, *, failures: int = 0) -> None:
        self.calls: list[str] = []
        self.failures = failures

    async def write(self, state: Letter) -> JsonObject:
        self.calls.append("write")
        return {"lines": [f"The {state['topic']} come."]}

    def send(self, state: Letter) -> JsonObject:
        self.calls.append("send")
        if self.calls.count("send") <= self.failures:
            raise ConnectionError("no post today")
        return {"lines": [f"sent {len(state['lines'])}"]}

    def graph(self, checkpointer: InMemorySaver | None = None, send: Any = None) -> Any:
        graph = StateGraph(Letter, output_schema=Lines)
        graph.add_node("write", self.write)  # pyright: ignore[reportUnknownMemberType] - LangGraph leaves it untyped
        graph.add_node("send", send or self.send)  # pyright: ignore[reportUnknownMemberType] - as above
        graph.add_edge(START, "write")
        graph.add_edge("write", "send")
        graph.add_edge("send", END)
        return graph.compile(checkpointer=checkpointer)  # pyright: ignore[reportUnknownMemberType] - as above


async def test_a_graph_is_a_node_whose_input_are_the_parameters() -> None:
    steps = Steps()
    letter = tool_of_graph(steps.graph(), name="letter", description="Write a letter.")
    assert letter.spec.parameters == {
        "type": "object",
        "properties": {"topic": {"type": "string"}, "lines": {"type": "array", "items": {"type": "string"}}},
    }
    assert await output(letter, {"topic": "tides"}) == {"lines": ["The tides come.", "sent 1"]}
    assert steps.calls == ["write", "send"]


async def test_an_exception_in_a_graph_fails_its_step_with_the_traceback_of_the_node() -> None:
    wrong = await failure(tool_of_graph(Steps(failures=1).graph(), name="letter"), {"topic": "tides"})
    assert (wrong.code, wrong.message) == ("tool-failed", "the tool 'letter' failed: ConnectionError: no post today")
    assert "in send" in str((wrong.details or {})["traceback"])


def retried(steps: Steps, checkpointer: InMemorySaver | None) -> tuple[Workflow, ToolLike]:
    letter = tool_of_graph(steps.graph(checkpointer), name="letter")
    wf = Workflow.build("post", output="result")
    wf.tool("letter", tool=letter, parameters={"topic": "{topic}"}, execution={"retries": 1, "retryDelay": "1s"})
    return Workflow.of(wf), letter


@pytest.mark.parametrize(
    ("checkpointer", "calls"),
    [(InMemorySaver(), ["write", "send", "send"]), (None, ["write", "send", "write", "send"])],
    ids=["with checkpoints", "without"],
)
async def test_a_retried_graph_continues_after_its_last_checkpoint(
    checkpointer: InMemorySaver | None, calls: list[str]
) -> None:
    steps = Steps(failures=1)
    workflow, letter = retried(steps, checkpointer)
    async with Pointsman("memory:", settings=Settings(delays=False), tools=[letter]) as app:
        execution = await app.run(workflow, {"topic": "tides"})
        assert await execution.output() == {"lines": ["The tides come.", "sent 1"]}
    assert steps.calls == calls


@pytest.mark.integration
async def test_a_graph_that_was_interrupted_by_a_crash_continues_after_its_last_checkpoint(tmp_path: Path) -> None:
    saver, steps, store = InMemorySaver(), Steps(), f"sqlite:///{tmp_path / 'store.db'}"
    is_sending, is_crashed = asyncio.Event(), True

    async def send(state: Letter) -> JsonObject:
        steps.calls.append("send")
        is_sending.set()
        if is_crashed:
            await asyncio.Event().wait()
        return {"lines": ["sent"]}

    letter = tool_of_graph(steps.graph(saver, send=send), name="letter")
    wf = Workflow.build("post", output="result")
    wf.tool("letter", tool=letter, parameters={"topic": "tides"})
    async with Pointsman(store, settings=Settings(), tools=[letter]) as app:
        execution = await app.start(wf)
        await is_sending.wait()
    is_crashed = False
    async with Pointsman(store, settings=Settings(), tools=[letter]) as app:
        again = await app.open(execution.id)
        assert await again.output() == {"lines": ["The tides come.", "sent"]}
    assert steps.calls == ["write", "send", "send"]


async def test_two_calls_have_threads_of_their_own() -> None:
    saver = InMemorySaver()
    letter = tool_of_graph(Steps().graph(saver), name="letter")
    wf = Workflow.build("two", output={"first": "nodes.first", "second": "nodes.second"})
    first = wf.tool("first", tool=letter, parameters={"topic": "tides"})
    wf.tool("second", tool=letter, parameters={"topic": "gulls"}, after=first)
    async with Pointsman("memory:", settings=Settings(), tools=[letter]) as app:
        found = await (await app.run(wf)).output()
    assert found == {
        "first": {"lines": ["The tides come.", "sent 1"]},
        "second": {"lines": ["The gulls come.", "sent 1"]},
    }
    assert len(saver.storage) == 2


async def test_a_thread_of_the_author_is_used_by_all_calls() -> None:
    saver = InMemorySaver()
    config = {"configurable": {"thread_id": "mine"}}
    letter = tool_of_graph(Steps().graph(saver), name="letter", config=config)
    assert await output(letter, {"topic": "tides"}) == {"lines": ["The tides come.", "sent 1"]}
    again = await output(letter, {"topic": "gulls"})
    assert again == {"lines": ["The tides come.", "sent 1", "The gulls come.", "sent 3"]}
    assert list(saver.storage) == ["mine"]


async def test_a_graph_of_messages_takes_roles_and_returns_messages() -> None:
    def answer(state: MessagesState) -> dict[str, list[tuple[str, str]]]:
        return {"messages": [("ai", f"You wrote {state['messages'][-1].text!r}.")]}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)  # pyright: ignore[reportUnknownMemberType] - LangGraph leaves it untyped
    graph.add_edge(START, "answer")
    chat = tool_of_graph(graph.compile(), name="chat")  # pyright: ignore[reportUnknownMemberType] - as above
    found: Any = await output(chat, {"messages": [{"role": "user", "content": "hello"}]})
    assert [(one["type"], one["content"]) for one in found["messages"]] == [
        ("human", "hello"),
        ("ai", "You wrote 'hello'."),
    ]


async def test_a_graph_that_asks_a_person_fails_and_names_the_question() -> None:
    def ask(state: Letter) -> JsonObject:
        return {"lines": [str(interrupt("Send it?"))]}

    graph = StateGraph(Letter)
    graph.add_node("ask", ask)  # pyright: ignore[reportUnknownMemberType] - LangGraph leaves it untyped
    graph.add_edge(START, "ask")
    asks = tool_of_graph(graph.compile(checkpointer=InMemorySaver()), name="asks")  # pyright: ignore[reportUnknownMemberType] - as above
    wrong = await failure(asks, {"topic": "tides"})
    assert wrong.message == "the graph 'asks' stopped at `interrupt()`: 'Send it?'"
    assert "human" in wrong.hint


async def test_a_graph_of_a_function_takes_a_value_that_is_no_object() -> None:
    async def double(number: int) -> int:
        return 2 * number

    decorate: Any = entrypoint()
    assert await output(tool_of_graph(decorate(double), name="double"), {"input": 4}) == 8


def test_a_graph_whose_input_cannot_be_described_is_refused_or_described_by_the_author() -> None:
    class Odd(TypedDict):
        thing: Iterator[object] | type[Path] | Steps

    graph = StateGraph(Odd)
    graph.add_node("go", lambda state: state)  # pyright: ignore[reportUnknownMemberType] - LangGraph leaves it untyped
    graph.add_edge(START, "go")
    made = graph.compile()  # pyright: ignore[reportUnknownMemberType] - as above
    with pytest.raises(ToolInvalid, match="the input of the graph 'odd' cannot be described"):
        tool_of_graph(made, name="odd")
    schema: JsonObject = {"type": "object", "properties": {"thing": {"type": "string"}}}
    assert tool_of_graph(made, name="odd", input=schema).spec.parameters == schema


def test_a_graph_without_a_name_is_refused_with_the_function_to_call() -> None:
    with pytest.raises(ToolInvalid, match="is not a tool") as refused:
        ToolRegistry([Steps().graph()])
    assert "tool_of_graph(graph, name=…)" in refused.value.hint


async def test_a_method_of_a_graph_in_a_function_is_a_tool_as_any_other() -> None:
    graph = Steps().graph()

    async def letter(topic: str) -> list[str]:
        """Write a letter."""
        found: Lines = await graph.ainvoke({"topic": topic})
        return found["lines"]

    assert await output(letter, {"topic": "tides"}) == ["The tides come.", "sent 1"]
    script = Script()
    async with Pointsman("memory:", settings=Settings(), tools=[letter], script=script) as app:
        assert app.tools.find("letter") is not None
