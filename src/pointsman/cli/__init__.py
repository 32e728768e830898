"""Command line: parses arguments, calls the app and prints the results. It contains no business logic.

entry           the commands            error_boundary  turns every error into one line and an exit code
options         shared options          printing        shared output
the rest        one module per group of commands, imported when one of its commands is used
"""

from __future__ import annotations

from typing import Final

YOUNG_OBJECTS_MAX: Final = 10_000
"""Generation-0 threshold of the garbage collector, in objects (Python's default: 700). A thousand concurrent executions
have 60,000 objects; with the default, repeated collections took a third of the run time."""


def main() -> None:
    """Run the command given by this process's arguments, and exit with its code."""
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
    """Reserve standard output for this program. Output that C code, or programs started by tools, write to file
    descriptor 1 goes to standard error.

    A terminal is not changed: the user sees both streams anyway, and `input` supports line editing only if standard
    output is file descriptor 1.
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
        return  # Without standard output or standard error, the streams cannot mix.


__all__ = ["YOUNG_OBJECTS_MAX", "main"]
