"""Settings that admins enter by command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Prompt
from tests.cli.flows import written

STORE = ("--store", "sqlite:///s.db")


def test_an_entered_setting_is_in_effect_until_it_is_unset(prompt: Prompt) -> None:
    assert prompt("settings", "set", "variables", '{"REGION": "eu"}', *STORE, "--json").json["source"] == "app"
    assert prompt("settings", "set", "language", "de", *STORE).code == 0
    found = prompt("settings", *STORE, "--json").json
    assert found["language"] == {"value": "de", "source": "app"}
    assert found["variables"] == {"value": {"REGION": "eu"}, "source": "app"}
    assert prompt("settings", "unset", "language", *STORE, "--json").json == {"unset": ["language"]}
    assert prompt("settings", *STORE, "--json").json["language"]["source"] == "default"


def test_a_look_at_the_settings_creates_no_store(prompt: Prompt) -> None:
    assert prompt("settings", *STORE, "--json").json["language"]["source"] == "default"
    assert not Path("s.db").exists()


def test_the_settings_of_a_store_that_cannot_be_opened_are_shown_with_a_warning(prompt: Prompt) -> None:
    Path("s.db").write_bytes(b"This is not a database. " * 100)
    printed = prompt("settings", *STORE)
    assert printed.code == 0
    assert "language" in printed.out
    assert "warning: what admins entered is not shown:" in printed.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("set", "language", "klingon!"), "setting-invalid", "not a language code"),
        (("set", "variables", "[1]"), "setting-invalid", "variables"),
        (("set", "limits", "{}"), "setting-fixed", "needs a restart"),
        (("set", "colour", "red"), "no-such-setting", "there is no setting 'colour'"),
        (("unset", "language"), "no-such-setting", "nothing was entered for 'language'"),
        (("mail", "not a host", "--sender", "desk@example.org"), "setting-invalid", "not the name of a server"),
    ],
)
def test_what_cannot_be_entered_is_refused_with_a_reason(
    prompt: Prompt, arguments: tuple[str, ...], code: str, words: str
) -> None:
    printed = prompt("settings", *arguments, *STORE)
    assert printed.code == 2
    assert f"[{code}]" in printed.err
    assert words in printed.err


def test_a_setting_of_the_file_has_precedence(prompt: Prompt) -> None:
    written("pointsman.toml", 'language = "de"\n')
    printed = prompt("settings", "set", "language", "fr", *STORE)
    assert "[setting-fixed]" in printed.err
    assert "pointsman.toml" in printed.err


def test_a_mail_server_is_entered_with_a_sealed_password(prompt: Prompt) -> None:
    entered = ("mail", "smtp.example.com", "--user", "desk", "--sender", "Desk <desk@example.org>")
    printed = prompt("settings", *entered, *STORE, "--json", stdin="0badcafe\n")
    assert printed.json["entered"]["password"] == "***"
    found = prompt("settings", *STORE, "--json")
    assert found.json["mail"]["value"]["host"] == "smtp.example.com"
    assert "0badcafe" not in printed.out + found.out
    assert prompt("settings", "unset", "mail", *STORE).code == 0
    assert prompt("settings", *STORE, "--json").json["mail"]["value"] is None


def test_a_mail_server_that_does_not_answer_the_test_is_not_saved(prompt: Prompt) -> None:
    written("pointsman.toml", '[http]\nnetworks = ["127.0.0.0/8"]\nports = [9]\n')
    entered = ("mail", "127.0.0.1", "--port", "9", "--security", "none", "--sender", "desk@example.org")
    printed = prompt("settings", *entered, "--test", "ada@example.org", *STORE, "--json")
    assert printed.code == 1
    assert printed.json["saved"] is False
    assert printed.json["error"]
    assert prompt("settings", *STORE, "--json").json["mail"]["value"] is None
