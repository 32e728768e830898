"""A real process that runs a tool, and a command that cancels its execution."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

SOURCES = Path(__file__).resolve().parents[2] / "src"
LINGERS = '''
import asyncio
import sys
from pointsman import Pointsman, Workflow, tool
from pointsman.executions.execution import OwnershipLost
from pointsman.settings import Settings

CALL = {"id": "work", "type": "tool", "config": {"tool": "linger"}}
BELOW = Workflow.of({"id": "below", "nodes": [CALL], "edges": []})
CHILD = {"id": "call", "type": "workflow", "config": {"workflow": "below"}}
ABOVE = Workflow.of({"id": "above", "nodes": [CHILD], "edges": []})

@tool
async def linger() -> str:
    """Never comes to its end."""
    print("begun", flush=True)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        print("stopped", flush=True)
        raise
    return ""

async def main() -> None:
    async with Pointsman(sys.argv[1], tools=[linger], settings=Settings()) as app:
        await app.save(BELOW)
        execution = await app.start(ABOVE)
        print(execution.id, flush=True)
        try:
            print(await execution.settled(), flush=True)
        except OwnershipLost:
            print("taken over", flush=True)

asyncio.run(main())
'''


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    found: str = request.getfixturevalue("postgres_url")
    return found


def python(*arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    return subprocess.Popen([sys.executable, *arguments], env=environment, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def lingering(url: str) -> Iterator[subprocess.Popen[str]]:
    with python("-c", LINGERS, url) as process:
        yield process
        process.kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_slow_tool_of_a_sub_workflow_is_stopped_by_a_cancel_from_the_command_line(
    url: str, lingering: subprocess.Popen[str]
) -> None:
    execution = said(lingering)
    assert said(lingering) == "begun"
    with python("-m", "pointsman", "cancel", execution, "--store", url, "--json") as cancelling:
        told, _ = cancelling.communicate(timeout=PATIENCE_S)
    assert '"status": "cancelled"' in told
    left, _ = lingering.communicate(timeout=PATIENCE_S)
    # On PostgreSQL the owner itself decides the request.
    becomes = "cancelled" if url.startswith("postgresql") else "taken over"
    assert sorted(left.split("\n")) == sorted(["", "stopped", becomes])
    assert lingering.returncode == 0
