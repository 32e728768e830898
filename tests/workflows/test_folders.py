"""Folders: a workflow is seen only by callers whom its own sharing and every folder around it admit."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from pointsman.app import Pointsman
from pointsman.auth.callers import Caller, NotAllowed
from pointsman.auth.sharing import FOLDER_KIND
from pointsman.auth.subjects import UnknownWorkflow
from pointsman.session import Session
from pointsman.store.errors import RevisionMoved
from pointsman.workflows.folders import FolderExists, FolderInvalid, FolderNotEmpty, UnknownFolder
from tests.scenarios import installation, written

ADA = Caller(name="ada", role="editor", groups=("desk",))
BEN = Caller(name="ben", role="editor", groups=("desk",))
EVE = Caller(name="eve", role="editor", groups=("sales",))
ROOT = Caller(name="root", role="admin")


@pytest.fixture(params=["memory", "sqlite"])
async def app(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Pointsman, None]:
    async with installation(store="memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'a.db'}") as app:
        yield app


@pytest.fixture
async def ada(app: Pointsman) -> Session:
    ada = app.acting_as(ADA)
    for name in ("letter", "other"):
        await ada.workflows.save(written({"id": name, "nodes": [{"id": "a", "type": "transform"}], "edges": []}))
    return ada


async def paths(session: Session) -> list[str]:
    return [one["path"] for one in (await session.folders.list())["folders"]]


async def listed(session: Session, folder: str = "") -> list[str]:
    found = await session.workflows.list(built_in=False, folder=folder)
    return [one["id"] for one in found["workflows"]]


async def test_workflows_lie_in_folders_and_the_list_is_filtered_by_folder(app: Pointsman, ada: Session) -> None:
    await ada.folders.create("sales/mail")
    assert await paths(ada) == ["sales", "sales/mail"], "missing folders around it are created"
    await ada.folders.move("letter", "sales/mail")
    assert await listed(ada, "sales") == ["letter"], "also what lies in folders of the folder"
    assert await listed(ada, "sales/mail") == ["letter"]
    assert await listed(ada, "sal") == []
    assert await listed(ada) == ["letter", "other"]
    assert [one["workflows"] for one in (await ada.folders.list())["folders"]] == [0, 1]
    await ada.folders.move("letter", "")
    assert await listed(ada, "sales") == []


async def test_each_folder_around_a_workflow_must_admit_a_caller(app: Pointsman, ada: Session) -> None:
    ben, eve = app.acting_as(BEN), app.acting_as(EVE)
    await ada.folders.create("sales/mail")
    await ada.folders.move("letter", "sales/mail")
    begun = await eve.executions.start("letter")
    assert await listed(eve) == ["letter", "other"]
    await ada.folders.share("sales", "groups", groups=("desk",))
    assert await listed(ben) == ["letter", "other"]
    assert await listed(eve) == ["other"]
    assert await paths(eve) == []
    with pytest.raises(UnknownWorkflow):
        await eve.executions.start("letter")
    with pytest.raises(UnknownWorkflow):
        await eve.workflows.read("letter@1")
    with pytest.raises(NotAllowed, match="is not shared with 'eve' any more"):
        await eve.executions.fork(begun.id, at=1)
    await ada.folders.share("sales/mail", "private")
    assert await listed(ben) == ["other"]
    assert await listed(app.acting_as(ROOT)) == ["letter", "other"]


async def test_a_folder_opens_nothing_that_the_workflow_closes(app: Pointsman, ada: Session) -> None:
    await ada.folders.create("sales")
    await ada.sharing.share_workflow("letter", "private")
    await ada.folders.move("letter", "sales")
    assert await listed(app.acting_as(BEN)) == ["other"]
    shared = await ada.sharing.share_workflow("letter", "everyone")
    assert shared.folder == "sales", "sharing it does not move it"


async def test_a_workflow_in_a_folder_that_is_missing_is_seen_by_admins_only(app: Pointsman, ada: Session) -> None:
    await ada.folders.create("sales")
    await ada.folders.move("letter", "sales")
    await app.store.entries.delete(FOLDER_KIND, "sales")
    assert await listed(ada) == ["other"]
    assert await listed(app.acting_as(ROOT)) == ["letter", "other"]


async def test_only_owners_move_share_rename_and_delete(app: Pointsman, ada: Session) -> None:
    ben = app.acting_as(BEN)
    await ada.folders.create("sales/mail")
    with pytest.raises(NotAllowed):
        await ben.folders.move("letter", "sales")
    with pytest.raises(NotAllowed):
        await ben.folders.share("sales", "private")
    with pytest.raises(NotAllowed):
        await ben.folders.rename("sales", "mine")
    with pytest.raises(NotAllowed):
        await ben.folders.delete("sales/mail")
    with pytest.raises(NotAllowed):
        await app.acting_as(Caller(name="vic", role="viewer")).folders.create("vics")


async def test_a_hidden_folder_is_answered_as_a_missing_one(app: Pointsman, ada: Session) -> None:
    eve = app.acting_as(EVE)
    await ada.folders.create("sales")
    await ada.folders.share("sales", "groups", groups=("desk",))
    await eve.workflows.save(written({"id": "eves", "nodes": [{"id": "a", "type": "transform"}], "edges": []}))
    texts: list[str] = []
    for path in ("sales", "never"):
        for call in (
            eve.folders.sharing(path),
            eve.folders.share(path, "everyone"),
            eve.folders.rename(path, "mine"),
            eve.folders.delete(path),
            eve.folders.move("eves", path),
        ):
            with pytest.raises(UnknownFolder) as refused:
                await call
            texts.append(str(refused.value).replace(path, "X"))
    assert len(set(texts)) == 1
    with pytest.raises(FolderExists):
        await eve.folders.create("sales/eves")


async def test_renaming_moves_everything_in_a_folder_with_its_rights(app: Pointsman, ada: Session) -> None:
    eve = app.acting_as(EVE)
    await ada.folders.create("sales/mail")
    await ada.folders.share("sales", "groups", groups=("desk",))
    await ada.folders.move("letter", "sales/mail")
    await ada.folders.rename("sales", "shop")
    assert await paths(ada) == ["shop", "shop/mail"]
    assert await listed(ada, "shop/mail") == ["letter"]
    assert await listed(eve) == ["other"]
    await ada.folders.create("archive")
    await ada.folders.rename("shop/mail", "archive/mail")
    assert await listed(ada, "archive") == ["letter"]
    with pytest.raises(FolderExists):
        await ada.folders.rename("shop", "archive")
    with pytest.raises(FolderInvalid):
        await ada.folders.rename("archive", "archive/older")


async def test_a_folder_leaves_another_only_with_the_consent_of_its_owner(app: Pointsman, ada: Session) -> None:
    ben = app.acting_as(BEN)
    await ada.folders.create("sales")
    await ada.folders.share("sales", "groups", groups=("desk",))
    await ben.folders.create("sales/bens")
    with pytest.raises(NotAllowed, match="may not move folders out of it"):
        await ben.folders.rename("sales/bens", "bens")
    await ben.folders.rename("sales/bens", "sales/ben")


async def test_only_empty_folders_are_deleted(app: Pointsman, ada: Session) -> None:
    await ada.folders.create("sales/mail")
    await ada.folders.move("letter", "sales/mail")
    for path in ("sales", "sales/mail"):
        with pytest.raises(FolderNotEmpty):
            await ada.folders.delete(path)
    await ada.folders.move("letter", "")
    await ada.folders.delete("sales/mail")
    await ada.folders.delete("sales")
    assert await paths(ada) == []


async def test_new_workflows_and_copies_lie_in_the_folder(app: Pointsman, ada: Session) -> None:
    await ada.folders.create("sales")
    await ada.folders.share("sales", "private")
    source = written({"id": "fresh", "nodes": [{"id": "a", "type": "transform"}], "edges": []})
    await ada.workflows.save(source, folder="sales")
    await ada.workflows.clone("fresh", "copy")
    assert await listed(ada, "sales") == ["copy", "fresh"]
    assert await listed(app.acting_as(BEN)) == ["letter", "other"]
    with pytest.raises(UnknownFolder):
        await app.acting_as(BEN).workflows.save(source, folder="sales")


@pytest.mark.parametrize(
    "path", ["", "/", "a//b", " a", "a/ ", "a@1", "..", "a/../b", "a\nb", "x" * 61, "/".join("abcdefghi")]
)
async def test_paths_of_folders_are_names_between_slashes(app: Pointsman, ada: Session, path: str) -> None:
    with pytest.raises(FolderInvalid):
        await ada.folders.create(path)


async def test_a_sharing_that_was_changed_meanwhile_is_not_overwritten(app: Pointsman, ada: Session) -> None:
    await ada.folders.create("sales")
    (read,) = (await ada.folders.list())["folders"]
    await ada.folders.share("sales", "private", match=read["etag"])
    with pytest.raises(RevisionMoved):
        await ada.folders.share("sales", "everyone", match=read["etag"])
