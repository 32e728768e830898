"""Login with an identity provider: a real provider on a port, correct and malicious browsers."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest
from joserfc import jwk, jwt
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from pointsman.server.context import COOKIE
from pointsman.server.routes.logins import BACK, VISIT
from pointsman.settings import Settings
from pointsman.settings.sections import AccessSettings, HttpSettings, OidcSettings, SecretSettings
from tests.patience import PATIENCE_S
from tests.server.conftest import Served, serving

KEY: Final = jwk.generate_key("RSA", 2048, {"kid": "r1", "use": "sig"})
STRANGER: Final = jwk.generate_key("RSA", 2048, {"kid": "r1", "use": "sig"})
CLIENT: Final = "pointsman-app"
SECRET: Final = "s3cr+t of the client"


@dataclass
class IdentityProvider:
    """Issues one identity per code to users whom a registered client has sent."""

    server: HTTPServer
    said: dict[str, Any] = field(default_factory=lambda: {"sub": "ada", "roles": ["writers"], "groups": ["desk"]})
    signs_with: Any = field(default_factory=lambda: KEY)
    codes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    asked: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    @property
    def issuer(self) -> str:
        return self.server.url_for("").rstrip("/")

    def open(self, **changes: Any) -> None:
        """Answer requests; `changes` replace parts of the discovery document."""
        about = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize?realm=desk",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            **changes,
        }
        self.server.expect_request("/.well-known/openid-configuration").respond_with_json(about)
        self.server.expect_request("/keys").respond_with_json({"keys": [KEY.as_dict(private=False)]})
        self.server.expect_request("/authorize").respond_with_handler(self.authorize)
        self.server.expect_request("/token", method="POST").respond_with_handler(self.token)

    def authorize(self, request: Request) -> Response:
        """Authorize; every user is already logged in there."""
        asked = {name: str(value) for name, value in request.args.items()}
        self.asked.append(asked)
        code = f"code-{len(self.asked)}"
        self.codes[code] = asked
        back = urlencode({"code": code, "state": asked["state"], "iss": self.issuer})
        return Response(status=302, headers={"location": f"{asked['redirect_uri']}?{back}"})

    def token(self, request: Request) -> Response:
        form = {name: str(value) for name, value in request.form.items()}
        asked = self.codes.pop(form["code"], None)
        proof = base64.b64encode(f"{CLIENT}:s3cr%2Bt%20of%20the%20client".encode()).decode()
        if request.headers.get("authorization") != f"Basic {proof}":
            return Response(json.dumps({"error": "invalid_client"}), status=401)
        challenge = base64.urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        if asked is None or asked["code_challenge"] != challenge or asked["redirect_uri"] != form["redirect_uri"]:
            return Response(json.dumps({"error": "invalid_grant"}), status=400)
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "nonce": asked["nonce"], "iat": now, "exp": now + 60, **self.said}
        told = {name: value for name, value in claims.items() if value is not None}
        token = jwt.encode({"alg": "RS256", "kid": "r1"}, told, self.signs_with, algorithms=["RS256"])
        return Response(json.dumps({"access_token": "opaque", "token_type": "Bearer", "id_token": token}))


@pytest.fixture
def provider(httpserver: HTTPServer) -> IdentityProvider:
    one = IdentityProvider(httpserver)
    one.open()
    return one


def settings(provider: IdentityProvider, **more: Any) -> Settings:
    oidc = OidcSettings(
        issuer=provider.issuer,
        audience="pointsman",
        client_id=CLIENT,
        client_secret="secret.CLIENT",
        roles={"writers": "editor"},
        **more,
    )
    inside: Any = ["127.0.0.0/8"]
    http = HttpSettings(networks=inside, ports=(provider.server.port,))
    return Settings(delays=False, secrets={"CLIENT": SECRET}, access=AccessSettings(oidc=oidc), http=http)


@asynccontextmanager
async def browsing(served: Served) -> AsyncGenerator[httpx2.AsyncClient, None]:
    """Yield a browser: it keeps cookies, also those for https, and follows no redirect."""
    async with httpx2.AsyncClient(base_url=served.client.base_url, timeout=PATIENCE_S) as browser:
        yield browser


async def step(browser: httpx2.AsyncClient, address: str, **headers: str) -> httpx2.Response:
    """Request one page; cookies are stored and sent as browsers do over https."""
    own = urlsplit(address).netloc in ("", urlsplit(str(browser.base_url)).netloc)
    kept = getattr(browser, "kept", {})
    shown = {"cookie": "; ".join(f"{name}={value}" for name, value in kept.items())} if own and kept else {}
    reply = await browser.get(address, headers={**shown, **headers})
    for line in reply.headers.get_list("set-cookie") if own else ():
        name, _, rest = line.partition("=")
        value = rest.partition(";")[0].strip('"')
        kept = {**kept, name: value} if value else {one: told for one, told in kept.items() if one != name}
    browser.kept = kept  # pyright: ignore[reportAttributeAccessIssue] - the jar of this browser
    return reply


def cookies_of(browser: httpx2.AsyncClient) -> dict[str, str]:
    return dict(getattr(browser, "kept", {}))


async def to_the_answer(browser: httpx2.AsyncClient, to: str = "/workflows/news?tab=1") -> str:
    """Return the address to which the provider redirects a browser."""
    sent = await step(browser, f"/api/login/oidc?{urlencode({'to': to})}")
    assert sent.status_code == 303, sent.text
    answered = await step(browser, sent.headers["location"])
    assert answered.status_code == 302
    return str(answered.headers["location"])


def refusal(reply: httpx2.Response) -> str:
    """Return the reason on the login page."""
    assert reply.status_code == 303, reply.text
    address = urlsplit(reply.headers["location"])
    assert (address.path, address.netloc) == ("/login", "")
    assert f"{COOKIE}=" not in reply.headers.get("set-cookie", "")
    return parse_qs(address.query)["why"][0]


async def test_a_browser_logs_in_through_the_identity_provider(provider: IdentityProvider) -> None:
    async with serving(settings=settings(provider), is_local=True) as served, browsing(served) as browser:
        ways = (await served.client.get("/api/login")).json()
        assert ways == {"asks": True, "provider": {"name": "localhost", "address": "/api/login/oidc"}}
        back = await to_the_answer(browser)
        assert urlsplit(back).path == BACK
        (asked,) = provider.asked
        assert (asked["response_type"], asked["client_id"], asked["realm"]) == ("code", CLIENT, "desk")
        assert (asked["scope"], asked["code_challenge_method"]) == ("openid profile email", "S256")
        entered = await step(browser, back)
        assert (entered.status_code, entered.headers["location"]) == (303, "/workflows/news?tab=1")
        flags = {part.strip().lower() for part in entered.headers.get_list("set-cookie")[0].split(";")[1:]}
        assert {"httponly", "secure", "samesite=strict", "path=/"} <= flags
        assert [*cookies_of(browser)] == [COOKIE], "what it was sent with is gone"
        me = (await step(browser, "/api/me")).json()
        assert (me["name"], me["role"], me["groups"], me["entrance"]) == ("ada", "editor", ["desk"], "login")
        assert me["expiresAt"] > time.time() + 3600, "longer than the token, which lasts a minute"
        (deed,) = (await served.desk.audit.page())[0]
        assert (deed["who"], deed["what"]) == ("ada", f"GET {BACK}")
        cookie = {"cookie": f"{COOKIE}={cookies_of(browser)[COOKIE]}", "origin": str(browser.base_url).rstrip("/")}
        assert (await served.client.post("/api/logout", headers=cookie)).status_code == 204
        assert (await step(browser, "/api/me")).status_code == 401


async def test_a_provider_callback_works_once_and_only_in_its_browser(provider: IdentityProvider) -> None:
    async with serving(settings=settings(provider)) as served, browsing(served) as ada, browsing(served) as eve:
        back = await to_the_answer(ada)
        assert refusal(await step(eve, back)) == "login-expired", "eve was not sent"
        await to_the_answer(eve)
        assert refusal(await step(eve, back)) == "login-expired", "eve was sent with another state"
        before = cookies_of(ada)
        assert (await step(ada, back)).headers["location"].startswith("/workflows/news")
        assert refusal(await step(ada, back)) == "login-expired", "it was shown before"
        ada.kept = before  # pyright: ignore[reportAttributeAccessIssue] - a browser that does not forget
        assert refusal(await step(ada, back)) == "login-expired", "the provider gives nothing twice"


@pytest.mark.parametrize("lost", ["state", "code", "iss"])
async def test_a_provider_callback_with_wrong_parameters_grants_no_access(
    provider: IdentityProvider, lost: str
) -> None:
    async with serving(settings=settings(provider)) as served, browsing(served) as browser:
        back = urlsplit(await to_the_answer(browser))
        said = {name: values[0] for name, values in parse_qs(back.query).items()} | {lost: "else"}
        assert refusal(await step(browser, f"{BACK}?{urlencode(said)}")) == "login-expired"
        assert COOKIE not in cookies_of(browser)


@pytest.mark.parametrize(
    "said",
    [
        {"nonce": "of another login"},
        {"nonce": None},
        {"aud": "another client"},
        {"aud": [CLIENT, "other"], "azp": "other"},
        {"iss": "https://evil.example"},
        {"exp": 1_700_000_000},
        {"roles": ["readers"]},
        {"sub": "ada\n"},
    ],
    ids=str,
)
async def test_a_token_with_wrong_claims_grants_no_access(provider: IdentityProvider, said: dict[str, Any]) -> None:
    provider.said |= said
    async with serving(settings=settings(provider)) as served, browsing(served) as browser:
        assert refusal(await step(browser, await to_the_answer(browser))) == "login-refused"
        assert COOKIE not in cookies_of(browser)


async def test_a_token_with_another_signature_grants_no_access(provider: IdentityProvider) -> None:
    provider.signs_with = STRANGER
    async with serving(settings=settings(provider)) as served, browsing(served) as browser:
        assert refusal(await step(browser, await to_the_answer(browser))) == "login-refused"


async def test_a_refusal_by_the_provider_is_shown_at_the_login(provider: IdentityProvider) -> None:
    async with serving(settings=settings(provider)) as served, browsing(served) as browser:
        back = await to_the_answer(browser, "/inbox")
        state = parse_qs(urlsplit(back).query)["state"][0]
        reply = await step(browser, f"{BACK}?{urlencode({'error': 'access_denied', 'state': state})}")
        assert refusal(reply) == "login-denied"
        assert parse_qs(urlsplit(reply.headers["location"]).query)["to"] == ["/inbox"]


@pytest.mark.parametrize(
    "to",
    [
        "https://evil.example/",
        "//evil.example/workflows",
        "/\\evil.example",
        "\\\\evil.example",
        "/workflows/../../evil",
        "javascript:alert(1)",
        "/api/logout",
        "/login?why=x",
        "/workflows\r\nset-cookie: a=b",
        "workflows",
        "",
        "/",
    ],
)
async def test_the_login_redirects_only_to_paths_of_the_server(provider: IdentityProvider, to: str) -> None:
    async with serving(settings=settings(provider)) as served, browsing(served) as browser:
        entered = await step(browser, await to_the_answer(browser, to))
        assert entered.headers["location"] == "/workflows"


async def test_an_unavailable_or_refusing_provider_is_reported_at_the_login(provider: IdentityProvider) -> None:
    wrong = settings(provider).model_copy(update={"secrets": {"CLIENT": SecretSettings(value="another")}})
    async with serving(settings=wrong) as served, browsing(served) as browser:
        assert refusal(await step(browser, await to_the_answer(browser))) == "issuer-unreachable"
    provider.server.clear()
    async with serving(settings=settings(provider)) as served, browsing(served) as browser:
        assert refusal(await step(browser, "/api/login/oidc?to=/inbox")) == "issuer-unreachable"
        assert VISIT not in cookies_of(browser)


async def test_repeated_wrong_codes_are_throttled(provider: IdentityProvider) -> None:
    known = settings(provider)
    access = known.access.model_copy(update={"wrong_keys_per_minute": 2})
    async with serving(settings=known.model_copy(update={"access": access})) as served, browsing(served) as browser:
        provider.said |= {"roles": []}
        for expected in ("login-refused", "login-refused", "too-many-requests"):
            assert refusal(await step(browser, await to_the_answer(browser))) == expected
        assert len(provider.codes) == 1, "the last one was not asked for"


async def test_no_provider_login_is_offered_without_configuration(served: Served) -> None:
    assert (await served.client.get("/api/login")).json() == {"asks": False, "provider": None}
    for address in ("/api/login/oidc", f"{BACK}?code=x&state=y"):
        reply = await served.client.get(address)
        assert (reply.status_code, reply.json()["code"]) == (404, "login-not-offered")
    await served.key("ada", "viewer")
    assert (await served.client.get("/api/login")).json()["asks"]
