"""The client: the verbs of an embedded `Pointsman`, sent to a server.

    async with Client("http://localhost:8000", key="pm_…") as client:
        execution = await client.start("news", {"goal": "harbour strike"})
        async for event in execution.events():
            print(event)
        print(await execution.output())

Names are those of `Pointsman` for the same operations, and errors are the same exceptions. Repeatable requests are sent
again after a lost connection; starts, answers and signals carry an idempotency key to be repeatable.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Collection, Mapping
from types import TracebackType
from typing import Final, Literal, Self, cast
from uuid import uuid4

import httpx2
import msgspec

from pointsman.arguments import checks_arguments
from pointsman.client.calls import ServerCalls, segment
from pointsman.client.executions import RemoteExecution
from pointsman.values import Json, JsonObject

URL: Final = "POINTSMAN_SERVER"
KEY: Final = "POINTSMAN_KEY"
LOCAL: Final = "http://localhost:8000"
TIMEOUT_S: Final = 30.0
PAGE: Final = 100


@checks_arguments
class Client:
    """A connection to a server. As an async context manager it closes its connections on exit, and stops no
    execution.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Defaults: `POINTSMAN_SERVER` and `POINTSMAN_KEY`, else a server on this machine."""
        self._calls = ServerCalls(
            url or os.environ.get(URL) or LOCAL,
            key or os.environ.get(KEY),
            timeout_s=timeout_s,
            transport=transport,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. A second call has no effect."""
        await self._calls.http.aclose()

    # Workflows

    async def workflows(self, workflow: str | None = None) -> list[JsonObject]:
        """Return the latest revision of each saved workflow, or all revisions of one, newest first."""
        path = "/api/workflows" if workflow is None else f"{_workflow(workflow)}/versions"
        objects: list[JsonObject] = []
        after: str | None = None
        while True:
            page = await self._object(path, after=after, limit=PAGE)
            objects += cast("list[JsonObject]", page["workflows"])
            after = cast("str | None", page["next"])
            if after is None:
                return objects

    async def source(self, reference: str) -> JsonObject:
        """Return a saved workflow: its `document` as the author wrote it, its problems, and the `etag` of this
        revision.
        """
        reply = await self._calls.call("GET", _workflow(reference), twice=True)
        return {**cast("JsonObject", reply.json()), "etag": reply.headers["etag"]}

    async def save(
        self, document: str | bytes | JsonObject, *, draft: bool = False, over: JsonObject | None = None
    ) -> JsonObject:
        """Save a revision in any dialect; saving the same document again returns the same revision.

        `over`: the result of `source`; nothing is saved if the workflow has changed since. Raises `WorkflowInvalid`,
        `RevisionMoved`.
        """
        query, content = {"draft": "true" if draft else None}, _text(document)
        method, path, headers = "POST", "/api/workflows", dict[str, str]()
        if over is not None:
            method, path, headers = "PUT", _workflow(str(over["id"])), _over(over)
        # With `over` the request is sent once: after a lost answer, a repetition could conflict with our own revision.
        reply = await self._calls.call(method, path, query=query, content=content, headers=headers, twice=not headers)
        return {**cast("JsonObject", reply.json()), "etag": reply.headers["etag"]}

    async def check(self, document: str | JsonObject) -> JsonObject:
        """Return all problems of a document: `ok`, `problems`."""
        checked = await self._calls.tell("/api/workflows/check", {"document": document}, twice=True)
        return cast("JsonObject", checked)

    async def delete_workflow(self, workflow: str, *, over: JsonObject | None = None) -> None:
        """Hide a workflow. Executions keep their revision. `over` as for `save`."""
        headers = {} if over is None else _over(over)
        await self._calls.call("DELETE", _workflow(workflow), headers=headers, twice=True)

    async def publish_version(
        self, workflow: str, name: str, *, note: str = "", revision: int | None = None
    ) -> JsonObject:
        """Name a revision, by default the newest, and let it run by id. Raises `NoSuchRevision`, `VersionInvalid`,
        `VersionNameTaken`, `WorkflowInvalid`."""
        content = msgspec.json.encode({"name": name, "note": note, "revision": revision})
        reply = await self._calls.call("PUT", f"{_workflow(workflow)}/published", content=content, twice=True)
        return cast("JsonObject", msgspec.json.decode(reply.content))

    async def unpublish_version(self, workflow: str) -> None:
        """Let the newest revision of a workflow run by id again. Names stay."""
        await self._calls.call("DELETE", f"{_workflow(workflow)}/published", twice=True)

    async def folders(self) -> list[JsonObject]:
        """Return the folders of workflows: path, owner, audience, groups, and the number of workflows in each."""
        reply = await self._calls.call("GET", "/api/folders", twice=True)
        return cast("list[JsonObject]", msgspec.json.decode(reply.content)["folders"])

    async def create_folder(self, path: str) -> None:
        """Create a folder such as `sales/mail`. Raises `FolderInvalid`, `FolderExists`."""
        await self._calls.tell("/api/folders", {"path": path}, twice=False)

    async def move_workflow(self, workflow: str, folder: str) -> None:
        """Put a workflow into a folder; empty: into none. Raises `UnknownFolder`, `NotAllowed`."""
        content = msgspec.json.encode({"folder": folder})
        await self._calls.call("PUT", f"{_workflow(workflow)}/folder", content=content, twice=True)

    # Executions

    async def start(
        self,
        workflow: str,
        input: Json = None,
        *,
        session: str | None = None,
        config: Mapping[str, Json] | None = None,
        durability: str | None = None,
        key: str | None = None,
    ) -> RemoteExecution:
        """Start an execution of a saved workflow. Returns when its start is durable.

        The execution starts once, even if the connection is lost and the request repeated. With your own `key`, a
        repeated call
        returns the execution already started, at any time and from any client; another input raises `KeyReused`.
        """
        body: JsonObject = {"input": input, "sessionId": session, "config": dict(config or {})}
        if durability is not None:
            body["durability"] = durability
        started = await self._calls.tell(f"{_workflow(workflow)}/execute", body, twice=True, key=key or uuid4().hex)
        return self.execution(str(cast("JsonObject", started)["executionId"]))

    def execution(self, execution: str) -> RemoteExecution:
        """Return an execution by its id without a request; its methods raise if it does not exist."""
        return RemoteExecution(self._calls, execution)

    async def open(self, execution: str) -> RemoteExecution:
        """Return an execution that exists. Raises `UnknownExecution`."""
        handle = self.execution(execution)
        await handle.status()
        return handle

    async def view(self, execution: str) -> JsonObject:
        """Return an execution as JSON."""
        return await self.execution(execution).view()

    async def executions(
        self, *, statuses: Collection[str] = (), workflow: str | None = None, session: str | None = None
    ) -> AsyncIterator[JsonObject]:
        """Yield executions, newest first, page by page."""
        before: str | None = None
        while True:
            page = await self._object(
                "/api/workflows/executions",
                status=[*statuses],
                workflow=workflow,
                session=session,
                before=before,
                limit=PAGE,
            )
            for execution in cast("list[JsonObject]", page["executions"]):
                yield execution
            before = cast("str | None", page["next"])
            if before is None:
                return

    async def inbox(self, *, workflow: str | None = None, everyone: bool = False) -> list[JsonObject]:
        """Return the open gates that the owner of this key may answer, oldest first."""
        objects: list[JsonObject] = []
        after: str | None = None
        while True:
            page = await self._list(
                "/api/inbox", "gates", workflow=workflow, everyone=everyone or None, after=after, limit=PAGE
            )
            objects += page
            if len(page) < PAGE:
                return objects
            after = str(page[-1]["cursor"])

    async def answered(
        self, *, workflow: str | None = None, everyone: bool = False, after: str | None = None, limit: int = 50
    ) -> JsonObject:
        """Return a page of the answers that the owner of this key gave to gates, newest first: `answers`, and `next`,
        the `after` of the next page. `everyone`: those of all people, in executions that the owner may see."""
        return await self._object(
            "/api/inbox/answered", workflow=workflow, everyone=everyone or None, after=after, limit=limit
        )

    async def comments(self, kind: Literal["workflow", "execution"], subject: str) -> list[JsonObject]:
        """Return the comments on a workflow or an execution, oldest first."""
        return await self._list("/api/comments", "comments", kind=kind, subject=subject)

    async def comment(
        self, kind: Literal["workflow", "execution"], subject: str, text: str, *, place: str = ""
    ) -> JsonObject:
        """Comment on a workflow or an execution; `place` is a node of the one or a step of the other."""
        body: JsonObject = {"kind": kind, "subject": subject, "text": text, "place": place}
        return cast("JsonObject", await self._calls.tell("/api/comments", body, twice=False))

    async def mentions(self) -> list[JsonObject]:
        """Return the comments that mention the owner of this key, newest first."""
        return await self._list("/api/mentions", "mentions")

    async def health(self) -> JsonObject:
        """Return whether the server works, and its version."""
        return await self._object("/health")

    async def _object(self, path: str, **query: str | int | bool | list[str] | None) -> JsonObject:
        return cast("JsonObject", await self._calls.ask(path, query))

    async def _list(self, path: str, name: str, **query: str | int | bool | list[str] | None) -> list[JsonObject]:
        return cast("list[JsonObject]", (await self._object(path, **query))[name])


def _over(read: JsonObject) -> dict[str, str]:
    return {"if-match": str(read["etag"])}


def _workflow(reference: str) -> str:
    return f"/api/workflows/{segment(reference)}"


def _text(document: str | bytes | JsonObject) -> bytes:
    if isinstance(document, dict):
        return msgspec.json.encode(document)
    return document.encode() if isinstance(document, str) else document
