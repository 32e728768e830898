"""External events: receivers, buffering, and duplicates."""

from __future__ import annotations

import pytest

from pointsman.engine.decide.dispatch import decide
from pointsman.engine.decide.waits import BUFFERED_EVENTS_MAX, TooManyBufferedEvents
from pointsman.engine.reports import EventReceived
from pointsman.values import Json
from tests.engine.world import World, started


def waiting_for(*names: str, match: str | None = None, begin: str = "tool1") -> World:
    """Return a world with a tool, and then a wait for each name in order."""
    config: dict[str, Json] = {} if match is None else {"match": match}
    nodes = {f"wait{n}": {"config": {"event": name, **config}} for n, name in enumerate(names, start=1)}
    chain = " -> ".join(["start", begin, *nodes, "tool2"])
    drawing = "; ".join(f"{a} -> {b}" for a, b in zip(chain.split(" -> "), chain.split(" -> ")[1:], strict=False))
    return started(drawing, nodes=nodes)


def sent(name: str, data: Json = None, *, key: str = "") -> EventReceived:
    return EventReceived(name=name, data=data, key=key, keeps=True)


def test_an_event_sent_before_its_wait_opens_is_buffered() -> None:
    world = waiting_for("paid").hear(sent("paid", 5))
    assert world.working == ["tool1"]
    assert world.done("tool1").working == ["tool2"]
    assert world.state.root.nodes["wait1"] is not None
    assert world.state.events.buffered == {}


def test_a_published_event_without_a_waiter_is_not_buffered() -> None:
    world = waiting_for("paid").hear(EventReceived(name="paid", data=5)).done("tool1")
    assert world.working == []
    assert world.signal("paid").working == ["tool2"]


def test_buffered_events_are_consumed_once_in_their_order() -> None:
    world = waiting_for("paid", "paid", "paid").hear(sent("paid", 1)).hear(sent("paid", 2)).done("tool1")
    assert world.working == [], "two of three waits are over"
    assert [event.name for event in world.state.events.buffered.values()] == []
    assert world.hear(sent("paid", 3)).working == ["tool2"]


def test_a_buffered_event_that_does_not_match_stays_for_another_wait() -> None:
    world = waiting_for("paid", match="event > 3").hear(sent("paid", 1)).hear(sent("paid", 9)).done("tool1")
    assert world.working == ["tool2"]
    assert [event.data for event in world.state.events.buffered.values()] == [1]


def test_a_match_that_fails_on_a_buffered_event_fails_the_wait() -> None:
    nodes = {"wait1": {"config": {"event": "paid", "match": "event + {}"}}}
    drawing = "start -> tool1; tool1 -> wait1; wait1 -error-> tool2; wait1 -> tool3"
    world = started(drawing, nodes=nodes).hear(sent("paid", 1)).done("tool1")
    assert world.working == ["tool2"]


def test_an_event_with_a_known_key_has_no_effect() -> None:
    world = waiting_for("paid", "paid").hear(sent("paid", 1, key="k"))
    seq = world.state.seq
    world.hear(sent("paid", 1, key="k"))
    assert world.state.seq == seq
    assert world.done("tool1").hear(sent("paid", 1, key="k")).working == []
    assert world.hear(sent("paid", 1, key="other")).working == ["tool2"]


def test_the_number_of_buffered_events_is_bounded() -> None:
    world = waiting_for("paid")
    for number in range(BUFFERED_EVENTS_MAX):
        world.hear(sent("paid", number))
    with pytest.raises(TooManyBufferedEvents):
        decide(world.simulation.plan, world.state, sent("paid", "one more"), 0.0)
    assert len(world.state.events.buffered) == BUFFERED_EVENTS_MAX
    assert world.done("tool1").working == ["tool2"]
    world.hear(sent("paid", "there is room again"))
    assert len(world.state.events.buffered) == BUFFERED_EVENTS_MAX


def test_an_event_for_an_ended_execution_has_no_effect() -> None:
    world = waiting_for("paid").done("tool1").signal("paid").done("tool2")
    assert world.state.ended
    assert decide(world.simulation.plan, world.state, sent("paid"), 0.0).events == ()
