"""Sends one request of an operation about one object, as its OpenAPI example shows it, and returns the answer."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any, Final, NamedTuple, cast

import httpx2

from pointsman.values import Json, JsonObject
from tests.reliability.tenants import Thing

STREAM: Final = "text/event-stream"
JSON: Final = {"content-type": "application/json"}
NAMED: Final = {"letter": "{id}", "letter@3": "{id}@1", "talk": "{id}"}
"""Names of the workflow in examples."""
ELSEWHERE: Final = re.compile(r"https://[\w.]+\.example(\.com)?")
HERE: Final = "https://127.0.0.1:9"
"""Replaces the hosts of examples, so that the server asks nobody else: nothing listens there."""
MAIL_SERVER: Final = "smtp.example.com"
SENT: Final[dict[str, Json]] = {
    "POST /api/login": {},
    "PUT /api/workflows/{id}/folder": {"folder": ""},
    "PUT /api/workflows/{id}/published": {"name": "First"},
}
"""Replaces example bodies: a wrong key, or a revision that does not exist, would be refused here too, and a
folder hides what is in it."""


class ExampleAnswer(NamedTuple):
    """An answer."""

    status: int
    code: str
    text: str
    asks_for_key: bool = False
    """Whether it names the way to log in: `WWW-Authenticate`."""


class ExampleClient:
    """Sends requests made from the examples of a server's OpenAPI document."""

    def __init__(self, client: httpx2.AsyncClient, document: dict[str, Any]) -> None:
        self.client = client
        self.shown = {
            f"{method.upper()} {path}": operation.get("requestBody", {}).get("content", {})
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        }
        """Operation -> its example bodies, by type."""
        self.asked = 0
        self._fresh = itertools.count(1)

    async def ask(
        self, operation: str, headers: dict[str, str], thing: Thing | None = None, scope: str = ""
    ) -> ExampleAnswer:
        """Send a request. `scope`: of memory. Of an endless answer only the head is read."""
        self.asked += 1
        method, path = operation.split()
        about = {"step": "write"} if path.endswith("/calls") else {}
        if thing is not None and scope:
            about = {"owner": thing.owner_in(scope), "key": thing.id}
        body, kind = self._body(operation, thing)
        async with self.client.stream(
            method, _address(path, thing, scope), headers=headers | kind, content=body, params=about
        ) as reply:
            endless = reply.headers.get("content-type", "").startswith(STREAM)
            text = "" if endless else (await reply.aread()).decode("utf-8", "replace")
            return ExampleAnswer(reply.status_code, _code(text), text, "www-authenticate" in reply.headers)

    def _body(self, operation: str, thing: Thing | None) -> tuple[bytes, dict[str, str]]:
        if operation in SENT:
            return json.dumps(SENT[operation]).encode(), JSON
        if thing is not None and operation == "PUT /api/workflows/{id}":
            return thing.document.encode(), {}
        if thing is not None and operation == "PUT /api/workflows/{id}/sharing":
            return json.dumps(thing.sharing).encode(), JSON
        shown = self.shown[operation]
        if "application/yaml" in shown:
            text = str(shown["application/yaml"]["example"])
            return text.replace("id: hello", f"id: own{next(self._fresh)}").encode(), {}
        if "application/json" not in shown:
            return b"", {}
        return json.dumps(_about(shown["application/json"]["example"], thing)).encode(), JSON


def _about(shown: Json, thing: Thing | None) -> Json:
    """Return an example that names that object and this machine."""
    match shown:
        case str() if thing is not None and shown in NAMED:
            return NAMED[shown].format(id=thing.id)
        case str():
            return ELSEWHERE.sub(HERE, shown).replace(MAIL_SERVER, "127.0.0.1")
        case dict():
            return {name: _about(one, thing) for name, one in shown.items()}
        case list():
            return [_about(one, thing) for one in shown]
        case _:
            return shown


def _address(path: str, thing: Thing | None, scope: str) -> str:
    values = dict.fromkeys(
        ("id", "eid", "sid", "cid", "name", "trigger", "path", "token", "run", "conversation"), "none"
    )
    if thing is not None:
        values |= {"id": thing.id, "sid": thing.id, "eid": thing.execution, "name": f"workflow__{thing.id}"}
    return path.format(**values, scope=scope or "shared")


def _code(text: str) -> str:
    """Return the code of a problem, in Pointsman's format or in that of OpenAI."""
    try:
        said = json.loads(text)
    except ValueError:
        return ""
    problem = cast("JsonObject", said) if isinstance(said, dict) else {}
    inner = problem.get("error")
    return str((inner if isinstance(inner, dict) else problem).get("code", ""))
