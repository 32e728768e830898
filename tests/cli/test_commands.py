"""Commands in natural language: run, and found again by their session."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Prompt

EXAMPLE = Path(__file__).parents[2] / "examples" / "agentforge"
FLOW = (str(EXAMPLE / "agentforge.yaml"), "--script", str(EXAMPLE / "script.yaml"))


@pytest.fixture(autouse=True)
def quick(own_place: Path) -> None:
    (own_place / "pointsman.toml").write_text('store = "sqlite:///desk.db"\ndelays = false\n', encoding="utf-8")


@pytest.mark.requirement("S2-03", "S2-06", "S2-33", "S2-63", "S2-67")
def test_a_command_in_words_runs_in_a_new_session_with_records(prompt: Prompt) -> None:
    done = prompt("run", *FLOW, "--command", "Write a proposal, send to john@example.com")
    assert done.code == 0, done.err
    (session,) = re.findall(r"^session (ses_[0-9a-f]{8})$", done.err, re.MULTILINE)
    assert "Confidence Score: 75%\nHallucination Risk: medium\n" in done.err
    assert re.search(r"^\s*1\. AGV cost estimate", done.err, re.MULTILINE)
    assert "The mail to john@example.com was not sent" in done.err
    found = prompt("records", session, "--json").json
    assert (found["sessions"][0]["goal"], found["sessions"][0]["email"]) == ("Write a proposal", "john@example.com")
    assert [one["type"] for one in found["actions"]] == ["confidence_report"]
    shown = prompt("records", session).out
    assert [line for line in shown.splitlines() if not line.startswith(" ")] == [
        "sessions",
        "actions",
        "documents",
        "plans",
        "research",
    ]
    listed = prompt("list", "--session", session, "--json").json["executions"]
    assert [one["executionId"] for one in listed] == [found["sessions"][0]["execution_id"]]


def test_a_command_in_words_uses_the_named_session(prompt: Prompt) -> None:
    done = prompt("run", *FLOW, "--command", "Write a memo", "--session", "ses_0badcafe", "--json")
    assert (done.json["sessionId"], done.json["input"]) == ("ses_0badcafe", {"goal": "Write a memo", "email": None})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--command", ", send to john@example.com"), "command-invalid"),
        (("--command", ""), "command-invalid"),
        (("--command", "Write a memo", "--input", "{}"), "give either --command or --input"),
    ],
)
def test_an_invalid_command_in_words_starts_nothing(prompt: Prompt, options: tuple[str, ...], says: str) -> None:
    refused = prompt("run", *FLOW, *options)
    assert (refused.code, says in refused.err) == (2, True), refused.err
    assert prompt("list", "--json").json == {"executions": []}


def test_records_of_an_unknown_session_are_refused(prompt: Prompt) -> None:
    refused = prompt("records", "ses_0badcafe")
    assert refused.code == 2
    assert "unknown-session" in refused.err


def test_a_command_in_words_runs_the_built_in_pipeline(prompt: Prompt) -> None:
    for named in ((), ("agentforge",)):
        done = prompt("run", *named, "--command", "Write a memo", "--model", "scripted", "--json")
        assert (done.code, done.json["workflowId"]) == (0, "builtin:agentforge"), done.err
    assert prompt("workflows", "save", FLOW[0]).code == 0
    saved = prompt("run", "--command", "Write a memo", "--model", "scripted", "--json")
    assert saved.json["workflowId"] == "agentforge", "what is saved is what is meant"
    assert prompt("run").code == 2
    unknown = prompt("run", "agentforge2", "--command", "Write a memo")
    assert (unknown.code, "reference-unknown" in unknown.err) == (2, True)
