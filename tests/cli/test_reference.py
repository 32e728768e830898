"""The reference pages of the command line, the settings and workflow tests match the code."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from pointsman.cli.entry import ALIASES, COMMANDS, EXAMPLES, root
from pointsman.models.provider import KEYS_OF_PROVIDERS
from pointsman.settings import Settings
from pointsman.testing.cases import Expect, WorkflowCase
from tests.cli.reference import PAGE, page

REFERENCE = PAGE.parent


def test_the_cli_reference_matches_the_commands() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m tests.cli.reference`"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_matches_their_help(name: str) -> None:
    command = root.get_command(click.Context(root), name)
    assert command is not None
    assert command.name == name
    assert (command.help or "").strip(), "a command says what it does"


@pytest.mark.parametrize(("former", "name"), ALIASES.items())
def test_a_former_name_of_a_command_works_and_is_not_listed(former: str, name: str) -> None:
    context = click.Context(root)
    assert root.get_command(context, former) is root.get_command(context, name)
    assert root.resolve_command(context, [former, "--help"])[1] is root.get_command(context, name)
    assert former not in root.list_commands(context)


def leaves(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield the commands without subcommands, by their full names."""
    if isinstance(command, click.Group) and not command.invoke_without_command:
        for inner in command.commands.values():
            yield from leaves(inner, f"{name} {inner.name}")
    else:
        yield name, command


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_that_parses(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PAGE.parents[2])
    command = root.get_command(click.Context(root), name)
    assert command is not None
    for path, leaf in leaves(command, name):
        assert leaf.epilog, f"give {path!r} an example in pointsman.cli.entry"
        for line in EXAMPLES[path]:
            words = shlex.split(line.partition(" > ")[0].removeprefix('eval "$(').removesuffix(')"').strip())
            assert words[: len(path.split()) + 1] == ["pointsman", *path.split()]
            given = words[len(path.split()) + 1 :]
            assert leaf.make_context(path, given).command is leaf


def rows_of(page: Path) -> set[str]:
    """Return the names in the first columns of its tables."""
    cells = re.findall(r"^\| (`[^|]+`) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_every_setting_is_documented() -> None:
    page = REFERENCE / "settings.md"
    assert rows_of(page) == set(Settings.model_fields)
    text = page.read_text(encoding="utf-8")
    assert all(name in text for name in KEYS_OF_PROVIDERS)


def test_every_key_of_a_workflow_test_is_documented() -> None:
    known = {field.alias or name for model in (WorkflowCase, Expect) for name, field in model.model_fields.items()} | {
        "cases"
    }
    assert rows_of(REFERENCE / "tests.md") == known
