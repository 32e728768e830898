"""Uploads of older documents as files for a model: their text, and their pages as images."""

from __future__ import annotations

import base64
from typing import cast

import pytest

from pointsman.executors.attachments import NO_FILES, with_files
from pointsman.executors.failures import WorkRefused
from pointsman.values import Json, JsonObject

PNG = base64.b64encode(b"\x89PNG page").decode()
JPEG = base64.b64encode(b"\xff\xd8\xff page").decode()


async def parts_of(files: Json) -> list[JsonObject]:
    message = await with_files({"role": "user", "content": "Read."}, files, NO_FILES)
    return cast("list[JsonObject]", cast("JsonObject", message)["content"])[1:]


async def test_the_content_of_an_upload_is_text_under_its_name() -> None:
    upload: JsonObject = {"fileName": "a.pdf", "fileType": "application/pdf", "content": "Harbour", "pageImages": []}
    assert await parts_of(upload) == [{"type": "text", "text": "a.pdf:\n\nHarbour"}]


async def test_the_pages_of_uploads_are_images_even_in_lists() -> None:
    uploads: Json = [
        {"fileName": "a.pdf", "content": "", "pageImages": [PNG, f"data:image/webp;base64,{PNG}", JPEG]},
        {"fileName": "b.png", "fileType": "image/png", "content": f"data:image/png;base64,{PNG}"},
    ]
    assert [part["mediaType"] for part in await parts_of(uploads)] == [
        "image/png",
        "image/webp",
        "image/jpeg",
        "image/png",
    ]


async def test_the_bytes_of_an_upload_and_of_its_pages_may_be_named_base64() -> None:
    uploads: Json = [
        {"fileName": "a.png", "fileType": "image/png", "base64": PNG},
        {"fileName": "b.png", "fileType": "image/png", "base64": f"data:image/webp;base64,{PNG}", "content": "again"},
        {"fileName": "c.pdf", "content": "", "pageImages": [{"base64": JPEG, "mimeType": "image/jpeg"}]},
    ]
    assert [part["mediaType"] for part in await parts_of(uploads)] == ["image/png", "image/webp", "image/jpeg"]


async def test_an_upload_without_content_and_pages_is_refused_by_name() -> None:
    with pytest.raises(WorkRefused) as refused:
        await parts_of({"fileName": "a.pdf", "fileType": "application/pdf", "content": None, "pageImages": []})
    assert refused.value.failure.code == "file-unreadable"
    assert "a.pdf" in str(refused.value)
