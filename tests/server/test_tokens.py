"""Tokens of an identity provider: valid ones, signed here, and every kind of invalid one."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from joserfc import jwk, jwt
from pytest_httpserver import HTTPServer

from pointsman.settings import Settings
from pointsman.settings.sections import AccessSettings, HttpSettings, OidcSettings
from tests.server.conftest import Served, serving

ISSUER: Final = "https://id.example.com/realms/desk"
RSA: Final = jwk.generate_key("RSA", 2048, {"kid": "r1", "use": "sig"})
EC: Final = jwk.generate_key("EC", "P-256", {"kid": "e1", "use": "sig"})
STRANGER: Final = jwk.generate_key("RSA", 2048, {"kid": "r1", "use": "sig"})

CLAIMS: Final[dict[str, Any]] = {
    "iss": ISSUER,
    "aud": ["other", "pointsman"],
    "sub": "ada",
    "realm_access": {"roles": ["readers", "writers", "unheard-of"]},
    "groups": ["desk", 7],
}


def signed(key: Any = RSA, algorithm: str = "RS256", *, kid: str | None = "r1", **claims: Any) -> str:
    said = {**CLAIMS, "iat": int(time.time()), "exp": int(time.time()) + 600, **claims}
    header = {"alg": algorithm} | ({} if kid is None else {"kid": kid})
    told = {name: value for name, value in said.items() if value is not None}
    return jwt.encode(header, told, key, algorithms=[algorithm])


def public(*keys: Any) -> bytes:
    return json.dumps({"keys": [key.as_dict(private=False) for key in keys]}).encode()


def settings(jwks: str, **more: Any) -> Settings:
    oidc = OidcSettings(
        issuer=ISSUER,
        audience="pointsman",
        jwks=jwks,
        role_claim="realm_access.roles",
        roles={"readers": "viewer", "writers": "editor"},
        **more,
    )
    inside: Any = ["127.0.0.0/8"]
    return Settings(delays=False, access=AccessSettings(oidc=oidc), http=HttpSettings(networks=inside))


@pytest.fixture
def keys(tmp_path: Path) -> str:
    file = tmp_path / "jwks.json"
    file.write_bytes(public(RSA, EC))
    return str(file)


async def answer(served: Served, token: str, address: str = "/api/me") -> tuple[int, Any]:
    reply = await served.client.get(address, headers={"authorization": f"Bearer {token}"})
    return reply.status_code, reply.json()


async def test_a_token_grants_access_to_its_subject_with_its_role(keys: str) -> None:
    async with serving(settings=settings(keys), is_local=False) as served:
        for token in (signed(), signed(EC, "ES256", kid="e1")):
            status, me = await answer(served, token)
            assert status == 200, me
            assert (me["name"], me["role"], me["groups"], me["entrance"]) == ("ada", "editor", ["desk"], "token")


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def by_hand(header: dict[str, Any]) -> str:
    said = {**CLAIMS, "exp": int(time.time()) + 600}
    return ".".join(encoded(json.dumps(one).encode()) for one in (header, said))


def unsigned() -> str:
    return by_hand({"alg": "none", "kid": "r1"}) + "."


def forged_with_the_public_key() -> str:
    """Return a token signed with the public key as if it were a shared secret: a token must not choose its
    algorithm."""
    text = by_hand({"alg": "HS256", "kid": "r1"})
    return f"{text}.{encoded(hmac.digest(RSA.as_pem(private=False), text.encode(), 'sha256'))}"


def tampered() -> str:
    head, claims, signature = signed().split(".")
    said = json.loads(base64.urlsafe_b64decode(claims + "=="))
    said["sub"] = "root"
    return f"{head}.{base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip('=')}.{signature}"


WRONG: Final[dict[str, Callable[[], str]]] = {
    "expired": lambda: signed(exp=int(time.time()) - 120),
    "never expires": lambda: signed(exp=None),
    "not yet": lambda: signed(nbf=int(time.time()) + 600),
    "of another issuer": lambda: signed(iss="https://evil.example"),
    "of no issuer": lambda: signed(iss=None),
    "for another audience": lambda: signed(aud="other"),
    "for nobody": lambda: signed(aud=None),
    "not signed": unsigned,
    "signed with the public key": forged_with_the_public_key,
    "signed by a stranger under a known name": lambda: signed(STRANGER),
    "signed by a key nobody knows": lambda: signed(STRANGER, kid="r9"),
    "names no key, and there are two": lambda: signed(kid=None),
    "signed by another kind of key than it says": lambda: signed(EC, "ES256", kid="r1"),
    "changed": tampered,
    "without a name": lambda: signed(sub=None),
    "with a name that is none": lambda: signed(sub="ada\u0000"),
    "with a role nobody knows": lambda: signed(realm_access={"roles": ["emperor"]}),
    "without a role": lambda: signed(realm_access=None),
    "no token": lambda: "a.b.c",
    "empty parts": lambda: "..",
    "endless": lambda: "a" * 20_000 + "..",
}


@pytest.mark.parametrize("made", WRONG.values(), ids=WRONG)
async def test_a_wrong_token_is_refused_without_the_reason(keys: str, made: Callable[[], str]) -> None:
    async with serving(settings=settings(keys), is_local=False) as served:
        status, said = await answer(served, made())
        assert (status, said["code"]) == (401, "not-signed-in")
        assert said["detail"] == "this key or token is not valid here"


async def test_a_mail_address_is_a_user_name_only_if_verified(keys: str) -> None:
    async with serving(settings=settings(keys, name_claim="email"), is_local=False) as served:
        for verified, status in ((True, 200), (False, 401), ("true", 401), (None, 401)):
            token = signed(email="ada@example.com", email_verified=verified)
            assert (await answer(served, token))[0] == status, verified


async def test_issuer_keys_are_fetched_once_and_again_for_a_new_key_id(httpserver: HTTPServer) -> None:
    asked = [0]
    listed: list[Any] = [RSA]

    def jwks(_: Any) -> Any:
        from werkzeug import Response

        asked[0] += 1
        return Response(public(*listed), content_type="application/json")

    httpserver.expect_request("/keys").respond_with_handler(jwks)
    configured = settings(httpserver.url_for("/keys"))
    async with serving(settings=configured.model_copy(update={"http": _ports(httpserver)}), is_local=False) as served:
        for _ in range(3):
            assert (await answer(served, signed(kid=None)))[0] == 200, "the only key there is needs no name"
        assert asked[0] == 1
        for _ in range(5):
            assert (await answer(served, signed(EC, "ES256", kid="e1")))[0] == 401
        assert asked[0] == 1, "whoever shows unknown keys makes nobody ask more than once in a minute"
        tokens = served.desk.tokens
        assert tokens is not None
        tokens._read_at -= 61  # pyright: ignore[reportPrivateUsage] - a minute passes
        listed.append(EC)
        assert (await answer(served, signed(EC, "ES256", kid="e1")))[0] == 200
        assert asked[0] == 2


async def test_an_unavailable_issuer_affects_only_its_tokens(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/keys").respond_with_data("down", status=500)
    configured = settings(httpserver.url_for("/keys")).model_copy(update={"http": _ports(httpserver)})
    async with serving(settings=configured, is_local=False) as served:
        for _ in range(3):
            status, said = await answer(served, signed())
            assert (status, said["code"]) == (503, "issuer-unreachable")
        assert len(httpserver.log) == 1, "it is left alone for a while"
        key = await served.key("ada", "viewer")
        assert (await served.client.get("/api/me", headers=key)).status_code == 200


async def test_issuer_keys_on_internal_addresses_are_fetched_only_if_allowed(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/keys").respond_with_data(public(RSA))
    configured = settings(httpserver.url_for("/keys")).model_copy(update={"http": HttpSettings()})
    async with serving(settings=configured, is_local=False) as served:
        status, said = await answer(served, signed())
        assert (status, said["code"]) == (503, "issuer-unreachable")
        assert httpserver.log == []


async def test_with_an_issuer_local_callers_need_a_token_and_browsers_log_in_with_one(keys: str) -> None:
    async with serving(settings=settings(keys), is_local=True) as served:
        assert (await served.client.get("/api/me")).status_code == 401
        entered = await served.client.post("/api/login", json={"key": signed(exp=int(time.time()) + 300)})
        assert entered.status_code == 200
        assert entered.json()["expiresAt"] <= time.time() + 300, "no longer than the token"
        cookie = entered.headers["set-cookie"].partition(";")[0]
        me = (await served.client.get("/api/me", headers={"cookie": cookie})).json()
        assert (me["name"], me["role"], me["entrance"]) == ("ada", "editor", "login")


def _ports(httpserver: HTTPServer) -> HttpSettings:
    inside: Any = ["127.0.0.0/8"]
    return HttpSettings(networks=inside, ports=(httpserver.port,))
