"""The state of one execution: `fold` builds it from events, `decide` reads it. One owner; changed in place.

    ExecutionState
      ├─ steps             every step that is not settled (running, at a gate, in a timer, with a child, a parallel)
      ├─ parallel_frames   parallels whose branches are not all settled
      ├─ timers            timers that have not fired
      └─ scopes            () and one per open branch: data, latest results, visits, parked arrivals, loops

All tokens of the execution are here: unsettled steps, parked arrivals, held arrivals. Without a token it has ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct, field

from pointsman.engine.approvers import GateAbout, GateApprovers, Vote
from pointsman.engine.commands import OutboxMessage, Phase
from pointsman.engine.data import Data
from pointsman.engine.failures import Failure
from pointsman.engine.lineage import LineagePath
from pointsman.engine.partial_run import Breakpoints
from pointsman.engine.repetitions import StallGuard
from pointsman.engine.reports import ToolCall, Usage
from pointsman.engine.steps import Branch, Lineage, Scope, Step
from pointsman.engine.tool_calls import CallVerdict, ProposedCall
from pointsman.engine.write_log import WriteLog
from pointsman.engine.writes import BufferedEvent, Write
from pointsman.values import Json, JsonObject

TerminalKey: TypeAlias = tuple[str, Scope, LineagePath]
"""Where control ended: node, scope, and for steps that carry a thread the ways behind it."""

Status: TypeAlias = Literal[
    "pending", "running", "waiting", "paused", "completed", "failed", "cancelled", "interrupted"
]
ENDED: frozenset[Status] = frozenset({"completed", "failed", "cancelled"})
HALTED: frozenset[Status] = frozenset({"paused", "interrupted"})
"""Asked on the path of every step: a property costs twice as much."""


class StepOutput(Struct, frozen=True, gc=False):
    """The output of a step, for the steps that control reaches next."""

    value: Json
    lineage: Lineage = ()
    caller: str | None = None
    pending: tuple[ToolCall, ...] = ()


class TerminalValue(Struct, frozen=True, gc=False):
    """A value with which control ended somewhere; of several visits the latest counts, whichever was faster."""

    lineage: Lineage
    visit: int
    value: Json


class PendingArrival(Struct, frozen=True, gc=False):
    """An arrival that is parked at a node, or held while the execution stands still."""

    node: str
    scope: Scope
    edge: str
    incoming: StepOutput
    starts_node: bool = False
    """It starts the node when it goes on, whatever else could still come."""


class GateState(Struct):
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
    """When the present approvers time out. Both are unix seconds."""
    level: int = 0
    """How often it was escalated."""
    votes: dict[str, Vote] = {}
    """The vote of each person, while no action has enough votes."""
    delegations: dict[str, str] = {}
    """Delegated rights: from person to delegate."""
    delegates: dict[str, str] = {}
    """Received rights: from delegate to person."""
    messages: dict[str, str] = {}
    display_name: Json = None
    values: tuple[Json, ...] = ()
    """The present values of the editable fields."""
    digest: str = ""
    """Names what is asked and shown: it changes with them, and an answer carries it."""
    number: int = 0
    """How many nodes had been visited when it opened, for `_currentStep` in its texts."""
    changed: bool = False
    """What it shows is not what it showed when it opened."""


class WorkflowCall(Struct):
    """A tool call of an attempt that a sub-workflow carries out."""

    call: ProposedCall
    usage: Usage | None = None
    """What the sub-workflow has consumed so far; it is counted."""


class StepState(Struct, eq=False):
    """A step that is not settled."""

    step: Step
    scope: ScopeState
    incoming: StepOutput
    """The output that reached it; a transparent node passes it on."""
    input: JsonObject | None = None
    messages: int = 0
    attempt: int = 1
    phase: Phase = "work"
    is_running: bool = True
    """An executor owes a report."""
    failures: int = 0
    reasks: int = 0
    advices: int = 0
    advised: JsonObject | None = None
    """The question put to a model in phase `recover`."""
    failure: Failure | None = None
    gate: GateState | None = None
    event: str | None = None
    child: bool = False
    child_usage: Usage | None = None
    """What its child has consumed so far; it is counted."""
    workflow_calls: dict[int, WorkflowCall] | None = None
    """The tool calls of this attempt that child executions carry out, by effect number; no work runs meanwhile."""
    needs: str = ""
    """What a worker must have to perform it, as in `Failure.needs`; no work runs until such a worker offers itself."""
    unapproved: bool = False
    """It waits, or waited in vain, for the approval that it needs to begin."""
    verdicts: dict[int, CallVerdict] | None = None
    """What people decided about the tool calls of this attempt, by effect number."""
    timers: tuple[str, ...] = ()
    arrivals: tuple[PendingArrival, ...] = ()
    """The arrivals that had waited for each other and started it: should it be entered again, they arrive again."""

    @property
    def children(self) -> tuple[int, ...]:
        """The numbers of the calls that its sub-workflows carry out; 0: the one that is the work of the node."""
        if self.workflow_calls is not None:
            return tuple(self.workflow_calls)
        return (0,) if self.child else ()


class BranchState(Struct, eq=False, gc=False):
    """A branch whose outcome a join has not taken yet."""

    outcome: Literal["arrived", "ended", "failed", "cancelled"]
    value: Json
    writes: Sequence[tuple[Write, Json]]
    """In the order in which they count. Empty unless the branch arrived or ended: half a branch gives nothing."""
    nodes: dict[str, Json]
    failure: Failure | None = None


class JoinProgress(Struct, eq=False):
    """What the branches that count have brought so far, in branch order: what the test of a join looks at."""

    settled: int = 0
    """How many branches were looked at."""
    branches: list[int] = []
    results: list[Json] = []
    told: list[Json] = []


class ParallelFrame(Struct, eq=False):
    """One opening of a parallel."""

    step: Step
    scope: ScopeState
    """The scope around it."""
    starts: tuple[str, ...]
    items: list[Json] | None
    keys: tuple[str, ...]
    item_name: str | None
    incoming: StepOutput
    """What reached the parallel, and reaches its branches."""
    base: JsonObject
    """The data as it was when it opened: what every branch begins with."""
    base_nodes: Mapping[str, Json]
    joined: bool
    total: int
    """How many branches there are."""
    next: int = 0
    """The first branch that has not begun."""
    settled: dict[int, BranchState] = {}
    arrived: int = 0
    running: int = 0
    detached: bool = False
    """Its join has fired; what still runs inside reaches nothing outside."""
    progress: JoinProgress | None = None
    """What the join's test has seen, so that the next test looks at new branches only; None: not tested yet."""

    def branch_scope(self, branch: int) -> Scope:
        return (*self.step.scope, Branch(self.step.node, self.step.visit, branch, self.step.lineage))


class LoopState(Struct, eq=False):
    """An entry of a loop node whose rounds are not over."""

    round: int = 0
    items: list[Json] | None = None
    item_name: str | None = None
    previous: Json = None
    failure: Failure | None = None
    """What ended the last round early, where that is no reason to stop."""


class ScopeState(Struct, eq=False):
    """The execution itself, or one open branch."""

    key: Scope
    parent: ScopeState | None
    opening: ParallelFrame | None
    data: Data
    names: dict[str, Json]
    """The reserved and `as` names that every expression inside sees."""
    base_nodes: Mapping[str, Json]
    item_key: str | None = None
    nodes: dict[str, Json] = {}
    displayed: dict[str, tuple[Lineage, int]] = {}
    """Which visit `nodes` shows, of nodes that may be visited several times at once."""
    writes: list[tuple[Write, Json, Lineage]] = []
    """What a branch wrote, for the data around it; empty in the outermost scope."""
    visits: dict[tuple[str, Lineage], int] = {}
    parked: dict[str, dict[tuple[str, LineagePath], PendingArrival]] = {}
    """Arrivals that wait at a node, by edge and the ways behind them."""
    open_steps: dict[str, int] = {}
    """Unsettled steps per node."""
    tokens: int = 0
    """Unsettled steps and parked arrivals; inner scopes count as the step of their parallel."""
    loops: dict[str, LoopState] = {}
    write_log: WriteLog = field(default_factory=WriteLog)
    """Once control has split here: who wrote what."""


class Timer(Struct, eq=False):
    at: float
    purpose: str
    step: Step | None


class UsageTotal(Struct, frozen=True, eq=False):
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
    """A step that was done and can be undone."""

    step: Step
    by: str
    """The node that undoes it."""
    input: JsonObject | None
    result: Json
    names: Mapping[str, Json]
    """What its branch called its item."""
    item_key: str | None


class Compensation(Struct, eq=False):
    """The execution has failed (`failure`) or was cancelled, and undoes what it did."""

    failure: Failure | None
    step: Step | None
    reason: str
    by: str
    current: UndoRecord | None = None
    undone: list[Step] = []
    failed: list[tuple[Step, Failure]] = []


class ExecutionState(Struct, eq=False):
    """Empty until `ExecutionStarted` is folded."""

    id: str
    status: Status = "pending"
    seq: int = 0
    """The last row folded."""
    at: float = 0.0
    """When it was decided, unix seconds."""
    workflow: str = ""
    version: str = ""
    input: JsonObject = {}
    config: JsonObject = {}
    session: str | None = None
    parent: str | None = None
    origin: str | None = None
    """The execution it was forked from."""
    definition: str = ""
    options: JsonObject = {}
    seed: int = 0
    attempt: int = 1
    started_at: float = 0.0
    scopes: dict[Scope, ScopeState] = {}
    steps: dict[Step, StepState] = {}
    parallel_frames: dict[Step, ParallelFrame] = {}
    timers: dict[str, Timer] = {}
    gates: dict[Scope, dict[Step, None]] = {}
    """The open gates of each scope that has any."""
    held_arrivals: list[PendingArrival] = []
    event_waiters: dict[str, int] = {}
    """How many steps wait for an event, by its name."""
    seen_event_keys: dict[str, None] = {}
    """The keys of the events taken lately."""
    buffered_events: dict[int, BufferedEvent] = {}
    """Events that came before a step waited for them, by number: oldest first."""
    buffered_count: int = 0
    """The number of the last buffered event."""
    outbox: dict[str, OutboxMessage] = {}
    """Messages to other executions whose delivery is not confirmed; also of an execution that has ended."""
    step_outputs: dict[Step, StepOutput] = {}
    """The outputs of the steps settled in this row; emptied when the next row begins."""
    changed_gates: dict[Step, None] = {}
    """The gates that opened, changed or closed in this row; emptied likewise."""
    row_failures: dict[Step, StepState | PendingArrival] = {}
    """What failed in this row: the step, or the arrival it would have sent; emptied likewise."""
    step_count: int = 0
    """Steps taken so far."""
    visited_nodes: set[str] = set()
    """The nodes that were visited so far."""
    limits: dict[str, float] = {}
    """Limits that were raised, by name."""
    usage: UsageTotal = field(default_factory=UsageTotal)
    outputs: dict[TerminalKey, TerminalValue] = {}
    """What `end` nodes produced."""
    branch_results: dict[TerminalKey, TerminalValue] = {}
    """The last results where branches ended."""
    failed_work: list[StepState | PendingArrival] = []
    """What failed the execution, for a retry."""
    output: Json = None
    closes_session: bool = False
    """The conversation ended with it."""
    failure: Failure | None = None
    interruption: str | None = None
    """The limit that stopped it."""
    paused_by: str = ""
    """The caller who paused it last."""
    breakpoints: Breakpoints = field(default_factory=Breakpoints)
    """The breakpoints at which it paused."""
    running_steps: int = 0
    """Steps an executor works on."""
    worked_s: float = 0.0
    working_since: float = 0.0
    steps_without_worker: dict[Step, None] = {}
    """The steps that wait for a worker."""
    escalation_gate: Step | None = None
    """The gate at which people are asked whether an interrupted execution may go on."""
    escalated_at_step: int | None = None
    """The step count when the fallback node took over; None: it has not."""
    messages: int = 0
    stall_guards: dict[Scope, StallGuard] = {}
    """Recent answers of agents, per scope."""
    undo_log: list[UndoRecord] = []
    """What can be undone, in the order in which it was done."""
    compensation: Compensation | None = None
    warning_keys: set[str] = set()
    """Warnings that are issued once only."""
    budget_stopped: list[Step] = []
    """Attempts that a budget stopped half-way: they are performed again when the execution goes on."""
    size_bound: int | None = None
    """An upper bound of the data's size in bytes; None: not measured since the state was rebuilt."""

    @property
    def root(self) -> ScopeState:
        return self.scopes[()]

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @property
    def open_gates(self) -> list[StepState]:
        """The steps whose gates take answers, in order. An execution that has ended takes none."""
        return [] if self.ended else sorted((at for at in self.steps.values() if at.gate is not None), key=_step_of)

    @property
    def compensating(self) -> bool:
        """What was done is being undone."""
        return self.compensation is not None and not self.ended

    @property
    def is_escalated(self) -> bool:
        """The node of last resort has taken over."""
        return self.escalated_at_step is not None

    @property
    def awaits_escalation(self) -> bool:
        """It is interrupted, and a gate asks people whether it may go on."""
        return self.escalation_gate is not None and self.status == "interrupted" and self.escalation_gate in self.steps

    @property
    def is_halted(self) -> bool:
        """Arrivals are held instead of starting steps."""
        return self.status in HALTED


def _step_of(at: StepState) -> Step:
    return at.step
