"""Other operating systems, simulated in a process of its own: modules and functions that they lack are removed."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

SIMULATION: Final = '''
import asyncio, importlib, os, pkgutil, signal, sys, types

import pointsman

LINUX_ONLY = ("pointsman.tools.sandbox.confine", "pointsman.tools.sandbox.landlock")
"""Parts of a sandbox, which is found on Linux only."""


def modules(package):
    found = pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    return [one.name for one in found if one.name not in LINUX_ONLY and not one.name.endswith("__main__")]


names = NAMES or modules(pointsman)
for name in names:  # Loads the standard library and other packages as this system has them.
    importlib.import_module(name)
for name in [name for name in sys.modules if name.partition(".")[0] == "pointsman"]:
    del sys.modules[name]

sys.platform = PLATFORM
if PLATFORM == "win32":
    for missing in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty"):
        sys.modules[missing] = None
    for missing in ("O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_PATH", "geteuid", "getuid", "killpg",
                    "uname", "pwrite", "nice", "setsid", "fork", "lockf", "sched_getaffinity"):
        if hasattr(os, missing):
            delattr(os, missing)
    for missing in ("SIGHUP", "SIGKILL", "SIGSTOP", "SIGCONT", "setitimer", "ITIMER_PROF", "pidfd_send_signal"):
        if hasattr(signal, missing):
            delattr(signal, missing)
    held = {}  # identity of a file -> the descriptor that holds its lock

    def identity(file):
        try:
            about = os.fstat(file)
        except OSError:
            return None  # closed, which releases its lock
        return about.st_dev, about.st_ino

    def locking(file, mode, count):
        here = identity(file)
        if here in held and identity(held[here]) == here:
            raise PermissionError(13, "locked")
        held[here] = file

    sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
else:
    for missing in ("O_PATH", "pidfd_open", "sched_getaffinity"):
        if hasattr(os, missing):
            delattr(os, missing)

for name in names:
    importlib.import_module(name)
assert pointsman.__name__ == "pointsman"
'''
WORKFLOW: Final = """
from pointsman import Pointsman
from pointsman.settings import Settings

DOCUMENT = {"id": "w", "nodes": [{"id": "a", "type": "transform", "config": {"set": {"n": "1 + 1"}}}], "edges": [],
            "output": {"n": "n"}}


async def main(store):
    async with Pointsman(store, settings=Settings()) as app:
        async with app.leading():
            print((await (await app.run(DOCUMENT)).output())["n"])


asyncio.run(main(STORE))
"""

SOME: Final = (
    *("pointsman.app", "pointsman.operations.backup"),
    *("pointsman.operations.worker_role", "pointsman.store.sqlite"),
)


def simulated(platform: str, program: str, *, modules: tuple[str, ...] = ()) -> str:
    """Run a program on a simulated system that has loaded these modules, or all, and return its output."""
    text = SIMULATION.replace("PLATFORM", repr(platform)).replace("NAMES", repr(modules)) + program
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


@pytest.mark.integration
@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_every_module_loads_and_a_workflow_runs_in_memory(platform: str) -> None:
    assert simulated(platform, WORKFLOW.replace("STORE", repr("memory:"))) == "2"


@pytest.mark.integration
def test_the_store_in_a_file_has_one_leader_on_windows(tmp_path_factory: pytest.TempPathFactory) -> None:
    store = tmp_path_factory.mktemp("store") / "a.db"
    second = """

async def refused(store):
    from pointsman.runtime.leader import Leader
    async with Pointsman(store, settings=Settings()) as app, Pointsman(store, settings=Settings()) as other:
        async with app.leading():
            try:
                async with other.leading():
                    print("two leaders")
            except Exception as why:
                print(why.code)

asyncio.run(refused(STORE))
"""
    text = (WORKFLOW + second).replace("STORE", repr(f"sqlite:///{store}"))
    assert simulated("win32", text, modules=SOME).split() == ["2", "leader-exists"]


@pytest.mark.integration
def test_a_feature_that_needs_posix_names_itself_and_the_alternative(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = str(tmp_path_factory.mktemp("files"))
    program = f"""
from pathlib import Path
from pointsman.operations.backup import beside
from pointsman.platforms import PlatformUnsupported
from pointsman.tools.files import ArtifactFolder, FileSettings

for call in (lambda: ArtifactFolder(FileSettings(directory={folder!r}), "exec-1"), beside(Path("a")).__enter__):
    try:
        call()
    except PlatformUnsupported as why:
        print(why, "|", why.hint)
"""
    files, backup = simulated("win32", program, modules=SOME).splitlines()
    assert files.startswith("A directory for files of executions (`files`) is not supported on Windows")
    assert "Remove `files` from the settings" in files
    assert backup == "A backup is not supported on Windows | Copy the files of the store while no process uses it."
