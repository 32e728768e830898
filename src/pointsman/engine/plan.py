"""A plan: a workflow compiled for execution. Indexes, closures, scopes; nothing is found by scanning.

    Plan ── nodes ──▶ PlanNode ─┬─ action:   what happens here (`actions`)
                                ├─ enter:    when an arrival starts it
                                ├─ exits:    its edges, and how control leaves by them
                                ├─ position: the parallels and loops around it
                                └─ policy:   conditions on its steps

`compile` creates plans; `decide` reads them. A plan is immutable and shared by all executions of one revision.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from pointsman.engine.actions import UNASKED, Action, ApprovalPolicy, PlanEdge, Test, Value
from pointsman.engine.steps import Reducer
from pointsman.expressions.paths import Path
from pointsman.values import Json, JsonObject

_VISIT: Final = re.compile(r"#\d+$")

PARTIAL_RUN_OPTION: Final = "trial"
"""Options of an execution that determine its plan (`engine.compile.partial_run`)."""


class PartialRun(Struct, frozen=True, kw_only=True, gc=False):
    """The differences of a partial run from a full one; empty: only the fact that it is partial.

    It is derived from the options of the start row, so every reader of the journal decides alike.
    """

    mocks: Mapping[str, Json] = {}
    """These nodes are not performed: their steps complete with the given value."""
    step_mocks: Mapping[str, Json] = {}
    """By step id, always with its visit (`each[1.0]/draft#1`). They override the mocks of nodes."""
    until: frozenset[str] = frozenset()
    performed: frozenset[str] = frozenset()
    """With `until`: the targets and the nodes that lead to them. A token that has left them ends."""
    breakpoints: frozenset[str] = frozenset()
    """The execution pauses before a step of these nodes, once before each."""
    alone: str | None = None
    """Control starts at this node, with the given value, and ends behind it."""
    given: Json = None
    """The input of the node that runs alone."""


def in_full(step: str) -> str:
    """Return a step id with its visit number, also for the first visit."""
    return step if _VISIT.search(step) else f"{step}#1"


class PlanLimits(Struct, frozen=True, kw_only=True, gc=False):
    """Limits that no prompt can change. None = unlimited. Times in seconds, size in bytes of JSON."""

    steps: int | None = 10_000
    parallel: int = 8
    execution_time_s: float | None = None
    deadline_s: float | None = None
    """Wall-clock time, including waits."""
    retry_after_s: float = 3600.0
    """The longest wait before a retry that the other side may request."""
    state_bytes: int | None = 50_000_000
    budgets: tuple[tuple[str, float], ...] = ()
    """`tokens`, `modelCalls`, `toolCalls`, `costUsd`, each if set: the amount that may be spent."""
    budget_policy: Literal["warn", "pause", "stop"] = "stop"
    budget_warn_at: float = 0.8
    """The share of a budget at which a warning is raised."""
    sources: Mapping[str, str] = {}
    """Source of a limit, by its name in documents: `definition` or `operator`; absent: default."""
    caps: Mapping[str, float] = {}
    """The operator's caps, by name: no limit can be raised above its cap."""
    on_limit: str | None = None
    """The fallback node when a limit trips; None: the execution is interrupted and can be resumed."""


EnterMode: TypeAlias = Literal["arrival", "merge", "each", "join", "loop"]
"""`arrival`: one incoming edge, every arrival starts it · `merge`: waits for all that can still arrive · `each`: every
arrival starts it in spite of several edges · `join`: closes a parallel · `loop`: rounds and entries.
"""

NoRoute: TypeAlias = Literal["end", "fail", "caller", "turn", "cancel", "undone"]
"""`undone`: the node is a compensation without exit."""

LeaveMode: TypeAlias = Literal["all", "first", "label"]


class OutputWrite(Struct, frozen=True, kw_only=True, gc=False):
    """One write after success: `path` ← `value`, joined by `reduce`. `whole`: the value is the result itself."""

    path: Path
    value: Value
    reduce: Reducer = "set"
    whole: bool = False


class Exits(Struct, frozen=True, kw_only=True, gc=False):
    """The edges of a node, and how control leaves by them."""

    mode: LeaveMode = "all"
    edges: tuple[PlanEdge, ...] = ()
    """All edges but error edges, in document order."""
    straight: PlanEdge | None = None
    """Its only edge, if that is plain: the common case needs no decision."""
    catches: tuple[PlanEdge, ...] = ()
    """Its error edges."""
    labels: Mapping[str, PlanEdge] = {}
    fallback: PlanEdge | None = None
    """Under `label`: the one plain or default edge."""
    tool_executor: PlanEdge | None = None
    """The edge for pending tool calls."""
    no_route: NoRoute = "end"
    """The effect when no edge can be taken."""


class NodePosition(Struct, frozen=True, kw_only=True, gc=False):
    """Where a node is in the graph, as far as its steps depend on it."""

    parallels: tuple[str, ...] = ()
    """The parallels open around it, outermost first."""
    loops: tuple[str, ...] = ()
    """The loop nodes whose body contains it, innermost first."""
    has_lineage: bool = False
    """Whether several tokens may pass it at once: its steps are distinguished by lineage."""
    splits_apart: bool = False
    """Whether it is behind `trigger: each`: splits of different tokens are never merged."""
    races: tuple[tuple[str | int | None, ...], ...] = ()
    """Paths that it reads and a concurrent step may write; None in a path is the key of the item."""


class StepPolicy(Struct, frozen=True, kw_only=True, gc=False):
    """Conditions on the steps of a node."""

    visits_max: int | None = None
    skip: Test | None = None
    """Condition under which the node is skipped."""
    approval: ApprovalPolicy = UNASKED
    """Approval policy of its work."""
    compensate: str | None = None
    """The node that undoes its steps."""


class PlanNode(Struct, frozen=True, kw_only=True, gc=False):
    """One node: its action, its entry mode and its exits."""

    id: str
    index: int
    type: str
    """The type in the document, for people."""
    display_name: Json = None
    """Display name: a text, or one by language; None: the id."""
    hidden: bool = False
    """Whether the compiler made it; hidden nodes are not displayed."""
    action: Action
    enter: EnterMode = "arrival"
    exits: Exits = Exits()
    outputs: tuple[OutputWrite, ...] = ()
    transparent: bool = False
    """Whether `result` is passed on unchanged."""
    position: NodePosition = NodePosition()
    policy: StepPolicy = StepPolicy()


class DeclaredField(Struct, frozen=True, gc=False):
    """A JSON Schema for what is at a path pattern (`*` = any one key)."""

    pattern: tuple[str, ...]
    schema: JsonObject


Durability: TypeAlias = Literal["step", "async", "exit"]


class Plan(Struct, frozen=True, kw_only=True, gc=False):
    """A compiled workflow."""

    workflow: str
    version: str
    dialect: str
    entry: str
    nodes: Mapping[str, PlanNode]
    limits: PlanLimits = PlanLimits()
    reducers: tuple[tuple[tuple[str, ...], Reducer], ...] = ()
    """Path patterns (`*` = any one key) and their reducers, longest first."""
    declared: tuple[DeclaredField, ...] = ()
    """Declared fields with a schema: values that people write must fit it."""
    output: Value | None = None
    output_fields: tuple[str, ...] = ()
    """Without `output`: the first of these fields that is written is the output (graph: final, drafts, latest)."""
    conversational: bool = False
    steerable: bool = False
    """Whether people may intervene between steps."""
    messages: bool = False
    """Whether the workflow has the `messages` field."""
    strict: bool = False
    durability: Durability = "step"
    """When rows must be durable, unless the start request overrides it."""
    config: Mapping[str, Json] = {}
    initial: JsonObject = {}
    """Defaults of declared state fields."""
    reaches: Callable[[str], frozenset[str]]
    """Return the nodes from which a node can be reached, including itself on a cycle; computed on demand."""
    after: Callable[[Iterable[str]], frozenset[str]]
    """Return the nodes reachable after these; a node itself only on a cycle. Linear in the size of the graph."""
    leads: Callable[[str, str, str], bool]
    """Return whether control can come from one node to another without passing a third (empty: any path)."""
    meets: Callable[[str, str], bool]
    """Return whether every branch from one node reaches another, or ends on the way."""
    engine_names: bool = False
    """Whether its document uses `_currentStep` or similar names."""
    nodes_counted: int = 0
    """Number of nodes without start, end and notes: `_totalNodes`."""
    uncounted: frozenset[str] = frozenset()
    """Start, end and notes, which `_currentStep` does not count."""
    edge_index: Mapping[str, int] = {}
    edge_source: Mapping[str, str] = {}
    on_cancel: Literal["compensate", "stop"] = "compensate"
    """Whether completed steps are undone on cancellation."""
    on_error: str | None = None
    """The node that handles a failure of the execution."""
    partial_run: PartialRun | None = None
    """The partial run that this plan performs, if any."""
    queues: Mapping[str, str] = {}
    """The queues of the nodes that workers of a queue perform."""
