"""Tokens of an identity provider (OpenID Connect): verification of signature, issuer, audience and times; claims.

    token ─▶ size ─▶ header: algorithm allowed? key known? ─▶ signature ─▶ issuer, audience, times ─▶ name, role, groups

The settings determine the algorithms, never the token; all of them are asymmetric, so that no public value can sign.
Keys come from a file or from the issuer and are cached for ten minutes. If a token names an unknown key, they are read
again, at most once per minute, whatever the number of callers.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import msgspec

from pointsman.auth.callers import ROLES, Caller, Role
from pointsman.errors import OperatorError
from pointsman.ports import Clock
from pointsman.settings import Settings
from pointsman.settings.sections import OidcSettings
from pointsman.values import Instant

if TYPE_CHECKING:
    from joserfc.jwk import Key

    from pointsman.tools.egress.http_calls import Outgoing

TOKEN_CHARS_MAX: Final = 16_384
NAME_CHARS_MAX: Final = 200
KEYS_MAX: Final = 100
KEPT_FOR_S: Final = 600.0
"""How long keys are cached: a key that the issuer withdraws is valid for at most so long."""
ASKED_EVERY_S: Final = 60.0
FAILED_FOR_S: Final = 5.0
"""How long an unreachable issuer is not asked again: any client can send something that looks like a token."""
OK: Final = 200


class IssuerUnreachable(OperatorError):
    """The keys of the identity provider cannot be read, so its tokens cannot be verified."""

    code: ClassVar[str] = "issuer-unreachable"


class TokenRefused(Exception):
    """Why a token is invalid; for logs, not for the client that sent it."""


class Tokens:
    """Verifier of the tokens of one issuer."""

    def __init__(self, settings: OidcSettings, clock: Clock, outgoing: Outgoing) -> None:
        self._settings = settings
        self._clock = clock
        self._outgoing = outgoing
        self._keys: dict[str, Key] = {}
        self._read_at = -math.inf
        self._failed_at = -math.inf
        self._about: Mapping[str, object] = {}
        self._about_at = -math.inf
        self._reading = asyncio.Lock()

    async def caller(self, token: str) -> Caller | None:
        """Return the caller of a token; None if the token is invalid. Raises `IssuerUnreachable`."""
        try:
            return await self._caller(token)
        except TokenRefused:
            return None

    async def claims(self, token: str, *, audience: str) -> Mapping[str, object]:
        """Return the claims of a token that this issuer signed, for this audience, and that is valid now. Raises
        `TokenRefused`, `IssuerUnreachable`."""
        from joserfc import jwt  # Deferred: only servers that accept tokens load it.
        from joserfc.errors import JoseError

        key = await self._key_for(token)
        try:
            said = jwt.decode(token, key, algorithms=[*self._settings.algorithms])
            rules = jwt.JWTClaimsRegistry(
                now=int(self._clock.now()),
                leeway=int(self._settings.leeway.seconds),
                iss={"essential": True, "value": self._settings.issuer},
                aud={"essential": True, "value": audience},
                exp={"essential": True},
            )
            rules.validate(said.claims)
        except (JoseError, ValueError, TypeError) as why:
            raise TokenRefused(type(why).__name__) from None
        return said.claims

    async def about(self) -> Mapping[str, object]:
        """Return the discovery document of the issuer, with its endpoints. Raises `IssuerUnreachable`."""
        now = self._clock.now()
        if not self._about_at <= now < self._about_at + KEPT_FOR_S:
            place = f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration"
            self._about, self._about_at = _object(await self._fetch(place)), now
        return self._about

    async def _caller(self, token: str) -> Caller:
        return self.said(await self.claims(token, audience=self._settings.audience))

    def said(self, claims: Mapping[str, object]) -> Caller:
        """Return the caller that claims describe. Raises `TokenRefused`."""
        settings = self._settings
        name = _at(claims, settings.name_claim)
        if not isinstance(name, str) or not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable():
            raise TokenRefused(f"{settings.name_claim} is no name")
        if settings.name_claim == "email" and claims.get("email_verified") is not True:
            raise TokenRefused("its address is not verified")
        role = self._role(_texts(_at(claims, settings.role_claim)))
        groups = _texts(_at(claims, settings.groups_claim))
        until = Instant(float(cast("int", claims["exp"])))
        return Caller(name=name, role=role, groups=groups, entrance="token", until=until)

    def _role(self, said: tuple[str, ...]) -> Role:
        """Return the most privileged of the roles that the claims give."""
        given = {self._settings.roles.get(one) for one in said} - {None} or {self._settings.default_role}
        known: list[Role] = [role for role in ROLES if role in given]
        if not known:
            raise TokenRefused("it gives no role")
        return known[-1]

    async def _key_for(self, token: str) -> Key:
        """Return the key that a token names. A token that names no key is verified with the only key, if the issuer has
        just one."""
        if len(token) > TOKEN_CHARS_MAX:
            raise TokenRefused("it is too long")
        header = _header(token)
        if header.get("alg") not in self._settings.algorithms:
            raise TokenRefused("its algorithm is not allowed")
        kid = header.get("kid")
        if kid is not None and not isinstance(kid, str):
            raise TokenRefused("its key is no text")
        now = self._clock.now()
        if not self._read_at <= now < self._read_at + KEPT_FOR_S:
            await self._read(older_than=KEPT_FOR_S)
        found = self._known(kid)
        if found is None:
            await self._read(older_than=ASKED_EVERY_S)
            found = self._known(kid)
        if found is None:
            raise TokenRefused("its key is not known")
        return found

    def _known(self, kid: str | None) -> Key | None:
        if kid is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(kid)

    async def _read(self, *, older_than: float) -> None:
        async with self._reading:
            now = self._clock.now()
            if self._read_at <= now < self._read_at + older_than:
                return
            if self._failed_at <= now < self._failed_at + FAILED_FOR_S:
                raise IssuerUnreachable("its keys could not be read a moment ago", hint="See access.oidc.")
            self._failed_at = now
            self._keys = _keys(await self._jwks())
            self._read_at, self._failed_at = now, -math.inf

    async def _jwks(self) -> bytes:
        place = self._settings.jwks
        if not place:
            place = str((await self.about()).get("jwks_uri", ""))
        if place.startswith(("https://", "http://")):
            return await self._fetch(place)
        from pathlib import Path

        try:
            return await asyncio.to_thread(Path(place).read_bytes)
        except OSError as why:
            raise IssuerUnreachable(f"{place} cannot be read: {why.strerror}", hint="See access.oidc.jwks.") from None

    async def _fetch(self, url: str) -> bytes:
        from pointsman.tools.egress.http_calls import HttpCall  # Deferred: imports an HTTP client.

        try:
            answer = await self._outgoing.send(HttpCall(method="GET", url=url, headers={"accept": "application/json"}))
        except OperatorError as why:
            raise IssuerUnreachable(f"{url} cannot be read: {why}", hint="See access.oidc and http.networks.") from None
        if answer.status != OK:
            raise IssuerUnreachable(f"{url} answered {answer.status}", hint="See access.oidc.")
        return answer.body


def tokens_of(settings: Settings, clock: Clock) -> Tokens | None:
    """Return the token verifier; None if the settings name no identity provider."""
    if settings.access.oidc is None:
        return None

    return Tokens(settings.access.oidc, clock, settings.http.outgoing())


def is_token(credential: str) -> bool:
    """Return whether a credential has the form of a token: three parts."""
    return credential.count(".") == 2


def _keys(data: bytes) -> dict[str, Key]:
    """Return the keys by their ids, without keys that are symmetric, unreadable or not for signatures."""
    from joserfc import jwk
    from joserfc.errors import JoseError

    listed = _object(data).get("keys")
    found: dict[str, Key] = {}
    for one in cast("list[object]", listed)[:KEYS_MAX] if isinstance(listed, list) else ():
        said = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
        if said.get("kty") not in ("RSA", "EC", "OKP") or said.get("use", "sig") != "sig":
            continue
        try:
            found[str(said.get("kid", ""))] = jwk.import_key(said)
        except (JoseError, ValueError, TypeError):
            continue
    return found


def _object(data: bytes) -> Mapping[str, object]:
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.DecodeError:
        raise IssuerUnreachable("the identity provider's answer is no JSON object", hint="See access.oidc.") from None


def _header(token: str) -> Mapping[str, object]:
    from base64 import urlsafe_b64decode

    head = token.partition(".")[0]
    try:
        return msgspec.json.decode(urlsafe_b64decode(head + "=" * (-len(head) % 4)), type=dict[str, Any])
    except (ValueError, msgspec.DecodeError):
        raise TokenRefused("its header cannot be read") from None


def _at(claims: Mapping[str, object], name: str) -> object:
    """Return a claim by its name or by its path, such as `realm_access.roles`."""
    if name in claims:
        return claims[name]
    found: object = claims
    for part in name.split("."):
        found = cast("Mapping[str, object]", found).get(part) if isinstance(found, dict) else None
    return found


def _texts(said: object) -> tuple[str, ...]:
    if isinstance(said, str):
        return (said,)
    return tuple(one for one in cast("list[object]", said) if isinstance(one, str)) if isinstance(said, list) else ()
