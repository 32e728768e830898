"""Tools that always use the current secrets."""

from __future__ import annotations

from collections.abc import Iterable

from pointsman.engine.reports import ToolCall
from pointsman.ports import ExecutionPort, KnownSecrets, Tools, ToolSpec
from pointsman.values import Json


class FreshTools:
    """`Tools` port that reads changed secrets again before it prepares or calls tools."""

    def __init__(self, tools: Tools, secrets: KnownSecrets) -> None:
        self._tools = tools
        self._secrets = secrets

    def find(self, name: str) -> ToolSpec | None:
        return self._tools.find(name)

    async def prepare(self, names: Iterable[str]) -> None:
        await self._secrets.refresh()
        await self._tools.prepare(names)

    async def call(self, call: ToolCall, *, key: str, run: ExecutionPort | None = None) -> Json:
        await self._secrets.refresh()
        return await self._tools.call(call, key=key, run=run)
