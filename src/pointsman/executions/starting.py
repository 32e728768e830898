"""Starting: turns a definition and an input into an execution with a durable first row, once for each idempotency
key."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from msgspec.structs import replace

from pointsman.auth.subjects import check_session, is_conversational
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.plan import PARTIAL_RUN_OPTION, Plan
from pointsman.engine.reports import Start
from pointsman.engine.state import SCRIPTED_OPTION, ExecutionState
from pointsman.errors import CallerError
from pointsman.executions.concurrency_limits import OPTION as PLACE_OPTION
from pointsman.executions.concurrency_limits import Places
from pointsman.executions.execution import Execution
from pointsman.executions.ids import id_for_key, new_id
from pointsman.executions.inputs import conversation_for, input_for
from pointsman.executions.session_turns import SessionTurn, busy, finish_last_turn, next_turn
from pointsman.models.transport import PydanticModels
from pointsman.runtime.children import children_of
from pointsman.runtime.driver import Driver
from pointsman.runtime.local import LocalRuntime
from pointsman.store.errors import JournalMoved
from pointsman.store.records import TRIAL
from pointsman.values import ExecutionId, Json, JsonObject
from pointsman.workflows.library import Library, RunnableDefinition
from pointsman.workflows.models import (
    ModelUse,
    is_answered_by_script,
    is_performed,
    open_nodes,
    performed_in,
    refuse_unreachable,
    still_to_come,
)


async def uses_to_come(runtime: LocalRuntime, library: Library, plan: Plan, state: ExecutionState) -> list[ModelUse]:
    """Return the model uses that are left of an execution: its own, those of its sub-workflows that have begun, and
    all of those that it can still begin."""
    found = [*still_to_come(plan, state, await library.model_uses(state.setup.definition))]
    pins = state.setup.options.get("pins")
    if not isinstance(pins, dict) or not pins:
        return found
    workflow, begun = await library.kept(state.setup.definition), await _begun_children(runtime, state)
    open_ = open_nodes(state)
    ahead = plan.after(open_)
    waiting = [
        reference
        for node in workflow.nodes
        if is_performed(plan.partial_run, node.id) and (node.id in ahead or (node.id in open_ and node.id not in begun))
        for reference in await library.called_by(workflow, node.id)
    ]
    known = set[str]()
    while waiting:
        reference = waiting.pop()
        pin = pins.get(reference)
        if reference in known or not isinstance(pin, dict):
            continue
        known.add(reference)
        definition = str(pin["definition"])
        found += await library.model_uses(definition)
        waiting += await library.called(await library.kept(definition))
    for children in begun.values():
        for child in children:
            below = await library.pinned(child.setup.definition, child.setup.options)
            found += await uses_to_come(runtime, library, below, child)
    return found


async def _begun_children(runtime: LocalRuntime, state: ExecutionState) -> dict[str, list[ExecutionState]]:
    """Return the sub-workflows that have begun and are not over, by the node whose step waits for them. A step with one
    that failed begins another."""
    found: dict[str, list[ExecutionState]] = {}
    for at in state.steps.values():
        names = children_of(ExecutionId(state.id), at)
        states = [await runtime.load(name) for name in names if await runtime.journal.last(name)]
        if names and len(states) == len(names) and not any(one.status in ("failed", "cancelled") for one in states):
            found.setdefault(at.step.node, []).extend(one for one in states if not one.ended)
    return found


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


def id_of(definition: WorkflowDefinition, wish: StartRequest) -> ExecutionId | None:
    """Return the id that the caller or the key determines; None: there is none yet."""
    return wish.execution if wish.key is None else wish.execution or id_for_key(definition.id, wish.key)


class Starts:
    """Starts executions."""

    def __init__(
        self, runtime: LocalRuntime, library: Library, places: Places, open_: Open, models: PydanticModels | None
    ) -> None:
        """`models` must reach every model that an execution may call; None: no model is called."""
        self._models = models
        self._runtime = runtime
        self._library = library
        self._places = places
        self._open = open_

    async def start(self, runnable: RunnableDefinition, input: Json, wish: StartRequest) -> Execution:
        """Start an execution, or return the one that was started under the key. Raises `InputInvalid`, `KeyReused`,
        `PlaceTaken`, and `ModelUnusable` or `ModelUnnamed` if a model cannot be called from here."""
        definition = runnable.definition
        given = input_for(definition, input)
        turn = await self._turn(definition, wish)
        name = turn.name
        if wish.key is not None and await self._runtime.journal.last(name):
            return await self._same(name, given, wish.key)
        report = await self._report(runnable, given, wish, turn.history)
        report = await self._with_models(report)
        place = await self._places.before(definition, given, name)
        if place is not None:
            options: JsonObject = {**report.options, PLACE_OPTION: place.said}
            report = replace(report, options=options, queued=place.policy != "skip")
        plan = await self._library.pinned(report.definition, report.options)
        try:
            async with self._runtime.alone(name):  # a concurrent start of the same id must find this one durable
                driver = await self._runtime.start(name, plan, report)
        except JournalMoved:
            if wish.session is not None and id_of(definition, wish) is None:
                raise busy(wish.session, name) from None  # another turn of the session began at the same moment
            if wish.key is None:
                raise
            return await self._same(name, given, wish.key)  # another process was faster
        if place is not None and report.queued:
            await self._places.enter(place.group, driver, replace=place.policy == "replace")
        return Execution(self._runtime, driver)

    async def _turn(self, definition: WorkflowDefinition, wish: StartRequest) -> SessionTurn:
        """Return the execution's id and the session's earlier messages. Raises `SessionBusy`, `SessionClosed`."""
        named = id_of(definition, wish)
        if wish.session is not None:
            check_session(wish.session)
        if wish.session is None or (named is not None and await self._runtime.journal.last(named)):
            return SessionTurn(named or new_id(), ())
        if not is_conversational(definition):
            await finish_last_turn(self._runtime, wish.session)
            said = await self._runtime.store.sessions.load(wish.session)
            return SessionTurn(named or new_id(), said.messages)
        prefix = TRIAL if PARTIAL_RUN_OPTION in wish.options else "exec-"
        turn = await next_turn(self._runtime, wish.session, prefix=prefix)
        return turn if named is None else SessionTurn(named, turn.history)

    async def _report(
        self, runnable: RunnableDefinition, given: JsonObject, wish: StartRequest, history: tuple[Json, ...]
    ) -> Start:
        definition = runnable.definition
        options = dict(wish.options)
        if is_conversational(definition):
            options["history"] = len(history)
        digest = await self._library.keep(runnable)
        plan = await self._library.pinned(digest, options)
        return Start(
            input=given,
            config=dict(wish.config),
            session=wish.session,
            messages=conversation_for(definition, given, history) if plan.messages else [],
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

    async def _same(self, name: ExecutionId, given: JsonObject, key: str) -> Execution:
        """Return the execution that was started under a key. Raises `KeyReused` if its input was different."""
        driver = await self._open(name)
        if driver.state.setup.input != given:
            raise KeyReused(
                f"{name!r} was started under the key {key!r} with another input", hint="Use a new key for a new input."
            )
        return Execution(self._runtime, driver)
