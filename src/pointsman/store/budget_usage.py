"""Amounts that executions spent, from their summaries: the store adds them up, so that budgets read no journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from pointsman.values import ExecutionId, Instant, WorkflowId

Measure: TypeAlias = Literal["tokens", "modelCalls", "toolCalls", "costUsd"]

AMOUNT_MAX: Final = 1 << 53
"""Maximum of calls and tokens that stores can count."""


class BudgetUsage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Usage of an execution so far, with its sub-workflows, as budgets count it."""

    tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    cost_usd: float = 0.0
    """As far as prices are known."""


class SpendingQuery(Struct, frozen=True, kw_only=True):
    """The amounts that one budget is compared with: those of executions of the saved revisions of a workflow."""

    workflow: WorkflowId
    measure: Measure
    near: float
    """From this amount on an execution counts as near `most`."""
    most: float
    since: Instant | None = None
    """Of ended executions, only those that ended from this time on and before `until`."""
    until: Instant | None = None
    apart: bool = False
    """Group them by the fields that access depends on: revision, owner, session and parent."""


class Spenders(Struct, frozen=True, kw_only=True):
    """Some executions of one workflow: at least one."""

    executions: int
    near: int
    over: int
    """Number of executions that spent `most` or more."""
    highest: float
    dearest: ExecutionId
    """One execution that spent that much."""
    revision: int = 0
    owner: str = ""
    session: str | None = None
    parent: ExecutionId | None = None


def amount_of(spent: BudgetUsage, measure: Measure) -> float:
    """Return the amount that a budget measures."""
    match measure:
        case "tokens":
            return spent.tokens
        case "modelCalls":
            return spent.model_calls
        case "toolCalls":
            return spent.tool_calls
        case "costUsd":
            return spent.cost_usd


COLUMN: Final[Mapping[Measure, Literal["tokens", "model_calls", "tool_calls", "cost_usd"]]] = {
    "tokens": "tokens",
    "modelCalls": "model_calls",
    "toolCalls": "tool_calls",
    "costUsd": "cost_usd",
}
"""Columns of each measure in SQL stores."""
APART: Final = "revision, owner, session, parent"
TOGETHER: Final = "0, '', NULL, NULL"
"""Constants in place of these columns if the groups are not separated."""

SpendersRow: TypeAlias = tuple[int, int, int, float, str, int, str, str | None, str | None]


def spenders_in(row: SpendersRow) -> Spenders:
    executions, near, over, highest, dearest, revision, owner, session, parent = row
    return Spenders(
        executions=executions,
        near=near,
        over=over,
        highest=highest,
        dearest=ExecutionId(dearest),
        revision=revision,
        owner=owner,
        session=session,
        parent=None if parent is None else ExecutionId(parent),
    )
