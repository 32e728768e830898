"""Other operating systems, simulated in a process of its own: modules and functions that they lack are removed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest

SOURCES: Final = Path(__file__).parents[1] / "src"
SIMULATION: Final = '''
import asyncio, importlib, os, pkgutil, signal, socket, sys, time, types

import pointsman

LINUX_ONLY = tuple(f"pointsman.tools.sandbox.{name}" for name in ("confine", "landlock", "program"))
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
                    "uname", "pwrite", "nice", "setsid", "fork", "lockf", "sched_getaffinity", "set_blocking", "waitid",
                    "pidfd_open", "getpgid", "getpgrp", "getppid", "wait", "wait4", "register_at_fork"):
        if hasattr(os, missing):
            delattr(os, missing)
    for missing in ("SIGHUP", "SIGKILL", "SIGSTOP", "SIGCONT", "setitimer", "ITIMER_PROF", "pidfd_send_signal"):
        if hasattr(signal, missing):
            delattr(signal, missing)
    for missing in ("SO_REUSEPORT", "TCP_USER_TIMEOUT", "SOCK_CLOEXEC"):
        delattr(socket, missing)
    for missing in ("clock_gettime", "CLOCK_BOOTTIME", "CLOCK_MONOTONIC"):
        delattr(time, missing)
    kill = os.kill

    def no_event(process, number):
        assert number != 0, "sends Ctrl-C to the process, and ends it otherwise"
        kill(process, number)

    def open_process(rights, inherited, process):
        try:
            kill(process, 0)
        except ProcessLookupError as why:
            why.winerror = 87
            raise
        return process

    os.kill = no_event
    sys.modules["_winapi"] = types.SimpleNamespace(
        OpenProcess=open_process, WaitForSingleObject=lambda *_: 258, CloseHandle=lambda _: None, SYNCHRONIZE=0x100000,
        WAIT_TIMEOUT=258)
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
    for of, names_of in ((os, ("O_PATH", "pidfd_open", "sched_getaffinity", "waitid")),
                         (signal, ("pidfd_send_signal",)), (time, ("CLOCK_BOOTTIME",)),
                         (socket, ("TCP_USER_TIMEOUT", "SOCK_CLOEXEC"))):
        for missing in names_of:
            if hasattr(of, missing):
                delattr(of, missing)

for name in names:
    importlib.import_module(name)
pointsman = importlib.import_module("pointsman")
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


UNSUPPORTED: Final = "platform-unsupported"
FILES_INSTEAD: Final = (
    "Remove `files` from the settings, or run Pointsman on Linux or macOS, in WSL, or in a container."
)
MCP_INSTEAD: Final = "Name its `url` in the settings."


def simulated(platform: str, program: str, *, modules: tuple[str, ...] = ()) -> str:
    """Run a program on a simulated system that has loaded these modules, or all, and return its output."""
    text = SIMULATION.replace("PLATFORM", repr(platform)).replace("NAMES", repr(modules)) + program
    # Other packages are loaded already, by this system, as the program does it.
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


@pytest.mark.integration
@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_every_module_loads_and_a_workflow_runs_in_memory_and_in_a_file(
    platform: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("store") / "100 % of it.db"
    stores = ("memory:", f"sqlite:///{quote(str(file))}")
    assert simulated(platform, "".join(WORKFLOW.replace("STORE", repr(store)) for store in stores)).split() == [
        "2",
        "2",
    ]
    assert file.is_file()


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


FEATURES: Final = """
import json
from pathlib import Path
from pointsman.operations.backup import beside
from pointsman.server.serving import serve
from pointsman.store.postgres import open_postgres
from pointsman.tools.files import ArtifactFolder, FileSettings
from pointsman.tools.mcp.process import ServerProcess
from pointsman.tools.sandbox.interpreter import CodeLimits, Interpreter
from pointsman.tools.sandbox.process import find_sandbox
from pointsman.tools.sql.postgres import ask_postgres


async def start_server():
    async with ServerProcess(["server"], {}, str).transport():
        pass


FEATURES = {
    "files": lambda: ArtifactFolder(FileSettings(directory=FOLDER), "exec-1"),
    "backup": lambda: beside(Path("a")).__enter__(),
    "server": lambda: asyncio.run(serve(None, settings=None, messages=None)),
    "postgres": lambda: asyncio.run(open_postgres("postgresql://example.org/a")),
    "query": lambda: asyncio.run(ask_postgres(None)),
    "mcp": lambda: asyncio.run(start_server()),
    "sandbox": find_sandbox,
    "code": lambda: asyncio.run(Interpreter(CodeLimits()).run("1", {})),
}


def error_of(feature):
    try:
        feature()
    except pointsman.PointsmanError as why:
        return [why.code, str(why), why.hint]


print(json.dumps({name: error_of(feature) for name, feature in FEATURES.items()}))
"""


@pytest.mark.integration
def test_features_that_need_posix_name_themselves_and_the_alternative(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    program = FEATURES.replace("FOLDER", repr(str(tmp_path_factory.mktemp("files"))))
    modules = (*SOME, "pointsman.server.serving", "pointsman.tools.sql.postgres", "pointsman.tools.mcp.process", "mcp")
    elsewhere = "Run Pointsman on Linux or macOS, in WSL, or in a Linux container."
    linux = "Run Pointsman on Linux, in a Linux container, or in WSL."
    unsupported = "is not supported on Windows"
    assert json.loads(simulated("win32", program, modules=modules)) == {
        name: [code, f"{feature} {said}", hint]
        for name, code, feature, said, hint in (
            ("files", UNSUPPORTED, "A directory for files of executions (`files`)", unsupported, FILES_INSTEAD),
            ("backup", UNSUPPORTED, "A backup", unsupported, "Copy the files of the store while no process uses it."),
            ("server", UNSUPPORTED, "The server", unsupported, elsewhere),
            ("postgres", UNSUPPORTED, "A store in PostgreSQL", unsupported, elsewhere),
            ("query", UNSUPPORTED, "A query of a database in PostgreSQL", unsupported, elsewhere),
            ("mcp", UNSUPPORTED, "An MCP server that is started as a process", unsupported, MCP_INSTEAD),
            ("sandbox", "sandbox-missing", "sandboxes", "are not supported on Windows", linux),
            ("code", "sandbox-missing", "sandboxes", "are not supported on Windows", linux),
        )
    }


@pytest.mark.integration
def test_code_is_refused_on_macos_because_of_the_system_and_not_of_a_missing_extra() -> None:
    program = """
from pointsman.tools.sandbox.interpreter import interpreter

try:
    interpreter()
except pointsman.PointsmanError as why:
    print(why)
"""
    modules = (*SOME, "pointsman.tools.sandbox.interpreter")
    assert simulated("darwin", program, modules=modules) == "sandboxes are not supported on macOS"


@pytest.mark.integration
def test_the_command_line_runs_a_workflow_on_windows_and_prints_utf_8(tmp_path: Path) -> None:
    document = tmp_path / "w.json"
    document.write_text(
        json.dumps(
            {
                "id": "w",
                "nodes": [{"id": "a", "type": "transform", "config": {"set": {"n": "'\u00fc \u2192 ' + input.n"}}}],
                "edges": [],
                "output": {"n": "n"},
            }
        ),
        encoding="utf-8",
    )
    program = f"""
import io
from pointsman.cli import main

sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="cp1252")
sys.stdin = io.TextIOWrapper(sys.stdin.buffer, encoding="cp1252")
sys.argv = ["pointsman", "run", {str(document)!r}, "--input", '{{"n": "a"}}', "--store", "memory:", "--json"]
main()
"""
    assert "\u00fc \u2192 a" in simulated("win32", program, modules=("pointsman.cli.entry", "pointsman.cli.run", *SOME))


@pytest.mark.integration
def test_a_vault_has_a_key_file_on_windows_whose_modes_state_nothing(tmp_path: Path) -> None:
    program = f"""
from pointsman.auth.vault_keys import make_key, read_key_file
from pointsman.settings.sections import VaultSettings

settings = VaultSettings(key_file={str(tmp_path / "vault.key")!r})
make_key(settings).chmod(0o666)
make_key(settings)
print(len(read_key_file(settings.key_file)))
"""
    assert simulated("win32", program, modules=(*SOME, "pointsman.auth.vault_keys")) == "2"
