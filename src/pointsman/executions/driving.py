"""Driving an execution as far as the given answers allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pointsman.context import AppContext
from pointsman.executions.execution import Execution
from pointsman.executions.opening import open_execution
from pointsman.runtime.children import children_of
from pointsman.values import ExecutionId, Json


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """An answer for the next open gate of a node (or for the gate with that id). Each is used once."""

    node: str
    action: str
    data: Json = None
    comment: str = ""
    by: str = ""
    groups: tuple[str, ...] = ()
    digest: str = ""
    """Digest of what the person saw; empty: not known."""


async def outermost(app: AppContext, execution: Execution) -> Execution:
    """Return the outermost execution that waits for this sub-workflow, directly or through others; itself if none
    does."""
    while (parent := execution.state.setup.parent) is not None:
        above = await app.runtime.load(ExecutionId(parent))
        waits = (name for at in above.steps.values() for name in children_of(ExecutionId(parent), at))
        if above.ended or execution.id not in waits:
            break
        execution = await open_execution(app, parent)
    return execution


async def drive(execution: Execution, answers: Sequence[GivenAnswer] = ()) -> tuple[GivenAnswer, ...]:
    """Drive the execution to its end, or until only people and events can continue it. Return the unused answers."""
    left = list(answers)
    while True:
        await execution.settled()
        state = execution.state
        if state.ended or (state.is_halted and not state.awaits_escalation):
            break
        fits = ((one, gate) for one in left for gate in execution.gates if one.node in (gate.id, gate.node))
        said, gate = next(fits, (None, None))
        if said is None or gate is None:
            break
        left.remove(said)
        asking = execution.asking(gate)  # two sub-workflows may have gates with the same name
        await asking.answer(
            gate.id, said.action, said.data, comment=said.comment, by=said.by, groups=said.groups, digest=said.digest
        )
    return tuple(left)
