"""The tiers: a unit test that leaves its tier fails, whatever runs; the scale tier runs alone."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import WATCH
from tests.tiers import LeftTheUnitTier

pytestmark = pytest.mark.integration


def bind() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))


def look_up() -> None:
    socket.getaddrinfo("localhost", 80)


def run_a_process() -> None:
    subprocess.run([sys.executable, "-c", ""], check=True)


def open_a_file() -> None:
    sqlite3.connect("store.db").close()


def open_a_file_in_a_thread() -> None:
    thread = threading.Thread(target=open_a_file)
    thread.start()
    thread.join()


@pytest.mark.parametrize("leave", [bind, look_up, run_a_process, open_a_file, open_a_file_in_a_thread])
def test_a_unit_test_that_uses_a_socket_or_process_fails(
    leave: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LeftTheUnitTier, match="mark the test with"), WATCH.watching():
        leave()


def test_event_loops_files_and_stores_in_memory_stay_in_the_unit_tier(tmp_path: Path) -> None:
    with WATCH.watching():
        asyncio.run(asyncio.sleep(0))
        (tmp_path / "one.txt").write_text("one", "utf-8")
        sqlite3.connect(":memory:").close()


def test_threads_that_an_earlier_test_left_do_not_count(tmp_path: Path) -> None:
    go, done = threading.Event(), threading.Event()

    def work() -> None:
        go.wait()
        sqlite3.connect(tmp_path / "store.db").close()
        done.set()

    threading.Thread(target=work).start()
    with WATCH.watching():
        go.set()
        assert done.wait(60)


ROOT = Path(__file__).parents[2]
TESTS = """
from pathlib import Path
import pytest
from tests.local_model.server import ModelServer

@pytest.fixture
def local_model():
    Path("log").write_text("slot 0: out of memory")
    return ModelServer("http://127.0.0.1:1", Path("log"))

def test_fails(local_model): assert local_model.address == ""

def test_passes(local_model): assert local_model.address != ""
"""


def test_the_report_of_a_failed_test_has_the_log_of_the_model_server(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = requirement\n")
    (tmp_path / "test_all.py").write_text(TESTS)
    program = [sys.executable, "-m", "pytest", "-q", "-p", "no:schemathesis", "-p", "tests.conftest", "test_all.py"]
    surroundings = {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
    ended = subprocess.run(program, cwd=tmp_path, env=surroundings, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in ended.stdout, ended.stdout + ended.stderr
    assert ended.stdout.count("slot 0: out of memory") == 1
    assert "log of local_model" in ended.stdout


SIZES = """
import pytest

@pytest.mark.scale
def test_short(): pass

@pytest.mark.scale("full")
def test_long(): pass

def test_of_an_engine(restate_server): pass

def test_unit(): pass
"""


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ((), {"test_unit"}),
        (("--tier", "unit"), {"test_unit"}),
        (("--tier", "scale"), {"test_short", "test_of_an_engine"}),
        (("--tier", "scale", "--size", "full"), {"test_short", "test_of_an_engine", "test_long"}),
    ],
    ids=["default", "unit", "scale", "full size"],
)
def test_the_scale_tier_runs_only_where_it_is_selected(
    options: tuple[str, ...], chosen: set[str], tmp_path: Path
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    requirement\n    scale\n")
    (tmp_path / "test_all.py").write_text(SIZES)
    program = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:schemathesis", "-p", "tests.conftest"]
    surroundings = {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
    program += [*options, "test_all.py"]
    ended = subprocess.run(program, cwd=tmp_path, env=surroundings, capture_output=True, text=True, check=False)
    assert {line.partition("::")[2] for line in ended.stdout.splitlines() if "::" in line} == chosen, ended.stdout
