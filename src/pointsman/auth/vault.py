"""Vault: secrets that are encrypted in the store and decrypted only for the calls that need them.

    set ─ sealed with the newest key ─▶ an entry of the store ─ opened with any key ─▶ `secret.NAME` of a call

Values are cached for a second, so a change by another process takes effect within one. A secret of the same name in the
settings or the environment has precedence. `SecretAccess` is the `Secrets` port of the app: secrets
of all three origins, the rules of where documents may send them, and their redaction.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from typing_extensions import TypedDict

from pointsman.auth.credentials import (
    VISIT,
    AuthorizationRefused,
    Credential,
    CredentialInvalid,
    CredentialType,
    Parts,
    TokenServer,
    Visit,
    check_credential,
    header_value,
    new_visit,
    read_parts,
    visit_key,
)
from pointsman.auth.keys import NameInvalid
from pointsman.auth.redaction import known_redaction
from pointsman.context import Part
from pointsman.engine.reports import ToolCall
from pointsman.errors import CallerError, OperatorError
from pointsman.etags import NOTHING, content_etag, delete_after, entry_etag, etag_of, put_after, revision_moved
from pointsman.ports import Clock, ExecutionPort, SecretRule, Tools, ToolSpec
from pointsman.redaction import ANYWHERE_CHARS_MIN as CHARS_MIN
from pointsman.settings.sections import VaultSettings
from pointsman.store.api import ConfigStore
from pointsman.store.errors import EntryMoved, RevisionMoved
from pointsman.store.records import ConfigEntry
from pointsman.tools.egress.addresses import read_host
from pointsman.values import Instant, Json

if TYPE_CHECKING:
    from pointsman.auth.vault_keys import SealingKeys
    from pointsman.redaction import Redaction
    from pointsman.settings import Settings
    from pointsman.store.api import Workflows


KIND: Final = "secret"
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
VALUE_CHARS_MAX: Final = 60_000
KNOWN_FOR_S: Final = 1.0
RETRY_S: Final = 30.0
"""Pause before tokens are fetched again after a failure, and how long a process may take to fetch one."""


class NoSuchSecret(CallerError):
    """The store has no secret of that name."""

    code: ClassVar[str] = "no-such-secret"


class SecretInvalid(CallerError):
    """The value or the rule of a secret is invalid."""

    code: ClassVar[str] = "secret-invalid"


class StoredSecret(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stored record of a secret."""

    name: str
    sealed: str
    """Empty: the environment or the settings have the value, and this record contains only its rule."""
    changed: Instant
    by: str = ""
    rule: SecretRule = SecretRule()
    """Where documents may send the secret."""
    credential: Credential | None = None
    """What the value is made of; None: the sealed text is the value."""


class Vault:
    """Secrets of one store. Usable before `open`, when it contains none."""

    def __init__(
        self,
        settings: VaultSettings,
        clock: Clock,
        *,
        ruled: Collection[str] = (),
        token_server: TokenServer | None = None,
    ) -> None:
        """`ruled` are the secrets whose rule is in the settings, which have precedence. `token_server` renews tokens of
        credentials; None: they are not renewed."""
        self._token_server = token_server
        self._renewals = asyncio.Lock()
        self._failed: dict[str, tuple[float, OperatorError]] = {}
        """Until when the tokens of a credential are not renewed again, and why the last renewal failed."""
        self._ruled = frozenset(ruled)
        self._settings = settings
        self._clock = clock
        self._entries: ConfigStore | None = None
        self._read_at = -math.inf
        self._sealed: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._closed: dict[str, OperatorError] = {}
        self._rules: dict[str, SecretRule] = {}
        self._credentials: dict[str, Credential] = {}
        self._seen: frozenset[str] = frozenset()

    async def open(self, entries: ConfigStore) -> None:
        """Read the secrets of the store. One that cannot be decrypted raises an error when it is used, not here."""
        self._entries = entries
        with suppress(OperatorError):  # Store unavailable: read again, and reported, before a secret is used.
            await self.refresh()

    def secret(self, name: str) -> str | None:
        """Return a secret as of the last `refresh`; None if the store has none of that name. Raises `VaultLocked`,
        `VaultKeyInvalid`, `SecretUnreadable`."""
        if name in self._failed and self._credentials[name].expires <= self._clock.now():
            raise self._failed[name][1].with_traceback(None)
        if name in self._closed:
            raise self._closed[name].with_traceback(None)
        return self._values.get(name)

    def rule(self, name: str) -> SecretRule:
        """Return where documents may send a secret, as of the last `refresh`."""
        return self._rules.get(name, SecretRule())

    @property
    def seen(self) -> frozenset[str]:
        """Every value read so far, also values that were replaced since; all of them are masked. A new set object
        whenever it grows."""
        return self._seen

    @property
    def closed(self) -> Mapping[str, OperatorError]:
        """The secrets that cannot be decrypted, with the error of each."""
        return self._closed

    @property
    def is_fresh(self) -> bool:
        """Return whether the secrets were read within the last second."""
        return self._entries is None or self._read_at <= self._clock.now() < self._read_at + KNOWN_FOR_S

    async def refresh(self, *, at_once: bool = False) -> None:
        """Read the secrets again, at most once per second or `at_once`. Decrypts only if something has changed."""
        if self._entries is None or (self.is_fresh and not at_once):
            return
        now = self._clock.now()
        secrets = await self.all()
        if any(one.credential is not None and one.credential.must_renew(now) for one in secrets):
            await self._renew_all(secrets, now)
            secrets = await self.all()
        self._credentials = {one.name: one.credential for one in secrets if one.credential is not None}
        sealed = {secret.name: secret.sealed for secret in secrets if secret.sealed}
        self._rules = {secret.name: secret.rule for secret in secrets}
        self._read_at = now
        # Failed secrets are tried again: their key may be available now.
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
        credential: Credential | None = None,
    ) -> None:
        """Store a value and the rule of where documents may send it. An argument that is not given leaves its part
        unchanged. `credential`: what the value is made of, see `set_credential`.

        Creates a key if there is none and the vault is empty. `after` is the ETag that the stored secret must have.
        Raises `NameInvalid`, `SecretInvalid`, `VaultLocked`, `VaultKeyInvalid`, `RevisionMoved`.
        """
        self._check(name, rule)
        before = await self._store.find(KIND, name)
        current = None if before is None else _read(before)
        if value is None and current is None and rule in (None, SecretRule()):
            hint = "Give a value; or hosts, tools, workflows or groups, if the environment has the value."
            raise SecretInvalid(f"the command contains nothing to store for the secret {name!r}", hint=hint)
        sealed = current.sealed if current is not None else ""
        if value is not None:
            sealed = await self._seal(name, value)
        if value is None and current is not None:
            credential = current.credential
        secret = StoredSecret(
            name=name,
            sealed=sealed,
            changed=Instant(self._clock.now()),
            by=by,
            rule=rule if rule is not None else current.rule if current is not None else SecretRule(),
            credential=credential,
        )
        # Arguments that are not given are copied from the record read above, so it must still be the stored one.
        read = NOTHING if before is None else content_etag(before.value)
        what = f"the secret {name!r}"
        if after not in (None, read):
            raise revision_moved(what)
        await put_after(self._store, KIND, name, msgspec.to_builtins(secret), after=read, what=what)
        await self._changed()

    def _check(self, name: str, rule: SecretRule | None) -> None:
        """Check the name and the new rule of a secret. Raises `NameInvalid`, `SecretInvalid`."""
        if NAME.fullmatch(name) is None:
            hint = (
                "It must have 1 to 100 letters, digits and underscores, and must not begin with a digit: `secret.NAME`."
            )
            raise NameInvalid(f"{name[:60]!r} is not a valid secret name", hint=hint)
        if rule is None:
            return
        _check_rule(name, rule)
        if name in self._ruled:
            message = f"the settings define the destinations of the secret {name!r}, and have precedence over the store"
            raise SecretInvalid(message, hint=f"Change [secrets.{name}] in pointsman.toml.")

    async def _seal(self, name: str, value: str) -> str:
        if not CHARS_MIN <= len(value) <= VALUE_CHARS_MAX:
            hint = (
                f"It must have {CHARS_MIN} to {VALUE_CHARS_MAX} characters: a shorter one could not be "
                "redacted from texts."
            )
            raise SecretInvalid(f"the value of {name!r} has {len(value)} characters", hint=hint)
        try:
            value.encode()
        except UnicodeEncodeError:
            raise SecretInvalid(
                f"the value of {name!r} is not a valid text", hint="It contains half a character (a lone surrogate)."
            ) from None
        return (await self._sealing()).seal(name, value)

    async def kept_rule(self, name: str) -> SecretRule:
        """Return where documents may send a secret, as the store has it now."""
        entry = await self._store.find(KIND, name)
        return SecretRule() if entry is None else _read(entry).rule

    async def mark(self, name: str) -> str:
        """Return the ETag of a secret; `NOTHING` if there is none."""
        return await entry_etag(self._store, KIND, name)

    async def all(self) -> list[StoredSecret]:
        """Return all secrets by name, encrypted."""
        return [_read(entry) for entry in await self._store.list(KIND)]

    async def marked(self) -> list[tuple[StoredSecret, str]]:
        """Return all secrets by name, encrypted, each with its ETag."""
        return [(_read(entry), content_etag(entry.value)) for entry in await self._store.list(KIND)]

    async def delete(self, name: str, *, after: str | None = None) -> None:
        """Delete a secret. `after` is the ETag that it must have. Raises `NoSuchSecret`, `RevisionMoved`."""
        if not await delete_after(self._store, KIND, name, after=after, what=f"the secret {name[:100]!r}"):
            secret_names = ", ".join(repr(one.name) for one in await self.all()) or "none"
            raise NoSuchSecret(f"the store has no secret {name[:100]!r}", hint=f"Existing secrets: {secret_names}.")
        await self._changed()

    async def rotate(self) -> int:
        """Encrypt all secrets again with the newest key and return their number. If one cannot be decrypted, raises and
        changes nothing. A secret that another process changes meanwhile is not overwritten."""
        from pointsman.auth.vault_keys import sealing_keys_of  # Deferred: imports a library of ciphers.

        entries, done = await self._store.list(KIND), 0
        if not entries:
            return 0
        sealing_keys = sealing_keys_of(self._settings)
        sealed = [(entry, one) for entry in entries if (one := _read(entry)).sealed]
        opened = [(entry, one, sealing_keys.open(one.name, one.sealed)) for entry, one in sealed]
        for entry, one, value in opened:
            fresh = msgspec.structs.replace(one, sealed=sealing_keys.seal(one.name, value))
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
        """Return the keys to encrypt with. A key is created only if the vault is empty: existing secrets need their own
        key."""
        from pointsman.auth.vault_keys import VaultLocked, make_key, sealing_keys_of  # Deferred as above.

        try:
            return sealing_keys_of(self._settings)
        except VaultLocked:
            if await self._store.list(KIND):
                raise
        make_key(self._settings)
        return sealing_keys_of(self._settings)

    def _open_all(self) -> None:
        self._values, self._closed = {}, {}
        if not self._sealed:
            return
        from pointsman.auth.vault_keys import sealing_keys_of  # Deferred as above.

        try:
            sealing_keys = sealing_keys_of(self._settings)
        except OperatorError as why:
            self._closed = dict.fromkeys(self._sealed, why)
            return
        secret: set[str] = set()
        for name, sealed in self._sealed.items():
            try:
                opened = sealing_keys.open(name, sealed)
                if (credential := self._credentials.get(name)) is None:
                    self._values[name] = opened
                    continue
                parts = read_parts(opened)
                secret.update(part for part in parts.values() if len(part) >= CHARS_MIN)
                self._values[name] = header_value(name, credential, parts)
            except OperatorError as why:
                self._closed[name] = why
        secret.update(self._values.values())
        if not self._seen.issuperset(secret):
            self._seen = self._seen.union(secret)

    async def _renew_all(self, secrets: Collection[StoredSecret], now: float) -> None:
        """Renew the tokens that expire soon. A failure is tried again later, and reported when the secret is used."""
        async with self._renewals:
            for one in secrets:
                waits = self._failed.get(one.name, (0.0, None))[0] > now
                if one.credential is None or not one.credential.must_renew(now) or waits:
                    continue
                try:
                    await self._renew(one.name, now)
                    self._failed.pop(one.name, None)
                except (OperatorError, RevisionMoved) as why:
                    if isinstance(why, OperatorError):
                        self._failed[one.name] = (now + RETRY_S, why)

    async def _renew(self, name: str, now: float) -> None:
        """Renew the token of a credential, unless another process is faster."""
        entry = await self._store.find(KIND, name)
        current = None if entry is None else _read(entry)
        credential = None if current is None else current.credential
        if entry is None or current is None or credential is None or not credential.must_renew(now):
            return
        if self._token_server is None:
            return
        claim = msgspec.structs.replace(credential, renewing=Instant(now + RETRY_S))
        claimed = msgspec.structs.replace(current, credential=claim)
        after = content_etag(entry.value)
        value = msgspec.to_builtins(claimed)
        await put_after(self._store, KIND, name, value, after=after, what=f"the secret {name!r}")
        parts = read_parts((await self._sealing()).open(name, current.sealed))
        renewed, parts = await self._token_server.renewed(credential, parts, now)
        fresh = msgspec.structs.replace(
            current, credential=renewed, sealed=(await self._sealing()).seal(name, json.dumps(dict(parts)))
        )
        after = content_etag(value)
        await put_after(self._store, KIND, name, msgspec.to_builtins(fresh), after=after, what=f"the secret {name!r}")

    async def set_credential(
        self,
        name: str,
        credential: Credential,
        parts: Parts,
        *,
        rule: SecretRule,
        by: str,
        after: str | None = None,
    ) -> None:
        """Store a credential in place of the secret of this name. Parts that are not given stay, as long as the
        addresses stay: a secret part is never sent to another token server than the one it was entered for.

        A credential of the type `oauth2-client` fetches its first token. Raises `CredentialInvalid`,
        `CredentialNotConnected`, and the errors of `set`.
        """
        entry = await self._store.find(KIND, name)
        current = None if entry is None else _read(entry)
        if current is not None and current.credential is not None and current.sealed:
            before = current.credential
            stays = (before.type, before.token_url, before.user) == (
                credential.type,
                credential.token_url,
                credential.user,
            )
            if stays:
                kept = read_parts((await self._sealing()).open(name, current.sealed))
                parts = {**kept, **{part: value for part, value in parts.items() if value}}
                if before.fingerprint == credential.fingerprint:
                    credential = msgspec.structs.replace(credential, expires=before.expires)
        check_credential(credential, parts)
        if credential.type == "oauth2-client" and self._token_server is not None:
            credential, parts = await self._token_server.renewed(credential, parts, self._clock.now())
        await self.set(name, json.dumps(dict(parts)), rule=rule, by=by, after=after, credential=credential)

    async def begin_visit(self, name: str, *, who: str, redirect: str) -> str:
        """Return the address of the authorization server for a browser that connects a credential. Raises
        `NoSuchSecret`, `CredentialInvalid`."""
        credential = await self._credential(name)
        now = self._clock.now()
        _, key, visit, address = new_visit(name, who, credential, redirect, now)
        for entry in await self._store.list(VISIT):
            if msgspec.convert(entry.value, Visit).until < now:
                await self._store.delete(VISIT, entry.key)
        await self._store.put(VISIT, key, msgspec.to_builtins(visit))
        return address

    async def complete_visit(self, name: str, *, who: str, code: str, state: str) -> None:
        """Exchange the code of a visit for tokens, and store them. A state is accepted once.

        Raises `AuthorizationRefused`, `CredentialNotConnected`.
        """
        key, now = visit_key(state), self._clock.now()
        entry = await self._store.find(VISIT, key)
        visit = None if entry is None else msgspec.convert(entry.value, Visit)
        if entry is None or visit is None or not await self._store.delete(VISIT, key, after=entry.version):
            raise AuthorizationRefused("the answer belongs to no visit", hint="Connect the credential again.")
        credential = await self._credential(name)
        its_own = (visit.secret, visit.who, visit.fingerprint) == (name, who, credential.fingerprint)
        if not its_own or visit.until < now or not code:
            raise AuthorizationRefused("the answer belongs to another visit", hint="Connect the credential again.")
        assert self._token_server is not None, "an open app has a token server"
        found = await self._store.find(KIND, name)
        assert found is not None, "its credential was read"
        current = _read(found)
        parts = read_parts((await self._sealing()).open(name, current.sealed))
        credential, parts = await self._token_server.exchanged(credential, parts, visit, code, state, now)
        fresh = msgspec.structs.replace(
            current, credential=credential, sealed=(await self._sealing()).seal(name, json.dumps(dict(parts)))
        )
        after = content_etag(found.value)
        await put_after(self._store, KIND, name, msgspec.to_builtins(fresh), after=after, what=f"the secret {name!r}")
        self._failed.pop(name, None)
        await self._changed()

    async def _credential(self, name: str) -> Credential:
        entry = await self._store.find(KIND, name)
        if entry is None:
            raise NoSuchSecret(f"the store has no secret {name[:100]!r}", hint="Create the credential first.")
        credential = _read(entry).credential
        if credential is None or credential.type != "oauth2-code":
            raise CredentialInvalid(f"{name!r} is not connected by a login", hint="Its type is another one.")
        return credential


def _read(entry: ConfigEntry) -> StoredSecret:
    """Read a record. An invalid one becomes a record that no key decrypts: using it raises an error, and it can be set
    again or deleted."""
    try:
        secret = msgspec.convert(entry.value, StoredSecret, strict=False)
    except msgspec.ValidationError:
        return StoredSecret(name=entry.key, sealed="?", changed=Instant(0.0))
    return msgspec.structs.replace(secret, name=entry.key)


class SecretRuleView(TypedDict):
    """Where documents may send a secret."""

    hosts: list[str]
    """Hosts that http nodes of documents may send it to: `api.example.com` (https), `*.example.com`,
    `http://localhost:8080`, `api.example.com:*`; `*`: anywhere."""
    tools: list[str]
    """Patterns of tools whose parameters may name it in documents."""
    workflows: list[str]
    """Saved workflows that may use it, by id or `id@revision`. Empty: any."""
    groups: list[str]
    """Only saved workflows whose `allowedGroups` are all among these may use it. Empty: any."""


class CredentialView(TypedDict):
    """A credential, without its secret parts."""

    type: CredentialType
    user: str
    authorizeUrl: str
    tokenUrl: str
    clientId: str
    scopes: list[str]
    connected: bool
    """Whether it has what a call needs: a password, or an access token."""
    expiresAt: float | None
    """When its access token expires, unless it is renewed; null: it has none."""


def credential_view(credential: Credential) -> CredentialView:
    return {
        "type": credential.type,
        "user": credential.user,
        "authorizeUrl": credential.authorize_url,
        "tokenUrl": credential.token_url,
        "clientId": credential.client_id,
        "scopes": [*credential.scopes],
        "connected": not credential.is_oauth or bool(credential.expires),
        "expiresAt": credential.expires or None,
    }


class SecretView(SecretRuleView):
    """A secret of the store, without its value."""

    name: str
    changedAt: float
    changedBy: str
    stored: bool
    """False: the environment or the settings have its value."""
    credential: CredentialView | None
    """What its value is made of; null: a text."""
    etag: str
    """ETag of the present version, for `If-Match`."""


def secret_view(secret: StoredSecret, mark: str) -> SecretView:
    return {
        "name": secret.name,
        "changedAt": secret.changed,
        "changedBy": secret.by,
        "stored": bool(secret.sealed),
        "credential": None if secret.credential is None else credential_view(secret.credential),
        **rule_view(secret.rule),
        "etag": etag_of(mark),
    }


def rule_view(rule: SecretRule) -> SecretRuleView:
    return {
        "hosts": [*rule.hosts],
        "tools": [*rule.tools],
        "workflows": [*rule.workflows],
        "groups": [*rule.groups],
    }


def _check_rule(name: str, rule: SecretRule) -> None:
    """Raise `SecretInvalid` for a rule with an invalid host or an empty name."""
    for host in rule.hosts:
        try:
            read_host(host)
        except ValueError as why:
            raise SecretInvalid(f"the hosts of {name!r}: {why}", hint="See docs/how-to/secrets.md.") from None
    for one in (*rule.tools, *rule.workflows, *rule.groups):
        if not one.strip():
            raise SecretInvalid(f"the rule of {name!r} contains an empty text", hint="Remove it.")


VAULT: Final = Part[Vault]("vault")
"""Bound by wiring: the settings read secrets before the store is open."""


class FreshTools:
    """`Tools` port that reads changed secrets again before it prepares tools. `EffectLedger` does so before each
    call."""

    def __init__(self, tools: Tools, secrets: SecretAccess) -> None:
        self._tools = tools
        self._secrets = secrets

    def find(self, name: str) -> ToolSpec | None:
        return self._tools.find(name)

    async def prepare(self, names: Iterable[str]) -> None:
        await self._secrets.refresh()
        await self._tools.prepare(names)

    def call(self, call: ToolCall, *, key: str, run: ExecutionPort | None = None) -> Coroutine[Any, Any, Json]:
        return self._tools.call(call, key=key, run=run)


class SecretAccess:
    """Secrets of the environment, the settings and the store, subject to their rules."""

    def __init__(self, settings: Settings, workflows: Workflows) -> None:
        """`workflows` are the saved workflows, whose `allowedGroups` the rules check."""
        self._settings = settings
        self._stored_secrets = settings.stored_secrets
        """The secrets of the store. An attribute, because each step reads it twice, and those of settings are slow."""
        self._workflows = workflows
        self._redaction: Callable[[], Redaction] = known_redaction(settings)

    @property
    def is_fresh(self) -> bool:
        """Return whether `refresh` would read nothing now."""
        return self._stored_secrets is None or self._stored_secrets.is_fresh

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
        return await refusal_of(name, self.rule(name), revision, self._workflows)


async def refusal_of(name: str, rule: SecretRule, revision: str, workflows: Workflows) -> str:
    """Return why a document may not use a secret; empty if it may. Only saved workflows are identified by their ids:
    anyone can write any id into a document."""
    if rule.workflows and not {revision, revision.partition("@")[0]} & {
        workflow for workflow in rule.workflows if workflow
    }:
        return f"the secret {name!r} may be used by the saved workflows {_named(rule.workflows)} only"
    if rule.groups:
        saved = await workflows.find(revision) if revision else None
        groups = None if saved is None else saved.draft.native.get("allowedGroups")
        if not isinstance(groups, list) or not groups or not set(map(str, groups)) <= set(rule.groups):
            return (
                f"the secret {name!r} may be used by saved workflows only whose `allowedGroups` are among"
                f" {_named(rule.groups)}"
            )
    return ""


def _named(names: Collection[str]) -> str:
    return ", ".join(map(repr, sorted(names)))
