"""A typed program, as a user would write it: pyright and mypy check it in strict mode, and the tests run it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_type

from pydantic import BaseModel
from typing_extensions import TypedDict

from pointsman import Execution, Gate, Pointsman, ToolContext, Workflow, tool
from pointsman.definition.model.policies import Execution as NodePolicy
from pointsman.workflows.builder import NodeBuilder


class Request(BaseModel):
    """What the workflow needs."""

    topic: str
    words: int = 100


@dataclass
class Report:
    """What the workflow returns."""

    text: str
    stars: int


class Draft(TypedDict):
    text: str


class Verdict(BaseModel):
    stars: int


@tool(idempotent=True)
def write(topic: str, words: int, context: ToolContext) -> Draft:
    """Write a draft."""
    context.report_progress("writing")
    return {"text": f"{words} words about {topic}"}


DOCUMENT = """
id: report
nodes:
  - id: write
    type: tool
    config: {tool: write, parameters: {topic: "{topic}", words: "{input.words}"}}
    outputs: {text: result.text}
  - id: review
    type: human
    config:
      message: How good is it?
      show: [text]
      options: [publish]
      form: {stars: {type: integer}}
    outputs: {stars: result.data.stars}
edges:
  - {id: e, source: write, target: review}
output: {text: text, stars: stars}
"""

report = Workflow.parse(DOCUMENT).typed(Request, Report)


def built() -> Workflow[Request, Report]:
    """Return the same workflow, built in code."""
    wf = Workflow.build("report", output={"text": "text", "stars": "stars"})
    draft = wf.tool(
        "write",
        tool=write,
        parameters={"topic": "{topic}", "words": "{input.words}"},
        outputs={"text": "result.text"},
        execution=NodePolicy(retries=2),
    )
    question = wf.human(
        "review",
        after=draft,
        message="How good is it?",
        show=["text"],
        form=Verdict,
        outputs={"stars": "result.data.stars"},
    )
    question.on("reject", draft).on("approve", "END")
    loop = wf.loop("rounds", over="input.rounds", as_="round", max_iterations=3)
    assert_type(wf.transform("add", set={"n": "n + 1"}, after=loop).then(loop), NodeBuilder)
    return Workflow.of(wf).typed(Request, Report)


review = Gate("review", shows=Draft, takes=Verdict)


async def main() -> Report:
    """Run the workflow, and answer its gate."""
    async with Pointsman("memory:", tools=[write]) as app:
        execution = await app.run(report, Request(topic="tides"))
        assert_type(execution, Execution[Report])
        draft = execution.shown(review)
        assert_type(draft, Draft)
        await execution.answer(review, "publish", Verdict(stars=len(draft["text"])))
        output = await execution.output()
        assert_type(output, Report)
        return output


async def wrong(app: Pointsman, execution: Execution[Report]) -> None:
    """Make mistakes that a type checker must find: it also reports an ignored error that is none."""
    await app.run(report, {"topic": "tides"})  # type: ignore[misc]  # wrong on purpose
    await execution.answer(review, "publish", Draft(text=""))  # type: ignore[misc]  # wrong on purpose
    text: str = await execution.output()  # type: ignore[assignment]  # wrong on purpose
    assert text
    Workflow.build("wrong").agent("a", modle="x")  # type: ignore[call-arg]  # wrong on purpose
    Workflow.build("wrong").human("a", show="text", on_timeout=3)  # type: ignore[arg-type]  # wrong on purpose
