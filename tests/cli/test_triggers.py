"""Schedules and events at the command line: each command is a process of its own."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.cli.conftest import Prompt
from tests.cli.flows import written
from tests.cli.test_processes import started

LISTENS = """
id: listens
nodes: [{id: wait, type: wait, config: {event: go}}]
edges: []
"""
REPORT = """
id: report
nodes: [{id: note, type: transform, config: {set: {seen: input}}}]
edges: []
triggers: [{id: morning, type: schedule, cron: "0 7 * * *", timezone: Europe/Berlin}]
"""


@pytest.fixture(autouse=True)
def saved(prompt: Prompt) -> None:
    for name, text in (("listens.yaml", LISTENS), ("report.yaml", REPORT)):
        assert prompt("workflows", "save", written(name, text)).code == 0


def test_schedules_are_added_listed_paused_resumed_and_deleted(prompt: Prompt) -> None:
    added = prompt("schedules", "add", "report", "--every", "15m", "-i", "who=ann", "--overlap", "allow", "--json")
    assert (added.code, added.json["input"], added.json["overlap"]) == (0, {"who": "ann"}, "allow")
    listed = prompt("schedules", "list", "--json").json["schedules"]
    assert [one["id"] for one in listed] == ["report", "report/morning"]
    assert listed[1]["when"] == "0 7 * * * (Europe/Berlin)"
    paused = prompt("schedules", "pause", "report", "--json").json
    assert (paused["paused"], paused["next"]) == (True, None)
    assert prompt("schedules", "resume", "report", "--json").json["paused"] is False
    assert len(prompt("schedules", "next", "report", "--count", "3", "--json").json["next"]) == 3
    assert prompt("schedules", "delete", "report", "--json").json == {"deleted": ["report"]}
    assert "report/morning" in prompt("schedules", "list").out
    assert prompt("schedules", "delete", "report/morning").code == 2, "it belongs to the document"


def test_a_manual_run_of_a_schedule_prints_its_result(prompt: Prompt) -> None:
    fired = prompt("schedules", "run", "report/morning", "--json")
    assert (fired.code, fired.json["outcome"]) == (0, "started")
    assert prompt("show", fired.json["executionId"], "--json").json["status"] == "completed"
    assert " by schedule 'report/morning'\n" in prompt("show", fired.json["executionId"]).out
    assert fired.json["executionId"] in prompt("schedules", "list").out


def test_a_schedule_that_cannot_start_prints_the_reason(prompt: Prompt) -> None:
    prompt("schedules", "add", "report", "--every", "1h", "--id", "bad", "--input", "[1]")
    fired = prompt("schedules", "run", "bad")
    assert fired.code == 1
    assert "input-invalid" in fired.out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("report", "--cron", "0 25 * * *"), "cron-invalid"),
        (("report", "--cron", "@daily", "--timezone", "Berlin"), "zone-unknown"),
        (("report",), "timing-invalid"),
        (("report", "--every", "soon"), "timing-invalid"),
        (("report", "--at", "tomorrow"), "timing-invalid"),
        (("nobody", "--every", "1h"), "unknown-workflow"),
    ],
)
def test_an_invalid_schedule_is_refused(prompt: Prompt, arguments: tuple[str, ...], code: str) -> None:
    refused = prompt("schedules", "add", *arguments)
    assert refused.code == 2
    assert code in refused.err
    assert len(prompt("schedules", "list", "--json").json["schedules"]) == 1


def test_a_published_event_reaches_a_waiting_execution_once(prompt: Prompt) -> None:
    assert prompt("run", "listens").code == 3
    told = prompt("publish", "go", '{"n": 1}', "--key", "k", "--json")
    assert (told.code, len(told.json["delivered"]), told.json["started"]) == (0, 1, [])
    (execution,) = told.json["delivered"]
    assert prompt("show", execution, "--json").json["status"] == "completed"
    again = prompt("publish", "go", '{"n": 1}', "--key", "k")
    assert "no execution waits" in again.err


def test_a_signal_with_a_used_key_has_no_effect_and_is_reported(prompt: Prompt) -> None:
    assert prompt("run", "listens").code == 3
    execution = prompt("list", "--json").json["executions"][0]["executionId"]
    assert prompt("signal", execution, "later", "--key", "k").code == 3
    again = prompt("signal", execution, "later", "--key", "k")
    assert "was received before" in again.err
    assert prompt("signal", execution, "go").code == 0
    assert prompt("signal", execution, "go").code == 2, "it has ended"


def test_problems_of_triggers_have_a_position_in_the_file(prompt: Prompt) -> None:
    file = written("bad.yaml", REPORT.replace("0 7 * * *", "0 25 * * *").replace("Europe/Berlin", "Mars"))
    printed = prompt("check", file, "--json")
    found = {(one["code"], one["pointer"]) for one in printed.json["problems"] if one["severity"] == "error"}
    assert found == {("cron-invalid", "/triggers/0/cron"), ("zone-unknown", "/triggers/0/timezone")}
    assert Path(file).exists()


def test_a_worker_starts_due_schedules_until_it_is_stopped(prompt: Prompt) -> None:
    store = ["--store", "sqlite:///kept.db"]
    prompt("workflows", "save", "report.yaml", *store)
    prompt("schedules", "add", "report", "--every", "1s", "--overlap", "allow", *store)
    assert prompt("run", "listens.yaml", *store).code == 3
    with started("worker", *store) as keeper:
        try:
            while not prompt("list", "--workflow", "report", "--json", *store).json["executions"]:
                assert keeper.poll() is None, keeper.communicate()
            prompt("publish", "go", *store)
            keeper.send_signal(signal.SIGTERM)
            _, said = keeper.communicate(timeout=120)
        finally:
            keeper.kill()
    assert keeper.returncode == 0
    assert said.startswith("leading sqlite:///")
    assert said.endswith("stopped\n")
    executions = prompt("list", "--json", *store).json["executions"]
    assert {one["status"] for one in executions} == {"completed"}


def test_a_deleted_store_ends_its_worker_with_the_reason(prompt: Prompt) -> None:
    store = ["--store", "sqlite:///kept.db"]
    prompt("workflows", "save", "report.yaml", *store)
    prompt("schedules", "add", "report", "--every", "1s", *store)
    with started("worker", *store) as keeper:
        try:
            while not prompt("list", "--json", *store).json["executions"]:
                assert keeper.poll() is None, keeper.communicate()
            for file in Path().glob("kept.db*"):
                file.rename(f"gone-{file.name}")
            _, said = keeper.communicate(timeout=120)
        finally:
            keeper.kill()
    assert keeper.returncode == 1
    assert "[store-missing]" in said


def test_one_process_leads_a_store_and_another_may_stand_by(prompt: Prompt) -> None:
    store = ["--store", "sqlite:///kept.db"]
    prompt("workflows", "save", "report.yaml", *store)
    with started("worker", *store) as first:
        assert first.stderr is not None
        assert first.stderr.readline().startswith("leading")
        refused = prompt("worker", *store)
        assert (refused.code, "[leader-exists]" in refused.err) == (1, True)
        with started("worker", "--wait", *store) as second:
            try:
                first.kill()
                assert second.stderr is not None
                assert second.stderr.readline().startswith("leading")
                second.send_signal(signal.SIGTERM)
                assert second.wait(timeout=120) == 0
            finally:
                second.kill()
                first.kill()
