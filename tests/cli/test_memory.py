"""`pointsman memory`: owners, contents, and invalid requests."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Prompt

STORE = ("--store", "sqlite:///m.db")


def test_values_are_set_listed_found_and_deleted_across_commands(prompt: Prompt) -> None:
    assert prompt("memory", "list", *STORE).err == "no values\n"
    ann = ("--user", "ann", *STORE)
    assert prompt("memory", "set", "tone", '"short"', *ann, "--ttl", "30d").json == "short"
    assert prompt("memory", "set", "a/b", "plain words", *ann, "-n", "notes").json == "plain words"
    assert prompt("memory", "append", "log", "1", *ann).json == [1]
    assert prompt("memory", "append", "log", "2", *ann).json == [1, 2]
    listed = prompt("memory", "list", *ann).out.splitlines()
    assert [line.split("  ")[0] for line in listed] == ["log", "notes/a/b", "tone"]
    assert "(until 20" in listed[2]
    told = prompt("memory", "list", *ann, "--json").json["remembered"]
    assert [(one["namespace"], one["key"], one["value"]) for one in told] == [
        ("", "log", [1, 2]),
        ("notes", "a/b", "plain words"),
        ("", "tone", "short"),
    ]
    found = prompt("memory", "search", "WORDS", "nothing", *ann, "--json").json["found"]
    assert found == [{"namespace": "notes", "key": "a/b", "value": "plain words"}]
    assert prompt("memory", "list", *STORE, "--json").json["owners"] == [
        {"scope": "user", "owner": "ann", "keys": 3, "bytes": 25}
    ]
    assert prompt("memory", "delete", "log", *ann).code == 0
    assert prompt("memory", "delete", "log", *ann).code == 1
    assert prompt("memory", "delete", "--all", *ann, "-n", "notes", "--json").json == {"deleted": 1}
    assert prompt("memory", "get", "tone", *ann).json == "short"
    gone = prompt("memory", "get", "log", *ann)
    assert (gone.code, gone.json) == (1, None)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("list", "--user", "a", "--session", "b"), "give one owner"),
        (("get", "k"), "give one owner"),
        (("get", "", "--user", "a"), "memory-key-invalid"),
        (("get", "k", "--user", ""), "memory-key-invalid"),
        (("get", "a\nb", "--user", "a"), "memory-key-invalid"),
        (("set", "k", "{", "--user", "a"), "is not JSON"),
        (("set", "k", "null", "--user", "a"), "memory delete"),
        (("set", "k", "1", "--user", "a", "--ttl", "soon"), "length of time"),
        (("set", "k", "1", "--user", "a", "--ttl", "-1s"), "length of time"),
        (("delete", "--user", "a"), "--all"),
        (("delete", "k", "--all", "--user", "a"), "--all"),
        (("search", "--user", "a"), "WORDS"),
        (("list", "--user", "a", "--limit", "0"), "--limit"),
    ],
)
def test_contradictory_memory_options_exit_with_code_2(prompt: Prompt, words: tuple[str, ...], says: str) -> None:
    printed = prompt("memory", *words, *STORE)
    assert (printed.code, printed.out) == (2, "")
    assert says in printed.err


def test_a_value_that_is_too_large_is_refused_and_changes_nothing(prompt: Prompt) -> None:
    ann = ("--user", "ann", *STORE)
    prompt("memory", "set", "k", "1", *ann)
    printed = prompt("memory", "set", "k", "x" * 1_000_001, *ann)
    assert (printed.code, printed.out) == (2, "")
    assert "memory-full" in printed.err
    assert prompt("memory", "get", "k", *ann).json == 1


def test_control_characters_in_remembered_values_are_escaped(prompt: Prompt) -> None:
    prompt("memory", "set", "k", '"\\u001b[2Jgone"', "--user", "ann", *STORE)
    assert "\x1b" not in prompt("memory", "list", "--user", "ann", *STORE).out
    assert "\x1b" not in prompt("memory", "search", "gone", "--user", "ann", *STORE).out


def test_earlier_values_are_listed_and_restored(prompt: Prompt) -> None:
    ann = ("--user", "ann", *STORE)
    for value in ("short", "long", "\\u001b[2Jodd"):
        prompt("memory", "set", "tone", f'"{value}"', *ann)
    lines = prompt("memory", "history", "tone", *ann).out.splitlines()
    assert [line.split()[0] for line in lines] == ["3", "2", "1"]
    assert [line.rsplit("  ", 1)[1] for line in lines[1:]] == ["long", "short"]
    assert "\x1b" not in "".join(lines)
    told = prompt("memory", "history", "tone", *ann, "--json", "--limit", "2").json["changes"]
    assert [(one["number"], one["by"]["entrance"]) for one in told] == [(3, "shell"), (2, "shell")]
    assert prompt("memory", "restore", "tone", "1", *ann).json == "short"
    assert prompt("memory", "get", "tone", *ann).json == "short"
    gone = prompt("memory", "restore", "tone", "77", *ann)
    assert gone.code == 2
    assert "no-such-memory" in gone.err
    assert "change number 77 of 'tone'" in gone.err
    prompt("memory", "delete", "tone", *ann)
    nothing = prompt("memory", "history", "tone", *ann)
    assert (nothing.code, nothing.out) == (1, "")
    assert prompt("memory", "history", "tone", *ann, "--json").json == {"changes": []}
