"""Actions: one struct for each kind of node behaviour, with everything that never changes between steps.

`compile` creates them; the rules match on them. Values computed from data are compiled to closures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from pointsman.engine.steps import Reducer
from pointsman.expressions.environment import Environment
from pointsman.expressions.paths import Path
from pointsman.expressions.templates import SecretText
from pointsman.values import Json, JsonObject

GateAbout: TypeAlias = Literal["node", "start", "calls", "client"]
"""`node`: a human node asks · `start`: approval to start a step · `calls`: approval of tool calls · `client`:
results of calls that the caller runs.
"""


class GateApprovers(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """The people who may answer a gate, and how many must. Without groups and users: anyone."""

    groups: tuple[str, ...] | None = None
    users: tuple[str, ...] | None = None
    quorum: int = 1
    """Votes for one action that close the gate; each person has one."""
    reject_quorum: int = 1
    """Votes for `reject` that close the gate."""
    delegable: bool = True
    """Whether an approver may delegate."""
    by_link: bool = False
    """Whether the signed link of a notification is enough to answer."""

    @property
    def named(self) -> bool:
        """Return whether the gate names its approvers."""
        return bool(self.groups or self.users)


class Vote(Struct, frozen=True, omit_defaults=True, gc=False):
    """The vote of one approver."""

    action: str
    data: Json = None
    comment: str = ""
    key: str = ""


class EscalationLevel(Struct, frozen=True, kw_only=True, gc=False):
    """The next approvers after a timeout, and the time they have."""

    approvers: GateApprovers
    timeout_s: float


class GateTerms(Struct, frozen=True, kw_only=True, gc=False):
    """The approvers, their deadline, and the effect of the timeout."""

    approvers: GateApprovers | None = None
    timeout_s: float | None = None
    on_timeout: str = "fail"
    """After the last level: `fail`, an action taken automatically, or the label of a route."""
    levels: tuple[EscalationLevel, ...] = ()
    """Escalation levels before that, in order."""


ANYONE: Final = GateTerms()


class ProposedCall(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A tool call that waits for approval or is performed outside. `number` is its effect number in the attempt."""

    number: int
    name: str
    arguments: JsonObject
    description: str = ""
    wants: Literal["approval", "result", "workflow"] = "approval"
    """`result`: the caller performs the call and returns its result; `workflow`: a sub-workflow does."""
    workflow: str = ""
    """The sub-workflow."""
    timeout_s: float | None = None
    """Time limit for that, in seconds."""
    bytes_max: int | None = None
    """Size limit of the result as JSON, in bytes."""
    parameters: JsonObject | None = None
    """JSON Schema of the arguments; arguments that a person substitutes must fit it."""


class CallVerdict(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The decision about one call. `arguments` are set if a person changed them."""

    number: int
    approved: bool
    arguments: JsonObject | None = None
    reason: str = ""
    """The reason for a rejection, as reported to the model."""
    returned: bool = False
    """Whether the caller or a sub-workflow performed it: `result` is its result."""
    result: Json = None
    of: str = ""
    """Digest of the call that was decided; empty in older journals."""
    tool: str = ""
    """Name of its tool; empty in older journals."""
    code: str = ""
    """Failure code of a call that is not approved; empty: `call-rejected`."""


Value: TypeAlias = Callable[[Environment], Json]
"""A compiled expression, template or parameter tree."""

Test: TypeAlias = Callable[[Environment], bool]


class ConstantValue(Struct, frozen=True, gc=False):
    """A value that does not depend on data, so that no environment must be built for it."""

    value: Json

    def __call__(self, env: Environment) -> Json:
        return self.value


class PlanEdge(Struct, frozen=True, kw_only=True, gc=False):
    """One edge. `test` is None for edges that need no condition."""

    id: str
    index: int
    """Position in the document; it determines every order."""
    source: str
    target: str
    """A node id, or `END`."""
    kind: Literal["plain", "test", "label", "default", "error", "never"] = "plain"
    label: str | None = None
    test: Test | None = None
    reads_next: bool = False
    """Whether its condition reads `state.next`, the label that the step emitted."""
    codes: frozenset[str] = frozenset()
    """Failure codes that an `error` edge catches; empty = all."""


ASKING_MODELS: Final = frozenset({"agent", "planner", "verifier"})
"""Kinds of work that alternate model and tool calls."""
TIMED_BY_CALL: Final = ASKING_MODELS | {"decision", "judge", "tool", "tool_executor"}
"""Kinds of work whose time limit applies to each model or tool call, not to the whole attempt."""


class WorkSpec(Struct, frozen=True, kw_only=True, gc=False):
    """The constant part of the work: everything an executor needs beside the command."""

    node: str
    kind: str
    """The key of the executor: `agent`, `tool`, `tool_executor`, `memory`, `code` or a plug-in's."""
    config: JsonObject
    """The node's config as in the document, references to `agents` resolved, camelCase keys."""
    name: str = ""
    agent: str = ""
    """The id of the saved agent, for scripts and logs."""
    routes: tuple[str, ...] = ()
    """Labels by which an agent may leave, including `END` if an edge leads there."""
    conversational: bool = False
    leaves_calls: bool = False
    """Whether the workflow has a tool_executor: tool calls are left pending instead of being run inside the step."""
    secrets: tuple[SecretText, ...] = ()
    """Positions of secrets in `config`, for executors that resolve them."""
    settings: Mapping[str, Json] = {}
    """Workflow-wide defaults for executors: `defaultModel`, `language`."""


class Retry(Struct, frozen=True, kw_only=True, gc=False):
    """Retry policy of failed attempts. Waits are in seconds."""

    retries: int = 0
    wait_s: float = 1.0
    factor: float = 2.0
    wait_max_s: float = 300.0
    jitter: float = 0.0
    """Share of the wait that is random (seeded): 0.1 = ±10 %."""
    on: frozenset[str] | None = None
    """Failure codes that are retried; None: retryable failures."""


NO_RETRY: Final = Retry()


class WorkAction(Struct, frozen=True, kw_only=True, gc=False):
    """Work of an executor. `input` resolves everything that comes from the execution's data."""

    spec: WorkSpec
    input: Value | None = None
    timeout_s: float | None = None
    own_time: bool = False
    """Whether the node has its own `timeout`: `limits.nodeTime` does not apply then."""
    retry: Retry = NO_RETRY
    on_failure: Literal["fail", "continue", "llm_recovery"] = "fail"
    delay_s: float = 0.0
    """Wait before the first attempt (pacing)."""
    receives_messages: bool = False
    """Whether it receives the conversation."""
    own_messages_only: bool = False
    """Whether it receives only the messages of this execution, not the earlier ones of its session."""
    is_decision: bool = False
    """A decision by model: `next` is its branch, and the incoming value is passed on."""
    cache: Literal["off", "execution", "session", "long_term"] = "off"
    """Scope of the result cache: among whose steps an equal one is reused."""
    queue: str = ""
    """Where several processes drive a store: the queue whose workers perform it; empty: where it is driven."""


class StartAction(Struct, frozen=True, kw_only=True, gc=False):
    """`start`: sets initial fields."""

    set: tuple[tuple[Path, Value], ...] = ()


class EndAction(Struct, frozen=True, kw_only=True, gc=False):
    """`end`: ends its branch, or with `terminate` the execution."""

    output: Value | None = None
    terminate: bool = False
    status: Literal["completed", "failed", "cancelled"] = "completed"


class DecisionAction(Struct, frozen=True, kw_only=True, gc=False):
    """`decision`: emits a branch label. `branch` gives it (True/False become `true`/`false`)."""

    branch: Value


class ParallelAction(Struct, frozen=True, kw_only=True, gc=False):
    """`parallel`: branches × items. `starts` are the edges a branch begins with, in order."""

    starts: tuple[PlanEdge, ...]
    by_id: Mapping[str, PlanEdge]
    items: Value | None = None
    item_name: str | None = None
    parallel_max: int | None = None
    on_branch_error: Literal["fail", "continue", "ignore"] = "fail"
    join: str | None = None
    """The join that closes it; None: it ends with its last branch."""
    after: tuple[PlanEdge, ...] = ()
    """Edges taken inside each scope once its branches have ended (graph dialect)."""
    duplicate_keys: Literal["fail", "number"] = "fail"
    one_scope: bool = False
    """Without items every static branch gets its own scope; with this the branch's node id is its key."""


class JoinAction(Struct, frozen=True, kw_only=True, gc=False):
    """`join`: `wait` is 'all', 'any', a count, a share (0–1) or a test over `arrived`/`results`."""

    closes: tuple[str, ...] = ()
    """The parallels it closes, outermost first; empty: a join of plain splits (behaves as a merge)."""
    wait: Literal["all", "any"] | int | float | Test = "all"
    wait_sees: bool = False
    """Whether the test reads the results of the branches, not only their number."""
    cancel_rest: bool = False
    aggregate: Callable[[list[BranchResult]], Json] | None = None
    """None: the list of results in branch order."""
    aggregate_value: Value | None = None
    """An expression over `results` (list) and `branches`."""
    timeout_s: float | None = None
    on_timeout: Literal["proceed", "fail"] = "proceed"
    expected_keys: tuple[str, ...] = ()
    expected: Value | None = None
    """The same as an expression."""
    merge_path: Path | None = None
    """The state path whose value is joined instead of the branch results."""


class BranchResult(Struct, frozen=True, kw_only=True, gc=False):
    """The result of one branch, as a join receives it."""

    branch: int
    key: str
    start: str
    """The first node of the branch."""
    outcome: Literal["arrived", "ended", "failed", "cancelled"]
    value: Json


class LoopAction(Struct, frozen=True, kw_only=True, gc=False):
    """`loop`: a condition before each round, or one round per item, at most `rounds_max`."""

    condition: Test | None = None
    items: Value | None = None
    item_name: str | None = None
    rounds_max: int | None = None
    body: frozenset[str] = frozenset()
    """Nodes of the loop body."""
    body_edges: tuple[PlanEdge, ...] = ()
    exit_edges: tuple[PlanEdge, ...] = ()
    back: frozenset[str] = frozenset()
    """Ids of the edges from the body to the loop node."""
    collect: Path | None = None
    """Path of the list of the rounds' results."""
    count_into: Path | None = None
    skips_failures: bool = False
    """Whether a failed round is skipped and the next one begins."""
    failures_into: Path | None = None
    ends_with_body: bool = False
    """A body path that ends without returning ends the loop: exit edges are taken (graph dialect)."""


class HumanTaskAction(Struct, frozen=True, kw_only=True, gc=False):
    """`human`: a gate. All values are resolved when it opens."""

    message: Value
    messages: Mapping[str, Value] = {}
    """By language, if there are several."""
    options: tuple[JsonObject, ...] = ()
    """`{value, label, labels, style}`; `value` is the action, `labels` are by language."""
    form: JsonObject | None = None
    displayed: Value | None = None
    editable: tuple[Path, ...] = ()
    terms: GateTerms = ANYONE
    limit_raises: Mapping[str, Mapping[str, float]] = {}
    """Actions after which an interrupted execution continues, and by how much each raises the limits."""


class ApprovalPolicy(Struct, frozen=True, kw_only=True, gc=False):
    """Approval policy of a node: whether people must approve its work before it starts, and the terms of the gate."""

    before: bool = False
    message: Value | None = None
    messages: Mapping[str, Value] = {}
    """By language, if there are several."""
    terms: GateTerms = ANYONE


UNASKED: Final = ApprovalPolicy()


class TransformAction(Struct, frozen=True, kw_only=True, gc=False):
    """`transform`: data only. Each operation sees what earlier ones wrote; the last value is its result."""

    steps: tuple[Callable[[Environment], list[tuple[tuple[str | int, ...], Reducer, Json]]], ...]
    select: Value | None = None
    """JSONPath selection after the operations; its matches are the result."""
    answers: bool = True


class WaitAction(Struct, frozen=True, kw_only=True, gc=False):
    """`wait`: a duration, a point in time, or an event."""

    duration: Value | None = None
    until: Value | None = None
    event: Value | None = None
    match: Test | None = None
    timeout_s: float | None = None
    goes_on_timeout: bool = False


class EmitAction(Struct, frozen=True, kw_only=True, gc=False):
    """`emit`: publish an event. `event` and `data` are resolved when control reaches the node."""

    event: Value
    data: Value | None = None


class WorkflowAction(Struct, frozen=True, kw_only=True, gc=False):
    """`workflow`: a child execution."""

    workflow: str
    input: Value | None = None
    wait: bool = True
    retry: Retry = NO_RETRY
    on_failure: Literal["fail", "continue"] = "fail"


class NoOpAction(Struct, frozen=True, kw_only=True, gc=False):
    """A node of structure only, without effect."""


Action: TypeAlias = (
    WorkAction
    | StartAction
    | EndAction
    | DecisionAction
    | ParallelAction
    | JoinAction
    | LoopAction
    | HumanTaskAction
    | TransformAction
    | WaitAction
    | EmitAction
    | WorkflowAction
    | NoOpAction
)
