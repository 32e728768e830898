"""The command line on a PostgreSQL store: the same verbs, across processes."""

from __future__ import annotations

import pytest

from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written
from tests.cli.test_processes import QUICK, SLOW_SECOND, started


@pytest.mark.requirement("S1-71")
def test_a_run_waits_for_a_person_on_one_connection_and_ends_on_another(prompt: Prompt, postgres_url: str) -> None:
    store = ["--store", postgres_url]
    assert prompt("workflows", "save", written("letter.yaml", flows.APPROVAL), *store).out == "letter@1\n"
    assert prompt("run", "letter", "-i", "goal=ships", *store).code == 3
    execution = prompt("list", *store).out.split()[0]
    answered = prompt("answer", execution, "review", "approve", *store)
    assert (answered.code, "ships" in answered.out) == (0, True)
    assert prompt("verify", *store).code == 0
    assert prompt("show", "exec-none", *store).code == 2


@pytest.mark.requirement("S1-67", "S1-157")
def test_a_killed_run_resumes_in_another_process_without_repeating_steps(prompt: Prompt, postgres_url: str) -> None:
    store = ["--store", postgres_url]
    prompt("list", *store)  # Create the tables.
    slow = written("slow.yaml", SLOW_SECOND)
    with started("run", written("chain.yaml", flows.CHAIN), "--script", slow, *store, "--json") as process:
        execution = ""
        while '"step": "second"' not in prompt("events", execution or "none", "--jsonl", *store).out:
            assert process.poll() is None, process.communicate()
            execution = (prompt("list", *store).out.split() or [""])[0]
        process.kill()
    assert prompt("show", execution, *store, "--json").json["status"] == "stopped"

    printed = prompt("resume", execution, "--script", written("quick.yaml", QUICK), *store, "--json")
    assert (printed.code, printed.json["status"]) == (0, "completed")
    assert printed.json["path"] == ["first", "second", "third"]
    assert [printed.json["state"][name] for name in "abc"] == ["One.", "Two.", "Three."]
    assert printed.json["usage"]["modelCalls"] == 3
    assert prompt("verify", *store).code == 0


def test_an_unreachable_server_is_one_line_without_the_password(
    prompt: Prompt, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "postgresql://ann:s3cret@127.0.0.1:1/desk"
    printed = prompt("list", "--store", url)
    assert (printed.code, printed.out) == (1, "")
    assert "[store-unreachable]" in printed.err
    bad = prompt("list", "--store", "postgresql//ann:s3cret@127.0.0.1:1/desk")
    assert "[store-unknown]" in bad.err
    monkeypatch.setenv("POINTSMAN_STORE", url)
    settings = prompt("settings").out
    assert "postgresql://ann:***@127.0.0.1:1/desk" in settings
    assert "s3cret" not in printed.err + bad.err + settings
