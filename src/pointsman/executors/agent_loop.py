"""The loop of model and tools inside one attempt of an agent.

    ask ─▶ reply ─┬─ tool calls ─┬─ left for a tool_executor, or handed to the caller ─▶ done
                  │              └─ run at once, in order told ─▶ ask again  (at most `maxIterations` questions)
                  ├─ not what was asked ─▶ told so, asked again              (at most 2 times)
                  └─ an answer ─▶ done

Tools outside the agent's list are refused and the model is told so; nothing a prompt says can widen the list.
"""

from __future__ import annotations

from msgspec import Struct

from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.engine.kinds import WorkSpec
from pointsman.engine.reports import ToolCall, WorkDone
from pointsman.executors.agent_settings import AgentSettings, model_of
from pointsman.executors.answers import REASKS_MAX, Expected, Wrong
from pointsman.executors.failures import WorkRefused
from pointsman.executors.injected import (
    Injected,
    Intercepted,
    final_value,
    injected,
    intercepted,
    next_in_text,
    next_of,
)
from pointsman.executors.ledger import Ledger, Outcome
from pointsman.executors.prompting import messages_of, system_of
from pointsman.models.repair import Read
from pointsman.models.transcript import as_text, assistant_message, tool_message, user_message
from pointsman.ports import ModelReply, ModelRequest, Run, Tools, ToolSpec
from pointsman.tools.tool import RESERVED
from pointsman.values import Json, JsonObject


class Kept(Struct):
    """What the loop has so far."""

    transcript: list[Json]
    """What the model is shown."""
    added: list[Json] = []
    """What the conversation gains."""
    warnings: list[str] = []
    label: str | None = None
    """The way out chosen beside an answer that had to be asked again."""
    reasks: int = 0


class AgentLoop:
    """One attempt. Make one per attempt, run it once."""

    def __init__(
        self, command: Execute, spec: WorkSpec, run: Run, *, settings: AgentSettings, tools: Tools, ledger: Ledger
    ) -> None:
        self._command = command
        self._spec = spec
        self._run = run
        self._settings = settings
        self._ledger = ledger
        self._name = spec.name or spec.node
        self._allowed = _allowed(settings, tools)
        self._expected = Expected(settings.output_schema, settings.result or "text")
        self._injected: Injected = injected(spec, self._expected.schema, has_tools=bool(self._allowed))
        self._kept = Kept(transcript=messages_of(command, self._name))

    async def perform(self) -> WorkDone:
        """Raises `WorkRefused`, `ModelFailed`, `CallsNeedApproval`."""
        rounds = 0
        while True:
            reply = await self._ledger.ask(self._request(), on_text=self._hear)
            found = intercepted(reply.tool_calls)
            if not found.others:
                done = self._answered(reply, found)
                if done is not None:
                    return done
                continue
            rounds += 1
            if found.next is not None or found.final is not None:
                self._kept.warnings.append(
                    "the model decided and called tools in one answer: it decides again once it knows their results"
                )
            done = await self._called(reply, found.others, is_last=rounds >= self._settings.iterations_max)
            if done is not None:
                return done

    def _request(self) -> ModelRequest:
        settings, spec = self._settings, self._spec
        return ModelRequest(
            model=model_of(spec, settings),
            fallback=settings.fallback,
            system=system_of(self._command, self._injected.text),
            messages=self._kept.transcript,
            tools=(*self._allowed.values(), *self._injected.tools),
            output_schema=self._injected.schema,
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
            key_index=settings.key_index,
            purpose=settings.purpose or "generation",
            hints={"routes": [*spec.routes]},
        )

    def _hear(self, text: str) -> None:
        self._run.delta(self._command, {"kind": "text", "text": text})

    def _answered(self, reply: ModelReply, found: Intercepted) -> WorkDone | None:
        """The answer, or None where the model is told what was wrong and asked again."""
        text, read = self._read(reply.text, found)
        self._kept.label = found.next or self._kept.label
        if isinstance(read, Wrong):
            self._ask_again(read, text)
            return None
        label = self._kept.label or (next_of(read.value) if self._expected.is_json else None)
        if label is None and self._spec.routes:
            label = next_in_text(text)
        if text:
            self._kept.added.append(assistant_message(ModelReply(text=text), name=self._name))
        return self._done(read.value, text, label=label)

    def _read(self, text: str, found: Intercepted) -> tuple[str, Read | Wrong]:
        if found.misrouted:
            return text, Wrong("`router` was called without `next`. Call it again with one of the legal values.")
        if found.final is not None and self._expected.schema is not None:
            value = final_value(found.final, self._expected.schema)
            return text or as_text(value), self._expected.check(value)
        if not text and self._expected.schema is not None and self._injected.schema is None:
            return text, Wrong("You gave no answer. Call `final_result` with it.")
        return text, self._expected.read(text)

    def _ask_again(self, wrong: Wrong, text: str) -> None:
        if self._kept.reasks >= REASKS_MAX:
            raise WorkRefused(self._expected.given_up(wrong, text))
        self._kept.reasks += 1
        if text:
            self._kept.transcript.append(assistant_message(ModelReply(text=text), name=self._name))
        self._kept.transcript.append(user_message(wrong))

    async def _called(self, reply: ModelReply, calls: tuple[ToolCall, ...], *, is_last: bool) -> WorkDone | None:
        """Tools were called: run them and go on (None), or leave them to others."""
        refusals = [self._refusal(call) for call in calls]
        legal = [call for call, refusal in zip(calls, refusals, strict=True) if refusal is None]
        runs = [call for call in legal if self._allowed[call.name].side == "server"]
        leaves = bool(runs) and self._spec.leaves_calls
        if is_last and not leaves:
            raise WorkRefused(_endless(self._spec, self._settings.iterations_max))
        self._keep(assistant_message(reply, name=self._name, calls=calls))
        outcomes = iter([] if leaves else await self._perform_calls(runs))
        for call, refusal in zip(calls, refusals, strict=True):
            if refusal is not None:
                self._tell(call, Outcome(failure=refusal))
            elif call in runs and not leaves:
                self._tell(call, next(outcomes))
        if leaves:
            return self._done(reply.text, reply.text, pending=tuple(runs))
        return self._done(reply.text, reply.text) if len(legal) > len(runs) else None

    async def _perform_calls(self, calls: list[ToolCall]) -> list[Outcome]:
        for call in calls:
            self._run.delta(self._command, {"kind": "tool_call", "tool": call.name, "arguments": call.arguments})
        outcomes = await self._ledger.call(calls, at_once=True)
        for call, outcome in zip(calls, outcomes, strict=True):
            self._run.delta(self._command, {"kind": "tool_result", "tool": call.name, "ok": outcome.failure is None})
        return outcomes

    def _refusal(self, call: ToolCall) -> Failure | None:
        tool = self._allowed.get(call.name)
        if tool is None:
            known = ", ".join(self._allowed) or "none"
            message = f"the tool {call.name!r} is not among yours"
            return Failure(code="tool-not-allowed", message=message, hint=f"Your tools: {known}.")
        return None

    def _tell(self, call: ToolCall, outcome: Outcome) -> None:
        self._keep(tool_message(call, outcome.told(), name=self._name))

    def _keep(self, message: JsonObject) -> None:
        self._kept.transcript.append(message)
        self._kept.added.append(message)

    def _done(
        self, result: Json, text: str, *, label: str | None = None, pending: tuple[ToolCall, ...] = ()
    ) -> WorkDone:
        return WorkDone(
            step=self._command.step,
            attempt=self._command.attempt,
            result=result,
            next=label,
            text=None if self._expected.is_text else text,
            pending=pending,
            messages=tuple(self._kept.added),
            warnings=(*self._ledger.warnings, *self._kept.warnings),
            usage=self._ledger.usage,
        )


def _allowed(settings: AgentSettings, tools: Tools) -> dict[str, ToolSpec]:
    """The agent's tools. Raises `WorkRefused` for one that is unknown, or has a name of the engine's."""
    allowed: dict[str, ToolSpec] = {}
    for name in settings.tools or ():
        if name in RESERVED:
            message = f"the tool {name!r} belongs to the engine: it is offered where it has a meaning"
            raise WorkRefused(Failure(code="tool-name-reserved", message=message, hint="Take it off the list."))
        tool = tools.find(name)
        if tool is None:
            message = f"the agent may call {name!r}, but there is no tool of that name"
            hint = "Register it, or script it for a run without the world."
            raise WorkRefused(Failure(code="unknown-tool", message=message, hint=hint))
        if tool.off:
            message = f"the agent may call {name!r}, but that tool is off here"
            raise WorkRefused(Failure(code="tool-off", message=message, hint=tool.off))
        allowed[name] = tool
    return allowed


def _endless(spec: WorkSpec, iterations_max: int) -> Failure:
    message = f"the agent {spec.node!r} still called tools after {iterations_max} questions to its model"
    return Failure(code="max-iterations", message=message, hint="Raise maxIterations, or tell it when to stop.")
