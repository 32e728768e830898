"""Simulated executions with people: they vote, delegate, do not answer, steer, migrate and fork; and budgets run out.

The outcome depends on the time of each action. Some laws always hold: the execution ends, every step settles once, and
a replay of the journal gives the same decisions.
"""

from __future__ import annotations

from functools import lru_cache
from random import Random
from typing import Final, cast

from msgspec.structs import replace

from pointsman.engine.commands import Execute
from pointsman.engine.decide.human_tasks import has_right
from pointsman.engine.plan import Plan
from pointsman.engine.reports import (
    AdmissionGranted,
    ChildUsageReported,
    DelegationRequested,
    ForkRequested,
    GateAnswered,
    MigrationRequested,
    PauseRequested,
    Report,
    ResumeRequested,
    Start,
    SteerRequested,
    ToolCallsProposed,
    Usage,
    WorkDone,
    WorkFailed,
)
from pointsman.engine.state import GateState
from pointsman.engine.steps import DataEdit, Step
from pointsman.testing.graphs import INPUT, perform, random_workflow
from pointsman.testing.simulation import Simulation, SimulationResult, first_option, refolded
from pointsman.values import JsonObject
from tests.engine.laws import compiled

PEOPLE: Final = ("ada", "ben", "cleo", "boss", "dora")
HANDS_MAX: Final = 5
CRASH_CHANCE: Final = 0.15
HAND_CHANCE: Final = 0.25
RESUMES_MAX: Final = 6
PRICE: Final = Usage(tool_calls=1, cost_usd=0.01)


@lru_cache(maxsize=256)
def plan_with_people(seed: int) -> Plan | None:
    """Return a plan with people; None for the few random graphs that are refused."""
    return compiled(workflow_with_people(seed))


def workflow_with_people(seed: int) -> JsonObject:
    """Return a workflow with approvers and escalations at gates, budgets, rounds that may fail; every third has
    compensation."""
    document, random = random_workflow(seed, 5, unruly=True, undone=seed % 3 == 0), Random(seed)
    for node in cast("list[JsonObject]", document["nodes"]):
        config = cast("JsonObject", node["config"])
        if node["type"] == "human":
            config["approvers"] = {"users": ["ada", "ben", "cleo"], "quorum": random.choice([1, 2])}
            config |= {"timeout": "5s", "onTimeout": "no", "editable": ["noted"]}
            config["escalation"] = [{"approvers": {"users": ["boss"]}, "timeout": "3s"}]
    config = cast("JsonObject", document["config"])
    config["humanInLoop"] = "real_time"
    if random.random() < 0.2:
        _failing_rounds(document)
    if random.random() < 0.4:
        calls = random.randint(3, 12)
        cast("JsonObject", config["limits"]).update(random.choice([{"toolCalls": calls}, {"costUsd": calls / 100}]))
        config["budget"] = {"policy": random.choice(["stop", "pause", "warn"]), "warnAt": 0.5}
    return document


def _failing_rounds(document: JsonObject) -> None:
    """Add a parallel loop in which every round fails."""
    nodes, edges = cast("list[JsonObject]", document["nodes"]), cast("list[JsonObject]", document["edges"])
    nodes.append({"id": "rounds", "type": "loop", "config": {"over": "input.items", "onRoundError": "skip"}})
    nodes.append({"id": "bad_round", "type": "tool", "config": {"tool": "look_up"}})
    edges.append({"source": str(nodes[0]["id"]), "target": "rounds"})
    edges.append({"source": "rounds", "target": "bad_round", "mark": "body"})
    edges.append({"source": "bad_round", "target": "rounds"})


class HumanSimulation(Simulation):
    """A simulation in which people act at times before a report, with crashes at any row."""

    def __init__(self, plan: Plan, seed: int) -> None:
        super().__init__(plan, seed, work=paid, answer=self._vote, chance_of_duplicate=0.2, checked=True)
        self.chance_of_crash = CRASH_CHANCE
        self._hands = 0
        self._begun: list[Report] = []

    def begin_in_line(self) -> None:
        """Queue the execution until a concurrency limit admits it."""
        self.tell(Start(input=INPUT, seed=self.seed, queued=True))
        self.tell(AdmissionGranted())

    def go_on_until(self, rows: int) -> None:
        while len(self.rows) < rows and (report := self._next()) is not None:
            self.tell(report)

    def _next(self) -> Report | None:
        if not self._begun and self.rows and self._hands < HANDS_MAX and self._happens(HAND_CHANCE):
            self._hands += 1
            self._begun = self._human_action()
        return self._begun.pop(0) if self._begun else super()._next()

    def _human_action(self) -> list[Report]:
        """Return a random action of a person; it is refused where it is not allowed."""
        gates = [at for at in self.state.steps.values() if at.gate is not None]
        children = [(at, call) for at in self.state.steps.values() for call in at.children]
        move = MigrationRequested(definition=f"d{self._hands}", by="ada")
        hands: list[list[Report]] = [
            [SteerRequested(edits=(DataEdit(("noted",), self._hands),), by="ada")],
            [SteerRequested(goto=self.random.choice(list(self.plan.nodes)), reason="here", by="ben")],
            [PauseRequested(by="ada"), move, ResumeRequested(by="ada")],
            [move],
        ]
        alone: list[Report] = [DelegationRequested(step=at.step, by="ada", to="dora") for at in gates]
        alone += [ChildUsageReported(step=at.step, attempt=at.attempt, usage=PRICE, call=call) for at, call in children]
        return self.random.choice([*hands, *([one] for one in alone)])

    def _vote(self, step: Step, gate: GateState) -> GateAnswered | None:
        """Return a vote; sometimes the first approvers do not answer."""
        come = self.seed // 4 % 2 == 0 or gate.level > 0 or gate.approvers is None or not gate.approvers.named
        return vote(step, gate) if come else None


def vote(step: Step, gate: GateState) -> GateAnswered | None:
    """Return the first option, chosen by a person who may vote and has not voted."""
    if gate.approvers is None or not gate.approvers.named:
        return first_option(step, gate)
    asked = [one for one in PEOPLE if has_right(gate, gate.approvers, one, ()) and one not in gate.votes]
    return GateAnswered(step=step, action=str(gate.options[0]["value"]), by=asked[0], gate=gate.id) if asked else None


def paid(command: Execute) -> WorkDone | WorkFailed | ToolCallsProposed:
    """Return a report of work with costs."""
    report = perform(command)
    return report if isinstance(report, ToolCallsProposed) else replace(report, usage=PRICE)


def with_people(plan: Plan, seed: int) -> SimulationResult:
    """Simulate an execution that is queued, forked at some row, and then continued with people until its end."""
    origin = HumanSimulation(plan, seed)
    origin.begin_in_line()
    origin.go_on_until(2 + seed % 9)
    if origin.state.ended:
        return origin.outcome
    world = HumanSimulation(plan, seed)
    world.chance_of_crash = 0.0  # A fork consists of its first row; without that row it does not exist.
    world.rows = [*origin.rows]
    world.state, world.now = refolded(world.state.id, world.rows), origin.now
    world.tell(ForkRequested(origin=origin.state.id, row=len(world.rows), by="ada"))
    world.chance_of_crash = CRASH_CHANCE
    world.go_on()
    for turn in range(RESUMES_MAX):
        if world.state.ended:
            break
        more = 1_000.0 * (1 + turn)
        world.tell(ResumeRequested(limits={"steps": more, "toolCalls": more, "costUsd": more}))
        world.go_on()
    return world.outcome
