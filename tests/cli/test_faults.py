"""Real faults under a store: a full or read-only disk, files of other programs and of newer versions. Nothing is
lost."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from pointsman.store.errors import StoreFull
from pointsman.testing.journals import ONE, opened, row_of, rows_in
from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written


def mount(*arguments: str) -> bool:
    try:
        return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.fixture
def disk(tmp_path: Path) -> Generator[Path, None, None]:
    """A disk of two megabytes, half of it used."""
    place = tmp_path / "disk"
    place.mkdir()
    if not mount("-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)):
        pytest.skip("a disk of its own can only be mounted by root, on Linux")
    try:
        (place / "ballast").write_bytes(b"x" * 1_000_000)
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def make_room(disk: Path) -> None:
    (disk / "ballast").unlink()


async def test_a_full_disk_allows_reads_and_loses_nothing_acknowledged(disk: Path) -> None:
    async with opened(f"sqlite:///{disk}/store.db") as store:
        acknowledged, refused = 0, None
        while refused is None:
            try:
                await store.journal.append(ONE, row_of(acknowledged + 1, "text " * 300 + str(acknowledged)))
                acknowledged += 1
            except StoreFull as why:
                refused = why
        assert "Free space" in refused.hint
        assert len(await rows_in(store.journal, ONE)) == acknowledged > 10
        with pytest.raises(StoreFull):
            await store.journal.append(ONE, row_of(acknowledged + 1, "x" * 1_900))
        make_room(disk)
        await store.journal.append(ONE, row_of(acknowledged + 1))
        assert len(await rows_in(store.journal, ONE)) == acknowledged + 1
        assert await store.verify() == []
    async with opened(f"sqlite:///{disk}/store.db") as store:
        assert len(await rows_in(store.journal, ONE)) == acknowledged + 1
        assert await store.verify() == []


def test_a_command_reports_a_full_disk_and_works_after_space_is_freed(prompt: Prompt, disk: Path) -> None:
    store = ("--store", f"sqlite:///{disk}/store.db")
    letter = written("letter.yaml", flows.APPROVAL)
    execution = prompt("run", letter, "-i", "goal=x", "--json", *store).json["executionId"]
    with (disk / "more").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"y" * 4096)
        except OSError:
            pass
    full = prompt("run", letter, "-i", f"goal={'z' * 30_000}", "--json", *store)
    assert full.code == 1
    assert (full.json["errors"][0]["code"], "Free space" in full.json["errors"][0]["hint"]) == ("store-full", True)
    assert "Traceback" not in full.err
    # SQLite cannot even create the index of the log if no process has the store open.
    assert "[store-full]" in prompt("list", *store).err
    (disk / "more").unlink()
    make_room(disk)
    answered = prompt("answer", execution, "review", "approve", "--json", *store)
    assert (answered.code, answered.json["status"]) == (0, "completed")
    assert prompt("verify", *store).code == 0


def test_a_read_only_disk_is_reported_and_the_run_resumes_later(prompt: Prompt, disk: Path) -> None:
    make_room(disk)
    store = ("--store", f"sqlite:///{disk}/store.db")
    letter = written("letter.yaml", flows.APPROVAL)
    execution = prompt("run", letter, "-i", "goal=x", "--json", *store).json["executionId"]
    assert mount("-o", "remount,ro", str(disk))
    refused = prompt("answer", execution, "review", "approve", "--json", *store)
    assert refused.code == 1
    assert refused.json["errors"][0]["code"] == "store-read-only"
    assert str(disk) in refused.json["errors"][0]["hint"]
    assert mount("-o", "remount,rw", str(disk))
    assert prompt("answer", execution, "review", "approve", "--json", *store).json["status"] == "completed"


def newer(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


def foreign(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE guests (name TEXT)")
    connection.commit()
    connection.close()


def no_database(path: Path) -> None:
    path.write_text("Dear diary, " * 1000, encoding="utf-8")


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5_000])


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        (newer, ("store-newer",)),
        (foreign, ("store-foreign",)),
        (no_database, ("store-foreign",)),
        (cut_short, ("store-damaged",)),
    ],
)
def test_a_file_that_is_not_a_store_is_reported_and_not_changed(
    prompt: Prompt, change: Callable[[Path], None], codes: tuple[str, ...]
) -> None:
    path = Path("desk.db")
    store = ("--store", "sqlite:///desk.db")
    assert prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=x", *store).code == 3
    change(path)
    before = path.read_bytes()
    for command in (("list", "--json"), ("gc",), ("doctor",), ("export", "exec-x")):
        refused = prompt(*command, *store)
        assert refused.code == 1, command
        assert any(code in refused.err for code in codes), refused.err
        assert "Traceback" not in refused.err
    assert path.read_bytes() == before


def test_a_missing_directory_is_reported(prompt: Prompt) -> None:
    refused = prompt("list", "--json", "--store", "sqlite:///no/such/place/desk.db")
    assert refused.code == 1
    assert json.loads(refused.out)["errors"][0]["code"] == "store-missing"
