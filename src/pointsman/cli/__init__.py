"""The command line: translates what is typed, calls the app, translates back. No logic of its own.

entry    the commands, and the guard around them: every error is one line and an exit code
options  what several commands take        printing  what several commands show
the rest one module per family of commands, loaded when one of them is used
"""

from __future__ import annotations

from typing import Final

YOUNG_OBJECTS_MAX: Final = 10_000
"""So many new objects before Python looks for circles among them (by default 700). A thousand executions at once are
sixty thousand objects: to look through them again and again took a third of their time."""


def main() -> None:
    """Run the command of this process's arguments and exit with its code."""
    import gc
    import sys

    gc.set_threshold(YOUNG_OBJECTS_MAX)
    try:
        from pointsman.cli.error_boundary import run_guarded
    except KeyboardInterrupt:
        sys.exit(130)
    _keep_output_apart()
    sys.exit(run_guarded(sys.argv[1:]))


def _keep_output_apart() -> None:
    """Let only this program write to standard output. What C code or other programs that tools start write to file
    descriptor 1 goes to standard error.

    A terminal stays as it is: its reader sees both streams anyway, and `input` edits lines only where standard output
    is file descriptor 1.
    """
    import os
    import sys

    try:
        before = sys.stdout
        if before.isatty():
            return
        before.flush()
        own = os.fdopen(os.dup(1), "w", encoding=before.encoding, errors=before.errors)
        sys.stdout = own
        os.dup2(2, 1)
    except (AttributeError, OSError, ValueError):
        return  # There is no standard output, or no standard error: nothing can be mixed up.


__all__ = ["YOUNG_OBJECTS_MAX", "main"]
