"""Unusual environments: closed or full streams, no colours, a deleted directory. Never a traceback."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written
from tests.cli.test_processes import SOURCES


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run `pointsman` with the redirections of a shell."""
    command = line.replace("pointsman", f"'{sys.executable}' -m pointsman", 1)
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    return subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("streams", "code"), [(">&-", 0), (">&- 2>&-", 0), ("<&-", 0)])
def test_a_closed_stream_counts_as_empty(streams: str, code: int) -> None:
    done = shell(f"pointsman list --json --store memory: {streams}")
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("command", ["list --json --store memory:", "schema"])
def test_an_unwritable_output_is_reported_in_one_line(command: str) -> None:
    done = shell(f"pointsman {command} > /dev/full")
    assert done.returncode == 1
    assert done.stderr == "error [output-unwritable] standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_no_color_disables_colours(
    *, no_color: str, coloured: bool, prompt: Prompt, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pty.openpty()
    monkeypatch.setenv("NO_COLOR", no_color)
    with open(theirs, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        assert prompt("show", "nobody").code == 2
        terminal.flush()
        told = os.read(ours, 10_000)
    os.close(ours)
    assert (b"unknown-execution" in told, b"\x1b[" in told) == (True, coloured)


def test_commands_work_in_a_deleted_working_directory(
    prompt: Prompt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    execution = prompt("run", written("chain.yaml", flows.CHAIN), "--json").json["executionId"]
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert prompt("show", execution, "--json").json["status"] == "completed"
    refused = prompt("list", "--store", "sqlite:///here.db", "--json")
    assert (refused.code, refused.json["errors"][0]["code"]) == (1, "store-missing")
    assert prompt("list", "--store", "sqlite:///~nobody-has-this-name/x.db").code == 1


def test_a_home_that_is_not_a_directory_is_reported_with_a_hint(
    prompt: Prompt, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, "/dev/null")
    refused = prompt("list")
    assert (refused.code, "--store sqlite:///file.db" in refused.err) == (1, True)
    assert prompt("list", "--store", "sqlite:///here.db").code == 0


@pytest.mark.parametrize(("folder", "said"), [("bin", "bin/pointsman"), ("elsewhere", "pointsman")])
def test_the_demo_prints_commands_that_work_from_its_directory(
    folder: str, said: str, own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SOURCES))
    monkeypatch.setenv("PATH", f"{own_place / 'elsewhere'}:{os.environ['PATH']}")
    program = own_place / folder / "pointsman"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom pointsman.cli import main\nmain()\n", "utf-8")
    program.chmod(0o755)
    printed = subprocess.run([said, "demo"], capture_output=True, text=True, check=True).stdout
    commands = [line.strip() for line in printed.splitlines() if line.startswith(f"  {said} ")]
    assert [line.split()[1] for line in commands] == ["serve", "run", "check", "run", "test"]
    shown = subprocess.run(["sh", "-c", f"{commands[0]} --help"], capture_output=True, text=True, check=False)
    assert shown.returncode == 0
    assert "--store" in shown.stdout
