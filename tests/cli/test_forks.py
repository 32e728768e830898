"""Fork, retry from a step, replay, migrate: each command opens the store again, so all of it survives a restart."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written

STORY = """\
pointsman: 1
id: story
input: {type: object, properties: {goal: {type: string}}}
state: {text: {schema: {type: string}}}
output: {text: text, n: n}
nodes:
  - {id: write, type: agent, config: {prompt: "Write about {goal}"}, outputs: {text: result}}
  - {id: count, type: transform, config: {set: {n: "length(text)"}}}
  - {id: print, type: agent, config: {prompt: "Print {text}"}, outputs: {text: result}}
edges:
  - {source: write, target: count}
  - {source: count, target: print}
"""
SCRIPT = "rules: [{node: write, text: Once.}, {node: print, text: Printed.}]"


def ran(prompt: Prompt) -> str:
    file, script = written("story.yaml", STORY), written("s.yaml", SCRIPT)
    return prompt("run", file, "--script", script, "-i", "goal=ships", "--json").json["executionId"]


def events_of(prompt: Prompt, execution: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in prompt("events", execution, "--jsonl").out.splitlines()]


def test_a_fork_continues_from_a_row_and_does_not_change_its_origin(prompt: Prompt) -> None:
    execution = ran(prompt)
    before = events_of(prompt, execution)
    printed = prompt("fork", execution, "--at", "1", "--json")
    assert (printed.code, printed.json["status"], printed.json["path"]) == (0, "completed", ["write", "count", "print"])
    assert printed.json["executionId"] != execution
    assert f"{printed.json['executionId']} is a new execution, forked from {execution}" in printed.err
    assert events_of(prompt, execution) == before
    forked = [event for event in events_of(prompt, printed.json["executionId"]) if event["kind"] == "forked"]
    assert [(event["origin"], event["row"]) for event in forked] == [(execution, 1)]


def test_any_step_runs_again_with_changed_data(prompt: Prompt) -> None:
    execution = ran(prompt)
    printed = prompt("retry", execution, "--from", "count", "--set", "text=Longer.", "--json")
    assert printed.json["path"] == ["write", "count", "print"]
    assert printed.json["output"] == {"text": "Printed.", "n": 7}
    started = [e["step"] for e in events_of(prompt, printed.json["executionId"]) if e["kind"] == "step_started"]
    assert started == ["write", "print"], "the step before it did not run again"


def test_a_fork_uses_its_changed_input(prompt: Prompt) -> None:
    printed = prompt("retry", ran(prompt), "--from", "write", "--input", '{"goal": "trains"}', "--json")
    begun = [e for e in events_of(prompt, printed.json["executionId"]) if e["kind"] == "step_started"]
    assert begun[0]["input"]["prompt"] == "Write about trains"
    assert printed.json["input"] == {"goal": "trains"}


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--at", "99"], "no-such-row"),
        (["--at", "1", "--set", "text=7"], "edit-refused"),
        (["--at", "1", "--set", "goal.x=7"], "edit-refused"),
        (["--at", "1", "--set", "each[1.0]/x=7"], "edit-refused"),
        (["--at", "1", "--set", "a..b=7"], "edit-refused"),
        (["--at", "1", "--input", '{"goal": 7}'], "input-invalid"),
        ([], "wrong-status"),
    ],
)
def test_an_impossible_fork_is_refused_and_writes_nothing(prompt: Prompt, options: list[str], code: str) -> None:
    execution = ran(prompt)
    printed = prompt("fork", execution, *options)
    assert (printed.code, f"[{code}]" in printed.err) == (2, True), printed.err
    assert len(prompt("list", "--json").json["executions"]) == 1


def test_a_step_that_never_started_cannot_be_retried(prompt: Prompt) -> None:
    printed = prompt("retry", ran(prompt), "--from", "paint")
    assert (printed.code, "[no-such-step]" in printed.err) == (2, True)


def test_a_replay_of_an_unchanged_execution_is_equal_and_calls_nothing(prompt: Prompt) -> None:
    execution = ran(prompt)
    printed = prompt("replay", execution, "--json")
    assert (printed.code, printed.json["same"], printed.json["status"]) == (0, True, "completed")
    assert printed.json["rows"] == len({event["seq"] for event in events_of(prompt, execution)})
    forked = prompt("retry", execution, "--from", "count", "--json").json["executionId"]
    assert prompt("replay", forked, "--json").json["same"], "a fork replays too, its origin's rows included"


def test_a_replay_against_another_definition_names_the_first_difference(prompt: Prompt) -> None:
    other = written("other.yaml", STORY.replace("length(text)", "length(text) + 1"))
    printed = prompt("replay", ran(prompt), "--against", other, "--json")
    assert printed.code == 1
    first = printed.json["differences"][0]
    assert (first["row"], first["recorded"], first["now"]) == (2, 5, 6)
    gone = written("gone.yaml", STORY.replace("id: write", "id: draft").replace("source: write", "source: draft"))
    told = prompt("replay", written_run(prompt), "--against", gone)
    assert "different" in told.out


def written_run(prompt: Prompt) -> str:
    return prompt("list", "--json").json["executions"][0]["executionId"]


def test_a_waiting_execution_moves_to_a_repaired_definition(prompt: Prompt) -> None:
    execution = prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=x", "--json").json["executionId"]
    repaired = written("new.yaml", flows.APPROVAL.replace("{letter: text, tone: tone}", "{sent: text}"))
    assert prompt("move", execution, "--to", repaired, "--check", "--json").json == {
        "executionId": execution,
        "fits": True,
        "moved": False,
        "problems": [],
    }
    assert prompt("move", execution, "--to", repaired).code == 0
    done = prompt("answer", execution, "review", "approve", "--json").json
    assert (done["status"], list(done["output"])) == ("completed", ["sent"])
    assert prompt("replay", execution, "--json").json["same"]


def test_move_lists_open_steps_that_the_other_definition_lacks(prompt: Prompt) -> None:
    execution = prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=x", "--json").json["executionId"]
    other = written("other.yaml", flows.APPROVAL.replace("id: review", "id: look").replace(": review", ": look"))
    checked = prompt("move", execution, "--to", other, "--check", "--json")
    assert (checked.code, [one["code"] for one in checked.json["problems"]]) == (1, ["node-gone"])
    refused = prompt("move", execution, "--to", other)
    assert (refused.code, "[migration-refused]" in refused.err) == (2, True)
    assert prompt("answer", execution, "review", "approve", "--json").json["status"] == "completed"


def test_a_failed_execution_is_retried_with_its_repaired_definition(prompt: Prompt) -> None:
    broken = STORY.replace("length(text)", "length(text) / (n ?? 0)")
    script = written("s.yaml", SCRIPT)
    failed = prompt("run", written("broken.yaml", broken), "--script", script, "-i", "goal=x", "--json").json
    assert failed["status"] == "failed"
    mended = written("mended.yaml", STORY)
    printed = prompt("retry", failed["executionId"], "--move", mended, "--json")
    assert (printed.json["status"], printed.json["path"][-2:]) == ("completed", ["count", "print"])
    assert printed.json["executionId"] == failed["executionId"]


def test_a_finished_execution_is_not_moved(prompt: Prompt) -> None:
    refused = prompt("move", ran(prompt), "--to", written("story.yaml", STORY))
    assert (refused.code, "[wrong-status]" in refused.err) == (2, True)
