"""One attempt from the executor's view: recorded effects that are not paid for twice, usage, live output, step cache.

    attempt ─▶ known? ─▶ yes: its result, as a success without cost, marked `cached`
                      └▶ no:  perform it; store the result once its success is in the journal

A node with `cache` is answered with the result of an equal earlier step. Steps are equal when definition, node,
configuration, resolved input, conversation, script, and the available models and tools are equal. Entries live beside
the memory tiers in a scope that no memory node can name. Losing one costs a repetition, nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from pointsman.engine.actions import WorkAction
from pointsman.engine.commands import Execute
from pointsman.engine.decide import limits
from pointsman.engine.events.steps import Event, StepSucceeded
from pointsman.engine.failures import Failure
from pointsman.engine.plan import Plan
from pointsman.engine.reports import Usage, WorkDone
from pointsman.engine.state import SCRIPT_OPTION, ExecutionState
from pointsman.engine.steps import Step
from pointsman.errors import CallerError
from pointsman.ports import EffectKind, Memory
from pointsman.runtime.dependencies import Delta, ExecutorsFor, RuntimeDeps
from pointsman.runtime.summary import usage_of
from pointsman.store.api import EffectStore
from pointsman.store.records import EffectRecord
from pointsman.values import ExecutionId, Json, JsonObject, NodeId

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


class _Already:
    """The wait for something that has happened: it needs no coroutine."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


ALREADY: Final[Awaitable[None]] = _Already()
LATER_CHARS_MAX: Final = 100_000
"""Maximum size of an answer that is stored with its row: to encode a large one with its row needs twice the memory."""


def is_large(value: Json) -> bool:
    """Return whether an answer has more characters and elements than may be stored with its row."""
    remaining, parts = LATER_CHARS_MAX, [value]
    for part in parts:  # It grows meanwhile.
        if isinstance(part, str):
            remaining -= len(part)
        elif isinstance(part, dict):
            remaining -= len(part)
            parts += part.values()
        elif isinstance(part, list):
            remaining -= len(part)
            parts += part
        else:
            continue
        if remaining < 0:
            return True
    return False


class LocalAttempt:
    """The `Run` and the `Effects` of one attempt. After a crash the effects are read once."""

    __slots__ = (
        "_command",
        "_known",
        "_leaves",
        "_surely",
        "_unrecorded",
        "_usage_meter",
        "_uses",
        "_world",
        "execution",
        "lane",
        "last_failure",
        "revision",
    )

    def __init__(
        self,
        execution: ExecutionId,
        command: Execute,
        world: RuntimeDeps,
        usage_meter: UsageMeter | None = None,
        *,
        uses: StoredUses | None = None,
        leaves: Callable[[Failure], bool] = lambda _: False,
        revision: str = "",
    ) -> None:
        """`usage_meter`: None without a budget. `uses`: those of the execution. `leaves`: see
        `ExecutionPort.leaves`. `revision`: the saved revision that runs.
        """
        self._uses = uses or StoredUses(execution, world.effects)
        self._leaves = leaves
        self.revision = revision
        self._unrecorded: list[EffectRecord] = []
        self.last_failure: Failure | None = None
        self.lane: asyncio.Task[Any] | None = None
        """The task that performs it. Its deadline stands still while the attempt waits for the store."""
        self._surely = True
        self._usage_meter = usage_meter
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
    def node(self) -> NodeId:
        return NodeId(self._command.step.node)

    @property
    def name(self) -> str:
        """Return the name under which the store keeps the effects of this attempt; a retry has another name and pays
        again.
        """
        return attempt_name(self._command.step, self._command.attempt)

    def recorded(self, number: int, *, kind: EffectKind | None = None, request: str = "") -> Json | None:
        """Return the recorded answer of effect `number`; None: not performed yet. Raises `EffectMismatch`."""
        if self._known is NOTHING:
            return None
        record = self._known.get(number)
        if not isinstance(record, list) or len(record) != len(FIELDS):
            return record
        was, recorded_request, value = record
        if (kind is None or was == kind) and request in ("", recorded_request):
            return value
        if self._surely:
            raise EffectMismatch(
                f"effect {number} of {self.name!r} was a {was} call with another request before the crash",
                hint="Its tools or its settings have changed. Retry it: a new attempt asks everything anew.",
            )
        return None

    def record(
        self, number: int, kind: EffectKind, value: Json, *, request: str = "", later: bool = False
    ) -> Awaitable[None]:
        """Record the answer of effect `number`, as `Effects.record` describes. A large answer is always stored at
        once."""
        self._unrecorded.append(EffectRecord(self.name, number, [kind, request, value]))
        return ALREADY if later and not is_large(value) else self.flush()

    def flush(self) -> Awaitable[None]:
        """Return when all recorded answers are durable."""
        return self._stored() if self._unrecorded else ALREADY

    async def _stored(self) -> None:
        """Store the recorded answers."""
        effects = self.take_unrecorded()
        with self.waiting_for_store():
            for attempt, number, value in effects:
                await self._world.effects.record(self.execution, attempt, number, value)

    @property
    def has_unrecorded(self) -> bool:
        """Return whether an answer is not durable yet."""
        return bool(self._unrecorded)

    def take_unrecorded(self) -> Sequence[EffectRecord]:
        """Return the answers that are not durable yet; the caller stores them."""
        if not self._unrecorded:
            return ()
        effects, self._unrecorded = self._unrecorded, []
        return effects

    def refusal(self, kind: EffectKind, usage: Usage, *, calls: int = 1) -> Failure | None:
        """Return why no further calls may be made; None: they are allowed."""
        return (
            None
            if self._usage_meter is None
            else self._usage_meter.refusal(self._command.step, kind, usage, calls=calls)
        )

    async def use(self, what: str, *, most: int | None = None) -> int | None:
        """Count a use, as `ExecutionPort.use` describes. Durable on return."""
        with self.waiting_for_store():
            return await self._uses.add(what, self.name, most)

    def waiting_for_store(self) -> AbstractContextManager[None]:
        return self._world.deadlines.paused(self.lane)

    def tries_again(self, failure: Failure | None) -> None:
        """Record the failure that a timeout of this attempt reports; None: forget it."""
        self.last_failure = failure

    def leaves(self, failure: Failure) -> bool:
        """Return whether the attempt waits for a worker that has what it lacks."""
        return self._leaves(failure)

    def delta(self, delta: JsonObject) -> None:
        """Send live output to watchers."""
        feed = self._world.feed
        if feed.watched:
            feed.show(Delta(self.execution, self._command.step, delta))


class UsageMeter:
    """Checked before each model or tool call by all running attempts, so that together they respect the budgets."""

    __slots__ = ("_last_usage", "_plan", "_state", "on_usage", "open")

    def __init__(self, plan: Plan, state: ExecutionState) -> None:
        self._plan = plan
        self._state = state
        self.open: dict[Step, Usage] = {}
        """Usage of running attempts so far, as of their last check."""
        self.on_usage: Callable[[Usage], None] | None = None
        """Called with the total usage after each row that changes it."""
        self._last_usage = Usage()

    @property
    def matters(self) -> bool:
        """Return whether it has a budget or is part of one."""
        return bool(self._plan.limits.budgets) or self.on_usage is not None

    def refusal(self, step: Step, kind: Literal["model", "tool"], usage: Usage, *, calls: int) -> Failure | None:
        """Return why an attempt with this usage may not continue; None: it may."""
        if not self._plan.limits.budgets:
            return None
        self.open[step] = usage
        tripped = limits.refused_by_budget(self._plan, self._state, kind, calls, self.open.values())
        return None if tripped is None else limits.budget_failure(tripped)

    def over(self, step: Step) -> None:
        """Drop a finished attempt: the journal has its usage, or a repetition counts it again from its recorded
        effects.
        """
        self.open.pop(step, None)

    def notify(self) -> None:
        """Notify listeners after a decided row."""
        if self.on_usage is not None and (usage := usage_of(self._state)) != self._last_usage:
            self._last_usage = usage
            self.on_usage(usage)


CACHE_SCOPE: Final = "cache"


class CacheKey(NamedTuple):
    """Location of a cached result: its owner, and the hash of everything it depends on."""

    namespace: str
    key: str


def cache_key_of(state: ExecutionState, command: Execute, does: WorkAction, executors: ExecutorsFor) -> CacheKey | None:
    """Return the cache key of a command; None: the node has no cache, or the command is not its own work."""
    if does.cache == "off" or command.phase != "work":
        return None
    # An execution without a session is a session of its own, as for memory nodes.
    owners = {"execution": state.id, "session": state.setup.session or state.id, "long_term": state.setup.workflow}
    spec = does.spec
    definition = (
        state.setup.definition,
        *([state.setup.options[SCRIPT_OPTION]] if SCRIPT_OPTION in state.setup.options else ()),
    )
    basis = executors.basis(command, spec)
    depends = (*definition, spec.node, spec.kind, spec.config, spec.settings, command.input, command.messages, basis)
    digest = sha256(msgspec.json.encode(depends, order="deterministic")).hexdigest()
    return CacheKey(f"{does.cache}/{owners[does.cache]}", digest)


async def cached_result(command: Execute, place: CacheKey, memory: Memory) -> WorkDone | None:
    """Return the result of an equal earlier step as the result of this one, or None."""
    value = await memory.get(CACHE_SCOPE, place.namespace, place.key)
    if value is None:
        return None
    report = msgspec.convert(value, WorkDone)
    return replace(report, step=command.step, attempt=command.attempt, cached=True)


async def cache_result(report: WorkDone, decided: Sequence[Event], place: CacheKey, memory: Memory) -> None:
    """Cache the result of a step that succeeded, without its cost and warnings, which belong to that step alone.

    The mark that the scripted model answered stays with the result.
    """
    if not any(type(event) is StepSucceeded and event.step == report.step for event in decided):
        return
    scripted = report.usage is not None and report.usage.scripted
    cached = replace(report, usage=Usage(scripted=True) if scripted else None, warnings=())
    await memory.put(CACHE_SCOPE, place.namespace, place.key, msgspec.to_builtins(cached))
