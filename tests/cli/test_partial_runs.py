"""Partial runs at the command line."""

from __future__ import annotations

from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written
from tests.cli.test_processes import QUICK, SLOW_SECOND, STORE, started, until_second_runs

LINE = """\
pointsman: 1
id: line
nodes:
  - {id: one, type: agent, config: {prompt: first}}
  - {id: two, type: agent, config: {prompt: second}}
  - {id: three, type: agent, config: {prompt: third}}
edges: [{source: one, target: two}, {source: two, target: three}]
"""


def test_a_partial_run_uses_pinned_results_and_is_not_listed(prompt: Prompt) -> None:
    file = written("line.yaml", LINE)
    printed = prompt("run", file, "--pin", 'one={"found": 1}', "--until", "two", "--model", "scripted", "--json")
    told = printed.json
    assert (printed.code, told["status"], told["path"]) == (0, "completed", ["one", "two"])
    assert told["executionId"].startswith("try-")
    assert prompt("list", "--json").json["executions"] == []
    (listed,) = prompt("list", "--trials", "--json").json["executions"]
    assert listed["executionId"] == told["executionId"]


def test_a_breakpoint_pauses_and_another_process_continues_by_one_step(prompt: Prompt) -> None:
    stopped = prompt("run", written("line.yaml", LINE), "--break", "two", "--model", "scripted", "--json").json
    assert (stopped["status"], stopped["pausedBefore"]) == ("paused", "two")
    on = prompt("resume", stopped["executionId"], "--step", "--model", "scripted", "--json").json
    assert (on["status"], on["pausedBefore"], on["path"]) == ("paused", "three", ["one", "two"])


def test_a_killed_partial_run_still_pauses_at_its_breakpoint(prompt: Prompt) -> None:
    file, slow = written("chain.yaml", flows.CHAIN), written("slow.yaml", SLOW_SECOND)
    with started("run", file, "--pin", 'first="Pinned."', "--break", "third", "--script", slow, *STORE) as process:
        trial = until_second_runs(prompt, process, "--trials")
        process.kill()
        process.wait()
    assert prompt("show", trial, *STORE, "--json").json["status"] == "stopped"

    quick = ["--script", written("quick.yaml", QUICK), *STORE, "--json"]
    stopped = prompt("resume", trial, *quick).json
    assert (stopped["status"], stopped["pausedBefore"], stopped["path"]) == ("paused", "third", ["first", "second"])
    assert (stopped["state"]["a"], stopped["usage"]["modelCalls"]) == ("Pinned.", 1)
    ended = prompt("resume", trial, *quick).json
    assert (ended["status"], ended["path"]) == ("completed", ["first", "second", "third"])
    assert prompt("list", *STORE, "--json").json["executions"] == []
    assert prompt("verify", *STORE).code == 0


def test_an_impossible_partial_run_is_refused_in_one_line(prompt: Prompt) -> None:
    printed = prompt("run", written("line.yaml", LINE), "--until", "nowhere", "--model", "scripted")
    assert printed.code != 0
    assert "'nowhere'" in printed.err
    assert "Nodes of the workflow: one, two, three." in printed.err
