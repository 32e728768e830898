"""Toolsets of pydantic-ai as tools of workflows and agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic_ai import ApprovalRequired, CallDeferred, ModelRetry, RunContext, ToolDefinition, ToolFailed
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset

from pointsman import Execution, Pointsman, Workflow
from pointsman.engine.failures import Failure
from pointsman.executions.execution import ExecutionFailed
from pointsman.models.script import Script
from pointsman.settings import Settings
from pointsman.tools.adapter import ToolAdapter
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.tool import ToolInvalid
from pointsman.tools.toolsets import tools_of_toolset
from pointsman.values import JsonObject
from pointsman.workflows.scripts import parse_script


@dataclass
class Price:
    amount: float
    currency: str


def shop() -> FunctionToolset[dict[str, float]]:
    toolset = FunctionToolset[dict[str, float]]()

    @toolset.tool
    def price(ctx: RunContext[dict[str, float]], article: str, count: int = 1) -> Price:
        """Return the price of some articles.

        Args:
            article: Name of the article.
        """
        return Price(ctx.deps[article] * count, "EUR")

    return toolset


async def called(tool: ToolAdapter, arguments: JsonObject, script: Script | None = None) -> Execution:
    """Run a workflow with one tool node to its end."""
    wf = Workflow.build("shop", output="result")
    wf.tool("call", tool=tool.name, parameters={name: f"{{input.{name}}}" for name in arguments})
    async with Pointsman("memory:", settings=Settings(), tools=[tool], script=script) as app:
        return await app.run(wf, arguments)


async def failure(tool: ToolAdapter, arguments: JsonObject) -> Failure:
    found = (await called(tool, arguments)).state.outcome.failure
    assert found is not None
    return found


async def test_a_tool_of_a_toolset_runs_in_a_workflow_with_its_schema() -> None:
    (tool,) = await tools_of_toolset(shop(), deps={"pen": 1.5})
    assert (tool.name, tool.spec.description) == ("price", "Return the price of some articles.")
    assert tool.spec.parameters["required"] == ["article"]
    execution = await called(tool, {"article": "pen", "count": 2})
    assert await execution.output() == {"amount": 3.0, "currency": "EUR"}


async def test_an_exception_of_a_tool_of_a_toolset_is_the_cause_of_the_failure() -> None:
    (tool,) = await tools_of_toolset(shop(), deps={"pen": 1.5})
    failed = await called(tool, {"article": "book"})
    with pytest.raises(ExecutionFailed, match="tool-failed") as raised:
        await failed.output()
    assert isinstance(raised.value.__cause__, KeyError)


async def test_an_async_tool_of_a_prefixed_toolset_is_called_by_an_agent() -> None:
    toolset = FunctionToolset()

    @toolset.tool_plain
    async def stock(article: str) -> dict[str, int]:
        """Return the number of articles in stock."""
        return {article: 7}

    tools = await tools_of_toolset(toolset.prefixed("shop"))
    script = parse_script(
        """
        rules:
          - {call: 1, toolCalls: [{name: shop_stock, arguments: {article: pen}}]}
          - {contains: '"pen": 7', text: Seven.}
          - {contains: '"pen":7', text: Seven.}
        """
    )
    wf = Workflow.build("ask", output="result")
    wf.agent("clerk", prompt="How many pens are there?", tools=["shop_stock"])
    async with Pointsman("memory:", settings=Settings(), tools=tools, script=script) as app:
        assert await (await app.run(wf)).output() == "Seven."


def raises(why: Exception) -> FunctionToolset[None]:
    def fail() -> None:
        """Fail."""
        raise why

    return FunctionToolset[None](tools=[fail])


@pytest.mark.parametrize(
    ("why", "message", "retryable"),
    [
        (ModelRetry("give the name in the singular"), "ModelRetry: give the name in the singular", True),
        (ToolFailed("there are no pens"), "the tool 'fail' failed: there are no pens", False),
        (ApprovalRequired(), "the tool 'fail' requires approval of this call", False),
        (CallDeferred(), "the tool 'fail' deferred its call", False),
    ],
    ids=["retry", "failed", "approval", "deferred"],
)
async def test_errors_of_pydantic_ai_are_failures_of_the_tool(why: Exception, message: str, retryable: bool) -> None:
    (tool,) = await tools_of_toolset(raises(why))
    found = await failure(tool, {})
    assert (found.code, found.retryable) == ("tool-failed", retryable)
    assert message in found.message


async def test_arguments_that_a_validator_refuses_are_named() -> None:
    def must_be_even(ctx: RunContext[None], number: int) -> None:
        if number % 2:
            raise ModelRetry("the number must be even")

    def half(number: int) -> int:
        """Halve a number."""
        return number // 2

    toolset = FunctionToolset[None]()
    toolset.add_function(half, args_validator=must_be_even)
    (tool,) = await tools_of_toolset(toolset)
    assert await (await called(tool, {"number": 4})).output() == 2
    assert "the number must be even" in (await failure(tool, {"number": 3})).message
    assert (await failure(tool, {"number": "four"})).code == "tool-arguments"


@pytest.mark.parametrize("is_marked", [True, False], ids=["by the toolset", "by the option"])
async def test_a_tool_that_requires_approval_waits_for_a_person(is_marked: bool) -> None:
    sent: list[str] = []

    def send(ctx: RunContext[Any], text: str) -> str:
        """Send a letter."""
        sent.append(text)
        return f"approved: {ctx.tool_call_approved}"

    toolset = FunctionToolset[Any](tools=[send], requires_approval=is_marked)
    (tool,) = await tools_of_toolset(toolset, requires_approval=not is_marked)
    wf = Workflow.build("post", output="result")
    wf.tool("call", tool="send", parameters={"text": "hello"})
    async with Pointsman("memory:", settings=Settings(), tools=[tool]) as app:
        execution = await app.run(wf)
        assert (execution.status, sent) == ("waiting", [])
        (gate,) = execution.waiting
        await execution.answer(str(gate["gateId"]), "approve")
        assert await execution.output() == "approved: True"
    assert sent == ["hello"]


async def test_a_wrapper_that_asks_for_approval_never_runs_the_tool_unasked() -> None:
    toolset = shop().approval_required(lambda ctx, tool, arguments: arguments["count"] > 10)
    (tool,) = await tools_of_toolset(toolset, deps={"pen": 1.5})
    assert (await called(tool, {"article": "pen", "count": 2})).status == "completed"
    found = await failure(tool, {"article": "pen", "count": 20})
    assert "requires_approval=True" in found.hint


async def test_an_external_tool_is_refused() -> None:
    toolset = ExternalToolset[None]([ToolDefinition(name="locate")])
    with pytest.raises(ToolInvalid, match="the tool 'locate' of a toolset is external"):
        await tools_of_toolset(toolset)


def test_a_toolset_itself_is_refused_with_the_function_to_call() -> None:
    wrong: Any = shop()
    with pytest.raises(ToolInvalid, match="'FunctionToolset' object is not a tool") as refused:
        ToolRegistry([wrong])
    assert "tools_of_toolset" in refused.value.hint
