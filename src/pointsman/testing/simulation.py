"""Simulation: one execution in a scripted world with a random schedule, fully determined by a seed.

    plan = compile_workflow(workflow)
    calm = Simulation(plan, seed=1).run({"goal": "x"})
    wild = Simulation(plan, seed=1, chance_of_crash=0.3, chance_of_duplicate=0.5).run({"goal": "x"})
    assert (wild.status, wild.output) == (calm.status, calm.output)

Nothing is awaited and no time passes: thousands of schedules run in a second. Work is answered in random order. When no
answer is outstanding, events are sent, some before any step waits for them; then the clock advances to the next timer.
A crash drops the state, folds the stored rows and issues the outstanding commands again; half of the crashes come
before the row was written.

States are compared as plain data (`describe`). Left out are values that no row of the journal determines: caches for
the next decision, and values that live for one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias, cast

import msgspec
from msgspec import Struct

from pointsman.engine.actions import WaitAction
from pointsman.engine.causes import cause_of
from pointsman.engine.commands import (
    AnnounceGate,
    Command,
    DropTimer,
    Execute,
    HoldChild,
    OutboxMessage,
    Publish,
    SetTimer,
    StartChild,
    Stop,
    StopChild,
)
from pointsman.engine.data import Data
from pointsman.engine.decide.dispatch import decide
from pointsman.engine.decide.entry import outstanding
from pointsman.engine.decide.human_task_answers import EDIT, edit_of_nothing
from pointsman.engine.digests import is_same, values_at
from pointsman.engine.events.steps import Event, InstantStepCompleted, StepStarted
from pointsman.engine.failures import Failure
from pointsman.engine.fold.dispatch import begin_decision, fold
from pointsman.engine.plan import Plan
from pointsman.engine.reports import (
    CancelRequested,
    ChildEnded,
    DeliveryConfirmed,
    EventReceived,
    GateAnswered,
    Report,
    Start,
    TimerFired,
    ToolCallsProposed,
    WorkDone,
    WorkerMissing,
    WorkerOffered,
    WorkFailed,
)
from pointsman.engine.state import ExecutionState, GateState, ParallelFrame, ScopeState, Status, StepState
from pointsman.engine.steps import Branch, Step, Write
from pointsman.errors import CallerError
from pointsman.expressions.environment import Environment
from pointsman.ports import Row
from pointsman.values import Json, JsonObject

DECISIONS_MAX: Final = 100_000
"""Maximum number of reports: more indicate an endless loop."""

CHECKED_ROWS: Final = 8
CHECKED_SHARE: Final = 0.2
"""After this row the distance between checks grows: folding all rows after each one costs the square of their
number.
"""

CRASHED_ROWS: Final = 40
"""After this row crashes become rarer, in proportion to the number of rows that each of them folds again."""

GHOST: Final = "a zombie was here"
"""The result of every duplicate executor: it must never be accepted."""

ENDS: Final = (WorkDone, WorkFailed, ToolCallsProposed, ChildEnded, GateAnswered, TimerFired, DeliveryConfirmed)
ANSWERS: Final = (*ENDS, WorkerMissing, WorkerOffered)
"""Reports that are sent again when their command is issued again."""

ONCE: Final = (*ENDS, Start, CancelRequested)
"""Reports that have no effect when they are sent a second time."""

NEEDS: Final = "tool:elsewhere"
"""The missing part that leaves an attempt to another worker."""

Work: TypeAlias = Callable[[Execute], "WorkDone | WorkFailed | ToolCallsProposed"]
Answer: TypeAlias = Callable[[Step, GateState], "GateAnswered | None"]
Child: TypeAlias = Callable[[StartChild], ChildEnded]


class SimulationResult(NamedTuple):
    """The outcome of a simulated execution."""

    status: Status
    output: Json
    rows: tuple[Row, ...]
    state: ExecutionState

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(event for row in self.rows for event in row.events)

    @property
    def steps(self) -> tuple[Step, ...]:
        """Return every step in the order of their starts."""
        return tuple(event.step for event in self.events if isinstance(event, StepStarted | InstantStepCompleted))

    @property
    def path(self) -> tuple[str, ...]:
        """Return the nodes of the steps in the order of their starts."""
        return tuple(step.node for step in self.steps)


class LawBroken(AssertionError):
    """The engine violated an invariant. The message names it and the row."""


@dataclass(slots=True)
class PendingCommands:
    """Commands that the simulated world has not answered yet."""

    work: dict[Step, Execute] = field(default_factory=dict[Step, Execute])
    gates: dict[Step, None] = field(default_factory=dict[Step, None])
    children: dict[tuple[Step, int], StartChild] = field(default_factory=dict[tuple[Step, int], StartChild])
    timers: dict[str, float] = field(default_factory=dict[str, float])
    orders: dict[str, OutboxMessage] = field(default_factory=dict[str, OutboxMessage])

    def take(self, command: Command) -> None:
        match command:
            case Execute():
                self.work[command.step] = command
            case Stop():
                self.work.pop(command.step, None)
            case AnnounceGate():
                self.gates[command.step] = None
            case StartChild():
                self.children[command.step, command.call] = command
            case HoldChild():
                pass  # a result that is already under way may still arrive
            case StopChild():
                self.children.pop((command.step, command.call), None)
                self.orders[command.order] = command
            case SetTimer():
                self.timers[command.timer] = command.at
            case DropTimer():
                self.timers.pop(command.timer, None)
            case Publish():
                self.orders[command.order] = command


def echo(command: Execute) -> WorkDone:
    """Return the name of the step as its result: the same in every schedule."""
    return WorkDone(step=command.step, attempt=command.attempt, result=str(command.step))


def first_option(step: Step, gate: GateState) -> GateAnswered:
    """Answer as people who always choose the first option, one after the other."""
    person = f"person{len(gate.votes) + 1}"
    action = str(gate.options[0]["value"])
    data: Json = None
    if gate.about == "client":
        data = {str(call.number): call.name for call in gate.calls}
    elif action == EDIT and gate.editable:
        data = edit_of_nothing(gate)
    return GateAnswered(step=step, action=action, data=data, by=person, gate=gate.id)


def mirror(command: StartChild) -> ChildEnded:
    """Return the input as the output of a child."""
    return ChildEnded(step=command.step, attempt=command.attempt, output=command.input, call=command.call)


class Simulation:
    """The simulation of one execution of a plan. The same arguments give the same rows."""

    def __init__(
        self,
        plan: Plan,
        seed: int,
        *,
        chance_of_duplicate: float = 0.0,
        chance_of_crash: float = 0.0,
        chance_of_zombie: float = 0.0,
        chance_of_missing: float = 0.0,
        work: Work = echo,
        answer: Answer = first_option,
        child: Child = mirror,
        checked: bool = False,
    ) -> None:
        """`chance_of_crash`: for each of the first rows; a crash folds all rows, and becomes rarer as they grow.

        `chance_of_missing`: how often a process lacks what an attempt needs, and leaves it to another worker.

        `checked`: check the invariants after each of the first rows, then at growing distances, and at the end.
        """
        self.plan = plan
        self.random = Random(seed)
        self.seed = seed
        self.chance_of_duplicate = chance_of_duplicate
        self.chance_of_crash = chance_of_crash
        self.chance_of_zombie = chance_of_zombie
        self.chance_of_missing = chance_of_missing
        self.work, self.answer, self.child = work, answer, child
        self.checked = checked
        self._check_at = 1
        self.state = ExecutionState("simulated")
        self._follower = ExecutionState("simulated")
        """Folds the rows as they are written, without deciding."""
        self.rows: list[Row] = []
        self.asked = PendingCommands()
        self.reports: list[Report] = []
        self.now = 1_000_000.0
        self.told: dict[str, int] = {}
        """Deliveries of each outbox message: more than one only after a crash."""
        waits = [node.action for node in plan.nodes.values() if isinstance(node.action, WaitAction)]
        self.names = sorted({str(wait.event(Environment({}))) for wait in waits if wait.event is not None})
        """Names of the events for which nodes wait."""
        self.at_rest: Callable[[], Report | None] = lambda: None
        """Called when nothing is outstanding; returns what happens next. None: nothing."""

    def run(self, input: JsonObject | None = None) -> SimulationResult:
        """Start, and run until it has ended or waits for something that will not come."""
        self.tell(Start(input=input or {}, seed=self.seed))
        return self.go_on()

    def run_rows(self, input: JsonObject, rows: int) -> SimulationResult:
        """Start, and stop after this number of rows."""
        self.tell(Start(input=input, seed=self.seed))
        while len(self.rows) < rows and (report := self._next()) is not None:
            self.tell(report)
        return self.outcome

    def go_on(self) -> SimulationResult:
        """Let the world answer until it has no more reports."""
        for _ in range(DECISIONS_MAX):
            report = self._next()
            if report is None:
                if self.checked:
                    self._follower = ExecutionState(self.state.id)
                    self.check()
                return self.outcome
            self.tell(report)
            self._disturb()
        raise LawBroken(f"not over after {DECISIONS_MAX} reports")

    @property
    def outcome(self) -> SimulationResult:
        """Return the present outcome."""
        return SimulationResult(self.state.status, self.state.outcome.output, tuple(self.rows), self.state)

    def tell(self, report: Report) -> None:
        """Deliver one report. A refused report has no effect."""
        before = len(self.rows)
        try:
            decision = decide(self.plan, self.state, report, self.now)
        except CallerError:
            if self.state.seq != before:
                raise LawBroken(f"a refused report counted as row {self.state.seq}") from None
            return
        if not decision.events:
            return
        chance_of_crash = self.chance_of_crash / 2 * min(1.0, CRASHED_ROWS / self.state.seq)
        if self._happens(chance_of_crash):
            self.crash()  # before the row was written: the commands are issued again
            if not isinstance(report, ANSWERS):
                self.tell(report)
            return
        self.rows.append(stored(Row(self.state.seq, self.state.at, decision.events, cause_of(report, decision.events))))
        self.reports.append(report)
        if self.state.seq != len(self.rows):
            raise LawBroken(f"row {len(self.rows)} is numbered {self.state.seq}")
        for command in decision.commands:
            self.asked.take(command)
        if self.checked and len(self.rows) >= self._check_at:
            self.check()
            more = 0 if len(self.rows) < CHECKED_ROWS else int(CHECKED_SHARE * len(self.rows))
            self._check_at = len(self.rows) + 1 + more
        if self._happens(chance_of_crash):
            self.crash()

    # The world

    def _next(self) -> Report | None:
        if self.state.ended or self.state.status == "interrupted":
            asks = self.state.limits.escalation_gate if self.state.awaits_escalation else None
            return self._delivered() or (self._answered(asks) if asks is not None else None) or self.at_rest()
        choices: list[Callable[[], Report | None]] = []
        choices += [lambda command=command: self._worked(command) for command in self.asked.work.values()]
        choices += [lambda command=command: self._child_ended(command) for command in self.asked.children.values()]
        choices += [lambda step=step: self._answered(step) for step in self.asked.gates]
        if self.state.status == "running":
            choices += [lambda step=step: self._offered(step) for step in self.state.steps_without_worker]
        choices += [self._delivered]
        self.random.shuffle(choices)
        for ask in choices:
            report = ask()
            if report is not None:
                return report
        if self._happens(self.chance_of_duplicate) and (early := self._early()) is not None:
            return early
        return self._event() or self._time_passes() or self.at_rest()

    def _worked(self, command: Execute) -> Report:
        del self.asked.work[command.step]
        if self._happens(self.chance_of_missing):
            lacks = Failure(code="unknown-tool", message="it is elsewhere", needs=NEEDS)
            return WorkerMissing(step=command.step, attempt=command.attempt, failure=lacks)
        return self.work(command)

    def _offered(self, step: Step) -> Report:
        """Offer a worker that has what the step waits for."""
        return WorkerOffered(step=step, attempt=self.state.steps[step].attempt)

    def _child_ended(self, command: StartChild) -> Report:
        del self.asked.children[command.step, command.call]
        return self.child(command)

    def _delivered(self) -> Report | None:
        """Confirm some of the deliveries; a receiver recognises a repeated message by its name."""
        if not self.asked.orders:
            return None
        names = self.random.sample([*self.asked.orders], self.random.randint(1, len(self.asked.orders)))
        for name in names:
            self.told[name] = self.told.get(name, 0) + 1
            del self.asked.orders[name]
        return DeliveryConfirmed(orders=tuple(names))

    def _answered(self, step: Step) -> Report | None:
        at = self.state.steps.get(step)
        if at is None or at.gate is None:
            return None
        return self.answer(step, at.gate)

    def _early(self) -> Report | None:
        """Send an event to this execution before or while steps wait for it."""
        buffered = {event.name for event in self.state.events.buffered.values()}
        names = [name for name in self.names if name not in buffered]
        if not names:
            return None
        name = self.random.choice(names)
        return EventReceived(name=name, data=name, key=f"{name}:{len(self.rows)}", keeps=True)

    def _event(self) -> Report | None:
        awaited = sorted(at.event for at in self.state.steps.values() if at.event is not None)
        return EventReceived(name=awaited[0], data=awaited[0]) if awaited else None

    def _time_passes(self) -> Report | None:
        if not self.asked.timers:
            return None
        timer = min(self.asked.timers, key=lambda name: (self.asked.timers[name], name))
        self.now = max(self.now, self.asked.timers.pop(timer))
        return TimerFired(timer=timer)

    # Faults

    def _happens(self, chance: float) -> bool:
        return chance > 0 and self.random.random() < chance

    def _disturb(self) -> None:
        repeatable = [r for r in self.reports if isinstance(r, ONCE) or (isinstance(r, EventReceived) and r.key)]
        if repeatable and self._happens(self.chance_of_duplicate):
            self._must_decide_nothing(self.random.choice(repeatable))
        if self._happens(self.chance_of_zombie):
            steps = [(at.step, at.attempt) for at in self.state.steps.values()]
            over = [r for r in self.reports if isinstance(r, WorkDone | WorkFailed | ChildEnded)]
            repeatable = [(r.step, r.attempt) for r in over if not (isinstance(r, ChildEnded) and r.call)]
            if steps or repeatable:
                step, attempt = self.random.choice([(step, attempt - 1) for step, attempt in steps] + repeatable)
                self._must_decide_nothing(WorkDone(step=step, attempt=attempt, result=GHOST))

    def _must_decide_nothing(self, stale: Report) -> None:
        """Send a report again, or one that no command requested."""
        try:
            decision = decide(self.plan, self.state, stale, self.now)
        except CallerError:
            return
        if decision.events:
            raise LawBroken(f"a stale report decided {decision.events}: {stale}")

    def crash(self) -> None:
        """Crash the process; the rows remain."""
        self.state = refolded(self.state.id, self.rows)
        self.ask_again()

    def ask_again(self) -> None:
        """Hand over to a new process, which only has the outstanding commands."""
        self.asked = PendingCommands()
        for command in outstanding(self.plan, self.state):
            self.asked.take(command)

    # Invariants

    def check(self) -> None:
        """Check that the rows fold to the state, and that outstanding and unanswered commands agree. Raises
        `LawBroken`.
        """
        again = self._follower
        fold_rows(again, self.rows[again.seq :])
        for at in self.state.steps.values():
            if at.gate is not None and not is_same([*at.gate.values], [*values_at(at, at.gate.editable)]):
                raise LawBroken(f"the gate of {at.step} shows {at.gate.values} of {at.gate.editable}, not the data")
        if not are_alike(again, self.state) and describe(again) != describe(self.state):
            raise LawBroken(f"folding the rows gives another state:\n{differences(again, self.state)}")
        pending = PendingCommands()
        for command in outstanding(self.plan, self.state):
            pending.take(command)
        open_ = {at.step for at in self.state.steps.values() if at.gate is not None}
        self.asked.gates = {step: None for step in self.asked.gates if step in open_}  # nobody tells people
        stopped = self.state.ended or self.state.status == "interrupted"
        if pending.orders != self.asked.orders or (pending != self.asked and not stopped):
            raise LawBroken(f"outstanding is {pending}, asked and not answered is {self.asked}")


_rows: Final = msgspec.json.Decoder(Row)


def stored(row: Row) -> Row:
    """Return the row as a store returns it."""
    return _rows.decode(msgspec.json.encode(row))


def refolded(execution: str, rows: list[Row]) -> ExecutionState:
    """Return the state folded from rows."""
    state = ExecutionState(execution)
    fold_rows(state, rows)
    return state


def fold_rows(state: ExecutionState, rows: Sequence[Row]) -> None:
    """Continue with rows that follow."""
    for row in rows:
        begin_decision(state, row.seq, row.at)
        for event in row.events:
            fold(state, event)


Descriptions: TypeAlias = "dict[int, Description]"
"""By `id`, while the state holds them."""
Pairs: TypeAlias = set[tuple[int, int]]
"""Pairs of lists already compared, by `id`."""
Description: TypeAlias = "None | bool | int | float | str | list[Description] | dict[str, Description]"

AS_IT_IS: Final = frozenset({type(None), bool, int, float, str})

FLAT: Final = frozenset({Step, Branch})
"""Identities: they hold no values of the data."""

NOT_KEPT: Final = frozenset({"row", "data_bytes_max", "progress"})
"""Fields that are not described."""
NOT_COMPARED: Final = frozenset({"row", "data_bytes_max", "seen"})
"""Fields that the quick comparison leaves out."""


def describe(state: ExecutionState) -> dict[str, Description]:
    """Return the whole state with the same keys in the same order, whatever happened first."""
    found = _plain(state, {}, inside=False)
    assert isinstance(found, dict)
    return found


def _plain(value: object, memo: Descriptions, *, inside: bool = True) -> Description:
    """`inside`: steps, scopes and parallels are named where they are referred to, and described in full once.

    `memo`: lists described before, so that a list nested twice in itself at many levels stays cheap.
    """
    # Simulations compare states after every row: most values are of one of these two types.
    if type(value) in AS_IT_IS:
        return cast("Description", value)
    if type(value) is dict:
        return _sorted(cast("dict[object, object]", value), memo)
    match value:
        case str():
            return value
        case Data():
            return _plain(value.root, memo)
        case StepState() | ScopeState() | ParallelFrame() if inside:
            return f"{type(value).__name__} {value.step if not isinstance(value, ScopeState) else value.key}"
        case Mapping():
            return _sorted(cast("Mapping[object, object]", value), memo)
        case list() | tuple():
            return _listed(cast("Sequence[object]", value), memo)
        case set() | frozenset():
            return [*sorted(str(one) for one in cast("set[object]", value))]
        case Struct():
            return {name: _full(getattr(value, name), memo) for name in value.__struct_fields__ if name not in NOT_KEPT}
        case _ if is_dataclass(value):
            return {one.name: _full(getattr(value, one.name), memo) for one in fields(value)}
        case _:
            return str(value)


def _listed(values: Sequence[object], memo: Descriptions) -> Description:
    description = memo.get(id(values))
    if description is None:
        description = memo[id(values)] = [_plain(one, memo) for one in values]
    return description


def _full(value: object, memo: Descriptions) -> Description:
    """Return a field of the state; the tables of steps, scopes and parallels are described in full."""
    match value:
        case dict():
            return _sorted(cast("dict[object, object]", value), memo, inside=False)
        case list():
            return [_plain(one, memo, inside=False) for one in cast("list[object]", value)]
        case _:
            return _plain(value, memo)


def _sorted(table: Mapping[object, object], memo: Descriptions, *, inside: bool = True) -> Description:
    pairs = sorted(table.items(), key=lambda item: str(item[0]))
    return {str(key): _plain(one, memo, inside=inside) for key, one in pairs}


def are_alike(one: ExecutionState, other: ExecutionState) -> bool:
    """Return whether two states certainly have the same description. False means unknown, as for a list in place of a
    tuple.

    Costs a tenth of describing both. Simulations spend most of their time here: hence the plain loops.
    """
    return _structs_alike(one, other, set())


def _alike(one: Any, other: Any, pairs: Pairs, *, inside: bool = True) -> bool:
    """Compare two values that are not the same object."""
    kind = one.__class__
    if kind in AS_IT_IS:
        return one == other
    if kind is not type(other):
        return False
    if kind is Write:
        same = one.path == other.path and one.reduce == other.reduce and one.whole == other.whole
        return same and (one.value is other.value or _alike(one.value, other.value, pairs))
    if kind in FLAT:
        return one == other
    if kind is dict:
        return _tables_alike(one, other, pairs, inside=True)
    if kind is Data:
        return one.root is other.root or _alike(one.root, other.root, pairs)
    if issubclass(kind, list | tuple):
        return _lists_alike(one, other, pairs, inside=True)
    if inside and issubclass(kind, StepState | ScopeState | ParallelFrame):
        return _plain(one, {}) == _plain(other, {})
    if issubclass(kind, Struct):
        return _structs_alike(one, other, pairs)
    return one == other


def _structs_alike(one: Struct, other: Struct, pairs: Pairs) -> bool:
    """Tables and lists in fields hold steps, scopes and parallels in full."""
    for name in one.__struct_fields__:
        value, others = getattr(one, name), getattr(other, name)
        if value is others or name in NOT_COMPARED:
            continue
        kinds: Any = type(value), type(others)
        if kinds == (dict, dict):
            alike = _tables_alike(value, others, pairs, inside=False)
        elif kinds == (list, list):
            alike = _lists_alike(value, others, pairs, inside=False)
        else:
            alike = _alike(value, others, pairs)
        if not alike:
            return False
    return True


def _tables_alike(one: dict[object, object], other: dict[object, object], pairs: Pairs, *, inside: bool) -> bool:
    if one.keys() != other.keys():
        return False
    for key, value in one.items():
        others = other[key]
        if value is not others and not _alike(value, others, pairs, inside=inside):
            return False
    return True


def _lists_alike(one: Sequence[object], other: Sequence[object], pairs: Pairs, *, inside: bool) -> bool:
    """Skip pairs that were compared before, so that shared nested lists stay cheap."""
    pair = (id(one), id(other))
    if pair in pairs:
        return True
    pairs.add(pair)
    if len(one) != len(other):
        return False
    for value, others in zip(one, other, strict=True):
        if value is not others and not _alike(value, others, pairs, inside=inside):
            return False
    return True


def differences(one: ExecutionState, other: ExecutionState) -> str:
    """Return the differences of two states, one line per position."""
    return "\n".join(_differences("state", describe(one), describe(other)))


def _differences(place: str, one: Description, other: Description) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted({*one, *other}):
            yield from _differences(f"{place}.{name}", one.get(name), other.get(name))
    elif one != other:
        yield f"{place}: {one} ≠ {other}"
