"""The vault: secrets that are kept in the store, sealed, and known to nobody but the calls that need them.

    set ─ sealed with the newest key ─▶ an entry of the store ─ opened with any key ─▶ `secret.NAME` of a call

What is read is known for a second, so a secret that another process changes counts within one. The settings win: what
they or the environment call by the same name is used instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final

import msgspec

from pointsman.auth.keys import NameInvalid
from pointsman.context import Part
from pointsman.errors import CallerError, OperatorError
from pointsman.etags import NOTHING, delete_after, mark_at, mark_of, moved, put_after
from pointsman.ports import Clock, SecretRule
from pointsman.redaction import ANYWHERE_CHARS_MIN as CHARS_MIN
from pointsman.settings.vault import VaultSettings
from pointsman.store.api import ConfigStore
from pointsman.store.errors import EntryMoved
from pointsman.store.records import ConfigEntry
from pointsman.tools.egress.secret_hosts import read_host
from pointsman.values import Instant, JsonObject

if TYPE_CHECKING:
    from pointsman.auth.vault_keys import SealingKeys

KIND: Final = "secret"
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
VALUE_CHARS_MAX: Final = 60_000
KNOWN_FOR_S: Final = 1.0


class NoSuchSecret(CallerError):
    """The store keeps no secret of that name."""

    code: ClassVar[str] = "no-such-secret"


class SecretInvalid(CallerError):
    """What cannot be a secret."""

    code: ClassVar[str] = "secret-invalid"


class KeptSecret(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept of a secret."""

    name: str
    sealed: str
    """Empty: the environment or the settings have its value, and this says where it may go."""
    changed: Instant
    by: str = ""
    rule: SecretRule = SecretRule()
    """Where documents may send it."""


class Vault:
    """The secrets of one store. Usable before it is opened: then it has none."""

    def __init__(self, settings: VaultSettings, clock: Clock, *, ruled: Collection[str] = ()) -> None:
        """`ruled`: secrets whose rule is in the settings, where it wins."""
        self._ruled = frozenset(ruled)
        self._settings = settings
        self._clock = clock
        self._entries: ConfigStore | None = None
        self._read_at = -math.inf
        self._sealed: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._closed: dict[str, OperatorError] = {}
        self._rules: dict[str, SecretRule] = {}
        self._seen: frozenset[str] = frozenset()

    async def open(self, entries: ConfigStore) -> None:
        """Read what the store keeps. What cannot be opened is refused when it is asked for, not before."""
        self._entries = entries
        with suppress(OperatorError):  # The store is away: it is asked again before a secret is used, and says so then.
            await self.refresh()

    def secret(self, name: str) -> str | None:
        """As it was known within the last second or when `refresh` was last called; None: there is none of that name.
        Raises `VaultLocked`, `VaultKeyInvalid`, `SecretUnreadable`."""
        if name in self._closed:
            raise self._closed[name].with_traceback(None)
        return self._values.get(name)

    def rule(self, name: str) -> SecretRule:
        """Where documents may send the secret of that name, as it was known then."""
        return self._rules.get(name, SecretRule())

    @property
    def seen(self) -> frozenset[str]:
        """Every value that was read here, also those that were changed since: what is never told. Another set
        whenever there is more in it."""
        return self._seen

    @property
    def closed(self) -> Mapping[str, OperatorError]:
        """The secrets that were read and cannot be opened, and why."""
        return self._closed

    async def refresh(self) -> None:
        """Read again what others may have changed, once a second. Cheap where nothing has."""
        now = self._clock.now()
        if self._entries is None or self._read_at <= now < self._read_at + KNOWN_FOR_S:
            return
        kept = await self.all()
        sealed = {one.name: one.sealed for one in kept if one.sealed}
        self._rules = {one.name: one.rule for one in kept}
        self._read_at = now
        # What could not be opened is tried again: its key may be there now.
        if sealed != self._sealed or self._closed:
            self._sealed = sealed
            self._open_all()

    async def set(
        self,
        name: str,
        value: str | None = None,
        *,
        rule: SecretRule | None = None,
        by: str = "",
        after: str | None = None,
    ) -> None:
        """Keep a value, and where documents may send it. What is not given stays as it is.

        Makes a key where there is none and nothing is kept yet. `after`: the mark it must have. Raises `NameInvalid`,
        `SecretInvalid`, `VaultLocked`, `VaultKeyInvalid`, `RevisionMoved`.
        """
        if NAME.fullmatch(name) is None:
            hint = "It has 1 to 100 letters, digits and underscores, and begins with no digit: `secret.NAME`."
            raise NameInvalid(f"{name[:60]!r} cannot be the name of a secret", hint=hint)
        if rule is not None:
            _check_rule(name, rule)
            if name in self._ruled:
                message = f"the settings say where the secret {name!r} may go, and win over the store"
                raise SecretInvalid(message, hint=f"Change [secrets.{name}] in pointsman.toml.")
        before = await self._store.find(KIND, name)
        known = None if before is None else _read(before)
        if value is None and known is None and rule in (None, SecretRule()):
            hint = "Give a value, or hosts, tools, workflows or groups of a secret that the environment has."
            raise SecretInvalid(f"there is nothing to store of the secret {name!r}", hint=hint)
        sealed = known.sealed if known is not None else ""
        if value is not None:
            sealed = await self._seal(name, value)
        kept = KeptSecret(
            name=name,
            sealed=sealed,
            changed=Instant(self._clock.now()),
            by=by,
            rule=rule if rule is not None else known.rule if known is not None else SecretRule(),
        )
        # What is not given is taken over from what was read, so it must be what is there still.
        read = NOTHING if before is None else mark_of(before.value)
        what = f"the secret {name!r}"
        if after not in (None, read):
            raise moved(what)
        await put_after(self._store, KIND, name, msgspec.to_builtins(kept), after=read, what=what)
        await self._changed()

    async def _seal(self, name: str, value: str) -> str:
        if not CHARS_MIN <= len(value) <= VALUE_CHARS_MAX:
            hint = f"It has {CHARS_MIN} to {VALUE_CHARS_MAX} characters: a shorter one could not be hidden in texts."
            raise SecretInvalid(f"the value of {name!r} has {len(value)} characters", hint=hint)
        try:
            value.encode()
        except UnicodeEncodeError:
            raise SecretInvalid(f"the value of {name!r} is no text", hint="It has half a character in it.") from None
        return (await self._sealing()).seal(name, value)

    async def kept_rule(self, name: str) -> SecretRule:
        """Where documents may send it, as the store has it now."""
        entry = await self._store.find(KIND, name)
        return SecretRule() if entry is None else _read(entry).rule

    async def mark(self, name: str) -> str:
        """Tells the secret of this name from what it was: `NOTHING` where there is none."""
        return await mark_at(self._store, KIND, name)

    async def all(self) -> list[KeptSecret]:
        """By name, sealed as they are."""
        return [_read(entry) for entry in await self._store.list(KIND)]

    async def marked(self) -> list[tuple[KeptSecret, str]]:
        """The same, each with its mark."""
        return [(_read(entry), mark_of(entry.value)) for entry in await self._store.list(KIND)]

    async def delete(self, name: str, *, after: str | None = None) -> None:
        """`after`: the mark it must have. Raises `NoSuchSecret`, `RevisionMoved`."""
        if not await delete_after(self._store, KIND, name, after=after, what=f"the secret {name[:100]!r}"):
            known = ", ".join(repr(one.name) for one in await self.all()) or "none"
            raise NoSuchSecret(f"the store keeps no secret named {name[:100]!r}", hint=f"There is {known}.")
        await self._changed()

    async def rotate(self) -> int:
        """Seal all of them anew, with the newest key; how many. Raises, and leaves the rest as it is, where one cannot
        be opened. Who changes one meanwhile has sealed it with the newest key, or is not overwritten."""
        from pointsman.auth.vault_keys import box_of  # It loads a library of ciphers.

        entries, done = await self._store.list(KIND), 0
        if not entries:
            return 0
        box = box_of(self._settings)
        kept = [(entry, one) for entry in entries if (one := _read(entry)).sealed]
        opened = [(entry, one, box.open(one.name, one.sealed)) for entry, one in kept]
        for entry, one, value in opened:
            fresh = msgspec.structs.replace(one, sealed=box.seal(one.name, value))
            try:
                await self._store.put(KIND, one.name, msgspec.to_builtins(fresh), after=entry.version)
                done += 1
            except EntryMoved:
                continue
        await self._changed()
        return done

    @property
    def _store(self) -> ConfigStore:
        assert self._entries is not None, "the installation is open"
        return self._entries

    async def _changed(self) -> None:
        self._read_at = -math.inf
        await self.refresh()

    async def _sealing(self) -> SealingKeys:
        """Keys to seal with. One is made only where nothing is sealed yet: beside others it would be the wrong one."""
        from pointsman.auth.vault_keys import VaultLocked, box_of, make_key  # As above.

        try:
            return box_of(self._settings)
        except VaultLocked:
            if await self._store.list(KIND):
                raise
        make_key(self._settings)
        return box_of(self._settings)

    def _open_all(self) -> None:
        self._values, self._closed = {}, {}
        if not self._sealed:
            return
        from pointsman.auth.vault_keys import box_of  # As above.

        try:
            box = box_of(self._settings)
        except OperatorError as why:
            self._closed = dict.fromkeys(self._sealed, why)
            return
        for name, sealed in self._sealed.items():
            try:
                self._values[name] = box.open(name, sealed)
            except OperatorError as why:
                self._closed[name] = why
        if not self._seen.issuperset(self._values.values()):
            self._seen = self._seen.union(self._values.values())


def _read(entry: ConfigEntry) -> KeptSecret:
    """What is none opens with no key: it is refused when it is asked for, and can be set anew or deleted."""
    try:
        kept = msgspec.convert(entry.value, KeptSecret, strict=False)
    except msgspec.ValidationError:
        return KeptSecret(name=entry.key, sealed="?", changed=Instant(0.0))
    return msgspec.structs.replace(kept, name=entry.key)


def secret_view(kept: KeptSecret) -> JsonObject:
    """What people may know of it: never itself."""
    return {
        "name": kept.name,
        "changedAt": kept.changed,
        "changedBy": kept.by,
        "stored": bool(kept.sealed),
        **rule_view(kept.rule),
    }


def rule_view(rule: SecretRule) -> JsonObject:
    """Where documents may send a secret."""
    return {
        "hosts": [*rule.hosts],
        "tools": [*rule.tools],
        "workflows": [*rule.workflows],
        "groups": [*rule.groups],
    }


def _check_rule(name: str, rule: SecretRule) -> None:
    """Raises `SecretInvalid`."""
    for host in rule.hosts:
        try:
            read_host(host)
        except ValueError as why:
            raise SecretInvalid(f"the hosts of {name!r}: {why}", hint="See docs/how-to/secrets.md.") from None
    for one in (*rule.tools, *rule.workflows, *rule.groups):
        if not one.strip():
            raise SecretInvalid(f"the rule of {name!r} names an empty text", hint="Leave it out.")


VAULT: Final = Part[Vault]("vault")
"""Bound by wiring: the settings ask it for secrets before the store is open."""
