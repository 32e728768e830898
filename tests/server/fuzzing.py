"""`python -m tests.server.fuzzing`: schemathesis with the OpenAPI document, against a running server.

Half of the cases use any value that the document allows; the other half use existing objects and no invalid keys,
because otherwise most paths end with "there is no such execution" or 401. Every case must be answered without a 5xx,
with a documented status and type, and with its schema.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.quick_starts import quick_starts
from tests.server import flows

CHECKS: Final = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "response_headers_conformance,unsupported_method,allow_header_conformance"
)
LEFT_OUT: Final = "stream$|/mcp|/api/settings/keys$|/api/login$|executions/import|/metrics"
"""Streams do not end; the first created key excludes all other callers; the other operations use no JSON."""
SLOW: Final = "^/run(/legacy)?$"
"""The pipeline pauses for 6 s between its steps, as its document defines."""
GENERATED: Final = re.compile(r"(\d+) generated")
SERVER: Final = (
    "from pointsman.cli import main; main()",
    "serve",
    "--model",
    "scripted",
    "--port",
    "0",
    "--store",
)


class FuzzRun(NamedTuple):
    """The number of cases, whether all passed, and the output of schemathesis."""

    cases: int
    held: bool
    said: str


PHASES: Final = "examples,coverage,fuzzing"
"""Of schemathesis: the examples of the document; every limit of every parameter alone, 5 000 cases; random requests."""


def fuzzed(examples: int, *, seed: int = 1, phases: str = PHASES, unknown: bool = True, slow: bool = True) -> FuzzRun:
    """Send at most that many `examples` of each operation in each half: the ids of the first half exist, those of the
    second are generated (`unknown`). `slow`: also the operations that take seconds.
    """
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as address:
        there = things_that_are_there(address)
        config = Path(folder) / "schemathesis.toml"
        named = "".join(f'"{k}" = "{v}"\n' for k, v in there.items())
        config.write_text(f"[generation]\nwith-security-parameters = false\n[parameters]\n{named}", "utf-8")
        known = ["--config-file", str(config)]
        halves = [known, []] if unknown else [known]
        left_out = LEFT_OUT if slow else f"{LEFT_OUT}|{SLOW}"
        rounds = [run(address, examples, seed, one, Path(folder), left_out, phases) for one in halves]
    return FuzzRun(
        sum(one.cases for one in rounds), all(one.held for one in rounds), "".join(one.said for one in rounds)
    )


def run(address: str, examples: int, seed: int, config: list[str], folder: Path, left_out: str, phases: str) -> FuzzRun:
    command = [sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", *config, "run"]
    command += [f"{address}/api/openapi.json", "-c", CHECKS, "--exclude-path-regex", left_out, "-n", str(examples)]
    command += ["--continue-on-failure", "--no-color", "--request-timeout", "30", "--seed", str(seed)]
    command += ["--phases", phases, "--suppress-health-check", "all", "--warnings", "off"]
    command += ["--exclude-name", "POST /api/schedules"]  # A schedule would start executions in the background.
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    found = GENERATED.findall(done.stdout)
    return FuzzRun(int(found[-1]) if found else 0, done.returncode == 0 and bool(found), done.stdout + done.stderr)


def things_that_are_there(address: str) -> dict[str, str]:
    """Return existing ids for path parameters."""
    for document in (flows.LETTER, flows.CHAIN, flows.TALK):
        asked(f"{address}/api/workflows", document.encode())
    with urllib.request.urlopen(f"{address}/api/openapi.json", timeout=60):
        pass  # The first answer takes long; schemathesis waits 10 s for it.
    started = asked(f"{address}/api/workflows/letter/execute", b'{"input": {"goal": "tides"}, "wait": true}')
    return {"path.id": "letter", "path.eid": str(started["executionId"]), "path.scope": "shared"}


def asked(address: str, body: bytes) -> Any:
    request = urllib.request.Request(address, body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.loads(reply.read())


@contextmanager
def served(folder: Path) -> Generator[str, None, None]:
    """Run a separate server and yield its address."""
    # Otherwise clients with wrong keys in every request would only receive 429.
    (folder / "pointsman.toml").write_text("[access]\nwrong_keys_per_minute = 1_000_000\n", "utf-8")
    command = [sys.executable, "-c", *SERVER, f"sqlite:///{folder}/store.db"]
    with quick_starts():
        process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    with process:
        try:
            assert process.stderr is not None
            found = re.search(r"http://[\d.:]+", process.stderr.readline())
            assert found is not None, "it says its address first"
            # `cat` reads its log, so that it never blocks.
            with subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL):
                try:
                    yield found[0]
                finally:
                    process.kill()  # `cat` exits with it.
        finally:
            process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.server.fuzzing")
    parser.add_argument("--examples", type=int, default=60, help="of each operation in each half")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found = fuzzed(options.examples, seed=options.seed)
    told = f"{found.cases} cases: no server error, nothing unannounced" if found.held else found.said
    sys.stdout.write(told + "\n")
    sys.exit(0 if found.held else 1)


if __name__ == "__main__":
    main()
