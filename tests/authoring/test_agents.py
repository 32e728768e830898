"""An assistant: an agent in a workflow that designs, saves and runs workflows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.authoring.tools import DEPTH_MAX, offer_verbs, verbs
from pointsman.models.script import Script
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject
from pointsman.workflows.scripts import parse_script
from tests.definition.documents import CALC

ASSISTANT = """\
id: assistant
config: {conversational: true}
nodes:
  - id: help
    type: agent
    config:
      prompt: You design workflows with people.
      tools: [list_workflows, check_workflow, save_workflow, run_workflow, edit_workflow, delete_workflow]
"""


def calling(*calls: tuple[str, JsonObject], says: str) -> Script:
    answers: list[Json] = [{"toolCalls": [{"name": name, "arguments": given}]} for name, given in calls]
    return parse_script(json.dumps({"rules": [{"node": "help", "answers": [*answers, {"text": says}]}]}))


@pytest.mark.integration
@pytest.mark.requirement("S4-01", "S4-35", "S4-39", "S4-41")
async def test_an_agent_in_a_chat_designs_saves_and_runs_a_workflow_that_stays(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"
    broken: JsonObject = {**CALC, "edges": [{"source": "start", "target": "duoble"}]}
    script = calling(
        ("check_workflow", {"document": broken}),
        ("save_workflow", {"document": CALC}),
        ("run_workflow", {"workflow": "calc", "input": {"a": 21}}),
        says="It doubles numbers: 42.",
    )
    async with Pointsman(store, settings=Settings(delays=False), model="scripted", script=script) as app:
        offer_verbs(app.tools, lambda: app.context, "editor")
        turn = await app.start(Workflow.parse(ASSISTANT), "Double numbers for me.", session="s1", by="ada")
        assert await turn.output() == "It doubles numbers: 42."
        told = json.dumps((await turn.view()), default=str) + json.dumps([one async for one in turn.journal()])
        assert "did you mean" in told.lower()
        assert '"output": 42' in told.replace('\\"', '"')
        (entry,) = await app.workflows("calc")
        assert entry.author == "ada"
    async with Pointsman(store, settings=Settings(delays=False), model="scripted") as app:
        assert await (await app.start("calc", {"a": 5})).output() == 10


async def test_an_agent_may_use_only_the_verbs_that_the_operator_allows() -> None:
    script = calling(("save_workflow", {"document": CALC}), says="Done.")
    async with Pointsman("memory:", settings=Settings(delays=False), model="scripted", script=script) as app:
        offer_verbs(app.tools, lambda: app.context, "operator")
        assert app.tools.find("run_workflow") is not None
        assert app.tools.find("save_workflow") is None
        turn = await app.start(Workflow.parse(ASSISTANT), "Save it.", session="s1", by="ada")
        await turn.settled()
        assert await app.workflows() == []


async def test_destructive_verbs_need_approval() -> None:
    script = calling(("delete_workflow", {"workflow": "calc"}), says="It is gone.")
    async with Pointsman("memory:", settings=Settings(delays=False), model="scripted", script=script) as app:
        offer_verbs(app.tools, lambda: app.context, "editor")
        await app.save(Workflow.of(CALC))
        turn = await app.start(Workflow.parse(ASSISTANT), "Delete it.", session="s1", by="ada")
        assert await turn.settled() == "waiting"
        assert len(await app.workflows("calc")) == 1
        (gate,) = turn.gates
        await turn.answer(gate.id, "approve", by="ada")
        assert await turn.output() == "It is gone."
        assert await app.workflows() == []


async def test_agents_that_run_agents_end() -> None:
    again: JsonObject = {"name": "run_workflow", "arguments": {"workflow": "assistant", "input": {}}}
    rules: list[Json] = [{"node": "help", "call": 1, "toolCalls": [again]}, {"node": "help", "text": "Enough."}]
    script = parse_script(json.dumps({"rules": rules}))
    plain = ASSISTANT.replace("config: {conversational: true}\n", "")
    async with Pointsman("memory:", settings=Settings(delays=False), model="scripted", script=script) as app:
        offer_verbs(app.tools, lambda: app.context, "operator")
        await app.save(Workflow.parse(plain))
        first = await app.start("assistant", {}, by="ada")
        assert await first.output() == "Enough."
        assert len(await app.executions()) == DEPTH_MAX + 1


def test_every_verb_is_a_tool_with_a_schema() -> None:
    for name, verb in verbs().items():
        assert verb.schema["type"] == "object", name
        assert verb.says.endswith("."), name
