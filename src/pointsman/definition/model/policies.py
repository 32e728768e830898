"""How a workflow runs: configuration, limits, policies, reducers, approvers. `DEFAULTS` defines what absence means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field

from pointsman.definition.model.base import (
    AnyJson,
    AnyObject,
    Count,
    Duration,
    Expression,
    Many,
    Model,
    Name,
    NodeRef,
    Size,
    Spelled,
    Text,
)
from pointsman.values import Bytes, Seconds


class Approvers(Model):
    """Who may answer, and how many must. Without groups and users: anyone."""

    groups: Many[Name] | None = None
    users: Many[Name] | None = None
    quorum: Count | None = None
    """Votes for one action that close the gate (1). Each person has one."""
    reject_quorum: Count | None = None
    """Votes for `reject` that close the gate (1: one rejection is enough)."""
    delegable: bool | None = None
    """Whether an approver may pass the right on to another person (true)."""
    by_link: bool | None = None
    """Whether people may answer by the signed link of a notification, without an account (false)."""


class Escalation(Model):
    """Whom a gate is put to next, instead of those who did not answer in time."""

    approvers: Approvers
    timeout: Duration | None = None
    """Time limit of this level. Default: that of the first approvers."""


class Approval(Model):
    """On which terms people are asked before work starts (`requiresApproval`), and about tools that need approval."""

    message: Annotated[Text | None, Spelled("template")] = None
    """The question to ask before the node starts."""
    approvers: Approvers | None = None
    timeout: Duration | None = None
    escalation: Many[Escalation] | None = None
    on_timeout: Literal["fail", "approve", "reject"] | None = None


ErrorHandling: TypeAlias = Literal["fail", "retry", "llm_recovery"]
ErrorHandler: TypeAlias = Literal["fail", "continue", "llm_recovery"]
Durability: TypeAlias = Literal["step", "async", "exit"]
Reduce: TypeAlias = Literal["set", "append", "merge", "add", "min", "max", "union", "last"]
"""How a write is combined with the present value.

`last`: like set, but never conflicts; of concurrent branches the last in order wins.
"""


class Limits(Model):
    """Guardrails no prompt can talk away. Operator settings cap all of them."""

    nodes: Count | None = None
    """Maximum number of nodes of the definition."""
    steps: Count | None = None
    """Maximum number of steps of one execution."""
    visits: Count | None = None
    """Maximum number of visits of one node in one scope, loop bodies excluded."""
    parallel: Count | None = None
    """Maximum number of work steps that run at once; 1 is sequential, in document order."""
    execution_time: Duration | None = None
    """Maximum working time; waits for people, timers and events do not count."""
    deadline: Duration | None = None
    """Maximum wall-clock time, waits included."""
    node_time: Duration | None = None
    """Time limit of one call of a model or tool, and of one attempt of other work. A tool's own limit has precedence.
    """
    retry_after: Duration | None = None
    """Maximum wait that a service may request before a retry; a longer one is shortened to this."""
    state_size: Size | None = None
    """Maximum size of the state, as JSON in UTF-8."""
    cost_usd: Annotated[float, Field(ge=0)] | None = None
    """Maximum cost of models, in US dollars."""
    tokens: Count | None = None
    """Maximum number of tokens that models read and write, together."""
    model_calls: Annotated[int, Field(ge=0)] | None = None
    """Maximum number of model calls."""
    tool_calls: Annotated[int, Field(ge=0)] | None = None
    """Maximum number of tool calls."""


class More(Model):
    """The amounts by which limits are raised for an execution that one of them stopped."""

    steps: Count | None = None
    """Additional steps."""
    visits: Count | None = None
    """Additional visits of each node."""
    execution_time: Duration | None = None
    """Additional working time."""
    deadline: Duration | None = None
    """Additional wall-clock time, counted from the answer."""
    cost_usd: Annotated[float, Field(ge=0)] | None = None
    """Additional cost in US dollars."""
    tokens: Count | None = None
    """Additional tokens."""
    model_calls: Annotated[int, Field(ge=0)] | None = None
    """Additional model calls."""
    tool_calls: Annotated[int, Field(ge=0)] | None = None
    """Additional tool calls."""


class Budget(Model):
    """The policy when money, tokens or calls (`limits`) run out. Sub-workflows count."""

    policy: Literal["warn", "pause", "stop"] | None = None
    """Only raise a warning; start no further step until a person resumes the execution; or interrupt it (default)."""
    warn_at: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the budget at which a warning is raised. Default: 0.8."""


class Config(Model):
    """How the workflow as a whole runs."""

    observability: Literal["minimal", "standard", "full"] | None = None
    """How much the feed shows: errors and completion; steps; inputs and outputs too."""
    persistence: Literal["none", "session", "long_term"] | None = None
    """Retention of executions."""
    durability: Durability | None = None
    """When the journal must be on disk: before the next step, shortly after, or at gates and the end."""
    error_handling: ErrorHandling | None = None
    """The default policy of a failed node."""
    human_in_loop: Literal["none", "approval_gates", "real_time"] | None = None
    """Whether people only watch, answer gates, or steer at every step."""
    approval: Approval | None = None
    """Default terms of approval for work and tools; a node may set its own."""
    conversational: bool | None = None
    """Each execution is one turn of a session."""
    default_model: str | None = None
    """The model of agents without one."""
    limits: Limits | None = None
    """Guardrails."""
    budget: Budget | None = None
    """The policy when money, tokens or calls run out."""
    on_limit: NodeRef | None = None
    """The node to route to when a limit is reached. Default: the execution is interrupted and can be resumed."""
    on_cancel: Literal["compensate", "stop"] | None = None
    """Whether a cancelled execution runs its compensation steps first (`compensate`, the default)."""
    allow_cycles: bool | None = None
    """`false` makes a cycle of edges an error."""
    settings: AnyObject | None = None
    """Read-only values that expressions read as `config.<name>`."""


class Execution(Model):
    """How one node is executed."""

    timeout: Duration | None = None
    """Time limit of one attempt."""
    retries: Annotated[int, Field(ge=0, le=100)] | None = None
    """Number of retries after the first attempt."""
    retry_delay: Duration | None = None
    """Wait before the first retry."""
    backoff: Annotated[float, Field(ge=1, le=100)] | None = None
    """Factor from one wait to the next."""
    retry_on: Annotated[Many[Name], Field(min_length=1)] | None = None
    """Codes of the failures that are retried. Default: transient failures."""
    error_handler: ErrorHandler | None = None
    """What to do if every attempt failed: fail, continue with the failure as the result, or ask a model."""
    cache: Literal["off", "execution", "session", "long_term"] | None = None
    """Where to look for an earlier result of an equal step."""
    delay: Duration | None = None
    """Wait before the step starts."""


class StateField(Model):
    """Declaration of the values under one path pattern of the state."""

    reduce: Reduce | None = None
    """How a write is combined with the present value."""
    schema_: Annotated[AnyObject | None, Field(alias="schema")] = None
    """JSON Schema of the value."""
    default: AnyJson = None
    """The value at the start."""
    description: str | None = None


class Concurrency(Model):
    """How many executions of this workflow may run at once."""

    max: Count
    policy: Literal["queue", "skip", "replace"] | None = None
    """The policy for the next execution: it waits, is refused, or replaces the oldest."""
    key: Expression | None = None
    """Expression over the input: executions with the same value share one limit. Default: all of the workflow do."""


_MODEL_CALL_TIME: Final = Seconds(600.0)
_NODE_TIME: Final = Seconds(120.0)
_RETRY_DELAY: Final = Seconds(1.0)
_RETRY_AFTER: Final = Seconds(3600.0)
_STATE_SIZE: Final = Bytes(50_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """Defaults of each dialect. None is unlimited."""

    nodes: int | None = None
    steps: int | None = 10_000
    visits: int | None = None
    parallel: int = 8
    execution_time: Seconds | None = None
    model_call_time: Seconds = _MODEL_CALL_TIME
    """Of one call of a model, where `limits.nodeTime` is absent."""
    node_time: Seconds = _NODE_TIME
    """Of one call of a tool, or one attempt of other work, where `limits.nodeTime` is absent."""
    state_size: Bytes = _STATE_SIZE
    cost_usd: float | None = None
    retries: int = 0
    retries_when_retrying: int = 3
    """`retries` under `errorHandling: retry`."""
    retry_delay: Seconds = _RETRY_DELAY
    retry_after: Seconds = _RETRY_AFTER
    backoff: float = 2.0


DEFAULTS: Final = Defaults()
"""The native table. Readers of other dialects write their own defaults into the document they return."""
