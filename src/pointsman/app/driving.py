"""Driving an execution as far as it goes with the answers at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pointsman.app.executions import Execution
from pointsman.values import Json


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said at the next open gate of a node (or at the gate of that id). Each is said once."""

    node: str
    action: str
    data: Json = None
    comment: str = ""
    by: str = ""
    groups: tuple[str, ...] = ()


async def drive(execution: Execution, answers: Sequence[Answer] = ()) -> tuple[Answer, ...]:
    """Go on to the end, or to where only people and events can go on. The answers for which no gate opened."""
    left = list(answers)
    while True:
        await execution.settled()
        if execution.state.ended or execution.state.stands_still:
            break
        fits = ((one, gate) for one in left for gate in execution.gates if one.node in (gate.id, gate.node))
        said, gate = next(fits, (None, None))
        if said is None or gate is None:
            break
        left.remove(said)
        await execution.answer(gate.id, said.action, said.data, comment=said.comment, by=said.by, groups=said.groups)
    return tuple(left)
