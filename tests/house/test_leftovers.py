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
def test_a_server_that_was_killed_leaves_a_file_that_names_nobody_or_another(left: Path, pid: str) -> None:
    (left / "data" / "postmaster.pid").write_text(f"{pid}\n{left}/data\n")
    postgres.clear_away()
    assert not left.exists()


def test_a_server_that_lives_on_is_stopped(cluster: postgres.Cluster, tmp_path: Path) -> None:
    assert cluster.alive
    postgres.take_away(cluster.folder)
    assert not cluster.alive
    assert not cluster.folder.exists()


def test_what_belongs_to_a_run_under_way_is_left_alone(left: Path) -> None:
    own = left.rename(left.with_name(f"{postgres.PREFIX}{os.getpid()}-own"))
    postgres.clear_away()
    assert own.exists()


@pytest.mark.parametrize("folder", ["", ".", "work"])
def test_what_is_no_folder_of_a_server_is_not_taken_away(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "work" / "kept"
    kept.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="no folder of a server"):
        postgres.take_away(Path(folder))
    assert kept.exists()
