"""Documents that clients may read: saved workflows, the schemas, how workflows are written."""

from __future__ import annotations

from typing import Final

import msgspec
from mcp.types import INVALID_PARAMS, ReadResourceResult, Resource, ResourceTemplate, TextResourceContents

from mcp import MCPError
from pointsman.authoring.guide import GUIDE
from pointsman.authoring.operations import operations_schema
from pointsman.authoring.workbench import Workbench
from pointsman.definition.model.schema import native_schema
from pointsman.errors import PointsmanError

SCHEME: Final = "pointsman://"
WORKFLOWS: Final = f"{SCHEME}workflows/"
TEXT: Final = {"json": "application/json", "yaml": "application/yaml", "jsonc": "application/json"}
FIXED: Final = {
    f"{SCHEME}guide": ("How workflows are written", "text/markdown"),
    f"{SCHEME}schema": ("JSON Schema of workflows", "application/schema+json"),
    f"{SCHEME}operations": ("JSON Schema of operations on workflows", "application/schema+json"),
}
TEMPLATE: Final = ResourceTemplate(
    name="workflow", title="A saved workflow, as its author wrote it", uri_template=f"{WORKFLOWS}{{id}}"
)


async def listed(bench: Workbench) -> list[Resource]:
    """The fixed ones, then the saved workflows that the caller may see."""
    fixed = [
        Resource(name=uri.removeprefix(SCHEME), title=title, uri=uri, mime_type=kind)
        for uri, (title, kind) in FIXED.items()
    ]
    saved = [
        Resource(name=str(entry["id"]), title=str(entry["name"]), uri=f"{WORKFLOWS}{entry['id']}")
        for entry in await bench.list()
    ]
    return [*fixed, *saved]


async def read(bench: Workbench, uri: str) -> ReadResourceResult:
    """Raises `MCPError` for what is not there, or not there for the caller."""
    if uri in FIXED:
        return _text(uri, _fixed(uri), FIXED[uri][1])
    if not uri.startswith(WORKFLOWS):
        raise MCPError(INVALID_PARAMS, f"there is no resource {uri[:200]!r}")
    try:
        source, _ = await bench.source(uri.removeprefix(WORKFLOWS))
    except PointsmanError as why:
        raise MCPError(INVALID_PARAMS, f"{why}. {why.hint}".strip()) from None
    document = await bench.app.documents.here(lambda: source.document, chars=source.chars, of=source.digest)
    return _text(uri, document.text, TEXT[document.format])


def _fixed(uri: str) -> str:
    if uri.endswith("guide"):
        return GUIDE
    return msgspec.json.encode(native_schema() if uri.endswith("schema") else operations_schema()).decode()


def _text(uri: str, text: str, kind: str) -> ReadResourceResult:
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, text=text, mime_type=kind)])
