"""The context of one application: what every domain receives.

    wiring ── makes ──▶ AppContext ◀── holds ── Pointsman (the front door)
                          │
                          ├─ store, runtime, settings, clock, feed, tools, services
                          └─ parts: what a domain keeps for itself, made when it is first asked for

A domain keeps its own objects (the library, the triggers, the audit log) as a `Part`: `app[LIBRARY]`. A lower domain
that needs something of a higher one declares a Protocol and a `Part` without a maker; wiring binds it. So each domain
imports only the domains below it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from pointsman.ports import Meaning

if TYPE_CHECKING:
    from pointsman.call_observers import CallObservers
    from pointsman.executors.registry import Executors
    from pointsman.models.script import Script
    from pointsman.models.transport import PydanticModels
    from pointsman.ports import Clock
    from pointsman.runtime.feed import Feed
    from pointsman.runtime.local import LocalRuntime
    from pointsman.settings import Settings
    from pointsman.store.api import Store
    from pointsman.store.records import Holding
    from pointsman.tools.registry import ToolRegistry
    from pointsman.tools.sandbox.interpreter import Interpreter

T = TypeVar("T")


class Part(Generic[T]):
    """The key of an object that one domain keeps with the context. There is one object for each context."""

    def __init__(
        self,
        name: str,
        make: Callable[[AppContext], T] | None = None,
        *,
        close: Callable[[T], Awaitable[None]] | None = None,
    ) -> None:
        """`make` is called when the part is first asked for; None: wiring binds it. `close` is called when the
        application is closed, if the part was made."""
        self.name = name
        self.make = make
        self.close = close


class MeaningIndex(Meaning, Protocol):
    """The index that finds remembered values by their meaning."""

    async def reindex(self, owners: Sequence[Holding]) -> int:
        """Embed every value of these owners again; return how many. Raises what the model raises."""
        ...

    async def close(self) -> None: ...


@dataclass(slots=True)
class Services:
    """What performs work. An execution that brings its own script replaces all of it at once."""

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
    """What the scripted model answers; None: no script was given or taken up."""
    checks_models: bool = True
    """Whether an execution starts only where every model that it may call can be called. False in dry runs."""
    lends_models: bool = False
    """Whether the models belong to another `Services`, which closes them."""

    @property
    def models_to_check(self) -> PydanticModels | None:
        """The models that must be reachable before an execution starts; None: no model is called."""
        return self.models if self.checks_models else None

    async def close(self) -> None:
        """Close them, save the tools, which belong to the context."""
        if self.meaning is not None:
            await self.meaning.close()
        if not self.lends_models:
            await self.models.close()
        await self.interpreter.close()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class AppContext:
    """One open application: a store, what runs executions in front of it, and what performs their work."""

    store: Store
    runtime: LocalRuntime
    settings: Settings
    clock: Clock
    feed: Feed
    tools: ToolRegistry
    services: Services
    makers: Mapping[Part[Any], Callable[[AppContext], Any]] = field(default_factory=dict[Part[Any], Any])
    """What wiring binds: the makers of parts that a domain declares without one."""
    _made: dict[Part[Any], Any] = field(default_factory=dict[Part[Any], Any], init=False)

    def __getitem__(self, part: Part[T]) -> T:
        """Return the object of a part. Raises `LookupError` where wiring forgot to bind it."""
        made = self._made
        if part in made:
            return cast(T, made[part])
        make = self.makers.get(part, part.make)
        if make is None:
            raise LookupError(f"nothing makes the part {part.name!r}")
        found = made[part] = make(self)
        return cast(T, found)

    async def close_parts(self) -> None:
        """Close what was made, the newest first."""
        for part, made in reversed([*self._made.items()]):
            if part.close is not None:
                await part.close(made)
