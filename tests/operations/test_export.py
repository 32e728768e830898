"""An execution in a file continues in another store, and a manipulated file is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.errors import PointsmanError
from pointsman.operations import archive
from pointsman.operations.archive import Chains, ImportRefused, Tally
from pointsman.operations.export_import import ExecutionExists
from pointsman.runtime.local import UnknownExecution
from pointsman.settings import Settings
from pointsman.store.errors import RowUnreadable, StoreFull
from pointsman.values import ExecutionId, Json
from pointsman.workflows.sources import FileUnreadable
from tests.installation import HandClock, asking, noting, opened

pytestmark = pytest.mark.integration

KEY = "canary-of-a-key"
BIG = "a large document " * 10_000


def calling() -> Workflow:
    """Return a workflow that calls one with a gate and ends with its result."""
    nodes: list[Json] = [
        {"id": "call", "type": "workflow", "config": {"workflow": "ask"}},
        {"id": "say", "type": "transform", "config": {"set": {"said": "input.text"}}},
    ]
    return Workflow.of({"id": "caller", "nodes": nodes, "edges": [{"source": "call", "target": "say"}]})


async def begun(app: Pointsman) -> ExecutionId:
    await app.save(asking())
    execution = await app.start(calling(), {"text": BIG})
    await execution.settled()
    await app.store.memory.put("execution", execution.id, "note", {"kept": [10**30]})
    await app.store.effects.record(execution.id, "call:1", 1, {"paid": True})
    return execution.id


async def exported(app: Pointsman, execution: ExecutionId, path: Path) -> Path:
    file = path / "execution.jsonl"
    file.write_bytes(b"".join([line async for line in app.storage.export(execution)]))
    return file


async def finished(app: Pointsman, execution: ExecutionId) -> str:
    """Answer the gate of its sub-workflow and return the final status."""
    handle = await app.open(execution)
    await handle.settled()
    await handle.answer("gate", "approve")
    return await handle.settled()


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    """Export a waiting execution of another store."""
    (tmp_path / "one").mkdir()
    settings = Settings.model_validate({"providers": {"own": {"base_url": "http://127.0.0.1:1/", "keys": [KEY]}}})
    async with opened(tmp_path / "one", HandClock(), settings=settings) as app:
        return await exported(app, await begun(app), tmp_path)


@pytest.mark.requirement("S1-138")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_an_exported_execution_continues_in_another_store(kind: str, file: Path, tmp_path: Path) -> None:
    url = "memory:" if kind == "memory" else f"sqlite:///{tmp_path / 'other.db'}"
    async with Pointsman(url, settings=Settings(), clock=HandClock()) as app:
        execution = await app.storage.bring_in(file)
        listed = {one.execution: one for one in await app.executions()}
        assert listed[execution].status == "waiting"
        assert all([row.cause is not None async for row in app.store.journal.read(execution)])
        assert (await app.replay(execution)).rows_without_report == []
        assert [one.parent for one in listed.values() if one.execution != execution] == [execution]
        assert await app.store.memory.get("execution", execution, "note") == {"kept": [10**30]}
        assert await app.store.effects.recorded(execution, "call:1") == {1: {"paid": True}}
        if kind == "memory":
            assert await finished(app, execution) == "completed"
    if kind == "sqlite":
        async with Pointsman(url, settings=Settings(), clock=HandClock()) as app:
            assert await finished(app, execution) == "completed"
            assert (await app.view(execution))["state"] == {"text": BIG, "said": BIG}
            assert await app.store.verify() == []


async def test_an_import_beside_the_original_has_its_own_sub_workflows(tmp_path: Path) -> None:
    async with opened(tmp_path, HandClock()) as app:
        original = await begun(app)
        file = await exported(app, original, tmp_path)
        with pytest.raises(ExecutionExists):
            await app.storage.bring_in(file)
        copy = await app.storage.bring_in(file, name=app.storage.new_id())
        assert copy != original
        assert len(await app.executions()) == 4
        assert await finished(app, copy) == "completed"
        assert (await app.view(original))["status"] == "waiting"
    async with opened(tmp_path, HandClock()) as app:
        assert await finished(app, original) == "completed"
        assert await app.store.verify() == []


async def test_a_deleted_execution_is_imported_under_its_own_id(tmp_path: Path) -> None:
    async with opened(tmp_path, HandClock()) as app:
        execution = await app.start(noting(), {"text": "x"})
        await execution.settled()
        file = await exported(app, execution.id, tmp_path)
        before = await app.view(execution.id)
        await app.storage.delete(execution.id)
        assert await app.storage.bring_in(file) == execution.id
        assert await app.view(execution.id) == before


def test_an_export_contains_no_model_key(file: Path) -> None:
    assert KEY.encode() not in file.read_bytes()


async def test_an_unknown_execution_is_not_exported(tmp_path: Path) -> None:
    async with opened(tmp_path, HandClock()) as app:
        with pytest.raises(UnknownExecution):
            await exported(app, ExecutionId("../../etc/passwd"), tmp_path)
        assert not (tmp_path / "execution.jsonl").exists()


# Invalid files -------------------------------------------------------------------------------------------------------


def change(file: Path, how: Callable[[bytes], bytes]) -> None:
    file.write_bytes(how(file.read_bytes()))


def sealed(lines: list[bytes]) -> bytes:
    """Return the lines chained and sealed like an export."""
    tally, chains, made = Tally(), Chains(), list[bytes]()
    for line in lines:
        value = json.loads(line)
        if "seq" in value:
            events = json.dumps(value["events"], separators=(",", ":"), ensure_ascii=False).encode()
            value["hash"] = chains.next(value["execution"], value["seq"], value["at"], value["shape"], events)
        made.append(tally.add(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"))
    return b"".join(made) + archive.line_of(tally.end)


def forged(change: Callable[[list[dict[str, Json]]], object]) -> Callable[[bytes], bytes]:
    def forge(text: bytes) -> bytes:
        lines = [json.loads(line) for line in text.splitlines()[:-1]]
        change(lines)
        return sealed([json.dumps(line).encode() for line in lines])

    return forge


def rows_of(lines: list[dict[str, Json]]) -> list[dict[str, Json]]:
    return [line for line in lines if "seq" in line]


def redefined(lines: list[dict[str, Json]], text: str) -> None:
    digest = hashlib.sha256(text.encode()).hexdigest()
    next(line for line in lines if "blob" in line).update(text=text, blob=digest)
    content = rows_of(lines)[0]["events"]
    assert isinstance(content, dict)
    started = content["events"]
    assert isinstance(started, list)
    assert isinstance(started[0], dict)
    started[0]["definition"] = digest


HOSTILE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda text: b"",
    "binary": lambda text: bytes(range(256)) * 20,
    "not ours": lambda text: b'{"nodes": []}\n',
    "a list": lambda text: b"[1, 2]\n",
    "nested without end": lambda text: b'{"blob":' + b"[" * 100_000 + b"\n",
    "cut off": lambda text: text[: len(text) // 2],
    "without its end": lambda text: b"\n".join(text.splitlines()[:-1]) + b"\n",
    "one letter changed": lambda text: text.replace(b"a large document", b"a large dacument", 1),
    "a line left out": lambda text: b"".join(
        line for line in text.splitlines(keepends=True) if b'"human"' in line or b'"seq":1,' not in line
    ),
    "lines swapped": lambda text: b"\n".join([text.splitlines()[1], text.splitlines()[0], *text.splitlines()[2:]]),
    "of tomorrow": lambda text: text.replace(b'"format":1', b'"format":9', 1),
    "no names": forged(lambda lines: lines[0].update(executions=[])),
    "a name twice": forged(lambda lines: lines[0].update(executions=["a", "a"])),
    "a name without rows": forged(lambda lines: lines[0].update(executions=["exec-ghost"])),
    "a stranger's row": forged(lambda lines: rows_of(lines)[0].update(execution="exec-other")),
    "an invented event": forged(lambda lines: rows_of(lines)[1].update(events=[{"kind": "os.system"}])),
    "a row that makes no sense": forged(
        lambda lines: rows_of(lines)[1].update(events=[{"kind": "loop_left", "node": "no", "scope": [], "reason": "x"}])
    ),
    "no start": forged(lambda lines: rows_of(lines)[0].update(events=[])),
    "a row without events": forged(lambda lines: rows_of(lines)[1].update(events=[])),
    "rows of the future": forged(lambda lines: rows_of(lines)[1].update(shape=99)),
    "a content left out": forged(lambda lines: lines.remove(next(line for line in lines if "blob" in line))),
    "another content": forged(lambda lines: next(line for line in lines if "blob" in line).update(text="{}")),
    "a false digest": forged(lambda lines: next(line for line in lines if "blob" in line).update(blob="zz")),
    "somebody's memory": forged(
        lambda lines: lines.append(
            {"execution": rows_of(lines)[0]["execution"], "scope": "long_term", "key": "a", "value": 1}
        )
    ),
    "a definition that is none": forged(lambda lines: redefined(lines, "[]")),
}


@pytest.mark.parametrize("what", HOSTILE)
async def test_a_changed_export_file_imports_nothing(what: str, file: Path, tmp_path: Path) -> None:
    change(file, HOSTILE[what])
    async with opened(tmp_path, HandClock()) as app:
        with pytest.raises((ImportRefused, RowUnreadable, PointsmanError)) as refused:
            await app.storage.bring_in(file)
        assert type(refused.value).code in ("import-refused", "row-unreadable", "definition-missing")
        assert refused.value.hint
        assert await app.executions() == []


async def test_the_unchanged_copy_of_the_forged_files_is_imported(file: Path, tmp_path: Path) -> None:
    change(file, forged(lambda lines: None))
    async with opened(tmp_path, HandClock()) as app:
        assert await app.storage.bring_in(file)


async def test_too_long_lines_and_missing_files_are_reported(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "LINE_BYTES_MAX", 1000)
    async with opened(tmp_path, HandClock()) as app:
        with pytest.raises(ImportRefused, match="longer"):
            await app.storage.bring_in(file)
        with pytest.raises(FileUnreadable):
            await app.storage.bring_in(tmp_path / "nothing.jsonl")
        with pytest.raises(FileUnreadable):
            await app.storage.bring_in(tmp_path)


async def test_an_interrupted_import_is_not_visible_and_can_be_repeated(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path, HandClock()) as app:
        with monkeypatch.context() as patched:
            patched.setattr(type(app.store.effects), "record", full)
            with pytest.raises(StoreFull):
                await app.storage.bring_in(file)
        assert await app.executions() == []
    async with opened(tmp_path, HandClock()) as app:
        execution = await app.storage.bring_in(file)
        assert await finished(app, execution) == "completed"
        assert await app.store.verify() == []


async def full(*_: object) -> None:
    raise StoreFull("no room")
