"""The state of one execution: `fold` builds it from events, `decide` reads it. One owner; changed in place.

    ExecutionState
      ├─ steps             every step that is not settled (running, at a gate, in a timer, with a child, a parallel)
      ├─ parallel_frames   parallels whose branches are not all settled
      ├─ timers            timers that have not fired
      ├─ scopes            () and one per open branch: data, latest results, visits, parked arrivals, loops
      └─ setup, row, counters, limits, pause, events, outcome     parts that belong together

All tokens of the execution are here: unsettled steps, parked arrivals, held arrivals. Without a token it has ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from pointsman.engine.actions import CallVerdict, GateAbout, GateApprovers, ProposedCall, Vote
from pointsman.engine.commands import OutboxMessage, Phase
from pointsman.engine.data import Data, WriteLog
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall, Usage
from pointsman.engine.steps import Branch, BufferedEvent, Lineage, LineagePath, Scope, Step, Write
from pointsman.values import Json, JsonObject

TerminalKey: TypeAlias = tuple[str, Scope, LineagePath]
"""Where a token ended: node, scope and, for steps with a lineage, its path."""

Status: TypeAlias = Literal[
    "pending", "running", "waiting", "paused", "completed", "failed", "cancelled", "interrupted"
]
ENDED: frozenset[Status] = frozenset({"completed", "failed", "cancelled"})
HALTED: frozenset[Status] = frozenset({"paused", "interrupted"})
"""A plain attribute because it is read for every step: a property costs twice as much."""


class StepOutput(Struct, frozen=True, gc=False):
    """The output of a step, for the steps that control reaches next."""

    value: Json
    lineage: Lineage = ()
    caller: str | None = None
    pending: tuple[ToolCall, ...] = ()


class TerminalValue(Struct, frozen=True, gc=False):
    """The value of an ended token; of several visits the one with the greatest lineage counts, independent of
    timing.
    """

    lineage: Lineage
    visit: int
    value: Json


class PendingArrival(Struct, frozen=True, gc=False):
    """An arrival that is parked at a node, or held while the execution is halted."""

    node: str
    scope: Scope
    edge: str
    incoming: StepOutput
    starts_node: bool = False
    """Whether it starts the node on resumption without waiting for other arrivals."""


class GateState(Struct, gc=False):
    """An open gate: what it shows, and the votes so far."""

    id: str
    message: str
    options: tuple[JsonObject, ...]
    form: JsonObject | None
    displayed: Json
    editable: tuple[tuple[str | int, ...], ...]
    approvers: GateApprovers | None
    about: GateAbout = "node"
    calls: tuple[ProposedCall, ...] = ()
    item: str | None = None
    round: int | None = None
    opened: float = 0.0
    deadline: float | None = None
    """Deadline of the present approvers. Both times are unix seconds."""
    level: int = 0
    """Number of escalations so far."""
    votes: dict[str, Vote] = {}
    """The vote of each person, until an action reaches its quorum."""
    keyed_votes: dict[str, tuple[str, str, Json]] = {}
    """Every vote with an idempotency key, also replaced ones: key -> (person, action, data)."""
    delegations: dict[str, str] = {}
    """Delegated rights: from person to delegate."""
    delegates: dict[str, str] = {}
    """Received rights: from delegate to person."""
    messages: dict[str, str] = {}
    display_name: Json = None
    values: tuple[Json, ...] = ()
    """The present values of the editable fields."""
    digest: str = ""
    """Digest of the contents; it changes with them, and an answer carries it."""
    number: int = 0
    """Number of nodes visited before it opened, for `_currentStep` in its texts."""
    changed: bool = False
    """Whether its contents have changed since it opened."""


class WorkflowCall(Struct, gc=False):
    """A tool call of an attempt that a sub-workflow performs."""

    call: ProposedCall
    usage: Usage | None = None
    """Usage of the sub-workflow that is counted so far."""


class StepState(Struct, eq=False, gc=False):
    """A step that is not settled."""

    step: Step
    scope: ScopeState
    incoming: StepOutput
    """The output that reached the step; a transparent node passes it on."""
    input: JsonObject | None = None
    messages: int = 0
    attempt: int = 1
    phase: Phase = "work"
    is_running: bool = True
    """Whether an executor works on it."""
    failures: int = 0
    reasks: int = 0
    advices: int = 0
    advised: JsonObject | None = None
    """The question to a model in phase `recover`."""
    failure: Failure | None = None
    gate: GateState | None = None
    event: str | None = None
    child: bool = False
    child_usage: Usage | None = None
    """Usage of its child that is counted so far."""
    workflow_calls: dict[int, WorkflowCall] | None = None
    """The tool calls of this attempt that child executions perform, by effect number; no work runs meanwhile."""
    needs: str = ""
    """The part that a worker needs for it, as in `Failure.needs`; no work runs until such a worker offers itself."""
    unapproved: bool = False
    """Whether it still lacks the approval to start."""
    verdicts: dict[int, CallVerdict] | None = None
    """Verdicts on the tool calls of this attempt, by effect number."""
    timers: tuple[str, ...] = ()
    arrivals: tuple[PendingArrival, ...] = ()
    """The merged arrivals that started it; they are parked again if the step is entered again."""

    @property
    def children(self) -> tuple[int, ...]:
        """Return the numbers of the calls that its sub-workflows perform; 0: the node's own work."""
        if self.workflow_calls is not None:
            return tuple(self.workflow_calls)
        return (0,) if self.child else ()


class BranchState(Struct, eq=False, gc=False):
    """The outcome of a settled branch, before the join."""

    outcome: Literal["arrived", "ended", "failed", "cancelled"]
    value: Json
    writes: Sequence[tuple[Write, Json]]
    """Writes in the order in which they apply. Empty unless the branch arrived or ended: partial writes are dropped."""
    nodes: dict[str, Json]
    failure: Failure | None = None


class JoinProgress(Struct, eq=False, gc=False):
    """Results of the counted branches so far, in branch order, for the test of a join."""

    settled: int = 0
    """Number of branches processed."""
    branches: list[int] = []
    results: list[Json] = []
    views: list[Json] = []


class ParallelFrame(Struct, eq=False, gc=False):
    """One visit of a parallel."""

    step: Step
    scope: ScopeState
    """The surrounding scope."""
    starts: tuple[str, ...]
    items: list[Json] | None
    keys: tuple[str, ...]
    item_name: str | None
    incoming: StepOutput
    """The output that reached the parallel, and its branches."""
    base: JsonObject
    """The data when it opened: the base of every branch."""
    base_nodes: Mapping[str, Json]
    joined: bool
    total: int
    """Number of branches."""
    next: int = 0
    """The first branch that has not started."""
    settled: dict[int, BranchState] = {}
    arrived: int = 0
    running: int = 0
    detached: bool = False
    """Whether its join has fired; branches that still run have no effect outside."""
    progress: JoinProgress | None = None
    """Input of the join's test so far, so that the next test adds new branches only; None: not tested yet."""

    def branch_scope(self, branch: int) -> Scope:
        return (*self.step.scope, Branch(self.step.node, self.step.visit, branch, self.step.lineage))


class LoopState(Struct, eq=False, gc=False):
    """An entry of a loop node whose rounds are not over."""

    round: int = 0
    items: list[Json] | None = None
    item_name: str | None = None
    previous: Json = None
    failure: Failure | None = None
    """The skipped failure that ended the last round early."""


class ScopeState(Struct, eq=False, gc=False):
    """The data of the execution itself, or of one open branch."""

    key: Scope
    parent: ScopeState | None
    opening: ParallelFrame | None
    data: Data
    names: dict[str, Json]
    """Reserved names and `as` names for every expression inside."""
    base_nodes: Mapping[str, Json]
    item_key: str | None = None
    nodes: dict[str, Json] = {}
    displayed: dict[str, tuple[Lineage, int]] = {}
    """The visit shown in `nodes`, for nodes with concurrent visits."""
    writes: list[tuple[Write, Json, Lineage]] = []
    """Writes of a branch for the surrounding scope; empty in the outermost scope."""
    visits: dict[tuple[str, Lineage], int] = {}
    parked: dict[str, dict[tuple[str, LineagePath], PendingArrival]] = {}
    """Parked arrivals per node, by edge and lineage path."""
    open_steps: dict[str, int] = {}
    """Unsettled steps per node."""
    tokens: int = 0
    """Number of unsettled steps and parked arrivals; inner scopes count as the step of their parallel."""
    loops: dict[str, LoopState] = {}
    write_log: WriteLog = field(default_factory=WriteLog)
    """Log of writes and writers since control has split here."""


class Timer(Struct, eq=False, gc=False):
    at: float
    purpose: str
    step: Step | None


class UsageTotal(Struct, frozen=True, eq=False, gc=False):
    """Replaced at each change, so that identity shows whether usage has changed."""

    input_tokens: int = 0
    output_tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    cost_usd: float | None = None
    unpriced_calls: int = 0
    """Calls of models whose price is unknown."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    free_calls: int = 0
    scripted: bool = False


class UndoRecord(Struct, frozen=True, gc=False):
    """A completed step that can be undone."""

    step: Step
    by: str
    """The node that undoes it."""
    input: JsonObject | None
    result: Json
    names: Mapping[str, Json]
    """Key of the item of its branch."""
    item_key: str | None


REMEMBERED: Final = 64
"""Longer cycles are left to the limits of steps and visits."""


class Repetition(Struct, frozen=True, gc=False):
    """Hash of an agent's input and answer, the number of repetitions, and a hash of the data at that time."""

    mark: int
    times: int
    seen: int = 0


class StallGuard(Struct, eq=False, gc=False):
    """The latest different answers of the agents of a scope, the latest last. Folded for stall detection.

    A: x   B: u   A: x   B: u   A: x   B: u        nothing new since the first `u`: B repeats it for the third time
    A: x   B: u   A: x   B: v   A: x   B: w        B answers something new each time: no stall
    """

    news: int = 0
    """Number of new answers so far."""
    repetitions: dict[tuple[str, int], tuple[int, int, int]] = {}
    """By node and hash: repetitions since the last new answer, a hash of the data then, and the number of that
    answer.
    """

    def times(self, node: str, mark: int) -> Repetition:
        """Return the repetition that this answer would be; 0 times if it is new, or the first since the last new
        answer.
        """
        times, round_seen, news = self.repetitions.get((node, mark), (0, 0, 0))
        return Repetition(mark, times, round_seen) if news == self.news else Repetition(mark, 0)


def record_repetition(guards: dict[Scope, StallGuard], step: Step, repetition: Repetition) -> None:
    """Fold: record the answer of an agent."""
    guard = guards.get(step.scope)
    if guard is None:
        guard = guards[step.scope] = StallGuard()
    times = guard.repetitions.pop((step.node, repetition.mark), None)
    if times is None:
        guard.news += 1
        if len(guard.repetitions) >= REMEMBERED:
            del guard.repetitions[next(iter(guard.repetitions))]
    guard.repetitions[step.node, repetition.mark] = (repetition.times, repetition.seen, guard.news)


class Breakpoints(Struct, eq=False, gc=False):
    """Breakpoint state: the steps before which an execution paused."""

    passed_steps: dict[Step, None] = {}
    """Steps before which it has paused; it does not pause there again."""
    at: Step | None = None
    """The step before which it paused last; None: a caller paused it."""
    stepping: bool = False
    """Whether it runs only until the next step."""

    def stop(self, before: Step | None) -> None:
        """Fold: record a pause, before this step if a breakpoint caused it."""
        self.stepping, self.at = False, before
        if before is not None:
            self.passed_steps[before] = None


class Compensation(Struct, eq=False, gc=False):
    """State of a compensation: the execution has failed (`failure`) or was cancelled, and undoes its steps."""

    failure: Failure | None
    step: Step | None
    reason: str
    by: str
    current: UndoRecord | None = None
    undone: list[Step] = []
    failed: list[tuple[Step, Failure]] = []


class ExecutionSetup(Struct, eq=False, gc=False):
    """The workflow of an execution, its input and its origin. Set by its start; forks and migrations change it."""

    workflow: str = ""
    version: str = ""
    definition: str = ""
    """Digest of the definition."""
    options: JsonObject = {}
    input: JsonObject = {}
    config: JsonObject = {}
    session: str | None = None
    parent: str | None = None
    origin: str | None = None
    """The execution it was forked from."""
    seed: int = 0
    attempt: int = 1
    started_at: float = 0.0


class RowNotes(Struct, eq=False, gc=False):
    """Changes of the present row; emptied when the next row begins."""

    outputs: dict[Step, StepOutput] = {}
    """Outputs of the steps that settled."""
    changed_gates: dict[Step, None] = {}
    """Gates that opened, changed or closed."""
    answered_gates: dict[Step, GateState] = {}
    """Gates that got an answer, as they were then."""
    failures: dict[Step, StepState | PendingArrival] = {}
    """Failures: the step, or the arrival it would have sent."""


class EventInbox(Struct, eq=False, gc=False):
    """Outside events: the steps that wait for them, and those that arrived early."""

    waiters: dict[str, int] = {}
    """Number of steps that wait for an event, by its name."""
    seen_keys: dict[str, None] = {}
    """Keys of recently received events."""
    buffered: dict[int, BufferedEvent] = {}
    """Events that arrived before a step waited for them, by number, oldest first."""
    last_number: int = 0
    """The number of the last buffered event."""


class Counters(Struct, eq=False, gc=False):
    """Sums over the whole execution, on which limits are checked."""

    steps: int = 0
    """Steps taken so far."""
    visited_nodes: set[str] = set()
    messages: int = 0
    """Messages in the conversation."""
    running_steps: int = 0
    """Number of steps that executors work on."""
    worked_s: float = 0.0
    """Working time up to `working_since`."""
    working_since: float = 0.0
    data_bytes_max: int | None = None
    """An upper bound of the data's size; None: not measured since the state was rebuilt."""


class LimitStatus(Struct, eq=False, gc=False):
    """Limits: raised ones, the one that interrupted the execution, and what follows from it."""

    raised: dict[str, float] = {}
    """Raised limits, by name."""
    interruption: str | None = None
    """The limit that interrupted the execution."""
    escalation_gate: Step | None = None
    """The gate at which people decide whether the interrupted execution may continue."""
    escalated_at_step: int | None = None
    """The step count when the fallback node took over; None: it has not."""
    budget_stopped: list[Step] = []
    """Steps whose attempts a budget stopped half-way; they are repeated on resumption."""
    stall_guards: dict[Scope, StallGuard] = {}
    """Recent answers of agents, per scope."""


class PauseStatus(Struct, eq=False, gc=False):
    """The last pause: its caller and its breakpoint."""

    by: str = ""
    """The caller who paused it last."""
    breakpoints: Breakpoints = field(default_factory=Breakpoints)


class Outcome(Struct, eq=False, gc=False):
    """The values of ended tokens, and the result of an ended execution."""

    terminal_values: dict[TerminalKey, TerminalValue] = {}
    """Values of `end` nodes."""
    branch_results: dict[TerminalKey, TerminalValue] = {}
    """The last values of ended branches."""
    output: Json = None
    failure: Failure | None = None
    failed_work: list[StepState | PendingArrival] = []
    """The failed steps and arrivals of a failed execution, for a retry."""
    closes_session: bool = False
    """Whether the end of the execution closed the session."""


class ExecutionState(Struct, eq=False, gc=False):
    """The state of one execution. Empty until `ExecutionStarted` is folded."""

    id: str
    status: Status = "pending"
    seq: int = 0
    """Number of the last folded row."""
    at: float = 0.0
    """Time of that row's decision, unix seconds."""
    setup: ExecutionSetup = field(default_factory=ExecutionSetup)
    scopes: dict[Scope, ScopeState] = {}
    steps: dict[Step, StepState] = {}
    parallel_frames: dict[Step, ParallelFrame] = {}
    held_arrivals: list[PendingArrival] = []
    timers: dict[str, Timer] = {}
    gates: dict[Scope, dict[Step, None]] = {}
    """The open gates of each scope that has any."""
    steps_without_worker: dict[Step, None] = {}
    """Steps that wait for a worker."""
    row: RowNotes = field(default_factory=RowNotes)
    counters: Counters = field(default_factory=Counters)
    usage: UsageTotal = field(default_factory=UsageTotal)
    limits: LimitStatus = field(default_factory=LimitStatus)
    pause: PauseStatus = field(default_factory=PauseStatus)
    events: EventInbox = field(default_factory=EventInbox)
    outbox: dict[str, OutboxMessage] = {}
    """Messages to other executions without confirmed delivery, also after the end of the execution."""
    outcome: Outcome = field(default_factory=Outcome)
    undo_log: list[UndoRecord] = []
    """Steps that can be undone, in the order of their completion."""
    compensation: Compensation | None = None
    warning_keys: set[str] = set()
    """Keys of warnings that are raised only once."""

    @property
    def root(self) -> ScopeState:
        return self.scopes[()]

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @property
    def open_gates(self) -> list[StepState]:
        """Return the steps with open gates, in order; none after the end of the execution."""
        return [] if self.ended else sorted((at for at in self.steps.values() if at.gate is not None), key=_step_of)

    @property
    def compensating(self) -> bool:
        """Return whether a compensation runs."""
        return self.compensation is not None and not self.ended

    @property
    def is_escalated(self) -> bool:
        """Return whether the fallback node has taken over."""
        return self.limits.escalated_at_step is not None

    @property
    def awaits_escalation(self) -> bool:
        """Return whether it is interrupted with an open escalation gate."""
        gate = self.limits.escalation_gate
        return gate is not None and self.status == "interrupted" and gate in self.steps

    @property
    def is_halted(self) -> bool:
        """Return whether arrivals are held instead of starting steps."""
        return self.status in HALTED


def _step_of(at: StepState) -> Step:
    return at.step


SCRIPTED_OPTION: Final = "scripted"
"""Option of executions that use the scripted model, as known at their start."""
SCRIPT_OPTION: Final = "script"
"""Option of executions started with a script: its digest."""


def is_scripted(state: ExecutionState) -> bool:
    """Return whether a script answers in an execution: known at its start, or because the scripted model or a
    scripted tool has answered, here or in a sub-workflow.
    """
    used = state.usage
    return bool(state.setup.options.get(SCRIPTED_OPTION)) or used.scripted or used.free_calls > 0


def status_of(state: ExecutionState) -> Status:
    """Return the status for callers.

    `waiting` is `running` with only gates, timers and events open, or `interrupted` with an open escalation gate.
    """
    status = state.status
    if status != "running":
        return "waiting" if state.awaits_escalation else status
    if state.counters.running_steps or not state.steps:
        return status
    for at in state.steps.values():
        if at.child or at.workflow_calls or at.is_running:
            return "running"
    return "waiting"
