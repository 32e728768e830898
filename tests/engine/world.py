"""A simulated world for scenarios: start a workflow, report results, and look at its state.

    world = started("start -> tool1; tool1 -> tool2")
    world.done("tool1", "found")
    assert world.working == ["tool2"]

Workflows are drawn as text (`tests.definition.graphs`); `nodes` and `edges` add keys to single ones. After every report
the laws are checked: folding the rows gives the state, and the outstanding commands are those without an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, TypeVar, cast

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.compile import compile_workflow
from pointsman.engine.decide.dispatch import decide
from pointsman.engine.events.steps import Event
from pointsman.engine.events.waits import WarningRaised
from pointsman.engine.failures import Failure
from pointsman.engine.plan import Plan
from pointsman.engine.reports import (
    CancelRequested,
    ChildEnded,
    ChildUsageReported,
    EventReceived,
    GateAnswered,
    PauseRequested,
    Report,
    ResumeRequested,
    RetryRequested,
    Start,
    TimerFired,
    ToolCall,
    Usage,
    WorkDone,
    WorkFailed,
)
from pointsman.engine.state import ExecutionState, Status
from pointsman.engine.steps import Step
from pointsman.testing.simulation import Simulation, SimulationResult
from pointsman.values import Json, JsonObject
from tests.definition.graphs import document

More: TypeAlias = Mapping[str, Mapping[str, object]]

E = TypeVar("E", bound=Event)


def plan_of(drawing: str, *, nodes: More | None = None, edges: More | None = None, **keys: object) -> Plan:
    """The plan of a drawing. `nodes` adds keys to nodes by id, `edges` to edges by `source->target`."""
    drawn = cast(dict[str, list[dict[str, object]]], document(drawing))
    for node in drawn["nodes"]:
        node.update((nodes or {}).get(str(node["id"]), {}))
    for edge in drawn["edges"]:
        edge.update((edges or {}).get(f"{edge['source']}->{edge['target']}", {}))
    workflow, problems = WorkflowDefinition.from_document(cast(JsonObject, {**drawn, **keys}))
    assert workflow is not None, problems
    return compile_workflow(workflow)


def limits(**said: object) -> dict[str, object]:
    return {"limits": said}


class World:
    """One execution, and everything that can happen to it."""

    def __init__(self, plan: Plan) -> None:
        self.simulation = Simulation(plan, seed=1, checked=True)

    # Events --------------------------------------------------------------------------------------------------------

    def tell(self, report: Report) -> None:
        self.simulation.tell(report)

    def begin(self, input: Mapping[str, Json] | None = None, *, session: str | None = None) -> World:
        self.tell(Start(input=dict(input or {}), seed=1, session=session))
        return self

    def done(
        self,
        name: str,
        result: Json = None,
        *,
        next: str | None = None,
        labels: tuple[str, ...] = (),
        pending: tuple[ToolCall, ...] = (),
        messages: tuple[Json, ...] = (),
        cost: float | None = None,
        usage: Usage | None = None,
        attempt: int | None = None,
    ) -> World:
        """Report success of a step; without a result, the result is the step's name."""
        step, current = self.at(name)
        usage = Usage(cost_usd=cost) if cost is not None else usage
        if attempt is None:
            self.simulation.asked.work.pop(step, None)
        self.tell(
            WorkDone(
                step=step,
                attempt=current if attempt is None else attempt,
                result=name if result is None else result,
                next=next,
                labels=labels,
                pending=pending,
                messages=messages,
                usage=usage,
            )
        )
        return self

    def fails(self, name: str, code: str = "boom", *, retryable: bool = False, after_s: float | None = None) -> World:
        step, attempt = self.at(name)
        self.simulation.asked.work.pop(step, None)
        failure = Failure(code=code, message=f"{code} at {name}", retryable=retryable, retry_after_s=after_s)
        self.tell(WorkFailed(step=step, attempt=attempt, failure=failure))
        return self

    def answer(self, name: str, action: str, data: Json = None, *, by: str = "") -> World:
        step, _ = self.at(name)
        self.simulation.asked.gates.pop(step, None)
        self.tell(GateAnswered(step=step, action=action, data=data, by=by))
        return self

    def child_ended(
        self, name: str, output: Json = None, *, failure: Failure | None = None, usage: Usage | None = None
    ) -> World:
        step, attempt = self.at(name)
        self.simulation.asked.children.pop((step, 0), None)
        self.tell(ChildEnded(step=step, attempt=attempt, output=output, failure=failure, usage=usage))
        return self

    def ring(self) -> World:
        """Advance the clock to the next timer."""
        timers = self.simulation.asked.timers
        timer = min(timers, key=lambda name: (timers[name], name))
        self.simulation.now = max(self.now, timers.pop(timer))
        self.tell(TimerFired(timer=timer))
        return self

    def later(self, seconds: float) -> World:
        self.simulation.now += seconds
        return self

    def signal(self, name: str, data: Json = None) -> World:
        self.tell(EventReceived(name=name, data=data))
        return self

    def hear(self, report: EventReceived) -> World:
        self.tell(report)
        return self

    def pause(self) -> World:
        self.tell(PauseRequested())
        return self

    def resume(self, **limits: float) -> World:
        self.tell(ResumeRequested(limits=limits))
        return self

    def retry(self, **limits: float) -> World:
        self.tell(RetryRequested(limits=limits))
        return self

    def cancel(self) -> World:
        self.tell(CancelRequested(reason="enough"))
        return self

    def cancel_now(self) -> World:
        self.tell(CancelRequested(now=True))
        return self

    def late(self, step: Step, attempt: int) -> World:
        """Report a result too late."""
        self.tell(WorkDone(step=step, attempt=attempt, result="late"))
        return self

    def refused_resume(self, **limits: float) -> None:
        """Resume as a caller; raises the refusal."""
        decide(self.simulation.plan, self.state, ResumeRequested(limits=limits), self.now)

    def refused_retry(self) -> None:
        """Retry as a caller; raises the refusal."""
        decide(self.simulation.plan, self.state, RetryRequested(), self.now)

    def refused(self, name: str, limit: str) -> World:
        """Refuse the attempt because a budget is spent."""
        step, attempt = self.at(name)
        self.simulation.asked.work.pop(step, None)
        failure = Failure(code="budget-spent", message=f"the budget of {limit} is spent", details={"limit": limit})
        self.tell(WorkFailed(step=step, attempt=attempt, failure=failure))
        return self

    def child_spends(self, name: str, usage: Usage) -> World:
        step, attempt = self.at(name)
        self.tell(ChildUsageReported(step=step, attempt=attempt, usage=usage))
        return self

    def crash(self) -> World:
        self.simulation.crash()
        return self

    def rest(self) -> SimulationResult:
        """Answer everything outstanding in some order."""
        return self.simulation.go_on()

    # Views ---------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> ExecutionState:
        return self.simulation.state

    @property
    def now(self) -> float:
        return self.simulation.now

    @property
    def status(self) -> Status:
        return self.state.status

    @property
    def output(self) -> Json:
        return self.state.outcome.output

    @property
    def data(self) -> JsonObject:
        return self.state.root.data.root

    @property
    def failure(self) -> Failure:
        assert self.state.outcome.failure is not None
        return self.state.outcome.failure

    @property
    def working(self) -> list[str]:
        """The steps that executors work on."""
        return sorted(str(step) for step in self.simulation.asked.work)

    @property
    def gates(self) -> list[str]:
        return sorted(str(step) for step in self.simulation.asked.gates)

    @property
    def timers(self) -> list[float]:
        """All timers in seconds from now."""
        return sorted(round(at - self.now, 3) for at in self.simulation.asked.timers.values())

    @property
    def steps(self) -> list[str]:
        """All steps so far, in the order in which they began."""
        return [str(step) for step in self.outcome.steps]

    @property
    def path(self) -> list[str]:
        return list(self.outcome.path)

    @property
    def warnings(self) -> list[str]:
        return [event.code for event in self.events(WarningRaised)]

    @property
    def outcome(self) -> SimulationResult:
        return self.simulation.outcome

    def events(self, kind: type[E]) -> list[E]:
        return [event for event in self.outcome.events if isinstance(event, kind)]

    def asked(self, name: str) -> JsonObject:
        """The input of a step's executor."""
        return self.simulation.asked.work[self.at(name)[0]].input

    def at(self, name: str) -> tuple[Step, int]:
        """An open step by its name, or the only open step of a node; with its attempt."""
        found = [at for step, at in self.state.steps.items() if str(step) == name]
        found = found or [at for step, at in self.state.steps.items() if step.node == name]
        assert len(found) == 1, f"{name!r} is not one of {[str(step) for step in self.state.steps]}"
        return found[0].step, found[0].attempt


def started(
    drawing: str,
    *,
    nodes: More | None = None,
    edges: More | None = None,
    input: Mapping[str, Json] | None = None,
    **keys: object,
) -> World:
    return World(plan_of(drawing, nodes=nodes, edges=edges, **keys)).begin(input)
