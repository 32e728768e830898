"""Starts by triggers: which declared trigger, for which owner, and under which execution id.

A schedule that was added belongs to the person who added it. A trigger that a document declares belongs to the author
of the latest revision. The owner's rights are checked each time the trigger is about to start something. The execution
id derives from the cause, so the first process starts the execution and others find it.
"""

from __future__ import annotations

import asyncio
from base64 import b32encode
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import ClassVar, Final, NamedTuple, cast
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct

from pointsman.auth.callers import Caller
from pointsman.context import AppContext
from pointsman.errors import CallerError
from pointsman.executions.authority import may_execute
from pointsman.executions.start import start
from pointsman.expressions.compiler import compile_expression
from pointsman.expressions.environment import Environment, Names
from pointsman.store.errors import JournalMoved
from pointsman.triggers.signatures import Scheme
from pointsman.values import ExecutionId, Json, JsonObject
from pointsman.workflows.authors import Party, all_of, authors_of
from pointsman.workflows.library import LIBRARY

WEBHOOK: Final = "webhook"
"""Kind of entry; its key is the path."""
EVENT: Final = "event-trigger"
"""Kind of entry; its key names workflow and trigger."""
NAMES: Final = Names(frozenset({"event", "headers"}))
"""Names that formulas of a trigger can use."""
FIELD: Final = "data"
"""The input field for event data that is not an object."""


class Declared(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A trigger in effect. It contains no secret value: only a reference, or a note that the document has one."""

    workflow: str
    trigger: str
    event: str = ""
    """The event it waits for; for a webhook: the event it publishes instead of starting the workflow."""
    match: str = ""
    inputs: dict[str, str] = {}
    initial: Json = None
    secret: str = ""
    """`secret.NAME`; or `document`: in the document of the workflow; or empty."""
    open: bool = False
    """For a trigger without a secret: whether unsigned calls are accepted (`auth: none`) instead of refused."""
    scheme: Scheme = "standard"
    """The signature scheme of calls."""

    @property
    def id(self) -> str:
        return f"{self.workflow}/{self.trigger}"

    def accepts(self, data: Json, headers: Mapping[str, str]) -> bool:
        """Return whether `match` holds. Raises `ExpressionFailed`."""
        return not self.match or compile_expression(self.match, names=NAMES).holds(_environment(data, headers))

    def input_from(self, data: Json, headers: Mapping[str, str]) -> JsonObject:
        """Return the input of the execution to start. Values in the document override values from outside."""
        if self.inputs:
            environment = _environment(data, headers)
            found = {
                name: compile_expression(one, names=NAMES).evaluate(environment) for name, one in self.inputs.items()
            }
        else:
            found = dict(data) if isinstance(data, dict) else {} if data is None else {FIELD: data}
        return {**found, **(self.initial if isinstance(self.initial, dict) else {})}


def _environment(data: Json, headers: Mapping[str, str]) -> Environment:
    return Environment({}, names={"event": data, "headers": cast(JsonObject, dict(headers))})


def read_declared(value: Json) -> Declared:
    return msgspec.convert(value, Declared)


class TriggerStopped(CallerError):
    """The trigger starts nothing, because its owner may not execute its workflow (any more)."""

    code: ClassVar[str] = "trigger-stopped"


async def owner_for(app: AppContext, owners: Iterable[Party], workflow: str) -> Caller:
    """Return the owner of a trigger as the caller that it starts a workflow for. Raises `TriggerStopped`."""
    people = tuple(owners)
    owner = await all_of(app, people)
    if not await may_execute(app, owner, workflow):
        names = ", ".join(sorted({repr(person.name) for person in people}))
        raise TriggerStopped(
            f"the owner {names} may no longer execute the workflow {workflow!r}",
            hint="Restore the owner's role and the sharing of the workflow, or change the owner: save the "
            "workflow, or add the schedule, as a person with these rights.",
        )
    return owner


async def author_for(app: AppContext, workflow: str) -> Caller:
    """Return the owner of a trigger that a saved document declares, as `owner_for` does. Raises
    `UnknownWorkflow` too."""
    return await owner_for(app, await authors_of(app, await app[LIBRARY].current(workflow)), workflow)


async def why_stopped(app: AppContext, workflow: str) -> str | None:
    """Return why the triggers that a document declares start nothing; None if they work."""
    try:
        await author_for(app, workflow)
    except CallerError as why:
        return str(why)
    return None


class TriggeredStart(NamedTuple):
    """Result of a start; `new` is false if an execution of that cause existed already."""

    execution: ExecutionId
    new: bool


def id_for(*cause: str) -> ExecutionId:
    """Return the id of the execution that this cause starts; equal causes have equal ids."""
    # Lengths distinguish ("a", "bc") from ("ab", "c").
    content = "|".join(f"{len(part)}:{part}" for part in cause)
    return ExecutionId(
        "exec-" + b32encode(blake2b(content.encode(), digest_size=16).digest()).decode().rstrip("=").lower()
    )


class CausedStarts:
    """Starter of executions by their causes, each once, whichever process tries."""

    def __init__(self, app: AppContext) -> None:
        self._app = app
        self._locks: WeakValueDictionary[ExecutionId, asyncio.Lock] = WeakValueDictionary()

    async def start(
        self,
        workflow: str,
        input: Json,
        *cause: str,
        caller: Caller,
        config: Mapping[str, Json] | None = None,
    ) -> TriggeredStart:
        """Start a saved workflow for a caller because of `cause`: its kind, its id, and further distinguishing parts.

        Raises the errors of `Pointsman.start`.
        """
        name = id_for(*cause)
        lock = self._locks.setdefault(name, asyncio.Lock())
        async with lock:
            if await self.began(name):
                return TriggeredStart(name, new=False)
            try:
                trigger: JsonObject = {"kind": cause[0], "id": cause[1]}
                await start(self._app, workflow, input, config=config, execution=name, trigger=trigger, caller=caller)
            except JournalMoved:
                return TriggeredStart(name, new=False)
            return TriggeredStart(name, new=True)

    async def began(self, execution: ExecutionId) -> bool:
        return await self._app.store.journal.last(execution) > 0
