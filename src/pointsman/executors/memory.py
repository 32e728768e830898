"""Memory nodes: read and write values that outlive a step."""

from __future__ import annotations

from typing import Final

from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.engine.plan import WorkSpec
from pointsman.engine.reports import WorkDone, WorkFailed
from pointsman.executors.failures import work_failed
from pointsman.models.transcript import as_text, text_of
from pointsman.ports import Memory, Run
from pointsman.values import Json

SEARCH_LIMIT: Final = 10


class MemoryExecutor:
    """Input: {"scope", "operation", "key", "value", "namespace", "query"?, "limit"?}.

    get: the value or null · set: the value · append: the list · delete: whether it was there · search: [{key, value}].
    The namespace of the execution scope is the execution, unless one is given. A change is an effect: repeated after
    a crash it is answered from the record. (A crash between the change and its record appends twice.)
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def execute(self, command: Execute, spec: WorkSpec, run: Run) -> WorkDone | WorkFailed:
        scope, operation = text_of(command.input.get("scope")), text_of(command.input.get("operation"))
        namespace = text_of(command.input.get("namespace"))
        if scope == "execution" and not namespace:
            namespace = run.execution
        recorded = run.effects.recorded(1)
        if isinstance(recorded, dict):
            result = recorded.get("result")
        else:
            try:
                result = await self._perform(command, scope, operation, namespace)
            except _Unusable as why:
                return work_failed(command, Failure(code="config-wrong", message=str(why)))
            if operation in ("set", "append", "delete"):
                await run.effects.record(1, "tool", {"result": result})
        return WorkDone(step=command.step, attempt=command.attempt, result=result)

    async def _perform(self, command: Execute, scope: str, operation: str, namespace: str) -> Json:
        memory, value = self._memory, command.input.get("value")
        if operation == "search":
            return await self._search(command, scope, namespace)
        key = as_text(command.input.get("key")) if command.input.get("key") is not None else ""
        if not key:
            raise _Unusable(f"the memory operation {operation!r} has no key")
        match operation:
            case "get":
                return await memory.get(scope, namespace, key)
            case "set":
                await memory.put(scope, namespace, key, value)
                return value
            case "append":
                before = await memory.get(scope, namespace, key)
                after = [*(before if isinstance(before, list) else [] if before is None else [before]), value]
                await memory.put(scope, namespace, key, after)
                return after
            case "delete":
                was_there = await memory.get(scope, namespace, key) is not None
                await memory.put(scope, namespace, key, None)
                return was_there
            case _:
                raise _Unusable(f"there is no memory operation {operation!r}")

    async def _search(self, command: Execute, scope: str, namespace: str) -> Json:
        limit = command.input.get("limit")
        text = text_of(command.input.get("query")) or text_of(command.input.get("key"))
        found = await self._memory.search(
            scope, namespace, text, limit=limit if isinstance(limit, int) else SEARCH_LIMIT
        )
        return [{"key": key, "value": value} for key, value in found]


class _Unusable(Exception):
    """The input names no operation that can be done."""
