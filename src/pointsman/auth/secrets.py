"""`Secrets` port of the app: secret values, the rules of where documents may send them, and their redaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from pointsman.auth.redaction import known_redaction
from pointsman.engine.reports import ToolCall
from pointsman.ports import ExecutionPort, KnownSecrets, SecretRule, Tools, ToolSpec
from pointsman.values import Json

if TYPE_CHECKING:
    from pointsman.redaction import Redaction
    from pointsman.settings import Settings
    from pointsman.store.api import Workflows


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


class SecretAccess:
    """Secrets of the environment, the settings and the store, subject to their rules."""

    def __init__(self, settings: Settings, workflows: Workflows) -> None:
        """`workflows` are the saved workflows, whose `allowedGroups` the rules check."""
        self._settings = settings
        self._workflows = workflows
        self._redaction: Callable[[], Redaction] = known_redaction(settings)

    async def refresh(self) -> None:
        await self._settings.refresh()

    def secret(self, name: str) -> str | None:
        return self._settings.secret(name)

    def rule(self, name: str) -> SecretRule:
        return self._settings.rule(name)

    @property
    def redaction(self) -> Redaction:
        return self._redaction()

    async def refusal(self, name: str, revision: str) -> str:
        """Return why a document may not use a secret; empty if it may. Only saved workflows are identified by their
        ids: anyone can write any id into a document."""
        rule = self.rule(name)
        if rule.workflows and not {revision, revision.partition("@")[0]} & {one for one in rule.workflows if one}:
            return f"the secret {name!r} may be used by the saved workflows {_named(rule.workflows)} only"
        if rule.groups:
            found = await self._workflows.find(revision) if revision else None
            groups = None if found is None else found.draft.native.get("allowedGroups")
            if not isinstance(groups, list) or not groups or not set(map(str, groups)) <= set(rule.groups):
                return (
                    f"the secret {name!r} may be used by saved workflows only whose `allowedGroups` are among"
                    f" {_named(rule.groups)}"
                )
        return ""


def _named(names: Collection[str]) -> str:
    return ", ".join(map(repr, sorted(names)))
