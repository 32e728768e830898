"""A plan: a workflow compiled for execution. Indexes, closures, scopes; nothing is found by scanning.

    Plan ── nodes ──▶ PlanNode ─┬─ action: what happens here (`actions`)
                                ├─ enter:  when an arrival starts it
                                ├─ leave:  how its outgoing edges are used
                                └─ out:    its edges, in document order

`compile` creates plans; `decide` reads them. A plan is immutable and shared by all executions of one revision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from pointsman.engine.actions import UNASKED, Action, ApprovalPolicy, PlanEdge, Test, Value
from pointsman.engine.partial_run import PartialRun
from pointsman.engine.plan_limits import PlanLimits
from pointsman.engine.writes import Reducer
from pointsman.expressions.paths import Path
from pointsman.values import Json, JsonObject

EnterMode: TypeAlias = Literal["arrival", "merge", "each", "join", "loop"]
"""`arrival`: one incoming edge, every arrival starts it · `merge`: waits for all that can still arrive · `each`: every
arrival starts it although there are several edges · `join`: closes a parallel · `loop`: rounds and entries."""

NoRoute: TypeAlias = Literal["end", "fail", "caller", "turn", "cancel", "undone"]
"""`undone`: the node is a compensation, and control never goes on from it."""

LeaveMode: TypeAlias = Literal["all", "first", "label"]


class OutputWrite(Struct, frozen=True, kw_only=True, gc=False):
    """One write after success: `path` ← `value`, joined by `reduce`. `whole`: the value is the result itself."""

    path: Path
    value: Value
    reduce: Reducer = "set"
    whole: bool = False


class PlanNode(Struct, frozen=True, kw_only=True, gc=False):
    """One node: what happens there, and how control comes and goes."""

    id: str
    index: int
    type: str
    """As in the document, for people."""
    action: Action
    enter: EnterMode = "arrival"
    leave: LeaveMode = "all"
    out: tuple[PlanEdge, ...] = ()
    straight: PlanEdge | None = None
    """Its only edge, where that is plain: the common case takes no decision."""
    catches: tuple[PlanEdge, ...] = ()
    """Its error edges."""
    labels: Mapping[str, PlanEdge] = {}
    fallback: PlanEdge | None = None
    """Under `label`: the one plain/default edge."""
    hidden: bool = False
    """Made by the compiler; not shown in paths."""
    outputs: tuple[OutputWrite, ...] = ()
    scope: tuple[str, ...] = ()
    """The parallels open around it, outermost first."""
    has_lineage: bool = False
    """Several tokens may pass it at once: its steps are told apart by thread."""
    apart: bool = False
    """It is behind `trigger: each`: splits of different tokens are never taken for one."""
    loops: tuple[str, ...] = ()
    """The loop nodes whose body it is in, innermost first."""
    transparent: bool = False
    """`result` stays what it was."""
    no_route: NoRoute = "end"
    """What happens when no edge can be taken."""
    visits_max: int | None = None
    races: tuple[tuple[str | int | None, ...], ...] = ()
    """What it reads that a step running at the same time may write; None in a path is the key of the item."""
    skip: Test | None = None
    """While it holds, control passes over the node."""
    tool_executor: PlanEdge | None = None
    """Where pending tool calls go."""
    approval: ApprovalPolicy = UNASKED
    """What people must approve of its work."""
    compensate: str | None = None
    """The node that undoes its steps."""
    display_name: Json = None
    """How people know it: a text, or one by language; None: by its id."""


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
    """The fields that have a schema: what people put into the data must fit it."""
    output: Value | None = None
    output_fields: tuple[str, ...] = ()
    """Without `output`: the first of these fields that is written is the output (graph: final, drafts, latest)."""
    conversational: bool = False
    steerable: bool = False
    """People may steer it at any step boundary."""
    messages: bool = False
    """The workflow has the `messages` field."""
    strict: bool = False
    durability: Durability = "step"
    """When its rows must be on disk, unless the start request overrides it."""
    config: Mapping[str, Json] = {}
    initial: JsonObject = {}
    """Defaults of declared state fields."""
    reaches: Callable[[str], frozenset[str]]
    """The nodes from which a node can be reached, itself among them if it is on a cycle; computed on demand."""
    after: Callable[[Iterable[str]], frozenset[str]]
    """The nodes that control can reach after these; a node itself only on a cycle. Linear in the graph."""
    leads: Callable[[str, str, str], bool]
    """Whether control can come from one node to another without passing a third (empty: any way)."""
    meets: Callable[[str, str], bool]
    """Whether every line that leaves one node comes to another, or ends while it still could."""
    engine_names: bool = False
    """Its document uses `_currentStep` and the like."""
    nodes_counted: int = 0
    """Nodes without start, end and notes: `_totalNodes`."""
    uncounted: frozenset[str] = frozenset()
    """Start, end and notes: `_currentStep` does not count them either."""
    edge_index: Mapping[str, int] = {}
    edge_source: Mapping[str, str] = {}
    on_cancel: Literal["compensate", "stop"] = "compensate"
    """Whether what was done is undone when the execution is cancelled."""
    on_error: str | None = None
    """The node that a failure of the execution is routed to."""
    partial_run: PartialRun | None = None
    """The partial run that this plan performs, if any."""
