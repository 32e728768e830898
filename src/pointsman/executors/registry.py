"""Registry of executors by kind of work: the built-in ones, and those of installed packages."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Final, TypeAlias, cast

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.reports import ToolCallsProposed, WorkDone, WorkFailed
from pointsman.errors import OperatorError
from pointsman.executors.agent_loop import AgentExecutor
from pointsman.executors.attachments import Fetch, FileReader
from pointsman.executors.decisions import DecisionExecutor, JudgeExecutor, RecoveryExecutor
from pointsman.executors.effect_ledger import NO_SECRETS, ExecutorDeps
from pointsman.executors.planner import PlannerExecutor
from pointsman.executors.verifier import VerifierExecutor
from pointsman.executors.work_without_models import CodeExecutor, PendingCallsExecutor, RecordExecutor, ToolExecutor
from pointsman.ports import ExecutionPort, Executor, Models, Secrets, Tools
from pointsman.redaction import Redaction, hiding
from pointsman.tool_output import PackageFailed, load_plugin, package_errors, printing
from pointsman.tools.sandbox.interpreter import CodeLimits, Interpreter
from pointsman.values import Json

RECOVERY: Final = ""
"""Stands for the kind of work of recoveries."""
GROUP: Final = "pointsman.executors"
"""Entry points by which installed packages add kinds of work: kind -> a function `ExecutorDeps -> Executor`."""


class KindUnknown(OperatorError):
    """A node's kind of work has no executor here."""

    code: ClassVar[str] = "unbound-node-type"


class ExecutorNotLoaded(OperatorError):
    """An installed package announces an executor that cannot be loaded."""

    code: ClassVar[str] = "executor-not-loaded"


WorkReport: TypeAlias = WorkDone | WorkFailed | ToolCallsProposed
Basis: TypeAlias = Callable[[Execute, WorkSpec], Json]


def announced_kinds() -> frozenset[str]:
    """Return the kinds of work that installed packages add, without loading the packages."""
    return frozenset(plugin.name for plugin in entry_points(group=GROUP))


class _Hiding:
    """Performs an attempt with every known secret masked before any text is cut."""

    def __init__(self, executor: Executor, secrets: Secrets) -> None:
        self._executor = executor
        self._secrets = secrets

    def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> Coroutine[Any, Any, WorkReport]:
        redaction = self._secrets.redaction
        return self._hiding(redaction, command, spec, run) if redaction else self._executor.execute(command, spec, run)

    async def _hiding(self, redaction: Redaction, command: Execute, spec: WorkSpec, run: ExecutionPort) -> WorkReport:
        with hiding(redaction):
            return await self._executor.execute(command, spec, run)


class _Printing:
    """Executor of a package: what it prints goes where the output of tools goes."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def execute(
        self, command: Execute, spec: WorkSpec, run: ExecutionPort
    ) -> WorkDone | WorkFailed | ToolCallsProposed:
        with printing():
            return await self._executor.execute(command, spec, run)


class Executors:
    """The executors of one installation. Those of packages are loaded on first use."""

    def __init__(
        self,
        *,
        models: Models,
        tools: Tools,
        memory: Executor,
        http: Callable[[], Executor] | None = None,
        fetch: Fetch | None = None,
        keep: FileReader | None = None,
        interpreter: Interpreter | None = None,
        secrets: Secrets = NO_SECRETS,
        more: Mapping[str, Executor] | None = None,
        reaches: Callable[[str], bool] = lambda _: True,
        basis: Basis = lambda _command, _spec: None,
        plugins: bool = True,
    ) -> None:
        """`more` takes precedence over the built-in executors; `plugins`: whether those of installed packages are used.

        `http` makes the executor of http nodes on first use: it loads an HTTP client. `reaches`: whether a model of
        that name can be called here. `basis`: what the result of an attempt depends on, beside its definition and its
        input. `fetch` gets files by their addresses, `keep` reads those that executions keep; None: not available.
        """
        self._later: dict[str, Callable[[], Executor]] = {} if http is None else {"http": http}
        self._deps = ExecutorDeps(models=models, tools=tools, fetch=fetch, keep=keep, memory=memory, secrets=secrets)
        self._reaches = reaches
        self._basis = basis
        self._looks_for_plugins = plugins
        self._recovery: Executor = RecoveryExecutor(self._deps)
        self._found: dict[str, Executor] = {}
        """The executors that were used, by kind of work, with secrets masked."""
        self._known: dict[str, Executor] = {
            "agent": AgentExecutor(self._deps),
            "decision": DecisionExecutor(self._deps),
            "judge": JudgeExecutor(self._deps),
            "tool": ToolExecutor(self._deps),
            "tool_executor": PendingCallsExecutor(self._deps),
            "memory": memory,
            "code": CodeExecutor(interpreter if interpreter is not None else Interpreter(CodeLimits())),
            "planner": PlannerExecutor(self._deps),
            "structured-record": RecordExecutor(),
            "verifier": VerifierExecutor(self._deps),
            **(more or {}),
        }

    def basis(self, command: Execute, spec: WorkSpec) -> Json:
        """Return what the result of an attempt depends on here, beside its definition and its input: models, tools."""
        plugin = self._plugins.get(spec.kind) if spec.kind not in self._known else None
        package = plugin.dist if plugin is not None else None
        return [self._basis(command, spec), f"{package.name} {package.version}" if package is not None else ""]

    async def has(self, need: str) -> bool:
        """Return whether this process has what an attempt waits for, named as in `Failure.needs`."""
        kind, _, name = need.partition(":")
        match kind:
            case "tool":
                await self._deps.tools.prepare([name])
                tool = self._deps.tools.find(name)
                return tool is not None and not (tool.off or tool.stands_in)
            case "secret":
                with suppress(OperatorError):  # A secret that cannot be decrypted here is not available here.
                    await self._deps.secrets.refresh()
                    return self._deps.secrets.secret(name) is not None
                return False
            case "model":
                return self._reaches(name)
            case "queue":
                return False  # The step is in the queue: its worker takes it.
            case _:
                return name in self.kinds()

    def kinds(self) -> tuple[str, ...]:
        """Return all kinds of work that can be performed here, sorted."""
        return tuple(sorted({*self._known, *self._later, *self._plugins}))

    def executor_for(self, command: Execute) -> Executor:
        """Return the executor of the command; recovery after a failure has one executor for all kinds. Raises
        `KindUnknown`."""
        work = RECOVERY if command.phase == "recover" else command.work
        executor = self._found.get(work)
        if executor is None:
            executor = self._found[work] = _Hiding(self._performer(work), self._deps.secrets)
        return executor

    def _performer(self, work: str) -> Executor:
        if work == RECOVERY:
            return self._recovery
        performer = self._known.get(work)
        if performer is None:
            performer = self._known[work] = self._load(work)
        return performer

    @cached_property
    def _plugins(self) -> dict[str, EntryPoint]:
        if not self._looks_for_plugins:
            return {}
        return {plugin.name: plugin for plugin in entry_points(group=GROUP)}

    def _load(self, kind: str) -> Executor:
        if kind in self._later:
            return self._later[kind]()
        plugin = self._plugins.get(kind)
        if plugin is None:
            hint = f"Known kinds: {', '.join(self.kinds())}. A package can register others."
            raise KindUnknown(f"no executor for the kind {kind!r} is installed", hint=hint, needs=f"executor:{kind}")
        try:
            make = cast("Callable[[ExecutorDeps], Executor]", load_plugin(plugin))
            with package_errors(plugin, "cannot be loaded"):
                return _Printing(make(self._deps))
        except PackageFailed as why:
            raise ExecutorNotLoaded(f"the executor {why}", hint=why.hint, needs=f"executor:{kind}") from why
