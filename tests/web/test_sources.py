"""The sources of the web app: their own tests, their style and their types."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "web"


@pytest.mark.skipif(not (WEB / "node_modules").is_dir(), reason="npm is not here, or has not run: make ui")
@pytest.mark.parametrize("script", ["check", "test"])
def test_the_sources_hold_their_own_rules(script: str) -> None:
    npm = shutil.which("npm")
    assert npm is not None
    done = subprocess.run(
        [npm, "run", "--silent", script], cwd=WEB, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
