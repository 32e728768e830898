"""Operations and refusals of the OpenAPI document, and requests that are invalid in one way."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from pointsman.server.application import METHODS, openapi_document

LONG: Final = "x" * 10_000
JSON: Final = "application/json"
KNOWN: Final = {"id": "none", "eid": "exec-none", "scope": "user", "name": "none", "path": "none"}
"""Ids of objects that do not exist. A scope always exists."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the document."""

    method: str
    path: str
    said: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def refusals(self) -> set[int]:
        """Statuses of refusals that the caller causes."""
        return {int(status) for status in self.said["responses"] if 400 <= int(status) < 500}

    def codes(self, status: int) -> set[str]:
        """The codes of one of its refusals."""
        said = self.said["responses"].get(str(status), {"description": ""})["description"]
        return set(re.findall(r"`([a-z0-9-]+)`", said))

    @property
    def takes(self) -> dict[str, Any]:
        """Its bodies, by type."""
        return self.said.get("requestBody", {}).get("content", {})

    def parameters(self, place: str) -> list[dict[str, Any]]:
        return [one for one in self.said.get("parameters", ()) if one["in"] == place]

    def address(self, named: str = "") -> str:
        """Return its path for an object that does not exist. `named`: the name of all parts."""
        path = self.path
        for one in self.parameters("path"):
            path = path.replace(f"{{{one['name']}}}", named or KNOWN.get(one["name"], "none"))
        return path

    def needed(self) -> dict[str, str]:
        """The minimum query."""
        return {one["name"]: "none" for one in self.parameters("query") if one.get("required")}

    def body(self) -> tuple[bytes, str]:
        """The example body of the document, and its type."""
        for media, content in self.takes.items():
            shown = content["example"]
            said = json.dumps(shown) if isinstance(shown, dict | list) else str(shown)
            return said.encode(), media
        return b"", ""


DOCUMENT: Final[dict[str, Any]] = openapi_document()
OPERATIONS: Final = tuple(
    Operation(method.upper(), path, methods[method])
    for path, methods in DOCUMENT["paths"].items()
    for method in METHODS
    if method in methods
)
