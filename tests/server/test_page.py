"""The documentation page about the server: its curl commands run in order against a server."""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.docs.console import Block, blocks_of
from tests.server.conftest import serving

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "how-to" / "server.md"
EXECUTION: Final = re.compile(r"exec-[0-9a-z]{8,}")
KEY: Final = re.compile(r"pm_[\w-]{20,}")
WAIT_S: Final = 60


def commands_of(block: Block) -> list[str]:
    """Return each command with its continuation lines; a loop is one command."""
    found: list[str] = []
    for line in block.text.replace("\\\n", " ").splitlines():
        if found and (line.startswith((" ", "done"))):
            found[-1] += f"\n{line}"
        else:
            found.append(line)
    return found


@pytest.mark.requirement("S4-51")
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_the_curl_commands_of_the_page_have_the_documented_result(file_store: str, tmp_path: Path) -> None:
    blocks = blocks_of(PAGE)
    (tmp_path / "letter.yaml").write_text(next(one.text for one in blocks if one.language == "yaml"))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / ".curlrc").write_text("silent\nshow-error\nno-progress-meter\n")
    said: dict[str, str] = {}
    execution, key = "", ""
    async with serving(file_store) as served:
        address = str(served.client.base_url).removeprefix("http://").rstrip("/")
        for command in (one for block in blocks if block.language == "sh" for one in commands_of(block)):
            line = command.replace("localhost:8000", address).replace("exec-…", execution).replace("pm_…", key)
            process = await asyncio.create_subprocess_exec(
                "bash", "-ec", line, cwd=tmp_path, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            output, errors = await asyncio.wait_for(process.communicate(), WAIT_S)
            assert process.returncode == 0, f"{command}\n{output.decode()}\n{errors.decode()}"
            said[command] = output.decode()
            execution = (EXECUTION.findall(output.decode()) or [execution])[-1]
            key = (KEY.findall(output.decode()) or [key])[-1]
        statuses = [one.status for one in await served.app.executions()]
    assert len(statuses) == 4
    assert {"completed", "cancelled", "waiting"} <= set(statuses)
    listed = next(output for command, output in said.items() if "builtIn=false" in command)
    assert {"letter", "2nChat", "agentforge"} <= set(re.findall(r'"id":"([^"]+)"', listed))
    streamed = next(output for command, output in said.items() if command.startswith("curl -f -N"))
    assert streamed.rstrip().splitlines()[-1].startswith("data: ")
    assert "event: workflow.complete" in streamed
    assert '"name":"root"' in said[[*said][-1]]
