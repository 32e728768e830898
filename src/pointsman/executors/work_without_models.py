"""Work without a model: tool calls, pending calls of a model, Python code, and checks of extracted records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

from msgspec import structs

from pointsman.definition.json_schema import JsonSchema, JsonSchemaInvalid
from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall, ToolCallsProposed, WorkDone, WorkFailed
from pointsman.errors import EngineBug
from pointsman.executors.effect_ledger import EffectLedger, ExecutorDeps, ToolOutcome
from pointsman.executors.failures import WorkRefused, failure_of, work_failed
from pointsman.executors.tool_calls import CallsNeedApproval
from pointsman.models.repair import read_json
from pointsman.models.transcript import as_text, read_call, text_of, tool_message
from pointsman.ports import ExecutionPort
from pointsman.redaction import tail
from pointsman.tool_output import CHARS_MAX
from pointsman.tools.sandbox.interpreter import CodeFailed, Interpreter, ResultUnusable
from pointsman.tools.sandbox.process import SandboxMissing
from pointsman.tools.tool import CORRECT_ARGUMENTS
from pointsman.values import Json, JsonObject


class ToolExecutor:
    """Input: {"tool": name, "parameters": {…}}. Result: the tool's result."""

    def __init__(self, deps: ExecutorDeps) -> None:
        self._deps = deps

    async def execute(
        self, command: Execute, spec: WorkSpec, run: ExecutionPort
    ) -> WorkDone | WorkFailed | ToolCallsProposed:
        name, parameters = command.input.get("tool"), command.input.get("parameters")
        if not isinstance(name, str) or not isinstance(parameters, dict | None):
            raise EngineBug(f"a tool step was given {command.input!r}")
        ledger = EffectLedger(self._deps, command, spec, run)
        try:
            if spec.secrets:
                self._must_stay_here(name)
            outcome = await ledger.call_one(ToolCall(id="1", name=name, arguments=parameters or {}))
        except CallsNeedApproval as why:
            return why.report(command)
        except WorkRefused as why:
            return work_failed(command, why.failure, ledger.usage)
        if outcome.failure is not None:
            return work_failed(command, _for_author(outcome.failure, command.step.node), ledger.usage)
        return WorkDone(
            step=command.step,
            attempt=command.attempt,
            result=outcome.result,
            usage=ledger.usage,
            printed=ledger.printed,
        )

    def _must_stay_here(self, name: str) -> None:
        """Raise `WorkRefused` for a tool that stores or passes on its parameters: they must not contain secrets."""
        tool = self._deps.tools.find(name)
        if tool is None or not (tool.workflow or tool.side == "client" or tool.memory or tool.keeps):
            return
        hint = "Name the secret where it is used: in the called workflow, or at the caller."
        if tool.workflow or tool.side == "client":
            runner = f"the workflow {tool.workflow!r}" if tool.workflow else "the caller"
            why = f"{runner} carries out the call and would receive the values"
        else:
            why, hint = "it stores its parameters where people can read them", "Use the name of the secret instead."
        message = f"the parameters of {name!r} name secrets, and {why}"
        raise WorkRefused(Failure(code="secret-not-allowed", message=message, hint=hint))


def _for_author(failure: Failure, node: str) -> Failure:
    """Return the failure of a tool node with a hint for its author instead of one for a model."""
    if failure.code != "tool-arguments" or failure.hint not in ("", CORRECT_ARGUMENTS):
        return failure
    return structs.replace(failure, hint=f"Correct `parameters` of node {node!r}.")


class PendingCallsExecutor:
    """Input: {"calls": [{"id", "name", "arguments"}], "caller": node}.

    Result: [{"tool", "toolCallId", "result" | "error"}] in order. The failure of a tool, or that it does not exist, is
    reported to the model that called it; the step succeeds. `labels` are the tools' names, the last one first: control
    leaves by the first of them that has an edge.
    """

    def __init__(self, deps: ExecutorDeps) -> None:
        self._deps = deps

    async def execute(
        self, command: Execute, spec: WorkSpec, run: ExecutionPort
    ) -> WorkDone | WorkFailed | ToolCallsProposed:
        listed = command.input.get("calls")
        calls = [call for one in (listed if isinstance(listed, list) else []) if (call := read_call(one)) is not None]
        caller = text_of(command.input.get("caller")) or spec.name or spec.node
        ledger = EffectLedger(self._deps, command, spec, run)
        try:
            outcomes = await ledger.call(calls)
        except CallsNeedApproval as why:
            return why.report(command)
        except WorkRefused as why:
            return work_failed(command, why.failure, ledger.usage)
        pairs = list(zip(calls, outcomes, strict=True))
        return WorkDone(
            step=command.step,
            attempt=command.attempt,
            result=[_entry(call, outcome) for call, outcome in pairs],
            labels=tuple(dict.fromkeys(call.name for call in reversed(calls))),
            messages=tuple(tool_message(call, outcome.told(), name=caller) for call, outcome in pairs),
            usage=ledger.usage,
            printed=ledger.printed,
        )


def _entry(call: ToolCall, outcome: ToolOutcome) -> Json:
    entry: JsonObject = {"tool": call.name, "toolCallId": call.id}
    if outcome.failure is None:
        return {**entry, "result": outcome.result}
    return {**entry, "error": {"code": outcome.failure.code, "message": outcome.failure.message}}


class CodeExecutor:
    """Input: {"inputs": {variable: value}}. Result: the code's last expression, or its variable `result`."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> WorkDone | WorkFailed:
        inputs = command.input.get("inputs")
        if not isinstance(inputs, dict):
            raise EngineBug(f"a code step was given {command.input!r}")
        source = cast("str", spec.config["source"])
        try:
            outcome = await self._interpreter.run(source, inputs, execution=run.execution)
        except CodeFailed as why:
            return work_failed(command, why.failure)
        except (ResultUnusable, SandboxMissing) as why:
            return work_failed(command, failure_of(why))
        if outcome.printed:
            run.delta({"kind": "text", "text": outcome.printed})
        printed = tail(outcome.printed, CHARS_MAX)
        return WorkDone(step=command.step, attempt=command.attempt, result=outcome.value, printed=printed)


QUOTING: Final = ("quote", "quotes")
"""Keys whose texts must occur in the source, at any depth."""


class RecordExecutor:
    """Input: {"extraction", "source"?, "index"?}. Config: `schema`, `sourceSystem`.

    Result: {"data", "status", "problems"?, "source"?, "sourceSystem"?, "index"?, "quotes"?: [{"text", "found"}]}, where
    `status` is `valid`, `invalid` (does not fit the schema) or `unsupported` (a quote is not in the source).
    """

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> WorkDone | WorkFailed:
        schema = spec.config.get("schema")
        try:
            checker = JsonSchema(schema if isinstance(schema, dict) else {})
        except JsonSchemaInvalid as why:
            return work_failed(command, Failure(code="output-schema-invalid", message=str(why), hint=why.hint))
        work_input = command.input
        data = _data(work_input.get("extraction"))
        record: JsonObject = {"data": data}
        record |= {key: work_input[key] for key in ("source", "index") if work_input.get(key) is not None}
        if (system := spec.config.get("sourceSystem")) is not None:
            record["sourceSystem"] = system
        quotes = _quotes(data, work_input.get("source"))
        if quotes:
            record["quotes"] = quotes
        problems = checker.correction(data)
        if problems:
            record["problems"] = problems
        unfound = any(isinstance(quote, dict) and quote["found"] is False for quote in quotes)
        record["status"] = "invalid" if problems else "unsupported" if unfound else "valid"
        return WorkDone(step=command.step, attempt=command.attempt, result=record)


def _data(extraction: Json) -> Json:
    """Return the extraction; a text that contains JSON is parsed."""
    read = read_json(extraction) if isinstance(extraction, str) else None
    return extraction if read is None else read.value


def _quotes(data: Json, source: Json) -> list[Json]:
    """Return each quote in the data, and whether it occurs in the source; None if there is no source."""
    text = None if source is None else _plain(as_text(source))
    return [{"text": quote, "found": None if text is None else _plain(quote) in text} for quote in _quoted(data)]


def _quoted(data: Json) -> Iterator[str]:
    waiting: list[tuple[bool, Json]] = [(False, data)]
    while waiting:
        quoting, value = waiting.pop()
        match value:
            case str():
                if quoting and value.strip():
                    yield value
            case list():
                waiting.extend((quoting, element) for element in reversed(value))
            case dict():
                waiting.extend((quoting or key in QUOTING, one) for key, one in reversed([*value.items()]))
            case _:
                pass


def _plain(text: str) -> str:
    """Normalise what typesetting changes: spaces, case, the shapes of quotes and dashes."""
    return " ".join(text.translate(_SHAPES).casefold().split())


_SHAPES: Final = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "\u00a0": " "})
