"""python -m tests.histories.freeze_stores RELEASE: save the store of this release as test data for all later ones.

Run it once per release, on its last commit. It needs the programs of a PostgreSQL server.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import zstandard

from pointsman.app import Pointsman, Workflow
from pointsman.settings import Settings
from tests import postgres
from tests.cli import flows
from tests.histories.stores import FOLDER, SCHEMA

LETTER: Final = flows.APPROVAL.replace('message: "Send it?"', 'message: "Send it?", approvers: {users: [ada]}')
PARENT: Final = """\
pointsman: 1
id: parent
input: {type: object}
nodes:
  - {id: call, type: workflow, config: {workflow: letter, input: {goal: '"nested"'}}}
  - {id: done, type: end}
edges:
  - {source: call, target: done}
"""
NAP: Final = """\
pointsman: 1
id: nap
input: {type: object}
nodes:
  - {id: sleep, type: wait, config: {duration: 3650d}}
  - {id: done, type: end}
edges:
  - {source: sleep, target: done}
"""
LARGE: Final = "tides and harbours " * 6_000
LEVEL: Final = 19
WITHIN_S: Final = 10.0


async def fill(url: str) -> None:
    """Write one object of each kind: see `tests.histories.stores`."""
    async with Pointsman(url, settings=Settings(delays=False), model="scripted") as app:
        for text in (LETTER, LETTER.replace("Write about", "Sing of"), flows.WAITS):
            await app.save(Workflow.parse(text), author="bo")
        await app.store.workflows.delete(Workflow.parse(flows.WAITS).definition.id)
        await (await app.start("letter", {"goal": LARGE}, session="talk")).settled()
        for text in (flows.WAITS, flows.CHAIN, flows.FANS, PARENT):
            await (await app.start(Workflow.parse(text), {})).settled()
        await app.start(Workflow.parse(NAP), {})
        gone = await app.start(Workflow.parse(flows.CHAIN), {})
        await gone.settled()
        await app.storage.delete(gone.id)
        await app.store.memory.put("workflow", "letter", "tone", {"likes": "plain words"})
        await app.store.memory.put("shared", "style", "tone", "short")
        await app.store.sessions.append("closed", ({"role": "user", "content": "hello"},), after=0)
        await app.store.sessions.close("closed")
        await app.schedule("letter", cron="0 7 * * 1", input={"goal": "ships"})


def freeze_file(release: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "store.db"
        asyncio.run(fill(f"sqlite:///{path}"))
        packed = zstandard.ZstdCompressor(level=LEVEL).compress(path.read_bytes())
    (folder / f"{release}.sqlite.zst").write_bytes(packed)


def freeze_dump(release: str, folder: Path) -> None:
    found = postgres.binaries()
    assert found is not None, "install PostgreSQL"
    for cluster in postgres.own_cluster():
        asyncio.run(fill(cluster.url(schema=SCHEMA)))
        where = ["-h", str(cluster.folder), "-U", postgres.OWNER, "postgres"]
        dump = [str(found / "pg_dump"), "--no-owner", "--inserts", f"--schema={SCHEMA}", *where]
        text = subprocess.run(dump, capture_output=True, text=True, check=True).stdout
        # Commands of `psql`, and comments: the server does not accept them.
        lines = [line for line in text.splitlines() if not line.startswith(("\\", "--"))]
        (folder / f"{release}.sql").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    freeze_file(sys.argv[1], FOLDER)
    freeze_dump(sys.argv[1], FOLDER)
