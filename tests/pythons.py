"""`python -m tests.pythons`: the unit tier on every Python that Pointsman supports and this machine has.

Each version has an environment of its own below the user's cache folder. The first run installs what
`requirements/dev.lock` names; later runs reuse it until the lock changes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
LOCK: Final = ROOT / "requirements" / "dev.lock"
OLDEST: Final = (3, 11)
MINORS: Final = range(11, 31)
MANAGED: Final = (".pyenv/versions", ".local/share/uv/python")
"""Directories of interpreters of pyenv and uv, below the home folder."""
VERSION: Final = "import ensurepip, sys, venv; print(*sys.version_info[:3])"


def candidates() -> Iterator[Path]:
    """Yield programs that may be a Python interpreter."""
    found = (shutil.which(f"python3.{minor}") for minor in MINORS)
    yield from (Path(one) for one in found if one)
    for folder in MANAGED:
        yield from sorted((Path.home() / folder).glob("*/bin/python3"))


def version_of(program: Path) -> tuple[int, ...] | None:
    """Return its version; None if it does not run or cannot make environments."""
    asked = subprocess.run([program, "-c", VERSION], capture_output=True, text=True, check=False)
    return tuple(int(part) for part in asked.stdout.split()) if asked.returncode == 0 else None


def pythons() -> dict[str, Path]:
    """Return minor version -> its newest interpreter on this machine."""
    newest: dict[tuple[int, ...], tuple[tuple[int, ...], Path]] = {}
    for program in candidates():
        version = version_of(program)
        if version is None or version[:2] < OLDEST:
            continue
        if version[:2] not in newest or version > newest[version[:2]][0]:
            newest[version[:2]] = version, program
    return {".".join(map(str, minor)): newest[minor][1] for minor in sorted(newest)}


def environment(minor: str, program: Path) -> Path:
    """Return the interpreter of an environment with all packages of the lock."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "pointsman" / f"python{minor}"
    python, stamp = folder / "bin" / "python", folder / "lock"
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text("utf-8") != digest:
        say(f"Python {minor}: installing what {LOCK.name} names (once)")
        subprocess.run([program, "-m", "venv", "--clear", folder], check=True)
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        subprocess.run([*pip, "--require-hashes", "-r", LOCK], check=True)
        stamp.write_text(digest, "utf-8")
    return python


def holds(minor: str, program: Path, arguments: list[str]) -> bool:
    """Return whether the unit tier passes on a Python."""
    python = environment(minor, program)
    say(f"Python {minor}: {program}")
    command = [python, "-m", "pytest", "--tier", "unit", "-n", "auto", "-q", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    failed = [minor for minor, program in pythons().items() if not holds(minor, program, sys.argv[1:])]
    sys.exit(f"the unit tier fails on Python {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
