"""The lifecycle of an execution across commands, each in its own process."""

from __future__ import annotations

import json

import pytest

from tests.cli import flows
from tests.cli.conftest import CommandResult, Prompt
from tests.cli.flows import written


def begun(prompt: Prompt, file: str, *options: str) -> str:
    return prompt("run", file, *options, "--json").json["executionId"]


def events_of(prompt: Prompt, execution: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in prompt("events", execution, "--jsonl").out.splitlines()]


@pytest.mark.requirement("S1-158")
def test_an_answer_continues_a_waiting_execution(prompt: Prompt) -> None:
    execution = begun(prompt, written("letter.yaml", flows.APPROVAL), "-i", "goal=x")
    printed = prompt("answer", execution, "review", "approve", "--by", "ada", "--json")
    assert (printed.code, printed.json["status"]) == (0, "completed")
    assert printed.json["path"] == ["write", "review", "send"]
    assert [event["by"] for event in events_of(prompt, execution) if event["kind"] == "gate_closed"] == ["ada"]


def test_answer_accepts_further_answers_as_options(prompt: Prompt) -> None:
    execution = begun(prompt, written("letter.yaml", flows.APPROVAL), "-i", "goal=x")
    printed = prompt("answer", execution, "review", '{"action": "again"}', "--answer", "review=approve", "--json")
    assert printed.json["path"] == ["write", "review", "write", "review", "send"]


def test_a_second_answer_is_refused(prompt: Prompt) -> None:
    execution = begun(prompt, written("letter.yaml", flows.APPROVAL), "-i", "goal=x")
    assert prompt("answer", execution, "review", "approve").code == 0
    late = prompt("answer", execution, "review", "again")
    assert late.code == 2
    assert "Traceback" not in late.err


def test_resume_finds_the_stored_script(prompt: Prompt) -> None:
    script = written("s.yaml", "rules: [{node: write, visit: 1, text: Rough.}, {node: write, visit: 2, text: Fine.}]")
    execution = begun(prompt, written("letter.yaml", flows.APPROVAL), "-i", "goal=x", "--script", script)
    prompt("answer", execution, "review", "again")
    assert prompt("show", execution, "--json").json["state"]["text"] == "Fine."


@pytest.mark.requirement("S1-159")
def test_retry_repeats_only_the_failed_step(prompt: Prompt) -> None:
    script = written("s.yaml", "rules: [{node: second, attempt: 1, fail: 400}]")
    failed = prompt("run", written("chain.yaml", flows.CHAIN), "--script", script, "--json").json
    assert failed["status"] == "failed"
    printed = prompt("retry", failed["executionId"], "--json")
    assert (printed.code, printed.json["status"]) == (0, "completed")
    assert printed.json["path"].count("first") == 1
    assert printed.json["path"][-2:] == ["second", "third"]


def test_retry_without_a_failure_is_refused(prompt: Prompt) -> None:
    execution = begun(prompt, written("chain.yaml", flows.CHAIN))
    printed = prompt("retry", execution)
    assert printed.code == 2
    assert "wrong-status" in printed.err


def test_resume_with_a_higher_limit_completes_an_interrupted_execution(prompt: Prompt) -> None:
    execution = begun(prompt, written("rounds.yaml", flows.ROUNDS))
    assert prompt("resume", execution).code == 4
    printed = prompt("resume", execution, "--limit", "steps=100", "--json")
    assert (printed.code, printed.json["status"], printed.json["state"]["n"]) == (0, "completed", 10)


def test_a_signal_reaches_the_waiting_step(prompt: Prompt) -> None:
    waiting = prompt("run", written("waits.yaml", flows.WAITS))
    assert waiting.code == 3
    assert "for the event 'door'" in waiting.err
    execution = prompt("list", "--json").json["executions"][0]["executionId"]
    other = prompt("signal", execution, "window")
    assert (other.code, "no step waits for the event 'window' yet" in other.err) == (3, True)
    assert prompt("signal", execution, "door", '{"who": "ada"}', "--json").json["status"] == "completed"


def test_a_paused_execution_stays_paused_until_resume(prompt: Prompt) -> None:
    execution = begun(prompt, written("letter.yaml", flows.APPROVAL), "-i", "goal=x")
    assert prompt("pause", execution, "--json").json["status"] == "paused"
    assert prompt("show", execution, "--json").json["status"] == "paused"
    assert prompt("resume", execution, "--answer", "review=approve", "--json").json["status"] == "completed"


@pytest.mark.requirement("S1-87")
def test_cancel_is_final_and_a_second_cancel_has_no_effect(prompt: Prompt) -> None:
    execution = begun(prompt, written("letter.yaml", flows.APPROVAL), "-i", "goal=x")
    first = prompt("cancel", execution, "--reason", "no need", "--json")
    assert (first.code, first.json["status"], first.json["waiting"]) == (0, "cancelled", [])
    rows = len(events_of(prompt, execution))
    assert prompt("cancel", execution).code == 0
    assert len(events_of(prompt, execution)) == rows
    assert prompt("answer", execution, "review", "approve").code == 2


def test_cancel_reaches_sub_workflows(prompt: Prompt) -> None:
    prompt("workflows", "save", written("letter.yaml", flows.APPROVAL))
    outer = """\
pointsman: 1
id: outer
nodes: [{id: call, type: workflow, config: {workflow: letter, input: {goal: "'x'"}}}]
edges: []
"""
    execution = begin_waiting(prompt("run", written("outer.yaml", outer), "--json"))
    prompt("cancel", execution)
    found = prompt("list", "--json").json["executions"]
    assert sorted((one["workflowId"], one["status"]) for one in found) == [
        ("letter", "cancelled"),
        ("outer", "cancelled"),
    ]


def begin_waiting(printed: CommandResult) -> str:
    assert printed.json["status"] in ("waiting", "running")
    return printed.json["executionId"]


def test_every_command_refuses_an_unknown_execution_by_name(prompt: Prompt) -> None:
    for command in (
        ["show", "exec-none"],
        ["events", "exec-none"],
        ["timeline", "exec-none"],
        ["answer", "exec-none", "a", "b"],
        ["resume", "exec-none"],
        ["retry", "exec-none"],
        ["signal", "exec-none", "a"],
        ["pause", "exec-none"],
        ["cancel", "exec-none"],
    ):
        printed = prompt(*command)
        assert printed.code == 2, command
        assert "[unknown-execution]" in printed.err, command
