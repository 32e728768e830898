"""Backups: a consistent copy in one file, restored completely into a store of either kind, or not at all."""

from __future__ import annotations

import os
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.auth.keys import Keys
from pointsman.executions.deletion import summaries
from pointsman.operations import backup
from pointsman.operations.backup import BackupExists, BackupFailed, BackupRefused
from pointsman.settings import Settings
from pointsman.store.errors import StoreDamaged, StoreNewer
from pointsman.store.records import ExecutionQuery, InboxQuery
from pointsman.store.sqlite.schema import MIGRATIONS
from pointsman.store.transfer import StoreCopyUnsupported, StoreNotEmpty, TransferPart, Value, transfer_of
from pointsman.tools.files import ArtifactFolder
from pointsman.values import ExecutionId
from tests import postgres
from tests.cli import flows

LARGE = "tides and harbours " * 20_000
GATED = flows.APPROVAL.replace('message: "Send it?"', 'message: "Send it?", approvers: {users: [ada]}')
Address = Callable[[str], str]


@pytest.fixture
def address(tmp_path: Path, request: pytest.FixtureRequest) -> Address:
    """The address of a new store of each kind."""

    def of(kind: str) -> str:
        number = len([*tmp_path.glob("*.used")])
        (tmp_path / f"{number}.used").touch()
        if kind == "sqlite":
            return f"sqlite:///{tmp_path / f'store{number}.db'}"
        postgres.need_binaries()
        return f"{request.getfixturevalue('postgres_url')}_{number}"

    return of


def installed(url: str, tmp_path: Path, *, name: str = "files") -> Pointsman:
    settings = Settings.model_validate({"delays": False, "files": {"directory": str(tmp_path / name)}})
    return Pointsman(url, settings=settings, model="scripted")


async def lived_in(app: Pointsman, settings: Settings) -> ExecutionId:
    """Create an object of each kind in a store; return the execution that waits for Ada."""
    await app.save(Workflow.parse(GATED))
    await app.save(Workflow.parse(GATED.replace("Write about", "Sing of")))
    await app.save(Workflow.parse(flows.CHAIN.replace("id: chain", "id: chain\nenabled: false")))
    await app.save(Workflow.parse(flows.WAITS))
    await app.store.workflows.delete(Workflow.parse(flows.WAITS).definition.id)
    waits = await app.start("letter", {"goal": LARGE}, session="talk", by="bo")
    await waits.settled()
    heard = await app.start(Workflow.parse(flows.WAITS), {})
    await heard.settled()
    done = await app.start(Workflow.parse(flows.CHAIN), {})
    await done.settled()
    gone = await app.start(Workflow.parse(flows.CHAIN), {})
    await gone.settled()
    await app.storage.delete(gone.id)
    await app.store.memory.put("user", "ann", "colour", {"likes": "tidal blue"})
    await app.store.memory.put("shared", "all", "large", LARGE)
    await app.store.sessions.append("closed", ({"role": "user", "content": "hello"},), after=0)
    await app.store.sessions.close("closed")
    keys = Keys(app.store.entries, app.clock)
    await keys.make("ada", "editor", groups=("desk",))
    await app.store.entries.put("note", "first", 1)
    await app.store.entries.delete("note", "first")
    ArtifactFolder(settings.files, waits.id).write("notes/report.md", b"\x00tide\xff") if settings.files else None
    return ExecutionId(waits.id)


def everything(app: Pointsman) -> dict[str, list[tuple[Value, ...]]]:
    found: defaultdict[str, list[tuple[Value, ...]]] = defaultdict(list)
    for table, rows in transfer_of(app.store, "").read():
        found[table] += [tuple(row) for row in rows]
    return {table: sorted(rows, key=repr) for table, rows in found.items()}


@pytest.mark.parametrize(
    ("source", "target"),
    [("sqlite", "sqlite"), ("sqlite", "postgres"), ("postgres", "sqlite"), ("postgres", "postgres")],
)
async def test_a_backup_is_restored_completely_and_continues_in_both_kinds_of_store(
    address: Address, tmp_path: Path, source: str, target: str
) -> None:
    file = tmp_path / "monday.backup"
    async with installed(address(source), tmp_path) as app:
        waits = await lived_in(app, app.settings)
        before = everything(app)
        made = await app.storage.back_up(file)
    assert (made.about.executions, made.about.workflows, made.about.files) == (3, 2, 1)
    assert made.bytes == file.stat().st_size
    assert file.stat().st_mode & 0o777 == 0o600

    goal = address(target)
    async with installed(goal, tmp_path, name="elsewhere") as app:
        restored = await app.storage.restore(file)
        assert restored.about == made.about
        after = everything(app)
    assert {table: len(rows) for table, rows in after.items()} == {table: len(rows) for table, rows in before.items()}
    assert after == before

    async with installed(goal, tmp_path, name="elsewhere") as app:
        assert await app.store.verify() == []
        (gate,) = await app.store.executions.inbox(InboxQuery(user="ada"))
        assert gate.execution == waits
        (heard,) = await app.store.executions.list(ExecutionQuery(awaits="door"))
        assert heard.status == "waiting"
        assert [key for key, _ in await app.store.memory.search("user", "ann", "tidal")] == ["colour"]
        assert (await app.store.sessions.load("closed")).closed
        assert [entry.id for entry in await app.workflows()] == ["chain", "letter"]
        assert [entry.enabled for entry in await app.workflows()] == [False, True]
        assert app.settings.files is not None
        assert ArtifactFolder(app.settings.files, waits).read("notes/report.md") == b"\x00tide\xff"
        execution = await app.open(waits)
        await execution.answer("review", "approve", by="ada")
        assert await execution.settled() == "completed"
        assert await app.store.entries.put("note", "new", 2) > max(int(row[0] or 0) for row in before["last_version"])
        assert await app.store.verify() == []


@pytest.mark.integration
async def test_a_backup_is_consistent_during_writes(tmp_path: Path) -> None:
    """An execution that starts meanwhile is in it as a whole, or not at all."""
    async with installed(f"sqlite:///{tmp_path / 'store.db'}", tmp_path) as app:
        for _ in range(3):
            await (await app.start(Workflow.parse(flows.CHAIN), {})).settled()
        parts = transfer_of(app.store, "").read()
        first = next(parts)
        late = await app.start(Workflow.parse(flows.CHAIN), {})
        await late.settled()
        rest = [first, *parts]
        listed = sum(len(rows) for table, rows in rest if table == "summaries")
        named = {row[0] for table, rows in rest if table == "rows" for row in rows}
        assert (listed, len(named), late.id in named) == (3, 3, False)


@pytest.mark.integration
async def test_a_backup_does_not_replace_an_existing_file(tmp_path: Path) -> None:
    file = tmp_path / "there"
    file.write_text("mine")
    async with installed(f"sqlite:///{tmp_path / 'store.db'}", tmp_path) as app:
        with pytest.raises(BackupExists):
            await app.storage.back_up(file)
        with pytest.raises(BackupFailed):
            await app.storage.back_up(tmp_path / "no" / "where")
    assert file.read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == ["store.db", "there"]


@pytest.mark.integration
async def test_a_failed_backup_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "monday.backup"
    async with installed(f"sqlite:///{tmp_path / 'store.db'}", tmp_path) as app:
        await (await app.start(Workflow.parse(flows.CHAIN), {})).settled()

        def breaks(stop: object, parts: Iterator[TransferPart]) -> Iterator[TransferPart]:
            yield next(parts)
            raise BackupFailed("the disk is gone")

        monkeypatch.setattr(backup, "until", breaks)
        with pytest.raises(BackupFailed):
            await app.storage.back_up(file)
    assert [name for name in os.listdir(tmp_path) if "monday" in name] == []


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_failed_restore_leaves_the_store_empty(
    address: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    file = tmp_path / "monday.backup"
    async with installed(address("sqlite"), tmp_path) as app:
        await lived_in(app, app.settings)
        await app.storage.back_up(file)
    goal = address(kind)

    def refuses(*_: object) -> None:
        raise BackupRefused("no room for the files")

    async with installed(goal, tmp_path) as app:
        with monkeypatch.context() as patch:
            patch.setattr(backup, "put_files", refuses)
            with pytest.raises(BackupRefused):
                await app.storage.restore(file)
        assert everything(app).keys() <= {"last_version"}
        await app.storage.restore(file)
        with pytest.raises(StoreNotEmpty):
            await app.storage.restore(file)
        assert len([one async for one in summaries(app.context, ExecutionQuery())]) == 3


@pytest.mark.integration
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE rows SET data = x'00'",
        "UPDATE kept_files SET data = x'00'",
        "DELETE FROM blobs",
        "UPDATE memory SET value = x'00'",
        "DELETE FROM rows WHERE no = 2",
    ],
)
async def test_a_changed_backup_is_refused_before_any_write(tmp_path: Path, change: str) -> None:
    file = tmp_path / "monday.backup"
    async with installed(f"sqlite:///{tmp_path / 'store.db'}", tmp_path) as app:
        await lived_in(app, app.settings)
        await app.storage.back_up(file)
    with sqlite3.connect(file) as connection:
        connection.create_function("seal", -1, lambda *_: b"")
        connection.execute(change)
    connection.close()
    async with installed(f"sqlite:///{tmp_path / 'new.db'}", tmp_path) as app:
        with pytest.raises(BackupRefused):
            await app.storage.restore(file)
        assert everything(app).keys() <= {"last_version"}


@pytest.mark.integration
async def test_a_file_that_is_not_a_backup_is_refused(tmp_path: Path) -> None:
    """A file of another program, an open store, and a backup of a newer version."""
    async with installed(f"sqlite:///{tmp_path / 'store.db'}", tmp_path) as app:
        await app.save(Workflow.parse(flows.CHAIN))
        await app.storage.back_up(tmp_path / "newer")
    (tmp_path / "text").write_text("hello " * 1000)
    with sqlite3.connect(tmp_path / "newer") as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    async with installed(f"sqlite:///{tmp_path / 'new.db'}", tmp_path) as app:
        for name, refusal in {"text": BackupRefused, "store.db": BackupRefused, "newer": StoreNewer}.items():
            with pytest.raises(refusal):
                await app.storage.restore(tmp_path / name)


@pytest.mark.integration
async def test_a_damaged_store_is_not_backed_up(tmp_path: Path) -> None:
    """A broken hash chain or a broken seal must not be copied as if it were valid."""
    path = tmp_path / "store.db"
    async with installed(f"sqlite:///{path}", tmp_path) as app:
        await lived_in(app, app.settings)
        await app.store.memory.put("user", "ann", "small", 1)
    for number, change in enumerate(
        ("UPDATE memory SET value = x'32' WHERE key = 'small'", "UPDATE rows SET at = at + 1 WHERE no = 1")
    ):
        with sqlite3.connect(path) as connection:
            connection.execute("DROP TRIGGER IF EXISTS memory_resealed")
            connection.execute(change)
        connection.close()
        async with installed(f"sqlite:///{path}", tmp_path) as app:
            with pytest.raises(StoreDamaged if number == 0 else BackupFailed):
                await app.storage.back_up(tmp_path / "no.backup")
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE memory SET value = x'31' WHERE key = 'small'")
        connection.close()
    assert not (tmp_path / "no.backup").exists()


@pytest.mark.integration
async def test_a_backup_with_files_needs_a_directory(tmp_path: Path) -> None:
    file = tmp_path / "monday.backup"
    async with installed(f"sqlite:///{tmp_path / 'store.db'}", tmp_path) as app:
        await lived_in(app, app.settings)
        await app.storage.back_up(file)
    async with Pointsman(f"sqlite:///{tmp_path / 'new.db'}", settings=Settings()) as app:
        with pytest.raises(BackupRefused, match="1 files of executions"):
            await app.storage.restore(file)
        assert await app.executions() == []


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_an_empty_store_is_not_backed_up_because_it_may_be_the_wrong_one(
    address: Address, tmp_path: Path, kind: str
) -> None:
    async with installed(address(kind), tmp_path) as app:
        with pytest.raises(BackupFailed, match="empty"):
            await app.storage.back_up(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


async def test_a_store_in_memory_is_not_backed_up(tmp_path: Path) -> None:
    async with Pointsman("memory:", settings=Settings()) as app:
        with pytest.raises(StoreCopyUnsupported):
            await app.storage.back_up(tmp_path / "nothing")
