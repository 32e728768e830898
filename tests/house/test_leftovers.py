"""Leftovers of a killed test run: the next run removes them and continues."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import postgres

NOBODY = 2**22 + 1
"""No process has this id: Linux assigns none above 2**22."""


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a server whose test run was killed."""
    monkeypatch.setattr(postgres, "TEMPORARY", tmp_path)
    folder = tmp_path / f"{postgres.PREFIX}{NOBODY}-left"
    (folder / "data").mkdir(parents=True)
    return folder


@pytest.mark.parametrize("pid", [str(NOBODY), "1", "", "none"])
def test_the_file_of_a_killed_server_names_no_living_process(left: Path, pid: str) -> None:
    (left / "data" / "postmaster.pid").write_text(f"{pid}\n{left}/data\n")
    postgres.clear_away()
    assert not left.exists()


def test_a_server_that_is_still_alive_is_stopped(cluster: postgres.Cluster, tmp_path: Path) -> None:
    assert cluster.alive
    postgres.take_away(cluster.folder)
    assert not cluster.alive
    assert not cluster.folder.exists()


def test_folders_of_a_running_test_run_are_kept(left: Path) -> None:
    own = left.rename(left.with_name(f"{postgres.PREFIX}{os.getpid()}-own"))
    postgres.clear_away()
    assert own.exists()


@pytest.mark.parametrize("folder", ["", ".", "work"])
def test_other_folders_are_not_deleted(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "work" / "kept"
    kept.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="no folder of a server"):
        postgres.take_away(Path(folder))
    assert kept.exists()
