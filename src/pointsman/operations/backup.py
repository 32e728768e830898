"""Backup of a store while it is in use, and restore, also into a store of another kind.

any store ── a consistent snapshot ──▶ a file, verified ── verified ──▶ an empty store, all or nothing, verified
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sqlite3
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, NamedTuple, TypeVar

import msgspec

from pointsman.auth.audit import KIND as AUDIT
from pointsman.context import AppContext
from pointsman.errors import CallerError, OperatorError
from pointsman.file_locks import NO_SYMLINK, OPEN_FLAGS, lock_file, sync_directory
from pointsman.operations.health import damage
from pointsman.platforms import need_posix
from pointsman.settings import Settings
from pointsman.store.errors import StoreNewer, masked_address
from pointsman.store.sqlite.connection import connect, explained
from pointsman.store.sqlite.schema import MIGRATIONS, is_ours, migrate, pragma
from pointsman.store.sqlite.transfer import executions_in, find_damage, read_parts, write_new
from pointsman.store.transfer import COPIED, TransferPart, transfer_of
from pointsman.tools.files import ArtifactFolder
from pointsman.tools.tool import ToolFailed
from pointsman.values import ExecutionId, JsonObject
from pointsman.version import VERSION
from pointsman.workflows.sources import FileUnreadable

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
    store. Raises `BackupExists`, `BackupFailed`, `StoreCopyUnsupported`; in these cases no file is left.

    The backup does not contain settings, nor their secrets and the keys of encrypted values.
    """

    copying = transfer_of(app.store, masked_address(app.settings.store_url))
    settings, made = app.settings, app.clock.now()

    def work(stop: threading.Event) -> Backup:
        parts = anything(until(stop, copying.read()))
        summary = write_backup(path, parts, lambda some: stored_files(settings, some), made=made, product=VERSION)
        return Backup(summary, path.stat().st_size)

    return await stoppable(work)


async def restore(app: AppContext, path: Path) -> Backup:
    """Restore a backup into the store of this app, which must be empty: all of it or nothing.

    Raises `BackupRefused`, `StoreNotEmpty`, `StoreCopyUnsupported`. Everything is verified before and afterwards.
    """
    copying = transfer_of(app.store, masked_address(app.settings.store_url))

    def work(stop: threading.Event) -> Backup:
        with opened(path) as connection:
            summary = about(connection)
            check_files(app.settings, summary)

            def everything() -> Iterator[TransferPart]:
                yield from until(stop, parts_of(connection))
                # Before the rows are committed: a failure here leaves no partial store.
                put_files(app.settings, files_of(connection))

            copying.write(everything())
            return Backup(summary, path.stat().st_size)

    restored = await stoppable(work)
    if wrong := await damage(app):
        raise BackupRefused(f"the restored store is damaged: {wrong[0]}", hint="`pointsman verify` lists all damage.")
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
    has_any = False
    for part in parts:
        has_any = has_any or has_content(part)
        yield part
    if not has_any:
        raise BackupFailed(
            "the store is empty: there is nothing to back up", hint="Check that it is the intended store: --store"
        )


def has_content(part: TransferPart) -> bool:
    """Return whether a part holds more than the audit log, to which every command writes, including this one."""
    if part.table == "entries":
        kind = COPIED["entries"].index("kind")
        return any(not str(row[kind]).startswith(f"{AUDIT}-") for row in part.rows)
    return part.table != "last_version"


def stored_files(settings: Settings, executions: list[ExecutionId]) -> Iterator[BackupFile]:
    """Yield the files of these executions. A file that is replaced meanwhile is read as it is then; a deleted one is
    skipped."""
    if settings.files is None:
        return
    for execution in executions:
        folder = ArtifactFolder(settings.files, execution)
        for file in folder.files():
            try:
                yield BackupFile(execution, file.path, folder.read(file.path))
            except ToolFailed as why:
                if why.failure.code != "file-missing":
                    raise


def check_files(settings: Settings, summary: About) -> None:
    if summary.files and settings.files is None:
        raise BackupRefused(
            f"the backup has {summary.files} files of executions, but no directory for files is configured",
            hint='Set it in pointsman.toml: [files] directory = "…".',
        )


def put_files(settings: Settings, files: Iterable[BackupFile]) -> None:
    for execution, path, data in files:
        assert settings.files is not None, "checked before anything is written"
        try:
            ArtifactFolder(settings.files, execution).write(path, data)
        except ToolFailed as why:
            raise BackupRefused(str(why.failure.message), hint="Check `files` in the settings.") from None


UNFINISHED: Final = ".unfinished"
ABOUT: Final = "CREATE TABLE backup (made REAL NOT NULL, product TEXT NOT NULL, hash BLOB NOT NULL) STRICT"
"""`hash` covers every value of all other tables, so that missing rows at the end of a table are detected too."""
TABLES: Final = (
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'backup' AND sql NOT LIKE 'CREATE VIRTUAL%'"
)
KEPT_FILES: Final = """
    CREATE TABLE kept_files (
        execution TEXT NOT NULL, path TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (execution, path)
    ) STRICT
"""


class BackupExists(CallerError):
    """A file of that name exists, and a backup never replaces one."""

    code: ClassVar[str] = "backup-exists"


class BackupRefused(CallerError):
    """The file is not a backup, or was altered."""

    code: ClassVar[str] = "backup-refused"


class BackupFailed(OperatorError):
    """The backup could not be made; no file of that name is left."""

    code: ClassVar[str] = "backup-failed"


class BackupFile(NamedTuple):
    """A file of an execution."""

    execution: ExecutionId
    path: str
    data: bytes


class About(NamedTuple):
    """Metadata of a backup."""

    made: float
    product: str
    executions: int
    workflows: int
    files: int


Files = Callable[[list[ExecutionId]], Iterable[BackupFile]]
"""Returns the files of these executions."""


def write_backup(path: Path, parts: Iterable[TransferPart], files: Files, *, made: float, product: str) -> About:
    """Write and verify a backup. Raises `BackupExists`, `BackupFailed` and what the parts raise; in these cases no file
    is left."""
    with beside(path) as unfinished, explained(unfinished), closing(connect(_address(unfinished, "rw"))) as connection:
        write_new(connection, parts)
        connection.execute(KEPT_FILES)
        connection.execute("BEGIN")
        for execution, name, data in files(executions_in(connection)):
            connection.execute("INSERT INTO kept_files VALUES (?, ?, ?)", (execution, name, data))
        connection.execute(ABOUT)
        connection.execute("INSERT INTO backup VALUES (?, ?, ?)", (made, product, hash_of(connection)))
        connection.execute("COMMIT")
        if wrong := find_damage(connection):
            raise BackupFailed(f"the store is damaged: {wrong[0]}", hint="`pointsman verify` lists all damage.")
        return about(connection)


@contextmanager
def beside(path: Path) -> Generator[Path]:
    """Yield a temporary file that is renamed to `path` when the block ends; locked against other processes."""
    need_posix("A backup", instead="Copy the files of the store while no process uses it.")
    unfinished = path.with_name(f".{path.name}{UNFINISHED}")
    _check_free(path)
    try:
        file = os.open(unfinished, os.O_RDWR | os.O_CREAT | OPEN_FLAGS | NO_SYMLINK, 0o600)
    except OSError as why:
        raise BackupFailed(f"{str(path)!r} cannot be written: {why.strerror}", hint="Choose another file.") from None
    try:
        if not lock_file(file):
            raise BackupExists(f"another backup is writing {str(path)!r}", hint="Wait for it, or choose another file.")
        os.ftruncate(file, 0)
        try:
            yield unfinished
            os.fsync(file)
            _check_free(path)
            os.rename(unfinished, path)
            sync_directory(path.parent)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(unfinished)
            raise
    finally:
        os.close(file)


def _check_free(path: Path) -> None:
    if os.path.lexists(path):
        raise BackupExists(f"{str(path)!r} already exists", hint="Choose another file, or move that one away.")


@contextmanager
def opened(path: Path) -> Generator[sqlite3.Connection]:
    """Yield a verified backup, opened read-only. Raises `FileUnreadable`, `BackupRefused`, `StoreNewer`.

    A backup of an older version is migrated to the present tables in a temporary copy.
    """
    try:
        with path.open("rb"):
            pass
    except OSError as why:
        raise FileUnreadable(f"{str(path)!r} cannot be read: {why.strerror}", hint=MADE_BY) from None
    with explained(path), closing(_connected(path)) as connection:
        yield connection


MADE_BY: Final = "`pointsman backup FILE` creates one."


def _connected(path: Path) -> sqlite3.Connection:
    connection = connect(_address(path, "ro") + "&immutable=1")
    try:
        version = _version(connection, path)
        if version == len(MIGRATIONS):
            return connection
        lifted = connect("")  # A temporary file, deleted with the connection.
        connection.backup(lifted)
        migrate(lifted)
    except BaseException:
        connection.close()
        raise
    connection.close()
    return lifted


def _version(connection: sqlite3.Connection, path: Path) -> int:
    """Return the version of the tables. Raises `BackupRefused` for a file that is not a backup or was altered, and
    `StoreNewer`."""
    try:
        recorded = connection.execute("SELECT hash FROM backup").fetchone() if is_ours(connection) else None
        version = pragma(connection, "user_version")
        if recorded is not None and version > len(MIGRATIONS):
            raise StoreNewer(
                f"the backup has version {version}; this Pointsman supports versions up to {len(MIGRATIONS)}",
                hint="Upgrade Pointsman.",
            )
        if recorded is not None and recorded[0] != hash_of(connection):
            raise BackupRefused(f"{path.name!r} does not match the backup that was made", hint="Use another backup.")
    except sqlite3.DatabaseError as why:
        raise BackupRefused(f"{path.name!r} is not a backup: {why}", hint=MADE_BY) from None
    if recorded is None:
        raise BackupRefused(f"{path.name!r} is not a backup", hint=MADE_BY)
    return version


def _address(path: Path, mode: str) -> str:
    return f"{path.absolute().as_uri()}?mode={mode}"


def hash_of(connection: sqlite3.Connection) -> bytes:
    """Return the hash of every value of all tables except `backup`, which contains the hash."""
    hashed, encode = hashlib.sha256(), msgspec.msgpack.Encoder().encode
    for (table,) in connection.execute(TABLES).fetchall():
        hashed.update(table.encode())
        quoted = table.replace('"', '""')
        for row in connection.execute(f'SELECT * FROM "{quoted}"'):
            hashed.update(encode(row))
    return hashed.digest()


def about(connection: sqlite3.Connection) -> About:
    made, product = connection.execute("SELECT made, product FROM backup").fetchone()
    counts = (
        connection.execute(statement).fetchone()[0]
        for statement in (
            "SELECT count(*) FROM summaries",
            "SELECT count(DISTINCT id) FROM workflows WHERE id NOT IN (SELECT id FROM deleted_workflows)",
            "SELECT count(*) FROM kept_files",
        )
    )
    return About(made, product, *counts)


def parts_of(connection: sqlite3.Connection) -> Iterator[TransferPart]:
    return read_parts(connection)


def files_of(connection: sqlite3.Connection) -> Iterator[BackupFile]:
    for execution, name, data in connection.execute("SELECT execution, path, data FROM kept_files"):
        yield BackupFile(ExecutionId(execution), name, data)
