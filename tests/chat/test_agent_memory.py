"""The context of an agent: its prompt, its turn or its session; and the cost of summaries over restarts."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from pointsman.executions.opening import drive
from pointsman.testing.clock import run_virtually
from pointsman.values import Json, JsonObject
from tests.examples.example_runs import overheard
from tests.scenarios import installation, written

pytestmark = pytest.mark.integration


def talk(memory: str) -> str:
    return f"""
    pointsman: 1
    id: talk
    config: {{conversational: true}}
    nodes: [{{id: say, type: agent, config: {{memory: {memory}}}}}]
    edges: []
    """


def asked_in_turns(document: str, turns: int, store: str) -> list[tuple[str, list[Json]]]:
    """Return purpose and texts of each model call, with one process per turn."""

    async def turn(text: str) -> None:
        async with installation("rules: [{purpose: summary, text: In short.}, {text: Aye.}]", store=store) as app:
            execution = await app.start(written(document), text, session="s")
            await drive(execution)
            assert execution.status == "completed"

    async def run() -> None:
        for number in range(turns):
            await turn(f"turn {number}")

    with overheard() as asked:
        run_virtually(run())
    return [(one.purpose, [cast("JsonObject", said)["content"] for said in one.messages]) for one in asked]


@pytest.mark.parametrize(
    ("memory", "last"),
    [
        ("{scope: session}", ["turn 0", "Aye.", "turn 1", "Aye.", "turn 2"]),
        ("{scope: execution}", ["turn 2"]),
        ("{scope: session, window: 2, summarize: false}", ["[Earlier messages are left out.]", "Aye.", "turn 2"]),
    ],
)
def test_memory_has_the_reach_of_its_scope(memory: str, last: list[str], tmp_path: Path) -> None:
    asked = asked_in_turns(talk(memory), 3, f"sqlite:///{tmp_path / 'store.db'}")
    assert [purpose for purpose, _ in asked] == ["generation"] * 3
    assert asked[-1][1] == last


@pytest.mark.requirement("S1-114")
def test_a_long_conversation_is_summarised_and_stays_bounded(tmp_path: Path) -> None:
    asked = asked_in_turns(talk("{window: 6}"), 12, f"sqlite:///{tmp_path / 'store.db'}")
    answers = [texts for purpose, texts in asked if purpose == "generation"]
    summaries = [texts for purpose, texts in asked if purpose == "summary"]
    assert len(answers) == 12
    assert len(summaries) < 6
    assert max(map(len, answers)) <= 7
    assert str(summaries[1][0]).startswith("[What was said and done before, in short]\nIn short.")
    assert answers[-1][-1] == "turn 11"
