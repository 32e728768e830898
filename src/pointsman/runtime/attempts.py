"""One attempt as an executor sees it: recorded effects that are not paid twice, and live output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.engine.reports import Usage
from pointsman.errors import CallerError
from pointsman.ports import EffectKind
from pointsman.runtime.dependencies import RuntimeDeps
from pointsman.runtime.feed import Delta
from pointsman.runtime.usage_meter import UsageMeter
from pointsman.values import ExecutionId, Json, JsonObject

NOTHING: Final[Mapping[int, Json]] = {}
FIELDS: Final = ("kind", "request", "value")
"""How an effect is recorded: a list of these."""


class EffectMismatch(CallerError):
    """Before a crash an attempt asked something else under the same number. Nothing was asked now."""

    code = "effect-mismatch"


class LocalAttempt:
    """The `Run` of one attempt. Also its `Effects`: read once after a crash, else known to be empty."""

    __slots__ = ("_command", "_known", "_leaves", "_purse", "_surely", "_world", "execution", "revision")

    def __init__(
        self,
        execution: ExecutionId,
        command: Execute,
        world: RuntimeDeps,
        purse: UsageMeter | None = None,
        *,
        leaves: Callable[[Failure], bool] = lambda _: False,
        revision: str = "",
    ) -> None:
        """`purse`: what may be spent, where there is a budget. `leaves`: see `Run.leaves`; `revision`: the saved
        revision that runs."""
        self._leaves = leaves
        self.revision = revision
        self._surely = True
        self._purse = purse
        self.execution = execution
        self._command = command
        self._world = world
        self._known: Mapping[int, Json] = NOTHING

    async def remember(self, *, surely: bool) -> None:
        """Read what an attempt of the same name has paid for before a crash. `surely`: it asked the same; else what
        led to it may have been lost, and another answer may have led to another question."""
        self._surely = surely
        self._known = await self._world.effects.recorded(self.execution, self.name)

    @property
    def effects(self) -> LocalAttempt:
        return self

    @property
    def name(self) -> str:
        """What the store files the effects of this attempt under; a retry is another attempt and pays again."""
        return f"{self._command.step}:{self._command.attempt}"

    def recorded(self, number: int, *, kind: EffectKind | None = None, request: str = "") -> Json | None:
        """What effect `number` answered before; None: not done yet. Raises `EffectMismatch`."""
        known = self._known.get(number)
        if not isinstance(known, list) or len(known) != len(FIELDS):
            return known
        was, asked, value = known
        if (kind is None or was == kind) and request in ("", asked):
            return value
        if self._surely:
            raise EffectMismatch(
                f"effect {number} of {self.name!r} was a {was} call with another request before the crash",
                hint="Its tools or its settings have changed. Retry it: a new attempt asks everything anew.",
            )
        return None

    async def record(self, number: int, kind: EffectKind, value: Json, *, request: str = "") -> None:
        """Remember the answer of effect `number`. Durable when it returns, whatever the mode of durability."""
        await self._world.effects.record(self.execution, self.name, number, [kind, request, value])

    def refusal(self, kind: EffectKind, spent: Usage, *, calls: int = 1) -> Failure | None:
        """Why no further calls may be made; None: they may."""
        return None if self._purse is None else self._purse.refusal(self._command.step, kind, spent, calls=calls)

    async def notes(self, topic: str) -> dict[int, Json]:
        """What the execution has noted under a topic."""
        return await self._world.effects.recorded(self.execution, f"{topic}:")  # No attempt is named so.

    async def note(self, topic: str, number: int, value: Json) -> None:
        """Note something for the rest of the execution. Durable when it returns."""
        await self._world.effects.record(self.execution, f"{topic}:", number, value)

    def leaves(self, failure: Failure) -> bool:
        """Whether the attempt is left to a worker that has what it lacks."""
        return self._leaves(failure)

    def delta(self, command: Execute, delta: JsonObject) -> None:
        """Send it to watchers."""
        feed = self._world.feed
        if feed.watched:
            feed.show(Delta(self.execution, command.step, delta))
