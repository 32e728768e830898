"""Context of one app: the object that every domain receives.

    wiring ── makes ──▶ AppContext ◀── holds ── Pointsman (the public API)
                          │
                          ├─ store, runtime, settings, clock, feed, tools, services
                          └─ parts: objects of the domains, created on first access

A domain stores its own objects (the library, the triggers, the audit log) as a `Part`: `app[LIBRARY]`. A lower domain
that needs an object of a higher one declares a Protocol and a `Part` without a maker; wiring binds it. So each domain
imports only the domains below it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, cast

from pointsman.errors import CallerError
from pointsman.ports import Meaning

if TYPE_CHECKING:
    from pointsman.executors.call_observers import CallObservers
    from pointsman.executors.registry import Executors
    from pointsman.models.script import Script
    from pointsman.models.transport import PydanticModels
    from pointsman.ports import Clock
    from pointsman.runtime.dependencies import Feed
    from pointsman.runtime.dispatched import Engine
    from pointsman.runtime.local import LocalRuntime
    from pointsman.settings import Settings
    from pointsman.store.api import Store
    from pointsman.store.records import Holding
    from pointsman.tools.registry import ToolRegistry
    from pointsman.tools.sandbox.interpreter import Interpreter

T = TypeVar("T")


class Part(Generic[T]):
    """Key of an object that one domain stores in the context. There is one object for each context."""

    def __init__(
        self,
        name: str,
        make: Callable[[AppContext], T] | None = None,
        *,
        close: Callable[[T], Awaitable[None]] | None = None,
    ) -> None:
        """`make` is called on first access; None: wiring binds the part. `close` is called when the app is closed, if
        the part was created."""
        self.name = name
        self.make = make
        self.close = close


class MeaningIndex(Meaning, Protocol):
    """Index that finds remembered values by their meaning."""

    async def reindex(self, owners: Sequence[Holding]) -> int:
        """Embed every value of these owners again; return how many. Raises what the model raises."""
        ...

    async def close(self) -> None: ...


@dataclass(slots=True)
class Services:
    """Services that perform work. An execution that brings its own script replaces all of them at once."""

    models: PydanticModels
    executors: Executors
    interpreter: Interpreter
    meaning: MeaningIndex | None
    """None: memory is searched by words."""
    calls: CallObservers
    """Observers of the calls of models and tools."""
    model: str | None
    """The model that answers every agent, whatever its definition names; None: each agent has its own."""
    script: Script | None
    """The answers of the scripted model; None: no script was given or resumed."""
    checks_models: bool = True
    """Whether an execution starts only if every model that it may call can be called. False in dry runs."""
    lends_models: bool = False
    """Whether the models belong to another `Services`, which closes them."""

    @property
    def models_to_check(self) -> PydanticModels | None:
        """The models that must be reachable before an execution starts; None: no model is called."""
        return self.models if self.checks_models else None

    async def close(self) -> None:
        """Close the services, except the tools, which belong to the context."""
        if self.meaning is not None:
            await self.meaning.close()
        if not self.lends_models:
            await self.models.close()
        await self.interpreter.close()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class AppContext:
    """One open app: a store, the runtime that runs its executions, and the services that perform their work."""

    store: Store
    runtime: LocalRuntime
    engine: Engine | None = None
    """The engine that dispatches executions to workers; None: this process drives them."""
    settings: Settings
    clock: Clock
    feed: Feed
    tools: ToolRegistry
    services: Services
    makers: Mapping[Part[Any], Callable[[AppContext], Any]] = field(default_factory=dict[Part[Any], Any])
    """Makers of parts that a domain declares without one; bound by wiring."""
    _made: dict[Part[Any], Any] = field(default_factory=dict[Part[Any], Any], init=False)

    def __getitem__(self, part: Part[T]) -> T:
        """Return the object of a part. Raises `LookupError` if no maker is bound."""
        made = self._made
        if part in made:
            return cast(T, made[part])
        make = self.makers.get(part, part.make)
        if make is None:
            raise LookupError(f"nothing makes the part {part.name!r}")
        part_value = made[part] = make(self)
        return cast(T, part_value)

    async def close_parts(self) -> None:
        """Close the parts that were created, the newest first."""
        for part, made in reversed([*self._made.items()]):
            if part.close is not None:
                await part.close(made)


class AppNotOpen(CallerError):
    """A method of an app was called before the app was entered."""

    code: ClassVar[str] = "app-not-open"


def opened(context: AppContext | None) -> AppContext:
    """Return the context of an app that was entered. Raises `AppNotOpen`."""
    if context is None:
        raise AppNotOpen("the app is not open", hint="Use it inside `async with Pointsman(…) as app:`.")
    return context
