"""Model and tool calls of a step's attempts with their answers, read from the recorded effects.

An attempt records each answer as soon as it arrives, so calls are visible while the step runs and after a crash.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pointsman.auth.redaction import Redactor, redactor_for
from pointsman.context import AppContext
from pointsman.engine.reports import ToolCall
from pointsman.executions.views import observability_of, usage_view
from pointsman.executors.effect_ledger import ToolOutcome, fingerprint
from pointsman.ports import ModelReply
from pointsman.values import ExecutionId, Json, JsonObject, json_of

FIELDS: Final = 3
"""Kind, fingerprint of the request, answer."""


async def calls_of(app: AppContext, execution: str, step: str) -> list[JsonObject]:
    """Return the calls of a step in the order they were made, redacted; none if the workflow's level is `minimal`.

    A model call has `model`, `text`, `usage` and `calls`, each with `tool`, `arguments`, `result` or `error`, and
    whether it is `done`. A tool call that no model made has `result` or `error`. Raises `UnknownExecution`.
    """
    name = ExecutionId(execution)
    state = await app.runtime.load(name)
    if observability_of(state.setup.options) == "minimal":
        return []
    redact = redactor_for(app.settings)
    found: list[JsonObject] = []
    for attempt in await app.store.effects.attempts(name):
        of, _, number = attempt.rpartition(":")
        if of == step and number.isdecimal():
            found += _calls_in(await app.store.effects.recorded(name, attempt), int(number), redact)
    return sorted(found, key=lambda call: (call["attempt"], call["number"]))


def _calls_in(recorded: dict[int, Json], attempt: int, redact: Redactor) -> list[JsonObject]:
    found: list[JsonObject] = []
    open_: list[tuple[str, JsonObject]] = []
    """Calls that models made and whose outcome has not been read yet, by the fingerprint of the request."""
    for number, effect in sorted(recorded.items()):
        if not isinstance(effect, list | tuple) or len(effect) != FIELDS:
            continue
        kind, asked, told = effect
        place: JsonObject = {"attempt": attempt, "number": number, "kind": kind}
        if kind == "model":
            reply = _reply(told)
            if reply is None:
                continue
            made = [(fingerprint(one.name, one.arguments), _made(one, redact)) for one in reply.tool_calls]
            open_ += made
            found.append({**place, **_said(reply, redact), "calls": [shown for _, shown in made]})
        elif kind == "tool":
            outcome = _outcome(msgspec.convert(told, ToolOutcome), redact)
            at = next((at for at, (mark, _) in enumerate(open_) if mark == asked), None)
            if at is None:
                found.append({**place, **outcome})
            else:
                open_.pop(at)[1].update(outcome)
    return found


def _made(call: ToolCall, redact: Redactor) -> JsonObject:
    return {"tool": call.name, "arguments": redact.json(call.arguments), "done": False}


def _said(reply: ModelReply, redact: Redactor) -> JsonObject:
    return {"model": reply.model, "text": redact.text(reply.text), "usage": json_of(usage_view(reply.usage))}


def _reply(told: Json) -> ModelReply | None:
    """Return the recorded reply, or None if the request was refused."""
    try:
        return msgspec.convert(told, ModelReply)
    except msgspec.ValidationError:
        return None


def _outcome(outcome: ToolOutcome, redact: Redactor) -> JsonObject:
    if outcome.failure is None:
        return {"done": True, "result": redact.json(outcome.result)}
    return {"done": True, "error": {"code": outcome.failure.code, "message": redact.text(outcome.failure.message)}}
