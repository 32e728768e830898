"""The feed of watchers of executions. Rows are shown after they are committed; deltas are live and may be dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from pointsman.engine.state import ExecutionState
from pointsman.engine.steps import Step
from pointsman.ports import Row
from pointsman.values import ExecutionId, JsonObject


class Committed(NamedTuple):
    """A row that is in the journal. `state` is live: read it at once, never keep it."""

    execution: ExecutionId
    row: Row
    state: ExecutionState


class Delta(NamedTuple):
    """Something live inside a step: a token of text, a tool call. Never stored."""

    execution: ExecutionId
    step: Step
    delta: JsonObject


Watcher: TypeAlias = Callable[[Committed | Delta], None]
"""Called on the event loop; must not block and must not raise."""


class Feed:
    """Passes rows and deltas to watchers."""

    def __init__(self) -> None:
        self._watchers: list[Watcher] = []
        self.watched = False
        """Asked for every row and every delta: a plain attribute."""

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """From now on; the returned function ends it."""
        self._have([*self._watchers, watcher])
        return lambda: self._have([one for one in self._watchers if one is not watcher])

    def _have(self, watchers: list[Watcher]) -> None:
        self._watchers, self.watched = watchers, bool(watchers)

    def show(self, seen: Committed | Delta) -> None:
        for watcher in self._watchers:
            watcher(seen)
