"""The command line: translates what is typed, calls the app, translates back. No logic of its own.

entry    the commands, and the guard around them: every error is one line and an exit code
options  what several commands take        printing  what several commands show
the rest one module per family of commands, loaded when one of them is used
"""

from __future__ import annotations


def main() -> None:
    """Run the command of this process's arguments and exit with its code."""
    import sys

    from pointsman.cli.guard import run_guarded

    sys.exit(run_guarded(sys.argv[1:]))


__all__ = ["main"]
