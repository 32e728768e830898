"""API paths in pages exist, with the methods in the pages."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Final, cast

import pytest

from pointsman.server.application import openapi_document
from pointsman.values import JsonObject

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [
    ROOT / "README.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if "decisions" not in path.parts),
]
ADDRESS: Final = re.compile(
    r"(?:(?P<method>GET|POST|PUT|PATCH|DELETE) )?(?:localhost:8000|(?<![\w/.-]))"
    r"(?P<path>/(?:api|v1)(?:/[\w{}….:*-]*[\w}…])+)"
)
FILLED: Final = re.compile(r"\{[^}]*\}|(?<=/)(?:[A-Z]{2,}|exec-…|…)(?=/|$)")
BESIDE: Final = frozenset({"/api/docs", "/api/openapi.json", "/v1/embeddings"})
"""The page and the OpenAPI document; and an endpoint of model servers."""


@functools.cache
def operations() -> dict[str, set[str]]:
    """Return the methods of each path; its parameters match any text."""
    found: dict[str, set[str]] = {}
    for path, methods in cast("dict[str, JsonObject]", openapi_document()["paths"]).items():
        found.setdefault(FILLED.sub("*", path), set()).update(method.upper() for method in methods)
    return found


def is_there(path: str, method: str | None) -> bool:
    """Return whether an operation has the path; a placeholder of the page must be a parameter."""
    parts = FILLED.sub("*", path).split("/")
    for known, methods in operations().items():
        segments = known.split("/")
        fits = len(segments) == len(parts) and all(
            one in (other, "*") for one, other in zip(segments, parts, strict=True)
        )
        if fits and method in (None, *methods):
            return True
    return False


def missing(text: str) -> list[str]:
    return [
        found[0]
        for found in ADDRESS.finditer(text)
        if found["path"] not in BESIDE and not is_there(found["path"], found["method"])
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_http_path_on_a_page_exists(page: Path) -> None:
    assert missing(page.read_text(encoding="utf-8")) == []


def test_a_missing_http_path_is_found() -> None:
    text = (
        "`GET /api/workflows/{id}/execute`, `POST /api/workflows/ID/execute`, `/api/nothing`,"
        " curl localhost:8000/api/workflows/executions/exec-…/tea"
    )
    assert [one.rpartition("/")[2] for one in missing(text)] == ["execute", "nothing", "tea"]
