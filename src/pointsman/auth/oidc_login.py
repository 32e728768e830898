"""OpenID Connect: tokens of an identity provider as credentials, and login by the authorization code flow (PKCE).

    browser ─▶ a visit: 256 random bits in a cookie ─▶ provider: state, nonce, challenge, all derived from them
    browser ◀─ code ─ provider
    browser ─▶ code, state ─▶ of this visit? ─▶ code + verifier ─▶ provider ─▶ token ─▶ nonce of this visit? ─▶ caller

The server stores nothing in between: state, nonce and verifier are hashes of the cookie, which is deleted with the
first answer. So an answer is accepted once, and only from the browser that started the login.
"""

from __future__ import annotations

import asyncio
import math
import re
import secrets
from base64 import b64encode, urlsafe_b64encode
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast
from urllib.parse import quote, urlencode, urlsplit

from pointsman.auth.callers import ROLES, Caller, Role
from pointsman.auth.keys import RANDOM_BYTES
from pointsman.errors import CallerError, OperatorError
from pointsman.json_meter import JsonUnreadable, decode_json
from pointsman.ports import Clock
from pointsman.settings import Settings
from pointsman.settings.sections import OidcSettings
from pointsman.values import Instant, JsonObject

if TYPE_CHECKING:
    from joserfc.jwk import Key

    from pointsman.tools.egress.http_calls import Outgoing


TOKEN_CHARS_MAX: Final = 16_384
NAME_CHARS_MAX: Final = 200
KEYS_MAX: Final = 100
KEPT_FOR_S: Final = 600.0
"""How long keys are cached: a key that the issuer withdraws is valid for at most so long."""
KEYS_READ_EVERY_S: Final = 60.0
FAILED_FOR_S: Final = 5.0
"""How long an unreachable issuer is not asked again: any client can send something that looks like a token."""
OK: Final = 200
_NOT_IN_ADDRESS: Final = re.compile(r"[^!-~]|#")
"""Parts of an address that cannot be sent in a header, or that would hide the parameters of a login."""


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
        self._turn = asyncio.Lock()

    async def caller(self, token: str) -> Caller | None:
        """Return the caller of a token; None if the token is invalid. Raises `IssuerUnreachable`."""
        try:
            return await self._caller(token)
        except TokenRefused:
            return None

    async def claims(self, token: str, *, audience: str) -> Mapping[str, object]:
        """Return the claims of a token that this issuer signed, for this audience, and that is valid now. They include
        a mail address only if the issuer has verified it. Raises `TokenRefused`, `IssuerUnreachable`."""
        from joserfc import jwt  # Deferred: only servers that accept tokens load it.
        from joserfc.errors import JoseError

        key = await self._key_for(token)
        try:
            token_claims = jwt.decode(token, key, algorithms=[*self._settings.algorithms])
            rules = jwt.JWTClaimsRegistry(
                now=int(self._clock.now()),
                leeway=int(self._settings.leeway.seconds),
                iss={"essential": True, "value": self._settings.issuer},
                aud={"essential": True, "value": audience},
                exp={"essential": True},
            )
            rules.validate(token_claims.claims)
            float(token_claims.claims["exp"])
        except (JoseError, ValueError, TypeError, OverflowError, RecursionError) as why:
            raise TokenRefused(type(why).__name__) from None
        return _verified(token_claims.claims)

    async def about(self) -> Mapping[str, object]:
        """Return the discovery document of the issuer, with its endpoints. Raises `IssuerUnreachable`."""
        if not self._is_recent(self._about_at, KEPT_FOR_S):
            async with self._reading():
                await self._read_about()
        return self._about

    def _is_recent(self, then: float, for_s: float) -> bool:
        return then <= self._clock.now() < then + for_s

    @asynccontextmanager
    async def _reading(self) -> AsyncGenerator[None]:
        """Let one request read from the issuer. If it fails, those that waited for it fail at once: otherwise each of
        them would wait for its own timeout of a silent issuer."""
        async with self._turn:
            if self._is_recent(self._failed_at, FAILED_FOR_S):
                raise IssuerUnreachable("it could not be read moments ago", hint="Check access.oidc in the settings.")
            try:
                yield
            except IssuerUnreachable:
                self._failed_at = self._clock.now()
                raise

    async def _read_about(self) -> None:
        """Read the discovery document unless it is recent. It must be the document of this issuer."""
        if self._is_recent(self._about_at, KEPT_FOR_S):
            return
        place = f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration"
        about = _object(await self._fetch(place))
        if about.get("issuer") != self._settings.issuer:
            raise IssuerUnreachable(
                f"{place} describes another issuer, {str(about.get('issuer'))[:200]!r}",
                hint=f"Check access.oidc.issuer in the settings: {self._settings.issuer!r} must be the same text.",
            )
        self._about, self._about_at = about, self._clock.now()

    async def endpoint(self, name: str) -> str:
        """Return an address that the issuer publishes. Raises `IssuerUnreachable`."""
        await self.about()
        return self._endpoint(name)

    def _endpoint(self, name: str) -> str:
        place = self._about.get(name)
        schemes = ("https://",) if self._settings.issuer.startswith("https://") else ("https://", "http://")
        if not isinstance(place, str) or not place.startswith(schemes) or _NOT_IN_ADDRESS.search(place):
            raise IssuerUnreachable(
                f"the issuer does not publish its {name} as an address that begins with {' or '.join(schemes)}",
                hint="Check access.oidc.issuer in the settings.",
            )
        return place

    async def _caller(self, token: str) -> Caller:
        return self.said(await self.claims(token, audience=self._settings.audience))

    def said(self, claims: Mapping[str, object]) -> Caller:
        """Return the caller that claims describe. Raises `TokenRefused`."""
        settings = self._settings
        name = _at(claims, settings.name_claim)
        if not isinstance(name, str) or not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable():
            raise TokenRefused(f"{settings.name_claim} is not a name")
        role = self._role(_texts(_at(claims, settings.role_claim)))
        groups = _texts(_at(claims, settings.groups_claim))
        until = Instant(float(cast("int", claims["exp"])))
        return Caller(name=name, role=role, groups=groups, entrance="token", until=until)

    def _role(self, roles: tuple[str, ...]) -> Role:
        """Return the most privileged of the roles that the claims give."""
        mapped = {self._settings.roles.get(role) for role in roles} - {None} or {self._settings.default_role}
        roles_in_order: list[Role] = [role for role in ROLES if role in mapped]
        if not roles_in_order:
            raise TokenRefused("it contains no role")
        return roles_in_order[-1]

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
            raise TokenRefused("its key is not text")
        await self._read(older_than=KEPT_FOR_S)
        key = self._known(kid)
        if key is None:
            await self._read(older_than=KEYS_READ_EVERY_S)
            key = self._known(kid)
        if key is None:
            raise TokenRefused("its key is not known")
        return key

    def _known(self, kid: str | None) -> Key | None:
        if kid is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(kid)

    async def _read(self, *, older_than: float) -> None:
        if self._is_recent(self._read_at, older_than):
            return
        async with self._reading():
            if not self._is_recent(self._read_at, older_than):
                self._keys = _keys(await self._jwks())
                self._read_at = self._clock.now()

    async def _jwks(self) -> bytes:
        place = self._settings.jwks
        if not place:
            await self._read_about()
            place = self._endpoint("jwks_uri")
        if place.startswith(("https://", "http://")):
            return await self._fetch(place)
        from pathlib import Path

        try:
            return await asyncio.to_thread(Path(place).read_bytes)
        except OSError as why:
            raise IssuerUnreachable(
                f"{place} cannot be read: {why.strerror}", hint="Check access.oidc.jwks in the settings."
            ) from None

    async def _fetch(self, url: str) -> bytes:
        from pointsman.tools.egress.http_calls import HttpCall  # Deferred: imports an HTTP client.

        try:
            answer = await self._outgoing.send(HttpCall(method="GET", url=url, headers={"accept": "application/json"}))
        except OperatorError as why:
            raise IssuerUnreachable(
                f"{url} cannot be read: {why}", hint="Check access.oidc and http.networks in the settings."
            ) from None
        if answer.status != OK:
            raise IssuerUnreachable(f"{url} answered {answer.status}", hint="Check access.oidc in the settings.")
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
    keys: dict[str, Key] = {}
    for one in cast("list[object]", listed)[:KEYS_MAX] if isinstance(listed, list) else ():
        fields = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
        if fields.get("kty") not in ("RSA", "EC", "OKP") or fields.get("use", "sig") != "sig":
            continue
        try:
            keys[str(fields.get("kid", ""))] = jwk.import_key(fields)
        except (JoseError, ValueError, TypeError, KeyError):
            continue
    return keys


def _object(data: bytes) -> Mapping[str, object]:
    if (decoded := _decoded(data)) is None:
        raise IssuerUnreachable(
            "the identity provider's answer is not a JSON object", hint="Check access.oidc in the settings."
        )
    return decoded


def _decoded(data: bytes) -> JsonObject | None:
    """Return a JSON object from outside; None if the data are not one."""
    try:
        value = decode_json(data)
    except JsonUnreadable:
        return None
    return value if isinstance(value, dict) else None


def _header(token: str) -> Mapping[str, object]:
    from base64 import urlsafe_b64decode

    head = token.partition(".")[0]
    try:
        header = _decoded(urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except ValueError:
        header = None
    if header is None:
        raise TokenRefused("its header cannot be read")
    return header


def _verified(claims: Mapping[str, object]) -> Mapping[str, object]:
    """Return the claims without a mail address that the issuer has not verified: anybody can claim one."""
    if claims.get("email_verified") is True:
        return claims
    return {name: value for name, value in claims.items() if name != "email"}


def _at(claims: Mapping[str, object], name: str) -> object:
    """Return a claim by its name or by its path, such as `realm_access.roles`."""
    if name in claims:
        return claims[name]
    result: object = claims
    for part in name.split("."):
        result = cast("Mapping[str, object]", result).get(part) if isinstance(result, dict) else None
    return result


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return (
        tuple(element for element in cast("list[object]", value) if isinstance(element, str))
        if isinstance(value, list)
        else ()
    )


VISIT_S: Final = 600
"""How long a user may stay at the provider."""
SECRET_CHARS: Final = 43
CODE_CHARS_MAX: Final = 4_000
FORM: Final = "application/x-www-form-urlencoded"


class LoginNotOffered(CallerError):
    """No identity provider with browser login is configured."""

    code: ClassVar[str] = "login-not-offered"


class LoginExpired(CallerError):
    """The provider's answer belongs to no pending login of this browser."""

    code: ClassVar[str] = "login-expired"


class LoginDenied(CallerError):
    """The provider rejected the login, or the user did."""

    code: ClassVar[str] = "login-denied"


class LoginRefused(CallerError):
    """The provider authenticated the user, but its token gives no access here."""

    code: ClassVar[str] = "login-refused"


@dataclass(frozen=True, slots=True)
class ProviderLogin:
    """One browser login at the provider, from the redirect to the answer."""

    secret: str

    @property
    def state(self) -> str:
        return self._made("state")

    @property
    def nonce(self) -> str:
        return self._made("nonce")

    @property
    def verifier(self) -> str:
        return self._made("verifier")

    @property
    def challenge(self) -> str:
        """The hash of the verifier, which is sent through the browser."""
        return _encoded(sha256(self.verifier.encode()).digest())

    def _made(self, of: str) -> str:
        return _encoded(sha256(f"{of}|{self.secret}".encode()).digest())


def begin_provider_login() -> ProviderLogin:
    return ProviderLogin(secrets.token_urlsafe(RANDOM_BYTES))


def provider_login_of(cookie: str, state: str) -> ProviderLogin:
    """Return the visit that an answer belongs to. Raises `LoginExpired`."""
    visit = ProviderLogin(cookie)
    if len(cookie) != SECRET_CHARS or not compare_digest(visit.state.encode(), state.encode()):
        raise LoginExpired("this answer belongs to no login that started here", hint="Log in again.")
    return visit


class IdentityProvider:
    """Identity provider for browser logins."""

    def __init__(self, settings: Settings, oidc: OidcSettings, tokens: Tokens, outgoing: Outgoing) -> None:
        self._all = settings
        self._settings = oidc
        self._tokens = tokens
        self._outgoing = outgoing

    @property
    def name(self) -> str:
        """The display name of the provider."""
        return self._settings.label or urlsplit(self._settings.issuer).hostname or self._settings.issuer

    async def must_be(self, issuer: str | None) -> None:
        """Check the issuer that an answer names; every answer names it if the provider publishes that it does (RFC
        9207). Raises `LoginExpired`, `IssuerUnreachable`."""
        names_itself = (await self._tokens.about()).get("authorization_response_iss_parameter_supported") is True
        if issuer != self._settings.issuer and (names_itself or issuer is not None):
            raise LoginExpired("this answer is from another provider", hint="Log in again.")

    async def address(self, visit: ProviderLogin, back: str) -> str:
        """Return the URL to which the browser is redirected to log in; the provider redirects it to `back`. Raises
        `IssuerUnreachable`."""
        place = await self._tokens.endpoint("authorization_endpoint")
        query = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": back,
            "scope": " ".join(self._settings.scopes),
            "state": visit.state,
            "nonce": visit.nonce,
            "code_challenge": visit.challenge,
            "code_challenge_method": "S256",
        }
        return f"{place}{'&' if '?' in place else '?'}{urlencode(query)}"

    async def caller(self, visit: ProviderLogin, code: str, back: str) -> Caller:
        """Return the caller for a code. The settings determine how long the login lasts, not the token, which expires
        within minutes.

        Raises `LoginRefused`, `LoginExpired`, `IssuerUnreachable`.
        """
        token = await self._token(visit, code, back)
        try:
            claims = await self._tokens.claims(token, audience=self._settings.client_id)
            if not compare_digest(str(claims.get("nonce", "")).encode(), visit.nonce.encode()):
                raise TokenRefused("it was made for another login")
            # A token with several audiences names the client that requested it.
            client = self._settings.client_id
            if claims.get("azp", client if _texts(claims["aud"]) == (client,) else None) != client:
                raise TokenRefused("it was made for another client")
            user = self._tokens.said(claims)
        except TokenRefused:
            hint = "Ask an admin whether you have a role on this server."
            raise LoginRefused(
                "your account at the identity provider has no access to this server", hint=hint
            ) from None
        return Caller(name=user.name, role=user.role, groups=user.groups, entrance="token")

    async def _token(self, visit: ProviderLogin, code: str, back: str) -> str:
        """Exchange a code and its verifier for an ID token. The provider accepts a code once."""
        from pointsman.tools.egress.http_calls import HttpCall  # Deferred: imports an HTTP client.

        sent = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": back,
            "client_id": self._settings.client_id,
            "code_verifier": visit.verifier,
        }
        headers = {"accept": "application/json", "content-type": FORM}
        if self._settings.client_secret:
            await self._all.refresh()
            headers |= self._proof(self._all.resolved(self._settings.client_secret))
        place = await self._tokens.endpoint("token_endpoint")
        call = HttpCall(method="POST", url=place, headers=headers, body=urlencode(sent).encode())
        try:
            answer = await self._outgoing.send(call)
        except OperatorError as why:
            raise IssuerUnreachable(
                f"{call.url} cannot be reached: {why}", hint="Check access.oidc in the settings."
            ) from None
        reply = _decoded(answer.body) or {}
        token = reply.get("id_token")
        if answer.status != OK or not isinstance(token, str):
            if reply.get("error") == "invalid_grant":
                raise LoginExpired("the provider does not accept this code any more", hint="Log in again.")
            message = f"the provider gave no token ({answer.status}, {str(reply.get('error'))[:60]!r})"
            raise IssuerUnreachable(
                message, hint="Check client_id, client_secret and scopes under access.oidc in the settings."
            )
        return token

    def _proof(self, secret: str | None) -> dict[str, str]:
        """Return the `client_secret_basic` header, which every provider must support."""
        if secret is None:
            raise IssuerUnreachable(
                "the secret of the client is not available", hint="Check access.oidc.client_secret in the settings."
            )
        pair = f"{quote(self._settings.client_id, safe='')}:{quote(secret, safe='')}"
        return {"authorization": f"Basic {b64encode(pair.encode()).decode()}"}


def provider_of(settings: Settings, tokens: Tokens | None) -> IdentityProvider | None:
    """Return the identity provider; None if the settings configure none with browser login."""
    oidc = settings.access.oidc
    if oidc is None or tokens is None or not oidc.client_id:
        return None

    return IdentityProvider(settings, oidc, tokens, settings.http.outgoing())


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
