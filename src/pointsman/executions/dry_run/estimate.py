"""What the noted calls would cost: exact for what is known, a range where loops may take more rounds, unknown else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from pointsman.engine.actions import LoopAction
from pointsman.engine.plan import Plan
from pointsman.executions.dry_run.standing_in import Called
from pointsman.models.prices import Prices

Rounds: TypeAlias = Mapping[tuple[str, str], int]
"""(execution, loop) -> how many rounds it took."""

SCRIPTED: Final = "scripted"


class Estimate(Struct, frozen=True, kw_only=True):
    """What one node asks of one model, or of one tool."""

    node: str
    kind: str
    name: str
    calls: int
    """On the way that the dry run took."""
    calls_max: int | None
    """If every loop around takes as many rounds as it may; None: no bound is known."""
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """Of `calls`; None: no price is known, which is not zero."""
    tools: tuple[str, ...] = ()

    @property
    def cost_max_usd(self) -> float | None:
        if self.cost_usd is None or self.calls_max is None:
            return None
        return self.cost_usd * self.calls_max / self.calls


def estimates(calls: Sequence[Called], plans: Mapping[str, Plan], rounds: Rounds, prices: Prices) -> list[Estimate]:
    """By node and name, in the order of the first call."""
    groups: dict[tuple[str, str, str], list[Called]] = {}
    for call in calls:
        groups.setdefault((call.node, call.kind, call.name), []).append(call)
    return [_estimate(several, plans, rounds, prices) for several in groups.values()]


def _estimate(several: list[Called], plans: Mapping[str, Plan], rounds: Rounds, prices: Prices) -> Estimate:
    first = several[0]
    given, answered = sum(c.input_tokens for c in several), sum(c.output_tokens for c in several)
    most: int | None = 0
    for execution, count in Counter(call.execution for call in several).items():
        bound = _bound(execution, first.node, count, plans, rounds)
        most = None if most is None or bound is None else most + bound
    cost = None
    if first.kind == "model":
        cost = price(prices, first.name, given, answered)
    return Estimate(
        node=first.node,
        kind=first.kind,
        name=first.name,
        calls=len(several),
        calls_max=most,
        input_tokens=given,
        output_tokens=answered,
        cost_usd=cost,
        tools=tuple(dict.fromkeys(tool for call in several for tool in call.tools)),
    )


def _bound(execution: str, node: str, count: int, plans: Mapping[str, Plan], rounds: Rounds) -> int | None:
    """How often it would be called at most, if it is called in every round as it was in these."""
    plan = plans[execution]
    share = float(count)
    for loop in plan.nodes[node].position.loops:
        does = plan.nodes[loop].action
        if isinstance(does, LoopAction) and does.items is None:
            if does.rounds_max is None:
                return None
            share *= does.rounds_max / max(1, min(rounds.get((execution, loop), 1), does.rounds_max))
    return max(count, round(share))


def price(prices: Prices, model: str, input_tokens: int, output_tokens: int) -> float | None:
    """In dollars; None where no price is known. The scripted model costs nothing."""
    if model == SCRIPTED:
        return 0.0
    provider, _, name = model.partition(":")
    provider, name = (provider, name) if name else ("", provider)
    return prices.cost_usd(provider, name, input_tokens=input_tokens, output_tokens=output_tokens)
