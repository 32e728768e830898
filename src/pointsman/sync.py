"""Calls without `await`, for scripts and notebooks: the classes of the package on an event loop in a thread.

    from pointsman.sync import Pointsman

    with Pointsman("memory:") as app:
        print(app.run("order.yaml", {"article": "pen"}).output())

    caller's thread ── call ──▶ portal ──▶ event loop in a thread: Pointsman, Execution, Client, RemoteExecution
         ▲                                   │
         └── result, error or next item ◀────┘

One mirror serves all classes: a method waits for its result, an asynchronous iterator becomes an iterator, and an
execution in a result is mirrored, too. Types are in `sync.pyi`, which is made of the mirrored classes. It also works
in a notebook, whose own loop is running. Ctrl-C cancels the call, waits until it has ended, and raises
`KeyboardInterrupt`; executions stay in the store.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack
from functools import wraps
from typing import ClassVar, Final, Generic, Self, TypeVar, cast

from anyio.from_thread import BlockingPortal, start_blocking_portal

from pointsman.app import Execution as AsyncExecution
from pointsman.app import Pointsman as AsyncPointsman
from pointsman.client.client import Client as AsyncClient
from pointsman.client.executions import RemoteExecution as AsyncRemoteExecution
from pointsman.errors import CallerError

T = TypeVar("T")

THREAD: Final = "pointsman.sync"


class AppClosed(CallerError):
    """An object of `pointsman.sync` was used after it was closed."""

    code: ClassVar[str] = "app-closed"


class Portal:
    """The way into the event loop: performs calls there, and mirrors what they return."""

    def __init__(self, portal: BlockingPortal) -> None:
        self._portal = portal
        self.is_running = True

    def call(self, function: Callable[[], object]) -> object:
        """Call a function in the event loop, wait for its result if it is awaitable, and return it mirrored.

        Raises `AppClosed`.
        """
        if not self.is_running:
            raise AppClosed("the app or client is closed", hint="Make calls before the end of its `with` block.")
        ended = threading.Event()

        async def perform() -> object:
            try:
                result = function()
                return await cast("Awaitable[object]", result) if isinstance(result, Awaitable) else result
            finally:
                ended.set()

        future = self._portal.start_task_soon(perform)
        try:
            return self.mirrored(future.result())
        except KeyboardInterrupt:
            future.cancel()
            ended.wait()
            raise

    def mirrored(self, value: object) -> object:
        """Return a result with mirrors in place of executions and asynchronous iterators."""
        match value:
            case AsyncExecution():
                return SyncExecution(cast("AsyncExecution[object]", value), self)
            case AsyncRemoteExecution():
                return SyncRemoteExecution(value, self)
            case AsyncIterator():
                return self._items(cast("AsyncIterator[object]", value))
            case _:
                return value

    def _items(self, iterator: AsyncIterator[object]) -> Iterator[object]:
        finished = object()

        async def following() -> object:
            return await anext(iterator, finished)

        close = getattr(iterator, "aclose", None)
        try:
            while (item := self.call(following)) is not finished:
                yield item
        finally:
            # After `close` of the app, the event loop has ended, and with it the iterator.
            if close is not None and self.is_running:
                self.call(close)


class Mirror(Generic[T]):
    """An object whose methods wait for the methods of an asynchronous one."""

    OMITTED: ClassVar[frozenset[str]] = frozenset()
    """Attributes that only make sense on the event loop."""

    def __init__(self, original: T, portal: Portal) -> None:
        self._original = original
        self._portal = portal

    def __repr__(self) -> str:
        return f"<sync {self._original!r}>"

    def __getattr__(self, name: str) -> object:
        if name.startswith("_") or name in self.OMITTED:
            raise AttributeError(f"{type(self).__name__!r} of pointsman.sync has no attribute {name!r}")
        value = getattr(self._original, name)
        if not callable(value):
            return value

        @wraps(value)
        def call(*args: object, **options: object) -> object:
            return self._portal.call(lambda: value(*args, **options))

        return call


class SyncExecution(Mirror[AsyncExecution[object]]):
    """See `pointsman.Execution`."""

    OMITTED = frozenset({"asking", "state", "gate", "gates"})

    def __repr__(self) -> str:
        return f"<Execution {self._original.id!r}: {self._original.status}>"

    def _repr_html_(self) -> str:
        return str(self._portal.call(self._original.html))


class SyncRemoteExecution(Mirror[AsyncRemoteExecution]):
    """See `pointsman.client.executions.RemoteExecution`."""


class Opened(Mirror[T]):
    """A mirror with an event loop of its own, from its construction until `close`, or the end of a `with` block."""

    def __init__(self, original: T) -> None:
        with ExitStack() as exits:
            portal = exits.enter_context(start_blocking_portal(name=THREAD))
            context = cast("AbstractAsyncContextManager[T]", original)
            exits.enter_context(portal.wrap_async_context_manager(context))
            self._exits = exits.pop_all()
        super().__init__(original, Portal(portal))

    def close(self) -> None:
        """Close the object, and end the event loop. A second call has no effect."""
        self._portal.is_running = False
        self._exits.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SyncPointsman(Opened[AsyncPointsman]):
    """See `pointsman.Pointsman`."""

    OMITTED = frozenset(
        {
            *("acting_as", "audit", "concurrency", "context", "feed", "isolation", "leading", "library", "memory"),
            *("reach", "runtime", "state_and_events", "storage", "store", "triggers", "vault"),
        }
    )

    def __init__(self, *given: object, **options: object) -> None:
        super().__init__(AsyncPointsman(*given, **options))  # pyright: ignore[reportArgumentType] - `sync.pyi` has the types


class SyncClient(Opened[AsyncClient]):
    """See `pointsman.Client`."""

    def __init__(self, *given: object, **options: object) -> None:
        super().__init__(AsyncClient(*given, **options))  # pyright: ignore[reportArgumentType] - `sync.pyi` has the types


# The names that callers import are those of the asynchronous classes.
Execution, RemoteExecution, Pointsman, Client = SyncExecution, SyncRemoteExecution, SyncPointsman, SyncClient
