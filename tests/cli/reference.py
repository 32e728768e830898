"""Writes docs/reference/cli.md from the commands themselves: `python -m tests.cli.reference`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from pointsman.cli.entry import root

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"

HEADING: Final = "## Commands\n"
"""The text above this heading is written by hand."""


def page() -> str:
    """Return the whole page: its introduction, and the commands."""
    introduction, _, _ = PAGE.read_text(encoding="utf-8").partition(HEADING)
    context = click.Context(root, info_name="pointsman")
    parts = [introduction + HEADING]
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        assert command is not None
        parts += _sections(command, click.Context(command, info_name=name, parent=context))
    return "\n".join(parts)


def _sections(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"### `{context.command_path}`\n"
    yield f"    {' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n"
    yield f"{_text(command)}\n"
    options = [param for param in command.get_params(context) if isinstance(param, click.Option)]
    rows = [_row(option, context) for option in options if "--help" not in option.opts]
    if rows:
        yield "\n".join(["| option | |", "|---|---|", *rows, ""])
    if command.epilog:
        yield "\n".join(f"    {line.strip()}" for line in command.epilog.splitlines()[2:]) + "\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _sections(inner, click.Context(inner, info_name=name, parent=context))


def _text(command: click.Command) -> str:
    """Return its help text, with code where lines must not be wrapped."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    return "\n\n".join(
        "\n".join(f"    {line}" for line in one.splitlines()[1:]) if one.startswith("\b") else one for one in paragraphs
    )


def _row(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    assert record is not None
    spelled, says = (part.replace("|", "\\|") for part in record)
    return f"| `{spelled}` | {says} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
