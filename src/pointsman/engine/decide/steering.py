"""Steering: a person intervenes in a running execution whose workflow allows it (`humanInLoop: real_time`).

    ExecutionSteered ─▶ values in the data, messages in the conversation: every later step sees them
       └─ goto ─▶ StepCancelled … ─▶ ControlRedirected ─▶ control enters the node, and is nowhere else

Interventions take effect between steps: running work keeps its input. The event records the person and the reason.
"""

from __future__ import annotations

from pointsman.engine.actions import JoinAction
from pointsman.engine.decide import cancellation
from pointsman.engine.decide.context import DecisionContext, EnterNode
from pointsman.engine.decide.data_edits import check_edits
from pointsman.engine.decide.lifecycle import must
from pointsman.engine.events.lifecycle import ControlRedirected, ExecutionSteered
from pointsman.engine.fold.arrivals import NOBODY
from pointsman.engine.reports import SteerRequested
from pointsman.engine.writes import DataEdit
from pointsman.errors import CallerError
from pointsman.values import END, Json


class NotSteerable(CallerError):
    """The workflow or its state does not allow this intervention."""

    code = "not-steerable"


def steer(ctx: DecisionContext, report: SteerRequested) -> None:
    """Apply an intervention completely or not at all. Raises `NotSteerable`, `WrongStatus`, `EditRefused`."""
    if not ctx.plan.steerable:
        raise NotSteerable(
            "this workflow is not steered by people", hint="Its `config.humanInLoop` must be `real_time`."
        )
    must(ctx, not ctx.state.ended and ctx.state.status != "pending", "steered")
    if report.goto is not None:
        _must_lead_to(ctx, report.goto)
    if report.messages and not ctx.plan.messages:
        raise NotSteerable("this workflow has no conversation to say something in", hint="Put values into its data.")
    check_edits(ctx, (*report.edits, *_said(ctx, report.messages)))
    if not (report.edits or report.messages or report.goto):
        return
    ctx.emit(
        ExecutionSteered(
            edits=report.edits, messages=report.messages, goto=report.goto, reason=report.reason, by=report.by
        )
    )
    if report.goto is not None:
        _redirect(ctx, report.goto)


def _said(ctx: DecisionContext, messages: tuple[Json, ...]) -> tuple[DataEdit, ...]:
    """Return the messages as an edit of the data, so that their size can be checked."""
    if not messages:
        return ()
    known = ctx.state.root.data.root.get("messages")
    return (DataEdit(("messages",), [*(known if isinstance(known, list) else ()), *messages]),)


def _must_lead_to(ctx: DecisionContext, name: str) -> None:
    if ctx.state.compensation is not None:
        raise NotSteerable("what was done is being undone: nothing else moves", hint="Cancel it to undo no more.")
    if name == END:
        return
    node = ctx.plan.nodes.get(name)
    if node is None or node.hidden:
        raise NotSteerable(f"there is no node {name!r} to send control to", hint="See the nodes of the workflow.")
    if node.exits.no_route == "undone":
        raise NotSteerable(f"{name!r} undoes steps: control goes nowhere from there", hint="Name another node.")
    around = (*node.position.parallels, *node.position.loops)
    if around or (isinstance(node.action, JoinAction) and node.action.closes):
        where = f"inside {around[0]!r}" if around else "the end of a parallel"
        raise NotSteerable(f"{name!r} is {where}: control cannot begin there", hint="Name a node outside of it.")


def _redirect(ctx: DecisionContext, node: str) -> None:
    """Cancel all steps and send control to the node, with the incoming value of the first cancelled step."""
    state = ctx.state
    steps = sorted(step for step in state.steps if not step.scope)
    value = state.steps[steps[0]].incoming.value if steps else None
    cancellation.cancel_steps(ctx, ())
    ctx.discard_all()
    ctx.emit(ControlRedirected(node=node, value=value))
    ctx.enqueue(EnterNode(node, (), None, NOBODY))
