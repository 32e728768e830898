"""Verbs of keys, people, logins and the audit log. See `auth.verbs` for how a verb is written."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Final

from pointsman.auth.audit import AUDIT, AuditEntryView, AuditState
from pointsman.auth.callers import Caller, Role
from pointsman.auth.keys import KEYS, KeyPage, key_view
from pointsman.auth.people import LOGINS, PEOPLE, LoginPage, LoginView, PeoplePage, people
from pointsman.auth.verbs import Verbs, verb
from pointsman.paging import has_words, page_by
from pointsman.values import Instant

DAY_S: Final = 86_400.0


class AccessVerbs(Verbs):
    """Actions of a caller on keys, people, logins and the audit log."""

    @verb("admin", "create or revoke keys", audit=False)
    async def keys(
        self,
        *,
        search: str = "",
        role: Role | None = None,
        after: str | None = None,
        limit: int | None = None,
        backwards: bool = False,
    ) -> KeyPage:
        """Return a page of the keys, by name: those with this role, and all words of `search` in name or groups."""
        views = [key_view(one) for one in await self.app[KEYS].found(search, role=role)]
        size = len(views) if limit is None else limit
        page = await page_by("name", views, after=after, limit=size, backwards=backwards)
        return {"keys": page.entries, "next": page.next}

    @verb("admin", "create or revoke keys", target=("name", "role"), made=lambda _: {})
    async def add_key(self, name: str, role: Role, *, groups: Iterable[str] = (), days: float | None = None) -> str:
        """Create a key that expires after `days`, or never. Return its token, which cannot be read again later.

        Raises `KeyExists`, `NameInvalid`.
        """
        expires = None if days is None else Instant(self.app.clock.now() + days * DAY_S)
        return await self.app[KEYS].make(name, role, groups=tuple(groups), expires=expires)

    @verb("admin", "create or revoke keys", target=("name",))
    async def revoke_key(self, name: str) -> list[str]:
        """Revoke a key; its logins end too. Return the names of the admin keys that are left.

        Only at the command line can the last admin key be revoked: a user there can create another. Raises `NoSuchKey`,
        `LastAdmin`.
        """
        keys = self.app[KEYS]
        await keys.revoke(name, but_last_admin=self.caller.entrance != "shell")
        return [key.name for key in await keys.admins()]

    @verb("admin", "see users", audit=False)
    async def people(
        self,
        *,
        search: str = "",
        role: Role | None = None,
        after: str | None = None,
        limit: int = 50,
        backwards: bool = False,
    ) -> PeoplePage:
        """Return a page of the people, by name: those with this role, and all words of `search` in name or groups."""
        app = self.app
        everyone = people(await app[KEYS].all(), await app[LOGINS].all(), await app[PEOPLE].all(), app.clock.now())
        persons = (
            one for one in everyone if role in (None, one["role"]) and has_words(search, one["name"], *one["groups"])
        )
        page = await page_by("name", persons, after=after, limit=limit, backwards=backwards)
        return {"people": page.entries, "next": page.next}

    @verb("viewer", "log in")
    async def log_in(self, *, key: str = "", agent: str = "", instead_of: str = "") -> tuple[str, Caller]:
        """Start a login of the caller in a browser. Return the value of the cookie, and the caller whom it stands for.
        `key`, `agent`, `instead_of`: see `Logins.begin`."""
        if self.caller.entrance == "token":
            await self.app[PEOPLE].note(self.caller)
        return await self.app[LOGINS].begin(self.caller, key=key, agent=agent, instead_of=instead_of)

    @verb("viewer", "log out")
    async def log_out(self, cookie: str) -> None:
        """End the login of a cookie. Idempotent."""
        await self.app[LOGINS].end_this(cookie)

    @verb("viewer", "see logins", audit=False)
    async def logins(
        self,
        *,
        everyone: bool = False,
        search: str = "",
        after: str | None = None,
        limit: int = 50,
        backwards: bool = True,
    ) -> LoginPage:
        """Return a page of the caller's logins, or for admins everyone's, by time: those with all words of `search` in
        the name or in the `User-Agent` of the browser."""
        if everyone:
            self.caller.must_have("admin", "see the logins of others")
        logins = await self.app[LOGINS].all(None if everyone else self.caller.name)
        matching = (login for login in logins if has_words(search, login["name"], login["agent"]))
        page = await page_by(_place_of, matching, after=after, limit=limit, backwards=backwards)
        return {"logins": page.entries, "next": page.next}

    @verb("viewer", "end logins", target=("id",))
    async def end_login(self, id: str) -> None:
        """End one login of the caller; admins end those of everyone. Raises `NoSuchLogin`."""
        await self.app[LOGINS].end(id, name=None if self.caller.role == "admin" else self.caller.name)

    @verb("viewer", "end logins", target=("name",))
    async def end_logins(self, name: str | None = None) -> int:
        """End all logins of the caller, or for admins those of another person. Return their number."""
        if name not in (None, self.caller.name):
            self.caller.must_have("admin", "end the logins of others")
        return await self.app[LOGINS].end_all(self.caller.name if name is None else name)

    @verb("admin", "read the audit log", audit=False)
    async def audit_entries(
        self,
        *,
        who: str | None = None,
        what: str | None = None,
        since: float | None = None,
        until: float | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> tuple[list[AuditEntryView], str | None]:
        """Return a page of the audit log, see `Audit.page`."""
        return await self.app[AUDIT].page(who=who, what=what, since=since, until=until, before=before, limit=limit)

    @verb("admin", "read the audit log", audit=False)
    async def audit_state(self) -> AuditState:
        """Check the hash chain of the audit log. Reads every row."""
        return await self.app[AUDIT].state()

    @verb("admin", "read the audit log", exports=True)
    async def export_audit(self) -> AsyncIterator[bytes]:
        """Return the lines of the whole audit log, oldest first, see `Audit.lines`."""
        return self.app[AUDIT].lines()


def _place_of(login: LoginView) -> str:
    return f"{login['beganAt']:017.6f} {login['id']}"
