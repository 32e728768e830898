"""The answer of a chat workflow to its client: the new messages of the turn, and nothing before them."""

from __future__ import annotations

import asyncio
import gc

from pointsman import Pointsman, Workflow, tool
from pointsman.auth.callers import LOCAL
from pointsman.chat.adapter import ChatRequest, begin
from pointsman.settings import Settings
from pointsman.workflows.scripts import parse_script

TALK = """\
pointsman: 1
id: talk
config: {conversational: true}
nodes:
  - {id: hold, type: tool, config: {tool: hold}}
  - {id: first, type: agent, config: {prompt: "Begin."}}
  - {id: ask, type: human, config: {message: "Go on?"}}
  - {id: second, type: agent, config: {prompt: "End."}}
edges:
  - {source: hold, target: first}
  - {source: first, target: ask}
  - {source: ask, target: second, label: approve}
"""
SCRIPT = "rules: [{node: first, text: The tide comes in}, {node: second, text: The tide goes out}]"


def said(text: str) -> ChatRequest:
    return ChatRequest("talk", [{"role": "user", "content": text}], session="s")


async def test_an_answer_excludes_earlier_messages() -> None:
    go_on = asyncio.Event()

    @tool
    async def hold() -> str:
        """Waits."""
        await go_on.wait()
        return "held"

    async with Pointsman("memory:", tools=[hold], script=parse_script(SCRIPT), settings=Settings()) as app:
        await app.save(Workflow.parse(TALK))
        turn = await begin(app.context, LOCAL, said("hello"))
        answering = asyncio.create_task(begin(app.context, LOCAL, said("approve")))
        await asyncio.sleep(0)
        go_on.set()
        dialogue = await answering
        assert [one async for one in turn.pieces()]
        assert "The tide comes in" in turn.text
        assert [one async for one in dialogue.pieces()]
        assert dialogue.text == "The tide goes out"


async def test_a_client_that_leaves_before_the_answer_has_no_subscription() -> None:
    @tool
    async def hold() -> str:
        """Waits for nothing."""
        return "held"

    async with Pointsman("memory:", tools=[hold], script=parse_script(SCRIPT), settings=Settings()) as app:
        await app.save(Workflow.parse(TALK))
        dialogue = await begin(app.context, LOCAL, said("hello"))
        assert app.feed.watched
        await dialogue.execution.settled()
        del dialogue
        gc.collect()
        assert not app.feed.watched
