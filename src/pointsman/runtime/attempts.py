"""One attempt as an executor sees it: effects that are not paid twice, and a way to show what happens inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pointsman.engine.commands import Execute
from pointsman.runtime.feed import Delta
from pointsman.runtime.world import World
from pointsman.values import ExecutionId, Json, JsonObject

NOTHING: Final[Mapping[int, Json]] = {}


class Attempt:
    """The `Run` of one attempt. Also its `Effects`: read once after a crash, else known to be empty."""

    __slots__ = ("_command", "_known", "_world", "execution")

    def __init__(self, execution: ExecutionId, command: Execute, world: World) -> None:
        self.execution = execution
        self._command = command
        self._world = world
        self._known: Mapping[int, Json] = NOTHING

    async def remember(self) -> None:
        """Read what an attempt of the same name has paid for before a crash."""
        self._known = await self._world.effects.recorded(self.execution, self.name)

    @property
    def effects(self) -> Attempt:
        return self

    @property
    def name(self) -> str:
        """What the store files the effects of this attempt under; a retry is another attempt and pays again."""
        return f"{self._command.step}:{self._command.attempt}"

    def recorded(self, number: int) -> Json | None:
        """What effect `number` answered before; None: not done yet."""
        return self._known.get(number)

    async def record(self, number: int, kind: Literal["model", "tool"], value: Json) -> None:
        """Remember the answer of effect `number`. Durable when it returns."""
        await self._world.effects.record(self.execution, self.name, number, value)

    def delta(self, command: Execute, delta: JsonObject) -> None:
        """Show it to whoever watches."""
        feed = self._world.feed
        if feed.watched:
            feed.show(Delta(self.execution, command.step, delta))
