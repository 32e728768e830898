"""`python -m tests.core_install`: tests of the wheel in a fresh environment that has only the packages of the core."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
LOCK: Final = ROOT / "requirements" / "core.lock"
TESTS: Final = "tests/cli/test_extras.py"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="pointsman-core-") as folder:
        place = Path(folder)
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([*build, "--wheel-dir", place, "."], cwd=ROOT, check=True)
        venv.create(place / "venv", with_pip=True)
        python = place / "venv" / "bin" / "python"
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        subprocess.run([*pip, "--require-hashes", "-r", LOCK], check=True)
        subprocess.run([*pip, "--no-deps", *place.glob("*.whl")], check=True)
        command = [sys.executable, "-m", "pytest", "-q", TESTS, *sys.argv[1:]]
        ended = subprocess.run(command, cwd=ROOT, env={**os.environ, "POINTSMAN_CORE_PYTHON": str(python)}, check=False)
    sys.exit(ended.returncode)


if __name__ == "__main__":
    main()
