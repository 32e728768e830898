"""Recovery after a failure: a model sees what went wrong and chooses what to do about it."""

from __future__ import annotations

from typing import Final

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.reports import WorkDone, WorkFailed
from pointsman.errors import PointsmanError
from pointsman.executors.effect_ledger import Ledger, World
from pointsman.executors.failures import failure_of, work_failed
from pointsman.executors.structured_output import ask_for_json
from pointsman.models.transcript import as_text, text_of, user_message
from pointsman.ports import ExecutionPort, ModelRequest
from pointsman.values import Json, JsonObject

_SYSTEM: Final = (
    "A step of a workflow failed. Choose what to do:\n"
    "- give_up: nothing can be done here\n"
    "- retry: try again; `inputs` holds what to change in its input, if anything\n"
    "- substitute: `value` is used as its result\n"
    "{route}"
    "Say why in a sentence. Never invent facts for a substitute."
)


class RecoveryExecutor:
    """Input: {"failure", "input", "routes"}. Result: {"choice", "inputs"?, "value"?, "route"?, "reason"}.

    Works for steps of every kind; the model is the node's own if it has one, else the workflow's.
    """

    def __init__(self, world: World) -> None:
        self._world = world

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> WorkDone | WorkFailed:
        ledger = Ledger(self._world, command, spec, run)
        listed = command.input.get("routes")
        routes = [route for route in listed if isinstance(route, str)] if isinstance(listed, list) else []
        request = ModelRequest(
            model=text_of(spec.config.get("model")) or text_of(spec.settings.get("defaultModel")),
            system=_SYSTEM.format(route=f"- route: go on at {' or '.join(routes)}\n" if routes else ""),
            messages=[user_message(as_text(command.input))],
            purpose="recover",
        )
        try:
            result = await ask_for_json(ledger, request, _schema(routes))
        except PointsmanError as why:
            return work_failed(command, failure_of(why), ledger.usage)
        return WorkDone(step=command.step, attempt=command.attempt, result=result, usage=ledger.usage)


def _schema(routes: list[str]) -> JsonObject:
    choices: list[Json] = ["give_up", "retry", "substitute", *(["route"] if routes else [])]
    properties: JsonObject = {
        "choice": {"type": "string", "enum": choices},
        "reason": {"type": "string"},
        "inputs": {"type": "object"},
        "value": {},
    }
    needs: list[Json] = [_needs("substitute", "value")]
    if routes:
        legal: list[Json] = [*routes]
        properties["route"] = {"type": "string", "enum": legal}
        needs.append(_needs("route", "route"))
    return {"type": "object", "required": ["choice", "reason"], "properties": properties, "allOf": needs}


def _needs(choice: str, field: str) -> JsonObject:
    return {"if": {"properties": {"choice": {"const": choice}}}, "then": {"required": [field]}}
