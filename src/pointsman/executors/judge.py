"""Judges: a model answers the questions on a node's edges with yes or no, and the reason. One call for each model."""

from __future__ import annotations

from typing import Final

import msgspec

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.reports import WorkDone, WorkFailed
from pointsman.errors import EngineBug, PointsmanError
from pointsman.executors.agent_settings import agent_settings, model_of
from pointsman.executors.effect_ledger import Ledger, World
from pointsman.executors.failures import failure_of, work_failed
from pointsman.executors.prompts import with_value
from pointsman.executors.structured_output import ask_for_json
from pointsman.models.transcript import user_message
from pointsman.ports import ExecutionPort, ModelRequest
from pointsman.values import Json, JsonObject

_SYSTEM: Final = (
    "Answer each question with true or false, and say why in a sentence. Answer under the id of the question."
)


class JudgeQuestion(msgspec.Struct, frozen=True, kw_only=True):
    edge: str
    prompt: str
    model: str | None = None


class JudgeExecutor:
    """Input: {"questions": [{"edge", "prompt", "model"?}], "value"?}. Result: {edge: {"answer": bool, "reason": text}}.

    Questions to the same model are asked in one call.
    """

    def __init__(self, world: World) -> None:
        self._world = world

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> WorkDone | WorkFailed:
        ledger = Ledger(self._world, command, spec, run)
        result: JsonObject = {}
        try:
            questions = _questions(command)
            for model in dict.fromkeys(question.model for question in questions):
                asked = [question for question in questions if question.model == model]
                request = _request(command, spec, model, asked)
                answers = await ask_for_json(ledger, request, _schema(asked))
                result |= {question.edge: answers[question.edge] for question in asked}
        except PointsmanError as why:
            return work_failed(command, failure_of(why), ledger.usage)
        return WorkDone(
            step=command.step,
            attempt=command.attempt,
            result=result,
            usage=ledger.usage,
            warnings=tuple(ledger.warnings),
        )


def _request(command: Execute, spec: WorkSpec, model: str | None, questions: list[JudgeQuestion]) -> ModelRequest:
    settings = agent_settings(spec)
    text = "\n\n".join(f"[{question.edge}] {question.prompt}" for question in questions)
    return ModelRequest(
        model=model or model_of(spec, settings),
        fallback=settings.fallback,
        system=_SYSTEM,
        messages=[user_message(with_value(text, command.input.get("value")))],
        temperature=settings.temperature,
        key_index=settings.key_index,
        purpose="judge",
    )


def _questions(command: Execute) -> list[JudgeQuestion]:
    try:
        return msgspec.convert(command.input.get("questions"), list[JudgeQuestion])
    except msgspec.ValidationError as why:
        raise EngineBug(f"a judge was asked {command.input!r}") from why


def _schema(questions: list[JudgeQuestion]) -> JsonObject:
    answer: JsonObject = {
        "type": "object",
        "required": ["answer", "reason"],
        "properties": {"answer": {"type": "boolean"}, "reason": {"type": "string"}},
    }
    edges = [question.edge for question in questions]
    required: list[Json] = [*edges]
    return {"type": "object", "required": required, "properties": dict.fromkeys(edges, answer)}
