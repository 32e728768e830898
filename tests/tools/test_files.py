"""Files of an execution: no path, link, device or race leads out of its directory."""

from __future__ import annotations

import base64
import os
import stat
from pathlib import Path

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.engine.failures import Failure
from pointsman.settings import Settings
from pointsman.tools.files import ArtifactFolder, FileSettings
from pointsman.tools.tool import ToolFailed
from pointsman.values import Json, JsonObject

ODD = [
    "",
    ".",
    "..",
    "/etc/passwd",
    "../other/file",
    "a/../../other",
    "a//b",
    "a/./b",
    "a/",
    "./a",
    "a\0b",
    "a\nb",
    "a\\b",
    "\ud800",
    "x" * 201,
    "ä" * 101,
    "/".join("a" * 17),
    ".unfinished-1",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "files"


def jail(root: Path, execution: str = "exec-1", **bounds: int) -> ArtifactFolder:
    return ArtifactFolder(FileSettings(directory=str(root), **bounds), execution)


def refusal_of_read(of: ArtifactFolder, path: str) -> Failure:
    with pytest.raises(ToolFailed) as caught:
        of.read(path)
    return caught.value.failure


def refusal_of_write(of: ArtifactFolder, path: str, data: bytes = b"x") -> Failure:
    with pytest.raises(ToolFailed) as caught:
        of.write(path, data)
    return caught.value.failure


def test_a_written_file_is_read_and_listed(root: Path) -> None:
    files = jail(root)
    files.write("notes/a.txt", b"one")
    files.write("b.bin", b"\xff\0")
    files.write("notes/a.txt", b"three")
    assert files.read("notes/a.txt") == b"three"
    assert [*map(tuple, files.files())] == [("b.bin", 2), ("notes/a.txt", 5)]
    assert jail(root, "exec-2").files() == []
    assert stat.S_IMODE((root / "exec-1").stat().st_mode) == 0o700
    files.remove()
    files.remove()
    assert (files.files(), list(root.iterdir())) == ([], [])


@pytest.mark.parametrize("path", ODD)
def test_a_path_that_is_not_plain_and_relative_is_refused(root: Path, path: str) -> None:
    (root / "other").mkdir(parents=True)
    (root / "other" / "file").write_text("of another execution")
    files = jail(root)
    files.write("a/b", b"x")
    assert refusal_of_read(files, path).code == "file-refused"
    assert refusal_of_write(files, path).code == "file-refused"
    assert (root / "other" / "file").read_text() == "of another execution"


def test_links_are_not_followed_at_any_position(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    files = jail(root)
    files.write("a/real", b"x")
    mine = root / "exec-1"
    (mine / "link").symlink_to(outside / "secret")
    (mine / "way").symlink_to(outside)
    (mine / "up").symlink_to("..")
    os.link(outside / "secret", mine / "twin")
    for path in ("link", "way/secret", "up/exec-1/a/real", "twin"):
        assert refusal_of_read(files, path).code == "file-refused"
    for path in ("link", "way/new", "up/new"):
        assert refusal_of_write(files, path).code == "file-refused"
    files.write("twin", b"mine")  # The new file replaces the name; the other file keeps its content.
    assert (outside / "secret").read_text() == "secret"
    assert [one.name for one in outside.iterdir()] == ["secret"]
    assert [file.path for file in files.files()] == ["a/real", "twin"]
    files.remove()
    assert (outside / "secret").read_text() == "secret"


def test_a_linked_directory_of_an_execution_is_refused(root: Path, tmp_path: Path) -> None:
    root.mkdir()
    (root / "exec-1").symlink_to(tmp_path)
    assert refusal_of_write(jail(root), "a").code == "file-refused"
    assert not (tmp_path / "a").exists()


def test_devices_pipes_and_directories_are_refused_as_files(root: Path) -> None:
    files = jail(root)
    files.write("a/real", b"x")
    mine = root / "exec-1"
    os.mkfifo(mine / "pipe")  # Opening it would wait for a writer.
    if os.getuid() == 0:
        os.mknod(mine / "zero", stat.S_IFCHR | 0o600, os.makedev(1, 5))
        assert refusal_of_read(files, "zero").code == "file-refused"
    for path in ("pipe", "a"):
        assert refusal_of_read(files, path).code == "file-refused"
        assert refusal_of_write(files, path).code == "file-refused"
    assert refusal_of_write(files, "a/real/below").code == "file-refused"
    assert refusal_of_read(files, "none").code == "file-missing"
    assert refusal_of_read(files, "no/where").code == "file-missing"
    assert refusal_of_read(jail(root, "never"), "none").code == "file-missing"


def test_quotas_hold_and_a_refused_write_keeps_the_old_file(root: Path) -> None:
    files = jail(root, file_bytes_max=100, bytes_max=250, files_max=3)
    files.write("a", b"x" * 100)
    files.write("b", b"x" * 100)
    assert refusal_of_write(files, "a", b"y" * 101).code == "file-quota"
    assert refusal_of_write(files, "c", b"y" * 51).code == "file-quota"
    files.write("a", b"z" * 100)
    files.write("c", b"y")
    assert refusal_of_write(files, "d", b"").code == "file-quota"
    assert files.read("a") == b"z" * 100
    (root / "exec-1" / "large").write_bytes(b"x" * 101)
    assert refusal_of_read(files, "large").code == "file-quota"
    assert not [one for one in (root / "exec-1").iterdir() if one.name.startswith(".unfinished")]


@pytest.mark.parametrize("execution", ["../../etc", "/etc", ".", "..", "", "a/b", "x" * 500, "ä\0"])
def test_an_execution_id_is_not_used_as_a_path(root: Path, execution: str) -> None:
    files = jail(root, execution)
    files.write("a", b"x")
    (folder,) = root.iterdir()
    assert folder.name.startswith("x-")
    assert files.read("a") == b"x"


REPORT: JsonObject = {"path": "r/a.md", "text": "Größe"}
WORKFLOW: JsonObject = {
    "id": "report",
    "nodes": [
        {
            "id": "write",
            "type": "tool",
            "config": {"tool": "write_file", "parameters": {"path": "r/a.md", "text": "Größe"}},
        },
        {"id": "list", "type": "tool", "config": {"tool": "list_files"}, "outputs": {"listed": "result"}},
        {"id": "read", "type": "tool", "config": {"tool": "read_file", "parameters": {"path": "r/a.md"}}},
    ],
    "edges": [{"source": "write", "target": "list"}, {"source": "list", "target": "read"}],
    "output": {"listed": "listed", "read": "nodes.read.text"},
}


def installed(tmp_path: Path) -> Pointsman:
    settings = Settings.model_validate({"files": {"directory": str(tmp_path / "files")}})
    return Pointsman(f"sqlite:///{tmp_path}/store.db", settings=settings)


@pytest.mark.integration
async def test_an_execution_keeps_its_files_until_it_is_deleted(tmp_path: Path) -> None:
    async with installed(tmp_path) as app:
        execution = await app.start(Workflow.of(WORKFLOW))
        assert await execution.output() == {"listed": [{"path": "r/a.md", "bytes": 7}], "read": "Größe"}
        other = await app.start(Workflow.of(WORKFLOW))
        await other.settled()
    async with installed(tmp_path) as app:
        assert (await app.view(execution.id)).get("artifacts") == [{"path": "r/a.md", "bytes": 7}]
        await app.storage.delete(execution.id)
        assert [one.name for one in sorted((tmp_path / "files").iterdir())] == [other.id]
        assert len((await app.view(other.id)).get("artifacts", [])) == 1


@pytest.mark.integration
async def test_binary_files_are_passed_as_base64(tmp_path: Path) -> None:
    packed = base64.b64encode(b"\xff\0\1").decode()
    write: JsonObject = {"path": "a.bin", "base64": packed}
    nodes: list[Json] = [
        {"id": "write", "type": "tool", "config": {"tool": "write_file", "parameters": write}},
        {"id": "read", "type": "tool", "config": {"tool": "read_file", "parameters": {"path": "a.bin"}}},
    ]
    workflow = Workflow.of({"id": "w", "nodes": nodes, "edges": [{"source": "write", "target": "read"}]})
    async with installed(tmp_path) as app:
        assert await (await app.start(workflow)).output() == write
        write["base64"] = "no base64!"
        execution = await app.start(Workflow.of({"id": "w", "nodes": nodes[:1], "edges": []}))
        assert await execution.settled() == "failed"
        assert execution.state.outcome.failure is not None
        assert execution.state.outcome.failure.code == "tool-arguments"
