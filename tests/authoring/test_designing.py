"""Design from descriptions: a model drafts and `check` answers; and models with useless answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.auth.callers import LOCAL, Caller, NotAllowed
from pointsman.authoring.design import (
    GUIDE,
    NODES_MAX,
    ROUNDS_MAX,
    DesignModelMissing,
    Round,
    design,
    design_briefing,
    edit_briefing,
    edit_by_words,
)
from pointsman.authoring.tools import Workbench
from pointsman.authoring.verbs import DesignFailed
from pointsman.models.failures import ModelFailed
from pointsman.models.script import Script
from pointsman.settings import Settings
from pointsman.settings.sections import AccessSettings
from pointsman.values import JsonObject
from pointsman.workflows.saving import save_as
from pointsman.workflows.scripts import parse_script
from tests.server.flows import LETTER

GOOD: JsonObject = {
    "pointsman": 1,
    "id": "note",
    "input": {"type": "object", "properties": {"topic": {"type": "string"}}},
    "nodes": [
        {"id": "draft", "type": "agent", "config": {"prompt": "Write about {topic}."}, "outputs": {"note": "result"}},
        {"id": "done", "type": "end"},
    ],
    "edges": [{"source": "draft", "target": "done"}],
    "output": {"note": "note"},
}
DANGLING: JsonObject = {**GOOD, "edges": [{"source": "draft", "target": "doen"}]}


def saying(*answers: JsonObject | str) -> Script:
    """Return the script of a designer with these answers in order."""
    told = [{"text": one} if isinstance(one, str) else {"json": one} for one in answers]
    return parse_script(json.dumps({"rules": [{"purpose": "design", "answers": told}]}))


def app_with(script: Script | None, store: str = "memory:") -> Pointsman:
    return Pointsman(store, settings=Settings(delays=False), model="scripted", script=script)


@pytest.mark.requirement("S1-01", "S1-139", "S4-35", "S4-O7")
async def test_a_model_corrects_problems_until_none_is_left() -> None:
    heard: list[Round] = []
    async with app_with(saying("I would love to!", DANGLING, GOOD)) as app:
        made = await design(app.context, "A note about a topic.", listener=heard.append)
    assert made.ok
    assert made.made is not None
    assert made.made.definition.id == "note"
    assert [one.ok for one in heard] == [False, False, True]
    assert made.rounds == tuple(heard)
    assert any("doen" in problem.message for problem in heard[1].problems)
    assert {one.model for one in heard} == {"scripted"}


async def test_a_design_stops_when_the_same_errors_repeat() -> None:
    async with app_with(saying(DANGLING)) as app:
        made = await design(app.context, "A note.")
    assert not made.ok
    assert len(made.rounds) == 2
    assert made.made is not None, "what could be read is shown all the same"


async def test_a_design_stops_after_a_number_of_rounds_with_other_errors() -> None:
    wrong: list[JsonObject] = [
        {**GOOD, "edges": [{"source": "draft", "target": f"nowhere{n}"}]} for n in range(ROUNDS_MAX + 3)
    ]
    async with app_with(saying(*wrong)) as app:
        made = await design(app.context, "A note.")
    assert not made.ok
    assert len(made.rounds) == ROUNDS_MAX


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "no",
        "null",
        "[]",
        "{}",
        '{"nodes": [{"id": "a", "type": "agent", "config": {"prompt": "half',
        "[" * 5000,
        {"nodes": "all of them"},
        {"id": "x", "nodes": [{"id": "a", "type": "agent|tool|..."}]},
        {"id": "../../etc", "nodes": [{"id": "a", "type": "end"}]},
        {"id": "executions", "nodes": [{"id": "a", "type": "end"}], "edges": []},
        {"id": "x", "nodes": [{"id": "a", "type": "tool", "config": {"tool": "rm_rf"}}], "edges": []},
        {"id": "x", "nodes": [{"id": f"n{n}", "type": "end"} for n in range(500)], "edges": []},
        {"id": "x", "nodes": [{"id": "\u001b[2J", "type": "end"}, {"id": "\u001b[2J", "type": "end"}], "edges": []},
        "x" * 300_000,
    ],
)
@pytest.mark.requirement("T4-14")
async def test_any_invalid_answer_of_a_model_becomes_problems(answer: Any) -> None:
    async with app_with(saying(answer)) as app:
        made = await design(app.context, "A note.")
        said = await Workbench(app.context, LOCAL).authoring.design("A note.", save=True)
        assert await app.workflows() == [], "nothing with errors is saved"
    assert not made.ok
    assert 1 <= len(made.rounds) <= ROUNDS_MAX
    assert any(problem.severity == "error" for problem in made.rounds[-1].problems)
    assert (said["ok"], said["saved"]) == (False, False)
    json.dumps(said)


async def test_large_designs_are_refused_by_their_size() -> None:
    many: JsonObject = {"id": "x", "nodes": [{"id": f"n{n}", "type": "end"} for n in range(NODES_MAX + 1)], "edges": []}
    async with app_with(saying(many)) as app:
        made = await design(app.context, "Everything.")
    assert [problem.code for problem in made.rounds[0].problems] == ["too-many-nodes"]


async def test_the_scripted_model_refuses_to_design() -> None:
    async with app_with(None) as app:
        with pytest.raises(DesignModelMissing, match="cannot design workflows"):
            await design(app.context, "A note.")


async def test_a_failing_design_model_is_reported() -> None:
    script = parse_script("rules: [{purpose: design, fail: 401}]")
    async with app_with(script) as app:
        with pytest.raises(ModelFailed):
            await design(app.context, "A note.")


@pytest.mark.integration
@pytest.mark.requirement("S4-36", "S4-43")
async def test_a_described_change_is_shown_as_operations_and_saved_on_acceptance(tmp_path: Path) -> None:
    wrong: JsonObject = {
        "operations": [{"op": "change_node", "node": "wirte", "set": {"/config/prompt": "Dear {name}"}}]
    }
    right: JsonObject = {
        "operations": [{"op": "change_node", "node": "write", "set": {"/config/prompt": "To {goal}, in verse"}}]
    }
    store = f"sqlite:///{tmp_path / 'store.db'}"
    async with app_with(saying("Sure.", wrong, right), store) as app:
        await app.save(Workflow.parse(LETTER))
        bench = Workbench(app.context, LOCAL).authoring
        shown = await bench.edit_by_words("letter", "In verse, please.")
        assert (shown["applied"], shown["changes"]) == (False, right["operations"])
        rounds: Any = shown.get("rounds")
        assert [one["ok"] for one in rounds] == [False, False, True]
        assert "there is no node 'wirte'" in rounds[1]["problems"][0]["message"]
        assert len(await app.workflows("letter")) == 1
        assert (await bench.edit_by_words("letter", "In verse, please.", apply=True))["revision"] == 2
    async with app_with(None, store) as app:
        assert (await app.source("letter")).definition.nodes_by_id.keys() == {"write", "review", "send"}
        assert "in verse" in (await app.source("letter")).document.text


async def test_a_change_that_breaks_the_workflow_is_shown_and_not_saved() -> None:
    breaks: JsonObject = {"operations": [{"op": "remove_node", "node": "write"}]}
    async with app_with(saying(breaks)) as app:
        await app.save(Workflow.parse(LETTER))
        shown = await Workbench(app.context, LOCAL).authoring.edit_by_words("letter", "Away with it.", apply=True)
        assert (shown["ok"], shown["applied"]) == (False, False)
        assert len(await app.workflows("letter")) == 1


@pytest.mark.parametrize(
    "answer", ["", "no", "{}", '{"operations": {}}', '{"operations": [{"op": "boom"}]}', "[1]", "[" * 900]
)
async def test_invalid_operations_change_nothing(answer: str) -> None:
    async with app_with(saying(answer)) as app:
        await app.save(Workflow.parse(LETTER))
        made = await edit_by_words(app.context, await app.source("letter"), "Better.")
        assert made.made is None
        with pytest.raises(DesignFailed, match="the model could not change 'letter'"):
            await Workbench(app.context, LOCAL).authoring.edit_by_words("letter", "Better.", apply=True)
        assert len(await app.workflows("letter")) == 1


async def test_only_editors_may_request_designs() -> None:
    async with app_with(saying(GOOD)) as app:
        await app.save(Workflow.parse(LETTER))
        bench = Workbench(app.context, Caller(name="op", role="operator")).authoring
        with pytest.raises(NotAllowed):
            await bench.design("A note.")
        with pytest.raises(NotAllowed):
            await bench.edit_by_words("letter", "Better.")


async def test_the_design_model_receives_the_guide_and_the_installed_tools() -> None:
    async with app_with(saying(GOOD)) as app:
        told = await design_briefing(app.context, LOCAL)
        assert GUIDE in told
        assert "- calculator(" in told
        assert "- agent: " in told
        assert "prompt" in told
        changing = await edit_briefing(app.context, LOCAL, GOOD)
        assert '"op": "rename_node", node!, to!' in changing
        assert '"id":"note"' in changing


async def test_the_example_of_the_guide_has_no_problems() -> None:
    example = GUIDE.partition("Example:\n")[2]
    async with app_with(None) as app:
        checked = await app.check(Workflow.parse(example))
    assert [problem.message for problem in checked.problems] == []


async def test_the_design_model_receives_no_hidden_workflow() -> None:
    settings = Settings(access=AccessSettings(new_workflows="private"))
    async with Pointsman("memory:", settings=settings) as app:
        await save_as(app.context, Caller(name="ann", role="editor"), Workflow.parse(LETTER))
        await app.tools.prepare_all()
        for name, told in (("ann", True), ("ben", False)):
            caller = Caller(name=name, role="editor")
            for briefing in (
                await design_briefing(app.context, caller),
                await edit_briefing(app.context, caller, GOOD),
            ):
                assert ("workflow__letter" in briefing) is told
