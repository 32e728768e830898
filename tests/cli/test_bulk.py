"""Verbs for many executions and for executions with sub-workflows; each command opens the store again."""

from __future__ import annotations

from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written

OUTER = """\
pointsman: 1
id: outer
nodes: [{id: call, type: workflow, config: {workflow: letter, input: {goal: "'x'"}}}]
edges: []
"""


def waiting(prompt: Prompt, count: int) -> list[str]:
    file = written("letter.yaml", flows.APPROVAL)
    return [prompt("run", file, "-i", "goal=x", "--json").json["executionId"] for _ in range(count)]


def statuses(prompt: Prompt) -> dict[str, str]:
    return {one["executionId"]: one["status"] for one in prompt("list", "--json").json["executions"]}


def test_bulk_without_yes_only_lists(prompt: Prompt) -> None:
    executions = waiting(prompt, 2)
    counted = prompt("bulk", "cancel", "--workflow", "letter", "--json").json
    assert (counted["done"], counted["count"]) == (False, 2)
    assert set(statuses(prompt).values()) == {"waiting"}
    assert {one["executionId"] for one in counted["executions"]} == set(executions)
    assert "cancel: 2 executions; add --yes to do it" in prompt("bulk", "cancel").out


def test_bulk_pauses_resumes_cancels_and_deletes(prompt: Prompt) -> None:
    prompt("run", written("chain.yaml", flows.CHAIN))
    waiting(prompt, 3)
    for verb, after in (("pause", "paused"), ("resume", "waiting"), ("cancel", "cancelled"), ("delete", "deleted")):
        done = prompt("bulk", verb, "--workflow", "letter", "--yes", "--json").json
        assert [one["status"] for one in done["executions"]] == [after] * 3, verb
    assert list(statuses(prompt).values()) == ["completed"], "what was not meant was left alone"


def test_bulk_retries_failed_executions_and_lists_results(prompt: Prompt) -> None:
    script = written("s.yaml", "rules: [{node: second, attempt: 1, fail: 400}]")
    for _ in range(2):
        prompt("run", written("chain.yaml", flows.CHAIN), "--script", script)
    done = prompt("bulk", "retry", "--status", "failed", "--yes", "--json")
    assert [one["status"] for one in done.json["executions"]] == ["completed", "completed"]


def test_bulk_filters_by_start_time(prompt: Prompt) -> None:
    waiting(prompt, 1)
    assert prompt("bulk", "cancel", "--until", "2020-01-01", "--json").json["count"] == 0
    assert prompt("bulk", "cancel", "--since", "2020-01-01", "--json").json["count"] == 1
    assert prompt("bulk", "cancel", "--status", "completed", "--json").json["count"] == 0


def test_bulk_pauses_and_resumes_sub_workflows(prompt: Prompt) -> None:
    prompt("workflows", "save", written("letter.yaml", flows.APPROVAL))
    execution = prompt("run", written("outer.yaml", OUTER), "--json").json["executionId"]
    assert sorted(statuses(prompt).values()) == ["waiting", "waiting"]
    prompt("pause", execution)
    assert set(statuses(prompt).values()) == {"paused"}
    resumed = prompt("resume", execution, "--answer", "review=approve", "--json").json
    assert resumed["status"] == "completed"
    assert set(statuses(prompt).values()) == {"completed"}
