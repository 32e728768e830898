"""Opening executions of this store in this process: new ones, and those that exist.

    Starts.start      definition and input ─▶ an execution with a durable first row, once for each idempotency key
    open_execution    steps that were running when its process ended run again
    reach_execution   for cancel and pause: only what the execution does in response runs here

Each turn of a session is one execution; the messages of a completed turn are added to its session:

    message ─▶ closed? a turn in progress? ─▶ the next turn, named by its position in the conversation
                                                 │ completed: its messages are added to the session
                                                 └ failed, cancelled: the conversation stays as it was

The id follows from the session and the number of its messages: of two callers that send a message at the same moment,
one starts the turn and the other gets `SessionBusy`. No lock is needed.

Starts and answers have their idempotency keys in the journal. `IdempotencyKeys` is for requests without a journal:

    begin ─▶ an entry in the store ─▶ the work ─▶ its response in the entry
      └─ the entry exists: its response; none yet: the first request is in progress, or a crash interrupted it
"""

from __future__ import annotations

import os
import time
from base64 import b32encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b, sha256
from itertools import product
from typing import ClassVar, Final, NamedTuple, Protocol, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pointsman.auth.subjects import check_session, is_conversational
from pointsman.context import AppContext, Part
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.plan import PARTIAL_RUN_OPTION, Plan
from pointsman.engine.reports import Start
from pointsman.engine.state import ENDED, SCRIPTED_OPTION, ExecutionState
from pointsman.errors import CallerError
from pointsman.executions.concurrency_limits import OPTION as PLACE_OPTION
from pointsman.executions.concurrency_limits import ConcurrencyLimits, group_in
from pointsman.executions.execution import Execution
from pointsman.executions.inputs import conversation_for, input_for
from pointsman.models.transport import PydanticModels
from pointsman.ports import Clock
from pointsman.runtime.children import children_of
from pointsman.runtime.driver import Driver
from pointsman.runtime.local import LocalRuntime
from pointsman.store.api import ConfigStore, Store
from pointsman.store.errors import EntryMoved, JournalMoved, SessionClosed, SessionMoved
from pointsman.store.records import TRIAL, ExecutionQuery
from pointsman.values import ExecutionId, Json, JsonObject
from pointsman.workflows.library import LIBRARY, Library, RunnableDefinition
from pointsman.workflows.models import (
    ModelUse,
    is_answered_by_script,
    is_performed,
    open_nodes,
    performed_in,
    refuse_unreachable,
    still_to_come,
)


class Scripts(Protocol):
    """Applies the scripts that executions were started with. Wiring implements it: a script replaces the services."""

    async def take_up(self, execution: ExecutionId) -> None:
        """Answer from the script of an execution from here on. Raises `ScriptDiffers`, `ScriptMissing`."""
        ...


SCRIPTS: Final = Part[Scripts]("scripts")


async def open_execution(app: AppContext, execution: str) -> Execution:
    """Open an execution: steps that were running when its process ended run again. Raises `UnknownExecution`.

    An execution that started with a script continues with it, unless this application was given another one.
    """
    return Execution(app.runtime, await driver_for(app, ExecutionId(execution)))


async def reach_execution(app: AppContext, execution: str) -> Execution:
    """Return an execution without opening it: only what it does in response to a report (compensation) runs here."""
    await app[SCRIPTS].take_up(ExecutionId(execution))
    return Execution(app.runtime, await app.runtime.open(ExecutionId(execution), recover=False))


async def driver_for(app: AppContext, execution: ExecutionId) -> Driver:
    """Return the driver of an execution; a pending one is queued for admission in this process from here on."""
    await app[SCRIPTS].take_up(execution)
    driver = await app.runtime.open(execution)
    group = group_in(driver.state.setup.options)
    if group is not None and driver.state.status == "pending":
        app[CONCURRENCY].look(group)
    return driver


CONCURRENCY: Final = Part[ConcurrencyLimits](
    "concurrency",
    lambda app: ConcurrencyLimits(app.store, app.clock, partial(driver_for, app)),
    close=ConcurrencyLimits.close,
)
"""The concurrency limits of the executions of this store."""


async def turn_ended(app: AppContext, state: ExecutionState) -> None:
    """Store the messages of a turn that ended, and start the next queued execution."""
    await save_turn(app.store, state)
    group = group_in(state.setup.options)
    if group is not None:
        app[CONCURRENCY].look(group)


async def must_reach_models(app: AppContext, plan: Plan, state: ExecutionState) -> None:
    """Raise `ModelUnusable` or `ModelUnnamed` if a model that the rest of an execution calls cannot be called."""
    if (models := app.services.models_to_check) is None:
        return
    await models.refresh()
    model = state.setup.options.get("model")
    uses = await uses_to_come(app.runtime, app[LIBRARY], plan, state)
    refuse_unreachable(models, uses, model if isinstance(model, str) else None)


IDEMPOTENCY_KEY: Final = "once"
REPLY_KEPT_S: Final = 86_400.0
"""For at least this many seconds a response is kept; `gc` deletes it later."""
REPLY_BYTES_MAX: Final = 256_000


class KeyInUse(CallerError):
    """The first request with this key has no response yet: it is in progress or was interrupted. Nothing was done
    now."""

    code: ClassVar[str] = "key-in-use"


class StoredReply(Struct, frozen=True, omit_defaults=True):
    """The stored response to a request with a key."""

    asked: str
    """The digest of the request."""
    at: float
    status: int = 0
    """0: there is no response yet."""
    answer: Json = None
    headers: dict[str, str] = {}
    """Headers of the response."""


class IdempotencyKeys:
    """The idempotency keys of one store."""

    def __init__(self, entries: ConfigStore, clock: Clock) -> None:
        self._entries = entries
        self._clock = clock

    async def begin(self, name: str, request: bytes) -> StoredReply | None:
        """Reserve a key for this request, or return its stored response; None: it is the first. Raises `KeyReused`,
        `KeyInUse`."""
        reply = StoredReply(sha256(request).hexdigest(), self._clock.now())
        try:
            await self._entries.put(IDEMPOTENCY_KEY, name, _plain_reply(reply), after=0)
        except EntryMoved:
            return await self._stored_reply(name, reply.asked)
        return None

    async def done(self, name: str, request: bytes, status: int, body: bytes, headers: dict[str, str]) -> None:
        """Store the response. If it is larger than `REPLY_BYTES_MAX`, it is not stored, and a repeated request gets
        `KeyInUse`."""
        if len(body) <= REPLY_BYTES_MAX:
            answer = msgspec.json.decode(body) if body else None
            reply = StoredReply(sha256(request).hexdigest(), self._clock.now(), status, answer, headers)
            await self._entries.put(IDEMPOTENCY_KEY, name, _plain_reply(reply))

    async def undone(self, name: str) -> None:
        """Release the key: the request was refused and nothing was done."""
        await self._entries.delete(IDEMPOTENCY_KEY, name)

    async def purge(self, *, dry_run: bool = False) -> int:
        """Delete responses older than `REPLY_KEPT_S` and return their number."""
        since = self._clock.now() - REPLY_KEPT_S
        old = [entry.key for entry in await self._entries.list(IDEMPOTENCY_KEY) if _read_reply(entry.value).at < since]
        for key in () if dry_run else old:
            await self._entries.delete(IDEMPOTENCY_KEY, key)
        return len(old)

    async def _stored_reply(self, name: str, request_hash: str) -> StoredReply:
        entry = await self._entries.find(IDEMPOTENCY_KEY, name)
        reply = None if entry is None else _read_reply(entry.value)
        if reply is not None and reply.asked != request_hash:
            raise KeyReused("another request was sent under this key", hint="Use a new key for a new request.")
        if reply is None or not reply.status:
            raise KeyInUse(
                "a request with this key is still in progress",
                hint="Repeat the request in a moment. If a server ended in between, check the result of the "
                "request first.",
            )
        return reply


def name_of(caller: str, what: str, key: str) -> str:
    """Return the entry's name, separate for each caller and each operation."""
    return sha256(f"{caller}\0{what}\0{key}".encode()).hexdigest()


def _plain_reply(reply: StoredReply) -> JsonObject:
    return msgspec.to_builtins(reply)


def _read_reply(value: Json) -> StoredReply:
    return msgspec.convert(value, StoredReply, strict=False)


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """An answer for the next open gate of a node (or for the gate with that id). Each is used once."""

    node: str
    action: str
    data: Json = None
    comment: str = ""
    by: str = ""
    groups: tuple[str, ...] = ()
    digest: str = ""
    """Digest of what the person saw; empty: not known."""


async def outermost(app: AppContext, execution: Execution) -> Execution:
    """Return the outermost execution that waits for this sub-workflow, directly or through others; itself if none
    does."""
    while (parent := execution.state.setup.parent) is not None:
        above = await app.runtime.load(ExecutionId(parent))
        waits = (name for at in above.steps.values() for name in children_of(ExecutionId(parent), at))
        if above.ended or execution.id not in waits:
            break
        execution = await open_execution(app, parent)
    return execution


async def drive(execution: Execution, answers: Sequence[GivenAnswer] = ()) -> tuple[GivenAnswer, ...]:
    """Drive the execution to its end, or until only people and events can continue it. Return the unused answers."""
    left = list(answers)
    while True:
        await execution.settled()
        state = execution.state
        if state.ended or (state.is_halted and not state.awaits_escalation):
            break
        fits = ((one, gate) for one in left for gate in execution.gates if one.node in (gate.id, gate.node))
        answer, gate = next(fits, (None, None))
        if answer is None or gate is None:
            break
        left.remove(answer)
        answerable = execution.asking(gate)  # two sub-workflows may have gates with the same name
        await answerable.answer(
            gate.id,
            answer.action,
            answer.data,
            comment=answer.comment,
            by=answer.by,
            groups=answer.groups,
            digest=answer.digest,
        )
    return tuple(left)


async def uses_to_come(runtime: LocalRuntime, library: Library, plan: Plan, state: ExecutionState) -> list[ModelUse]:
    """Return the model uses that are left of an execution: its own, those of its sub-workflows that have begun, and
    all of those that it can still begin."""
    uses = [*still_to_come(plan, state, await library.model_uses(state.setup.definition))]
    pins = state.setup.options.get("pins")
    if not isinstance(pins, dict) or not pins:
        return uses
    workflow, children_of_step = await library.kept(state.setup.definition), await _begun_children(runtime, state)
    open_ = open_nodes(state)
    ahead = plan.after(open_)
    waiting = [
        reference
        for node in workflow.nodes
        if is_performed(plan.partial_run, node.id)
        and (node.id in ahead or (node.id in open_ and node.id not in children_of_step))
        for reference in await library.called_by(workflow, node.id)
    ]
    references = set[str]()
    while waiting:
        reference = waiting.pop()
        pin = pins.get(reference)
        if reference in references or not isinstance(pin, dict):
            continue
        references.add(reference)
        definition = str(pin["definition"])
        uses += await library.model_uses(definition)
        waiting += await library.called(await library.kept(definition))
    for children in children_of_step.values():
        for child in children:
            below = await library.pinned(child.setup.definition, child.setup.options)
            uses += await uses_to_come(runtime, library, below, child)
    return uses


async def _begun_children(runtime: LocalRuntime, state: ExecutionState) -> dict[str, list[ExecutionState]]:
    """Return the sub-workflows that have begun and are not over, by the node whose step waits for them. A step with one
    that failed begins another."""
    execution_stateses: dict[str, list[ExecutionState]] = {}
    for at in state.steps.values():
        names = children_of(ExecutionId(state.id), at)
        states = [await runtime.load(name) for name in names if await runtime.journal.last(name)]
        if names and len(states) == len(names) and not any(state.status in ("failed", "cancelled") for state in states):
            execution_stateses.setdefault(at.step.node, []).extend(state for state in states if not state.ended)
    return execution_stateses


Open: TypeAlias = Callable[[ExecutionId], Awaitable[Driver]]


class KeyReused(CallerError):
    """Something else was started under this key. Nothing was started now."""

    code: ClassVar[str] = "key-reused"


@dataclass(frozen=True, slots=True)
class StartRequest:
    """Options of one start, beside its input."""

    options: JsonObject
    session: str | None
    config: Mapping[str, Json]
    execution: ExecutionId | None
    """The id of the new execution; starting raises `JournalMoved` if that id exists."""
    key: str | None
    """Idempotency key: an execution that was started under it is returned instead of a new one."""


def id_of(definition: WorkflowDefinition, request: StartRequest) -> ExecutionId | None:
    """Return the id that the caller or the key determines; None: there is none yet."""
    return request.execution if request.key is None else request.execution or id_for_key(definition.id, request.key)


class Starts:
    """Starts executions."""

    def __init__(
        self,
        runtime: LocalRuntime,
        library: Library,
        concurrency: ConcurrencyLimits,
        open_: Open,
        models: PydanticModels | None,
    ) -> None:
        """`models` must reach every model that an execution may call; None: no model is called."""
        self._models = models
        self._runtime = runtime
        self._library = library
        self._concurrency = concurrency
        self._open = open_

    async def start(self, runnable: RunnableDefinition, input: Json, request: StartRequest) -> Execution:
        """Start an execution, or return the one that was started under the key. Raises `InputInvalid`, `KeyReused`,
        `ConcurrencyLimitReached`, and `ModelUnusable` or `ModelUnnamed` if a model cannot be called from here."""
        definition = runnable.definition
        accepted = input_for(definition, input)
        turn = await self._turn(definition, request)
        name = turn.name
        if request.key is not None and await self._runtime.journal.last(name):
            return await self._same(name, accepted, request.key)
        report = await self._report(runnable, accepted, request, turn.history)
        report = await self._with_models(report)
        place = await self._concurrency.before(definition, accepted, name)
        if place is not None:
            options: JsonObject = {**report.options, PLACE_OPTION: place.said}
            report = replace(report, options=options, queued=place.policy != "skip")
        plan = await self._library.pinned(report.definition, report.options)
        try:
            async with self._runtime.alone(name):  # a concurrent start of the same id must find this one durable
                driver = await self._runtime.start(name, plan, report)
        except JournalMoved:
            if request.session is not None and id_of(definition, request) is None:
                raise busy(request.session, name) from None  # another turn of the session began at the same moment
            if request.key is None:
                raise
            return await self._same(name, accepted, request.key)  # another process was faster
        if place is not None and report.queued:
            await self._concurrency.enter(place.group, driver, replace=place.policy == "replace")
        return Execution(self._runtime, driver)

    async def _turn(self, definition: WorkflowDefinition, request: StartRequest) -> SessionTurn:
        """Return the execution's id and the session's earlier messages. Raises `SessionBusy`, `SessionClosed`."""
        turn_id = id_of(definition, request)
        if request.session is not None:
            check_session(request.session)
        if request.session is None or (turn_id is not None and await self._runtime.journal.last(turn_id)):
            return SessionTurn(turn_id or new_id(), ())
        if not is_conversational(definition):
            await finish_last_turn(self._runtime, request.session)
            conversation = await self._runtime.store.sessions.load(request.session)
            return SessionTurn(turn_id or new_id(), conversation.messages)
        prefix = TRIAL if PARTIAL_RUN_OPTION in request.options else "exec-"
        turn = await next_turn(self._runtime, request.session, prefix=prefix)
        return turn if turn_id is None else SessionTurn(turn_id, turn.history)

    async def _report(
        self, runnable: RunnableDefinition, input: JsonObject, request: StartRequest, history: tuple[Json, ...]
    ) -> Start:
        definition = runnable.definition
        options = dict(request.options)
        if is_conversational(definition):
            options["history"] = len(history)
        digest = await self._library.keep(runnable)
        plan = await self._library.pinned(digest, options)
        return Start(
            input=input,
            config=dict(request.config),
            session=request.session,
            messages=conversation_for(definition, input, history) if plan.messages else [],
            definition=digest,
            options=options,
            seed=int.from_bytes(os.urandom(4), "big"),
        )

    async def _with_models(self, report: Start) -> Start:
        """Refuse a start that needs a model which cannot be called from here, in the workflow or in a sub-workflow that
        is pinned with it. The returned start records whether the scripted model answers."""
        if self._models is None:
            return report
        options, model = report.options, report.options.get("model")
        trial = (await self._library.pinned(report.definition, options)).partial_run
        uses = [*performed_in(trial, await self._library.model_uses(report.definition))]
        pins = options.get("pins")
        for pin in pins.values() if isinstance(pins, dict) else ():
            if isinstance(pin, dict):
                uses += await self._library.model_uses(str(pin["definition"]))
        only = model if isinstance(model, str) else None
        refuse_unreachable(self._models, uses, only)
        if not is_answered_by_script(self._models, uses, only):
            return report
        return replace(report, options={**options, SCRIPTED_OPTION: True})

    async def _same(self, name: ExecutionId, input: JsonObject, key: str) -> Execution:
        """Return the execution that was started under a key. Raises `KeyReused` if its input was different."""
        driver = await self._open(name)
        if driver.state.setup.input != input:
            raise KeyReused(
                f"{name!r} was started under the key {key!r} with another input", hint="Use a new key for a new input."
            )
        return Execution(self._runtime, driver)


LOOKED_AT: Final = 50
"""Sub-workflows belong to the session too; the turn in progress, or the last one, is among this many executions."""
UNFINISHED: Final = frozenset({"pending", "running", "waiting", "paused", "interrupted"})


class SessionBusy(CallerError):
    """A turn of this conversation is in progress. The new message was not accepted."""

    code: ClassVar[str] = "session-busy"


class SessionTurn(NamedTuple):
    """The id of the next turn, and the messages before it."""

    name: ExecutionId
    history: tuple[Json, ...]


async def next_turn(runtime: LocalRuntime, session: str, *, prefix: str = "exec-") -> SessionTurn:
    """Return the next turn. `prefix`: of its id. Raises `SessionClosed`, `SessionBusy`."""
    await finish_last_turn(runtime, session)
    conversation = await runtime.store.sessions.load(session)
    if conversation.closed:
        raise closed(session)
    under_way = await open_turn(runtime, session)
    if under_way is not None:
        raise busy(session, under_way)
    tried = 0
    while True:
        name = id_for_key("turn", f"{session}|{len(conversation.messages)}|{tried}", prefix=prefix)
        if not await runtime.journal.last(name):
            return SessionTurn(name, conversation.messages)
        if (await runtime.load(name)).status not in ENDED:
            raise busy(session, name)
        tried += 1


async def open_turn(runtime: LocalRuntime, session: str) -> ExecutionId | None:
    """Return the turn that has not ended."""
    query = ExecutionQuery(session=session, statuses=UNFINISHED, limit=LOOKED_AT)
    for one in await runtime.store.executions.list(query):
        if one.parent is None and is_turn(await runtime.load(one.execution)):
            return one.execution
    return None


def is_turn(state: ExecutionState) -> bool:
    """Return whether the execution is a turn: executions that only share a session's memory add no messages to it."""
    return (
        state.setup.session is not None
        and state.setup.parent is None
        and isinstance(state.setup.options.get("history"), int)
    )


def busy(session: str, execution: ExecutionId) -> SessionBusy:
    return SessionBusy(
        f"the conversation {session!r} has a turn in progress: {execution}",
        hint=f"Wait until it ends, answer its gate, or cancel it: pointsman cancel {execution}",
    )


def closed(session: str) -> SessionClosed:
    return SessionClosed(
        f"the conversation {session!r} has ended",
        hint="Reopen it (`pointsman chat --reopen`), or start another conversation.",
    )


async def finish_last_turn(runtime: LocalRuntime, session: str) -> None:
    """Save the last completed turn, if its process died before adding its messages to the session."""
    query = ExecutionQuery(session=session, statuses=frozenset({"completed"}), limit=LOOKED_AT)
    for one in await runtime.store.executions.list(query):
        state = await runtime.load(one.execution)
        if not is_turn(state):
            continue
        conversation, before = await runtime.store.sessions.load(session), state.setup.options["history"]
        if isinstance(before, int) and len(conversation.messages) <= before:
            with suppress(SessionMoved, SessionClosed):  # another turn was faster
                await save_turn(runtime.store, state)
        return


async def save_turn(store: Store, state: ExecutionState) -> None:
    """Add the messages of a completed turn to its session, and close it if the turn asks for it. Idempotent, so that it
    can be repeated after a crash."""
    if not is_turn(state) or state.status != "completed":
        return
    history_length = state.setup.options["history"]
    messages = state.root.data.root.get("messages")
    if state.setup.session is None or not isinstance(history_length, int) or not isinstance(messages, list):
        return
    await store.sessions.append(state.setup.session, tuple(messages[history_length:]), after=history_length)
    if state.outcome.closes_session:
        await store.sessions.close(state.setup.session)


SORTABLE: Final = str.maketrans("abcdefghijklmnopqrstuvwxyz234567", "0123456789abcdefghjkmnpqrstvwxyz")
"""Base 32 letters in the order of their values (Crockford's), so that ids sort by time."""


DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
PAIRS: Final = tuple(map("".join, product(DIGITS, repeat=2)))
ID_PAIRS: Final = 13
"""An id has 26 characters, 130 bits; the last two bits are 0."""


def new_id(prefix: str = "exec-") -> ExecutionId:
    """Return the prefix and 26 characters: 48 bits of time in milliseconds, 80 random bits, in sortable base 32."""
    left = (int(time.time() * 1000) << 80 | int.from_bytes(os.urandom(10), "big")) << 2
    pairs: list[str] = []
    for _ in range(ID_PAIRS):
        left, pair = divmod(left, len(PAIRS))
        pairs.append(PAIRS[pair])
    return ExecutionId(prefix + "".join(reversed(pairs)))


def new_session() -> str:
    """Return `ses_` and 8 hexadecimal digits: 32 random bits, so that a store may have it already."""
    return f"ses_{os.urandom(4).hex()}"


def new_trial_session() -> str:
    """Return the id of a conversation in which a person tries out an agent."""
    return f"{TRIAL}{os.urandom(8).hex()}"


def id_for_key(workflow: str, key: str, *, prefix: str = "exec-") -> ExecutionId:
    """Return the execution id for a workflow and a caller's key: the same in every process."""
    digest = blake2b(f"{workflow}|{key}".encode(), digest_size=16).digest()
    return ExecutionId(prefix + b32encode(digest).decode().rstrip("=").lower().translate(SORTABLE))
