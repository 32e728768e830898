"""Processes that are stopped or that wait for others: no decision is lost, and the output states the reason."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written
from tests.cli.test_processes import STORE, started, until_second_runs

SLOW_SECOND = "rules:\n  - {node: first, text: One.}\n  - {node: second, delay: 20m, text: Never.}\n"
QUICK = "rules:\n  - {node: [second, third], text: Quick.}\n"
ONE_AT_A_TIME = flows.CHAIN.replace("id: chain\n", "id: chain\nconcurrency: {max: 1, policy: queue}\n")


@contextmanager
def alive(*arguments: str) -> Generator[subprocess.Popen[str], None, None]:
    """Run a process until the end of the block."""
    with started(*arguments) as process:
        try:
            yield process
        finally:
            process.kill()


def running(*arguments: str, script: str, flow: str = flows.CHAIN) -> AbstractContextManager[subprocess.Popen[str]]:
    return alive(
        "run", written("chain.yaml", flow), "--script", written("slow.yaml", script), *STORE, "--json", *arguments
    )


def line_with(process: subprocess.Popen[str], words: str) -> str:
    """Return its standard error up to the line with these words."""
    assert process.stderr is not None
    told = ""
    for line in process.stderr:
        told += line
        if words in line:
            return told
    pytest.fail(f"it never said {words!r}: {told}")


@pytest.fixture
def held() -> Iterator[subprocess.Popen[str]]:
    """A long run that uses the only slot of its workflow."""
    with running(script=SLOW_SECOND, flow=ONE_AT_A_TIME) as process:
        yield process


@pytest.mark.requirement("S1-67")
@pytest.mark.parametrize(
    ("told", "durability"), [(signal.SIGTERM, "async"), (signal.SIGHUP, "exit"), (signal.SIGTERM, "step")]
)
def test_a_signal_loses_no_decision_of_a_run(prompt: Prompt, told: signal.Signals, durability: str) -> None:
    with running("--durability", durability, script=SLOW_SECOND) as process:
        while not Path("store.db").exists() or not prompt("list", *STORE).out:
            assert process.poll() is None
        process.send_signal(told)
        out, err = process.communicate(timeout=60)
    execution = json.loads(out)["executionId"]
    assert (process.returncode, "Traceback" in err) == (130, False)
    assert f"pointsman resume {execution}" in err or json.loads(out)["status"] == "running"
    path = prompt("show", execution, *STORE, "--json").json["path"]
    begun = [line for line in prompt("events", execution, "--jsonl", *STORE).out.splitlines() if "step_started" in line]
    assert len(begun) == len(path) + 1, "what was under way is in the journal, with everything before it"
    resumed = prompt("resume", execution, "--script", written("quick.yaml", QUICK), *STORE, "--json")
    assert (resumed.code, resumed.json["path"]) == (0, ["first", "second", "third"])
    assert prompt("verify", *STORE).code == 0


def test_a_queued_run_prints_the_holder_and_how_to_leave_the_queue(prompt: Prompt, held: subprocess.Popen[str]) -> None:
    first = until_second_runs(prompt, held)
    with alive("run", "chain.yaml", "--script", written("quick.yaml", QUICK), *STORE) as waiting:
        told = line_with(waiting, "Remove it")
        second = prompt("list", *STORE, "--json", "--status", "pending").json["executions"][0]["executionId"]
        assert f"queued: 'chain' runs one execution at a time, now {first}\n" in told
        assert f"Wait again: pointsman resume {second} --store sqlite:///store.db\n" in told
        with alive("run", "chain.yaml", *STORE) as third:
            assert f"{first}; 1 queued before this one" in line_with(third, "queued: ")
            third.send_signal(signal.SIGTERM)
            assert third.wait(timeout=60) == 130
        waiting.send_signal(signal.SIGINT)
        _, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, f"pointsman resume {second}" in err) == (130, True)
    assert prompt("show", second, *STORE, "--json").json["status"] == "pending"
    assert prompt("cancel", first, *STORE).code == 0
    resumed = prompt("resume", second, *STORE, "--json")
    assert (resumed.code, resumed.json["status"]) == (0, "completed")
    assert resumed.err.startswith("warning: the scripted model or a scripted tool answers here")


def test_a_run_cancelled_during_ctrl_c_does_not_suggest_resume(prompt: Prompt) -> None:
    files = written("chain.yaml", flows.CHAIN), "--script", written("slow.yaml", SLOW_SECOND)
    with alive("run", *files, *STORE) as process:
        while not Path("store.db").exists() or not (found := prompt("list", *STORE).out.split()[:1]):
            assert process.poll() is None
        assert prompt("cancel", found[0], *STORE).code == 0
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"cancelled {found[0]}" in err
    assert "resume" not in err


def test_a_stopped_worker_with_json_option_prints_json(prompt: Prompt) -> None:
    with alive("worker", "--json", *STORE) as keeper:
        assert "leading sqlite:///store.db" in line_with(keeper, "leading")
        with alive("worker", "--json", *STORE) as second:
            out, _ = second.communicate(timeout=60)
        assert (second.returncode, json.loads(out)["errors"][0]["code"]) == (1, "leader-exists")
        keeper.send_signal(signal.SIGHUP)
        out, _ = keeper.communicate(timeout=60)
    assert (keeper.returncode, json.loads(out)) == (0, {"store": "sqlite:///store.db", "status": "stopped"})


def test_a_worker_answers_probes_until_it_has_stopped(prompt: Prompt) -> None:
    with alive("worker", "--probes", "127.0.0.1:0", *STORE) as keeper:
        place = line_with(keeper, "probes at").strip().rpartition(" ")[2]
        line_with(keeper, "leading")
        with urlopen(f"{place}/ready", timeout=60) as answer:
            assert json.load(answer)["leader"] == "here"
        keeper.send_signal(signal.SIGTERM)
        assert keeper.wait(timeout=60) == 0
    refused = prompt("worker", "--probes", "8001", *STORE)
    assert (refused.code, "'8001' is not HOST:PORT" in refused.err) == (2, True)
