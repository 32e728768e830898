"""The HTTP reference of the documentation has every operation of the server."""

from __future__ import annotations

import re
from typing import cast

from pointsman.server.application import openapi_document
from pointsman.server.problems import STATUS_OF
from pointsman.server.schemas.answers import SAMPLES
from pointsman.values import JsonObject
from tests.docs.http_reference import PAGE, page


def test_the_http_reference_matches_the_server() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.docs.http_reference"


def test_every_operation_is_in_the_http_reference_once() -> None:
    headings = re.findall(r"^### `([A-Z]+) (.+)`$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    paths = cast("dict[str, JsonObject]", openapi_document()["paths"])
    operations = [(method.upper(), path) for path, methods in paths.items() for method in methods]
    assert sorted(headings) == sorted(operations)


def test_every_code_of_an_answer_is_explained() -> None:
    reference = (PAGE.parent / "errors.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"^### `([a-z0-9-]+)`", reference, re.MULTILINE))
    for row in re.findall(r"^\| (`[a-z0-9-].*?) \|", reference, re.MULTILINE):
        explained.update(re.findall(r"`([a-z0-9-]+)`", row))
    assert (STATUS_OF.keys() | SAMPLES.keys()) - explained == set(), "explain it in docs/reference/errors.md"
