"""The context of one decision: events are folded as they are emitted; transitions wait in a queue.

    report ─▶ rule ─▶ [events, transitions] ─▶ transition ─▶ [events, transitions] ─▶ … ─▶ queue empty
                                                              ─▶ release parked nodes ─▶ completed?

The queue replaces recursion: a loop of 100 000 rounds needs no deep stack, and no rule calls another rule.
"""

from __future__ import annotations

from collections import ChainMap, Counter, deque
from collections.abc import Callable, Generator, Mapping
from math import inf
from typing import Final, TypeAlias, TypeVar, final

from msgspec import Struct

from pointsman.engine.actions import LoopAction, PlanEdge, Value
from pointsman.engine.commands import Command
from pointsman.engine.events.steps import Event, TokenEnded
from pointsman.engine.events.waits import ChildStopRequested, EventEmitted, OutboxDelivered, WarningRaised
from pointsman.engine.failures import Failure
from pointsman.engine.fold.dispatch import fold
from pointsman.engine.fold.scopes import output_of, scope_of
from pointsman.engine.fold.waits import publication_name, stop_name
from pointsman.engine.plan import Plan, PlanNode
from pointsman.engine.reports import DeliveryConfirmed, EventReceived
from pointsman.engine.state import ExecutionState, LoopState, ScopeState, StepOutput, StepState
from pointsman.engine.steps import Arrival, Lineage, Scope, Step
from pointsman.expressions.environment import Environment
from pointsman.values import CONTAINERS, Json, JsonObject


@final
class EnterNode(Struct, frozen=True, gc=False):
    """A transition of control to a node."""

    node: str
    scope: Scope
    edge: PlanEdge | None
    after: Step | None
    lineage: Lineage = ()
    caller: str | None = None
    starts_node: bool = False
    """Whether the node starts without waiting for other arrivals, because control entered it before."""
    merged: tuple[Arrival, ...] = ()
    """Arrivals that entered together before and are parked at the node."""


@final
class ExitStep(Struct, frozen=True, gc=False):
    """A transition out of a finished step; its edges decide where control continues."""

    step: Step
    labels: tuple[str, ...] = ()
    """Labels that the step emitted, tried in order."""
    failed: Failure | None = None
    """The final failure of the step: only error edges count."""


class PropagateFailure(Struct, frozen=True, gc=False):
    """A failure that the step itself did not catch."""

    step: Step
    failure: Failure


@final
class ContinueStep(Struct, frozen=True, gc=False):
    """The rest of a step that takes no time. It is always the first transition in the queue."""

    step: Step
    rest: Callable[[], None]


Transition: TypeAlias = EnterNode | ExitStep | PropagateFailure | ContinueStep


def scope_key(move: Transition) -> Scope:
    """Return the scope in which control moves."""
    return move.scope if type(move) is EnterNode else move.step.scope


def node_of(move: Transition) -> str:
    """Return the node that control enters or leaves."""
    return move.node if type(move) is EnterNode else move.step.node


class Decision(Struct, frozen=True, gc=False):
    """The outcome of one report: one journal row, and the commands that are issued once the row is durable."""

    events: tuple[Event, ...]
    commands: tuple[Command, ...]


T = TypeVar("T")
Parts: TypeAlias = Generator[None, None, T]
"""Work that yields between its parts, so that the caller can do something else, and returns its result."""


class DecisionContext:
    __slots__ = (
        "_counted",
        "before",
        "commands",
        "dirty_scopes",
        "events",
        "looked_at",
        "moves_left",
        "plan",
        "produced_bytes",
        "queue",
        "state",
        "uncaught",
    )

    def __init__(self, plan: Plan, state: ExecutionState, before: Step | None = None) -> None:
        self.plan = plan
        self.state = state
        self.before = before
        """The step before which the execution pauses."""
        self.events: list[Event] = []
        self.commands: list[Command] = []
        self.queue: deque[Transition] = deque()
        self._counted: dict[Scope, int] | None = None
        """Queued transitions per scope; computed on first use."""
        self.uncaught: list[PropagateFailure] = []
        """Uncaught failures; the execution fails once nothing moves any more."""
        self.produced_bytes = 0
        """Bytes of values that joins and steps produced in this decision."""
        self.dirty_scopes: dict[Scope, None] = {}
        """Scopes whose tokens changed."""
        self.looked_at = 0
        """Events of this decision after which the open gates were computed again."""
        self.moves_left = inf
        """Moves that this part of the decision may still make."""

    def emit(self, event: Event) -> None:
        """Add an event to the row and fold it into the state."""
        self.events.append(event)
        fold(self.state, event)

    def decision(self) -> Decision:
        return Decision(tuple(self.events), tuple(self.commands))

    def command(self, command: Command) -> None:
        self.commands.append(command)

    def node(self, step: Step) -> PlanNode:
        return self.plan.nodes[step.node]

    def warn(self, code: str, message: str, step: Step | None = None) -> None:
        self.emit(WarningRaised(code=code, message=message, step=step))

    def enqueue(self, move: Transition) -> None:
        """Add a transition to the queue."""
        if self._counted is not None:
            key = scope_key(move)
            self._counted[key] = self._counted.get(key, 0) + 1
        self.queue.append(move)

    def continue_first(self, step: Step, rest: Callable[[], None]) -> None:
        """Continue a step in the next part of this decision, before anything else happens."""
        if self._counted is not None:
            self._counted[step.scope] = self._counted.get(step.scope, 0) + 1
        self.queue.appendleft(ContinueStep(step, rest))

    def dequeue(self) -> Transition:
        """Remove and return the next transition."""
        move = self.queue.popleft()
        if self._counted is not None:
            self._counted[scope_key(move)] -= 1
        return move

    def in_flight(self, scope: Scope) -> int:
        """Return the number of queued transitions of this scope: tokens that the state does not show yet."""
        if not self.queue:
            return 0
        if self._counted is None:
            self._counted = Counter(map(scope_key, self.queue))
        return self._counted.get(scope, 0)

    def discard(self, scope: Scope, nodes: frozenset[str]) -> None:
        """Discard queued transitions from or to these nodes of a scope."""
        remaining = [move for move in self.queue if scope_key(move) != scope or node_of(move) not in nodes]
        self.discard_all()
        self.queue.extend(remaining)

    def discard_all(self) -> None:
        """Discard all queued transitions."""
        self.queue.clear()
        self._counted = None

    def end_token(self, after: Step, *, reason: str = "no-edge", output: Json = None) -> None:
        """End the token of a step."""
        scope = self.state.scopes.get(after.scope)
        if reason == "end":
            event = TokenEnded(after=after, reason="end", output=output)
        elif reason == "swallowed":
            event = TokenEnded(after=after, reason="swallowed")
        else:
            event = TokenEnded(after=after, answers=scope is not None and self.answers(scope, after))
        self.emit(event)
        self.dirty_scopes[after.scope] = None

    def answers(self, scope: ScopeState, after: Step) -> bool:
        """Return whether the last value of a token is a result of the execution: it is not inside a joined parallel."""
        if self.state.row.outputs[after].value is None:
            return False
        around: ScopeState | None = scope
        while around is not None and around.opening is not None:
            if around.opening.joined or around.opening.detached:
                return False
            around = around.parent
        return True

    def alone(self, scope: ScopeState) -> bool:
        """Return whether this scope has no other token."""
        return scope.tokens == 0 and not self.in_flight(scope.key)

    def scope(self, key: Scope) -> ScopeState:
        return scope_of(self.state, key)

    def left(self, scope: ScopeState, step: Step) -> StepOutput:
        return output_of(self.state, scope, step)

    def visit(self, scope: ScopeState, node: PlanNode, thread: Lineage) -> Step:
        """Return the identity of the next visit to a node."""
        own = thread if node.position.has_lineage else ()
        return Step(node.id, scope.key, scope.visits.get((node.id, own), 0) + 1, own)

    # Data for expressions

    def environment(
        self, scope: ScopeState, node: PlanNode, result: Json, more: Mapping[str, Json] | None = None
    ) -> Environment:
        """Return the data visible to a step at `node` in `scope`; `result` is the value that reached or left it."""
        names: dict[str, Json] = {**scope.names, "result": result}
        item_key = scope.item_key
        for loop_node in reversed(node.position.loops):
            loop = self.loop(scope, loop_node)
            if loop is not None:
                item_key = self._loop_names(names, loop, item_key)
        if isinstance(node.action, LoopAction) and node.id in scope.loops:
            item_key = self._loop_names(names, scope.loops[node.id], item_key)
        if self.plan.engine_names:
            is_new = node.id not in self.state.counters.visited_nodes
            names["_currentStep"] = self.current_step(len(self.state.counters.visited_nodes) + is_new)
            names["_totalNodes"] = self.plan.nodes_counted
            names["_currentNodeIteration"] = scope.visits.get((node.id, ()), 0) + 1
        if self.state.compensation is not None:
            item_key = self._undone_names(names)
        if more:
            names |= more
        nodes: Mapping[str, Json] = (
            ChainMap(scope.nodes, scope.base_nodes) if scope.base_nodes else scope.nodes  # pyright: ignore[reportArgumentType] - only read
        )
        return Environment(scope.data.root, nodes, names, self.config, item_key, self.plan.strict)

    def current_step(self, entered: int) -> int:
        """Return `_currentStep` after `entered` visited nodes: their number without start, end and notes."""
        return max(1, entered - sum(node in self.state.counters.visited_nodes for node in self.plan.uncounted))

    @property
    def config(self) -> Mapping[str, Json]:
        return self.state.setup.config

    def loop(self, scope: ScopeState, node: str) -> LoopState | None:
        """Return the open entry of a loop node, in this scope or one around it."""
        around: ScopeState | None = scope
        while around is not None:
            loop = around.loops.get(node)
            if loop is not None:
                return loop
            around = around.parent
        return None

    def _loop_names(self, names: dict[str, Json], loop: LoopState, item_key: str | None) -> str | None:
        at = loop.round - 1
        total: Json = len(loop.items) if loop.items is not None else None
        names["loop"] = {"iteration": loop.round, "index": at, "total": total, "previous": loop.previous}
        if loop.items is None or not 0 <= at < len(loop.items):
            return item_key
        item = loop.items[at]
        names |= {"item": item, "index": at, "_loopItem": item, "_loopIndex": at, "_loopHuman": at + 1}
        names["_loopTotal"] = total
        if loop.item_name is not None:
            names[loop.item_name] = item
        names["key"] = key_of(item, at)
        return key_of(item, at)

    def _undone_names(self, names: dict[str, Json]) -> str | None:
        """Add the names for a compensation: `compensated` (the step that it undoes), and the item of its branch."""
        undo = self.state.compensation.current if self.state.compensation is not None else None
        if undo is None:
            return None
        for name, value in undo.names.items():
            names.setdefault(name, value)
        step = undo.step
        names["compensated"] = {
            "node": step.node,
            "step": str(step),
            "visit": step.visit,
            "input": undo.input,
            "result": undo.result,
        }
        return undo.item_key

    def value(self, scope: ScopeState, compute: Value, env: Environment) -> Json:
        """Evaluate a value. A container that leaves the state is marked as shared, because later writes must copy
        it.
        """
        value = compute(env)
        if isinstance(value, CONTAINERS):
            scope.data.shared()
        return value

    def object(self, scope: ScopeState, compute: Value | None, env: Environment) -> JsonObject:
        """Evaluate a value that must be an object; any other value counts as empty."""
        value = None if compute is None else self.value(scope, compute, env)
        return value if isinstance(value, dict) else {}


KEY_FIELDS: Final = ("key", "id", "name")


def key_of(item: Json, index: int) -> str:
    """Return the key of an item: the string or number itself; an object's key, id or name; else the index."""
    if isinstance(item, str):
        return item
    if isinstance(item, dict):
        for name in KEY_FIELDS:
            value = item.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool):
                return str(value)
    elif isinstance(item, int | float) and not isinstance(item, bool):
        return str(item)
    return str(index)


def in_order(arrivals: list[tuple[str, Lineage]], edges: Mapping[str, int]) -> tuple[Arrival, ...]:
    """Return arrivals in document order of their edges, then by lineage; never in arrival order."""
    ordered = sorted(arrivals, key=lambda a: (edges.get(a[0], -1), a[1]))
    return tuple(Arrival(edge, thread) for edge, thread in ordered)


def publish(ctx: DecisionContext, step: Step, name: str, data: Json) -> None:
    """Publish an event to other executions."""
    ctx.emit(EventEmitted(step=step, name=name, data=data, told=False))
    ctx.command(ctx.state.outbox[publication_name(step)])


def stop_children(ctx: DecisionContext, at: StepState) -> None:
    """Request cancellation of the child executions of the current attempt."""
    for call in at.children:
        ctx.emit(ChildStopRequested(step=at.step, attempt=at.attempt, call=call))
        ctx.command(ctx.state.outbox[stop_name(at.step, at.attempt, call)])


def delivered(ctx: DecisionContext, report: DeliveryConfirmed) -> None:
    """Remove delivered messages from the outbox."""
    orders = tuple(order for order in report.orders if order in ctx.state.outbox)
    if orders:
        ctx.emit(OutboxDelivered(orders=orders))


def is_news(state: ExecutionState, report: EventReceived) -> bool:
    """Return whether an event from outside was not seen before and can still change the execution."""
    return not state.ended and report.key not in state.events.seen_keys
