"""Effect ledger: the model and tool calls of one attempt, numbered, recorded, bounded in time and added up.

    ask / call ─▶ number n ─▶ recorded(n)? ── yes ─▶ the answer from before the crash, not charged again
                                  └─ no ─▶ the world ─▶ record(n) ─▶ the answer

Numbers follow the order of calls, so a repeated attempt finds its own records. Failures of models are not recorded,
since the next attempt may ask again, except that a request was too long: the following requests depend on it. Failures
of tools are recorded, because a model has received them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from hashlib import sha256
from typing import Final, Literal

import msgspec
from msgspec import field

from pointsman.deadlines import Deadlines
from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.decide.limits import BUDGET_SPENT
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall, ToolCallsProposed, Usage, WorkDone, WorkFailed
from pointsman.errors import PointsmanError
from pointsman.executors.attachments import Fetch, FileReader
from pointsman.executors.failures import WorkRefused, failure_of, work_failed
from pointsman.executors.secrets import MaskedListener, Masks, masked_failure, revealed
from pointsman.executors.tool_calls import Approvals, CallsNeedApproval, Returned, is_deferred, memory_command
from pointsman.models.failures import ModelFailed
from pointsman.models.transcript import text_of
from pointsman.ports import (
    EffectKind,
    ExecutionPort,
    Executor,
    ModelReply,
    ModelRequest,
    Models,
    SecretRule,
    Secrets,
    TextCallback,
    Tools,
    ToolSpec,
)
from pointsman.redaction import NOTHING, Redaction, hiding, tail
from pointsman.tool_output import CHARS_MAX, gathering
from pointsman.tools.tool import ToolFailed
from pointsman.values import Json, JsonObject

TOO_LONG: Final = "model-context-too-long"
TOOL_TIME_HINT: Final = (
    "Give the tool a time of its own (`@tool(timeout_s=…)`), or raise the node's `execution.timeout` or the workflow's "
    "`config.limits.nodeTime`."
)
OPERATOR_TIME_HINT: Final = "The operator allows no more: `limits.nodeTime` in the settings."
_REFUSED: Final = "refused"
NO_MASKS: Final = Masks(NOTHING)
NO_USAGE: Final = Usage()
ONE_CALL: Final = Usage(tool_calls=1)


class _None:
    is_fresh = True

    async def refresh(self) -> None:
        """Do nothing: there are no secrets to read."""

    def secret(self, name: str) -> str | None:
        return None

    def rule(self, name: str) -> SecretRule:
        """Allow no destination."""
        return SecretRule()

    async def refusal(self, name: str, revision: str) -> str:
        return ""

    @property
    def redaction(self) -> Redaction:
        """The redaction that masks nothing."""
        return NOTHING


NO_SECRETS: Final[Secrets] = _None()


class ExecutorDeps(msgspec.Struct, frozen=True, kw_only=True):
    """The ports that executors use."""

    models: Models
    tools: Tools
    fetch: Fetch | None = None
    """Gets files by their addresses."""
    keep: FileReader | None = None
    """Reads files that executions keep."""
    memory: Executor | None = None
    """Performs memory nodes and the memory tools of agents."""
    secrets: Secrets = NO_SECRETS
    """Values of the secrets that documents name."""
    deadlines: Deadlines = field(default_factory=Deadlines)
    """Deadlines of tool calls."""


class ToolOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The outcome of a tool call: a result or a failure."""

    result: Json = None
    failure: Failure | None = None
    usage: Usage | None = None
    """Usage of a semantic memory search (embeddings), and whether a script answered."""
    printed: str = ""
    """The end of what a successful tool printed and logged."""

    def plain(self) -> Json:
        """Return the outcome as its record. A result is not copied: it may be large."""
        if self.failure is not None or self.usage is not None:
            return msgspec.to_builtins(self)
        record: JsonObject = {} if self.result is None else {"result": self.result}
        if self.printed:
            record["printed"] = self.printed
        return record

    def told(self) -> Json:
        """Return the outcome as a model receives it."""
        if self.failure is None:
            return self.result
        why = self.failure
        return {"error": {"code": why.code, "message": why.message, **({"hint": why.hint} if why.hint else {})}}


class CallTimes:
    """Time limits of calls: the one raised for this execution, else the workflow's `nodeTime` or default."""

    def __init__(self, raised_s: float | None, settings: Mapping[str, Json]) -> None:
        self._raised_s = raised_s
        self._settings = settings

    @property
    def model_s(self) -> float | None:
        """The limit in seconds for a call of a model."""
        return self._longer("modelCallTime")

    def _longer(self, setting: str) -> float | None:
        """Return the limit of the node, or the raised one if that is longer."""
        usual_s = _seconds(self._settings.get(setting))
        if self._raised_s is None or usual_s is None:
            return usual_s if self._raised_s is None else self._raised_s
        return max(self._raised_s, usual_s)

    def of_tool(self, tool: ToolSpec | None) -> tuple[float | None, str]:
        """Return the limit in seconds for a call of the tool, and the hint that names its setting. None: the tool
        applies its own limit."""
        own = None if tool is None else tool.timeout_s
        if own is None:
            return self._longer("toolCallTime"), TOOL_TIME_HINT
        most_s = _seconds(self._settings.get("callTimeMost"))
        return (None, "") if most_s is None or own <= most_s else (most_s, OPERATOR_TIME_HINT)


_NUMBER: Final = (int, float)


def _seconds(seconds_asked: Json) -> float | None:
    return seconds_asked if isinstance(seconds_asked, _NUMBER) else None


class EffectLedger:
    """The calls of one attempt, each limited in time (`CallTimes`); the runtime limits the whole attempt."""

    __slots__ = (
        "_approvals",
        "_asked",
        "_command",
        "_deps",
        "_effects",
        "_in_flight",
        "_number",
        "_run",
        "_spec",
        "printed",
        "usage",
        "warnings",
    )

    def __init__(self, deps: ExecutorDeps, command: Execute, spec: WorkSpec, run: ExecutionPort) -> None:
        self._deps = deps
        self._command = command
        self._spec = spec
        self._run = run
        self._effects = run.effects
        self._approvals: Approvals | None = Approvals(command, deps.tools) if command.verdicts else None
        """None: no call of this attempt needed approval so far."""
        self._number = 0
        self._asked = 0
        self._in_flight = 0
        """Calls that are made or are about to be made."""
        self.usage = NO_USAGE
        self.printed = ""
        """The end of what its tools printed and logged."""
        self.warnings: list[str] = []
        """Warnings about how the answers were obtained."""

    async def ask(self, request: ModelRequest, *, on_text: TextCallback | None = None) -> ModelReply:
        """Ask a model. Raises `ModelFailed`, also for the time limit (`model-timeout`)."""
        number = self._next()
        self._asked += 1
        asked = fingerprint(request.purpose, len(request.messages), [*request.messages[-1:]])
        reply = self._recorded_reply(number, asked)
        if reply is None:
            self._may("model")
            await self._effects.flush()
            self._in_flight += 1
            hints = {**self._hints(), **request.hints}
            full = msgspec.structs.replace(
                request,
                hints=hints,
                timeout_s=CallTimes(self._command.call_timeout_s, self._spec.settings).model_s,
                run=self._run,
            )
            if only := text_of(self._spec.settings.get("model")):
                full = msgspec.structs.replace(full, model=only, fallback=(only,))
            try:
                reply = await self._masked_reply(full, on_text)
            except ModelFailed as why:
                self._in_flight -= 1
                if why.failure.code == TOO_LONG:  # the next request depends on it
                    await self._effects.record(number, "model", {_REFUSED: _plain(why.failure)}, request=asked)
                raise
            await self._record(number, "model", msgspec.to_builtins(reply), asked)
        self.usage = added(self.usage, reply.usage)
        self.warnings.extend(warning for warning in reply.warnings if warning not in self.warnings)
        return reply

    async def _masked_reply(self, request: ModelRequest, on_text: TextCallback | None) -> ModelReply:
        """Ask the model and mask every known secret in the reply, whatever put it into the prompt."""
        redaction = self._deps.secrets.redaction
        if not redaction:
            return await self._deps.models.ask(request, on_text=on_text)
        hearing = None if on_text is None else MaskedListener(on_text, redaction)
        try:
            reply = await self._deps.models.ask(request, on_text=hearing)
        except ModelFailed as why:
            raise ModelFailed(masked_failure(why.failure, redaction)) from why
        finally:
            if hearing is not None:
                hearing.end()
        plain: Json = msgspec.to_builtins(reply)
        masked = redaction.json(plain)
        return reply if masked is plain else msgspec.convert(masked, ModelReply)

    async def call(self, calls: Iterable[ToolCall], *, at_once: bool = False) -> list[ToolOutcome]:
        """Call tools, one after another or `at_once`; outcomes come in the order of the calls.

        Raises `CallsNeedApproval` before any call is made if people must approve some first; `WorkRefused` if a budget
        forbids them.
        """
        numbered = [(self._next(), call) for call in calls]
        tools = [self._deps.tools.find(call.name) for _, call in numbered]
        if self._approvals is None and any(map(is_deferred, tools)):
            self._approvals = Approvals(self._command, self._deps.tools)
        if self._approvals is not None:
            self._approvals.must_cover(numbered)
        await self._admit([number for number, _ in numbered])
        if not at_once or len(numbered) == 1:
            return [await self._call(number, call, tool) for (number, call), tool in zip(numbered, tools, strict=True)]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._call(number, call, tool))
                    for (number, call), tool in zip(numbered, tools, strict=True)
                ]
        except ExceptionGroup as why:
            raise why.exceptions[0] from why  # a failed record (another process appended) is for the runtime to handle
        return [task.result() for task in tasks]

    async def call_one(self, call: ToolCall) -> ToolOutcome:
        """Call one tool. Raises the errors of `call`."""
        tool = self._deps.tools.find(call.name)
        if self._approvals is not None or is_deferred(tool):
            (outcome,) = await self.call([call])
            return outcome
        number = self._next()
        await self._admit([number])
        return await self._call(number, call, tool)

    def _admit(self, numbers: list[int]) -> Awaitable[None]:
        """Count calls that are about to be made. Return when the answers before them are durable."""
        count = len(numbers)
        for number in numbers:
            if self._effects.recorded(number) is None:
                self._may("tool", calls=count)
                break
        called = ONE_CALL if count == 1 else Usage(tool_calls=count)
        self.usage = called if self.usage is NO_USAGE else added(self.usage, called)
        self._in_flight += count
        return self._effects.flush()

    def done(self, result: Json, *, next: str | None = None) -> WorkDone:
        """Return the report of a finished attempt, with its usage and warnings."""
        return WorkDone(
            step=self._command.step,
            attempt=self._command.attempt,
            result=result,
            next=next,
            usage=self.usage,
            warnings=tuple(self.warnings),
        )

    def _may(self, kind: Literal["model", "tool"], *, calls: int = 1) -> None:
        refusal = self._effects.refusal(kind, self.usage, calls=calls)
        if refusal is not None:
            raise WorkRefused(refusal)

    def _next(self) -> int:
        self._number += 1
        return self._number

    async def _call(self, number: int, call: ToolCall, tool: ToolSpec | None) -> ToolOutcome:
        asked = fingerprint(call.name, call.arguments)
        recorded = self._effects.recorded(number, kind="tool", request=asked)
        if recorded is not None:
            self._in_flight -= 1
            return self._counted(msgspec.convert(recorded, ToolOutcome))
        decided = call if self._approvals is None else self._approvals.decided(number, call)
        if isinstance(decided, Failure):
            outcome = ToolOutcome(failure=decided)
        elif isinstance(decided, Returned):
            outcome = ToolOutcome(result=decided.result)
        else:
            content = asked if decided is call else fingerprint(decided.name, decided.arguments)
            key = f"{self._run.execution}:{self._command.step}:{number}:{content}"
            if tool is not None and tool.memory:
                outcome = await self._remember(decided, tool, number)
            else:
                outcome = await self._bounded_call(decided, tool, key=key)
            if tool is not None and tool.scripted:
                outcome = msgspec.structs.replace(outcome, usage=Usage(scripted=True))
        await self._record(number, "tool", outcome.plain(), asked)
        return self._counted(outcome)

    def _record(self, number: int, kind: EffectKind, answer: Json, asked: str) -> Awaitable[None]:
        """Record the answer of a call. That of the last call in flight becomes durable with the report, or before the
        next call. An answer never waits for another call: a crash during that call would repeat both."""
        self._in_flight -= 1
        return self._effects.record(number, kind, answer, request=asked, later=not self._in_flight)

    def _counted(self, outcome: ToolOutcome) -> ToolOutcome:
        if outcome.usage is not None:
            self.usage = added(self.usage, outcome.usage)
        if outcome.printed:
            self.printed = tail(self.printed + outcome.printed, CHARS_MAX)
        return outcome

    async def _bounded_call(self, call: ToolCall, tool: ToolSpec | None, *, key: str) -> ToolOutcome:
        # The key contains no attempt number: a retry must not repeat what may have been done. It contains the content:
        # in another attempt the model may call something else at the same number.
        limit, hint = CallTimes(self._command.call_timeout_s, self._spec.settings).of_tool(tool)
        bound = self._deps.deadlines.limit(limit)
        secrets = self._deps.secrets
        if not secrets.is_fresh:
            with self._run.waiting_for_store():  # In the limit of the call this wait would count as time of the tool.
                await secrets.refresh()
        shown, masks, known = call, NO_MASKS, secrets.redaction
        if self._spec.secrets:
            shown, masks = await self._revealed(call)
        elif known:
            masks = Masks(known)
        try:
            with bound, gathering() as gathered:
                if masks is NO_MASKS:
                    result = await self._deps.tools.call(shown, key=key, run=self._run)
                else:
                    with hiding(*masks):
                        result = masks.json(await self._deps.tools.call(shown, key=key, run=self._run))
            printed = gathered.text
            return ToolOutcome(result=result, printed=tail(masks.text(printed), CHARS_MAX) if printed else "")
        except ToolFailed as why:
            if self._run.leaves(why.failure):
                raise WorkRefused(masks.failure(why.failure)) from why
            return ToolOutcome(failure=masks.failure(why.failure))
        except TimeoutError:
            if not bound.expired:
                raise
            message = f"the tool {call.name!r} did not answer within {limit:g} s"
            return ToolOutcome(failure=Failure(code="tool-timeout", message=message, retryable=True, hint=hint))

    async def _revealed(self, call: ToolCall) -> tuple[ToolCall, Masks]:
        """Return the call with its secrets inserted, and the masks of all known secrets."""
        secrets, spec = self._deps.secrets, self._spec
        written = spec.config.get("parameters")
        with self._run.waiting_for_store():
            arguments = await revealed(
                call.arguments, spec.secrets, written, secrets, revision=self._run.revision, tool=call.name
            )
        return msgspec.structs.replace(call, arguments=arguments.value) if arguments.guards else call, arguments.masks(
            secrets
        )

    async def _remember(self, call: ToolCall, tool: ToolSpec, number: int) -> ToolOutcome:
        try:
            asked = memory_command(self._command, call, tool, number)
        except ToolFailed as why:
            return ToolOutcome(failure=why.failure)
        assert self._deps.memory is not None, "an installation has a memory"
        report = await self._deps.memory.execute(asked, self._spec, self._run)
        if isinstance(report, WorkDone):
            return ToolOutcome(result=report.result, usage=report.usage)
        assert isinstance(report, WorkFailed)  # memory asks no people
        if report.failure.code == BUDGET_SPENT:  # the execution stops; the model is not informed
            raise WorkRefused(report.failure)
        return ToolOutcome(failure=report.failure)

    def _recorded_reply(self, number: int, asked: str) -> ModelReply | None:
        recorded = self._effects.recorded(number, kind="model", request=asked)
        if isinstance(recorded, dict) and _REFUSED in recorded:
            raise ModelFailed(msgspec.convert(recorded[_REFUSED], Failure))
        return None if recorded is None else msgspec.convert(recorded, ModelReply)

    def _hints(self) -> dict[str, Json]:
        step, spec = self._command.step, self._spec
        hints: dict[str, Json] = {
            "execution": self._run.execution,
            "node": spec.node,
            "name": spec.name,
            "agent": spec.agent,
            "step": str(step),
            "visit": step.visit,
            "attempt": self._command.attempt,
            "call": self._asked,
            "scope": "/".join(f"{branch.parallel}.{branch.visit}.{branch.branch}" for branch in step.scope),
        }
        if step.scope:
            hints["branch"] = step.scope[-1].branch
        if isinstance(item := self._command.input.get("item"), str | int):
            hints["item"] = str(item)
        return hints


async def attempt(
    deps: ExecutorDeps,
    command: Execute,
    spec: WorkSpec,
    run: ExecutionPort,
    work: Callable[[EffectLedger], Awaitable[WorkDone]],
) -> WorkDone | WorkFailed | ToolCallsProposed:
    """Perform one attempt. Its failure, or the calls that people must approve first, become its report."""
    ledger = EffectLedger(deps, command, spec, run)
    try:
        return await work(ledger)
    except CallsNeedApproval as why:
        return why.report(command)
    except PointsmanError as why:
        return work_failed(command, failure_of(why), ledger.usage)


def _plain(failure: Failure) -> Json:
    return msgspec.to_builtins(failure)


_SORTED: Final = msgspec.json.Encoder(order="sorted", enc_hook=str)


def fingerprint(*parts: Json) -> str:
    """Return a short digest that identifies a request."""
    return sha256(_SORTED.encode(parts)).hexdigest()[:12]


def added(one: Usage, other: Usage) -> Usage:
    """Add two usages. An unknown cost does not make the sum unknown: the known part is a lower bound."""
    costs = [cost for cost in (one.cost_usd, other.cost_usd) if cost is not None]
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        model_calls=one.model_calls + other.model_calls,
        tool_calls=one.tool_calls + other.tool_calls,
        cost_usd=sum(costs) if costs else None,
        cache_read_tokens=one.cache_read_tokens + other.cache_read_tokens,
        cache_write_tokens=one.cache_write_tokens + other.cache_write_tokens,
        free_calls=one.free_calls + other.free_calls,
        scripted=one.scripted or other.scripted,
    )
