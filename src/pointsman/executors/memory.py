"""Memory nodes: read and write values that outlive a step."""

from __future__ import annotations

import re
from typing import Final, Protocol

from msgspec import Struct

from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.engine.kinds import WorkSpec
from pointsman.engine.reports import WorkDone, WorkFailed
from pointsman.executors.failures import work_failed
from pointsman.models.transcript import as_text, text_of
from pointsman.ports import Memory, Run
from pointsman.values import Json

SEARCH_LIMIT: Final = 10

_CHANGES: Final = ("set", "append", "delete")


class AppendingMemory(Memory, Protocol):
    """Memory whose lists grow at once: branches that append to one key lose nothing."""

    async def append(self, scope: str, namespace: str, key: str, value: Json) -> None:
        """Add to the list under the key; make it where there is none."""
        ...


class Place(Struct, frozen=True):
    """Whose values are meant. Execution and session own their namespace; a named one only divides its keys."""

    scope: str
    namespace: str
    prefix: str = ""


class MemoryExecutor:
    """Input: {"scope", "operation", "key", "value"?, "namespace"?, "query"?, "limit"?, "section"?, "session"?}.

    get: the value or null · set: the value · append: the list · delete: whether it was there · search: [{key, value}].
    A change is an effect: repeated after a crash it is answered from the record. (A crash between an append and its
    record appends twice.)
    """

    def __init__(self, memory: AppendingMemory) -> None:
        self._memory = memory

    async def execute(self, command: Execute, spec: WorkSpec, run: Run) -> WorkDone | WorkFailed:
        operation, key = text_of(command.input.get("operation")), as_text(command.input.get("key") or "")
        place = _place(command, spec, run)
        if not key and operation != "search":
            message = f"the memory operation {operation!r} of {spec.node!r} has no key"
            return work_failed(command, Failure(code="memory-key-missing", message=message))
        recorded = run.effects.recorded(1, kind="tool")
        if isinstance(recorded, dict):
            result = recorded.get("result")
        elif operation in _CHANGES:
            result = await self._change(place, operation, place.prefix + key, command.input.get("value"))
            await run.effects.record(1, "tool", {"result": result})
        elif operation in ("get", "search"):
            result = await self._read(command, place, operation, key)
        else:
            message = f"there is no memory operation {operation!r}"
            return work_failed(command, Failure(code="config-wrong", message=message))
        return WorkDone(step=command.step, attempt=command.attempt, result=result)

    async def _change(self, place: Place, operation: str, key: str, value: Json) -> Json:
        memory, scope, namespace = self._memory, place.scope, place.namespace
        match operation:
            case "set":
                await memory.put(scope, namespace, key, value)
                return value
            case "append":
                await memory.append(scope, namespace, key, value)
                return await memory.get(scope, namespace, key)
            case _:
                was_there = await memory.get(scope, namespace, key) is not None
                await memory.put(scope, namespace, key, None)
                return was_there

    async def _read(self, command: Execute, place: Place, operation: str, key: str) -> Json:
        if operation == "get":
            value = await self._memory.get(place.scope, place.namespace, place.prefix + key)
            section = command.input.get("section")
            return value if not isinstance(section, str) else section_of(text_of(value), section)
        limit = command.input.get("limit")
        text = text_of(command.input.get("query")) or key
        most = limit if isinstance(limit, int) else SEARCH_LIMIT
        found = await self._memory.search(place.scope, place.namespace, text, limit=most)
        return [
            {"key": name.removeprefix(place.prefix), "value": value}
            for name, value in found
            if name.startswith(place.prefix)
        ]


def section_of(text: str, title: str) -> str | None:
    """What stands under the heading `## title`, up to the next heading of its rank; None where it is missing."""
    found = re.search(rf"^##[ \t]+{re.escape(title)}[ \t]*$\n?(.*?)(?=^##?[ \t]|\Z)", text, re.MULTILINE | re.DOTALL)
    return None if found is None else found[1].strip()


def _place(command: Execute, spec: WorkSpec, run: Run) -> Place:
    scope, named = text_of(command.input.get("scope")), text_of(command.input.get("namespace"))
    if scope == "long_term":
        return Place(scope, named or text_of(spec.settings.get("workflow")))
    # An execution outside any session is a session of its own: nobody else may read what it keeps.
    session = text_of(command.input.get("session")) if scope == "session" else ""
    return Place(scope, session or run.execution, f"{named}/" if named else "")
