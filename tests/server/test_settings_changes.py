"""Settings and the mail server that an admin changes over HTTP: in effect at once, sealed, conditional, for admins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pointsman.engine.reports import ToolCall
from pointsman.settings import Settings
from pointsman.tools.tool import ToolFailed
from pointsman.values import JsonObject
from tests.server.conftest import Served, serving
from tests.tools.mail.server import PASSWORD, MailServer, mail_server

pytestmark = pytest.mark.integration

OPEN: dict[str, Any] = {"networks": ["127.0.0.0/8"]}
LETTER: JsonObject = {"to": "ann@example.org", "subject": "Report", "body": "All well."}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_VAULT_KEYS", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")


def settings_for(server: MailServer | None = None, **more: object) -> Settings:
    ports = [] if server is None else [server.port]
    return Settings.model_validate({"delays": False, "http": {**OPEN, "ports": ports}, **more})


def body_for(server: MailServer, **more: object) -> dict[str, object]:
    return {
        "host": "127.0.0.1",
        "port": server.port,
        "security": "none",
        "sender": "Desk <desk@example.org>",
        **more,
    }


async def setting(served: Served, name: str) -> dict[str, Any]:
    listed = (await served.client.get("/api/settings")).json()["settings"]
    return next(one for one in listed if one["name"] == name)


async def test_a_mail_server_is_tested_saved_and_used_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with mail_server(tmp_path, tls="starttls", login=True) as server:
        monkeypatch.setenv("SSL_CERT_FILE", server.certificates)
        body = body_for(server, security="starttls", username="desk", password=PASSWORD)
        async with serving(settings=settings_for(server)) as served:
            client = served.client
            wrong = await client.post(
                "/api/settings/mail/test", json={**body, "password": "wrong-1234", "to": "a@b.io"}
            )
            tested = await client.post("/api/settings/mail/test", json={**body, "to": "ada@example.org"})
            assert (await setting(served, "mail"))["entered"] is None
            saved = await client.put("/api/settings/mail", json=body)
            assert saved.status_code == 200, saved.text
            await client.put("/api/settings/allow_email_sending", json={"value": True})
            call = ToolCall(id="1", name="send_email", arguments=LETTER)
            sent = await served.app.tools.call(call, key="k1")
            listed = await client.get("/api/settings")
            exported = [entry.value for entry in await served.app.store.entries.list("setting")]
    assert not wrong.json()["sent"]
    assert "refuses the login" in wrong.json()["error"]
    assert tested.json() == {"sent": True, "error": ""}
    assert isinstance(sent, dict)
    assert sent["accepted"] == ["ann@example.org"]
    assert [str(one["Subject"]) for one in server.taken] == ["Pointsman: test message", "Report"]
    for text in (wrong.text, saved.text, listed.text, json.dumps(exported)):
        assert PASSWORD not in text
    assert saved.json()["value"]["password"] == "***"
    assert saved.json()["source"] == "app"


async def test_a_deleted_mail_server_is_not_used_any_more_and_leaves_no_password(tmp_path: Path) -> None:
    async with serving(settings=settings_for(allow_email_sending=True)) as served:
        body = {"host": "smtp.example.com", "username": "desk", "password": PASSWORD, "sender": "desk@example.org"}
        first = await served.client.put("/api/settings/mail", json=body)
        second = await served.client.put("/api/settings/mail", json={**body, "password": PASSWORD + "2"})
        names = [one["name"] for one in (await served.client.get("/api/secrets")).json()["secrets"]]
        assert first.status_code == second.status_code == 200
        assert len(names) == 1
        gone = await served.client.delete("/api/settings/mail", headers={"if-match": second.json()["etag"]})
        again = await served.client.delete("/api/settings/mail")
        spec = served.app.tools.find("send_email")
        rest = (await served.client.get("/api/secrets")).json()["secrets"]
    assert (gone.status_code, again.status_code) == (204, 404)
    assert spec is not None
    assert spec.off
    assert rest == []


async def test_a_stored_password_is_not_sent_to_another_server_or_user() -> None:
    async with serving(settings=settings_for()) as served:
        body = {"host": "smtp.example.com", "username": "desk", "password": PASSWORD, "sender": "desk@example.org"}
        await served.client.put("/api/settings/mail", json=body)
        kept = {key: value for key, value in body.items() if key != "password"}
        same = await served.client.put("/api/settings/mail", json={**kept, "sender": "help@example.org"})
        answers = [
            await served.client.put("/api/settings/mail", json={**kept, **change})
            for change in ({"host": "evil.example.com"}, {"port": 2525}, {"username": "other"})
        ]
        tried = await served.client.post(
            "/api/settings/mail/test", json={**kept, "host": "evil.example.com", "to": "a@example.org"}
        )
    assert same.status_code == 200
    for answer in (*answers, tried):
        assert answer.status_code == 422, answer.text
        assert answer.json()["problems"][0]["pointer"] == "body/password"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"host": "a b"}, "host"),
        ({"host": "smtp.example.com\r\nx"}, "host"),
        ({"port": 22}, "port"),
        ({"sender": "nobody"}, "sender"),
        ({"recipients": []}, "recipients"),
        ({"security": "none", "username": "desk", "password": PASSWORD}, "security"),
        ({"username": "desk"}, "password"),
        ({"username": "desk", "password": "abc"}, "password"),
    ],
)
async def test_an_error_of_the_mail_server_names_its_field(change: dict[str, object], field: str) -> None:
    async with serving(settings=settings_for()) as served:
        body = {"host": "smtp.example.com", "sender": "desk@example.org", **change}
        answer = await served.client.put("/api/settings/mail", json=body)
    assert answer.status_code == 422
    assert answer.json()["problems"][0]["pointer"] == f"body/{field}"


async def test_an_entered_mail_server_is_not_reached_inside_this_network(tmp_path: Path) -> None:
    async with mail_server(tmp_path) as server:
        closed = Settings.model_validate({"http": {"ports": [server.port]}, "allow_email_sending": True})
        async with serving(settings=closed) as served:
            tested = await served.client.post(
                "/api/settings/mail/test", json={**body_for(server), "to": "ada@example.org"}
            )
            await served.client.put("/api/settings/mail", json=body_for(server))
            with pytest.raises(ToolFailed) as caught:
                await served.app.tools.call(ToolCall(id="1", name="send_email", arguments=LETTER), key="k1")
        plain = Settings.model_validate({"http": {**OPEN, "ports": [server.port], "plain": False}})
        async with serving(settings=plain) as served:
            unencrypted = await served.client.put("/api/settings/mail", json=body_for(server))
    assert "internal address 127.0.0.1" in tested.json()["error"]
    assert caught.value.failure.code == "address-refused"
    assert unencrypted.json()["problems"][0]["pointer"] == "body/security"
    assert server.taken == []


async def test_a_mail_server_of_the_settings_file_has_precedence() -> None:
    own = settings_for(mail={"host": "smtp.example.com", "sender": "desk@example.org"})
    own = own.with_sources({"mail": "/etc/pointsman.toml"})
    async with serving(settings=own) as served:
        body = {"host": "smtp.example.net", "sender": "desk@example.org"}
        refused = await served.client.put("/api/settings/mail", json=body)
        shown = await setting(served, "mail")
    assert (refused.status_code, refused.json()["code"]) == (409, "setting-fixed")
    assert "/etc/pointsman.toml" in refused.json()["detail"]
    assert (shown["fixedBy"], shown["effect"]) == ("/etc/pointsman.toml", "now")


async def test_another_process_uses_a_changed_setting_within_a_second(file_store: str) -> None:
    async with serving(file_store, settings=settings_for()) as one, serving(file_store, settings=settings_for()) as two:
        await one.client.put("/api/settings/language", json={"value": "de"})
        shown = await setting(two, "language")
        assert one.app.settings.current.language == "de"
    assert (shown["value"], shown["source"], shown["changedBy"]) == ("de", "app", shown["changedBy"])


async def test_a_variable_that_an_admin_enters_is_used_by_the_next_start() -> None:
    document = {
        "pointsman": 1,
        "id": "greet",
        "nodes": [{"id": "a", "type": "transform", "config": {"set": {"x": "1"}}, "name": "for ${TEAM}"}],
        "edges": [],
    }
    async with serving(settings=settings_for(variables={"FIXED": "file"})) as served:
        refused = await served.client.post("/api/workflows", content=json.dumps(document))
        changed = await served.client.put(
            "/api/settings/variables", json={"value": {"TEAM": "desk", "FIXED": "entered"}}
        )
        saved = await served.client.post("/api/workflows", content=json.dumps(document))
        started = await served.client.post("/api/workflows/greet/execute", json={"input": {}, "wait": True})
        known = served.app.settings.current.variables
    assert (refused.status_code, saved.status_code) == (422, 201)
    assert changed.status_code == 200, changed.text
    assert started.status_code < 300, started.text
    assert known == {"TEAM": "desk", "FIXED": "file"}


async def test_two_admins_cannot_overwrite_each_other_and_nobody_else_changes_settings() -> None:
    async with serving(settings=settings_for()) as served:
        first = await served.client.put("/api/settings/language", json={"value": "de"})
        again = {"if-match": first.json()["etag"]}
        second = await served.client.put("/api/settings/language", json={"value": "fr"}, headers=again)
        late = await served.client.put("/api/settings/language", json={"value": "it"}, headers=again)
        late_reset = await served.client.delete("/api/settings/language", headers=again)
        value = (await setting(served, "language"))["value"]
    assert second.status_code == 200
    assert {late.json()["code"], late_reset.json()["code"]} == {"revision-moved"}
    assert value == "fr"


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("language", "not a language", "setting-invalid"),
        ("language", 3, "setting-invalid"),
        ("variables", {"lower": "x"}, "setting-invalid"),
        ("variables", {"A": 1}, "setting-invalid"),
        ("retention", {"completed": "soon"}, "setting-invalid"),
        ("retention", {"complete": "30d"}, "setting-invalid"),
        ("allow_email_sending", "perhaps", "setting-invalid"),
        ("server", {"port": 1}, "setting-fixed"),
        ("secrets", {"A": "b"}, "setting-fixed"),
        ("nothing", 1, "no-such-setting"),
    ],
)
async def test_a_setting_that_cannot_be_used_is_refused(name: str, value: object, code: str) -> None:
    async with serving(settings=settings_for()) as served:
        answer = await served.client.put(f"/api/settings/{name}", json={"value": value})
        after = served.app.settings.current
    assert answer.json()["code"] == code, answer.text
    assert after == served.app.settings


async def test_retention_that_an_admin_enters_is_used_by_the_next_collection() -> None:
    async with serving(settings=settings_for()) as served:
        node = {"id": "a", "type": "transform", "config": {"set": {"x": "1"}}}
        document = {"pointsman": 1, "id": "done", "nodes": [node], "edges": []}
        await served.client.post("/api/workflows", content=json.dumps(document))
        await served.client.post("/api/workflows/done/execute", json={"wait": True})
        before = await served.app.storage.collect(dry_run=True)
        changed = await served.client.put("/api/settings/retention", json={"value": {"completed": 0}})
        after = await served.app.storage.collect(dry_run=True)
        reset = await served.client.delete("/api/settings/retention")
        last = await served.app.storage.collect(dry_run=True)
    assert changed.status_code == 200, changed.text
    assert reset.status_code == 204
    assert [len(one.executions) for one in (before, after, last)] == [0, 1, 0]
