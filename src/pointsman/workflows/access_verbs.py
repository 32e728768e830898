"""Verbs of secrets and of sharing, which concern saved workflows and agents. See `auth.verbs` for how a verb is
written. A secret's uses are the saved workflows, agents and settings that name it (`secret.NAME`)."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from typing import Final, Literal, TypeAlias, Unpack, cast

from msgspec.structs import replace
from typing_extensions import TypedDict

from pointsman.auth.credentials import Credential, Parts
from pointsman.auth.policy import must_see_workflow
from pointsman.auth.sharing import Audience, Shared, Sharing, share, sharing_etag, sharing_of
from pointsman.auth.vault import VAULT, SecretInvalid, SecretRuleView, SecretView, Vault, rule_view, secret_view
from pointsman.auth.verbs import Verbs, verb
from pointsman.context import AppContext
from pointsman.etags import NOTHING, etag_of, match_etag, revision_moved
from pointsman.paging import has_words, page_by
from pointsman.ports import SecretRule
from pointsman.settings import PREFIX, Settings
from pointsman.values import Json
from pointsman.workflows.library import LIBRARY
from pointsman.workflows.saving import SavedAgents, agent_for

_OWN: Final = f"{PREFIX}SECRET_"
SecretSource: TypeAlias = Literal["settings", "environment"]


class SecretUses(TypedDict):
    """The saved workflows, agents and settings that name a secret."""

    workflows: list[str]
    agents: list[str]
    settings: list[str]


class OtherSecretView(SecretRuleView):
    """A secret that is not in the store. It takes precedence over one of the same name in the store."""

    name: str
    source: SecretSource


class SecretPage(TypedDict):
    """Secrets by name."""

    secrets: list[SecretView]
    elsewhere: list[OtherSecretView]
    """All secrets outside the store, on each page."""
    next: str | None
    """The `after` of the next page; null: this was the last."""


async def uses_of(app: AppContext, name: str) -> SecretUses:
    """Return the uses of a secret. Reads every saved agent and the newest and the published revision of every saved
    workflow."""
    handle = re.compile(rf"(?<![A-Za-z0-9_])secret\.{re.escape(name)}(?![A-Za-z0-9_])")
    workflows: list[str] = []
    for entry in await app.store.workflows.list():
        for reference in {f"{entry.id}@{entry.revision}", f"{entry.id}@{await app[LIBRARY].published(entry.id)}"}:
            saved = await app.store.workflows.find(reference)
            if saved is not None and handle.search(saved.draft.text):
                workflows.append(entry.id)
                break
    agents = [
        saved.name
        for saved in await SavedAgents(app).list()
        if any(handle.search(text) for text in _texts(saved.agent))
    ]
    settings = [
        key
        for key, value in app.settings.current.model_dump(mode="json").items()
        if key not in ("secrets", "vault") and any(handle.search(text) for text in _texts(value))
    ]
    return {"workflows": workflows, "agents": agents, "settings": settings}


def secrets_elsewhere(settings: Settings) -> dict[str, SecretSource]:
    """Return name -> origin of the secrets outside the store. They take precedence over those of the store."""
    sources: dict[str, SecretSource] = {
        name: "settings" for name, secret in settings.own_secrets.items() if secret.value
    }
    for name, value in os.environ.items():
        if name.startswith(_OWN) and value:
            sources[name.removeprefix(_OWN)] = "environment"
    return sources


def _texts(value: Json) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [text for member in value.values() for text in _texts(member)]
        case list():
            return [text for element in value for text in _texts(element)]
        case _:
            return []


PARTS: Final = ("hosts", "tools", "workflows", "groups")
"""Parts of a rule."""
Names: TypeAlias = Collection[str]


class RuleParts(TypedDict, total=False):
    """Parts of the rule of where documents may send a secret."""

    hosts: Names
    tools: Names
    workflows: Names
    groups: Names


class SecretVerbs(Verbs):
    """Actions of a caller on the secrets of the store. Values can be written, never read."""

    @property
    def _vault(self) -> Vault:
        return self.app[VAULT]

    @verb("admin", "see or change secrets", audit=False)
    async def list(
        self, *, search: str = "", after: str | None = None, limit: int | None = None, backwards: bool = False
    ) -> SecretPage:
        """Return a page of the secrets, by name, without their values: those with all words of `search` in their name
        or that of the person who changed them."""
        await self._vault.refresh()
        marked = await self._vault.marked()
        views = (secret_view(one, mark) for one, mark in marked if has_words(search, one.name, one.by))
        size = len(marked) if limit is None else limit
        page = await page_by("name", views, after=after, limit=size, backwards=backwards)
        settings = self.app.settings
        elsewhere: list[OtherSecretView] = [
            {"name": name, "source": source, **rule_view(settings.rule(name))}
            for name, source in sorted(secrets_elsewhere(settings).items())
        ]
        return {"secrets": page.entries, "elsewhere": elsewhere, "next": page.next}

    @verb("admin", "see or change secrets", audit=False)
    async def uses(self, name: str) -> SecretUses:
        """Return the saved workflows, agents and settings that name a secret, whether or not it exists."""
        return await uses_of(self.app, name)

    @verb("admin", "see or change secrets", audit=False)
    async def rule(self, name: str) -> SecretRuleView:
        """Return the rule of where documents may send a secret; empty if there is no such secret."""
        return rule_view(await self._vault.kept_rule(name))

    @verb("admin", "see or change secrets", target=("name", "by"))
    async def set(
        self,
        name: str,
        value: str | None = None,
        *,
        by: str | None = None,
        match: str | None = None,
        **parts: Unpack[RuleParts],
    ) -> str:
        """Store a value, and `parts` of the rule of where documents may send it. What is not given stays as it is.
        Return the ETag.

        `match`: see `etags.match_etag`. `by`: see `Verbs.name_for`. Raises the errors of `Vault.set`.
        """
        after = await self._match_version(name, match)
        changes = {part: tuple(names) for part, names in cast("dict[str, Names]", parts).items()}
        rule = replace(await self._vault.kept_rule(name), **changes) if changes else None
        await self._vault.set(name, value, rule=rule, by=self.name_for(by), after=after)
        return etag_of(await self._vault.mark(name))

    @verb("admin", "see or change secrets", target=("name",))
    async def set_credential(
        self,
        name: str,
        credential: Credential,
        parts: Parts,
        *,
        match: str | None = None,
        **rule: Unpack[RuleParts],
    ) -> str:
        """Store a credential and where documents may send it. Return the ETag. `parts`: its secret parts; those that
        are empty stay. See `Vault.set_credential`."""
        after = await self._match_version(name, match)
        changes = {part: tuple(names) for part, names in cast("dict[str, Names]", rule).items()}
        fresh = replace(await self._vault.kept_rule(name), **changes)
        await self._vault.set_credential(name, credential, parts, rule=fresh, by=self.caller.name, after=after)
        return etag_of(await self._vault.mark(name))

    @verb("admin", "see or change secrets", target=("name",))
    async def begin_authorization(self, name: str, redirect: str) -> str:
        """Return the address of the authorization server where this admin connects a credential. See
        `Vault.begin_visit`."""
        return await self._vault.begin_visit(name, who=self.caller.name, redirect=redirect)

    @verb("admin", "see or change secrets", target=("name",))
    async def complete_authorization(self, name: str, code: str, state: str) -> None:
        """Store the tokens for the code with which the browser came back. See `Vault.complete_visit`."""
        await self._vault.complete_visit(name, who=self.caller.name, code=code, state=state)

    @verb("admin", "see or change secrets", target=("name", *PARTS, "by"))
    async def allow(
        self,
        name: str,
        *,
        hosts: Names = (),
        tools: Names = (),
        workflows: Names = (),
        groups: Names = (),
        by: str | None = None,
    ) -> SecretRuleView:
        """Add to the rule of where documents may send a secret, and return it. Raises the errors of `Vault.set`."""
        added = {"hosts": hosts, "tools": tools, "workflows": workflows, "groups": groups}
        current = await self._vault.kept_rule(name)
        rule = SecretRule(
            **{part: tuple(dict.fromkeys((*getattr(current, part), *more))) for part, more in added.items()}
        )
        await self._vault.set(name, rule=rule, by=self.name_for(by))
        return rule_view(rule)

    @verb("admin", "see or change secrets", target=("name", *PARTS, "by"))
    async def disallow(
        self,
        name: str,
        *,
        hosts: Names = (),
        tools: Names = (),
        workflows: Names = (),
        groups: Names = (),
        by: str | None = None,
    ) -> SecretRuleView:
        """Remove from the rule of where documents may send a secret, and return it.

        Raises the errors of `Vault.set`, and `SecretInvalid` for what the rule does not contain: a misspelt host would
        stay allowed.
        """
        removed = {"hosts": hosts, "tools": tools, "workflows": workflows, "groups": groups}
        current = await self._vault.kept_rule(name)
        for part, names in removed.items():
            if unknown := [name for name in names if name not in getattr(current, part)]:
                raise SecretInvalid(
                    f"the {part} of the secret {name!r} do not contain: {', '.join(unknown)}",
                    hint="`pointsman secrets list` shows them.",
                )
        rule = SecretRule(
            **{
                part: tuple(one for one in getattr(current, part) if one not in names)
                for part, names in removed.items()
            }
        )
        await self._vault.set(name, rule=rule, by=self.name_for(by))
        return rule_view(rule)

    @verb("admin", "see or change secrets", target=("name",))
    async def delete(self, name: str, *, match: str | None = None) -> None:
        """Delete a secret. `match`: see `etags.held`. Raises `NoSuchSecret`, `RevisionMoved`."""
        is_there = await self._vault.mark(name) != NOTHING
        await self._vault.delete(name, after=await self._match_version(name, match) if is_there else None)

    @verb("admin", "see or change secrets")
    async def rotate(self) -> int:
        """Encrypt all secrets again with the newest key and return their number, see `Vault.rotate`."""
        return await self._vault.rotate()

    async def _match_version(self, name: str, match: str | None) -> str | None:
        mark = await self._vault.mark(name)
        return match_etag(
            match, None if mark == NOTHING else etag_of(mark), mark, revision_moved(f"the secret {name!r}")
        )


class SharingVerbs(Verbs):
    """Actions of a caller on the owner and the audience of workflows and agents."""

    @verb("viewer", "see sharing", audit=False)
    async def of_workflow(self, workflow: str) -> Sharing:
        """Return the sharing of a workflow. Raises `UnknownWorkflow`."""
        await must_see_workflow(self.app, self.caller, workflow)
        return await sharing_of(self.app, workflow)

    @verb("viewer", "see sharing", audit=False)
    async def of_agent(self, agent: str) -> Sharing:
        """Return the sharing of an agent. Raises `NoSuchAgent`."""
        await agent_for(self.app, self.caller, agent)
        return await sharing_of(self.app, agent, "agent")

    @verb("editor", "write workflows", target=("workflow", "audience", "groups", "owner"))
    async def share_workflow(
        self,
        workflow: str,
        audience: Audience | None = None,
        *,
        groups: tuple[str, ...] = (),
        owner: str | None = None,
        match: str | None = None,
    ) -> Sharing:
        """Change the audience (None: it stays, with its groups) and the owner, as the owner or an admin. `match`: see
        `etags.held`.

        Raises `UnknownWorkflow`, `NotAllowed`, `SharingInvalid`, `RevisionMoved`.
        """
        await must_see_workflow(self.app, self.caller, workflow)
        return await self._share(workflow, "workflow", audience, groups, owner, match)

    @verb("editor", "write workflows", target=("agent", "audience", "groups", "owner"))
    async def share_agent(
        self,
        agent: str,
        audience: Audience | None = None,
        *,
        groups: tuple[str, ...] = (),
        owner: str | None = None,
        match: str | None = None,
    ) -> Sharing:
        """Change the audience and the owner of an agent, as `share_workflow` does for a workflow. Raises `NoSuchAgent`
        instead of `UnknownWorkflow`."""
        await agent_for(self.app, self.caller, agent)
        return await self._share(agent, "agent", audience, groups, owner, match)

    async def _share(
        self,
        name: str,
        kind: Shared,
        audience: Audience | None,
        groups: tuple[str, ...],
        owner: str | None,
        match: str | None,
    ) -> Sharing:
        current = await sharing_of(self.app, name, kind)
        mark = sharing_etag(current)
        return await share(
            self.app,
            self.caller,
            name,
            audience or current.audience,
            kind=kind,
            groups=current.groups if audience is None else groups,
            owner=owner,
            after=match_etag(match, etag_of(mark), mark, revision_moved(f"the sharing of {name!r}")),
        )
