"""Levels of human involvement: none, gates only, or steering between any two steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from pointsman.app import Pointsman
from pointsman.definition.problems import WorkflowInvalid
from pointsman.engine.decide.lifecycle import NotSteerable
from pointsman.executions.lists import inbox
from pointsman.settings import Settings
from tests.scenarios import written

pytestmark = pytest.mark.integration

LETTER = """\
pointsman: 1
id: letter
config: {humanInLoop: %s}
output: {said: text}
nodes:
  - {id: write, type: transform, config: {set: {text: "'dull'"}}}
  - {id: review, type: human, config: {message: "Send it?", options: [{value: approve}]}}
  - {id: send, type: end}
edges: [{source: write, target: review}, {source: review, target: send}]
"""
GATELESS = LETTER.replace("type: human", "type: transform").replace(
    '{message: "Send it?", options: [{value: approve}]}', "{set: {seen: 'true'}}"
)


@pytest.mark.requirement("S1-07")
async def test_human_in_loop_selects_no_participation_gates_or_steering(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"
    async with Pointsman(store, settings=Settings(delays=False)) as app:
        with pytest.raises(WorkflowInvalid) as refused:
            await app.start(written(LETTER % "none"), {})
        assert "humanInLoop is none" in str(refused.value)
        alone = await app.start(written(GATELESS % "none"), {})
        await alone.settled()
        assert ((await alone.view())["status"], await inbox(app.context)) == ("completed", [])
        gated = await app.start(written(LETTER % "approval_gates"), {})
        steered = await app.start(written(LETTER % "real_time"), {})
        for execution in (gated, steered):
            await execution.settled()
    async with Pointsman(store, settings=Settings(delays=False)) as app:
        assert {str(one["executionId"]) for one in await inbox(app.context)} == {gated.id, steered.id}
        await _take_a_hand(app, steered.id)
        with pytest.raises(NotSteerable):
            await _take_a_hand(app, gated.id)
        for name, said in ((gated.id, "dull"), (steered.id, "bright")):
            execution = await app.open(name)
            await execution.answer("review", "approve", by="ada")
            await execution.settled()
            view = await execution.view()
            assert (view["status"], view["output"]) == ("completed", {"said": said})


async def _take_a_hand(app: Pointsman, name: str) -> None:
    execution = await app.open(name)
    await execution.steer((), set={"text": "bright"}, by="ada", reason="too dull")
