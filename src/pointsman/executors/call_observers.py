"""Observers of model and tool calls, for metrics and tracing, and the time that a model took.

executors ─▶ ObservedModels ─▶ models     without listeners only the time is measured
                 └─▶ CallObservers ─▶ listeners
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, NamedTuple, TypeAlias

from msgspec import structs

from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall
from pointsman.models.failures import ModelFailed
from pointsman.ports import Clock, ExecutionPort, ModelReply, ModelRequest, Models, TextCallback, Tools, ToolSpec
from pointsman.tools.tool import ToolFailed
from pointsman.values import Json

CANCELLED = Failure(code="cancelled", message="the call was given up")


class ModelCalled(NamedTuple):
    """A completed model call. `request.hints` contain its origin."""

    request: ModelRequest
    reply: ModelReply | None
    failure: Failure | None
    begin: float
    end: float
    """Unix seconds."""


class ToolCalled(NamedTuple):
    """A completed tool call. `key` begins with the execution and the step."""

    call: ToolCall
    key: str
    result: Json
    failure: Failure | None
    begin: float
    end: float


Listener: TypeAlias = Callable[[ModelCalled | ToolCalled], None]
"""Called on the event loop; must not block and must not raise."""


class CallObservers:
    """Distributor of completed calls to listeners."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self.is_observed = False
        """Whether there are listeners. A plain attribute, because it is read for every call."""

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Add a listener. Return a function that removes it."""
        self._have([*self._listeners, listener])
        return lambda: self._have([one for one in self._listeners if one is not listener])

    def _have(self, listeners: list[Listener]) -> None:
        self._listeners, self.is_observed = listeners, bool(listeners)

    def tell(self, called: ModelCalled | ToolCalled) -> None:
        for listener in self._listeners:
            listener(called)


class ObservedModels:
    """`Models` port that reports its calls to observers."""

    def __init__(self, models: Models, calls: CallObservers, clock: Clock) -> None:
        self._models = models
        self._calls = calls
        self._clock = clock

    async def ask(self, request: ModelRequest, *, on_text: TextCallback | None = None) -> ModelReply:
        begin = self._clock.now()
        if not self._calls.is_observed:
            answer = await self._models.ask(request, on_text=on_text)
            return structs.replace(answer, took_s=self._clock.now() - begin)
        reply: ModelReply | None = None
        failure: Failure | None = CANCELLED
        try:
            answer = await self._models.ask(request, on_text=on_text)
            answer = reply = structs.replace(answer, took_s=self._clock.now() - begin)
            failure = None
        except ModelFailed as why:
            failure = why.failure
            raise
        finally:
            self._calls.tell(ModelCalled(request, reply, failure, begin, self._clock.now()))
        return answer


class ObservedTools:
    """`Tools` port that reports its calls to observers."""

    def __init__(self, tools: Tools, calls: CallObservers, clock: Clock) -> None:
        self._tools = tools
        self._calls = calls
        self._clock = clock

    def find(self, name: str) -> ToolSpec | None:
        return self._tools.find(name)

    async def prepare(self, names: Iterable[str]) -> None:
        await self._tools.prepare(names)

    def call(self, call: ToolCall, *, key: str, run: ExecutionPort | None = None) -> Coroutine[Any, Any, Json]:
        if not self._calls.is_observed:
            return self._tools.call(call, key=key, run=run)
        return self._observed(call, key=key, run=run)

    async def _observed(self, call: ToolCall, *, key: str, run: ExecutionPort | None) -> Json:
        begin = self._clock.now()
        result: Json = None
        failure: Failure | None = CANCELLED
        try:
            result = await self._tools.call(call, key=key, run=run)
            failure = None
        except ToolFailed as why:
            failure = why.failure
            raise
        finally:
            self._calls.tell(ToolCalled(call, key, result, failure, begin, self._clock.now()))
        return result
