"""Feed for watchers of executions. Rows are shown after they are committed; deltas are live and may be dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from pointsman.engine.state import ExecutionState
from pointsman.engine.steps import Step
from pointsman.ports import Row
from pointsman.values import ExecutionId, JsonObject


class Committed(NamedTuple):
    """A committed row. `state` is live: read it at once and do not keep it."""

    execution: ExecutionId
    row: Row
    state: ExecutionState


class Delta(NamedTuple):
    """Live output inside a step: a token of text, a tool call. Never stored."""

    execution: ExecutionId
    step: Step
    delta: JsonObject


Watcher: TypeAlias = Callable[[Committed | Delta], None]
"""Called on the event loop; must not block or raise."""


class Feed:
    """Passes rows and deltas to watchers."""

    def __init__(self) -> None:
        self._watchers: list[Watcher] = []
        self.watched = False
        """A plain attribute because it is read for every row and every delta."""

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Register a watcher; the returned function removes it."""
        self._have([*self._watchers, watcher])
        return lambda: self._have([one for one in self._watchers if one is not watcher])

    def _have(self, watchers: list[Watcher]) -> None:
        self._watchers, self.watched = watchers, bool(watchers)

    def show(self, seen: Committed | Delta) -> None:
        for watcher in self._watchers:
            watcher(seen)
