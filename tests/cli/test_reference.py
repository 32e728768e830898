"""The pages about the command line, the settings and workflow tests say what is true."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from pointsman.cli.entry import COMMANDS, root
from pointsman.models.kinds import KEYS_OF_PROVIDERS
from pointsman.settings import Settings
from pointsman.testing.files import Case, Expect
from tests.cli.reference import PAGE, page

REFERENCE = PAGE.parent


def test_the_page_of_commands_is_what_the_commands_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m tests.cli.reference`"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_command_says(name: str) -> None:
    command = root.get_command(click.Context(root), name)
    assert command is not None
    assert command.name == name
    assert (command.help or "").strip(), "a command says what it does"


def rows_of(page: Path) -> set[str]:
    """What the first columns of its tables name."""
    cells = re.findall(r"^\| (`[^|]+`) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_every_setting_is_explained() -> None:
    page = REFERENCE / "settings.md"
    assert rows_of(page) == set(Settings.model_fields)
    text = page.read_text(encoding="utf-8")
    assert all(name in text for name in KEYS_OF_PROVIDERS)


def test_every_key_of_a_workflow_test_is_explained() -> None:
    known = {field.alias or name for model in (Case, Expect) for name, field in model.model_fields.items()} | {"cases"}
    assert rows_of(REFERENCE / "tests.md") == known
