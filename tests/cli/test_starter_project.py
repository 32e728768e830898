"""The starter project of `init`, its log, `-i` with misspelt fields, and runs that watch their files."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from pointsman.cli.init import FILES
from pointsman.cli.run import stamps, watched_files
from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.integration


@pytest.fixture
def project(prompt: Prompt, own_place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The starter project as working directory, with nothing set by the environment."""
    monkeypatch.delenv("POINTSMAN_MODEL")
    assert prompt("init", "letters").code == 0
    monkeypatch.chdir(own_place / "letters")
    return own_place / "letters"


def test_the_starter_project_runs_and_passes_its_tests(project: Path, prompt: Prompt) -> None:
    assert prompt("check", "letter.yaml").out.endswith("no problems: can run\n")
    tested = prompt("test", ".", "--json").json
    assert (tested["passed"], tested["failed"]) == (3, 0)
    waits = prompt("run", "letter.yaml", "--script", "script.yaml", "-i", "topic=ships", "--json")
    assert (waits.code, waits.json["status"]) == (3, "waiting")
    sent = prompt("answer", "last", "review", "approve", "--script", "script.yaml", "--json").json
    assert sent["output"] == {"letter": "Dear all, the ships are late.", "words": 6}
    assert (project / "pointsman.db").exists()


def test_init_overwrites_nothing(prompt: Prompt, own_place: Path) -> None:
    (own_place / "tools.py").write_text("mine = 1\n")
    refused = prompt("init", "--json")
    assert (refused.code, refused.json["errors"][0]["code"]) == (2, "file-exists")
    assert [*own_place.iterdir()] == [own_place / "tools.py"]
    assert (own_place / "tools.py").read_text() == "mine = 1\n"


def test_init_lists_the_files_that_it_wrote(prompt: Prompt, own_place: Path) -> None:
    made = prompt("init", "a/b", "--json").json
    assert made == {"directory": "a/b", "files": [*FILES]}
    assert sorted(one.name for one in (own_place / "a" / "b").iterdir()) == sorted(FILES)


def test_logs_print_what_happened_with_times(prompt: Prompt) -> None:
    prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=x", "--answer", "review=approve")
    lines = prompt("logs", "last", "--json").json["lines"]
    told = [(one["nodeId"], one["message"]) for one in lines]
    assert told[0] == (None, "the execution of letter started")
    assert told[1:3] == [("write", "started"), ("write", "completed")]
    assert ("review", "waits for a person: Send it?") in told
    assert any(node == "review" and message.endswith("answered approve") for node, message in told)
    assert told[-1] == (None, "the execution completed")
    assert {one["level"] for one in lines} == {"info"}
    printed = prompt("logs", "last", "--follow").out.splitlines()
    assert len(printed) == len(lines)
    assert "write: completed" in printed[2]


def test_logs_name_failures_and_retries_with_their_level(prompt: Prompt) -> None:
    script = written("script.yaml", "rules: [{node: write, fail: {status: 400}}]")
    prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=x", "--script", script)
    lines = prompt("logs", "last", "--json").json["lines"]
    assert [one["level"] for one in lines if "failed" in one["message"]] == ["error", "error"]


def test_a_misspelt_field_of_the_input_is_refused_with_the_nearest_name(prompt: Prompt) -> None:
    flow = written("letter.yaml", flows.APPROVAL)
    refused = prompt("run", flow, "-i", "gaol=x")
    assert refused.code == 2
    assert "no field 'gaol'. Did you mean 'goal'?" in refused.err
    assert prompt("list", "--json").json["executions"] == []


def test_fields_of_an_open_input_are_not_refused(prompt: Prompt) -> None:
    opened = flows.APPROVAL.replace("input: {type: object,", "input: {type: object, additionalProperties: true,")
    assert prompt("run", written("letter.yaml", opened), "-i", "goal=x", "-i", "gaol=y").code == 3
    assert prompt("run", written("chain.yaml", flows.CHAIN), "-i", "anything=x").code == 0


def test_the_demo_uses_the_store_of_the_environment(
    prompt: Prompt, own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTSMAN_STORE", "sqlite:///mine.db")
    played = prompt("demo", "--json").json
    assert played["store"] == "sqlite:///mine.db"
    listed = prompt("list", "--json").json["executions"]
    assert {one["executionId"] for one in played["executions"]} <= {one["executionId"] for one in listed}


def test_the_watched_files_are_those_that_the_run_reads(own_place: Path) -> None:
    flow = written("letter.yaml", flows.APPROVAL)
    files = watched_files(flow, Path("script.yaml"), "@order.json", ["shop.tools"])
    assert {str(one) for one in files} == {
        "letter.yaml",
        "pointsman.toml",
        "shop/tools.py",
        "script.yaml",
        "order.json",
    }
    before = stamps(files)
    assert before[Path("script.yaml")] is None
    Path("script.yaml").write_text("rules: []\n")
    assert stamps(files) != before
    with pytest.raises(click.UsageError, match="needs a workflow file"):
        watched_files("letter", None, None, [])


def test_a_watched_run_runs_again_after_a_change(own_place: Path) -> None:
    flow = Path(written("chain.yaml", flows.CHAIN))
    with Terminal("run", str(flow), "--watch", cwd=own_place) as terminal:
        terminal.expect("watching chain.yaml")
        terminal.expect("completed exec-")
        flow.write_text(flows.CHAIN.replace("prompt: three", "prompt: four"))
        terminal.expect("chain.yaml changed: running again")
        terminal.expect("completed exec-")
        terminal.press("c")
        assert terminal.ends() == 130
