"""Storage commands: each opens the store again."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written


def begun(prompt: Prompt, *options: str) -> str:
    return prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=x", *options, "--json").json["executionId"]


def test_a_deleted_execution_is_unknown(prompt: Prompt) -> None:
    execution = begun(prompt, "--answer", "review=approve")
    printed = prompt("delete", execution, "--json")
    assert (printed.code, printed.json) == (0, {"deleted": [execution]})
    shown = prompt("show", execution)
    assert (shown.code, "unknown-execution" in shown.err) == (2, True)
    assert prompt("delete", execution).code == 2
    assert prompt("verify").code == 0


def test_a_waiting_execution_is_deleted_only_after_cancel(prompt: Prompt) -> None:
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


def test_delete_requires_executions_or_a_session(prompt: Prompt) -> None:
    assert prompt("delete").code == 2
    assert prompt("delete", "exec-a", "--session", "talk").code == 2


def test_of_several_executions_all_are_deleted_or_none(prompt: Prompt) -> None:
    ended, waiting = begun(prompt, "--answer", "review=approve"), begun(prompt)
    for wrong in ("exec-none", waiting):
        assert prompt("delete", ended, wrong).code == 2
        assert prompt("show", ended).code == 0
    prompt("cancel", waiting)
    assert prompt("delete", ended, waiting, ended, "--json").json == {"deleted": [ended, waiting]}


def test_gc_deletes_expired_executions_and_lists_them_in_a_dry_run(prompt: Prompt) -> None:
    execution = begun(prompt, "--answer", "review=approve")
    waiting = begun(prompt)
    assert prompt("gc", "--json").json["executions"] == []
    Path("pointsman.toml").write_text("[retention]\ncompleted = 0\n", encoding="utf-8")
    planned = prompt("gc", "--dry-run", "--json").json
    assert (planned["dryRun"], planned["executions"]) == (True, [execution])
    assert prompt("show", execution).code == 0
    assert prompt("gc").out == f"{execution}\n"
    assert [one["executionId"] for one in prompt("list", "--json").json["executions"]] == [waiting]


def test_an_exported_execution_continues_in_another_store(prompt: Prompt) -> None:
    execution = begun(prompt)
    printed = prompt("export", execution, "-o", "letter.jsonl")
    assert (printed.code, printed.out) == (0, "")
    assert prompt("export", execution).out == Path("letter.jsonl").read_text(encoding="utf-8")
    other = ("--store", "sqlite:///other.db")
    assert prompt("import", "letter.jsonl", "--json", *other).json == {"executionId": execution}
    answered = prompt("answer", execution, "review", "approve", "--json", *other)
    assert (answered.code, answered.json["status"]) == (0, "completed")
    assert prompt("show", execution, "--json").json["status"] == "waiting", "the original knows nothing of it"
    assert prompt("verify", *other).code == 0


def test_an_existing_execution_is_imported_only_under_a_new_id(prompt: Prompt) -> None:
    execution = begun(prompt)
    prompt("export", execution, "-o", "letter.jsonl")
    refused = prompt("import", "letter.jsonl")
    assert (refused.code, "execution-exists" in refused.err) == (2, True)
    copy = prompt("import", "letter.jsonl", "--new-id").out.strip()
    assert copy != execution
    assert prompt("answer", copy, "review", "approve").code == 0
    assert prompt("show", execution, "--json").json["status"] == "waiting"


def test_export_replaces_only_regular_files(prompt: Prompt) -> None:
    execution = begun(prompt)
    whole = prompt("export", execution).out
    assert prompt("export", execution, "-o", "-").out == whole
    Path("there.jsonl").write_text("old", encoding="utf-8")
    Path("link.jsonl").symlink_to("there.jsonl")
    assert prompt("export", execution, "-o", "link.jsonl").code == 0
    assert (Path("link.jsonl").is_symlink(), Path("there.jsonl").read_text(encoding="utf-8")) == (True, whole)
    os.mkfifo("pipe")
    with ThreadPoolExecutor(1) as reader:
        read = reader.submit(Path("pipe").read_text, encoding="utf-8")
        assert prompt("export", execution, "-o", "pipe").code == 0
        assert read.result(timeout=120) == whole
    assert Path("pipe").is_fifo()


def test_unreadable_and_unwritable_files_are_reported(prompt: Prompt) -> None:
    execution = begun(prompt)
    unwritable = prompt("export", execution, "-o", "no/such/place.jsonl")
    assert (unwritable.code, "file-unwritable" in unwritable.err) == (1, True)
    assert prompt("export", "exec-none", "-o", "none.jsonl").code == 2
    assert not Path("none.jsonl").exists()
    assert [one.name for one in Path().iterdir() if one.name.startswith("tmp")] == []
    Path("odd.jsonl").write_bytes(b"\xff\xfe not this")
    refused = prompt("import", "odd.jsonl")
    assert (refused.code, "import-refused" in refused.err) == (2, True)
    assert prompt("import", "nothing.jsonl").code == 2
