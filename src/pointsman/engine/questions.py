"""Questions: putting something to people, and the clock that says when their time is up."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from pointsman.engine.commands import OpenGate, SetTimer
from pointsman.engine.desk import Desk
from pointsman.engine.entry import Entry
from pointsman.engine.gates import gate_of
from pointsman.engine.kinds import Ask, Value
from pointsman.engine.people import Terms
from pointsman.engine.state import StepState
from pointsman.engine.steps import Step
from pointsman.engine.wait_events import GateOpened, TimerSet
from pointsman.errors import PointsmanError


def put(desk: Desk, question: GateOpened, terms: Terms) -> None:
    """Put a question to people, on these terms, and say where it is asked."""
    step = question.step
    at = desk.state.steps[step]
    env = desk.environment(at.scope, desk.node(step), at.left.value)
    loop = env.names.get("loop")
    iteration = loop.get("iteration") if isinstance(loop, dict) else None
    deadline = None if terms.timeout_s is None else desk.state.at + terms.timeout_s
    desk.emit(
        replace(
            question,
            approvers=terms.approvers,
            deadline=deadline,
            item=env.item_key,
            round=iteration if isinstance(iteration, int) else None,
            called=desk.node(step).called,
        )
    )
    desk.command(OpenGate(step=step))
    if deadline is not None:
        set_deadline(desk, step, deadline)


def said(desk: Desk, at: Entry, messages: Mapping[str, Value], usual: str) -> dict[str, str]:
    """A message in every language that it is said in. What cannot be said in one is said there as it is in the
    execution's (`usual`), and told: nobody goes unasked because of a text that others read."""
    if not messages:
        return {}
    env = at.environment()
    told: dict[str, str] = {}
    for language, value in messages.items():
        try:
            told[language] = str(desk.value(at.scope, value, env) or "")
        except PointsmanError as why:
            desk.warn("text-unsaid", f"what {at.node.id!r} asks cannot be said in {language!r}: {why}", at.step)
            told[language] = usual
    return told


def set_deadline(desk: Desk, step: Step, at: float) -> None:
    """Wake the open gate of a step at `at` (unix seconds). Each level has its own timer: a late one is not heard."""
    gate = gate_of(desk.state.steps[step])
    timer = f"gate:{gate.id.removeprefix('gate-')}:{gate.level}"
    desk.emit(TimerSet(timer=timer, purpose="gate", at=at, step=step))
    desk.command(SetTimer(timer=timer, at=at))


def terms_of(desk: Desk, at: StepState) -> Terms:
    """On which terms the open gate of a step asks."""
    node = desk.node(at.step)
    return node.does.terms if isinstance(node.does, Ask) else node.approval.terms
