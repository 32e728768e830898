"""Playing: an execution on a store of its own, driven to its end by whoever always says the first thing offered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from pointsman.engine.decide.human_task_answers import EDIT, edit_of_nothing
from pointsman.engine.events.steps import LoopRound
from pointsman.engine.events.waits import TimerElapsed
from pointsman.engine.plan import Plan
from pointsman.engine.state import GateState
from pointsman.executions.driving import GivenAnswer
from pointsman.executions.dry_run.estimate import Estimate, Rounds, estimates
from pointsman.executions.dry_run.standing_in import CHARS_PER_TOKEN, OUTPUT_TOKENS, Quiet
from pointsman.executions.execution import Execution
from pointsman.executions.families import OpenGate
from pointsman.executions.views import ErrorView, WarningView, errors_of, path_of, warnings_of
from pointsman.models.prices import Prices
from pointsman.models.scripted import sample
from pointsman.ports import Row
from pointsman.runtime.driver import Driver
from pointsman.runtime.local import LocalRuntime
from pointsman.values import ExecutionId, Json, JsonObject, json_of
from pointsman.workflows.document_work import beside

TURNS: Final = 20
"""So often nothing must move before nothing is taken to move."""
ANSWERS_MAX: Final = 1000
"""Whoever asks people more often than this goes in circles."""
ROW_CHARS: Final = 200
"""A row of the journal takes as long to read as so many characters of a document."""


class DryRun(Struct, frozen=True, kw_only=True):
    """The way it would go, and what it would cost."""

    workflow: str
    status: str
    output: Json
    path: list[str]
    steps: int
    waits: list[JsonObject]
    """Where it waited, and what was taken to happen there."""
    calls: list[Estimate]
    errors: list[ErrorView]
    warnings: list[WarningView]


async def play(
    runtime: LocalRuntime, execution: Execution, quiet: Quiet, answers: Sequence[GivenAnswer], prices: Prices
) -> DryRun:
    """Drive it on until nothing more can happen."""
    waits: list[JsonObject] = []
    left = [*answers]
    for _ in range(ANSWERS_MAX):
        await _quiet(runtime)
        if execution.state.ended or execution.state.is_halted:
            break
        if execution.gates:
            waits.append(await _answer(execution, execution.gates[0], left))
        elif (event := _awaited(runtime)) is not None:
            driver, name = event
            waits.append({"nodeId": name[0], "kind": "event", "event": name[1], "answered": None})
            await Execution(runtime, driver).signal(name[1])
        elif not quiet.clock.skip():
            break
    rows, rounds = await execution.rows(), await _rounds(runtime, quiet.notes.plans)
    # Beside the loop: a thousand steps take about 8 ms.
    return await beside(len(rows) * ROW_CHARS, lambda: _summary(execution, quiet, rows, waits, rounds, prices))


def _summary(
    execution: Execution,
    quiet: Quiet,
    rows: Sequence[Row],
    waits: list[JsonObject],
    rounds: Rounds,
    prices: Prices,
) -> DryRun:
    return DryRun(
        workflow=execution.state.setup.workflow,
        status=execution.status,
        output=execution.state.outcome.output,
        path=path_of(rows),
        steps=execution.state.counters.steps,
        waits=[*waits, *_rang(rows)],
        calls=estimates(quiet.notes.calls, quiet.notes.plans, rounds, prices),
        errors=errors_of(rows),
        warnings=warnings_of(rows),
    )


async def _quiet(runtime: LocalRuntime) -> None:
    """Return when nothing moves any more but time and people."""
    still = 0
    while still < TURNS:
        await asyncio.sleep(0)
        drivers = [*runtime.drivers.values()]
        busy = any(driver.busy or driver.ready or driver.committing for driver in drivers)
        still = 0 if busy else still + 1


async def _answer(execution: Execution, gate: OpenGate, left: list[GivenAnswer]) -> JsonObject:
    """What was given for the gate, else its first option, by as many as must agree."""
    at = gate.at.gate
    assert at is not None
    given = next((one for one in left if one.node in (gate.id, gate.node)), None)
    if given is not None:
        left.remove(given)
    action = given.action if given is not None else str(at.options[0]["value"])
    data = given.data if given is not None else _data(at, action)
    users = (at.approvers.users if at.approvers is not None else None) or ()
    groups = (at.approvers.groups if at.approvers is not None else None) or ()
    voter = 0
    while any(one.id == gate.id and one.at is gate.at for one in execution.gates) and voter < TURNS:
        by = users[voter] if voter < len(users) else f"dry-run-{voter + 1}"
        await execution.answer(gate.id, action, data, by=by, groups=groups)
        voter += 1
    return {"nodeId": gate.node, "kind": "gate", "event": None, "answered": action}


def _data(gate: GateState, action: str) -> Json:
    """Data that the gate takes with the action: an edit leaves the fields as they are."""
    if action == EDIT and gate.editable:
        return edit_of_nothing(gate)
    return None if gate.form is None else sample(gate.form, "dry run")


def _awaited(runtime: LocalRuntime) -> tuple[Driver, tuple[str, str]] | None:
    for driver in runtime.drivers.values():
        for at in sorted(driver.state.steps.values(), key=lambda at: at.step):
            if at.event is not None:
                return driver, (at.step.node, at.event)
    return None


def _rang(rows: Sequence[Row]) -> list[JsonObject]:
    """The timers that would have been waited for."""
    rang = [event.timer for row in rows for event in row.events if isinstance(event, TimerElapsed)]
    return [{"nodeId": None, "kind": "timer", "event": timer, "answered": None} for timer in rang]


async def _rounds(runtime: LocalRuntime, plans: dict[str, Plan]) -> Rounds:
    """(execution, loop) -> how many rounds it took."""
    found: dict[tuple[str, str], int] = {}
    for name in plans:
        async for row in runtime.journal.read(ExecutionId(name)):
            for event in row.events:
                if isinstance(event, LoopRound):
                    found[name, event.node] = max(found.get((name, event.node), 0), event.round)
    return found


def dry_view(found: DryRun) -> JsonObject:
    """What came of it, as JSON. Costs are in dollars; null: not known."""
    models = [one for one in found.calls if one.kind == "model"]
    low = [one.cost_usd for one in models]
    high = [one.cost_max_usd for one in models]
    unpriced: list[Json] = [*dict.fromkeys(one.name for one in models if one.cost_usd is None)]
    path: list[Json] = [*found.path]
    waits: list[Json] = [*found.waits]
    return {
        "dryRun": True,
        "workflowId": found.workflow,
        "status": found.status,
        "output": found.output,
        "path": path,
        "steps": found.steps,
        "waits": waits,
        "calls": [call_view(one) for one in found.calls],
        "cost": {
            "lowUsd": None if None in low else sum(one for one in low if one is not None),
            "highUsd": None if None in high else sum(one for one in high if one is not None),
            "unpriced": unpriced,
        },
        "assumptions": {"charsPerToken": CHARS_PER_TOKEN, "outputTokensPerAnswer": OUTPUT_TOKENS},
        "errors": [json_of(one) for one in found.errors],
        "warnings": [json_of(one) for one in found.warnings],
    }


def call_view(one: Estimate) -> JsonObject:
    tools: list[Json] = [*one.tools]
    return {
        "nodeId": one.node,
        "kind": one.kind,
        "name": one.name,
        "calls": one.calls,
        "callsMax": one.calls_max,
        "inputTokens": one.input_tokens,
        "outputTokens": one.output_tokens,
        "costUsd": one.cost_usd,
        "costMaxUsd": one.cost_max_usd,
        "tools": tools,
    }
