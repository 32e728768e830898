"""The laws of the engine as functions that raise: tests check them, and they must detect planted bugs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from itertools import cycle
from random import Random
from re import sub
from typing import NamedTuple
from unittest.mock import patch

from msgspec.structs import replace

from pointsman.definition.graph.analysis import analyse
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.actions import WorkAction
from pointsman.engine.commands import Execute
from pointsman.engine.compile import compile_workflow
from pointsman.engine.compile.partial_run import PartialRunInvalid, partial_run_plan
from pointsman.engine.decide.context import Decision
from pointsman.engine.decide.dispatch import advance, begin
from pointsman.engine.events.lifecycle import LimitsRaised, UndoBegan, UndoEnded
from pointsman.engine.events.steps import (
    InstantStepCompleted,
    StepCancelled,
    StepFailed,
    StepStarted,
    StepSucceeded,
    TokenEnded,
)
from pointsman.engine.events.waits import WarningRaised
from pointsman.engine.plan import Plan
from pointsman.engine.reports import (
    CancelRequested,
    PauseRequested,
    Report,
    ResumeRequested,
    RetryRequested,
    ToolCallsProposed,
    Usage,
    WorkDone,
    WorkFailed,
)
from pointsman.engine.state import ExecutionState
from pointsman.testing import simulation
from pointsman.testing.graphs import INPUT, ONWARD, asked_on, perform, random_workflow
from pointsman.testing.simulation import GHOST, LawBroken, Simulation, SimulationResult
from pointsman.values import Json, JsonObject

BROKEN_SHAPES = ("scope-mismatch", "scope-leak", "several-joins", "loop-body-ambiguous", "loop-entered-sideways")
"""Documents that the checker refuses: no laws hold for them."""


ASKED_STEPS_MAX = 150
"""Longer executions only take longer."""


ROOM = 120
"""Bytes of state that an execution with little space has at first; each retry adds as many."""


class Outcome(NamedTuple):
    """The parts of the outcome that must not depend on the schedule."""

    status: str
    output: Json
    data: object
    steps: tuple[str, ...]


@lru_cache(maxsize=256)
def plan_for(seed: int, size: int, *, unruly: bool = False, undone: bool = False) -> Plan | None:
    """Return a random plan; None for the few random graphs that are refused."""
    return compiled(random_workflow(seed, size, unruly=unruly, undone=undone))


@lru_cache(maxsize=256)
def net_for(seed: int) -> Plan | None:
    return compiled(random_net(seed))


def compiled(document: JsonObject) -> Plan | None:
    workflow, problems = WorkflowDefinition.from_document(document)
    assert workflow is not None, problems
    if any(finding.code in BROKEN_SHAPES for finding in analyse(workflow).findings):
        return None
    return compile_workflow(workflow)


def random_net(seed: int, nodes: int = 7) -> JsonObject:
    """Return a random graph without structure: edges between any nodes, several start nodes, cycles that may never
    end."""
    random = Random(seed)
    ids = [f"tool{number}" for number in range(nodes)]
    made: list[Json] = []
    for name in ids:
        kind = random.choice(["tool", "tool", "transform", "join"])
        node: JsonObject = {"id": name, "type": kind, "config": {"tool": "t"} if kind == "tool" else {}}
        if kind == "tool":
            node["outputs"] = {"log": "result", **({f"seen.{name}": "len(log)"} if random.random() < 0.4 else {})}
            node["routing"] = random.choice(["all", "all", "first"])
        if random.random() < 0.15:
            node["trigger"] = "each"
        made.append(node)
    edges: list[Json] = []
    for source in ids:
        for target in random.sample(ids, random.choice([0, 1, 1, 2, 3])):
            edge: JsonObject = {"source": source, "target": target}
            conditions: list[JsonObject] = [
                {},
                {"condition": {"type": "label", "label": random.choice(["left", "right"])}},
                {"condition": {"type": "expression", "expression": "input.n > 3"}},
            ]
            edges.append({**edge, **random.choice(conditions)})
    return {
        "id": "net",
        "entry": ids[0],
        "state": {"log": {"reduce": "append"}},
        "config": {"limits": {"steps": 60, "stateSize": "200KB"}},
        "nodes": made,
        "edges": edges,
    }


def outcome_of(outcome: SimulationResult) -> Outcome:
    if outcome.status == "interrupted":  # A limit stops one of several possible next steps.
        return Outcome(outcome.status, None, None, ())
    return Outcome(outcome.status, outcome.output, outcome.state.root.data.root, tuple(sorted(map(str, outcome.steps))))


def run(plan: Plan, seed: int, *, wild: bool, checked: bool) -> SimulationResult:
    chance = 0.25 if wild else 0.0
    simulation = Simulation(
        plan,
        seed,
        work=perform,
        checked=checked,
        chance_of_crash=chance,
        chance_of_duplicate=chance,
        chance_of_zombie=chance,
        chance_of_missing=chance,
    )
    return simulation.run(INPUT)


def hold(condition: object, law: str) -> None:
    if not condition:
        raise LawBroken(law)


def must_end(outcome: SimulationResult) -> None:
    """Check that no token is stuck: the simulation answers everything, so nothing may still wait."""
    hold(outcome.status in ("completed", "failed", "cancelled", "interrupted"), f"stuck: {outcome.status}")
    if outcome.status == "completed":
        state = outcome.state
        hold(not state.steps and not state.held_arrivals, "completed with steps open")
        terminated = any(isinstance(event, TokenEnded) and event.reason == "end" for event in outcome.events)
        hold(terminated or state.root.tokens == 0, "completed with arrivals waiting")


def must_settle_once(outcome: SimulationResult) -> None:
    begun = Counter(event.step for event in outcome.events if isinstance(event, StepStarted | InstantStepCompleted))
    settled = Counter(
        event.step
        for event in outcome.events
        if isinstance(event, StepSucceeded | StepCancelled) or (isinstance(event, StepFailed) and event.final)
    )
    hold(max(begun.values(), default=0) <= 1, "two steps have one identity")
    hold(max(settled.values(), default=0) <= 1, "a step settled twice")
    hold(GHOST not in str(outcome_of(outcome)), "a zombie was believed")


def must_undo(outcome: SimulationResult) -> None:
    """Check that everything completed is compensated once, in reverse order, and that failures of compensation are
    reported."""
    done = [event.step for event in outcome.events if isinstance(event, StepSucceeded) and event.undone_by is not None]
    begun = [event.step for event in outcome.events if isinstance(event, UndoBegan)]
    over = [event for event in outcome.events if isinstance(event, UndoEnded)]
    if outcome.status not in ("failed", "cancelled"):
        hold(not begun, "something was undone although nothing failed")
        return
    hold(begun == done[::-1], f"undone {begun}, done {done}")
    hold([event.step for event in over] == begun, "an undo began and did not end, or ended twice")
    failure = outcome.state.outcome.failure
    for event in over:
        named = failure is not None and f"'{event.step}'" in failure.message.partition("could not be undone")[2]
        hold(named == (event.failure is not None), f"{event.step} is told wrongly")


def must_not_depend_on_the_schedule(plan: Plan, seed: int) -> None:
    calm = run(plan, 0, wild=False, checked=False)
    other = run(plan, seed, wild=seed % 2 == 0, checked=False)
    hold(outcome_of(calm) == outcome_of(other), f"another schedule: {outcome_of(calm)} ≠ {outcome_of(other)}")


def must_decide_alike_in_parts(plan: Plan, seed: int) -> None:
    """Check that a decision made in parts of one move has the same events and commands as one made at once.

    After half a move, no move is left for the first operation of a transform, so that the next part makes it.
    """

    def in_parts(plan: Plan, state: ExecutionState, report: Report, at: float) -> Decision:
        ctx = begin(plan, state, report, at)
        if ctx is None:
            return Decision((), ())
        next(moves for moves in cycle((0.5, 1)) if advance(ctx, moves))
        return ctx.decision()

    at_once = run(plan, seed, wild=True, checked=False)
    with patch.object(simulation, "decide", in_parts):
        divided = run(plan, seed, wild=True, checked=False)
    hold(at_once.rows == divided.rows, "a decision in parts writes the same row")


def must_go_on_as_it_was(seed: int, size: int = 6) -> None:
    """Check that an execution stopped by a limit anywhere, with crashes, continues without loss or repetition."""
    document = random_workflow(seed, size)
    free, asked = compiled(document), compiled(asked_on(document, 3 + seed % 5))
    if free is None or asked is None:
        return
    calm = outcome_of(run(free, 0, wild=False, checked=False))
    if calm.status == "interrupted" or len(calm.steps) > ASKED_STEPS_MAX:
        return
    stopped = run(asked, seed, wild=True, checked=seed % 3 == 0)
    must_settle_once(stopped)
    steps = tuple(sorted(str(step) for step in stopped.steps if step.node != ONWARD))
    hold(outcome_of(stopped)._replace(steps=steps) == calm, f"asked on the way: {outcome_of(stopped)} ≠ {calm}")


def must_survive_a_pause(plan: Plan, seed: int) -> None:
    calm = run(plan, 0, wild=False, checked=False)
    simulation = Simulation(plan, seed, work=perform)
    simulation.run_rows(INPUT, 1 + seed % max(1, len(calm.rows)))
    if simulation.state.status == "running":
        simulation.tell(PauseRequested())
        simulation.go_on()
        simulation.tell(ResumeRequested())
    hold(outcome_of(simulation.go_on()) == outcome_of(calm), "a pause changed the outcome")


def must_come_to_the_same_when_retried(seed: int, size: int = 7) -> None:
    """Check that an execution which fails for lack of space, with crashes, and is retried with more, loses nothing."""
    document = random_workflow(seed, size)
    free, tight = compiled(document), compiled(with_limits(document, stateSize=ROOM))
    if free is None or tight is None:
        return
    calm = run(free, 0, wild=False, checked=False)
    simulation = Simulation(tight, seed, work=perform, chance_of_crash=0.2, checked=seed % 3 == 0)
    room = ROOM

    def more() -> Report | None:
        nonlocal room
        failure = simulation.state.outcome.failure
        if simulation.state.status != "failed" or failure is None or failure.code != "state-too-large":
            return None
        room += ROOM
        return RetryRequested(limits={"stateSize": room})

    simulation.at_rest = more
    retried = simulation.run(INPUT)
    too_large = [
        event for event in retried.events if isinstance(event, StepFailed) and event.failure.code == "state-too-large"
    ]
    if len(too_large) > room // ROOM - 1 or retried.status == "interrupted":
        return  # A part of the workflow handled the failure, or all attempts together exceeded the limit of steps.
    hold(_whichever_time(retried) == _whichever_time(calm), f"retried: {outcome_of(retried)} ≠ {outcome_of(calm)}")


def _whichever_time(outcome: SimulationResult) -> str:
    """Return the outcome without the number of the opening of a parallel."""
    came: JsonObject = {"status": outcome.status, "output": outcome.output, "data": outcome.state.root.data.root}
    return sub(r"\[\d+\.", "[", json.dumps(came, sort_keys=True))


def with_limits(document: JsonObject, **said: Json) -> JsonObject:
    config = document["config"]
    assert isinstance(config, dict)
    assert isinstance(config["limits"], dict)
    return {**document, "config": {**config, "limits": {**config["limits"], **said}}}


def must_keep_to_its_budget(seed: int, size: int = 7) -> None:
    """Check that an execution with a budget, stopped or paused when it is spent and resumed with more, has the same
    outcome."""
    policy = ("stop", "pause", "warn")[seed % 3]
    document = random_workflow(seed, size)
    most = 2 + seed % 4
    bounded = with_limits(document, toolCalls=most)
    config = bounded["config"]
    assert isinstance(config, dict)
    free, bound = compiled(document), compiled({**bounded, "config": {**config, "budget": {"policy": policy}}})
    if free is None or bound is None:
        return
    calm = outcome_of(run(free, 0, wild=False, checked=False))
    if calm.status == "interrupted" or len(calm.steps) > ASKED_STEPS_MAX:
        return
    simulation = Simulation(
        bound, seed, work=_paid, checked=seed % 2 == 0, chance_of_crash=0.2, chance_of_duplicate=0.2
    )
    allowed = most

    def more() -> Report | None:
        nonlocal allowed
        if simulation.state.status not in ("interrupted", "paused"):
            return None
        hold(simulation.state.usage.tool_calls >= allowed, "stopped although something is left of the budget")
        allowed = simulation.state.usage.tool_calls + most
        return ResumeRequested(limits={"toolCalls": allowed})

    simulation.at_rest = more
    outcome = simulation.run(INPUT)
    must_settle_once(outcome)
    hold(outcome_of(outcome) == calm, f"on a budget: {outcome_of(outcome)} ≠ {calm}")
    hold(policy != "warn" or allowed == most, "stopped although it was only to be told")
    if policy != "warn":
        _must_begin_nothing_that_is_not_paid_for(bound, outcome, most)
    else:
        warned = any(isinstance(event, WarningRaised) and event.code == "budget-spent" for event in outcome.events)
        hold(warned == (outcome.state.usage.tool_calls >= most), "told wrongly that the budget is spent")


def _must_begin_nothing_that_is_not_paid_for(plan: Plan, outcome: SimulationResult, most: float) -> None:
    spent = 0
    for event in outcome.events:
        match event:
            case LimitsRaised(limits={"toolCalls": more}):
                most = more
            case StepSucceeded(usage=usage) | StepFailed(usage=usage) if usage is not None:
                spent += usage.tool_calls
            case StepStarted(step=step) if plan.nodes[step.node].type in ("tool", "tool_executor"):
                hold(spent < most, f"{step} began with {spent} of {most} calls spent")
            case _:
                pass


def _paid(command: Execute) -> WorkDone | WorkFailed | ToolCallsProposed:
    """Return the work of random workflows; each attempt counts as one tool call."""
    report = perform(command)
    return report if isinstance(report, ToolCallsProposed) else replace(report, usage=Usage(tool_calls=1))


def must_undo_when_cancelled(plan: Plan, seed: int) -> None:
    """Check that an execution cancelled after any row, with crashes, ends, and that all completed work is
    compensated."""
    simulation = Simulation(plan, seed, work=perform, checked=True, chance_of_crash=0.2)
    simulation.run_rows(INPUT, 1 + seed % 20)
    if not simulation.state.ended:
        simulation.tell(CancelRequested())
    outcome = simulation.go_on()
    hold(outcome.status in ("cancelled", "failed", "interrupted"), f"cancelled, and now {outcome.status}")
    must_settle_once(outcome)
    must_undo(outcome)


def hunt(graphs: range) -> None:
    """Check all laws on some random graphs."""
    for number in graphs:
        tame, wild, net = plan_for(number, 7), plan_for(number, 6, unruly=True), net_for(number)
        if tame is not None:
            outcome = run(tame, number, wild=False, checked=True)
            must_end(outcome)
            must_settle_once(outcome)
            must_not_depend_on_the_schedule(tame, number)
            must_survive_a_pause(tame, number)
            must_go_on_as_it_was(number)
        undone = plan_for(number, 5, undone=True)
        if undone is not None:
            must_undo(run(undone, number, wild=True, checked=True))
            must_not_depend_on_the_schedule(undone, number)
        for plan in (wild, net):
            if plan is not None:
                outcome = run(plan, number, wild=True, checked=True)
                must_end(outcome)
                must_settle_once(outcome)


Law = Callable[[Plan, int], None]


def trial_for(plan: Plan, seed: int, *, stops: bool) -> Plan:
    """Return the plan as a partial run: with pinned nodes, a last node, and breakpoints."""
    random = Random(seed)
    nodes = sorted(id for id, node in plan.nodes.items() if not node.hidden)
    works = sorted(id for id, node in plan.nodes.items() if isinstance(node.action, WorkAction) and not node.hidden)
    until = random.choice(nodes)
    said: JsonObject = {"pinned": {id: {"pinned": id} for id in works if random.random() < 0.3}}
    if random.random() < 0.7:
        said["until"] = [until]
    if stops:
        said["breakpoints"] = [id for id in nodes if random.random() < 0.3]
    try:
        return partial_run_plan(plan, said)
    except PartialRunInvalid:  # A parallel without a join never closes, and some nodes are unreachable.
        return partial_run_plan(plan, {key: value for key, value in said.items() if key != "until"})


def must_come_to_the_same_in_every_trial(plan: Plan, seed: int) -> None:
    """Check that a partial run has the same outcome for any schedule and breakpoints, and runs no pinned or later
    node."""
    calm = run(trial_for(plan, seed, stops=False), 0, wild=False, checked=False)
    must_end(calm)
    trial = trial_for(plan, seed, stops=True)
    assert trial.partial_run is not None
    stepping = seed % 4 == 0

    def on() -> Report | None:
        return ResumeRequested(step=stepping) if simulation.state.status == "paused" else None

    simulation = Simulation(
        trial, seed, work=perform, checked=seed % 3 == 0, chance_of_crash=0.2, chance_of_duplicate=0.2
    )
    simulation.at_rest = on
    wild = simulation.run(INPUT)
    must_settle_once(wild)
    hold(outcome_of(wild) == outcome_of(calm), f"tried: {outcome_of(wild)} ≠ {outcome_of(calm)}")
    for event in wild.events:
        if isinstance(event, StepStarted) and event.runs:
            node = event.step.node
            hold(node not in trial.partial_run.mocks, f"{node!r} is pinned and was performed")
            within = not trial.partial_run.until or node in trial.partial_run.performed
            hold(within or wild.state.is_escalated or wild.state.undo_log, f"{node!r} is behind the end of the trial")
