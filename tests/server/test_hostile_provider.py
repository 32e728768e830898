"""Attacks on the login with an identity provider: other answers than the standard allows, and providers that fail.

The provider is a real one on a port (`test_provider.IdentityProvider`): discovery, keys, authorization code with PKCE,
and signed ID tokens.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import time
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from joserfc import jwk, jws, jwt
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from pointsman.auth.oidc_login import FAILED_FOR_S, IssuerUnreachable, Tokens
from pointsman.server.context import COOKIE
from pointsman.server.routes.logins import BACK, VISIT
from pointsman.tools.egress.addresses import AddressUnreachable, SecretHosts
from pointsman.tools.egress.http_calls import HttpCall, HttpResponse, Outgoing
from tests.server.conftest import serving
from tests.server.test_provider import (
    CLIENT,
    KEY,
    STRANGER,
    IdentityProvider,
    browsing,
    cookies_of,
    refusal,
    settings,
    step,
    to_the_answer,
)

DISCOVERY: Final = "/.well-known/openid-configuration"
CURVE: Final = jwk.generate_key("EC", "P-256", {"kid": "e1", "use": "sig"})


@pytest.fixture
def provider(httpserver: HTTPServer) -> IdentityProvider:
    one = IdentityProvider(httpserver)
    one.open()
    return one


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def by_hand(header: dict[str, Any], claims: dict[str, Any], sign: Callable[[bytes], bytes] = lambda _: b"") -> str:
    text = ".".join(encoded(json.dumps(one).encode()) for one in (header, claims))
    return f"{text}.{encoded(sign(text.encode()))}"


def by_public_key(text: bytes) -> bytes:
    return hmac.digest(KEY.as_pem(private=False), text, "sha256")


def by_empty_key(text: bytes) -> bytes:
    return hmac.digest(b"", text, "sha256")


def signed(claims: dict[str, Any], header: dict[str, Any] | None = None, key: Any = KEY) -> str:
    chosen = {"alg": "RS256", "kid": "r1"} | (header or {})
    return jwt.encode(chosen, claims, key, algorithms=[chosen["alg"]])


def embedded(claims: dict[str, Any]) -> str:
    """Return a token that contains the key for its own verification."""
    return signed(claims, {"jwk": STRANGER.as_dict(private=False)}, STRANGER)


DEEP: Final = b'{"alg":"RS256","kid":"r1","deep":' + b"[" * 5_000 + b"]" * 5_000 + b"}"


def signed_bytes(claims: bytes) -> str:
    return jws.serialize_compact({"alg": "RS256", "kid": "r1"}, claims, KEY)


TOKENS: Final[dict[str, Callable[[dict[str, Any]], object]]] = {
    "not signed": lambda claims: by_hand({"alg": "none"}, claims),
    "not signed, capitals": lambda claims: by_hand({"alg": "NONE", "kid": "r1"}, claims),
    "not signed, without an algorithm": lambda claims: by_hand({"kid": "r1"}, claims),
    "HS256 with the public key": lambda claims: by_hand({"alg": "HS256", "kid": "r1"}, claims, by_public_key),
    "HS256 with an empty key": lambda claims: by_hand({"alg": "HS256", "kid": "r1"}, claims, by_empty_key),
    "HS256 with the secret of the client": lambda claims: by_hand(
        {"alg": "HS256"}, claims, lambda text: hmac.digest(b"s3cr+t of the client", text, "sha256")
    ),
    "an algorithm that is not text": lambda claims: by_hand({"alg": ["RS256"], "kid": "r1"}, claims),
    "an algorithm that is an object": lambda claims: by_hand({"alg": {}, "kid": "r1"}, claims),
    "signature removed": lambda claims: signed(claims).rpartition(".")[0] + ".",
    "another kind of key": lambda claims: signed(claims, {"alg": "ES256"}, CURVE),
    "another algorithm of the same key": lambda claims: signed(claims, {"alg": "PS256"}),
    "a key in the header": embedded,
    "an address of a key in the header": lambda claims: signed(claims, {"jku": "http://127.0.0.1:1/k"}, STRANGER),
    "an unknown critical header": lambda claims: by_hand(
        {"alg": "RS256", "kid": "r1", "crit": ["exp2"], "exp2": 1}, claims
    ),
    "a key id that is a path": lambda claims: signed(claims, {"kid": "../../etc/passwd"}, STRANGER),
    "a key id that is a number": lambda claims: by_hand({"alg": "RS256", "kid": 1}, claims),
    "a key id that is not known": lambda claims: signed(claims, {"kid": "r9"}),
    "claims that are a list": lambda _: signed_bytes(b"[]"),
    "encrypted": lambda _: "a.b.c.d.e",
    "five megabytes": lambda claims: signed(claims | {"more": "x" * 5_000_000}),
    "not text": lambda _: 7,
    "empty": lambda _: "",
    "deep": lambda claims: f"{encoded(DEEP)}.{signed(claims).partition('.')[2]}",
    "deep claims": lambda _: signed_bytes(DEEP),
}


@pytest.mark.parametrize("made", TOKENS.values(), ids=TOKENS)
async def test_a_forged_token_of_the_token_endpoint_grants_no_access(
    provider: IdentityProvider, made: Callable[[dict[str, Any]], object]
) -> None:
    token_of = provider.token

    def forge(request: Request) -> Response:
        given = json.loads(token_of(request).get_data())
        claims = json.loads(base64.urlsafe_b64decode(given["id_token"].split(".")[1] + "=="))
        return Response(json.dumps({**given, "id_token": made(claims)}))

    provider.server.clear()
    provider.token = forge
    provider.open()
    async with serving(settings=settings(provider)) as served, browsing(served) as browser:
        assert refusal(await step(browser, await to_the_answer(browser))) == (
            "issuer-unreachable" if made is TOKENS["not text"] else "login-refused"
        )
        assert COOKIE not in cookies_of(browser)


NOW: Final = int(time.time())
CLAIMS: Final[list[dict[str, Any]]] = [
    {"aud": [CLIENT, "other"]},
    {"aud": [CLIENT, "other"], "azp": None},
    {"aud": []},
    {"aud": [[CLIENT]]},
    {"aud": {CLIENT: True}},
    {"azp": "other"},
    {"azp": ""},
    {"azp": [CLIENT]},
    {"nonce": ""},
    {"nonce": []},
    {"iss": ""},
    {"iss": ["x"]},
    {"iat": NOW + 100_000},
    {"nbf": NOW + 100_000},
    {"exp": NOW - 100_000},
    {"exp": True},
    {"exp": str(NOW + 60)},
    {"exp": 10**400},
    {"exp": -1},
    {"sub": ""},
    {"sub": ["ada"]},
    {"sub": {"name": "ada"}},
    {"sub": "a" * 201},
    {"sub": "ada\u202e"},
    {"roles": {"writers": True}},
    {"roles": [["writers"]]},
    {"roles": "writers readers"},
    {"roles": ["WRITERS"]},
]


# Each worker of a run has its own time, so no id may contain it.
@pytest.mark.parametrize("claims", CLAIMS, ids=[f"{number} {min(claims)}" for number, claims in enumerate(CLAIMS)])
async def test_an_id_token_with_odd_claims_grants_no_access(provider: IdentityProvider, claims: dict[str, Any]) -> None:
    provider.said |= claims
    async with serving(settings=settings(provider)) as served, browsing(served) as browser:
        assert refusal(await step(browser, await to_the_answer(browser))) == "login-refused"
        assert COOKIE not in cookies_of(browser)


async def test_a_bearer_token_with_a_deep_header_is_refused(provider: IdentityProvider) -> None:
    async with serving(settings=settings(provider)) as served:
        for token in (f"{encoded(DEEP)}.e30.AA", signed_bytes(DEEP)):
            reply = await served.client.get("/api/me", headers={"authorization": f"Bearer {token}"})
            assert (reply.status_code, reply.json()["code"]) == (401, "not-signed-in")


@pytest.mark.parametrize("claim", ["name_claim", "role_claim", "groups_claim"])
@pytest.mark.parametrize("verified", [None, False, "true", 1])
async def test_a_mail_address_that_is_not_verified_counts_as_absent(
    provider: IdentityProvider, claim: str, verified: object
) -> None:
    """Otherwise an attacker could claim the address of an admin or of a group."""
    provider.said |= {"email": "boss@example.org", "email_verified": verified}
    given = settings(provider, **{claim: "email"})
    oidc = given.access.oidc
    assert oidc is not None
    oidc = oidc.model_copy(update={"roles": {"boss@example.org": "admin", "writers": "viewer"}})
    given = given.model_copy(update={"access": given.access.model_copy(update={"oidc": oidc})})
    async with serving(settings=given) as served, browsing(served) as browser:
        entered = await step(browser, await to_the_answer(browser))
        if claim != "groups_claim":
            assert refusal(entered) == "login-refused"
            return
        me = (await step(browser, "/api/me")).json()
        assert (me["name"], me["role"], me["groups"]) == ("ada", "viewer", [])


ABOUTS: Final[dict[str, object]] = {
    "another issuer": {"issuer": "https://evil.example"},
    "an issuer with a slash more": {"issuer": "ISSUER/"},
    "no issuer": {"issuer": None},
    "a script": {"authorization_endpoint": "javascript:alert(1)"},
    "a relative address": {"authorization_endpoint": "/authorize"},
    "a header in the address": {"authorization_endpoint": "https://id.example/\r\nset-cookie: a=b"},
    "an address beyond ASCII": {"authorization_endpoint": "https://id.example/\u20ac"},
    "a fragment": {"authorization_endpoint": "https://id.example/#"},
    "a list of addresses": {"authorization_endpoint": ["https://id.example/"]},
    "no address": {"authorization_endpoint": None},
}


@pytest.mark.parametrize("about", ABOUTS.values(), ids=ABOUTS)
async def test_a_wrong_discovery_document_starts_no_login(provider: IdentityProvider, about: dict[str, Any]) -> None:
    serve_about(provider, **about)
    async with serving(settings=settings(provider)) as served, browsing(served) as browser:
        assert refusal(await step(browser, "/api/login/oidc")) == "issuer-unreachable"
        assert VISIT not in cookies_of(browser)


def serve_about(provider: IdentityProvider, **changes: Any) -> None:
    """Publish another discovery document."""
    provider.server.clear()
    provider.open(
        **{
            name: value.replace("ISSUER", provider.issuer) if isinstance(value, str) else value
            for name, value in changes.items()
        }
    )


@pytest.mark.parametrize("place", ["token_endpoint", "jwks_uri"])
@pytest.mark.parametrize("address", ["ftp://id.example/", "https://id.example/#x", None, "", 7, "http://id.example/\n"])
async def test_wrong_addresses_of_the_discovery_document_end_the_login(
    provider: IdentityProvider, place: str, address: object
) -> None:
    serve_about(provider, **{place: address})
    async with serving(settings=settings(provider)) as served, browsing(served) as browser:
        assert refusal(await step(browser, await to_the_answer(browser))) == "issuer-unreachable"


def test_an_issuer_with_https_publishes_no_addresses_with_http(provider: IdentityProvider) -> None:
    oidc = settings(provider).access.oidc
    assert oidc is not None
    tokens = Tokens(oidc.model_copy(update={"issuer": "https://id.example"}), SettableClock(), Outgoing())
    tokens._about = {"token_endpoint": "http://id.example/token"}  # pyright: ignore[reportPrivateUsage] - as if read
    with pytest.raises(IssuerUnreachable, match="begins with https://"):
        tokens._endpoint("token_endpoint")  # pyright: ignore[reportPrivateUsage] - no server of tests has https


async def test_an_answer_without_its_issuer_is_refused_if_the_provider_always_names_it(
    provider: IdentityProvider,
) -> None:
    serve_about(provider, authorization_response_iss_parameter_supported=True)
    async with serving(settings=settings(provider)) as served, browsing(served) as browser:
        back = urlsplit(await to_the_answer(browser))
        given = {name: values[0] for name, values in parse_qs(back.query).items() if name != "iss"}
        assert refusal(await step(browser, f"{BACK}?{urlencode(given)}")) == "login-expired"
        entered = await step(browser, await to_the_answer(browser))
        assert entered.headers["location"].startswith("/workflows/news")


BODIES: Final[dict[str, Response]] = {
    "not JSON": Response("<html>"),
    "a list": Response("[]"),
    "deep": Response(DEEP),
    "huge": Response(b" " * 10_000_001),
    "not found": Response("{}", status=404),
    "failing": Response("{}", status=500),
    "a loop of redirects": Response("", status=302, headers={"location": DISCOVERY}),
    "a redirect to a file": Response("", status=302, headers={"location": "file:///etc/passwd"}),
    "a redirect to the inside": Response("", status=302, headers={"location": "http://169.254.169.254/"}),
    "not UTF-8": Response(b'{"issuer": "\xff"}'),
    "keys that are a text": Response('{"keys": "none"}'),
}


@pytest.mark.parametrize("path", [DISCOVERY, "/keys", "/token"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_a_provider_that_answers_nonsense_ends_the_login(
    provider: IdentityProvider, path: str, body: Response
) -> None:
    provider.server.clear()
    provider.server.expect_request(path).respond_with_response(body)
    provider.open()
    async with serving(settings=settings(provider)) as served, browsing(served) as browser:
        if path == DISCOVERY:
            assert refusal(await step(browser, "/api/login/oidc")) == "issuer-unreachable"
            return
        why = refusal(await step(browser, await to_the_answer(browser)))
        assert why in ("issuer-unreachable", "login-refused")
        assert COOKIE not in cookies_of(browser)


KEYS: Final[dict[str, list[Any]]] = {
    "none": [],
    "a symmetric one": [{"kty": "oct", "kid": "r1", "k": "AAAA"}],
    "one for encryption": [KEY.as_dict(private=False) | {"use": "enc"}],
    "one for another algorithm": [KEY.as_dict(private=False) | {"alg": "PS256"}],
    "one of a curve that does not exist": [CURVE.as_dict(private=False) | {"kid": "r1", "crv": "P-9"}],
    "one with a broken number": [KEY.as_dict(private=False) | {"n": "!"}],
    "one for encrypting operations": [KEY.as_dict(private=False) | {"key_ops": ["encrypt"]}],
    "a text": ["r1"],
    "a hundred others before it": [*[CURVE.as_dict(private=False)] * 100, KEY.as_dict(private=False)],
}


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
async def test_keys_that_are_not_for_signatures_verify_nothing(provider: IdentityProvider, keys: list[Any]) -> None:
    provider.server.clear()
    provider.server.expect_request("/keys").respond_with_json({"keys": keys})
    provider.open()
    async with serving(settings=settings(provider)) as served, browsing(served) as browser:
        assert refusal(await step(browser, await to_the_answer(browser))) == "login-refused"


class SettableClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time = 1_000_000.0

    def now(self) -> float:
        return self.time

    async def sleep_until(self, at: float) -> None:
        self.time = max(self.time, at)


class SilentProvider(Outgoing):
    """A provider that never answers: each request fails after 30 s."""

    def __init__(self, clock: SettableClock) -> None:
        super().__init__()
        self._clock = clock
        self.calls = 0

    async def send(self, call: HttpCall, guards: Sequence[SecretHosts] = ()) -> HttpResponse:
        self.calls += 1
        await asyncio.sleep(0)
        self._clock.time += 30
        raise AddressUnreachable("the answer was not complete within 30 s")


@pytest.mark.parametrize("what", ["a login", "a token"])
async def test_callers_of_a_silent_provider_wait_for_one_timeout_and_not_for_all(
    provider: IdentityProvider, what: str
) -> None:
    """Strangers can send texts that look like tokens: their number must not delay other callers."""
    oidc, clock = settings(provider).access.oidc, SettableClock()
    assert oidc is not None
    silent = SilentProvider(clock)
    tokens = Tokens(oidc, clock, silent)
    token = signed({"sub": "ada"})
    began = clock.now()
    asked = [tokens.about() if what == "a login" else tokens.caller(token) for _ in range(20)]
    came = await asyncio.gather(*asked, return_exceptions=True)
    assert {type(one) for one in came} == {IssuerUnreachable}
    assert (silent.calls, clock.now() - began) == (1, 30)
    clock.time += FAILED_FOR_S
    with pytest.raises(IssuerUnreachable):
        await tokens.about()
    assert silent.calls == 2, "it may answer now"


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1@evil.example"},
        {"x-forwarded-host": "evil.example", "x-forwarded-proto": "https", "x-forwarded-for": "127.0.0.1"},
        {"forwarded": "host=evil.example;proto=https"},
        {"x-original-url": "https://evil.example/", "x-host": "evil.example"},
    ],
    ids=str,
)
async def test_the_provider_never_returns_a_browser_to_another_host(
    provider: IdentityProvider, headers: dict[str, str]
) -> None:
    async with serving(settings=settings(provider)) as served, browsing(served) as browser:
        reply = await browser.get("/api/login/oidc", headers=headers)
        assert reply.status_code in (303, 400, 403)
        assert "evil" not in reply.headers.get("location", "")


async def test_a_login_replaces_a_cookie_that_was_planted_before_it(provider: IdentityProvider) -> None:
    """A cookie that an attacker knows must not become the cookie of the person who logs in."""
    async with serving(settings=settings(provider)) as served, browsing(served) as eve, browsing(served) as ada:
        provider.said |= {"sub": "eve"}
        await step(eve, await to_the_answer(eve))
        planted = cookies_of(eve)
        provider.said |= {"sub": "ada"}
        back = await to_the_answer(ada)
        ada.kept = {**cookies_of(ada), **planted}  # pyright: ignore[reportAttributeAccessIssue] - the jar of this browser
        await step(ada, back)
        assert cookies_of(ada)[COOKIE] != planted[COOKIE]
        assert (await step(ada, "/api/me")).json()["name"] == "ada"
        assert (await step(eve, "/api/me")).status_code == 401, "the replaced login has ended"
