"""Builds the web app into the package if its sources have changed since the last build. Also: `python hatch_build.py`.

    POINTSMAN_UI=auto     build if npm is installed, otherwise print what is missing (the default)
    POINTSMAN_UI=require  fail if it cannot be built
    POINTSMAN_UI=skip     do not build

A wheel contains the built app and the documentation site (`docs/site/build.py`), so its users need no Node. An editable
install builds nothing by itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT: Final = Path(__file__).parent
WEB: Final = ROOT / "web"
STATIC: Final = ROOT / "src" / "pointsman" / "server" / "static"
DOCUMENTATION: Final = ROOT / "docs" / "site" / "build.py"
STAMP: Final = STATIC / ".sources"
LEFT_OUT: Final = frozenset({"node_modules", "testing"})
"""Folders that the built app has nothing of; neither has it of files whose names contain `.test.`."""
INSTALLED: Final = WEB / "node_modules" / ".installed"
"""The digest of the lock whose packages are installed."""
NODE_MAJOR_MIN: Final = 20


class UiNotBuilt(Exception):
    """The web app could not be built. The message states what to do."""


class WebAppHook(BuildHookInterface[Any]):
    """Called by hatchling before a wheel or a source distribution is packed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or not WEB.is_dir():
            return
        self.app.display_info(build_ui(os.environ.get("POINTSMAN_UI", "auto")))
        subprocess.run([sys.executable, str(DOCUMENTATION)], check=True)


def build_ui(wish: str) -> str:
    """Return a sentence about the result. Raises `UiNotBuilt` if the build failed, or with `require` if it is
    impossible."""
    if wish not in ("auto", "require", "skip"):
        raise UiNotBuilt(f"POINTSMAN_UI is auto, require or skip, not {wish!r}")
    if wish == "skip":
        return "The web app is left as it is."
    digest = digest_of(WEB)
    if STAMP.is_file() and STAMP.read_text("utf-8") == digest:
        return "The web app is built already."
    if missing := what_is_missing():
        if wish == "require":
            raise UiNotBuilt(missing)
        return f"The web app is not built: {missing}"
    install_packages()
    run("run", "build", "--silent")
    STAMP.write_text(digest, "utf-8")
    return "The web app is built."


def install_packages() -> None:
    """Install what the lock names, unless it is installed already. Raises `UiNotBuilt`."""
    lock = sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    if INSTALLED.is_file() and INSTALLED.read_text("utf-8") == lock:
        return
    run("ci", "--no-audit", "--no-fund", "--loglevel=error")  # Removes what was installed before.
    INSTALLED.write_text(lock, "utf-8")


def what_is_missing() -> str:
    """Empty: it can be built."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return f"it takes Node {NODE_MAJOR_MIN} or newer with npm (https://nodejs.org)"
    found = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    major = found.lstrip("v").partition(".")[0]
    if not major.isdigit() or int(major) < NODE_MAJOR_MIN:
        return f"it takes Node {NODE_MAJOR_MIN} or newer, and here is {found or 'another program of that name'}"
    return ""


def run(*arguments: str) -> None:
    npm = shutil.which("npm") or "npm"
    done = subprocess.run([npm, *arguments], cwd=WEB, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UiNotBuilt(f"`npm {' '.join(arguments)}` in web/ failed:\n{done.stdout}{done.stderr}".rstrip())


def digest_of(folder: Path) -> str:
    """Of the names and contents of all sources."""
    found = sha256()
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and LEFT_OUT.isdisjoint(inside.parts) and ".test." not in path.name:
            content = path.read_bytes()
            found.update(f"{inside.as_posix()}\n{len(content)}\n".encode() + content)
    return found.hexdigest()


if __name__ == "__main__":
    try:
        print(build_ui(os.environ.get("POINTSMAN_UI", "auto")))
    except UiNotBuilt as why:
        sys.exit(str(why))
