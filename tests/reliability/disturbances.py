"""Simulated worlds with all disturbances at once: a crash at every row, rival drivers, people who never answer.

crash before every append   the decision is lost, the row was never written crash after every append    the row is
there, none of its commands was carried out rival                       another driver of the same execution appends
first: the append is refused and restarts
"""

from __future__ import annotations

from contextlib import suppress

from pointsman.engine.causes import cause_of
from pointsman.engine.commands import Execute
from pointsman.engine.decide.dispatch import decide
from pointsman.engine.decide.entry import outstanding
from pointsman.engine.events.waits import OutboxDelivered
from pointsman.engine.plan import Plan
from pointsman.engine.reports import CancelRequested, GateAnswered, Report, ResumeRequested, RetryRequested
from pointsman.engine.state import ExecutionState, GateState
from pointsman.engine.steps import Step
from pointsman.errors import CallerError
from pointsman.ports import Row
from pointsman.testing.graphs import INPUT, perform
from pointsman.testing.simulation import (
    ANSWERS,
    LawBroken,
    Simulation,
    SimulationResult,
    first_option,
    refolded,
    stored,
)

RIVAL_CHANCE = 0.15
FOLDED_ROWS = 4_000
"""Rows folded by the crashes of an execution of ninety rows."""


class DisturbedSimulation(Simulation):
    """A simulation with crashes before and after every append; sometimes a rival driver is faster."""

    def __init__(self, plan: Plan, seed: int, *, rivals: bool = False) -> None:
        super().__init__(plan, seed, work=perform, answer=self._perhaps)
        self._rivals = rivals
        self._lived: ExecutionState | None = None
        """State of the process that wrote the last row; it decides once more and crashes."""
        self._fell = -1
        """Number of rows at which it crashed."""
        self._folded = 0
        """Rows folded so far: every crash folds all rows again."""
        self.rows_of_rivals = 0

    def tell(self, report: Report) -> None:
        before = len(self.rows)
        if before > self._fell and self._may_fall():
            self._fell = before
            lived = self._lived
            with suppress(CallerError):
                decide(self.plan, self.state if lived is None else lived, report, self.now)
            if lived is None:
                self.crash()
            else:
                self.ask_again()  # Its rows are already folded.
            if isinstance(report, ANSWERS):
                return  # Its answer is requested again.
        elif self._rivals and self._happens(RIVAL_CHANCE) and self._rival_appends():
            self.crash()  # The append is refused because the number of its row is taken.
            if isinstance(report, ANSWERS):
                return
        super().tell(report)
        if len(self.rows) > before and self._may_fall():
            lived = self.state
            self.crash()
            self._lived = lived

    def crash(self) -> None:
        self._lived = None
        self._folded += len(self.rows)
        super().crash()

    def _may_fall(self) -> bool:
        """Crash at every row until the work is large, then at every eighth."""
        return self._folded < FOLDED_ROWS or len(self.rows) % 8 == 0

    def _rival_appends(self) -> bool:
        """Let a driver that read the same rows perform the outstanding commands first."""
        state = refolded(self.state.id, self.rows)
        owed = [command for command in outstanding(self.plan, state) if isinstance(command, Execute)]
        if not owed:
            return False
        report = self.work(self.random.choice(owed))
        decision = decide(self.plan, state, report, self.now)
        if not decision.events:
            raise LawBroken("an attempt that is outstanding was not waited for")
        self.rows.append(stored(Row(state.seq, state.at, decision.events, cause_of(report, decision.events))))
        self.rows_of_rivals += 1
        return True

    def _perhaps(self, step: Step, gate: GateState) -> GateAnswered | None:
        """Return an answer or none: some people never answer, and then the deadline of the gate passes, if it has
        one."""
        return None if self.seed % 5 == 0 and len(step.node) % 2 else first_option(step, gate)


def stormy(plan: Plan, seed: int, *, rivals: bool = False) -> SimulationResult:
    return DisturbedSimulation(plan, seed, rivals=rivals).run(INPUT)


def cancelled_at(plan: Plan, seed: int, rows: int) -> tuple[SimulationResult, int]:
    """Cancel after that many rows, then let all running work report.

    Also return how many later rows contain more than the execution of stop commands.
    """
    simulation = Simulation(plan, seed, work=perform)
    simulation.run_rows(INPUT, rows)
    late = [command for command in outstanding(plan, simulation.state) if isinstance(command, Execute)]
    if simulation.state.ended:
        return simulation.outcome, 0
    simulation.tell(CancelRequested(by="somebody"))
    until = len(simulation.rows)
    simulation.crash()
    for command in late:
        simulation.tell(perform(command))
    simulation.go_on()
    later = [row for row in simulation.rows[until:] if not all(isinstance(e, OutboxDelivered) for e in row.events)]
    return simulation.outcome, len(later)


def retried_or_resumed(plan: Plan, seed: int) -> SimulationResult:
    """Retry a failed execution and raise the limit of an interrupted one, at most twice."""
    simulation = Simulation(plan, seed, work=perform, chance_of_crash=0.1, chance_of_duplicate=0.2)
    simulation.run(INPUT)
    for turn in (1, 2):
        if simulation.state.status == "failed":
            simulation.tell(RetryRequested())
        elif simulation.state.status == "interrupted":
            simulation.tell(ResumeRequested(limits={"steps": 60.0 + 20 * turn}))
        else:
            break
        simulation.go_on()
    return simulation.outcome
