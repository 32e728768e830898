"""Run pytest, and run failed tests once more, alone: those that then pass are reported as unsteady.

    python -m tests.twice -n auto -q

More than three failures are not repeated, nor are those of an aborted run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

UNSTEADY_MAX: Final = 3
FAILED: Final = Path(".pytest_cache/v/cache/lastfailed")
"""pytest's list of the tests that failed last, below the working directory."""


def main(arguments: Sequence[str]) -> int:
    """Return the exit code of the run, or of the second one if there was one."""
    FAILED.unlink(missing_ok=True)
    code = asked(*arguments)
    failed = sorted(json.loads(FAILED.read_text("utf-8"))) if FAILED.exists() else []
    if code != pytest.ExitCode.TESTS_FAILED or not 0 < len(failed) <= UNSTEADY_MAX:
        return code
    print(f"\n{len(failed)} failed among all others. Once more, alone:", flush=True)  # noqa: T201 - it is a command
    if again := asked(*arguments, "-n", "0", "--last-failed", "--last-failed-no-failures=none"):
        return again
    print("UNSTEADY, held when asked alone; find out why:", *failed, sep="\n    ", flush=True)  # noqa: T201 - as above
    return 0


def asked(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
