"""What watchers see: events as JSON once they are durable, and live deltas, of all executions of this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pointsman.app.views import event_view
from pointsman.runtime.feed import Committed, Delta, Watcher
from pointsman.values import JsonObject

See: TypeAlias = Callable[[JsonObject], None]


def watcher_for(see: See) -> Watcher:
    """Each event has `execution` and `parent`; a delta is `{kind: delta, execution, step, node, delta}`."""

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
            view["execution"], view["parent"] = seen.execution, seen.state.parent
            see(view)

    return watch
