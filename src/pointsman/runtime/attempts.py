"""One attempt from the executor's view: recorded effects that are not paid for twice, and live output."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Final

from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.engine.reports import Usage
from pointsman.engine.steps import Step
from pointsman.errors import CallerError
from pointsman.ports import EffectKind
from pointsman.runtime.dependencies import RuntimeDeps
from pointsman.runtime.feed import Delta
from pointsman.runtime.usage_meter import UsageMeter
from pointsman.store.api import EffectStore
from pointsman.values import ExecutionId, Json, JsonObject

NOTHING: Final[Mapping[int, Json]] = {}
FIELDS: Final = ("kind", "request", "value")
"""Stored form of an effect."""
COUNT_SUFFIX: Final = ":"
"""End of the names under which counts are stored beside attempts, whose names end with a digit. The value of entry n is
the name of the attempt that made use n."""


class EffectMismatch(CallerError):
    """Before a crash an attempt made another request under the same effect number. No call was made now."""

    code = "effect-mismatch"


def attempt_name(step: Step, attempt: int) -> str:
    """Return the name under which the store keeps the effects of an attempt."""
    return f"{step}:{attempt}"


class StoredUses:
    """Counts of limited uses of one execution. Each count is read once: while this process drives the execution, no
    other one counts."""

    def __init__(self, execution: ExecutionId, effects: EffectStore) -> None:
        self._execution = execution
        self._effects = effects
        self._counts: dict[str, int] = {}

    async def add(self, what: str, attempt: str, most: int | None) -> int | None:
        """Count a use by an attempt, and return the number of uses before it; None: there were `most` already."""
        name = what + COUNT_SUFFIX
        if what not in self._counts:
            stored = len(await self._effects.recorded(self._execution, name))
            self._counts.setdefault(what, stored)
        before = self._counts[what]
        if most is not None and before >= most:
            return None
        self._counts[what] = before + 1
        await self._effects.record(self._execution, name, before + 1, attempt)
        return before


async def copy_uses(
    effects: EffectStore, origin: ExecutionId, execution: ExecutionId, attempts: Container[str]
) -> None:
    """Copy the uses by these attempts to another execution."""
    for name in await effects.attempts(origin):
        if name.endswith(COUNT_SUFFIX):
            users = [
                by
                for _, by in sorted((await effects.recorded(origin, name)).items())
                if isinstance(by, str) and by in attempts
            ]
            for number, by in enumerate(users, start=1):
                await effects.record(execution, name, number, by)


class LocalAttempt:
    """The `Run` and the `Effects` of one attempt. After a crash the effects are read once; otherwise there are none."""

    __slots__ = (
        "_command",
        "_known",
        "_leaves",
        "_purse",
        "_surely",
        "_uses",
        "_world",
        "execution",
        "last_failure",
        "revision",
    )

    def __init__(
        self,
        execution: ExecutionId,
        command: Execute,
        world: RuntimeDeps,
        purse: UsageMeter | None = None,
        *,
        uses: StoredUses | None = None,
        leaves: Callable[[Failure], bool] = lambda _: False,
        revision: str = "",
    ) -> None:
        """`purse`: the usage meter, if there is a budget. `uses`: those of the execution. `leaves`: see
        `ExecutionPort.leaves`. `revision`: the saved revision that runs.
        """
        self._uses = uses or StoredUses(execution, world.effects)
        self._leaves = leaves
        self.revision = revision
        self.last_failure: Failure | None = None
        self._surely = True
        self._purse = purse
        self.execution = execution
        self._command = command
        self._world = world
        self._known: Mapping[int, Json] = NOTHING

    async def remember(self, *, surely: bool) -> None:
        """Read the effects that an earlier process recorded for this attempt before a crash.

        `surely`: that process made the same requests. Otherwise earlier rows may have been lost, and another answer may
        have led to another request.
        """
        self._surely = surely
        self._known = await self._world.effects.recorded(self.execution, self.name)

    @property
    def effects(self) -> LocalAttempt:
        return self

    @property
    def name(self) -> str:
        """Return the name under which the store keeps the effects of this attempt; a retry has another name and pays
        again.
        """
        return attempt_name(self._command.step, self._command.attempt)

    def recorded(self, number: int, *, kind: EffectKind | None = None, request: str = "") -> Json | None:
        """Return the recorded answer of effect `number`; None: not performed yet. Raises `EffectMismatch`."""
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
        """Record the answer of effect `number`. Durable on return in every durability mode."""
        await self._world.effects.record(self.execution, self.name, number, [kind, request, value])

    def refusal(self, kind: EffectKind, spent: Usage, *, calls: int = 1) -> Failure | None:
        """Return why no further calls may be made; None: they are allowed."""
        return None if self._purse is None else self._purse.refusal(self._command.step, kind, spent, calls=calls)

    async def use(self, what: str, *, most: int | None = None) -> int | None:
        """Count a use, as `ExecutionPort.use` describes. Durable on return."""
        return await self._uses.add(what, self.name, most)

    def tries_again(self, failure: Failure | None) -> None:
        """Record the failure that a timeout of this attempt reports; None: forget it."""
        self.last_failure = failure

    def leaves(self, failure: Failure) -> bool:
        """Return whether the attempt waits for a worker that has what it lacks."""
        return self._leaves(failure)

    def delta(self, command: Execute, delta: JsonObject) -> None:
        """Send live output to watchers."""
        feed = self._world.feed
        if feed.watched:
            feed.show(Delta(self.execution, command.step, delta))
