"""Workers of a PostgreSQL store during outages of the server."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written
from tests.cli.test_processes import QUICK, SLOW_SECOND, started
from tests.postgres import Cluster, own_cluster

WAITS_S = 60


@pytest.fixture(scope="module")
def server() -> Iterator[Cluster]:
    """A server that these tests stop and start; each test has its own schema."""
    yield from own_cluster()


@contextmanager
def going(*arguments: str) -> Generator[subprocess.Popen[str], None, None]:
    """Run a command until the end of the block."""
    with started(*arguments) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str], word: str) -> str:
    """Return the line on standard error that contains the word."""
    assert process.stderr is not None
    for line in process.stderr:
        if word in line:
            return line
    pytest.fail(f"it ended without saying {word!r}")


def in_the_middle(prompt: Prompt, process: subprocess.Popen[str], store: list[str]) -> str:
    """Return the execution once its second step has begun."""
    execution = ""
    while '"step": "second"' not in prompt("events", execution or "none", "--jsonl", *store).out:
        assert process.poll() is None, process.communicate()
        execution = (prompt("list", *store).out.split() or [""])[0]
    return execution


def killed_run(prompt: Prompt, store: list[str]) -> str:
    """Return an execution whose process died in its second step."""
    prompt("list", *store)  # Create the tables.
    slow = written("slow.yaml", SLOW_SECOND)
    with going("run", written("chain.yaml", flows.CHAIN), "--script", slow, *store) as process:
        return in_the_middle(prompt, process, store)


def until(prompt: Prompt, execution: str, status: str, store: list[str], keeper: subprocess.Popen[str]) -> None:
    while prompt("show", execution, "--json", *store).json["status"] != status:
        assert keeper.poll() is None, keeper.communicate()


@pytest.mark.requirement("S1-157")
def test_a_worker_resumes_executions_of_a_killed_process_and_ends_on_a_signal(
    prompt: Prompt, postgres_url: str
) -> None:
    store = ["--store", postgres_url]
    execution = killed_run(prompt, store)
    with going("worker", "--script", written("quick.yaml", QUICK), *store) as keeper:
        said(keeper, "leading postgresql://")
        until(prompt, execution, "completed", store, keeper)
        refused = prompt("worker", *store)
        assert (refused.code, "[leader-exists]" in refused.err) == (1, True)
        keeper.send_signal(signal.SIGTERM)
        _, last = keeper.communicate(timeout=WAITS_S)
    assert (keeper.returncode, last.endswith("stopped\n")) == (0, True)
    shown = prompt("show", execution, "--json", *store).json
    assert shown["path"] == ["first", "second", "third"]
    assert shown["state"]["a"] == "One.", "what had ended was not done again"
    assert prompt("verify", *store).code == 0


@pytest.mark.requirement("S1-157")
def test_a_standby_worker_takes_over_from_a_killed_leader(prompt: Prompt, postgres_url: str) -> None:
    store = ["--store", postgres_url]
    execution = killed_run(prompt, store)
    with going("worker", "--script", written("slow.yaml", SLOW_SECOND), *store) as first:
        said(first, "leading")
        with going("worker", "--wait", "--script", written("quick.yaml", QUICK), *store) as second:
            first.kill()
            first.wait()
            said(second, "leading")
            until(prompt, execution, "completed", store, second)
            second.send_signal(signal.SIGTERM)
            assert second.wait(timeout=WAITS_S) == 0
    assert prompt("show", execution, "--json", *store).json["state"]["a"] == "One."
    assert prompt("verify", *store).code == 0


def test_a_run_survives_a_restart_of_the_database_server(prompt: Prompt, server: Cluster) -> None:
    store = ["--store", server.url(schema="outlasts", patience="60")]
    script = written("slow.yaml", SLOW_SECOND.replace("20s", "1s") + "  - {node: third, text: Three.}\n")
    prompt("list", *store)
    with going("run", written("chain.yaml", flows.CHAIN), "--script", script, *store) as process:
        execution = in_the_middle(prompt, process, store)
        server.stop()
        server.start()
        process.communicate(timeout=WAITS_S)
    assert process.returncode == 0
    assert prompt("show", execution, "--json", *store).json["path"] == ["first", "second", "third"]
    assert prompt("verify", *store).code == 0


def test_an_unreachable_database_ends_a_run_with_the_reason_and_loses_nothing(prompt: Prompt, server: Cluster) -> None:
    store = ["--store", server.url(schema="away", patience="0.2")]
    script = written("slow.yaml", SLOW_SECOND.replace("20s", "1s"))
    prompt("list", *store)
    with going("run", written("chain.yaml", flows.CHAIN), "--script", script, *store) as process:
        execution = in_the_middle(prompt, process, store)
        server.stop()
        _, told = process.communicate(timeout=WAITS_S)
    assert (process.returncode, "[store-unreachable]" in told, "Traceback" in told) == (1, True, False)
    away = prompt("show", execution, *store)
    assert (away.code, "[store-unreachable]" in away.err) == (1, True)
    server.start()
    resumed = prompt("resume", execution, "--script", written("quick.yaml", QUICK), "--json", *store)
    assert (resumed.code, resumed.json["path"]) == (0, ["first", "second", "third"])
    assert resumed.json["state"]["a"] == "One.", "what had ended was not done again"
    assert prompt("verify", *store).code == 0


def test_a_worker_reports_an_unreachable_database_once_and_continues_later(prompt: Prompt, server: Cluster) -> None:
    store = ["--store", server.url(schema="keeps", patience="0.2")]
    execution = killed_run(prompt, store)
    with going("worker", "--script", written("slow.yaml", SLOW_SECOND.replace("20s", "1h")), *store) as keeper:
        said(keeper, "leading")
        server.stop()
        assert "[store-unreachable]" in said(keeper, "retrying")
        server.start()
        waits = prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=ships", *store)
        assert waits.code == 3
        assert keeper.poll() is None
        assert prompt("cancel", execution, *store).code == 0
        keeper.send_signal(signal.SIGTERM)
        _, rest = keeper.communicate(timeout=WAITS_S)
    assert (keeper.returncode, "[store-unreachable]" in rest) == (0, False)
    assert Path("letter.yaml").exists()
    assert prompt("verify", *store).code == 0
