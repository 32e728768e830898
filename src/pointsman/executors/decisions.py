"""Decisions by a model: a choice of an agent, answers to the questions on edges, and recovery after a failure."""

from __future__ import annotations

from typing import Final

import msgspec

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCallsProposed, WorkDone, WorkFailed
from pointsman.errors import EngineBug
from pointsman.executors.conversation import AgentSettings, agent_settings, model_of, with_value
from pointsman.executors.effect_ledger import EffectLedger, ExecutorDeps, attempt
from pointsman.executors.failures import WorkRefused
from pointsman.executors.model_answers import ask_for_json
from pointsman.models.transcript import as_text, text_of, user_message
from pointsman.ports import ExecutionPort, ModelRequest
from pointsman.values import Json, JsonObject

_DECISION_SYSTEM: Final = "Decide by what you are shown. Choose exactly one of:\n{choices}\nGive a short reason."


class DecisionChoice(msgspec.Struct, frozen=True, kw_only=True):
    value: str
    label: Json = None
    description: Json = None


class DecisionExecutor:
    """Input: {"system"?, "prompt", "value"?}. Config: `choices`, labels or {value, label?, …}."""

    def __init__(self, deps: ExecutorDeps) -> None:
        self._deps = deps

    async def execute(
        self, command: Execute, spec: WorkSpec, run: ExecutionPort
    ) -> WorkDone | WorkFailed | ToolCallsProposed:
        """Ask the model. `next` is the choice; the result is {"choice", "reason"}."""

        async def decide(ledger: EffectLedger) -> WorkDone:
            choices = _choices(spec)
            request = _decision_request(command, spec, agent_settings(spec), choices)
            answer = await ask_for_json(ledger, request, _choice_schema(choices))
            choice = str(answer["choice"])
            return ledger.done({"choice": choice, "reason": text_of(answer.get("reason"))}, next=choice)

        return await attempt(self._deps, command, spec, run, decide)


def _decision_request(
    command: Execute, spec: WorkSpec, settings: AgentSettings, choices: list[DecisionChoice]
) -> ModelRequest:
    system = _DECISION_SYSTEM.format(choices="\n".join(map(_choice_line, choices)))
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
        raise WorkRefused(Failure(code="config-invalid", message=message)) from why
    if not choices:
        raise WorkRefused(Failure(code="config-invalid", message=f"the decision {spec.node!r} has no choices"))
    return choices


def _choice_line(choice: DecisionChoice) -> str:
    parts = [text for text in (text_of(choice.label), text_of(choice.description)) if text]
    return f"- {choice.value}" + (f": {'. '.join(parts)}" if parts else "")


def _choice_schema(choices: list[DecisionChoice]) -> JsonObject:
    values: list[Json] = [choice.value for choice in choices]
    return {
        "type": "object",
        "required": ["choice"],
        "properties": {"choice": {"type": "string", "enum": values}, "reason": {"type": "string"}},
    }


_JUDGE_SYSTEM: Final = (
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

    def __init__(self, deps: ExecutorDeps) -> None:
        self._deps = deps

    async def execute(
        self, command: Execute, spec: WorkSpec, run: ExecutionPort
    ) -> WorkDone | WorkFailed | ToolCallsProposed:
        async def judge(ledger: EffectLedger) -> WorkDone:
            result: JsonObject = {}
            questions = _questions(command)
            for model in dict.fromkeys(question.model for question in questions):
                batch = [question for question in questions if question.model == model]
                request = _judge_request(command, spec, model, batch)
                answers = await ask_for_json(ledger, request, _answers_schema(batch))
                result |= {question.edge: answers[question.edge] for question in batch}
            return ledger.done(result)

        return await attempt(self._deps, command, spec, run, judge)


def _judge_request(command: Execute, spec: WorkSpec, model: str | None, questions: list[JudgeQuestion]) -> ModelRequest:
    settings = agent_settings(spec)
    text = "\n\n".join(f"[{question.edge}] {question.prompt}" for question in questions)
    return ModelRequest(
        model=model or model_of(spec, settings),
        fallback=settings.fallback,
        system=_JUDGE_SYSTEM,
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


def _answers_schema(questions: list[JudgeQuestion]) -> JsonObject:
    answer: JsonObject = {
        "type": "object",
        "required": ["answer", "reason"],
        "properties": {"answer": {"type": "boolean"}, "reason": {"type": "string"}},
    }
    edges = [question.edge for question in questions]
    required: list[Json] = [*edges]
    return {"type": "object", "required": required, "properties": dict.fromkeys(edges, answer)}


_RECOVERY_SYSTEM: Final = (
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

    def __init__(self, deps: ExecutorDeps) -> None:
        self._deps = deps

    async def execute(
        self, command: Execute, spec: WorkSpec, run: ExecutionPort
    ) -> WorkDone | WorkFailed | ToolCallsProposed:
        listed = command.input.get("routes")
        routes = [route for route in listed if isinstance(route, str)] if isinstance(listed, list) else []
        request = ModelRequest(
            model=text_of(spec.config.get("model")) or text_of(spec.settings.get("defaultModel")),
            system=_RECOVERY_SYSTEM.format(route=f"- route: go on at {' or '.join(routes)}\n" if routes else ""),
            messages=[user_message(as_text(command.input))],
            purpose="recover",
        )

        async def recover(ledger: EffectLedger) -> WorkDone:
            result = await ask_for_json(ledger, request, _recovery_schema(routes))
            return WorkDone(step=command.step, attempt=command.attempt, result=result, usage=ledger.usage)

        return await attempt(self._deps, command, spec, run, recover)


def _recovery_schema(routes: list[str]) -> JsonObject:
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
