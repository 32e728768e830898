"""Entries of the store that name secrets of the vault: an entry and its secrets change as one.

    new secrets, under names that nothing uses ─▶ the entry, if it is as it was read ─▶ the replaced secrets are deleted

So an entry never names a secret that another admin entered for another version of it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from pointsman.auth.vault import VAULT, NoSuchSecret
from pointsman.context import AppContext
from pointsman.errors import CallerError
from pointsman.etags import NOTHING, content_etag, etag_of, match_etag, revision_moved
from pointsman.ports import SecretRule
from pointsman.store.errors import EntryMoved
from pointsman.store.records import ConfigEntry
from pointsman.values import Json


def sealed_name(name: str) -> str:
    """Return a name for a new secret of an entry: this name, and digits that make it new."""
    return f"{name.upper().replace('-', '_')}_{secrets.token_hex(4).upper()}"


async def read_for_change(app: AppContext, kind: str, key: str, match: str | None, what: str) -> ConfigEntry | None:
    """Return the entry that a change replaces; None: there is none. `match`: see `etags.match_etag`. Raises
    `RevisionMoved`."""
    entry = await app.store.entries.find(kind, key)
    mark = NOTHING if entry is None else content_etag(entry.value)
    match_etag(match, None if entry is None else etag_of(mark), mark, revision_moved(what))
    return entry


async def write_sealed(
    app: AppContext,
    kind: str,
    key: str,
    value: Json,
    *,
    before: ConfigEntry | None,
    entered: Mapping[str, str],
    replaced: Iterable[str],
    by: str,
    what: str,
) -> None:
    """Write an entry over the version `before`. `entered`: the secrets that it names anew, with their values;
    `replaced`: those that it does not name any more, which are deleted.

    Raises `RevisionMoved` and the errors of `Vault.set`; then nothing has changed. After an error of the store, the
    new secrets stay, because the entry may have been written.
    """
    stored: list[str] = []
    try:
        for name, secret in entered.items():
            await app[VAULT].set(name, secret, rule=SecretRule(), by=by)
            stored.append(name)
        await app.store.entries.put(kind, key, value, after=0 if before is None else before.version)
    except CallerError as why:
        await delete_secrets(app, stored)
        if isinstance(why, EntryMoved):
            raise revision_moved(what) from None
        raise
    await delete_secrets(app, replaced)


async def delete_sealed(
    app: AppContext,
    kind: str,
    key: str,
    *,
    match: str | None,
    replaced: Callable[[ConfigEntry], Iterable[str]],
    what: str,
) -> bool:
    """Delete an entry with the secrets that `replaced` returns for it; return False if there is none. `match`: see
    `etags.match_etag`. Raises `RevisionMoved`."""
    before = await read_for_change(app, kind, key, match, what)
    if before is None:
        return False
    try:
        await app.store.entries.delete(kind, key, after=before.version)
    except EntryMoved:
        raise revision_moved(what) from None
    await delete_secrets(app, replaced(before))
    return True


async def delete_secrets(app: AppContext, names: Iterable[str]) -> None:
    """Delete these secrets of the store, as far as they exist."""
    for name in names:
        with suppress(NoSuchSecret):
            await app[VAULT].delete(name)
