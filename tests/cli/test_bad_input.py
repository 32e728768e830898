"""Invalid arguments, files and stores: one message, the right exit code, never a traceback."""

from __future__ import annotations

import json
import shlex
import sqlite3
from pathlib import Path

import pytest

from pointsman import Pointsman
from pointsman.settings import SettingsInvalid
from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written

BOMB = b"".join(
    b"%c: &%c [%s]\n" % (97 + n, 97 + n, b", ".join([b"x" if not n else b"*%c" % (96 + n)] * 9)) for n in range(9)
)
"""Nine levels of nine aliases each: a few hundred bytes that expand to 387 million texts."""
FILES = {
    "directory": None,
    "binary.json": bytes(range(256)) * 40,
    "empty.yaml": b"",
    "spaces.json": b"  \n ",
    "half.json": b'{"nodes": [',
    "flow.yaml": b"a: [1\nb: 2",
    "tabs.yaml": b"a:\n\t- b",
    "huge.json": b"[" + b"1," * 9_000_000 + b"1]",
    "deep.json": b"[" * 100_000,
    "latin.yaml": "name: Müller".encode("latin-1"),
    "twice.json": b'{"id": 1, "id": 2}',
    "number.json": b"42",
    "list.json": b"[]",
    "null.json": b"null",
    "bomb.yaml": BOMB,
    "cycle.yaml": b"a: &a [*a]",
    "python.yaml": b"a: !!python/object/apply:os.system [id]",
    "surrogate.json": b'{"id": "\\ud800", "nodes": [], "edges": []}',
    "words.txt": b"Please run my workflow.",
}
UNREADABLE = {
    "directory", "binary.json", "empty.yaml", "spaces.json", "half.json", "flow.yaml", "tabs.yaml", "huge.json",
    "deep.json", "latin.yaml", "bomb.yaml", "cycle.yaml", "python.yaml",
}  # fmt: skip


def made(name: str) -> str:
    content = FILES[name]
    if content is None:
        Path(name).mkdir()
    else:
        Path(name).write_bytes(content)
    return name


@pytest.mark.parametrize("name", FILES)
def test_check_reports_problems_of_any_file(prompt: Prompt, name: str) -> None:
    printed = prompt("check", made(name), "--json")
    assert printed.code == (2 if name in UNREADABLE else 1)
    assert printed.json["ok"] is False
    assert printed.json["problems"][0]["message"]


@pytest.mark.parametrize("name", FILES)
def test_run_refuses_any_invalid_file_without_a_traceback(prompt: Prompt, name: str) -> None:
    printed = prompt("run", made(name), "--json")
    assert printed.code == (2 if name in UNREADABLE else 1)
    assert printed.json["status"] == "refused"
    assert printed.json["errors"][0]["message"]
    assert "bug [" not in printed.err


@pytest.mark.parametrize(
    ("bom", "encoding"), [(b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8")]
)
def test_other_encodings_of_unicode_are_read(prompt: Prompt, bom: bytes, encoding: str) -> None:
    Path("flow.yaml").write_bytes(bom + flows.CHAIN.encode(encoding))
    assert prompt("check", "flow.yaml").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nothing"],
        ["--nothing"],
        ["run"],
        ["run", "flow.yaml", "--nothing"],
        ["run", "flow.yaml", "extra"],
        ["run", "flow.yaml", "-i", "no equals sign"],
        ["run", "flow.yaml", "-i", "=value"],
        ["run", "flow.yaml", "--input", '{"a": }'],
        ["run", "flow.yaml", "--input", "@none.json"],
        ["run", "flow.yaml", "--input", "@."],
        ["run", "flow.yaml", "--input", "7"],
        ["run", "flow.yaml", "--input", "text", "-i", "a=b"],
        ["run", "flow.yaml", "--answer", "nothing"],
        ["run", "flow.yaml", "--answer", "gate="],
        ["run", "flow.yaml", "--answer", "gate=[1]"],
        ["run", "flow.yaml", "--answer", "gate={"],
        ["run", "flow.yaml", "--answer", 'gate={"data": 1}'],
        ["run", "flow.yaml", "--answer", 'gate={"action": "a", "colour": 1}'],
        ["run", "flow.yaml", "--durability", "often"],
        ["run", "flow.yaml", "--dialect", "klingon"],
        ["run", "flow.yaml", "--script", "none.yaml"],
        ["run", "nowhere"],
        ["run", "nowhere.yaml"],
        ["run", "no/where"],
        ["run", "\udcff"],
        ["check"],
        ["convert", "flow.yaml"],
        ["convert", "flow.yaml", "--to", "latin"],
        ["convert", "flow.yaml", "--to", "native", "--out", "no/such/directory.json"],
        ["answer", "exec-none", "gate", "{"],
        ["resume", "exec-none", "--limit", "steps=many"],
        ["resume", "exec-none", "--limit", "steps=-1"],
        ["resume", "exec-none", "--limit", "steps=nan"],
        ["list", "--limit", "0"],
        ["list", "--status", "lost"],
        ["workflows", "nothing"],
        ["workflows", "get", "nothing"],
        ["workflows", "delete", "nothing"],
        ["workflows", "versions", "nothing"],
        ["workflows", "diff", "nothing"],
        ["test", "nowhere"],
        ["completion", "powershell"],
    ],
)
def test_wrong_usage_exits_with_code_2_and_the_reason(prompt: Prompt, arguments: list[str]) -> None:
    written("flow.yaml", flows.CHAIN)
    printed = prompt(*arguments)
    assert printed.code == 2
    assert printed.err
    assert "bug [" not in printed.err
    assert printed.out == ""


def test_wrong_usage_with_json_option_prints_json(prompt: Prompt) -> None:
    printed = prompt("run", written("flow.yaml", flows.CHAIN), "--json", "--answer", "nothing")
    assert (printed.code, printed.json["status"], printed.json["errors"][0]["code"]) == (2, "refused", "usage")


def test_a_mistyped_command_gets_a_suggestion(prompt: Prompt) -> None:
    assert "Did you mean 'check'?" in prompt("chekc", "flow.yaml").err


def test_problems_of_an_input_file_have_a_position(prompt: Prompt) -> None:
    written("in.json", '{"a": 1,\n "b": }')
    printed = prompt("run", written("flow.yaml", flows.CHAIN), "--input", "@in.json")
    assert printed.code == 2
    assert "in.json:2:7" in printed.err


def test_problems_of_a_script_name_the_script_file(prompt: Prompt) -> None:
    script = written("s.yaml", "rules:\n  - {nod: write}")
    printed = prompt("run", written("flow.yaml", flows.CHAIN), "--script", script)
    assert printed.code == 1
    assert printed.err.startswith("s.yaml:2:6: error [unknown-key]")
    assert "Did you mean 'node'?" in printed.err


STORES = {
    "no-scheme.db": "store-unknown",
    "klingon://x": "store-unknown",
    "sqlite:///directory.db": "store-missing",
    "sqlite:///no/such/place.db": "store-missing",
    "sqlite:///garbage.db": "store-foreign",
    "sqlite:///other.db": "store-foreign",
    "sqlite:///newer.db": "store-newer",
    "sqlite:///": "store-missing",
}


@pytest.mark.parametrize("url", STORES)
def test_an_unusable_store_exits_with_code_1_and_a_hint(prompt: Prompt, url: str) -> None:
    Path("directory.db").mkdir()
    Path("garbage.db").write_bytes(b"not a database at all, but longer than a header of one hundred bytes" * 4)
    with sqlite3.connect("other.db") as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    prompt("list", "--store", "sqlite:///newer.db")
    with sqlite3.connect("newer.db") as newer:
        newer.execute("PRAGMA user_version = 999")
    newer.close()
    for command in (["list"], ["run", written("flow.yaml", flows.CHAIN)]):
        printed = prompt(*command, "--store", url)
        assert printed.code == 1
        assert f"[{STORES[url]}]" in printed.err
        assert "  → " in printed.err


def test_a_store_that_another_process_locks_is_reported(prompt: Prompt) -> None:
    prompt("list", "--store", "sqlite:///held.db")
    holder = sqlite3.connect("held.db", isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    printed = prompt("list", "--store", "sqlite:///held.db")
    holder.close()
    assert (printed.code, "[store-locked]" in printed.err) == (1, True)


@pytest.mark.parametrize(
    ("text", "told"),
    [("x = ", "cannot be read"), ("stoer = 'x'", "Did you mean 'store'?"), ("delays = 'perhaps'", "delays")],
)
def test_invalid_settings_are_reported_with_file_and_key(prompt: Prompt, text: str, told: str) -> None:
    written("pointsman.toml", text)
    printed = prompt("settings")
    assert printed.code == 1
    assert "pointsman.toml" in printed.err
    assert told in printed.err


def test_a_data_directory_that_cannot_be_created_is_reported(prompt: Prompt, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file stands in the way", encoding="utf-8")
    printed = prompt("list")
    assert (printed.code, "--store" in printed.err) == (1, True)


def test_an_empty_store_address_is_refused(prompt: Prompt) -> None:
    printed = prompt("list", "--store", "")
    assert (printed.code, "is empty" in printed.err) == (2, True)
    with pytest.raises(SettingsInvalid, match="the address of the store is empty"):
        Pointsman("")


def test_suggested_commands_can_be_pasted_into_a_shell(prompt: Prompt) -> None:
    printed = prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=x", "--store", "sqlite:///a & b.db")
    assert printed.code == 3
    said = next(line for line in printed.err.splitlines() if "pointsman answer" in line)
    command = shlex.split(said.partition("→ pointsman ")[2])
    assert prompt(*["approve" if word.startswith("approve|") else word for word in command]).code == 0


def test_an_input_that_is_too_large_gets_a_hint_where_to_store_data(prompt: Prompt) -> None:
    Path("large.json").write_bytes(b'{"a": "' + b"x" * 17_000_000 + b'"}')
    for given, stdin in (("@large.json", b""), ("-", Path("large.json").read_bytes())):
        printed = prompt("run", written("chain.yaml", flows.CHAIN), "--input", given, stdin=stdin)
        assert printed.code == 2
        assert "larger than 16 MiB" in printed.err
        assert "where a tool of the workflow can read them" in printed.err


@pytest.mark.parametrize("option", ["--key", "--session", "--model", "--script", "--store"])
def test_an_empty_option_value_from_an_unset_variable_is_refused(prompt: Prompt, option: str) -> None:
    printed = prompt("run", written("chain.yaml", flows.CHAIN), option, "", "--json")
    assert (printed.code, printed.json["status"]) == (2, "refused")
    assert "is empty" in printed.err
    assert "`pointsman run --help` shows its arguments and options" in printed.err


def test_a_missing_input_field_is_reported_with_all_fields(prompt: Prompt) -> None:
    printed = prompt("run", written("letter.yaml", flows.APPROVAL))
    assert (printed.code, "→ Its fields: goal (required), tone." in printed.err) == (2, True)


def test_problems_of_a_saved_draft_show_its_name_and_text(prompt: Prompt) -> None:
    assert prompt("workflows", "save", written("broken.yaml", flows.BROKEN), "--draft").code == 0
    printed = prompt("run", "broken")
    assert (printed.code, "broken:6:21: error [dangling-edge]" in printed.err) == (1, True)
    assert "- {source: start, target: nowhere}" in printed.err


def test_deleting_a_single_revision_is_refused(prompt: Prompt) -> None:
    prompt("workflows", "save", written("letter.yaml", flows.APPROVAL))
    refused = prompt("workflows", "delete", "letter@1")
    assert (refused.code, "only a whole workflow can be deleted" in refused.err) == (2, True)
    assert prompt("workflows", "get", "letter").code == 0
    assert prompt("workflows", "delete", "letter", "--json").json == {"deleted": ["letter"]}


def test_a_schedule_in_the_past_is_refused(prompt: Prompt) -> None:
    prompt("workflows", "save", written("waits.yaml", flows.WAITS))
    refused = prompt("schedules", "add", "waits", "--at", "2020-01-01T00:00:00Z")
    assert (refused.code, "2020-01-01T00:00:00.000Z is in the past" in refused.err) == (2, True)
    assert prompt("schedules", "list", "--json").json == {"schedules": []}


def test_an_invalid_limit_is_refused(prompt: Prompt) -> None:
    waits = prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=x", "--json").json["executionId"]
    refused = prompt("resume", waits, "--limit", "steps=900")
    assert (refused.code, "is waiting: a limit can only be raised if" in refused.err) == (2, True)


def test_a_fork_of_a_completed_execution_without_a_row_is_refused(prompt: Prompt) -> None:
    over = prompt("run", written("chain.yaml", flows.CHAIN), "--json").json["executionId"]
    refused = prompt("fork", over)
    assert refused.code == 2
    assert f"{over!r} is completed at row" in refused.err
    assert "retry --from" in refused.err


def test_events_with_json_option_print_one_json_object(prompt: Prompt) -> None:
    execution = prompt("run", written("chain.yaml", flows.CHAIN), "--json").json["executionId"]
    events = prompt("events", execution, "--json").json["events"]
    lines = prompt("events", execution, "--jsonl").out.splitlines()
    assert [event["kind"] for event in events] == [json.loads(line)["kind"] for line in lines]
    assert prompt("events", execution, "--json", "--jsonl").code == 2


@pytest.mark.parametrize("text", ["12", "true", "null", '{"a": 1}', "[", ""])
def test_a_string_field_takes_its_value_unparsed(prompt: Prompt, text: str) -> None:
    file = written("letter.yaml", flows.APPROVAL)
    assert prompt("run", file, "-i", f"goal={text}", "--json").json["input"]["goal"] == text
    assert prompt("workflows", "save", file).code == 0
    printed = prompt("run", "letter", "-i", f"goal={text}", "-i", "tone=12", "--json")
    assert (printed.json["input"]["goal"], printed.json["input"]["tone"]) == (text, 12)
    assert prompt("run", file, "-i", f"goal={text}", "--dry-run").code == 0


def test_a_shortened_source_line_is_marked(prompt: Prompt) -> None:
    long = flows.BROKEN.replace("{source: start, target: nowhere}", "{source: start, " + " " * 90 + "target: nowhere}")
    told = prompt("check", written("long.yaml", long)).out.splitlines()
    quoted = next(line for line in told if "nowhere}" in line and "│" in line)
    caret = next(line for line in told if line.strip().endswith("^"))
    assert quoted.partition("│ ")[2].startswith("…")
    assert quoted[caret.index("^") :].startswith("target: nowhere}") or quoted[caret.index("^") :].startswith("nowhere")


def test_an_empty_name_gets_no_key_and_no_inbox(prompt: Prompt) -> None:
    for words in (("keys", "add", "", "--role", "admin"), ("inbox", "--as", "")):
        assert prompt(*words, "--json").json["status"] == "refused"
    assert prompt("keys", "list", "--json").json == {"keys": []}
    assert prompt("keys", "add", "ada").code == 0
    assert prompt("keys", "revoke", "ada", "--json").json == {"revoked": ["ada"], "admins": 0}
