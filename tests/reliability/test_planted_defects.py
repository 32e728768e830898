"""Every row of the scorecard can fail: a defect of the kind it looks for makes it red."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from pointsman.engine import decide
from pointsman.engine.commands import Command
from pointsman.engine.desk import Desk
from pointsman.engine.plan import Plan
from pointsman.engine.reports import WorkDone
from pointsman.engine.state import ExecutionState, StepState
from pointsman.journal.sqlite import connection, writer
from pointsman.testing import simulation as world
from tests.reliability import power_cut, simulation
from tests.reliability.killing import Siege
from tests.reliability.workload import EFFECT_S

AMID_THE_AGENT = 6
"""The chain of four, and two of the agent's three."""


def nothing_outstanding(plan: Plan, state: ExecutionState) -> list[Command]:
    return []


def any_attempt(desk: Desk, report: WorkDone) -> StepState | None:
    return desk.state.steps.get(report.step)


def test_the_simulation_sees_a_crash_that_forgets_what_was_outstanding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "outstanding", nothing_outstanding)
    assert any("seed 1" in line for line in simulation.examine(1, 1).violations)


def test_the_simulation_sees_a_step_that_is_believed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decide, "_open", any_attempt)
    assert not simulation.examine(4, 1).holds


@pytest.mark.parametrize("level", ["NORMAL", "OFF"])
def test_a_power_cut_shows_commits_that_do_not_reach_the_disk(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = connection.connect_writer

    def lax(path: Path) -> sqlite3.Connection:
        made = real(path)
        made.execute(f"PRAGMA synchronous = {level}")
        return made

    monkeypatch.setattr(writer, "connect_writer", lax)
    assert not power_cut.examine(10, 1).holds


@pytest.mark.parametrize(
    ("defect", "noticed"),
    [("writes no rows", "acknowledged and lost"), ("asks for no recorded effects", "recorded, and paid again")],
)
async def test_kills_show_what_is_lost_and_what_is_repeated(defect: str, noticed: str, tmp_path: Path) -> None:
    victim = ("tests.reliability.defective_victim", defect)
    siege = Siege(f"sqlite:///{tmp_path}/store", tmp_path / "world", "sequential", 2, victim=victim)
    siege.kill_in(AMID_THE_AGENT, EFFECT_S["sequential"] / 2)
    await siege.look()
    await siege.end()
    assert any(noticed in line for line in siege.violations), siege.violations
