"""One whole execution at the command line: run, follow, answer a gate, and resume after a crash."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Prompt, own_place, prompt
from tests.cli.flows import written

pytestmark = pytest.mark.integration

__all__ = ["own_place", "prompt"]

THREE = """\
pointsman: 1
id: three
entry: write
input: {type: object}
nodes:
  - {id: write, type: agent, config: {prompt: Write.}, outputs: {text: result}}
  - {id: review, type: human, config: {message: "Send it?", options: [{value: approve}]}}
  - {id: send, type: agent, config: {prompt: "Send {text}."}, outputs: {sent: result}}
edges:
  - {source: write, target: review}
  - {source: review, target: send, condition: {type: label, label: approve}}
"""
SLOW = "rules: [{node: write, text: Dear Ada}, {node: send, visit: 1, text: gone, delay: %s}]"


def kinds(prompt: Prompt, execution: str) -> list[str]:
    return [json.loads(line)["kind"] for line in prompt("events", execution, "--jsonl").out.splitlines()]


@pytest.mark.requirement("S1-160", "S1-67", "S1-107", "S1-156", "S1-157")
def test_three_nodes_run_wait_for_a_person_crash_and_resume(prompt: Prompt, own_place: Path) -> None:
    written("three.yaml", THREE)
    written("slow.yaml", SLOW % "60s")
    begun = prompt("run", "three.yaml", "--script", "slow.yaml", "--json")
    execution = begun.json["executionId"]
    assert (begun.code, begun.json["status"], begun.json["path"]) == (3, "waiting", ["write"])
    assert kinds(prompt, execution)[:3] == ["started", "step_started", "step_succeeded"]
    assert kinds(prompt, execution)[-1] == "gate_opened"

    killed = subprocess.Popen(
        [sys.executable, "-m", "pointsman", "answer", execution, "review", "approve"],
        cwd=own_place,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while killed.poll() is None and kinds(prompt, execution)[-1] != "step_started":
        pass
    assert killed.poll() is None, "it ended before it could be killed"
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    left = prompt("show", execution, "--json").json
    assert (left["status"], left["path"]) == ("stopped", ["write", "review"])

    written("fast.yaml", "rules: [{node: send, text: gone}, {fail: 400}]")
    again = prompt("resume", execution, "--script", "fast.yaml", "--json")
    assert (again.code, again.json["status"], again.json["state"]) == (
        0,
        "completed",
        {"text": "Dear Ada", "sent": "gone"},
    )
    assert again.json["path"] == ["write", "review", "send"]
    assert kinds(prompt, execution).count("gate_closed") == 1
    assert prompt("show", execution, "--json").json["output"] == "gone"
