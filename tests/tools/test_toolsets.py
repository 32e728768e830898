"""Toolsets of pydantic-ai as tools of workflows."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from pydantic_ai import RunContext
from pydantic_ai.toolsets import FunctionToolset

from pointsman import Pointsman, Workflow
from pointsman.executions.execution import ExecutionFailed
from pointsman.settings import Settings
from pointsman.tools.toolsets import tools_of_toolset


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


async def test_a_tool_of_a_toolset_runs_in_a_workflow_with_its_schema() -> None:
    (tool,) = await tools_of_toolset(shop(), deps={"pen": 1.5})
    assert (tool.name, tool.spec.description) == ("price", "Return the price of some articles.")
    assert tool.spec.parameters["required"] == ["article"]
    wf = Workflow.build("shop", output="result")
    wf.tool("price", tool="price", parameters={"article": "{article}", "count": 2})
    async with Pointsman("memory:", settings=Settings(), tools=[tool]) as app:
        execution = await app.run(wf, {"article": "pen"})
        assert await execution.output() == {"amount": 3.0, "currency": "EUR"}
        failed = await app.run(wf, {"article": "book"})
        with pytest.raises(ExecutionFailed, match="tool-failed"):
            await failed.output()
