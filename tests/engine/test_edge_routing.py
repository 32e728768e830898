"""Routing after a step: `all`, `first`, `label`; conditions; no matching edge; the reserved label END."""

from __future__ import annotations

import pytest

from pointsman.engine.events.steps import TokenEnded
from tests.engine.world import started

LABELLED = {"routing": "label"}


def test_mode_all_takes_every_edge_whose_condition_is_true() -> None:
    world = started("start -> tool1; tool1 -n > 1-> tool2; tool1 -n > 2-> tool3; tool1 -> tool4", input={"n": 2})
    assert world.done("tool1").working == ["tool2", "tool4"]


def test_mode_all_without_a_true_edge_ends_the_branch_and_records_it() -> None:
    world = started("start -> tool1; tool1 -n > 1-> tool2", input={"n": 1}).done("tool1")
    assert (world.status, world.output) == ("completed", "tool1")
    assert [(event.after.node, event.reason) for event in world.events(TokenEnded)] == [("tool1", "no-edge")]


def test_mode_first_takes_the_first_true_edge_in_document_order() -> None:
    nodes = {"tool1": {"routing": "first"}}
    drawing = "start -> tool1; tool1 -n > 5-> tool2; tool1 -n > 1-> tool3; tool1 -n > 0-> tool4"
    assert started(drawing, nodes=nodes, input={"n": 2}).done("tool1").working == ["tool3"]


@pytest.mark.parametrize("routing", ["all", "first"])
def test_a_default_edge_is_taken_only_when_no_other_is(routing: str) -> None:
    nodes = {"tool1": {"routing": routing}}
    drawing = "start -> tool1; tool1 -default-> tool2; tool1 -n == 1-> tool3"
    assert started(drawing, nodes=nodes, input={"n": 1}).done("tool1").working == ["tool3"]
    assert started(drawing, nodes=nodes, input={"n": 2}).done("tool1").working == ["tool2"]


def test_a_never_edge_is_never_taken() -> None:
    assert started("start -> tool1; tool1 -never-> tool2; tool1 -> tool3").done("tool1").working == ["tool3"]


@pytest.mark.parametrize(
    ("condition", "taken"),
    [
        ({"type": "equals", "field": "result.a", "value": 1}, True),
        ({"type": "equals", "field": "result.a", "value": 2}, False),
        ({"type": "contains", "field": "result.list", "value": "x"}, True),
        ({"type": "contains", "field": "result.text", "value": "ell"}, True),
        ({"type": "contains", "field": "result.list", "value": "y"}, False),
        ({"type": "exists", "field": "result.a"}, True),
        ({"type": "exists", "field": "result.b"}, False),
        ({"type": "always"}, True),
    ],
)
def test_conditions_read_the_result(condition: dict[str, object], taken: bool) -> None:
    world = started("tool1 -> tool2", edges={"tool1->tool2": {"condition": condition}})
    world.done("tool1", {"a": 1, "list": ["x"], "text": "hello"})
    assert world.working == (["tool2"] if taken else [])


@pytest.mark.requirement("S0-22", "S0-25", "S0-26")
def test_an_agent_takes_the_edge_with_its_label() -> None:
    world = started("start -> agent1; agent1 -#RC1-> agent2; agent1 -#RC2-> agent3", nodes={"agent1": LABELLED})
    assert world.done("agent1", "to two", next="RC2").working == ["agent3"]


@pytest.mark.requirement("T0-5")
def test_labels_match_exactly_else_uniquely_ignoring_case() -> None:
    drawing = "start -> agent1; agent1 -#RC2-> agent2; agent1 -#rc2-> agent3; agent1 -#Done-> agent4"
    exact = started(drawing, nodes={"agent1": LABELLED}).done("agent1", next="rc2")
    assert (exact.working, exact.warnings) == (["agent3"], [])
    folded = started(drawing, nodes={"agent1": LABELLED}).done("agent1", next="DONE")
    assert (folded.working, folded.warnings) == (["agent4"], ["label-case"])
    ambiguous = started(drawing, nodes={"agent1": LABELLED}).done("agent1", next="Rc2")
    assert ambiguous.working == ["agent1"], "two labels are alike: it is asked again"


@pytest.mark.requirement("S0-28", "T0-5")
def test_an_agent_without_a_valid_label_is_asked_again_at_most_twice_with_the_valid_ones() -> None:
    world = started("start -> agent1; agent1 -#A-> agent2; agent1 -#B-> agent3", nodes={"agent1": LABELLED})
    world.done("agent1", next="C")
    assert world.working == ["agent1"]
    assert "Legal values: A, B" in str(world.asked("agent1")["correction"])
    world.done("agent1", next="D").done("agent1", next="E")
    assert (world.status, world.failure.code) == ("failed", "no-route")
    assert world.failure.details == {"legal": ["A", "B"], "left": ["E"]}


def test_a_corrected_label_is_accepted() -> None:
    world = started("start -> agent1; agent1 -#A-> agent2; agent1 -#B-> agent3", nodes={"agent1": LABELLED})
    assert world.done("agent1", next="C").done("agent1", next="B").working == ["agent3"]


@pytest.mark.requirement("T0-13")
def test_without_a_matching_label_the_one_plain_edge_is_taken() -> None:
    world = started("start -> agent1; agent1 -#A-> agent2; agent1 -> agent3", nodes={"agent1": LABELLED})
    assert world.done("agent1").working == ["agent3"]


def test_an_agent_without_edges_ends_its_branch() -> None:
    world = started("start -> agent1", nodes={"agent1": LABELLED}).done("agent1", "bye", next="anywhere")
    assert (world.status, world.output) == ("completed", "bye")


@pytest.mark.requirement("S0-29", "T0-14")
def test_the_label_end_ends_the_execution_by_its_edge() -> None:
    drawing = "start -> agent1; agent1 -#END-> END; agent1 -#go-> agent2"
    world = started(drawing, nodes={"agent1": LABELLED}).done("agent1", "all said", next="END")
    assert (world.status, world.output) == ("completed", "all said")
    talked = started(drawing, nodes={"agent1": LABELLED}).done("agent1", "the END is near", next="go")
    assert talked.working == ["agent2"], "only the label counts, never the text"


@pytest.mark.requirement("S0-30", "S0-35")
def test_end_without_an_end_edge_is_no_route_unless_it_is_a_conversation() -> None:
    drawing = "start -> agent1; agent1 -#go-> agent2"
    assert started(drawing, nodes={"agent1": LABELLED}).done("agent1", next="END").working == ["agent1"]
    talk = started(drawing, nodes={"agent1": LABELLED}, config={"conversational": True})
    talk.done("agent1", "bye", next="END")
    assert (talk.status, talk.state.outcome.closes_session) == ("completed", True)


def test_in_a_conversation_an_agent_without_label_ends_its_turn() -> None:
    talk = started("start -> agent1; agent1 -#go-> agent2", nodes={"agent1": LABELLED}, config={"conversational": True})
    talk.done("agent1", "what else?")
    assert (talk.status, talk.output, talk.state.outcome.closes_session) == ("completed", "what else?", False)


def test_next_belongs_to_the_step_and_is_read_as_state_next_on_its_own_edges_only() -> None:
    drawing = """start -> agent1
        agent1 -state.next == 'a'-> tool2
        tool2 -state.next == 'a'-> tool3
        tool2 -default-> tool4"""
    world = started(drawing).done("agent1", next="a")
    assert world.working == ["tool2"]
    assert world.done("tool2").working == ["tool4"]
    assert "next" not in world.data


def test_a_decision_emits_a_label_and_passes_the_value_on() -> None:
    nodes = {"dec1": {"config": {"expression": "result.score >= 80"}}}
    drawing = "start -> tool1; tool1 -> dec1; dec1 -#true-> tool2; dec1 -#false-> tool3"
    world = started(drawing, nodes=nodes).done("tool1", {"score": 90})
    assert (world.working, world.state.root.nodes["dec1"]) == (["tool2"], {"branch": "true"})


def test_a_decision_takes_its_first_true_case_or_its_default() -> None:
    cases = {"cases": [{"when": "n > 5", "label": "big"}, {"when": "n > 1", "label": "some"}], "default": "none"}
    drawing = "start -> dec1; dec1 -#big-> tool1; dec1 -#some-> tool2; dec1 -#none-> tool3"
    found = [started(drawing, nodes={"dec1": {"config": cases}}, input={"n": n}).working for n in (9, 3, 0)]
    assert found == [["tool1"], ["tool2"], ["tool3"]]


def test_a_decision_without_cases_takes_its_first_true_edge() -> None:
    drawing = "start -> dec1; dec1 -n > 5-> tool1; dec1 -n > 1-> tool2; dec1 -default-> tool3"
    assert [started(drawing, input={"n": n}).working for n in (9, 3, 0)] == [["tool1"], ["tool2"], ["tool3"]]


def test_a_decision_without_a_true_edge_fails_with_no_route() -> None:
    world = started("start -> dec1; dec1 -#yes-> tool1", nodes={"dec1": {"config": {"expression": "'no'"}}})
    assert (world.status, world.failure.code) == ("failed", "no-route")


@pytest.mark.requirement("S1-49")
def test_a_model_answers_a_question_on_an_edge_and_the_answer_is_recorded() -> None:
    asks = {"condition": {"type": "llm", "prompt": "Is {{result}} good?"}}
    world = started("tool1 -> tool2; tool1 -default-> tool3", edges={"tool1->tool2": asks}).done("tool1", "it")
    questions = world.asked("tool1?")["questions"]
    assert questions == [{"edge": "e1", "prompt": "Is it good?", "model": None}]
    world.done("tool1?", {"e1": {"answer": True, "reason": "it is"}})
    assert world.working == ["tool2"]
    assert world.state.root.nodes["tool1?"] == {"e1": {"answer": True, "reason": "it is"}}


def test_a_condition_that_cannot_be_evaluated_fails_the_step_and_an_error_edge_catches_it() -> None:
    world = started("start -> tool1; tool1 -result + 1 > 2-> tool2; tool1 -error-> tool3").done("tool1", {"a": 1})
    assert world.working == ["tool3"]


@pytest.mark.requirement("S0-27")
@pytest.mark.parametrize(
    "drawing",
    [
        "start -> tool1; tool1 -> tool2; tool2 -> tool3",
        "start -> tool1; tool1 -> tool2, tool3",
        "start -> tool1; tool1 -> tool2; tool2 -n < 0-> tool1; tool2 -default-> tool3",
    ],
)
def test_pipelines_trees_and_meshes_run(drawing: str) -> None:
    world = started(drawing, input={"n": 1})
    assert world.rest().status == "completed"
    assert sorted(world.path) == ["start", "tool1", "tool2", "tool3"]
