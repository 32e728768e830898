"""Unexpected exceptions become a report; output never contains secrets or tracebacks."""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from pathlib import Path

import pytest

from pointsman import __version__
from pointsman.cli import documents
from pointsman.cli.error_boundary import repeating_interrupts
from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("what nobody foresaw")

    monkeypatch.setattr(documents, "converted", fail)


@pytest.mark.usefixtures("broken")
def test_a_bug_prints_one_line_and_writes_a_report(prompt: Prompt, tmp_path: Path) -> None:
    printed = prompt("convert", written("chain.yaml", flows.CHAIN), "--to", "native")
    assert printed.code == 1
    assert printed.out == ""
    assert "bug [engine-bug] KeyError: 'what nobody foresaw'" in printed.err
    assert "Traceback" not in printed.err
    (report,) = tmp_path.glob("pointsman-bug-*.txt")
    assert str(report) in printed.err
    text = report.read_text(encoding="utf-8")
    assert __version__ in text
    assert "Traceback" in text


@pytest.mark.usefixtures("broken")
def test_debug_prints_the_whole_traceback(prompt: Prompt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_DEBUG", "1")
    assert "Traceback" in prompt("convert", written("chain.yaml", flows.CHAIN), "--to", "native").err


def test_version_and_help_exit_with_code_0(prompt: Prompt) -> None:
    assert prompt("--version").out == f"pointsman, version {__version__}\n"
    assert prompt("--help").code == 0
    assert "Usage: pointsman run" in prompt("run", "--help").out


def test_the_demo_runs_both_workflows_offline(prompt: Prompt) -> None:
    printed = prompt("demo")
    assert printed.code == 0
    assert "# Warehouse Optimization Proposal (REVISED)" in printed.out
    assert "Two companies in Oslo wait for a call" in printed.out
    assert printed.out.count("completed exec-") == 2
    assert "CEO + Research" in printed.out
    assert "--model openai:" in printed.out
    assert "export OPENAI_API_KEY=" in printed.out
    assert "\x1b" not in printed.out


def test_executions_of_the_demo_can_be_shown_afterwards(prompt: Prompt) -> None:
    printed = prompt("demo").out
    links = re.findall(r"http://127\.0\.0\.1:8000/executions/(exec-\S+)", printed)
    serve = next(line for line in printed.splitlines() if "pointsman serve" in line)
    said = shlex.split(serve)
    store = said[said.index("--store") + 1]
    assert [json.loads(prompt("show", one, "--json", "--store", store).out)["status"] for one in links] == [
        "completed",
        "completed",
    ]
    saved = json.loads(prompt("workflows", "list", "--saved", "--json", "--store", store).out)["workflows"]
    assert {one["id"] for one in saved} == {"agentforge", "2nChat"}


class InterruptedDestructor:
    """An object that receives Ctrl-C during its destruction."""

    def __del__(self) -> None:
        raise KeyboardInterrupt


class FailingDestructor:
    """An object whose destruction fails."""

    def __del__(self) -> None:
        raise ValueError("mine")


def test_ctrl_c_in_a_destructor_is_not_lost(capsys: pytest.CaptureFixture[str]) -> None:
    def destroy() -> None:
        InterruptedDestructor()
        for _ in range(500):
            time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt), repeating_interrupts():
        destroy()
    assert "Traceback" not in capsys.readouterr().err


def test_other_failures_of_destructors_are_reported_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []

    def keep(what: sys.UnraisableHookArgs) -> None:
        told.append(what.exc_type)

    monkeypatch.setattr(sys, "unraisablehook", keep)
    with repeating_interrupts():
        FailingDestructor()
    assert told == [ValueError]
