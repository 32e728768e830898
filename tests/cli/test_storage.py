"""Commands about what is kept: each opens the store anew, so every one crosses a restart."""

from __future__ import annotations

from pathlib import Path

from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written


def begun(prompt: Prompt, *options: str) -> str:
    return prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=x", *options, "--json").json["executionId"]


def test_an_execution_that_ended_is_deleted_and_unknown_from_then_on(prompt: Prompt) -> None:
    execution = begun(prompt, "--answer", "review=approve")
    printed = prompt("delete", execution, "--json")
    assert (printed.code, printed.json) == (0, {"deleted": [execution]})
    shown = prompt("show", execution)
    assert (shown.code, "unknown-execution" in shown.err) == (2, True)
    assert prompt("delete", execution).code == 2
    assert prompt("verify").code == 0


def test_what_waits_is_deleted_only_after_it_was_cancelled(prompt: Prompt) -> None:
    execution = begun(prompt)
    refused = prompt("delete", execution)
    assert (refused.code, "execution-unfinished" in refused.err) == (2, True)
    assert f"pointsman cancel {execution}" in refused.err
    prompt("cancel", execution)
    assert prompt("delete", execution).code == 0
    assert prompt("list", "--json").json == {"executions": []}


def test_a_conversation_is_deleted_by_its_id(prompt: Prompt) -> None:
    execution = begun(prompt, "--answer", "review=approve", "--session", "talk")
    assert prompt("delete", "--session", "talk", "--json").json == {"deleted": [execution]}
    again = prompt("delete", "--session", "talk")
    assert (again.code, "unknown-session" in again.err) == (2, True)


def test_delete_is_told_what(prompt: Prompt) -> None:
    assert prompt("delete").code == 2
    assert prompt("delete", "exec-a", "--session", "talk").code == 2


def test_gc_deletes_what_the_settings_let_go_and_says_so_before(prompt: Prompt) -> None:
    execution = begun(prompt, "--answer", "review=approve")
    waiting = begun(prompt)
    assert prompt("gc", "--json").json["executions"] == []
    Path("pointsman.toml").write_text("[retention]\ncompleted = 0\n", encoding="utf-8")
    planned = prompt("gc", "--dry-run", "--json").json
    assert (planned["dryRun"], planned["executions"]) == (True, [execution])
    assert prompt("show", execution).code == 0
    assert prompt("gc").out == f"{execution}\n"
    assert [one["executionId"] for one in prompt("list", "--json").json["executions"]] == [waiting]
