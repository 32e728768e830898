"""An entry: one node about to start, and the few things that every kind of node does with its step."""

from __future__ import annotations

from pointsman.engine.actions import PlanEdge, WorkAction
from pointsman.engine.commands import Execute, SetTimer
from pointsman.engine.decide import limits
from pointsman.engine.decide.context import DecisionContext, EnterNode, ExitStep, PropagateFailure
from pointsman.engine.events.steps import InstantStepCompleted, StepFailed, StepStarted
from pointsman.engine.events.waits import TimerSet
from pointsman.engine.failures import Failure, is_one_of
from pointsman.engine.fold.arrivals import parked
from pointsman.engine.plan import PlanNode
from pointsman.engine.state import ScopeState, StepOutput
from pointsman.engine.steps import Step
from pointsman.engine.writes import Arrival, Write
from pointsman.expressions.environment import Environment
from pointsman.values import Json, JsonObject


class Entry:
    """One node about to start: what every kind needs to know."""

    __slots__ = ("desk", "left", "merged", "move", "node", "scope", "step")

    def __init__(
        self, desk: DecisionContext, node: PlanNode, scope: ScopeState, move: EnterNode, merged: tuple[Arrival, ...]
    ) -> None:
        self.desk = desk
        self.node = node
        self.scope = scope
        self.move = move
        self.merged = merged
        self.step = desk.visit(scope, node, move.thread)
        if merged:
            self.left = parked(scope, node.id, merged[-1])
        elif move.after is not None:
            self.left = desk.left(scope, move.after)
        else:
            self.left = StepOutput(None)

    def environment(self) -> Environment:
        """What formulas of the node see; it collects what templates left empty."""
        env = self.desk.environment(self.scope, self.node, self.left.value)
        env.missing = []
        return env

    def began(
        self, *, input: JsonObject | None = None, messages: int = 0, runs: bool = False, caller: str | None = None
    ) -> None:
        """The step is open from here on."""
        self.desk.emit(
            StepStarted(
                step=self.step,
                edge="" if self.move.edge is None else self.move.edge.id,
                after=None if self.merged else self.move.after,
                merged=self.merged,
                thread=self.move.thread,
                input=input,
                messages=messages,
                runs=runs,
                caller=caller,
            )
        )

    def passed(
        self,
        *labels: str,
        said: JsonObject | None = None,
        replaces: bool = False,
        takes: bool = False,
        result: Json = None,
        writes: tuple[Write, ...] = (),
        leaves: bool = True,
        pinned: bool = False,
    ) -> None:
        """Control went through; its edges are next."""
        self.desk.emit(
            InstantStepCompleted(
                step=self.step,
                edge="" if self.move.edge is None else self.move.edge.id,
                after=None if self.merged else self.move.after,
                merged=self.merged,
                thread=self.move.thread,
                replaces=replaces,
                takes=takes,
                result=result,
                said=said,
                writes=writes,
                pinned=pinned,
            )
        )
        self.desk.touched[self.scope.key] = None
        if leaves:
            self.desk.go(ExitStep(self.step, labels))

    def failed(self, failure: Failure) -> None:
        """It could not even begin."""
        self.began()
        fail_open_step(self.desk, self.step, failure)


def fail_open_step(desk: DecisionContext, step: Step, failure: Failure) -> None:
    """An open step fails finally: its error edges, then the scopes around it, decide."""
    at = desk.state.steps[step]
    desk.emit(StepFailed(step=step, attempt=at.attempt, failure=failure))
    desk.touched[step.scope] = None
    node = desk.node(step)
    if catching(node, failure):
        desk.go(ExitStep(step, failed=failure))
    else:
        desk.go(PropagateFailure(step, failure))


def catching(node: PlanNode, failure: Failure) -> list[PlanEdge]:
    """The error edges that take a failure."""
    return [edge for edge in node.catches if not edge.codes or is_one_of(failure, edge.codes)]


def execute(desk: DecisionContext, step: Step) -> None:
    """Ask the executor for the current attempt of an open step."""
    desk.command(execution_of(desk, step))
    limits.watch(desk)


def execution_of(desk: DecisionContext, step: Step) -> Execute:
    """The command for the current attempt. After a crash it comes out the same."""
    does = desk.plan.nodes[step.node].does
    assert isinstance(does, WorkAction)
    at = desk.state.steps[step]
    messages: tuple[Json, ...] | list[Json] = ()
    if does.listens and at.messages:
        found = at.scope.data.shared().get("messages")
        if isinstance(found, list):
            known = desk.state.options.get("history") if does.forgets else None
            began = known if isinstance(known, int) else 0
            messages = found if len(found) == at.messages and not began else found[began : at.messages]
    return Execute(
        step=step,
        attempt=at.attempt,
        work=does.spec.kind,
        input=(at.advised if at.phase == "recover" else at.input) or {},
        messages=messages,
        phase=at.phase,
        timeout_s=does.timeout_s if not desk.state.limits else _timeout(desk, does),
        call_timeout_s=limits.allowed(desk, "nodeTime", None) if desk.state.limits else None,
        verdicts=tuple(at.verdicts.values()) if at.verdicts else (),
    )


def _timeout(desk: DecisionContext, does: WorkAction) -> float | None:
    """The time of an attempt; where the node says none of its own, `nodeTime` may have been raised."""
    if does.timeout_s is None or does.own_time:
        return does.timeout_s
    return limits.allowed(desk, "nodeTime", does.timeout_s)


def set_timer(desk: DecisionContext, step: Step, purpose: str, at: float) -> None:
    """Wake this step at `at` (unix seconds)."""
    state = desk.state.steps[step]
    timer = f"{purpose}:{step}:{state.attempt}"
    desk.emit(TimerSet(timer=timer, purpose=purpose, at=at, step=step))  # pyright: ignore[reportArgumentType] - the purposes of the callers
    desk.command(SetTimer(timer=timer, at=at))
