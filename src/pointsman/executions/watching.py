"""Watching executions: events as JSON once they are durable, and live deltas of the executions of this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final, TypeAlias

from pointsman.auth.redaction import redactor_for
from pointsman.context import AppContext
from pointsman.engine.state import status_of
from pointsman.executions.dialect_words import Dialect, events_in
from pointsman.executions.views import event_view, observability_of, told_progress
from pointsman.ports import Row
from pointsman.runtime.feed import Committed, Delta, Watcher
from pointsman.values import ExecutionId, JsonObject

See: TypeAlias = Callable[[JsonObject], None]

SETTLED: Final = frozenset({"completed", "failed", "cancelled", "waiting", "paused", "interrupted"})


def watcher_for(see: See) -> Watcher:
    """Return a watcher that passes events with `execution` and `parent`, and deltas as `{kind: delta, execution, step,
    node, delta}`."""

    def watch(seen: Committed | Delta) -> None:
        if isinstance(seen, Delta):
            step = seen.step
            see(
                {
                    "kind": "delta",
                    "execution": seen.execution,
                    "step": str(step),
                    "node": step.node,
                    "delta": seen.delta,
                }
            )
            return
        for number, event in enumerate(seen.row.events):
            view = event_view(seen.row, number, event)
            view["execution"], view["parent"] = seen.execution, seen.state.setup.parent
            see(view)

    return watch


def watch_progress(app: AppContext, see: Callable[[str], None]) -> Callable[[], None]:
    """Pass the messages of progress nodes to `see` once they are durable. The returned function ends it."""

    def watch(seen: Committed | Delta) -> None:
        if isinstance(seen, Committed):
            for event in seen.row.events:
                if told_progress(event):
                    see(str(event.data))

    return app.feed.watch(watch)


async def follow_events(
    app: AppContext, execution: str, *, after: int = 0, follow: bool, words: Dialect | None = None
) -> AsyncIterator[JsonObject]:
    """Yield the events of an execution; with `follow`, also those that other processes add, until nothing more happens.
    `words`: as public events of that dialect."""
    level = observability_of((await app.runtime.load(ExecutionId(execution))).setup.options) if words else "standard"
    redact = redactor_for(app.settings)
    async for row in follow_rows(app, execution, after=after, follow=follow):
        if words is not None:
            for told in events_in(words, ExecutionId(execution), row, level, redact):
                yield told
            continue
        for number, event in enumerate(row.events):
            yield event_view(row, number, event)


async def follow_rows(app: AppContext, execution: str, *, after: int, follow: bool) -> AsyncIterator[Row]:
    """Yield the rows of its journal."""
    name = ExecutionId(execution)
    woken = asyncio.Event()
    leave = app.store.follow(name, woken.set) if follow else None
    try:
        state = await app.runtime.load(name)
        while True:
            woken.clear()
            async for row in app.store.journal.read(name, after=after):
                after = row.seq
                yield row
            if not follow or (status_of(state) in SETTLED and state.seq <= after):
                return
            await woken.wait()
            state = await app.runtime.load(name) if await app.store.journal.last(name) > state.seq else state
    finally:
        if leave is not None:
            leave()
