"""Evaluations: cases from files, scorers, runs, rights."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.auth.callers import Caller, NotAllowed
from pointsman.auth.keys import KEYS
from pointsman.evaluations.datasets import DatasetCase, DatasetInvalid, UnknownDataset, read_cases
from pointsman.evaluations.runs import RunDetail, RunLimits
from pointsman.evaluations.scorers import Scorer, ScorerInvalid, fits
from pointsman.evaluations.verbs import UnknownEvaluation
from pointsman.session import Session
from pointsman.workflows.scripts import parse_script

GREETER = """
pointsman: 1
id: greeter
input: {type: object, required: [name], properties: {name: {type: string}, loud: {type: boolean}}}
output: {text: text}
nodes: [{id: greet, type: agent, outputs: {text: result}, config: {prompt: "Greet {name}"}}]
"""
SCRIPT = """
rules:
  - {node: greet, contains: Ada, text: Hello Ada}
  - {node: greet, contains: Nobody, fail: {status: 400, message: no such person}}
  - {node: greet, text: Hello}
  - {node: score_tone, contains: Ada, json: {score: 0.5, reason: It is short.}}
  - {node: score_tone, json: {score: 1, reason: Fine.}}
"""
EDITOR = Caller(name="ada", role="editor", entrance="key")
OPERATOR = Caller(name="olga", role="operator", entrance="key")
VIEWER = Caller(name="vic", role="viewer")
MATCH = Scorer(name="same", kind="match")
CASES = [
    DatasetCase({"name": "Ada"}, {"text": "Hello Ada"}),
    DatasetCase({"name": "Ben", "loud": True}, {"text": "HELLO"}),
]


@pytest.fixture
async def app() -> AsyncGenerator[Pointsman]:
    async with Pointsman(store="memory:", script=parse_script(SCRIPT)) as opened:
        for one in (EDITOR, OPERATOR):
            await opened.context[KEYS].make(one.name, one.role)
        await opened.acting_as(EDITOR).workflows.save(Workflow.parse(GREETER))
        yield opened


async def run_of(session: Session, cases: list[DatasetCase], *scorers: Scorer, **how: Any) -> RunDetail:
    await session.evaluations.save_dataset("names", "greeter", cases)
    execution = await session.evaluations.start("names", scorers=scorers, **how)
    await execution.settled()
    return await session.evaluations.run(execution.id)


async def test_each_case_is_run_and_scored(app: Pointsman) -> None:
    shorter = Scorer(name="short", kind="expression", text="len(output.text) <= len(case.expected.text)")
    tone = Scorer(name="tone", kind="judge", text="Is it {polite}?")
    found = await run_of(app.acting_as(EDITOR), CASES, MATCH, shorter, tone)
    assert found["status"] == "completed"
    assert [case["scores"] for case in found["cases"]] == [
        {"same": 1.0, "short": 1.0, "tone": 0.5},
        {"same": 0.0, "short": 1.0, "tone": 1.0},
    ]
    assert found["cases"][0]["reasons"] == {"tone": "It is short."}
    assert found["scores"] == {"same": 0.5, "short": 1.0, "tone": 0.75}


async def test_a_case_that_fails_scores_zero_and_stops_no_other(app: Pointsman) -> None:
    found = await run_of(app.acting_as(EDITOR), [DatasetCase({"name": "Nobody"}, {}), CASES[0]], MATCH)
    assert [case["error"] is None for case in found["cases"]] == [False, True]
    assert (found["failed"], found["scores"]) == (1, {"same": 0.5})


async def test_a_person_scores_in_the_inbox(app: Pointsman) -> None:
    session = app.acting_as(EDITOR)
    await session.evaluations.save_dataset("names", "greeter", CASES[:1])
    asked = Scorer(name="liked", kind="human", text="Do you like it?")
    execution = await session.evaluations.start("names", scorers=(asked,))
    await execution.settled()
    before = await session.evaluations.run(execution.id)
    assert (before["status"], before["cases"]) == ("waiting", [])
    [gate] = execution.gates
    await execution.answer(gate.id, "submit", {"score": 0.25, "reason": "Too short."}, by="ada")
    await execution.settled()
    after = await session.evaluations.run(execution.id)
    assert after["scores"] == {"liked": 0.25}
    assert after["cases"][0]["reasons"] == {"liked": "Too short."}


async def test_cases_are_child_executions_of_the_pinned_revision(app: Pointsman) -> None:
    session = app.acting_as(EDITOR)
    found = await run_of(session, CASES, MATCH, limits=RunLimits(parallel=1, cost_usd=1.0))
    related = await session.executions.relations(found["executionId"])
    assert [one["workflowId"] for one in related["children"]] == ["greeter", "greeter"]
    await session.workflows.save(Workflow.parse(GREETER.replace("Greet {name}", "Say hello to {name}")))
    again = await session.evaluations.start("names", scorers=(MATCH,))
    await again.settled()
    runs = (await session.evaluations.runs("names"))["runs"]
    assert [one["revision"] for one in runs] == [2, 1]


async def test_an_execution_becomes_a_case(app: Pointsman) -> None:
    session = app.acting_as(EDITOR)
    await session.evaluations.save_dataset("names", "greeter", [])
    execution = await session.executions.start("greeter", {"name": "Ada"})
    await execution.settled()
    assert (await session.evaluations.add_case("names", execution.id))["count"] == 1
    [case] = (await session.evaluations.dataset("names"))["cases"]
    assert case == {"input": {"name": "Ada"}, "expected": {"text": "Hello Ada"}, "execution": execution.id}


async def test_operators_run_the_scorers_of_a_dataset_only(app: Pointsman) -> None:
    await app.acting_as(EDITOR).evaluations.save_dataset("names", "greeter", CASES, scorers=(MATCH,))
    operator = app.acting_as(OPERATOR)
    execution = await operator.evaluations.start("names")
    await execution.settled()
    assert (await operator.evaluations.run(execution.id))["scores"] == {"same": 0.5}
    with pytest.raises(NotAllowed):
        await operator.evaluations.start("names", scorers=(Scorer(name="own", kind="judge", text="Anything"),))
    with pytest.raises(NotAllowed):
        await app.acting_as(VIEWER).evaluations.start("names")
    with pytest.raises(NotAllowed):
        await operator.evaluations.save_dataset("mine", "greeter", [])


async def test_datasets_of_a_private_workflow_are_hidden(app: Pointsman) -> None:
    editor = app.acting_as(EDITOR)
    await editor.evaluations.save_dataset("names", "greeter", CASES, scorers=(MATCH,))
    execution = await editor.evaluations.start("names")
    await execution.settled()
    await editor.sharing.share_workflow("greeter", "private")
    stranger = app.acting_as(Caller(name="eve", role="editor"))
    assert (await stranger.evaluations.datasets())["datasets"] == []
    assert (await stranger.evaluations.runs())["runs"] == []
    for refused in (stranger.evaluations.dataset("names"), stranger.evaluations.delete_dataset("names")):
        with pytest.raises(UnknownDataset):
            await refused
    with pytest.raises(UnknownEvaluation):
        await stranger.evaluations.run(execution.id)


@pytest.mark.parametrize(
    "scorer",
    [
        Scorer(name="Not a name", kind="match"),
        Scorer(name="empty", kind="expression"),
        Scorer(name="empty", kind="judge", text=" "),
    ],
)
async def test_an_unusable_scorer_is_refused(app: Pointsman, scorer: Scorer) -> None:
    with pytest.raises(ScorerInvalid):
        await app.acting_as(EDITOR).evaluations.save_dataset("names", "greeter", CASES, scorers=(scorer,))


def test_cases_are_read_from_csv_and_json() -> None:
    expected = [
        DatasetCase({"name": "Ada", "age": 3}, {"text": "Hi"}),
        DatasetCase({"name": "007", "age": 4}, {"text": "Ho"}),
    ]
    assert read_cases('name,age,expected.text\nAda,3,Hi\n"""007""",4,Ho\n', name="a.csv")[0] == expected[0]
    lines = (
        '{"name": "Ada", "age": 3, "expected.text": "Hi"}',
        "",
        '{"input": {"name": "007", "age": 4}, "expected": {"text": "Ho"}}',
    )
    assert read_cases("\n".join(lines)) == expected
    assert read_cases('[{"name": "Ada", "expected": "Hi"}]') == [DatasetCase({"name": "Ada"}, "Hi")]


@pytest.mark.parametrize(
    ("text", "name", "line"),
    [
        ('{"a": 1}\nnot json', "", "line 2"),
        ("a,b\n1\n", "x.csv", "line 2"),
        ('[{"expected": 1}]', "", "case 1"),
        ("[1]", "", "list"),
    ],
)
def test_cases_that_cannot_be_read_name_their_line(text: str, name: str, line: str) -> None:
    with pytest.raises(DatasetInvalid, match=line):
        read_cases(text, name=name)


@pytest.mark.parametrize(
    ("expected", "output", "good"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": {"b": [1]}}, {"a": {"b": [1], "c": 2}}, True),
        ({"a": 1}, {}, False),
        ([1, 2], [1], False),
        (1, 1.0, True),
        (True, 1, False),
        (None, None, True),
    ],
)
def test_an_output_fits_if_it_has_all_that_is_expected(expected: Any, output: Any, good: bool) -> None:
    assert fits(expected, output) is good
