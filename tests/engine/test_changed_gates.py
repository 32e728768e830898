"""Open gates whose data change: they ask again, and an answer counts only for the data that the person saw."""

from __future__ import annotations

from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointsman.engine.actions import GateApprovers, ProposedCall
from pointsman.engine.decide.dispatch import decide
from pointsman.engine.decide.human_tasks import GateChangedMeanwhile, GateClosedAlready
from pointsman.engine.digests import is_same
from pointsman.engine.events.waits import GateChanged, GateClosed, GateOpened
from pointsman.engine.reports import (
    ForkRequested,
    GateAnswered,
    MigrationRequested,
    Report,
    SteerRequested,
    ToolCallsProposed,
)
from pointsman.engine.state import GateState
from pointsman.engine.steps import Branch, DataEdit, Step
from pointsman.values import Json
from tests.engine.replays import forked
from tests.engine.world import More, World, plan_of, started

REAL_TIME: Final = {"humanInLoop": "real_time"}
LINE: Final = "start -> ask1; ask1 -#approve-> tool1; ask1 -#edit-> tool1"
SHOWS: Final = {"actions": ["approve", "edit", "reject"], "message": "Send {letter}?", "show": ["letter"]}


def human(**config: object) -> dict[str, object]:
    return {"type": "human", "config": {**SHOWS, **config}}


def asking(drawing: str = LINE, nodes: More | None = None, **config: object) -> World:
    """Return a world with a gate that shows a letter, before a tool that sends it."""
    sends = {"config": {"tool": "send", "parameters": {"letter": "{{letter}}"}}}
    return started(
        drawing,
        nodes={"ask1": human(**config), "tool1": sends, **(nodes or {})},
        input={"letter": "old"},
        config=REAL_TIME,
    )


def gate_at(world: World, name: str = "ask1") -> GateState:
    step, _ = world.at(name)
    gate = world.state.steps[step].gate
    assert gate is not None
    return gate


def write(world: World, **values: Json) -> World:
    world.tell(SteerRequested(edits=tuple(DataEdit((name,), value) for name, value in values.items()), by="eve"))
    return world


def answer(world: World, digest: str, action: str = "approve", data: Json = None, by: str = "") -> None:
    """Answer as a caller; raises the refusal."""
    step, _ = world.at("ask1")
    report = GateAnswered(step=step, action=action, data=data, by=by, digest=digest)
    decide(world.simulation.plan, world.state, report, world.now)


def test_a_gate_opens_again_when_a_person_changes_its_data() -> None:
    world = asking()
    before = gate_at(world).digest
    write(world, letter="new").crash()
    gate = gate_at(world)
    assert (gate.message, gate.displayed, gate.opened) == ("Send new?", {"letter": "new"}, world.state.at)
    assert gate.digest != before
    assert [event.digest for event in world.events(GateChanged)] == [gate.digest]
    with pytest.raises(GateChangedMeanwhile, match="ask1"):
        answer(world, before)
    assert world.gates == ["ask1"]
    answer(world, gate.digest)
    assert world.events(GateChanged)


def test_an_answer_records_the_contents_of_the_gate_with_or_without_a_digest() -> None:
    world = asking()
    digest = gate_at(world).digest
    world.answer("ask1", "approve")
    assert [event.digest for event in world.events(GateClosed)] == [digest]
    assert [event.digest for event in world.events(GateOpened)] == [digest]


def test_a_fork_that_changes_the_data_of_a_gate_opens_the_gate_with_the_new_data() -> None:
    world = asking()
    before = gate_at(world).digest
    rows = tuple(world.simulation.rows)
    copy = World(world.simulation.plan)
    report = ForkRequested(origin="simulated", row=len(rows), edits=(DataEdit(("letter",), "new"),))
    copy.simulation = forked(world.simulation.plan, rows, report, seed=2)
    assert gate_at(copy).displayed == {"letter": "new"}
    with pytest.raises(GateChangedMeanwhile):
        answer(copy, before)
    assert copy.answer("ask1", "approve").asked("tool1")["parameters"] == {"letter": "new"}
    assert gate_at(world).digest == before


def test_a_change_of_an_editable_field_that_is_not_shown_opens_the_gate_again() -> None:
    world = asking(show=[], message="Send it?", editable=["letter"])
    before = gate_at(world)
    assert before.values == ("old",)
    digest = before.digest
    write(world, letter="new").crash()
    assert (gate_at(world).values, gate_at(world).digest != digest) == (("new",), True)


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0, False), ([1], [True]), ({"a": 0}, {"a": False})])
def test_values_that_differ_only_as_json_count_as_a_change(one: Json, other: Json) -> None:
    world = write(asking(message="Send it?"), letter=one)
    digest = gate_at(world).digest
    assert gate_at(write(world, letter=other)).digest != digest


def test_a_write_to_an_unrelated_field_does_not_open_the_gate_again() -> None:
    world = asking()
    digest = gate_at(world).digest
    write(world, other="x", letter="old")
    assert (gate_at(world).digest, world.events(GateChanged)) == (digest, [])


def test_a_concurrent_write_to_an_editable_field_opens_the_gate_again() -> None:
    drawing = f"{LINE}; start -> wait1; wait1 -> tool9"
    nodes = {"wait1": {"type": "wait", "config": {"event": "e"}, "outputs": {"letter": "result"}}, "tool9": {}}
    world = asking(drawing, nodes, message="Send it?", show=[], editable=["letter"])
    digest = gate_at(world).digest
    world.signal("e", "new").crash()
    assert gate_at(world).values == ("new",)
    with pytest.raises(GateChangedMeanwhile):
        answer(world, digest)


def test_a_concurrent_write_to_a_field_that_the_gate_reads_is_refused() -> None:
    drawing = f"{LINE}; start -> wait1; wait1 -> tool9"
    nodes = {"wait1": {"type": "wait", "config": {"event": "e"}, "outputs": {"letter": "result"}}, "tool9": {}}
    world = asking(drawing, nodes).signal("e", "new")
    assert (world.failure.code, world.data) == ("read-race", {"letter": "old"})


@pytest.mark.parametrize("timer", [True, False])
def test_a_write_after_a_timer_or_an_event_opens_the_gate_again(timer: bool) -> None:
    drawing = f"{LINE}; start -> wait1; wait1 -> tool9"
    waits = {"duration": "5s"} if timer else {"event": "e"}
    world = asking(drawing, {"wait1": {"type": "wait", "config": waits}}, message="Send it?", show=["nodes.wait1"])
    before = gate_at(world).digest
    world = world.ring() if timer else world.signal("e", "new")
    assert gate_at(world).digest != before


def test_an_edit_at_one_gate_opens_another_gate_with_the_same_editable_field_again() -> None:
    drawing = f"{LINE}; start -> ask2; ask2 -#edit-> tool2"
    world = asking(drawing, {"ask2": human(editable=["letter"], show=[])}, message="?", show=[], editable=["letter"])
    digest = gate_at(world).digest
    world.answer("ask2", "edit", {"letter": "new"})
    assert gate_at(world).values == ("new",)
    with pytest.raises(GateChangedMeanwhile):
        answer(world, digest)


def test_writes_of_one_branch_do_not_affect_gates_of_another() -> None:
    drawing = "start -> fork1; fork1 -> ask1; fork1 -> tool2; ask1 -> join1; tool2 -> join1"
    nodes = {
        "fork1": {"type": "parallel"},
        "join1": {"type": "join"},
        "tool2": {"outputs": {"letter": "result"}},
    }
    world = asking(drawing, nodes)
    step = next(iter(world.state.row.changed_gates or world.simulation.asked.gates))
    gate = world.state.steps[step].gate
    assert gate is not None
    digest = gate.digest
    world.done(next(name for name in world.working if "tool2" in name), "new")
    assert (world.state.steps[step].gate, gate.digest) == (gate, digest)


def test_writes_of_a_join_open_a_gate_outside_the_parallel_again() -> None:
    drawing = f"{LINE}; start -> fork1; fork1 -> tool2; fork1 -> tool3; tool2 -> join1; tool3 -> join1"
    nodes = {
        "fork1": {"type": "parallel"},
        "join1": {"type": "join"},
        "tool2": {"outputs": {"news": "result"}},
    }
    world = asking(drawing, nodes, show=["letter", "nodes"], message="Send it?")
    digest = gate_at(world).digest
    for name in list(world.working):
        world.done(name, "x")
    assert gate_at(world).digest != digest


def test_votes_for_earlier_contents_of_a_gate_do_not_count_for_the_present_ones() -> None:
    world = asking(approvers={"users": ["ada", "ben"], "quorum": 2})
    step, _ = world.at("ask1")
    world.tell(GateAnswered(step=step, action="approve", by="ada"))
    assert [*gate_at(world).votes] == ["ada"]
    write(world, letter="new").crash()
    assert gate_at(world).votes == {}
    world.tell(GateAnswered(step=step, action="approve", by="ben"))
    assert world.gates == ["ask1"]
    world.answer("ask1", "approve", by="ada")
    assert world.asked("tool1")["parameters"] == {"letter": "new"}


def test_a_gate_that_can_no_longer_be_shown_fails_like_one_that_cannot_open() -> None:
    world = asking(message="Send it?", show=["letter + 'x'"])
    write(world, letter="new")
    assert gate_at(world).displayed == {"letter + 'x'": "newx"}
    write(world, letter={"a": 1})
    assert (world.status, world.state.steps) == ("failed", {})


def test_values_of_the_engine_in_a_message_do_not_open_the_gate_again() -> None:
    drawing = f"{LINE}; start -> tool2; tool2 -> tool3"
    world = asking(drawing, message="Step {_currentStep}, visit {_currentNodeIteration}: {letter}?", show=[])
    before = gate_at(world).message
    world.done("tool2").done("tool3")
    assert (gate_at(world).message, world.events(GateChanged)) == (before, [])
    write(world, letter="new")
    assert gate_at(world).message == before.replace("old", "new")


def test_a_migration_opens_a_gate_again_when_its_definition_differs() -> None:
    world = asking()
    digest = gate_at(world).digest
    form = {"type": "object", "properties": {"why": {"type": "string"}}}
    config = {"options": [{"value": "send"}, {"value": "drop"}], "message": "Now?", "form": form}
    plan = plan_of(
        "start -> ask1; ask1 -#send-> tool1",
        nodes={"ask1": {"type": "human", "config": {**config, "approvers": {"groups": ["finance"]}}}},
        config=REAL_TIME,
    )
    decide(plan, world.state, MigrationRequested(definition="d2"), world.now)
    gate = gate_at(world)
    assert (gate.message, [one["value"] for one in gate.options], gate.form) == ("Now?", ["send", "drop"], form)
    assert gate.approvers == GateApprovers(groups=("finance",))
    assert gate.digest != digest


def test_a_migration_with_the_same_gate_does_not_open_it_again() -> None:
    world = asking()
    digest = gate_at(world).digest
    decision = decide(world.simulation.plan, world.state, MigrationRequested(definition="d2"), world.now)
    assert gate_at(world).digest == digest
    assert not any(isinstance(event, GateChanged) for event in decision.events)


def test_a_migration_opens_an_approval_before_a_step_again_when_the_step_differs() -> None:
    def plan(tool: str, to: str):
        work = {"config": {"tool": tool, "parameters": {"to": to}}, "requiresApproval": True}
        return plan_of("start -> tool1", nodes={"tool1": work})

    for tool, to in (("send", "ben"), ("send_all", "ada")):
        world = World(plan("send", "ada")).begin()
        digest = gate_at(world, "tool1").digest
        same = decide(plan("send", "ada"), world.state, MigrationRequested(definition="d1"), world.now)
        assert not any(isinstance(event, GateChanged) for event in same.events)
        decide(plan(tool, to), world.state, MigrationRequested(definition="d2"), world.now)
        gate = gate_at(world, "tool1")
        assert gate.digest != digest
        step, _ = world.at("tool1")
        assert gate.displayed == world.state.steps[step].input
        assert isinstance(gate.displayed, dict)
        assert gate.displayed["parameters"] == {"to": to}


def test_a_gate_in_an_older_journal_gets_a_digest_when_folded() -> None:
    world = asking(editable=["letter"])
    digest = gate_at(world).digest
    rows = world.simulation.rows
    for at, row in enumerate(rows):
        events = [msgspec.structs.replace(e, digest="") if isinstance(e, GateOpened) else e for e in row.events]
        rows[at] = msgspec.structs.replace(row, events=tuple(events))
    world.crash()
    assert gate_at(world).digest == digest


LETTERS: Final = st.sampled_from(["a", "b", 1, True, None, {"to": "ben"}])
DEEDS: Final = st.lists(
    st.one_of(
        st.tuples(st.just("write"), LETTERS),
        st.tuples(st.just("write beside"), LETTERS),
        st.tuples(st.just("look"), st.none()),
        st.tuples(st.sampled_from(["answer", "vote", "edit"]), LETTERS),
        st.tuples(st.just("event"), LETTERS),
        st.tuples(st.just("crash"), st.none()),
    ),
    max_size=12,
)


@given(DEEDS, st.sampled_from([[], ["letter"], ["nodes"]]))
def test_an_approval_releases_exactly_the_shown_contents(deeds: list[tuple[str, Json]], show: list[str]) -> None:
    """The law: for any order of writes and answers, an answer releases exactly the data whose digest it carries."""
    drawing = f"{LINE}; start -> wait1; wait1 -> wait2; wait2 -> wait1"
    taken = {"outputs": {"letter": "result"}}
    nodes = {f"wait{n}": {"type": "wait", "config": {"event": "e"}, **taken} for n in (1, 2)}
    world = asking(
        drawing, nodes, message="?", show=show, editable=["letter"], approvers={"users": ["ada", "ben"], "quorum": 2}
    )
    seen: dict[str, tuple[str, Json]] = {}
    for what, value in deeds:
        if world.gates != ["ask1"]:
            break
        gate = gate_at(world)
        match what:
            case "look":
                seen["ada"] = seen["ben"] = gate.digest, world.data["letter"]
            case "answer" | "vote" | "edit" if seen:
                by = "ada" if what == "vote" else "ben"
                step, _ = world.at("ask1")
                digest, letter = seen[by]
                data = {"letter": value} if what == "edit" else None
                report = GateAnswered(
                    step=step, action="edit" if what == "edit" else "approve", data=data, by=by, digest=digest
                )
                must_hold(world, report, digest, letter)
            case "write":
                write(world, letter=value)
            case "write beside":
                write(world, other=value)
            case "event":
                world.signal("e", value)
            case "crash":
                world.crash()
            case _:
                pass
        if world.gates == ["ask1"]:
            now = gate_at(world)
            if show == ["letter"]:
                assert is_same(now.displayed, {"letter": world.data["letter"]})
            assert is_same([*now.values], [world.data["letter"]])


def must_hold(world: World, report: Report, digest: str, letter: Json) -> None:
    """Report to the world; if this closed the gate, the letter is the one that the person saw."""
    rows = len(world.simulation.rows)
    world.tell(report)
    closed = [e for row in world.simulation.rows[rows:] for e in row.events if isinstance(e, GateClosed)]
    for event in closed:
        assert event.digest == digest
        before = event.changes[0].before if event.changes else world.data["letter"]
        assert is_same(before, letter)


def test_an_answer_to_a_closed_gate_is_refused_as_closed_with_any_digest() -> None:
    world = asking()
    step, _ = world.at("ask1")
    digest = gate_at(world).digest
    world.answer("ask1", "approve")
    with pytest.raises(GateClosedAlready):
        decide(world.simulation.plan, world.state, GateAnswered(step=step, action="approve", digest=digest), world.now)


def test_a_gate_in_a_branch_opens_again_when_the_data_of_its_branch_change() -> None:
    drawing = "start -> fork1; fork1 -> ask1; ask1 -> join1"
    nodes = {"fork1": {"type": "parallel", "config": {"items": "['x', 'y']"}}, "join1": {"type": "join"}}
    world = asking(drawing, nodes)
    branch = (Branch("fork1", 1, 0),)
    world.tell(SteerRequested(edits=(DataEdit(("letter",), "new", branch),)))
    shown = {step.scope: at.gate.displayed for step, at in world.state.steps.items() if at.gate is not None}
    assert shown == {branch: {"letter": "new"}, (Branch("fork1", 1, 1),): {"letter": "old"}}


def proposed(to: str) -> ToolCallsProposed:
    call = ProposedCall(number=2, name="send", arguments={"to": to})
    return ToolCallsProposed(step=Step("tool1"), attempt=1, calls=(call,))


def test_an_approval_of_a_tool_call_covers_exactly_that_call() -> None:
    world = started("start -> tool1")
    world.simulation.asked.work.clear()
    world.tell(proposed("ada"))
    assert gate_at(world, "tool1").displayed == {"2": {"tool": "send", "arguments": {"to": "ada"}}}
    world.answer("tool1", "approve")
    world.simulation.asked.work.clear()
    assert not decide(world.simulation.plan, world.state, proposed("ada"), world.now).events
    world.tell(proposed("ben"))
    assert gate_at(world, "tool1").displayed == {"2": {"tool": "send", "arguments": {"to": "ben"}}}
    world.answer("tool1", "reject")
    (verdict,) = (world.state.steps[Step("tool1")].verdicts or {}).values()
    assert not verdict.approved


def test_a_vote_sent_twice_does_not_count_for_changed_contents() -> None:
    world = asking(approvers={"users": ["ada", "ben"], "quorum": 2})
    step, _ = world.at("ask1")
    vote = GateAnswered(step=step, action="approve", by="ada", key="k1")
    world.tell(vote)
    assert gate_at(world).votes.keys() == {"ada"}
    write(world, letter="new")
    world.tell(vote)
    assert (gate_at(world).message, gate_at(world).votes) == ("Send new?", {})
