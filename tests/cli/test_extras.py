"""The core without extras: it checks, runs and tests; every part that needs an extra names it.

`make test-core` runs these tests with the wheel in a fresh environment. Otherwise they run with the core's packages of
this environment only.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest

from pointsman.extras import EXTRAS

ROOT = Path(__file__).parents[2]
PATTERNS = ROOT / "examples" / "patterns"
START = "import sys; sys.path[:0] = {paths!r}; from pointsman.cli import main; main()"
SETTINGS = """
model = "openai:gpt-5-mini"
allow_email_sending = true
[providers.openai]
keys = ["k"]
[mail]
host = "mail.example.org"
sender = "a@example.org"
[pages]
hosts = ["example.org"]
[mcp.desk]
command = ["desk"]
[sql.books]
url = "postgresql://localhost/books"
[telemetry]
endpoint = "http://127.0.0.1:9"
"""
CODE = """
nodes:
  - {id: add, type: code, outputs: {sum: result}, config: {source: "1 + 1"}}
"""


def packages_of_core() -> Iterator[Distribution]:
    """The locked packages of the core, without those of other platforms."""
    lock = (ROOT / "requirements" / "core.lock").read_text("utf-8")
    for name in re.findall(r"^([a-z0-9.-]+)(?:\[[^]]+\])?==", lock, re.MULTILINE):
        with suppress(PackageNotFoundError):
            yield distribution(name)


@pytest.fixture(scope="session")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command line of `pointsman`, with the packages of the core only."""
    if fresh := os.environ.get("POINTSMAN_CORE_PYTHON"):
        return [fresh, "-I", "-m", "pointsman"]
    site = tmp_path_factory.mktemp("core")
    for one in packages_of_core():
        for root in {file.parts[0] for file in one.files or () if file.parts[0] != ".."}:
            if not (site / root).exists():
                (site / root).symlink_to(Path(str(one.locate_file(root))))
    return [sys.executable, "-I", "-S", "-c", START.format(paths=[str(ROOT / "src"), str(site)])]


def run(command: list[str], *arguments: str | Path) -> tuple[int, str]:
    """Return the exit code and both streams, which never contain a traceback."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "POINTSMAN_"))}
    line = [*command, *map(str, arguments)]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False, env=environment)
    printed = ended.stdout + ended.stderr
    assert "Traceback" not in printed, printed
    assert "engine-bug" not in printed, printed
    return ended.returncode, printed


def test_core_checks_runs_and_tests(command: list[str]) -> None:
    assert run(command, "check", PATTERNS / "sequential.yaml")[0] == 0
    code, printed = run(
        command, "run", PATTERNS / "sequential.yaml", "--script", PATTERNS / "script.yaml", "-i", "topic=x"
    )
    assert (code, "completed exec-" in printed) == (0, True), printed
    assert run(command, "test", PATTERNS)[0] == 0
    code, printed = run(command, "demo")
    assert code == 0, printed


def test_doctor_lists_the_extras_that_are_not_installed(command: list[str]) -> None:
    printed = run(command, "doctor")[1]
    assert "extras: none" in printed
    assert f"not installed: {', '.join(EXTRAS)} (pip install 'pointsman[NAME]')" in printed


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("serve", "--port", "0"), "server"),
        (("mcp",), "server"),
        (("keep", "--store", "sqlite:///kept.db"), "otel"),
        (("list", "--store", "postgresql://localhost/x"), "postgres"),
        (("run", PATTERNS / "sequential.yaml", "-i", "topic=x", "--model", "openai:gpt-5-mini"), "agents"),
        (("run", PATTERNS / "sequential.yaml", "-i", "topic=x", "--model", "grok:x"), "agents"),
        (("models", "--ping"), "agents"),
        (("run", "code.yaml"), "code"),
        (("tools",), "tools"),
        (("doctor",), "tools"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_part_without_its_extra_names_the_extra(
    command: list[str], arguments: tuple[str | Path, ...], extra: str
) -> None:
    Path("pointsman.toml").write_text(SETTINGS, "utf-8")
    Path("code.yaml").write_text(CODE, "utf-8")
    printed = run(command, *arguments)[1]
    assert f"Install it: pip install 'pointsman[{extra}]'" in printed


def test_core_lists_models_and_prices_without_the_price_list(command: list[str]) -> None:
    Path("pointsman.toml").write_text(SETTINGS, "utf-8")
    code, printed = run(command, "models")
    assert (code, "no price: set one under [prices]" in printed) == (0, True), printed
