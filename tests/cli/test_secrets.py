"""`pointsman secrets`: values are read from standard input and never printed."""

from __future__ import annotations

from pathlib import Path

from pointsman.auth.vault_keys import FILE
from tests.cli.conftest import Prompt

CANARY = "canary-at-the-prompt-07be"
STORE = ("--store", "sqlite:///store.db")


def key_file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "pointsman" / FILE


def test_a_secret_is_set_listed_rotated_and_deleted(prompt: Prompt, tmp_path: Path, own_place: Path) -> None:
    done = prompt("secrets", "set", "WEATHER", "--as", "ada", *STORE, stdin=f"{CANARY}\n")
    assert (done.code, CANARY in done.out + done.err) == (0, False)
    assert key_file(tmp_path).stat().st_mode & 0o777 == 0o600
    listed = prompt("secrets", "list", "--json", *STORE)
    (one,) = listed.json["secrets"]
    assert (one["name"], one["changedBy"]) == ("WEATHER", "ada")
    assert "WEATHER" in prompt("secrets", "list", *STORE).out
    before = key_file(tmp_path).read_text().split()
    assert prompt("secrets", "rotate", "--new-key", "--json", *STORE).json == {"rotated": 1}
    newest, *older = key_file(tmp_path).read_text().split()
    assert older == before
    key_file(tmp_path).write_text(newest + "\n")
    assert prompt("secrets", "rotate", "--json", *STORE).json == {"rotated": 1}, "the newest key alone opens it"
    assert CANARY.encode() not in (own_place / "store.db").read_bytes()
    assert prompt("secrets", "delete", "WEATHER", "--json", *STORE).json == {"deleted": ["WEATHER"]}
    assert prompt("secrets", "list", "--json", *STORE).json == {"secrets": []}


def test_secrets_init_creates_the_key_file_only_once(prompt: Prompt, tmp_path: Path) -> None:
    assert prompt("secrets", "init", "--json").json == {"keyFile": str(key_file(tmp_path))}
    key = key_file(tmp_path).read_text()
    again = prompt("secrets", "init")
    assert (again.code != 0, "vault-key-invalid" in again.err or "already" in again.err) == (True, True)
    prompt("secrets", "set", "WEATHER", *STORE, stdin=CANARY)
    assert key_file(tmp_path).read_text() == key


def test_a_lost_key_is_reported_without_a_traceback(prompt: Prompt, tmp_path: Path) -> None:
    prompt("secrets", "set", "WEATHER", *STORE, stdin=CANARY)
    key_file(tmp_path).unlink()
    for command in (("rotate",), ("set", "MAIL")):
        lost = prompt("secrets", *command, *STORE, stdin=CANARY)
        assert lost.code != 0
        assert "POINTSMAN_VAULT_KEYS" in lost.err
        assert "Traceback" not in lost.err
    assert prompt("secrets", "list", "--json", *STORE).json["secrets"][0]["name"] == "WEATHER"


def test_bad_values_and_names_are_refused(prompt: Prompt, tmp_path: Path) -> None:
    for name, value in (("WEATHER", b""), ("WEATHER", b"short\n"), ("WEATHER", b"\xff" * 20), ("a/b", b"long enough")):
        refused = prompt("secrets", "set", name, *STORE, stdin=value)
        assert (refused.code, "Traceback" in refused.err) == (2, False), (name, value, refused.err)
    assert not key_file(tmp_path).exists(), "no key is made for what is refused"
