"""Concurrent verbs: several processes pause, resume, interrupt and cancel one execution at the same moment.

`POINTSMAN_LONG=1` runs 200 rounds. In any order, every command ends with a code that states its result, the store is
consistent, and a cancelled execution stays cancelled.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written

ROOT = Path(__file__).resolve().parents[2]
STORE = ["--store", "sqlite:///store.db", "--json"]
PATIENCE_S = 120.0
"""A command that takes longer hangs: each waits only for steps of some milliseconds."""
ROUNDS = 200 if os.environ.get("POINTSMAN_LONG") else 2
CODES = {0, 2, 3, 130}
"""Done, refused in this status, waiting or paused, stopped or cancelled; never an internal error."""
SCRIPT = "rules:\n  - {delay: 40ms, text: Said.}\n"


class PromptProcess:
    """A process with a prompt."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.standing_prompt"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.answers: queue.Queue[dict[str, object]] = queue.Queue()
        self.asked: list[str] = []
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.answers.put(json.loads(line))

    def tell(self, *arguments: str) -> None:
        assert self.process.stdin is not None
        self.asked.append(arguments[0])
        self.process.stdin.write(json.dumps(arguments) + "\n")
        self.process.stdin.flush()

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def heard(self) -> list[tuple[str, object]]:
        """Return the results of all commands."""
        found: list[tuple[str, object]] = []
        while self.asked:
            try:
                answer = self.answers.get(timeout=PATIENCE_S)
            except queue.Empty:
                pytest.fail(f"{self.asked[0]!r} hangs")
            found.append((self.asked.pop(0), answer["code"]))
        return found


@pytest.fixture
def standing() -> Iterator[list[PromptProcess]]:
    prompts = [PromptProcess() for _ in range(3)]
    yield prompts
    for one in prompts:
        with suppress(BrokenPipeError), one.process:
            one.process.kill()
            one.listener.join()


def begun(prompt: Prompt, known: set[str]) -> str:
    """Return the execution that another process has started."""
    while True:
        if Path("store.db").exists():
            listed = prompt("list", *STORE)
            names: list[str] = [one["executionId"] for one in listed.json["executions"]] if listed.code == 0 else []
            found = {*names} - known
            if found:
                return found.pop()


@pytest.mark.requirement("S1-87")
def test_concurrent_commands_end_and_leave_a_valid_store(prompt: Prompt, standing: list[PromptProcess]) -> None:
    written("chain.yaml", flows.CHAIN)
    written("script.yaml", SCRIPT)
    random, known = Random(7), set[str]()
    for _ in range(ROUNDS):
        running, *others = random.sample(standing, 3)
        running.tell("run", "chain.yaml", "--script", "script.yaml", *STORE)
        execution = begun(prompt, known)
        known.add(execution)
        for verb in random.sample(["pause", "resume", "cancel", "resume", "pause", "ctrl-c"], 4):
            one = random.choice(others)
            if verb == "ctrl-c":
                running.interrupt()
            else:
                script = ["--script", "script.yaml"] if verb == "resume" else []
                one.tell(verb, execution, *script, *STORE)
        became = [told for one in standing for told in one.heard()]
        assert {code for _, code in became} <= CODES, became
        status = prompt("show", execution, *STORE).json["status"]
        assert status != "cancelled" or prompt("cancel", execution, *STORE).code == 0, "a second time does nothing"
        if status not in ("completed", "cancelled"):
            assert prompt("cancel", execution, *STORE).json["status"] == "cancelled"
    assert prompt("verify", *STORE).code == 0
