"""An isolated command line for every test: an empty directory, no settings, no keys, a store of its own."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pointsman.cli.error_boundary import run_guarded
from pointsman.models.provider import KEYS_OF_PROVIDERS
from tests import postgres


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command: exit code, standard output, standard error."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON value."""
        return json.loads(self.out)


Prompt = Callable[..., CommandResult]


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory; all files of the command line are in it."""
    for name in [*os.environ]:
        if name.startswith("POINTSMAN_") or name in KEYS_OF_PROVIDERS:
            monkeypatch.delenv(name)
    monkeypatch.setenv("POINTSMAN_MODEL", "scripted")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


@pytest.fixture
def prompt(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Prompt:
    """`prompt("run", "flow.yaml")` runs the command in this process."""

    def run(*arguments: str, stdin: str | bytes = "") -> CommandResult:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        capsys.readouterr()
        code = run_guarded(arguments)
        out, err = capsys.readouterr()
        return CommandResult(code, out, err)

    return run


@pytest.fixture(params=["sqlite", "postgres"])
def any_store(request: pytest.FixtureRequest) -> list[str]:
    """The option that names a store, for each kind of store."""
    if request.param == "sqlite":
        return ["--store", "sqlite:///store.db"]
    postgres.need_binaries()
    return ["--store", request.getfixturevalue("postgres_url")]


@pytest.fixture
def no_scripted_model(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the request for the scripted model: files and flags of the test select the model."""
    monkeypatch.delenv("POINTSMAN_MODEL")
