"""Typed credentials: header values made from parts, renewed tokens, and logins at services that cannot be mixed up."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from pointsman.app import Pointsman, Workflow
from pointsman.auth.callers import LOCAL, Caller, NotAllowed
from pointsman.auth.credentials import (
    VISIT_S,
    AuthorizationRefused,
    Credential,
    CredentialInvalid,
    CredentialNotConnected,
    verifier_of,
)
from pointsman.auth.redaction import REDACTOR
from pointsman.auth.vault import NoSuchSecret
from pointsman.settings import Settings
from pointsman.workflows.access_verbs import SecretVerbs
from tests.http_server import http_server
from tests.installation import HandClock

pytestmark = pytest.mark.integration
SECRET = "client-secret-canary-77"
HOME = "http://127.0.0.1/connected/SHOP"
ADA = Caller(name="ada", role="admin", entrance="key")
EVE = Caller(name="eve", role="admin", entrance="key")


@dataclass
class Service:
    """A token server and an API that accepts its tokens."""

    server: HTTPServer
    forms: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    seen: list[str] = field(default_factory=list[str])
    refuses: bool = False

    def __post_init__(self) -> None:
        self.server.expect_request("/token", method="POST").respond_with_handler(self._token)
        self.server.expect_request("/orders").respond_with_handler(self._orders)

    def url(self, path: str) -> str:
        return self.server.url_for(path)

    def _token(self, request: Request) -> Response:
        form = {name: str(value) for name, value in request.form.items()}
        self.forms.append(form)
        expected = base64.b64encode(f"app:{SECRET}".encode()).decode()
        if self.refuses or request.headers.get("authorization") != f"Basic {expected}":
            body = {"error": "invalid_client", "error_description": f"{SECRET} is wrong"}
            return Response(json.dumps(body), status=401)
        number = len(self.forms)
        reply = {"access_token": f"token-canary-{number}", "expires_in": 300, "token_type": "Bearer"}
        return Response(json.dumps({**reply, "refresh_token": f"refresh-canary-{number}"}))

    def _orders(self, request: Request) -> Response:
        self.seen.append(request.headers.get("authorization", ""))
        return Response(json.dumps({"you sent": self.seen[-1]}), content_type="application/json")


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_VAULT_KEYS", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")


@pytest.fixture
def service() -> Iterator[Service]:
    with http_server() as server:
        yield Service(server)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def app(service: Service, clock: HandClock) -> AsyncIterator[Pointsman]:
    http = {"networks": ["127.0.0.0/8"], "ports": [service.server.port]}
    async with Pointsman("memory:", settings=Settings.model_validate({"http": http}), clock=clock) as app:
        yield app


def secrets(app: Pointsman, caller: Caller = ADA) -> SecretVerbs:
    return app.acting_as(caller).secrets


def client(service: Service, **changes: Any) -> Credential:
    given: dict[str, Any] = {"type": "oauth2-client", "token_url": service.url("/token"), "client_id": "app"}
    return Credential(**(given | changes))


def login(service: Service, **changes: Any) -> Credential:
    return client(service, type="oauth2-code", authorize_url="https://id.example.com/authorize?x=1", **changes)


def host(service: Service) -> str:
    return f"http://127.0.0.1:{service.server.port}"


async def orders(app: Pointsman, service: Service) -> Any:
    config = {"url": service.url("/orders"), "headers": {"Authorization": "{secret.SHOP}"}}
    document = {"id": "o", "nodes": [{"id": "a", "type": "http", "config": config}], "edges": []}
    execution = await app.run(Workflow.parse(json.dumps(document), name="o"))
    return await execution.view()


async def visit(app: Pointsman, caller: Caller = ADA, name: str = "SHOP") -> dict[str, str]:
    address = await secrets(app, caller).begin_authorization(name, HOME)
    return {key: values[0] for key, values in parse_qs(urlsplit(address).query).items()}


async def test_basic_credentials_are_sent_as_a_header_to_their_hosts_only(app: Pointsman, service: Service) -> None:
    basic = Credential(type="basic", user="ann")
    await secrets(app).set_credential("SHOP", basic, {"password": "p4ssword-canary"})
    refused = await orders(app, service)
    assert (refused["status"], service.seen) == ("failed", [])
    await secrets(app).allow("SHOP", hosts=[host(service)])
    view = await orders(app, service)
    sent = "Basic " + base64.b64encode(b"ann:p4ssword-canary").decode()
    assert service.seen == [sent]
    assert view["status"] == "completed"
    assert sent not in json.dumps(view)


async def test_client_credentials_fetch_and_renew_their_token(
    app: Pointsman, service: Service, clock: HandClock
) -> None:
    await secrets(app).set_credential(
        "SHOP", client(service, scopes=("read", "write")), {"clientSecret": SECRET}, hosts=[host(service)]
    )
    assert service.forms == [{"grant_type": "client_credentials", "scope": "read write"}]
    await orders(app, service)
    clock.move(100)
    await orders(app, service)
    assert service.seen == ["Bearer token-canary-1"] * 2, "the token is valid for five minutes"
    clock.move(150)
    await orders(app, service)
    assert service.seen[-1] == "Bearer token-canary-2", "it is renewed a minute before it expires"


async def test_a_failed_renewal_is_reported_by_the_step_without_the_secret(
    app: Pointsman, service: Service, clock: HandClock
) -> None:
    await secrets(app).set_credential("SHOP", client(service), {"clientSecret": SECRET}, hosts=[host(service)])
    service.refuses = True
    clock.move(400)
    failed = json.dumps(await orders(app, service))
    assert "credential-not-connected" in failed
    assert "invalid_client" in failed
    assert SECRET not in failed
    assert service.seen == []
    asked = len(service.forms)
    clock.move(2)
    await orders(app, service)
    assert len(service.forms) == asked, "a failure is not repeated at once"
    service.refuses = False
    clock.move(60)
    await orders(app, service)
    assert service.seen == [f"Bearer token-canary-{asked + 1}"]


async def test_a_login_stores_tokens_and_refreshes_them(app: Pointsman, service: Service, clock: HandClock) -> None:
    verbs = secrets(app)
    await verbs.set_credential(
        "SHOP", login(service, scopes=("orders",)), {"clientSecret": SECRET}, hosts=[host(service)]
    )
    assert "credential-not-connected" in json.dumps(await orders(app, service))
    asked = await visit(app)
    assert (asked["redirect_uri"], asked["code_challenge_method"], asked["scope"]) == (HOME, "S256", "orders")
    assert asked["x"] == "1"
    await verbs.complete_authorization("SHOP", "code-1", asked["state"])
    assert service.forms == [
        {
            "grant_type": "authorization_code",
            "code": "code-1",
            "redirect_uri": HOME,
            "code_verifier": verifier_of(asked["state"]),
        }
    ]
    clock.move(2)
    await orders(app, service)
    clock.move(280)
    await orders(app, service)
    assert service.forms[-1] == {"grant_type": "refresh_token", "refresh_token": "refresh-canary-1"}
    assert service.seen == ["Bearer token-canary-1", "Bearer token-canary-2"]


async def test_a_state_is_accepted_once_from_the_admin_who_began_for_the_same_credential(
    app: Pointsman, service: Service, clock: HandClock
) -> None:
    verbs = secrets(app)
    for name in ("SHOP", "OTHER"):
        await verbs.set_credential(name, login(service), {"clientSecret": SECRET})
    stolen = (await visit(app))["state"]
    with pytest.raises(AuthorizationRefused):
        await secrets(app, EVE).complete_authorization("SHOP", "code", stolen)
    with pytest.raises(AuthorizationRefused):
        await verbs.complete_authorization("SHOP", "code", stolen)
    mixed = (await visit(app))["state"]
    with pytest.raises(AuthorizationRefused):
        await verbs.complete_authorization("OTHER", "code", mixed)
    late = (await visit(app))["state"]
    clock.move(VISIT_S + 1)
    with pytest.raises(AuthorizationRefused):
        await verbs.complete_authorization("SHOP", "code", late)
    moved = (await visit(app))["state"]
    await verbs.set_credential("SHOP", login(service, client_id="else"), {"clientSecret": SECRET})
    with pytest.raises(AuthorizationRefused):
        await verbs.complete_authorization("SHOP", "code", moved)
    with pytest.raises(AuthorizationRefused):
        await verbs.complete_authorization("SHOP", "code", "made-up")
    assert service.forms == [], "no code was sent anywhere"


async def test_a_credential_that_is_deleted_during_its_login_is_not_found(app: Pointsman, service: Service) -> None:
    verbs = secrets(app)
    await verbs.set_credential("SHOP", login(service), {"clientSecret": SECRET})
    state = (await visit(app))["state"]
    await verbs.delete("SHOP")
    with pytest.raises(NoSuchSecret):
        await verbs.complete_authorization("SHOP", "code", state)
    assert service.forms == []


async def test_secret_parts_are_never_returned_and_do_not_follow_to_another_token_server(
    app: Pointsman, service: Service
) -> None:
    verbs = secrets(app)
    await verbs.set_credential("SHOP", client(service), {"clientSecret": SECRET}, hosts=[host(service)])
    listed = await verbs.list()
    assert listed["secrets"][0]["credential"] == {
        "type": "oauth2-client",
        "user": "",
        "authorizeUrl": "",
        "tokenUrl": service.url("/token"),
        "clientId": "app",
        "scopes": [],
        "connected": True,
        "expiresAt": app.clock.now() + 300,
    }
    shown = json.dumps([listed, await app.acting_as(LOCAL).access.audit_entries()])
    assert not any(one in shown for one in (SECRET, "token-canary", "refresh-canary"))
    text = f"{SECRET} token-canary-1 refresh-canary-1"
    assert "canary" not in app.context[REDACTOR].text(text)
    with pytest.raises(CredentialInvalid, match="client secret"):
        await verbs.set_credential("SHOP", client(service, token_url=service.url("/steal")), {"clientSecret": ""})
    await verbs.set_credential("SHOP", client(service, scopes=("x",)), {"clientSecret": ""})
    assert len(service.forms) == 2, "the same token server"


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/token", "http://169.254.169.254/token", "http://10.0.0.1/t"])
async def test_token_servers_obey_the_egress_rules(clock: HandClock, service: Service, address: str) -> None:
    async with Pointsman("memory:", settings=Settings(), clock=clock) as app:
        with pytest.raises(CredentialNotConnected, match="blocked"):
            await secrets(app).set_credential("SHOP", client(service, token_url=address), {"clientSecret": SECRET})
        assert (await secrets(app).list())["secrets"] == []


@pytest.mark.parametrize(
    ("credential", "parts"),
    [
        (Credential(type="basic", user="a:b"), {"password": "12345678"}),
        (Credential(type="basic", user="a"), {"password": ""}),
        (Credential(type="oauth2-client", token_url="file:///x", client_id="a"), {"clientSecret": SECRET}),
        (Credential(type="oauth2-client", token_url="https://u:p@x/t", client_id="a"), {"clientSecret": SECRET}),
        (Credential(type="oauth2-code", token_url="https://x/t", client_id="a"), {}),
        (Credential(type="oauth2-code", token_url="https://x/t", authorize_url="javascript:1", client_id="a"), {}),
        (Credential(type="oauth2-code", token_url="https://x/t", authorize_url="https://x/a"), {}),
    ],
)
async def test_incomplete_credentials_are_refused(app: Pointsman, credential: Credential, parts: Any) -> None:
    with pytest.raises(CredentialInvalid):
        await secrets(app).set_credential("SHOP", credential, parts)


async def test_only_admins_set_and_connect_credentials(app: Pointsman, service: Service) -> None:
    ed = Caller(name="ed", role="editor", entrance="key")
    with pytest.raises(NotAllowed):
        await secrets(app, ed).set_credential("SHOP", client(service), {"clientSecret": SECRET})
    with pytest.raises(NotAllowed):
        await secrets(app, ed).begin_authorization("SHOP", HOME)
    with pytest.raises(NotAllowed):
        await secrets(app, ed).complete_authorization("SHOP", "c", "s")
