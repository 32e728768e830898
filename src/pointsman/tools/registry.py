"""Registry of tools: finds tools by name and calls them with limits. Every error of a tool becomes a `ToolFailed`.

The tools of a Python module (`[tools] python`, `--tools`): its objects made by `@tool`, and the functions that its
`__all__` names. If one module fails, the others are loaded.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import ClassVar, Final, cast

import msgspec
from msgspec.structs import replace

from pointsman.definition.json_schema import JsonSchema
from pointsman.engine.failures import Failure, failure_by
from pointsman.engine.reports import ToolCall
from pointsman.errors import OperatorError, Outage, PointsmanError
from pointsman.json_conversion import not_json
from pointsman.json_meter import excess_of
from pointsman.ports import ExecutionPort, ToolSpec
from pointsman.tool_output import PackageFailed, load_plugin, printing
from pointsman.tools.adapter import failure_of_result
from pointsman.tools.conversion import ToolLike, as_tool, is_tool_like
from pointsman.tools.functions import FunctionTool
from pointsman.tools.tool import (
    CORRECT_ARGUMENTS,
    RESERVED,
    ConnectedSources,
    Origin,
    Tool,
    ToolContext,
    ToolFailed,
    ToolInvalid,
    ToolNameTaken,
    ToolNotLoaded,
    ToolSource,
    need_of,
    raised,
    traceback_of,
)
from pointsman.values import Json

GROUP: Final = "pointsman.tools"
"""Entry point group in which installed packages offer tools: name of the tool -> a `Tool`."""


class ToolRegistry:
    """The tools of one app. Tools of installed packages are loaded at their first use."""

    def __init__(self, tools: Iterable[ToolLike] = (), *, plugins: bool = True) -> None:
        """`plugins`: whether to include tools of installed packages."""
        self._tools: dict[str, Tool] = {}
        self._builtin: dict[str, Tool] = {}
        self._scripted: dict[str, Tool] = {}
        self._origins: dict[str, Origin] = {}
        self._checkers: dict[str, JsonSchema] = {}
        self._sources: list[ToolSource] = []
        self._prefixes: tuple[str, ...] = ()
        """The prefixes of the sources."""
        self._listed: set[str] = set()
        self._from: dict[str, set[str]] = {}
        """The names of the listed tools, by the prefix of their source."""
        self._connected: ConnectedSources | None = None
        self._connected_version = 0
        self._connected_sources: tuple[ToolSource, ...] = ()
        """The connected sources among the sources."""
        self._silent: dict[str, Failure] = {}
        """The failure of the last listing of a source, by prefix."""
        self._looks_for_plugins = plugins
        self.broken_modules: list[PointsmanError] = []
        """Why modules of tools could not be loaded."""
        for tool in tools:
            self.add(as_tool(tool))

    def add(self, tool: Tool, *, origin: Origin = "function") -> None:
        """Add a tool. Raises `ToolNameTaken`, or `ToolInvalid` for a reserved name."""
        name = tool.name
        _check_name(name)
        if name in self._tools:
            raise name_taken(name)
        self._tools[name] = tool
        self._origins[name] = origin

    def add_all(self, tools: Sequence[Tool]) -> None:
        """Add several tools, or none of them. Raises as `add` does."""
        names = [tool.name for tool in tools]
        for number, name in enumerate(names):
            _check_name(name)
            if name in self._tools or name in names[:number]:
                raise name_taken(name)
        for tool in tools:
            self.add(tool)

    @property
    def has_functions(self) -> bool:
        """Whether functions of the user are among the tools."""
        return "function" in self._origins.values()

    def add_builtin(self, tool: Tool) -> None:
        """Add a built-in tool. Any other tool of its name takes precedence."""
        self._builtin[tool.name] = tool

    def add_scripted(self, tool: Tool) -> None:
        """Add a tool of a script. It takes precedence over every other tool of its name. Raises `ToolInvalid` for a
        reserved name."""
        _check_name(tool.name)
        self._scripted[tool.name] = tool
        self._checkers.pop(tool.name, None)

    def with_scripted(self, tools: Iterable[Tool]) -> ToolRegistry:
        """Return a registry of the same tools in which these scripted ones answer. This one stays as it is."""
        registry = copy(self)
        registry._scripted, registry._checkers = dict(self._scripted), {}
        for tool in tools:
            registry.add_scripted(tool)
        return registry

    def add_source(self, source: ToolSource) -> None:
        """Add a source of tools. It is listed when one of its tools is first needed (`prepare`, `call`). Replaces a
        source of the same prefix."""
        self._set_sources([*(one for one in self._sources if one.prefix != source.prefix), source])

    def _set_sources(self, sources: list[ToolSource]) -> None:
        self._sources = sources
        self._prefixes = tuple(source.prefix for source in sources)

    def connect(self, connected: ConnectedSources) -> None:
        """Add sources that change while the app runs. Other tools of the same names take precedence."""
        self._connected = connected

    async def reconnect(self) -> None:
        """Read the connected sources again at once, because this process changed them."""
        if self._connected is not None:
            self._connected.changed()
        await self._refresh()

    async def _refresh(self) -> None:
        """Add, replace and remove connected sources that have changed."""
        connected = self._connected
        if connected is None:
            return
        await connected.refresh()
        if connected.version == self._connected_version:
            return
        self._connected_version = connected.version
        before, after = self._connected_sources, tuple(connected.sources)
        gone = [source for source in before if source not in after]
        for source in gone:
            self._drop(source)
            self._listed.discard(source.prefix)
            self._silent.pop(source.prefix, None)
        self._connected_sources = after
        self._set_sources([*(one for one in self._sources if one not in before), *after])

    async def prepare(self, names: Iterable[str]) -> None:
        """List the sources that the named tools belong to. A source that does not answer is listed again later; until
        then, its failure is the answer to calls."""
        await self._refresh()
        wanted = tuple(name for name in names if name not in self._scripted)
        unlisted = [source for source in self._sources if any(self._must_list(source, name) for name in wanted)]
        if unlisted:
            await asyncio.gather(*(self._list(one) for one in unlisted))

    def _must_list(self, source: ToolSource, name: str) -> bool:
        return name.startswith(source.prefix) and not (source.lasts and source.prefix in self._listed)

    async def prepare_all(self) -> None:
        """List all sources."""
        await self._refresh()
        await self.prepare([source.prefix for source in self._sources])

    async def _list(self, source: ToolSource) -> None:
        try:
            tools = await source.listed()
        except ToolFailed as why:
            self._silent[source.prefix] = why.failure  # Calls of its tools report the failure too.
            return
        self._silent.pop(source.prefix, None)
        if source.lasts and source.prefix in self._listed:
            return
        if not source.lasts or source in self._connected_sources:
            self._drop(source)
            tools = [tool for tool in tools if tool.name not in self._tools]  # Registered tools take precedence.
        self._listed.add(source.prefix)
        for tool in tools:
            self.add(tool, origin=source.origin)
            self._from.setdefault(source.prefix, set()).add(tool.name)

    def _drop(self, source: ToolSource) -> None:
        """Remove the tools that the last listing of a source added."""
        for name in self._from.pop(source.prefix, set[str]()):
            del self._tools[name], self._origins[name]
            self._checkers.pop(name, None)

    async def close(self) -> None:
        """Close the connections of all sources. The tools stay, and later calls open the connections again."""
        await asyncio.gather(*(source.close() for source in self._sources))

    def silent(self, name: str) -> Failure | None:
        """Return the failure of the last listing of a tool's server; None: it succeeded, or there is no server."""
        return next((failure for prefix, failure in self._silent.items() if name.startswith(prefix)), None)

    def servers(self) -> dict[str, Failure | None]:
        """Return, by prefix, the failure of the last listing of each MCP server; None: it succeeded or did not run."""
        return {source.prefix: self._silent.get(source.prefix) for source in self._sources if source.origin == "mcp"}

    def names(self) -> tuple[str, ...]:
        """Return all names, sorted, including tools that are not loaded yet."""
        return tuple(sorted({*self._tools, *self._plugins, *self._builtin, *self._scripted}))

    def origin(self, name: str) -> Origin | None:
        """Return the origin of a tool; None: there is no such tool."""
        if name in self._scripted:
            return "scripted"
        return self._origins.get(name, "builtin") if self._found(name) is not None else None

    def identity(self, name: str) -> Json:
        """Return what distinguishes a tool from others of its name: origin, interface and, for a function, its source.

        None: there is no such tool."""
        tool = self._found(name)
        if tool is None:
            return None
        parts: list[Json] = [self.origin(name), type(tool).__qualname__, msgspec.to_builtins(tool.spec)]
        return [*parts, tool.version] if isinstance(tool, FunctionTool) else parts

    def find(self, name: str) -> ToolSpec | None:
        """Return the description of a tool for models. Raises `ToolNotLoaded` if a package's tool cannot be loaded."""
        tool = self._found(name)
        if tool is None:
            return None
        spec = tool.spec
        if spec.timeout_s is not None or tool.limits.timeout_s is None:
            return spec
        return replace(spec, timeout_s=tool.limits.timeout_s)

    async def call(self, call: ToolCall, *, key: str, run: ExecutionPort | None = None) -> Json:
        """Check the arguments, call the tool, and limit time and size of its result. Raises `ToolFailed`."""
        may_have_changed = call.name not in self._tools or call.name.startswith(self._prefixes)
        if may_have_changed and self._connected is not None and not self._connected.is_fresh:
            await self._refresh()
        if call.name.startswith(self._prefixes) and call.name not in self._scripted:
            for source in self._sources:
                if self._must_list(source, call.name):
                    await self.prepare([call.name])
                    break
        tool = self._found(call.name)
        if tool is None:
            raise unknown_tool(call.name)
        if self._silent and (away := self._away(call.name)) is not None:
            raise ToolFailed(away)
        self._check_arguments(tool, call)
        execution = "" if run is None else run.execution
        context = ToolContext(idempotency_key=key, tool=call.name, execution=execution, run=run)
        timeout_s = tool.limits.timeout_s
        if timeout_s is None:
            return _bounded(tool, await _ran(tool, call, context))
        bound = asyncio.timeout(timeout_s)
        try:
            async with bound:
                result = await _ran(tool, call, context)
        except TimeoutError as why:
            message = f"the tool {call.name!r} did not answer within {timeout_s:g} s"
            hint = "This is the limit of the tool: raise its `timeout_s`, or its `timeout` in the settings."
            raise _failed("tool-timeout", message, retryable=True, hint=hint) from why
        return _bounded(tool, result)

    def _check_arguments(self, tool: Tool, call: ToolCall) -> None:
        checker = self._checkers.get(call.name)
        if checker is None:
            checker = JsonSchema(tool.spec.parameters)
            if call.name in self._tools or call.name in self._scripted:
                self._checkers[call.name] = checker
        if wrong := checker.correction(call.arguments):
            raise _failed(
                "tool-arguments",
                f"arguments of {call.name!r}: {wrong}",
                hint=CORRECT_ARGUMENTS,
            )

    def _away(self, name: str) -> Failure | None:
        """Return the failure if the server of a tool could not be reached when `call` listed it a moment ago: calling
        it would only wait for the same failure again. None: the tool can be called."""
        if name in self._scripted or name in self._tools or name in self._plugins or name in self._builtin:
            return None
        failure = self.silent(name)
        return failure if failure is not None and failure.retryable else None

    @cached_property
    def _plugins(self) -> dict[str, EntryPoint]:
        if not self._looks_for_plugins:
            return {}
        return {plugin.name: plugin for plugin in entry_points(group=GROUP)}

    def _found(self, name: str) -> Tool | None:
        tool = self._scripted.get(name) or self._tools.get(name)
        if tool is None and (plugin := self._plugins.get(name)) is not None:
            tool = _load(plugin)
            self.add(tool, origin="plugin")
        return tool or self._builtin.get(name) or self._stood_in_for(name)

    def _stood_in_for(self, name: str) -> Tool | None:
        unlisted = (
            source for source in self._sources if source.prefix not in self._listed and name.startswith(source.prefix)
        )
        return next((tool for source in unlisted if (tool := source.stand_in(name)) is not None), None)


def name_taken(name: str) -> ToolNameTaken:
    """Return the error for a second tool of a name."""
    return ToolNameTaken(f"there are two tools named {name!r}", hint="Give one of them another name.")


def _check_name(name: str) -> None:
    if name in RESERVED:
        raise ToolInvalid(f"{name!r} is the name of a tool of the engine", hint="Give the tool another name.")


def unknown_tool(name: str) -> ToolFailed:
    """Return the same error for a tool that does not exist and for one that the caller may not use."""
    # The hint does not list known names: some are workflows that the caller may not see.
    hint = "`pointsman tools` and GET /api/tools list the tools that you may use."
    return _failed("unknown-tool", f"there is no tool named {name!r}", hint=hint, needs=need_of(name))


async def _ran(tool: Tool, call: ToolCall, context: ToolContext) -> Json:
    """Run a tool. Any exception becomes a `ToolFailed` with its traceback, except outages and outside cancellation.

    `SystemExit` and `KeyboardInterrupt` would end the event loop. A real Ctrl-C reaches tasks as a cancellation.
    """
    task = asyncio.current_task()
    with printing() as printed:
        try:
            return await tool.run(call.arguments, context)
        except (Outage, ToolFailed):
            raise
        except GeneratorExit as why:
            if task is None or not _is_running(task):
                raise  # This coroutine is being closed.
            raised_by = why
        except asyncio.CancelledError as why:
            if task is None or task.cancelling():
                raise
            raised_by = why
        except PointsmanError as why:
            raise ToolFailed(failure_by(why)) from why
        except BaseException as why:
            raised_by = why
    failure = raised(f"the tool {call.name!r} failed", raised_by)
    if printed.text:
        failure = replace(failure, details={**(failure.details or {}), "output": printed.text})
    raise ToolFailed(failure) from raised_by


def _is_running(task: asyncio.Task[object]) -> bool:
    try:
        return asyncio.current_task() is task
    except RuntimeError:  # no event loop
        return False


def _load(plugin: EntryPoint) -> Tool:
    try:
        plugin_object = load_plugin(plugin)
    except PackageFailed as why:
        raise ToolNotLoaded(f"the tool {why}", hint=why.hint, needs=f"tool:{plugin.name}") from why
    hint = "Let the entry point name a function, or one that is decorated with `@tool`, one entry for each tool."
    cannot = f"the tool {plugin.name!r} of an installed package cannot be used: {plugin.value!r}"
    try:
        tool = as_tool(plugin_object)
    except ToolInvalid as why:
        raise ToolNotLoaded(f"{cannot} cannot be a tool: {why}", hint=hint, needs=f"tool:{plugin.name}") from why
    if tool.name != plugin.name:
        message, hint = f"{cannot} is a tool named {tool.name!r}", "Give the entry point the name of its tool."
        raise ToolNotLoaded(message, hint=hint, needs=f"tool:{plugin.name}")
    return tool


def _bounded(tool: Tool, result: Json) -> Json:
    most = tool.limits.output_bytes_max
    try:
        written = msgspec.json.encode(result)
        # msgspec would silently write NaN and infinity as null; report them as an error of the tool.
        if b"null" in written:
            json.dumps(result, allow_nan=False)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as why:
        error = not_json(result, why, what=f"the result of the tool {tool.name!r}", path="result")
        raise ToolFailed(failure_of_result(error)) from why
    size = len(written)
    if size > most:
        message = f"the result of the tool {tool.name!r} has {size} bytes; the maximum is {most}"
        raise _failed("tool-output-too-large", message, hint="Request less, or raise the tool's output_bytes_max.")
    if excess := excess_of(written):
        message = f"the answer of the tool {tool.name!r} {excess}"
        raise _failed("tool-output-too-large", message, hint="Return long numbers as texts, and return less data.")
    return result


def _failed(code: str, message: str, *, retryable: bool = False, hint: str = "", needs: str = "") -> ToolFailed:
    return ToolFailed(Failure(code=code, message=message, retryable=retryable, hint=hint, needs=needs))


class ToolModuleFailed(OperatorError):
    """A module of tools cannot be used: its import raised an error, it has no tools, or a name is taken."""

    code: ClassVar[str] = "tool-module-failed"


def add_tools_of(registry: ToolRegistry, module: str) -> None:
    """Add the tools of a module, all or none. Raises `ToolModuleFailed`. What the import prints goes where the output
    of tools goes."""
    try:
        with printing():
            tools = [*_tools_in(import_module(module))]
        if not tools:
            raise ToolModuleFailed(
                f"the module {module!r} has no tools",
                hint="Decorate its functions with `@tool`, or name them in its `__all__`.",
            )
        registry.add_all(tools)
    except ToolModuleFailed:
        raise
    except PointsmanError as why:
        raise ToolModuleFailed(f"the tools of the module {module!r} cannot be used: {why}", hint=why.hint) from why
    except (Exception, SystemExit) as why:
        message = f"the module {module!r} of [tools] python, or of --tools, cannot be imported"
        hint = "Correct the module, or its name. It is imported from the working directory or from installed packages."
        raise ToolModuleFailed(f"{message}:\n{traceback_of(why)}", hint=hint) from why


def _tools_in(module: ModuleType) -> Iterator[Tool]:
    """Yield each tool of a module once, also if it has several names there."""
    numbers: set[int] = set()
    named = cast("tuple[str, ...]", getattr(module, "__all__", ()))
    for name, value in vars(module).items():
        if id(value) in numbers or isinstance(value, type):
            continue
        if isinstance(value, Tool) or (name in named and is_tool_like(value)):
            numbers.add(id(value))
            yield as_tool(value)
