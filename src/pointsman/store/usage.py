"""Usage of time, tokens and money: stored for each execution and day, and added up in the same transaction.

    a record ── put ──▶ usage        a row for each node, model and key of an execution and day
                 └────▶ usage_sums   the same without the execution: grows with days and names, never with executions

Amounts are whole numbers, so sums do not depend on their order: both tables agree exactly.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Literal, LiteralString, NamedTuple, TypeAlias

from msgspec import Struct

from pointsman.values import ExecutionId

MICROS: Final = 1_000_000
"""Of a second."""
NANOS: Final = 1_000_000_000
"""Of a dollar."""


class UsagePosition(NamedTuple):
    """The subject of an entry. `model` and `key` are empty for the steps of the node."""

    node: str
    model: str = ""
    key: str = ""


class UsageAmounts(Struct):
    """The amounts of one entry."""

    steps: int = 0
    retries: int = 0
    failures: int = 0
    cached: int = 0
    micros: int = 0
    """Duration of the steps in microseconds."""
    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    nanos: int = 0
    """Cost in billionths of a dollar."""
    priced_calls: int = 0
    """Calls of models whose price is known."""
    unpriced_calls: int = 0
    """Calls of models whose price is unknown."""
    scripted_calls: int = 0
    """Calls of the scripted model, which calls no provider and has no price."""

    def add(self, other: UsageAmounts) -> None:
        """Add the amounts of another one."""
        for name in AMOUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class UsageRecord(Struct, frozen=True, kw_only=True):
    """The usage of one execution on one day (UTC)."""

    day: str
    execution: ExecutionId
    workflow: str
    revision: int
    owner: str = ""
    """The user who started it; empty: unknown."""
    entries: tuple[tuple[UsagePosition, UsageAmounts], ...] = ()
    """Each place occurs once."""


UsageName: TypeAlias = Literal["day", "execution", "workflow", "revision", "owner", "node", "model", "key"]
"""A field by which amounts are grouped."""
About: TypeAlias = tuple[str | int, ...]
"""A value for each field of the query."""


class UsageQuery(Struct, frozen=True, kw_only=True):
    """Which amounts to add up, and how to group them."""

    by: tuple[UsageName, ...]
    since: str = ""
    """From this day to `until`, both included; empty: unbounded."""
    until: str = ""
    of: Mapping[UsageName, str] = {}
    """Only entries with these values."""

    @property
    def of_executions(self) -> bool:
        """Return whether the query needs executions or their owners, which the sums do not have."""
        return not OF_EXECUTIONS.isdisjoint({*self.by, *self.of})


OF_EXECUTIONS: Final[frozenset[UsageName]] = frozenset({"execution", "owner"})
ENTRY_MAX: Final = 1 << 50
"""The largest amount: stores add up integers of eight bytes, whatever a provider reports."""
AMOUNTS: Final = UsageAmounts.__struct_fields__

AMOUNT_COLUMNS: Final[LiteralString] = (
    "steps, retries, failures, cached, micros, model_calls, tool_calls, input_tokens, output_tokens, cache_read_tokens,"
    " nanos, priced_calls, unpriced_calls, scripted_calls"
)
"""`AMOUNTS` as a text for statements."""
COLUMNS: Final[tuple[LiteralString, ...]] = (
    *("day", "execution", "workflow", "revision", "owner", "node", "model", "key", "place"),
    *AMOUNT_COLUMNS.split(", "),
)
"""The columns of `usage`; `place` is a digest: names may be too long for an index."""


def added_up(takings: Collection[UsageRecord], query: UsageQuery) -> list[tuple[About, UsageAmounts]]:
    """Add up records in memory, for the store without tables."""
    found: dict[About, UsageAmounts] = {}
    for taking in takings:
        if (query.since or taking.day) <= taking.day <= (query.until or taking.day):
            known = {name: getattr(taking, name) for name in ("day", "execution", "workflow", "revision", "owner")}
            for place, taken in taking.entries:
                about = known | place._asdict()
                if all(str(about[name]) == wanted for name, wanted in query.of.items()):
                    found.setdefault(tuple(about[name] for name in query.by), UsageAmounts()).add(taken)
    return [*found.items()]
