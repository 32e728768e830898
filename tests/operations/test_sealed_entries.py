"""Entries with secrets, changed by two admins at once: an address never gets the secret of another version."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pointsman.app import Pointsman
from pointsman.auth.callers import LOCAL
from pointsman.operations.model_connections import ConnectionRequest
from pointsman.operations.settings_changes import MailServerRequest
from pointsman.session import Session
from pointsman.settings import Settings
from pointsman.store.errors import RevisionMoved
from pointsman.triggers.destinations import DestinationRequest
from pointsman.values import Json, JsonObject
from pointsman.workflows.tool_connection_changes import ToolConnectionRequest

Save = Callable[[Session, str, str], Awaitable[object]]
OLD, NEW = "old.example.com", "new.example.com"
DOCUMENT: JsonObject = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "paths": {"/pets": {"get": {"operationId": "list", "responses": {"200": {"description": "ok"}}}}},
}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_VAULT_KEYS", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")


async def destination(session: Session, host: str, key: str) -> object:
    request = DestinationRequest(format="json", url=f"https://{host}/{key}", key=key)
    return await session.notifications.save_address("desk", request)


async def tools(session: Session, host: str, key: str) -> object:
    document = json.dumps({**DOCUMENT, "servers": [{"url": f"https://{host}"}]})
    request = ToolConnectionRequest(kind="openapi", document=document, tools=("*",), auth="bearer", key=key, test=False)
    return await session.tools.connect("desk", request)


async def provider(session: Session, host: str, key: str) -> object:
    request = ConnectionRequest(kind="openai-compatible", key=key, base_url=f"https://{host}/v1", model="m", test=False)
    return await session.operations.connect_provider("desk", request)


async def mail(session: Session, host: str, key: str) -> object:
    request = MailServerRequest(host=host, username="desk", password=key, sender="desk@example.org")
    return await session.operations.save_mail_server(request)


@pytest.mark.parametrize(
    ("save", "kind"),
    [(destination, "notification"), (tools, "tool-connection"), (provider, "model-provider"), (mail, "setting")],
)
async def test_an_address_gets_the_secret_that_was_entered_with_it(
    save: Save, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Pointsman("memory:", settings=Settings(delays=False)) as app:
        session = app.acting_as(LOCAL)
        await save(session, OLD, "key-of-the-old")
        entries, put = app.store.entries, app.store.entries.put

        async def overtaken(kind_: str, key: str, value: Json, *, after: int | None = None) -> int:
            if kind_ == kind:
                monkeypatch.setattr(entries, "put", put)
                await save(session, NEW, "key-of-the-new")
            return await put(kind_, key, value, after=after)

        monkeypatch.setattr(entries, "put", overtaken)
        with pytest.raises(RevisionMoved):
            await save(session, OLD, "key-of-the-late")
        [entry] = await entries.list(kind)
        names: list[Any] = [one.name for one in await app.vault.all()]
        values = {app.vault.secret(name) for name in names}
    assert NEW in json.dumps(entry.value)
    assert all(name in json.dumps(entry.value) for name in names), "no other secret stays in the vault"
    assert {value for value in values if value and "key-of-the-new" not in value} == set()
