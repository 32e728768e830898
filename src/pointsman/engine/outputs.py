"""What a step writes: its `outputs` evaluated, checked for conflicts and for size, before anything is written."""

from __future__ import annotations

from collections import ChainMap
from typing import Final, cast

import msgspec

from pointsman.engine import concurrency
from pointsman.engine.data import dotted
from pointsman.engine.desk import Desk
from pointsman.engine.events import Write
from pointsman.engine.failures import Failure
from pointsman.engine.plan import PlanNode
from pointsman.engine.state import ExecutionState, ScopeState
from pointsman.engine.steps import Thread
from pointsman.errors import AuthorError, CallerError, PointsmanError
from pointsman.values import Json, JsonObject

FIELDS_SHOWN: Final = 5
"""How many of the largest fields a size failure names."""


class StepRefused(PointsmanError):
    """A step's outcome cannot be accepted; carries the failure it becomes."""

    code = "step-refused"

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, hint=failure.hint)
        self.failure = failure


def failure_from(why: PointsmanError) -> Failure:
    """An error of the author's formulas or of a write, as the failure of the step it happened in."""
    if isinstance(why, StepRefused):
        return why.failure
    if isinstance(why, AuthorError | CallerError) or type(why).code == "write-failed":
        return Failure(code=type(why).code, message=str(why), hint=why.hint)
    raise why


def written(
    desk: Desk,
    scope: ScopeState,
    node: PlanNode,
    result: Json,
    *,
    shown: Json = None,
    env_state: JsonObject | None = None,
) -> tuple[Write, ...]:
    """Evaluate `outputs` over `result`; `shown` is what `nodes.<id>` will be. The result itself is not stored twice."""
    if not node.outputs:
        return ()
    env = desk.environment(scope, node, result)
    if env_state is not None:
        env.state = env_state
    if shown is not None:
        env.nodes = ChainMap({node.id: shown}, cast(dict[str, Json], env.nodes))
    writes: list[Write] = []
    for output in node.outputs:
        path = output.path.resolve(env)
        if output.whole:
            writes.append(Write(path, output.reduce, whole=True))
        else:
            writes.append(Write(path, output.reduce, desk.value(scope, output.value, env)))
    return tuple(writes)


def check_conflicts(scope: ScopeState, writes: tuple[Write, ...], thread: Thread) -> None:
    """Refuse a write to what another thread of this scope set at the same time: it would be lost, or win by speed."""
    if not scope.trails:
        return
    for write in writes:
        if write.reduce == "set":
            other = concurrency.conflict(scope, write.path, thread)
            if other is not None:
                raise StepRefused(
                    Failure(
                        code="write-conflict",
                        message=f"two steps that ran at once both wrote {dotted(write.path)!r}",
                        hint="Give the path a reducer in `state`, or let the steps write different paths.",
                    )
                )


def size_of(value: Json) -> int:
    """Bytes of the value as JSON; exact for containers, near enough for the rest."""
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, dict | list):
        return len(msgspec.json.encode(value))
    return 8


def check_size(desk: Desk, scope: ScopeState, writes: tuple[Write, ...], result: Json) -> None:
    """Refuse to grow the data over the limit. Amortised: the whole is measured only when an upper bound passes it."""
    limit = desk.plan.limits.state_bytes
    if limit is None or not writes:
        return
    raised = desk.state.limits.get("stateSize")
    limit = max(limit, int(raised)) if raised is not None else limit
    added = sum(size_of(result if write.whole else write.value) for write in writes)
    bound = desk.state.size_bound
    if bound is None or bound + added > limit:
        bound = measured(desk.state)
        if bound + added > limit:
            raise StepRefused(_too_large(scope, writes, result, bound + added, limit))
    desk.state.size_bound = bound + added


def measured(state: ExecutionState) -> int:
    """The exact size of all data, in bytes: the state, and what open branches wrote. O(size)."""
    total = size_of(state.root.data.root)
    for scope in state.scopes.values():
        total += sum(size_of(value) for _, value, _ in scope.writes)
    for opening in state.openings.values():
        for branch in opening.settled.values():
            total += sum(size_of(value) for _, value, _ in branch.writes)
    return total


def _too_large(scope: ScopeState, writes: tuple[Write, ...], result: Json, size: int, limit: int) -> Failure:
    fields = {name: size_of(value) for name, value in scope.data.root.items()}
    for write in writes:
        name = str(write.path[0])
        fields[name] = fields.get(name, 0) + size_of(result if write.whole else write.value)
    largest = sorted(fields.items(), key=lambda item: -item[1])[:FIELDS_SHOWN]
    shown = ", ".join(f"{name} ({bytes_} bytes)" for name, bytes_ in largest)
    return Failure(
        code="state-too-large",
        message=f"the state would grow to {size} bytes, over the limit of {limit}; largest fields: {shown}",
        hint="Write less into the state, or raise limits.stateSize.",
        details={"largest": dict[str, Json](largest)},
    )
