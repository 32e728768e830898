"""Stores are opened by their addresses; an error states why a store cannot be opened and what to do."""

from __future__ import annotations

import sqlite3
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from pointsman.errors import OperatorError
from pointsman.store import api as stores
from pointsman.store.api import open_store
from pointsman.store.errors import StoreClosed, StoreForeign, StoreMissing, StoreNewer, StoreUnknown
from pointsman.store.sqlite.connection import path_of
from pointsman.testing.journals import ONE, opened, row_of


async def test_an_unknown_kind_of_store_lists_the_known_ones() -> None:
    with pytest.raises(StoreUnknown) as refused:
        await open_store("mongodb://somewhere")
    assert isinstance(refused.value, OperatorError)
    assert "memory:" in refused.value.hint
    assert "sqlite:" in refused.value.hint


async def test_a_bare_path_is_refused_with_the_right_form() -> None:
    with pytest.raises(StoreUnknown) as refused:
        await open_store("pointsman.db")
    assert "sqlite:///pointsman.db" in refused.value.hint


async def test_other_packages_can_provide_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    found = EntryPoint("mine", "pointsman.store.memory:open_memory", stores.ENTRY_POINTS)

    def entry_points(*, group: str) -> EntryPoints:
        return EntryPoints([found]).select(group=group)

    monkeypatch.setattr(stores, "entry_points", entry_points)
    async with opened("mine:x") as store:
        assert store.warnings() == ["memory: nothing outlives this process"]


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///name.db", Path.cwd() / "name.db"),
        ("sqlite:////var/lib/name.db", Path("/var/lib/name.db")),
        ("sqlite:///~/name.db", Path.home() / "name.db"),
        ("sqlite:///with%20space.db", Path.cwd() / "with space.db"),
    ],
)
def test_an_address_names_a_file(url: str, path: Path) -> None:
    assert path_of(url) == path


@pytest.mark.parametrize("url", ["sqlite:", "sqlite://host/name.db", "sqlite:///", "sqlite:name.db"])
def test_an_address_without_a_file_is_refused(url: str) -> None:
    with pytest.raises(StoreMissing, match="names no file"):
        path_of(url)


@pytest.mark.integration
async def test_unusual_file_names_work(tmp_path: Path) -> None:
    async with opened(f"sqlite:///{tmp_path}/100%25 ü%3F%23.db") as store:
        await store.journal.append(ONE, row_of(1))
    assert (tmp_path / "100% ü?#.db").is_file()


@pytest.mark.integration
async def test_a_missing_directory_is_reported_by_name(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing) as refused:
        await open_store(f"sqlite:///{tmp_path}/no/such/store.db")
    assert f"{tmp_path}/no/such" in refused.value.hint


@pytest.mark.integration
async def test_a_file_that_is_not_a_database_is_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    file.write_bytes(b"the minutes of the last meeting, which are long enough to have a header " * 20)
    before = file.read_bytes()
    with pytest.raises(StoreForeign):
        await open_store(f"sqlite:///{file}")
    assert file.read_bytes() == before


@pytest.mark.integration
async def test_a_database_of_another_program_is_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE accounts (id)")
    other.close()
    with pytest.raises(StoreForeign, match="another application"):
        await open_store(f"sqlite:///{file}")
    other = sqlite3.connect(file)
    assert other.execute("SELECT name FROM sqlite_schema").fetchall() == [("accounts",)]
    other.close()


@pytest.mark.integration
async def test_a_store_of_a_newer_version_is_not_changed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    async with opened(url) as store:
        await store.journal.append(ONE, row_of(1))
    newer = sqlite3.connect(tmp_path / "store.db")
    newer.execute("PRAGMA user_version = 999")
    newer.close()
    with pytest.raises(StoreNewer, match="version 999") as refused:
        await open_store(url)
    assert "Upgrade" in refused.value.hint


@pytest.mark.integration
async def test_a_closed_store_is_reported(tmp_path: Path) -> None:
    store = await open_store(f"sqlite:///{tmp_path}/store.db")
    await store.close()
    await store.close()
    with pytest.raises(StoreClosed):
        await store.journal.append(ONE, row_of(1))
    with pytest.raises(StoreClosed):
        await store.journal.last(ONE)
