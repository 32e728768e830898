"""Bugs planted in the engine, beyond those of `tests/engine/test_planted_bugs.py`: the simulation finds each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pytest

from pointsman.engine.commands import AnnounceGate, Command, StartChild
from pointsman.engine.decide import dispatch, enter_node
from pointsman.engine.decide.entry import outstanding
from pointsman.engine.fold import lifecycle
from pointsman.engine.plan import Plan
from pointsman.engine.state import ExecutionState
from pointsman.testing import simulation as worlds
from tests.reliability.simulation import Tally, examine_seed

SEEDS: Final = range(1, 101)


def without(kind: type[Command]) -> Callable[[Plan, ExecutionState], list[Command]]:
    def some(plan: Plan, state: ExecutionState) -> list[Command]:
        return [command for command in outstanding(plan, state) if not isinstance(command, kind)]

    return some


def recovers_nothing(state: ExecutionState) -> int:
    state.held_arrivals.clear()
    return 0


def never_waits(node: str, before: dict[str, set[str] | None]) -> bool:
    return before[node] == set()


def counts_by_two(state: ExecutionState, seq: int, at: float) -> None:
    state.seq, state.at, state.row.outputs, state.row.failures = seq + 1, at, {}, {}


BUGS: Final[dict[str, tuple[object, str, object]]] = {
    "a crash forgets gates": (worlds, "outstanding", without(AnnounceGate)),
    "a crash forgets sub-workflows": (worlds, "outstanding", without(StartChild)),
    "what was held is forgotten": (lifecycle, "resume_held", recovers_nothing),
    "nodes that wait for each other wait for ever": (enter_node, "_is_ready", never_waits),
    "rows are numbered by two": (dispatch, "begin_decision", counts_by_two),
}


def is_noticed(seed: int) -> bool:
    try:
        examine_seed(seed, Tally())
    except Exception:
        return True  # A bug may cause any violation.
    return False


@pytest.fixture(autouse=True)
def short() -> Iterator[None]:
    """Lower the limits, so that an endless loop is found sooner."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worlds, "DECISIONS_MAX", 3_000)
        yield


@pytest.mark.parametrize("name", BUGS)
def test_the_simulation_finds_a_bug_within_a_hundred_seeds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, attribute, bug = BUGS[name]
    monkeypatch.setattr(place, attribute, bug)
    assert any(is_noticed(seed) for seed in SEEDS)
