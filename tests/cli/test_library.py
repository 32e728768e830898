"""Saved workflows, and information about the installation."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written


def test_a_workflow_is_saved_listed_read_and_deleted(prompt: Prompt) -> None:
    file = written("chain.yaml", flows.CHAIN)
    assert prompt("workflows", "save", file).out == "chain@1\n"
    assert prompt("workflows", "save", file).out == "chain@1\n"
    assert prompt("workflows", "get", "chain").out == flows.CHAIN
    assert prompt("workflows", "list", "--json").json["workflows"][0]["id"] == "chain"
    assert prompt("workflows", "delete", "chain").code == 0
    assert prompt("workflows", "list", "--saved", "--json").json == {"workflows": []}
    assert prompt("workflows", "get", "chain").code == 2


def test_revisions_are_stored_and_compared(prompt: Prompt) -> None:
    prompt("workflows", "save", written("chain.yaml", flows.CHAIN))
    changed = prompt(
        "workflows", "save", written("chain.yaml", flows.CHAIN.replace("prompt: two", "prompt: 2")), "--json"
    )
    assert changed.code == 1, "a prompt is a text"
    prompt("workflows", "save", written("chain.yaml", flows.CHAIN.replace("prompt: two", "prompt: zwei")))
    versions = prompt("workflows", "versions", "chain", "--json").json["workflows"]
    assert [one["revision"] for one in versions] == [2, 1]
    lines = prompt("workflows", "diff", "chain").out.splitlines()
    assert lines[:2] == ["--- chain@1", "+++ chain@2"]
    assert [line for line in lines if line.startswith(("-  ", "+  "))] == [
        "-  - {id: second, type: agent, config: {prompt: two}, outputs: {b: result}}",
        "+  - {id: second, type: agent, config: {prompt: zwei}, outputs: {b: result}}",
    ]
    assert prompt("workflows", "diff", "chain", "2", "1").out.startswith("--- chain@2")
    assert prompt("workflows", "diff", "chain", "1", "7").code == 2


def test_an_invalid_workflow_is_saved_only_as_a_draft(prompt: Prompt) -> None:
    file = written("broken.yaml", flows.BROKEN)
    assert prompt("workflows", "save", file).code == 1
    assert prompt("workflows", "save", file, "--draft").out == "broken@1\n"
    assert prompt("run", "broken").code == 1


def test_tools_of_a_script_are_listed(prompt: Prompt) -> None:
    script = written("s.yaml", "tools: {web_search: {description: Search the web., result: []}}")
    tools = prompt("tools", "--script", script, "--json").json["tools"]
    assert ("web_search", "scripted") in [(tool["name"], tool["origin"]) for tool in tools]
    assert "Search the web." in prompt("tools", "--script", script).out


def test_models_prints_the_default_and_never_a_key(prompt: Prompt, monkeypatch: pytest.MonkeyPatch) -> None:
    assert prompt("models", "--json").json["default"] == "scripted"
    monkeypatch.delenv("POINTSMAN_MODEL")
    assert prompt("models", "--json").json["default"] is None
    monkeypatch.setenv("GROQ_API_KEY", "gsk-very-secret")
    printed = prompt("models", "--json")
    assert [(one["name"], one["source"]) for one in printed.json["providers"]] == [("groq", "GROQ_API_KEY")]
    assert printed.json["default"] is None
    assert "very-secret" not in printed.out + prompt("models").out


def test_settings_prints_sources_and_masks_secrets(prompt: Prompt, monkeypatch: pytest.MonkeyPatch) -> None:
    written(
        "pointsman.toml",
        'language = "de"\n[providers.own]\nbase_url = "http://127.0.0.1:1/v1"\nkeys = ["top-secret"]\n',
    )
    monkeypatch.setenv("POINTSMAN_MODEL", "own:x")
    printed = prompt("settings", "--store", "memory:", "--json")
    found = printed.json
    assert (found["store"]["value"], found["store"]["source"]) == ("memory:", "--store")
    assert (found["model"]["value"], found["model"]["source"]) == ("own:x", "POINTSMAN_MODEL")
    assert found["language"]["source"].endswith("pointsman.toml")
    assert found["delays"]["source"] == "default"
    assert found["providers"]["value"]["own"]["keys"] == 1
    assert "top-secret" not in printed.out


def test_verify_accepts_an_intact_store_and_finds_damage(prompt: Prompt) -> None:
    import sqlite3

    store = ["--store", "sqlite:///s.db"]
    prompt("run", written("chain.yaml", flows.CHAIN), *store)
    assert prompt("verify", *store, "--json").json == {"ok": True, "damage": []}
    with sqlite3.connect("s.db") as connection:
        connection.execute("UPDATE rows SET at = at + 1 WHERE rowid = (SELECT max(rowid) FROM rows)")
    connection.close()
    printed = prompt("verify", *store)
    assert printed.code == 1
    assert "was changed after it was written" in printed.out


def test_doctor_prints_findings_for_the_operator(prompt: Prompt) -> None:
    told = prompt("doctor", "--store", "memory:", "--json").json
    assert told["store"] == "memory:"
    assert any("scripted model" in warning for warning in told["warnings"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(prompt: Prompt, shell: str) -> None:
    assert "_POINTSMAN_COMPLETE" in prompt("completion", shell).out


def completed(prompt: Prompt, monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    """Return the completions that bash offers for the last word."""
    with monkeypatch.context() as patch:
        patch.setenv("_POINTSMAN_COMPLETE", "bash_complete")
        patch.setenv("COMP_WORDS", " ".join(("pointsman", *words)))
        patch.setenv("COMP_CWORD", str(len(words)))
        return [line.partition(",")[2] for line in prompt().out.splitlines() if line]


def test_commands_ids_and_gates_are_completed(prompt: Prompt, monkeypatch: pytest.MonkeyPatch) -> None:
    prompt("workflows", "save", written("letter.yaml", flows.APPROVAL))
    execution = prompt("run", "letter", "-i", "goal=x", "--json").json["executionId"]
    assert completed(prompt, monkeypatch, "wor") == ["worker", "workflows"]
    assert "letter" in completed(prompt, monkeypatch, "run", "let")
    assert completed(prompt, monkeypatch, "show", "exec-") == [execution]
    assert completed(prompt, monkeypatch, "answer", execution, "re") == ["review"]


def test_completion_with_an_unusable_store_is_empty(prompt: Prompt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_STORE", "sqlite:///no/such/place.db")
    assert completed(prompt, monkeypatch, "show", "exec-") == []


def test_built_in_workflows_are_listed_run_and_cloned(prompt: Prompt) -> None:
    listed = prompt("workflows", "list").out.splitlines()
    assert any(line.startswith("builtin:iterate ") and " built in " in line for line in listed)
    run = prompt("run", "builtin:iterate", "--input", '{"items": ["a"], "instruction": "Say"}', "--json").json
    assert (run["workflowId"], run["status"]) == ("builtin:iterate", "completed")
    assert prompt("workflows", "clone", "builtin:iterate", "mine").out == "mine@1\n"
    assert prompt("workflows", "list", "--saved", "--json").json["workflows"][0]["id"] == "mine"
    refused = prompt("workflows", "delete", "builtin:iterate")
    assert (refused.code, "clone builtin:iterate my-iterate" in refused.err) == (2, True)
    added = prompt("schedules", "add", "builtin:iterate", "--every", "15m", "--json")
    assert (added.code, added.json.get("workflowId")) == (0, "builtin:iterate"), added.err
    assert [one["id"] for one in prompt("schedules", "list", "--json").json["schedules"]] == ["iterate"]
    misspelt = prompt("run", "builtin:iterat")
    assert (misspelt.code, "Did you mean 'builtin:iterate'?" in misspelt.err) == (2, True)


def test_a_module_of_tools_that_cannot_be_used_is_reported_by_the_command(
    prompt: Prompt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    (tmp_path / "no_tools_here.py").write_text("def charge(): ...\n", "utf-8")
    for module, why in (("no_tools_here", "has no tools"), ("no_such_module_here", "cannot be imported")):
        ended = prompt("run", written("chain.yaml", flows.CHAIN), "--tools", module)
        assert f"warning: the module {module!r}" in ended.err
        assert why in ended.err


def test_versions_are_published_and_named_in_lists(prompt: Prompt) -> None:
    prompt("workflows", "save", written("chain.yaml", flows.CHAIN))
    assert prompt("workflows", "publish", "chain", "Spring", "--note", "The first.").out == "chain@1: Spring\n"
    prompt("workflows", "save", written("chain.yaml", flows.CHAIN.replace("prompt: two", "prompt: zwei")))
    newest, first = prompt("workflows", "versions", "chain").out.splitlines()
    assert newest.endswith("(draft)")
    assert first.endswith("Spring  (published)")
    assert prompt("workflows", "publish", "chain", "Spring").code == 2, "the name is taken"
    assert prompt("workflows", "unpublish", "chain").out == "chain: the newest revision runs\n"
    assert "(draft)" not in prompt("workflows", "versions", "chain").out


def test_workflows_are_moved_into_folders(prompt: Prompt) -> None:
    prompt("workflows", "save", written("chain.yaml", flows.CHAIN))
    assert prompt("folders", "add", "sales/mail").out == "sales/mail\n"
    assert prompt("workflows", "move", "chain", "sales/mail").out == "chain: sales/mail\n"
    assert prompt("folders", "share", "sales", "--group", "desk").out.endswith("shared with groups (desk)\n")
    assert prompt("folders", "rename", "sales", "shop").out == "shop\n"
    listed = [(one["path"], one["workflows"]) for one in prompt("folders", "list", "--json").json["folders"]]
    assert listed == [("shop", 0), ("shop/mail", 1)]
    assert prompt("folders", "delete", "shop/mail").code == 2, "it is not empty"
    assert prompt("workflows", "move", "chain", "").out == "chain: in no folder\n"
    assert prompt("folders", "delete", "shop/mail").code == 0
