"""Judges: answers the model questions on a node's edges with yes or no, and why. One call for all of them."""

from __future__ import annotations

from typing import Final

from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.engine.plan import WorkSpec
from pointsman.engine.reports import WorkDone, WorkFailed
from pointsman.errors import PointsmanError
from pointsman.executors.agent_settings import agent_settings, model_of
from pointsman.executors.failures import WorkRefused, failure_of, work_failed
from pointsman.executors.ledger import Ledger, World
from pointsman.executors.structured import ask_for_json
from pointsman.models.transcript import text_of, user_message
from pointsman.ports import ModelRequest, Run
from pointsman.values import Json, JsonObject

_SYSTEM: Final = (
    "Answer each question with true or false, and say why in a sentence. Answer under the id of the question."
)


class JudgeExecutor:
    """Input: {"questions": [{"edge", "prompt"}]}. Result: {edge: {"answer": bool, "reason": text}}."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def execute(self, command: Execute, spec: WorkSpec, run: Run) -> WorkDone | WorkFailed:
        ledger = Ledger(self._world, command, spec, run)
        try:
            questions = _questions(command)
            settings = agent_settings(spec)
            request = ModelRequest(
                model=model_of(spec, settings),
                system=_SYSTEM,
                messages=[user_message("\n\n".join(f"[{edge}] {prompt}" for edge, prompt in questions.items()))],
                temperature=settings.temperature,
                key_index=settings.key_index,
                purpose="judge",
            )
            answers = await ask_for_json(ledger, request, _schema(questions))
        except PointsmanError as why:
            return work_failed(command, failure_of(why), ledger.usage)
        result: JsonObject = {edge: answers[edge] for edge in questions}
        return WorkDone(step=command.step, attempt=command.attempt, result=result, usage=ledger.usage)


def _questions(command: Execute) -> dict[str, str]:
    listed = command.input.get("questions")
    found = {
        text_of(question.get("edge")): text_of(question.get("prompt"))
        for question in (listed if isinstance(listed, list) else [])
        if isinstance(question, dict)
    }
    if not found:
        raise WorkRefused(Failure(code="config-wrong", message="a judge was asked no question"))
    return found


def _schema(questions: dict[str, str]) -> JsonObject:
    answer: JsonObject = {
        "type": "object",
        "required": ["answer", "reason"],
        "properties": {"answer": {"type": "boolean"}, "reason": {"type": "string"}},
    }
    required: list[Json] = [*questions]
    return {"type": "object", "required": required, "properties": dict.fromkeys(questions, answer)}
