"""Decisions by a model: one of the choices, and the reason."""

from __future__ import annotations

from typing import Final

import msgspec

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.engine.reports import WorkDone, WorkFailed
from pointsman.errors import PointsmanError
from pointsman.executors.agent_settings import AgentSettings, agent_settings, model_of
from pointsman.executors.effect_ledger import Ledger, World
from pointsman.executors.failures import WorkRefused, failure_of, work_failed
from pointsman.executors.prompts import with_value
from pointsman.executors.structured_output import ask_for_json
from pointsman.models.transcript import text_of, user_message
from pointsman.ports import ExecutionPort, ModelRequest
from pointsman.values import Json, JsonObject

_SYSTEM: Final = "Decide by what you are shown. Choose exactly one of:\n{choices}\nGive a short reason."


class DecisionChoice(msgspec.Struct, frozen=True, kw_only=True):
    value: str
    label: Json = None
    description: Json = None


class DecisionExecutor:
    """Input: {"system"?, "prompt", "value"?}. Config: `choices`, labels or {value, label?, …}."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> WorkDone | WorkFailed:
        """Ask the model. `next` is the choice; the result is {"choice", "reason"}."""
        ledger = Ledger(self._world, command, spec, run)
        try:
            choices = _choices(spec)
            request = _request(command, spec, agent_settings(spec), choices)
            answer = await ask_for_json(ledger, request, _schema(choices))
        except PointsmanError as why:
            return work_failed(command, failure_of(why), ledger.usage)
        choice = str(answer["choice"])
        result: JsonObject = {"choice": choice, "reason": text_of(answer.get("reason"))}
        return WorkDone(
            step=command.step,
            attempt=command.attempt,
            result=result,
            next=choice,
            usage=ledger.usage,
            warnings=tuple(ledger.warnings),
        )


def _request(command: Execute, spec: WorkSpec, settings: AgentSettings, choices: list[DecisionChoice]) -> ModelRequest:
    system = _SYSTEM.format(choices="\n".join(map(_line, choices)))
    own = text_of(command.input.get("system"))
    return ModelRequest(
        model=model_of(spec, settings),
        fallback=settings.fallback,
        system=f"{own}\n\n{system}" if own else system,
        messages=[user_message(with_value(text_of(command.input.get("prompt")), command.input.get("value")))],
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
        key_index=settings.key_index,
        purpose=settings.purpose or "decision",
    )


def _choices(spec: WorkSpec) -> list[DecisionChoice]:
    listed = spec.config.get("choices")
    try:
        choices = [
            DecisionChoice(value=one) if isinstance(one, str) else msgspec.convert(one, DecisionChoice)
            for one in (listed if isinstance(listed, list) else [])
        ]
    except msgspec.ValidationError as why:
        message = f"the choices of {spec.node!r} cannot be used: {why}"
        raise WorkRefused(Failure(code="config-wrong", message=message)) from why
    if not choices:
        raise WorkRefused(Failure(code="config-wrong", message=f"the decision {spec.node!r} has no choices"))
    return choices


def _line(choice: DecisionChoice) -> str:
    said = [text for text in (text_of(choice.label), text_of(choice.description)) if text]
    return f"- {choice.value}" + (f": {'. '.join(said)}" if said else "")


def _schema(choices: list[DecisionChoice]) -> JsonObject:
    values: list[Json] = [choice.value for choice in choices]
    return {
        "type": "object",
        "required": ["choice"],
        "properties": {"choice": {"type": "string", "enum": values}, "reason": {"type": "string"}},
    }
