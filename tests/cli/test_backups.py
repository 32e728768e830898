"""`pointsman backup` and `pointsman restore` as processes: beside a server under load, and killed in the middle."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from pointsman.app import Pointsman
from pointsman.settings import Settings
from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written
from tests.cli.test_processes import started
from tests.cli.test_serving import STORE
from tests.cli.test_serving_ends import serving
from tests.patience import PATIENCE_S

WAITS_S = 60


def test_a_restored_execution_continues(prompt: Prompt) -> None:
    execution = prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=ships", *STORE, "--json").json[
        "executionId"
    ]
    made = prompt("backup", "monday.backup", *STORE, "--json")
    assert (made.code, made.json["executions"], made.json["file"]) == (0, 1, "monday.backup")
    there = ["--store", "sqlite:///there.db"]
    assert prompt("restore", "monday.backup", *there).code == 0
    assert prompt("answer", execution, "review", "approve", *there).code == 0
    assert prompt("show", execution, *STORE, "--json").json["status"] == "waiting", "the old store is as it was"
    assert prompt("verify", *there).code == 0


def test_impossible_backups_and_restores_are_refused(prompt: Prompt) -> None:
    prompt("list", *STORE)
    Path("there").write_text("mine")
    for command, code, word in (
        (("backup", "there", *STORE), 2, "[backup-exists]"),
        (("backup", "no/where", *STORE), 1, "[backup-failed]"),
        (("backup", "x", "--store", "memory:"), 1, "[store-copy-unsupported]"),
        (("backup", "x", "--store", "sqlite:///misspelt.db"), 1, "the store is empty"),
        (("restore", "none", *STORE), 2, "[file-unreadable]"),
        (("restore", "there", *STORE), 2, "[backup-refused]"),
        (("backup", "", *STORE), 2, "is empty"),
    ):
        printed = prompt(*command)
        assert (printed.code, word in printed.err) == (code, True), printed.err
    prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=ships", *STORE)
    assert prompt("backup", "full", *STORE).code == 0
    refused = prompt("restore", "full", *STORE)
    assert (refused.code, "[store-not-empty]" in refused.err) == (1, True)


def test_a_backup_of_a_busy_server_contains_whole_executions(prompt: Prompt, any_store: list[str]) -> None:
    """It contains everything that was acknowledged before it began, and its contents are consistent."""
    with serving(any_store) as (_, address), httpx2.Client(base_url=address, timeout=PATIENCE_S) as client:
        client.post("/api/workflows", content=flows.CHAIN)

        def begin(number: int) -> list[str]:
            replies = [client.post("/api/workflows/chain/execute", json={"input": {}}) for _ in range(number)]
            return [reply.json()["executionId"] for reply in replies]

        before = begin(8)
        with started("backup", "load.backup", "--json", *any_store) as process:
            begin(8)
            out, err = process.communicate(timeout=WAITS_S)
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["executions"] >= len(before)
    there = ["--store", "sqlite:///there.db"]
    assert prompt("restore", "load.backup", *there).code == 0
    listed = {one["executionId"] for one in prompt("list", "--limit", "100", "--json", *there).json["executions"]}
    assert {*before} <= listed
    for execution in before:
        if prompt("show", execution, "--json", *there).json["status"] in {"running", "stopped"}:
            assert prompt("resume", execution, "-q", *there).code == 0
        assert prompt("show", execution, "--json", *there).json["path"] == ["first", "second", "third"]
    assert prompt("verify", *there).code == 0


def killed(process: subprocess.Popen[str], when: Callable[[], bool]) -> None:
    """Kill the process as soon as the condition holds."""
    with process:
        while not when():
            assert process.poll() is None, process.communicate()
        process.kill()


@pytest.fixture
def filled(prompt: Prompt) -> str:
    """Create a store that takes long to copy; return its execution."""

    async def fill() -> None:
        async with Pointsman(STORE[1], settings=Settings()) as app:
            for name in "abcdefgh":
                await app.store.memory.put("shared", "all", name, [f"{name} harbour {tide}" for tide in range(20_000)])

    asyncio.run(fill())
    return str(prompt("run", written("chain.yaml", flows.CHAIN), *STORE, "--json").json["executionId"])


def test_a_killed_backup_or_restore_leaves_nothing_partial_and_can_be_repeated(prompt: Prompt, filled: str) -> None:
    unfinished = Path(".m.backup.unfinished")
    killed(started("backup", "m.backup", *STORE), lambda: unfinished.exists() and unfinished.stat().st_size > 0)
    assert not Path("m.backup").exists()
    assert prompt("backup", "m.backup", *STORE).code == 0
    assert not unfinished.exists()

    there, log = ["--store", "sqlite:///there.db"], Path("there.db-wal")
    killed(started("restore", "m.backup", *there), lambda: log.exists() and log.stat().st_size > 1_000_000)
    assert prompt("list", *there, "--json").json == {"executions": []}
    assert prompt("restore", "m.backup", *there).code == 0
    assert prompt("show", filled, *there, "--json").json["status"] == "completed"
    assert prompt("verify", *there).code == 0
