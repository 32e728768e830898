"""Memory nodes: read and write values that outlive a step.

    execution │ session │ user │ workflow │ shared        the owner of values: no owner reaches those of another
        └─ namespace ─ key                                `notes/a` is key `a` of namespace `notes`

A key may contain any printable character: one with a slash is stored with an empty namespace (`/a/b`), and slashes in
names of namespaces are escaped, so that no key of one namespace equals one of another.
"""

from __future__ import annotations

import re
from typing import Final, TypeGuard

from msgspec import Struct

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.engine.reports import Usage, WorkDone, WorkFailed
from pointsman.errors import PointsmanError
from pointsman.executors.effect_ledger import fingerprint
from pointsman.executors.failures import WorkRefused, failure_of, work_failed
from pointsman.models.transcript import as_text, text_of
from pointsman.ports import (
    ChangeAuthor,
    ChangeId,
    ChangingMemory,
    Clock,
    ExecutionPort,
    Meaning,
    MemoryChange,
    MemoryMatches,
    MemoryOperation,
    Quota,
)
from pointsman.redaction import head
from pointsman.values import Json

SEARCH_LIMIT: Final = 10


class MemoryRequest(Struct, frozen=True):
    """An operation on a key of a memory."""

    owner: Owner
    namespace: str
    operation: str
    key: str


class MemoryExecutor:
    """Input: {"scope", "operation", "key", "value"?, "namespace"?, "query"?, "limit"?, "section"?, "ttl"?, "session"?,
    "user"?}.

    get: the value or null · set: the value · append: the list · delete: whether it existed · search: [{key, value}].

    A change is made once per step, however often the step is retried: the change and its result are one transaction.
    """

    def __init__(self, memory: ChangingMemory, clock: Clock, quota: Quota, *, meaning: Meaning | None = None) -> None:
        """Without `meaning`, a search finds by words."""
        self._memory = memory
        self._meaning = meaning
        self._clock = clock
        self._quota = quota

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> WorkDone | WorkFailed:
        try:
            request = _memory_request(command, spec, run)
            if request.operation != "search":
                check_name("a key", request.key)
            if changes(request.operation):
                result = await self._change(command, spec, run, request)
            elif request.operation == "get":
                result = await self._get(command, run, request)
            elif request.operation == "search":
                return await self._search(command, request, run)
            else:
                message = f"there is no memory operation {request.operation!r}"
                return work_failed(command, Failure(code="config-invalid", message=message))
        except PointsmanError as why:
            return work_failed(command, failure_of(why))
        return WorkDone(step=command.step, attempt=command.attempt, result=result)

    async def _change(self, command: Execute, spec: WorkSpec, run: ExecutionPort, request: MemoryRequest) -> Json:
        operation = request.operation
        assert changes(operation), "asked before"
        now, ttl = self._clock.now(), command.input.get("ttl")
        change = MemoryChange(
            scope=request.owner.scope,
            namespace=request.owner.name,
            key=key_in(request.namespace, request.key),
            operation=operation,
            value=command.input.get("value"),
            at=now,
            expires=now + ttl if isinstance(ttl, int | float) else None,
            quota=self._quota,
            by=_writer(command, spec, run),
        )
        # The id contains no attempt number: a retry must not repeat what may have been done. It contains the change: in
        # another attempt it may be a different one.
        same = fingerprint(change.scope, change.namespace, change.key, operation, change.value)
        with run.waiting_for_store():
            answer = await self._memory.change(change, once=ChangeId(run.execution, f"memory {command.step} {same}"))
        if self._meaning is not None:
            self._meaning.changed(change.scope, change.namespace)
        return answer

    async def _get(self, command: Execute, run: ExecutionPort, request: MemoryRequest) -> Json:
        owner, now = request.owner, self._clock.now()
        with run.waiting_for_store():
            value = await self._memory.get(owner.scope, owner.name, key_in(request.namespace, request.key), at=now)
        section = command.input.get("section")
        return value if not isinstance(section, str) else section_of(text_of(value), section)

    async def _search(self, command: Execute, request: MemoryRequest, run: ExecutionPort) -> WorkDone | WorkFailed:
        owner, now = (request.owner.scope, request.owner.name), self._clock.now()
        limit = command.input.get("limit")
        text = text_of(command.input.get("query")) or request.key
        most = limit if isinstance(limit, int) else SEARCH_LIMIT
        within = prefix_of(request.namespace)
        if self._meaning is not None:
            refusal = run.effects.refusal("model", Usage())
            if refusal is not None:
                return work_failed(command, refusal)
            matches = await self._meaning.search(*owner, text, limit=most, within=within, at=now)
        else:
            with run.waiting_for_store():
                matches = MemoryMatches(await self._memory.search(*owner, text, limit=most, within=within, at=now))
        result: Json = [_found(stored, value, names_it=not request.namespace) for stored, value in matches.values]
        return WorkDone(
            step=command.step, attempt=command.attempt, result=result, warnings=matches.warnings, usage=matches.usage
        )


def _writer(command: Execute, spec: WorkSpec, run: ExecutionPort) -> ChangeAuthor:
    return ChangeAuthor(
        execution=run.execution,
        workflow=text_of(spec.settings.get("workflow")),
        node=spec.node,
        agent=spec.agent,
        tool="" if spec.kind == "memory" else f"memory_{text_of(command.input.get('operation'))}",
    )


def _found(stored: str, value: Json, *, names_it: bool) -> Json:
    namespace, key = names_of(stored)
    return {"key": key, "value": value, **({"namespace": namespace} if namespace and names_it else {})}


def changes(operation: str) -> TypeGuard[MemoryOperation]:
    return operation in ("set", "append", "delete")


def section_of(text: str, title: str) -> str | None:
    """Return the text under the heading `## title`, up to the next heading of its rank; None if it is missing."""
    match = re.search(rf"^##[ \t]+{re.escape(title)}[ \t]*$\n?(.*?)(?=^##?[ \t]|\Z)", text, re.MULTILINE | re.DOTALL)
    return None if match is None else match[1].strip()


def _memory_request(command: Execute, spec: WorkSpec, run: ExecutionPort) -> MemoryRequest:
    fields = command.input
    scope, namespace = text_of(fields.get("scope")), as_text(fields.get("namespace") or "")
    if namespace:
        check_name("a namespace", namespace)
    owner = owner_of(
        scope,
        namespace,
        execution=run.execution,
        session=fields.get("session") if scope == "session" else None,
        user=fields.get("user"),
        workflow=spec.settings.get("workflow"),
    )
    inside = "" if owner.scope == "shared" else namespace
    return MemoryRequest(owner, inside, text_of(fields.get("operation")), as_text(fields.get("key") or ""))


SCOPES: Final = ("execution", "session", "user", "workflow", "shared")
KEY_CHARS_MAX: Final = 500


class Owner(Struct, frozen=True):
    """The owner of a memory: its scope and name."""

    scope: str
    name: str


def key_in(namespace: str, key: str) -> str:
    """Return a key as it is stored."""
    return f"{escaped(namespace)}/{key}" if namespace or "/" in key else key


def prefix_of(namespace: str) -> str:
    """Return the prefix of a namespace's keys; without a namespace, of all the owner's keys."""
    return f"{escaped(namespace)}/" if namespace else ""


def names_of(stored: str) -> tuple[str, str]:
    """Return the namespace and key of a stored key."""
    namespace, slash, key = stored.partition("/")
    return (namespace.replace("%2F", "/").replace("%25", "%"), key) if slash else ("", stored)


def escaped(namespace: str) -> str:
    return namespace.replace("%", "%25").replace("/", "%2F")


def check_name(what: str, name: str) -> None:
    """Raises `WorkRefused` for an invalid key or namespace."""
    if 0 < len(name) <= KEY_CHARS_MAX and all(letter.isprintable() for letter in name):
        return
    raise WorkRefused(
        Failure(
            code="memory-key-invalid",
            message=f"{head(name, 60)!r} is not a valid {what} of memory",
            hint=f"It must have 1 to {KEY_CHARS_MAX} printable characters.",
        )
    )


def owner_of(scope: str, namespace: str, *, execution: str, session: Json, user: Json, workflow: Json) -> Owner:
    """Return the owner of a node's memory. Raises `WorkRefused` if there is none."""
    if scope == "long_term":
        scope = "shared" if namespace else "workflow"
    # An execution outside any session is a session of its own: no other execution may read its memory.
    owners: dict[str, Json] = {
        "execution": execution,
        "session": session or execution,
        "user": user,
        "workflow": workflow,
        "shared": namespace,
    }
    name = owners.get(scope)
    if not isinstance(name, str) or not name:
        raise WorkRefused(_nobody(scope))
    return Owner(scope, name)


def _nobody(scope: str) -> Failure:
    if scope == "user":
        hint = "Say who starts it: `pointsman run --as NAME`, or `start(…, by=NAME)`."
        return Failure(
            code="memory-no-owner", message="the execution has no starter, so there is no memory of a user", hint=hint
        )
    if scope == "shared":
        message, hint = "a shared memory requires a name", "Set `namespace`."
        return Failure(code="memory-no-owner", message=message, hint=hint)
    return Failure(
        code="config-invalid", message=f"there is no memory scope {scope!r}", hint=f"Use {', '.join(SCOPES)}."
    )
