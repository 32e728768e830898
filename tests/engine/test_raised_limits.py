"""The values to which a limit that stopped an execution may be raised."""

from __future__ import annotations

import msgspec
import pytest

from pointsman.engine.decide.limits import RaisableLimit, offer
from tests.engine.test_limits import CYCLE, agents
from tests.engine.world import World, limits, started


def offered(world: World, *, most: float | None = None, later_s: float = 0.0) -> RaisableLimit | None:
    """Return the offer for the limit that interrupted it; `most`: the operator's maximum; `later_s`: the time since
    then."""
    state, plan = world.state, world.simulation.plan
    assert state.limits.interruption is not None
    caps = {} if most is None else {state.limits.interruption: most}
    plan = msgspec.structs.replace(plan, limits=msgspec.structs.replace(plan.limits, caps=caps))
    return offer(plan, state, state.limits.interruption, state.at + later_s)


def stopped_after_three_steps() -> World:
    world = started(CYCLE, config=limits(steps=3)).done("tool1").done("tool1")
    assert world.state.limits.interruption == "steps"
    return world


def test_the_offered_raise_equals_the_limit_and_suffices_to_continue() -> None:
    world = stopped_after_three_steps()
    assert offered(world) == RaisableLimit("steps", 3, 3.0, 6.0, None)
    assert world.resume(steps=6).done("tool1").status == "running"


@pytest.mark.parametrize(("most", "found"), [(5.0, 5.0), (100.0, 6.0), (3.0, None), (2.0, None)])
def test_the_offered_raise_does_not_exceed_the_operators_limit(most: float, found: float | None) -> None:
    offer = offered(stopped_after_three_steps(), most=most)
    assert offer is not None
    assert (offer.next, offer.most) == (found, most)


def test_the_offered_raise_for_a_stalled_agent_equals_its_attempts() -> None:
    world = agents(*["you do it"] * 20)
    assert offered(world) == RaisableLimit("no-progress", 3, 0.0, 6.0, None)
    assert world.resume(**{"no-progress": 6}).done("agent2", "you do it", next="one").status == "running"


def test_the_offered_raise_of_a_deadline_includes_the_time_of_the_interruption() -> None:
    world = started("start -> ask1", config=limits(deadline="60s")).ring()
    assert offered(world, later_s=600.0) == RaisableLimit("deadline", 60.0, 660.0, 720.0, None)
    assert world.later(600).resume(deadline=720).timers == [60.0]


def test_the_offered_raise_of_a_visit_limit_counts_visits() -> None:
    world = started(CYCLE, config=limits(visits=2)).done("tool1").done("tool1")
    assert offered(world) == RaisableLimit("visits", 2, 2.0, 4.0, None)
