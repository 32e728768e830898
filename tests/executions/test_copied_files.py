"""Files of executions are in exports, imports and forks; imports accept no other files."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from tempfile import gettempdir
from uuid import uuid4

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.executions.fork_migrate_replay import COPY_S_MAX
from pointsman.operations import archive
from pointsman.operations.archive import ImportRefused
from pointsman.runtime import local
from pointsman.settings import Settings
from pointsman.store.errors import StoreFull
from pointsman.tools.files import ArtifactFolder, FileSettings
from pointsman.values import ExecutionId, Json, JsonObject
from tests.installation import HandClock, opened
from tests.operations.test_export import change, exported, forged, full

pytestmark = pytest.mark.integration

BINARY = b"\xff\0\1"
TEXT = "Größe"
EVIL = Path(gettempdir()) / f"evil-{uuid4().hex}"


def writing() -> Workflow:
    """Return a workflow that stores two files and then asks a person."""
    files: list[JsonObject] = [
        {"path": "r/a.md", "text": TEXT},
        {"path": "a.bin", "base64": base64.b64encode(BINARY).decode()},
    ]
    nodes: list[Json] = [
        {"id": f"write{n}", "type": "tool", "config": {"tool": "write_file", "parameters": one}}
        for n, one in enumerate(files)
    ]
    nodes.append({"id": "gate", "type": "human", "config": {"message": "go on?", "options": ["approve"]}})
    nodes.append({"id": "read", "type": "tool", "config": {"tool": "read_file", "parameters": {"path": "r/a.md"}}})
    ids = ["write0", "write1", "gate", "read"]
    edges: list[Json] = [{"source": one, "target": other} for one, other in pairwise(ids)]
    return Workflow.of({"id": "files", "nodes": nodes, "edges": edges, "output": {"read": "nodes.read.text"}})


def calling() -> Workflow:
    return Workflow.of({"id": "top", "nodes": [{"id": "call", "type": "workflow", "config": {"workflow": "files"}}]})


def kept(directory: Path, **bounds: int) -> Settings:
    return Settings.model_validate({"files": {"directory": str(directory / "files"), **bounds}})


def files_of(directory: Path, execution: str) -> dict[str, bytes]:
    jail = ArtifactFolder(FileSettings(directory=str(directory / "files")), execution)
    return {one.path: jail.read(one.path) for one in jail.files()}


def directories(directory: Path) -> list[str]:
    """Return the directories of executions with files."""
    root = directory / "files"
    return [one.name for one in root.iterdir()] if root.exists() else []


def anything_evil(directory: Path) -> bool:
    return any("evil" in one.name for one in directory.rglob("*")) or EVIL.exists()


async def written(app: Pointsman) -> ExecutionId:
    execution = await app.start(writing())
    assert await execution.settled() == "waiting"
    return execution.id


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    """Export an execution of another store with its files."""
    one = tmp_path / "one"
    one.mkdir()
    async with opened(one, HandClock(), settings=kept(one)) as app:
        return await exported(app, await written(app), tmp_path)


async def test_an_import_includes_files_of_sub_workflows(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    async with opened(one, HandClock(), settings=kept(one)) as app:
        await app.save(writing())
        top = await app.start(calling())
        await top.settled()
        file = await exported(app, top.id, tmp_path)
        assert await app.storage.left_out(top.id) == []
    async with opened(other, HandClock(), settings=kept(other)) as app:
        brought = await app.storage.bring_in(file, name=app.storage.new_id())
        (child,) = [one.execution for one in await app.executions() if one.parent == brought]
    assert files_of(other, child) == {"r/a.md": TEXT.encode(), "a.bin": BINARY}
    async with opened(other, HandClock(), settings=kept(other)) as app:
        handle = await app.open(brought)
        await handle.settled()
        await handle.answer("gate", "approve")
        assert await handle.settled() == "completed"
        assert (await app.view(child))["output"] == {"read": TEXT}


async def test_a_too_large_file_is_listed_with_its_digest_and_omitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "FILE_BYTES_MAX", 5)
    async with opened(tmp_path, HandClock(), settings=kept(tmp_path)) as app:
        execution = await written(app)
        file = await exported(app, execution, tmp_path)
        assert await app.storage.left_out(execution) == [
            {"executionId": execution, "path": "r/a.md", "bytes": len(TEXT.encode())}
        ]
        lines = [json.loads(line) for line in file.read_bytes().splitlines()]
        (named,) = [one for one in lines if one.get("file") == "r/a.md"]
        digest = hashlib.sha256(TEXT.encode()).hexdigest()
        assert named == {"execution": execution, "file": "r/a.md", "bytes": len(TEXT.encode()), "sha256": digest}
        copy = await app.storage.bring_in(file, name=app.storage.new_id())
    assert files_of(tmp_path, copy) == {"a.bin": BINARY}


async def test_the_total_size_of_exported_files_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "FILES_BYTES_MAX", 8)
    async with opened(tmp_path, HandClock(), settings=kept(tmp_path)) as app:
        execution = await written(app)
        assert [one["path"] for one in await app.storage.left_out(execution)] == ["r/a.md"]


def of_files(how: Callable[[list[dict[str, Json]]], object]) -> Callable[[bytes], bytes]:
    return forged(lambda lines: how([line for line in lines if "file" in line]))


HOSTILE: dict[str, Callable[[bytes], bytes]] = {
    "up": of_files(lambda files: files[0].update(file="../evil")),
    "absolute": of_files(lambda files: files[0].update(file=str(EVIL))),
    "an odd name": of_files(lambda files: files[0].update(file="a\u0000b")),
    "twice": of_files(lambda files: files[0].update(file=files[1]["file"])),
    "inside of a file": of_files(lambda files: files[0].update(file=f"{files[1]['file']}/inner")),
    "other bytes": of_files(lambda files: files[0].update(text="other", base64=None)),
    "no base64": of_files(lambda files: files[0].update(base64="!")),
    "a stranger's": of_files(lambda files: files[0].update(execution="exec-other")),
    "an unknown member": of_files(lambda files: files[0].update(mode=511)),
    "a letter changed": lambda text: text.replace(TEXT.encode(), "Grösse".encode()),
}


@pytest.mark.parametrize("what", HOSTILE)
async def test_hostile_export_files_import_nothing(what: str, file: Path, tmp_path: Path) -> None:
    change(file, HOSTILE[what])
    async with opened(tmp_path, HandClock(), settings=kept(tmp_path)) as app:
        with pytest.raises(ImportRefused) as refused:
            await app.storage.bring_in(file)
        assert refused.value.hint
        assert await app.executions() == []
    assert directories(tmp_path) == []
    assert not anything_evil(tmp_path)


async def test_an_import_without_a_directory_or_space_is_refused(file: Path, tmp_path: Path) -> None:
    for settings in (
        Settings(),
        kept(tmp_path, files_max=1),
        kept(tmp_path, bytes_max=9),
        kept(tmp_path, file_bytes_max=5),
    ):
        async with opened(tmp_path, HandClock(), settings=settings) as app:
            with pytest.raises(ImportRefused) as refused:
                await app.storage.bring_in(file)
            assert "[files]" in refused.value.hint
            assert await app.executions() == []


async def test_an_import_does_not_overwrite_files(file: Path, tmp_path: Path) -> None:
    settings = kept(tmp_path / "one")
    async with opened(tmp_path, HandClock(), settings=settings) as app:
        with pytest.raises(ImportRefused, match="already"):
            await app.storage.bring_in(file)
        copy = await app.storage.bring_in(file, name=app.storage.new_id())
    assert files_of(tmp_path / "one", copy)["a.bin"] == BINARY


async def test_files_of_a_crashed_import_are_deleted_by_gc_or_a_repeated_import(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, settings = HandClock(), kept(tmp_path)
    execution = ""
    for again in (False, True):
        async with opened(tmp_path, clock, settings=settings) as app:
            with monkeypatch.context() as patched:
                patched.setattr("pointsman.operations.export_import.Passivation", _Dying)
                with pytest.raises(StoreFull):
                    await app.storage.bring_in(file)
            assert directories(tmp_path) != [], "files came before the crash"
        async with opened(tmp_path, clock, settings=settings) as app:
            if again:
                execution = await app.storage.bring_in(file)
                continue
            clock.move(COPY_S_MAX + 1)
            assert (await app.storage.collect()).copies == 1
            assert directories(tmp_path) == []
    assert files_of(tmp_path, execution) == {"r/a.md": TEXT.encode(), "a.bin": BINARY}


class _Dying:
    def __init__(self, *_: object) -> None:
        raise StoreFull("no room")


async def test_a_fork_has_its_own_files(tmp_path: Path) -> None:
    settings = kept(tmp_path)
    async with opened(tmp_path, HandClock(), settings=settings) as app:
        origin = await written(app)
        copy = await app.fork(origin)
        await copy.settled()
        await app.open(origin)
        await (await app.open(origin)).cancel()
        await app.storage.delete(origin)
    async with opened(tmp_path, HandClock(), settings=settings) as app:
        assert files_of(tmp_path, copy.id) == {"r/a.md": TEXT.encode(), "a.bin": BINARY}
        handle = await app.open(copy.id)
        await handle.answer("gate", "approve")
        assert await handle.output() == {"read": TEXT}


async def test_files_of_a_crashed_fork_are_deleted_by_gc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, settings = HandClock(), kept(tmp_path)
    async with opened(tmp_path, clock, settings=settings) as app:
        origin = await written(app)
        with monkeypatch.context() as patched:
            patched.setattr(local.Driver, "deliver", full)
            with pytest.raises(StoreFull):
                await app.fork(origin)
        assert len(directories(tmp_path)) == 2
    clock.move(COPY_S_MAX + 1)
    async with opened(tmp_path, clock, settings=settings) as app:
        assert (await app.storage.collect()).copies == 1
    assert directories(tmp_path) == [origin]
