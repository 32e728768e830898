"""Isolation of workflow tests: refuses every outside call that has no stub and is not allowed by name.

http node ─▶ stub by node or `METHOD URL` ─▶ allowed? ─▶ refused (`external-call-refused`)
tool call ─▶ tool of the script           ─▶ allowed? ─▶ refused; tools that compute or remember are called
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, cast

from pointsman.definition.model.work import HttpConfig
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.text_locations import text_locations_of
from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure, failure_by
from pointsman.engine.reports import ToolCall, ToolCallsProposed, WorkDone, WorkFailed
from pointsman.errors import CallerError, sentences
from pointsman.executors.failures import WorkRefused, work_failed
from pointsman.models.recording import ModelRecording
from pointsman.ports import ExecutionPort, Executor, Tools, ToolSpec
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.tool import ToolFailed
from pointsman.values import Json, JsonObject

INSIDE: Final = frozenset({"scripted", "workflow", "client"})
"""Origins of tools that a test may call: the script, saved workflows, the caller."""
PURE: Final = frozenset({"calculator"})
"""Built-in tools that only compute. Those of memory stay in the store of the test."""


AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed, as for real requests."""


class ExternalCallRefused(CallerError):
    """A step of a workflow test would make a call outside of it."""

    code: ClassVar[str] = "external-call-refused"


@dataclass(frozen=True, slots=True)
class Isolation:
    """Rules and stubs for what a test may reach."""

    allowed: Collection[str] = ()
    """Names of tools, and ids of http nodes."""
    http: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Node id, or `METHOD URL` -> the result of the request: `status`, `data`, `headers`."""
    refused: list[str] = field(default_factory=list[str])
    """The refused calls, in order: message and hint. The failure of a call may not show in the outcome."""
    recording: ModelRecording | None = None
    """Recorded answers, which models give; None: the models are called."""

    def tools(self, tools: Tools, registry: ToolRegistry) -> Tools:
        return _IsolatedTools(tools, registry, self)

    def http_executor(self, real: Executor) -> Executor:
        return _IsolatedHttp(real, self)

    def refuse_file(self, url: str) -> None:
        """Raise for every file that would be fetched by its address."""
        raise WorkRefused(
            self.refusal(f"a workflow test does not fetch {url!r}", "Put the file into the input of the test.")
        )

    def refusal(self, message: str, hint: str) -> Failure:
        """Record a refused call and return its failure."""
        self.refused.append(sentences(message, hint))
        return failure_by(ExternalCallRefused(message, hint=hint))


class _IsolatedTools:
    def __init__(self, tools: Tools, registry: ToolRegistry, isolation: Isolation) -> None:
        self._tools = tools
        self._registry = registry
        self._isolation = isolation

    def find(self, name: str) -> ToolSpec | None:
        return self._tools.find(name)

    async def prepare(self, names: Iterable[str]) -> None:
        """Prepare only the allowed tools, so that servers of others are not connected."""
        await self._tools.prepare([name for name in names if self.may_call(name)])

    async def call(self, call: ToolCall, *, key: str, run: ExecutionPort | None = None) -> Json:
        """Raises `ToolFailed` (`external-call-refused`)."""
        if not self.may_call(call.name):
            message = f"the tool {call.name!r} would have effects outside of the workflow test"
            hint = f"Add results under `tools:` in the script of the test, or allow it: `allow: [{call.name}]`."
            raise ToolFailed(self._isolation.refusal(message, hint))
        return await self._tools.call(call, key=key, run=run)

    def may_call(self, name: str) -> bool:
        """Return whether the tool is allowed or reaches nothing outside. A tool that is unknown or disabled here may
        act where the workflow runs."""
        origin = self._registry.origin(name)
        if name in self._isolation.allowed or origin in INSIDE or name in PURE:
            return True
        spec = self._registry.find(name) if origin == "builtin" else None
        return spec is not None and bool(spec.memory)


def acts_outside(workflow: WorkflowDefinition, registry: ToolRegistry) -> list[str]:
    """Describe the outside calls of a workflow that a script does not answer: its http nodes, and tools that the script
    lacks. In document order."""
    isolated = _IsolatedTools(registry, registry, Isolation())
    named = [f"the http node {node.id!r}" for node in workflow.nodes if isinstance(node.config, HttpConfig)]
    for name in (location.text for location in text_locations_of(workflow) if location.kind == "tool"):
        origin = registry.origin(name)
        spec = registry.find(name) if origin == "builtin" else None
        is_off = spec is not None and bool(spec.off)
        if origin is not None and not is_off and not isolated.may_call(name):
            named.append(f"the tool {name!r}")
    return [*dict.fromkeys(named)]


class _IsolatedHttp:
    def __init__(self, real: Executor, isolation: Isolation) -> None:
        self._real = real
        self._isolation = isolation

    async def execute(
        self, command: Execute, spec: WorkSpec, run: ExecutionPort
    ) -> WorkDone | WorkFailed | ToolCallsProposed:
        config = command.input.get("config")
        request_config = config if isinstance(config, dict) else {}
        request = f"{request_config.get('method') or 'GET'} {request_config.get('url')}"
        answer = self._isolation.http.get(spec.node, self._isolation.http.get(request))
        if answer is not None:
            return _answered(command, spec, request_config, answer)
        if spec.node in self._isolation.allowed:
            return await self._real.execute(command, spec, run)
        message = f"the http node {spec.node!r} would send {request!r} from a workflow test"
        stub = f"http: {{{spec.node}: {{status: 200, data: …}}}}"
        hint = f"Add its answer: `{stub}`, or allow it: `allow: [{spec.node}]`."
        return work_failed(command, self._isolation.refusal(message, hint))


def _answered(command: Execute, spec: WorkSpec, config: JsonObject, stub: JsonObject) -> WorkDone | WorkFailed:
    status = cast(int, stub["status"])
    ok = 200 <= status < 300
    if not ok and config.get("failOnError") is not False:
        message = f"the stub of the http node {spec.node!r} answers {status}"
        details: JsonObject = {"status": status, "data": stub["data"]}
        failure = Failure(code="http-status", message=message, retryable=status in AGAIN, details=details)
        return work_failed(command, failure)
    result: JsonObject = {"status": status, "headers": stub["headers"], "data": stub["data"], "ok": ok}
    return WorkDone(step=command.step, attempt=command.attempt, result=result)
