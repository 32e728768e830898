"""Backup of a store while it is in use, and restore, also into a store of another kind.

any store ── a consistent snapshot ──▶ a file, verified ── verified ──▶ an empty store, all or nothing, verified
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pointsman.auth.audit import KIND as AUDIT
from pointsman.context import AppContext
from pointsman.operations.backup_file import (
    About,
    BackupFailed,
    BackupRefused,
    KeptFile,
    about,
    files_of,
    opened,
    parts_of,
    write_backup,
)
from pointsman.operations.health import damage
from pointsman.settings import Settings
from pointsman.settings.display import store_shown
from pointsman.store.transfer import COPIED, TransferPart, transfer_of
from pointsman.tools.failures import ToolFailed
from pointsman.tools.files.directory import Jail
from pointsman.values import ExecutionId, JsonObject
from pointsman.version import VERSION

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Backup:
    """Summary of a backup that was made or restored."""

    about: About
    bytes: int

    def to_json(self) -> JsonObject:
        about = self.about
        return {
            "made": about.made,
            "product": about.product,
            "executions": about.executions,
            "workflows": about.workflows,
            "files": about.files,
            "bytes": self.bytes,
        }


class Stopped(Exception):
    """The caller that waited for the work was cancelled."""


async def back_up(app: AppContext, path: Path) -> Backup:
    """Back up everything in the store, and the files of executions, into one file. Safe while other processes use the
    store. Raises `BackupExists`, `BackupFailed`, `StoreUncopyable`; in these cases no file is left.

    The backup does not contain settings, nor their secrets and the keys of encrypted values.
    """

    copying = transfer_of(app.store, store_shown(app.settings.store_url))
    settings, made = app.settings, app.clock.now()

    def work(stop: threading.Event) -> Backup:
        parts = anything(until(stop, copying.read()))
        said = write_backup(path, parts, lambda some: kept_files(settings, some), made=made, product=VERSION)
        return Backup(said, path.stat().st_size)

    return await stoppable(work)


async def restore(app: AppContext, path: Path) -> Backup:
    """Restore a backup into the store of this app, which must be empty: all of it or nothing.

    Raises `BackupRefused`, `StoreNotEmpty`, `StoreUncopyable`. Everything is verified before and afterwards.
    """
    copying = transfer_of(app.store, store_shown(app.settings.store_url))

    def work(stop: threading.Event) -> Backup:
        with opened(path) as connection:
            said = about(connection)
            check_files(app.settings, said)

            def everything() -> Iterator[TransferPart]:
                yield from until(stop, parts_of(connection))
                # Before the rows are committed: a failure here leaves no partial store.
                put_files(app.settings, files_of(connection))

            copying.write(everything())
            return Backup(said, path.stat().st_size)

    restored = await stoppable(work)
    if wrong := await damage(app):
        raise BackupRefused(f"what was restored is damaged: {wrong[0]}", hint="`pointsman verify` tells everything.")
    return restored


async def stoppable(work: Callable[[threading.Event], T]) -> T:
    """Run the work in a thread. If the caller is cancelled, stop the work and wait until it has stopped."""
    stop = threading.Event()
    task = asyncio.ensure_future(asyncio.to_thread(work, stop))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait({task})
        task.exception()  # Retrieved to silence asyncio: the result is not used any more.
        raise


def until(stop: threading.Event, parts: Iterable[TransferPart]) -> Iterator[TransferPart]:
    for part in parts:
        if stop.is_set():
            raise Stopped
        yield part


def anything(parts: Iterable[TransferPart]) -> Iterator[TransferPart]:
    """Yield the same parts. Raises `BackupFailed` for an empty store, which usually means a misspelt store URL."""
    found = False
    for part in parts:
        found = found or has_content(part)
        yield part
    if not found:
        raise BackupFailed("the store is empty: there is nothing to back up", hint="Is it the one you mean? --store")


def has_content(part: TransferPart) -> bool:
    """Return whether a part holds more than the audit log, to which every command writes, including this one."""
    if part.table == "entries":
        kind = COPIED["entries"].index("kind")
        return any(not str(row[kind]).startswith(f"{AUDIT}-") for row in part.rows)
    return part.table != "last_version"


def kept_files(settings: Settings, executions: list[ExecutionId]) -> Iterator[KeptFile]:
    """Yield the files of these executions. A file that is replaced meanwhile is read as it is then; a deleted one is
    skipped."""
    if settings.files is None:
        return
    for execution in executions:
        jail = Jail(settings.files, execution)
        for file in jail.files():
            try:
                yield KeptFile(execution, file.path, jail.read(file.path))
            except ToolFailed as why:
                if why.failure.code != "file-missing":
                    raise


def check_files(settings: Settings, said: About) -> None:
    if said.files and settings.files is None:
        raise BackupRefused(
            f"the backup has {said.files} files of executions, and the settings say nowhere to put them",
            hint='Say it in pointsman.toml: [files] directory = "…".',
        )


def put_files(settings: Settings, files: Iterable[KeptFile]) -> None:
    for execution, path, data in files:
        assert settings.files is not None, "checked before anything is written"
        try:
            Jail(settings.files, execution).write(path, data)
        except ToolFailed as why:
            raise BackupRefused(str(why.failure.message), hint="See `files` in the settings.") from None
