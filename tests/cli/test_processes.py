"""Real processes that are killed, interrupted, or whose reader exits: nothing is lost or repeated."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written
from tests.quick_starts import fresh_starts

SOURCES = Path(__file__).resolve().parents[2] / "src"
STORE = ["--store", "sqlite:///store.db"]
SLOW_SECOND = "rules:\n  - {node: first, text: One.}\n  - {node: second, delay: 20s, text: Never.}\n"
QUICK = "rules:\n  - {node: first, text: Again!}\n  - {node: second, text: Two.}\n  - {node: third, text: Three.}\n"


def _heeding_hangups() -> None:
    """Reset SIGHUP: a process inherits it as ignored from a runner under `nohup`."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def started(*arguments: str, **more: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    return subprocess.Popen(
        [sys.executable, "-m", "pointsman", *arguments],
        stdout=more.get("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=_heeding_hangups,
    )


@pytest.fixture
def in_the_middle() -> Iterator[subprocess.Popen[str]]:
    """A run of the chain whose second step takes long."""
    process = started(
        "run", written("chain.yaml", flows.CHAIN), "--script", written("slow.yaml", SLOW_SECOND), *STORE, "--json"
    )
    with process:
        yield process
        process.kill()


def until_second_runs(prompt: Prompt, process: subprocess.Popen[str], *listed: str) -> str:
    """Return the execution once its second step has begun."""
    while process.poll() is None:
        if Path("store.db").exists():
            for execution in prompt("list", *listed, *STORE).out.split()[:1]:
                if '"step": "second"' in prompt("events", execution, "--jsonl", *STORE).out:
                    return execution
    pytest.fail(f"it ended too early: {process.communicate()}")


@pytest.mark.requirement("S1-67", "S1-157")
def test_a_killed_run_continues_and_repeats_no_finished_step(
    prompt: Prompt, in_the_middle: subprocess.Popen[str]
) -> None:
    execution = until_second_runs(prompt, in_the_middle)
    in_the_middle.kill()
    in_the_middle.wait()
    assert prompt("show", execution, *STORE, "--json").json["status"] == "stopped"

    printed = prompt("resume", execution, "--script", written("quick.yaml", QUICK), *STORE, "--json")
    assert (printed.code, printed.json["status"]) == (0, "completed")
    assert printed.json["path"] == ["first", "second", "third"]
    assert [printed.json["state"][name] for name in "abc"] == ["One.", "Two.", "Three."]
    assert printed.json["usage"]["modelCalls"] == 3
    assert prompt("verify", *STORE).code == 0


def test_ctrl_c_leaves_the_execution_resumable_and_prints_the_command(
    prompt: Prompt, in_the_middle: subprocess.Popen[str]
) -> None:
    execution = until_second_runs(prompt, in_the_middle)
    in_the_middle.send_signal(signal.SIGINT)
    out, err = in_the_middle.communicate(timeout=120)
    assert in_the_middle.returncode == 130
    assert "Traceback" not in err
    assert f'"executionId": "{execution}", ' in out
    assert '"status": "running"' in out
    printed = prompt("resume", execution, "--script", written("quick.yaml", QUICK), *STORE, "--json")
    assert printed.json["path"] == ["first", "second", "third"]


def test_a_cancel_from_another_process_ends_a_running_execution(
    prompt: Prompt, in_the_middle: subprocess.Popen[str]
) -> None:
    execution = until_second_runs(prompt, in_the_middle)
    assert prompt("cancel", execution, *STORE, "--json").json["status"] == "cancelled"
    written_later = prompt("events", execution, "--jsonl", *STORE).out
    in_the_middle.kill()
    assert '"kind": "cancelled"' in written_later.splitlines()[-1]
    assert prompt("show", execution, *STORE, "--json").json["path"] == ["first"]


@pytest.mark.requirement("S1-160")
def test_three_nodes_wait_for_a_person_in_one_process_and_end_in_another() -> None:
    def run(*arguments: str) -> tuple[int, str]:
        with started(*arguments, *STORE) as process:
            out, _ = process.communicate(timeout=120)
        return process.returncode, out

    file = written("letter.yaml", flows.APPROVAL)
    assert run("workflows", "save", file) == (0, "letter@1\n")
    assert run("run", "letter", "-i", "goal=ships")[0] == 3
    execution = run("list")[1].split()[0]
    code, events = run("events", execution, "--jsonl")
    assert (code, '"kind": "gate_opened"' in events) == (0, True)
    code, out = run("answer", execution, "review", "approve")
    assert (code, "ships" in out) == (0, True)


def test_a_reader_may_close_the_output_early(prompt: Prompt) -> None:
    prompt("run", written("chain.yaml", flows.CHAIN), *STORE)
    execution = prompt("list", *STORE, "--json").json["executions"][0]["executionId"]
    reading, writing = os.pipe()
    os.close(reading)
    process = started("events", execution, *STORE, stdout=writing)
    os.close(writing)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")


def test_output_survives_a_terminal_without_unicode(prompt: Prompt) -> None:
    written("chain.yaml", flows.CHAIN.replace("id: chain", "id: chain\nname: Küste → 港"))
    for arguments in (["convert", "chain.yaml", "--to", "mermaid"], ["show", "exec-ü"]):
        environment = {**os.environ, "PYTHONPATH": str(SOURCES), "PYTHONIOENCODING": "ascii"}
        done = subprocess.run(
            [sys.executable, "-m", "pointsman", *arguments], env=environment, capture_output=True, check=False
        )
        assert done.returncode in (0, 2)
        assert b"Traceback" not in done.stderr


def run_fresh(code: str) -> str:
    """Return the output of a program in a process that has imported nothing yet."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    with fresh_starts():
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_import_of_the_package_loads_only_its_version() -> None:
    code = "import sys; before = {*sys.modules}; import pointsman; print(*({*sys.modules} - before))"
    loaded = run_fresh(code).split()
    assert {name for name in loaded if name.startswith("pointsman")} == {"pointsman", "pointsman.version"}
    assert "typing" not in loaded


def test_help_loads_no_heavy_modules() -> None:
    code = (
        "import sys; from pointsman.cli.error_boundary import run_guarded; run_guarded(['--help']); print(*sys.modules)"
    )
    loaded = set(run_fresh(code).split())
    heavy = {"pydantic", "msgspec", "rich", "sqlite3", "asyncio", "httpx2", "pydantic_ai", "jsonschema_rs", "ruamel"}
    heavy |= {"email", "html", "importlib.metadata", "tempfile", "typing_extensions", "pointsman.redaction"}
    assert loaded & heavy == set()
    assert not any(name.startswith(("pointsman.app", "pointsman.engine")) for name in loaded)


SERVED = """
import os, sys
from pointsman.cli import serve
from pointsman.server.application import api
from pointsman.server.operation import LazyRoute

def serving(*_):
    print(*sys.modules)
    print(*(route.path for route in api().routes if isinstance(route, LazyRoute) and "dependant" in vars(route)))
    sys.stdout.flush()
    os._exit(0)

serve.announce = serving
serve.serve.main(["--port", "0", "--model", "scripted", "--store", "sqlite:///store.db"])
"""


def test_a_server_that_begins_to_serve_has_loaded_no_optional_parts_and_analysed_no_operation() -> None:
    loaded, analysed = run_fresh(SERVED).splitlines()
    assert {"fastapi", "uvicorn", "sqlite3", "pointsman.server.routes.executions"} <= {*loaded.split()}
    optional = {"httpx2", "httpcore2", "pydantic_ai", "openai", "anthropic", "mcp", "opentelemetry.sdk", "psycopg"}
    optional |= {"jsonpath_rfc9535", "regex", "re2", "jsonschema_rs", "ruamel.yaml", "rich", "cryptography", "smtplib"}
    optional |= {"pydantic.v1"}  # FastAPI loads it to analyse an operation.
    assert {*loaded.split()} & optional == set()
    assert analysed == ""
