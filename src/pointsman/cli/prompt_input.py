"""Lines that a person types: edited, recalled and broken off as at any prompt; or read from a pipe."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module

import click

from pointsman.cli.printing import harmless


def is_terminal() -> bool:
    """A person types, and sees what is printed."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def read_line(prompt: str) -> str | None:
    """The next line; None at the end of the input. Ctrl-C raises `KeyboardInterrupt`, the cursor on a new line."""
    if not is_terminal():
        if sys.stdin.isatty():
            click.echo(harmless(prompt), nl=False, err=True)
        line = sys.stdin.readline()
        return line.rstrip("\n") if line else None
    with suppress(ImportError):
        import_module("readline")  # Once it is loaded, `input` edits and recalls.
    try:
        return input(harmless(prompt))
    except EOFError:
        click.echo("")
        return None
    except KeyboardInterrupt:
        click.echo("")
        raise
