"""Tools that print, log and fail, in real processes: standard output remains one JSON object."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pointsman.values import JsonObject

STORE = ["--store", "sqlite:///store.db"]
WAITS_S = 60
TOOLS = '''
import logging, os, subprocess, sys, threading
from pointsman import tool

@tool
async def noisy() -> str:
    """Print in every way there is."""
    print("by print")
    logging.getLogger("mine").warning("by logging")
    os.write(1, b"by write\\n")
    subprocess.run([sys.executable, "-c", "print('by a child')"], check=True)
    sys.__stdout__.write("by the first stdout\\n")
    sys.__stdout__.flush()
    return "done"

def parse(order):
    return order["date"]

@tool
async def book() -> str:
    """Fail in a helper."""
    print("booking")
    return parse({})

@tool
def threaded() -> str:
    """Print in a thread of its own."""
    thread = threading.Thread(target=print, args=("by a thread",))
    thread.start()
    thread.join()
    return "done"

print("by the import")

@tool
async def closing() -> str:
    """Close standard output and standard error."""
    print("before")
    sys.stdout.close()
    sys.stderr.close()
    sys.stdout.detach()
    print("after")
    return "done"
'''


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package that provides the tools."""
    site = tmp_path / "site"
    about = site / "loud_tools-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "loud_tools.py").write_text(TOOLS)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: loud-tools\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[pointsman.tools]\nthreaded = loud_tools:threaded\nnoisy = loud_tools:noisy\n"
        "book = loud_tools:book\nclosing = loud_tools:closing\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), *sys.path]))
    return site


def document(tool: str) -> str:
    node: JsonObject = {"id": "work", "type": "tool", "config": {"tool": tool}}
    Path(f"{tool}.json").write_text(json.dumps({"pointsman": 1, "id": tool, "nodes": [node], "edges": []}))
    return f"{tool}.json"


def pointsman(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pointsman", *arguments, *STORE]
    return subprocess.run(command, capture_output=True, text=True, timeout=WAITS_S, check=False)


def test_output_of_tools_does_not_mix_with_the_output_of_the_command() -> None:
    ran = pointsman("run", document("noisy"), "--model", "scripted", "--json")
    assert (ran.returncode, json.loads(ran.stdout)["output"]) == (0, "done")
    for word in ("by print", "by write", "by a child", "by the first stdout"):
        assert word in ran.stderr
    plain = pointsman("run", "noisy.json", "--model", "scripted")
    assert (plain.returncode, plain.stdout) == (0, "done\n")


def test_output_of_imports_and_of_threads_does_not_mix_with_the_output_of_the_command() -> None:
    ran = pointsman("run", document("threaded"), "--model", "scripted", "--json")
    assert (ran.returncode, json.loads(ran.stdout)["output"]) == (0, "done")
    assert {"by the import", "by a thread"} <= {*ran.stderr.splitlines()}


def test_a_tool_cannot_close_the_streams_of_the_command() -> None:
    ran = pointsman("run", document("closing"), "--model", "scripted", "--json")
    assert (ran.returncode, json.loads(ran.stdout)["output"]) == (0, "done")
    assert "before\nafter\n" in ran.stderr


def test_output_and_logs_of_a_tool_are_stored_with_its_step() -> None:
    execution = json.loads(pointsman("run", document("noisy"), "--model", "scripted", "--json").stdout)["executionId"]
    events = json.loads(pointsman("events", execution, "--json").stdout)["events"]
    (printed,) = [one["printed"] for one in events if one["kind"] == "step_succeeded"]
    assert printed == "by print\nwarning mine: by logging\n"
    assert "by logging" not in pointsman("show", execution).stdout
    told = pointsman("show", execution, "--debug").stdout
    assert "work printed:\n  by print\n  warning mine: by logging\n" in told


@pytest.mark.parametrize("flag", [(), ("--debug",)])
def test_a_failed_tool_shows_its_position_and_with_debug_its_traceback(flag: tuple[str, ...], package: Path) -> None:
    ran = pointsman("run", document("book"), "--model", "scripted", *flag)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "[tool-failed] in 'work' the tool 'book' failed: KeyError: 'date'" in ran.stderr
    assert f"at {package}/loud_tools.py:17 in parse" in ran.stderr
    shows = [line in ran.stderr for line in ("Traceback (most recent call last):", 'return order["date"]', "booking")]
    assert shows == [bool(flag), bool(flag), True], "what it prints goes to standard error in any case"
    assert ("it printed:" in ran.stderr) == bool(flag)
    assert "src/pointsman" not in ran.stderr


def test_show_prints_the_traceback_after_the_process_has_ended(package: Path) -> None:
    ran = pointsman("run", document("book"), "--model", "scripted", "--json")
    view = json.loads(ran.stdout)
    assert ran.returncode == 1
    (error,) = view["errors"]
    assert f'File "{package}/loud_tools.py", line 17, in parse' in error["details"]["traceback"]
    assert error["details"]["output"] == "booking\n"
    shown = pointsman("show", view["executionId"], "--debug")
    assert 'return order["date"]' in shown.stdout


BROKEN = {
    "import": "raise RuntimeError('no licence')",
    "end": "raise SystemExit(3)",
    "use": """
class dialect:
    @staticmethod
    def matches(document, **_):
        raise RuntimeError("no licence")
    read = matches

async def store(url):
    raise RuntimeError("no licence")
""",
}
PARTS = {
    "a dialect by its name": ("check", "plain.json", "--dialect", "broken"),
    "a dialect by comparison": ("check", "odd.json"),
    "a store": ("list", "--store", "broken:x"),
}


@pytest.mark.parametrize("fault", BROKEN)
@pytest.mark.parametrize("part", PARTS)
def test_an_error_in_the_code_of_a_package_names_the_package(part: str, fault: str, package: Path) -> None:
    about = package / "broken_things-1.0.dist-info"
    about.mkdir()
    (package / "broken_things.py").write_text(BROKEN[fault])
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-things\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[pointsman.dialects]\nbroken = broken_things:dialect\n[pointsman.journals]\nbroken = broken_things:store\n"
    )
    Path("plain.json").write_text("{}")
    Path("odd.json").write_text(json.dumps({"odd": 1}))
    command = [sys.executable, "-m", "pointsman", *PARTS[part]]
    ran = subprocess.run([*command, "--debug"], capture_output=True, text=True, timeout=WAITS_S, check=False)
    assert "error [package-failed]" in ran.stderr
    assert "'broken-things'" in ran.stderr
    assert "bug" not in ran.stderr.replace("--debug", "")
    assert "Traceback (most recent call last)" in ran.stderr
    assert f'File "{package}/broken_things.py"' in ran.stderr
    plain = subprocess.run(command, capture_output=True, text=True, timeout=WAITS_S, check=False)
    assert plain.returncode == ran.returncode != 0
    assert "Traceback" not in plain.stderr
