"""Health findings about a deployment: readable files, unprotected connections, keys without expiry, left-over files."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

from pointsman.auth.keys import Keys
from pointsman.context import AppContext
from pointsman.operations.findings import HealthFinding
from pointsman.settings import FILE, Settings, config_directory
from pointsman.store.sqlite.connection import path_of
from pointsman.tools.files.directory import UNFINISHED
from pointsman.values import ExecutionId

OTHERS: Final = stat.S_IROTH | stat.S_IWOTH
LISTED_MAX: Final = 5
LEFT_S: Final = 3600.0
"""Age after which the files of an unknown execution count as left over; a younger one may just be starting."""


async def deployment(app: AppContext) -> AsyncIterator[HealthFinding]:
    """Yield the findings. Network and keys are checked only if the store has API keys: before that, the product serves
    one user."""
    for one in _readable_by_others(app.settings):
        yield one
    keys = await Keys(app.store.entries, app.clock).all()
    if keys:
        for one in _reached(app.settings):
            yield one
        if endless := [key.name for key in keys if key.expires is None]:
            hint = "Make new ones with `pointsman keys add NAME --days 90`, and revoke these."
            yield HealthFinding("note", "endless-keys", f"keys that never expire: {_names(endless)}", hint)
        if expired := [key.name for key in keys if not key.is_good_at(app.clock.now())]:
            hint = "`pointsman keys revoke NAME` forgets one."
            yield HealthFinding("note", "expired-keys", f"keys that have expired: {_names(expired)}", hint)
    if left := await _left_over(app):
        message = (
            f"{app.settings.files.directory if app.settings.files else ''}: {_names(left)} are of no execution here"
        )
        hint = "If no other store uses that directory, delete them."
        yield HealthFinding("note", "left-over-files", message, hint)


def _readable_by_others(settings: Settings) -> Iterator[HealthFinding]:
    """Yield a finding for each private file that every user of this machine can read or change."""
    private = [path for path in (config_directory() / FILE, Path(FILE)) if _says_secrets(path)]
    if settings.store_url.startswith("sqlite:"):
        private.append(path_of(settings.store_url))
    for path in private:
        mode = _mode(path)
        if mode is None or not mode & OTHERS or _is_shut(path.absolute().parent):
            continue
        severity = "warning" if mode & stat.S_IWOTH or path.name == FILE else "note"
        can = "change" if mode & stat.S_IWOTH else "read"
        yield HealthFinding(severity, "open-file", f"everybody on this machine can {can} {path}", f"chmod o-rwx {path}")


def _says_secrets(path: Path) -> bool:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any(word in text for word in ("[secrets]", "keys", "password", "secret"))


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except OSError:
        return None


def _is_shut(directory: Path) -> bool:
    """Return whether a parent directory denies other users access."""
    return any(not (_mode(above) or 0) & stat.S_IXOTH for above in (directory, *directory.parents))


def _reached(settings: Settings) -> Iterator[HealthFinding]:
    server = settings.server
    local = server.host in ("localhost", "::1") or server.host.startswith("127.")
    if server.names and not server.proxies:
        message = "`server.names` says that a proxy is in front, and no `server.proxies` are believed"
        hint = 'Callers all look like the proxy. Say where it is: proxies = ["127.0.0.1/32"].'
        yield HealthFinding("note", "proxy-unknown", message, hint)
    if not local and not server.proxies:
        message = f"the server listens on {server.host} without TLS: keys travel readable"
        hint = "Let it listen on 127.0.0.1, and put a proxy with TLS in front: docs/how-to/deploying.md."
        yield HealthFinding("warning", "no-tls", message, hint)


async def _left_over(app: AppContext) -> list[str]:
    """Return the directories of executions that this store does not contain. Another store may, so they are reported,
    not deleted."""
    if app.settings.files is None:
        return []
    there = await asyncio.to_thread(_directories, app.settings.files.directory, app.clock.now() - LEFT_S)
    return [name for name in there if await app.store.executions.find(ExecutionId(name)) is None]


def _directories(root: str, before: float) -> list[str]:
    """Return the directories of executions with plain names that were last changed before this time."""
    try:
        with os.scandir(Path(root).expanduser()) as entries:
            return sorted(
                one.name
                for one in entries
                if one.is_dir(follow_symlinks=False)
                and not one.name.startswith(("x-", UNFINISHED))
                and one.stat(follow_symlinks=False).st_mtime < before
            )
    except OSError:
        return []


def _names(some: list[str]) -> str:
    shown = ", ".join(sorted(some)[:LISTED_MAX])
    return shown if len(some) <= LISTED_MAX else f"{shown} and {len(some) - LISTED_MAX} more"
