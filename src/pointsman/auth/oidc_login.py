"""Login with an identity provider: the authorization code flow of OpenID Connect, with PKCE.

    browser ─▶ a visit: 256 random bits in a cookie ─▶ provider: state, nonce, challenge, all derived from them
    browser ◀─ code ─ provider
    browser ─▶ code, state ─▶ of this visit? ─▶ code + verifier ─▶ provider ─▶ token ─▶ nonce of this visit? ─▶ caller

The server stores nothing in between: state, nonce and verifier are hashes of the cookie, which is deleted with the
first answer. So an answer is accepted once, and only from the browser that started the login.
"""

from __future__ import annotations

import secrets
from base64 import b64encode, urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from pointsman.auth.callers import Caller
from pointsman.auth.keys import RANDOM_BYTES
from pointsman.auth.oidc_tokens import OK, IssuerUnreachable, TokenRefused, Tokens
from pointsman.errors import CallerError, OperatorError
from pointsman.settings import Settings
from pointsman.settings.sections import OidcSettings

if TYPE_CHECKING:
    from pointsman.tools.egress.http_calls import Outgoing

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
class Visit:
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


def begin_visit() -> Visit:
    return Visit(secrets.token_urlsafe(RANDOM_BYTES))


def visit_of(cookie: str, state: str) -> Visit:
    """Return the visit that an answer belongs to. Raises `LoginExpired`."""
    visit = Visit(cookie)
    if len(cookie) != SECRET_CHARS or not compare_digest(visit.state.encode(), state.encode()):
        raise LoginExpired("this answer belongs to no login that was begun here", hint="Log in again.")
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

    def must_be(self, issuer: str | None) -> None:
        """Check the issuer that an answer names, if it names one (RFC 9207). Raises `LoginExpired`."""
        if issuer not in (None, self._settings.issuer):
            raise LoginExpired("this answer is another provider's", hint="Log in again.")

    async def address(self, visit: Visit, back: str) -> str:
        """Return the URL to which the browser is redirected to log in; the provider redirects it to `back`. Raises
        `IssuerUnreachable`."""
        place = await self._place("authorization_endpoint")
        asked = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": back,
            "scope": " ".join(self._settings.scopes),
            "state": visit.state,
            "nonce": visit.nonce,
            "code_challenge": visit.challenge,
            "code_challenge_method": "S256",
        }
        return f"{place}{'&' if '?' in place else '?'}{urlencode(asked)}"

    async def caller(self, visit: Visit, code: str, back: str) -> Caller:
        """Return the caller for a code. The settings determine how long the login lasts, not the token, which expires
        within minutes.

        Raises `LoginRefused`, `LoginExpired`, `IssuerUnreachable`.
        """
        token = await self._token(visit, code, back)
        try:
            claims = await self._tokens.claims(token, audience=self._settings.client_id)
            if not compare_digest(str(claims.get("nonce", "")).encode(), visit.nonce.encode()):
                raise TokenRefused("it was made for another login")
            if claims.get("azp", self._settings.client_id) != self._settings.client_id:
                raise TokenRefused("it was made for another client")
            said = self._tokens.said(claims)
        except TokenRefused:
            hint = "Ask an admin: maybe you have no role here."
            raise LoginRefused("what the provider says of you opens nothing here", hint=hint) from None
        return Caller(name=said.name, role=said.role, groups=said.groups, entrance="token")

    async def _token(self, visit: Visit, code: str, back: str) -> str:
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
        call = HttpCall(
            method="POST", url=await self._place("token_endpoint"), headers=headers, body=urlencode(sent).encode()
        )
        try:
            answer = await self._outgoing.send(call)
        except OperatorError as why:
            raise IssuerUnreachable(f"{call.url} cannot be asked: {why}", hint="See access.oidc.") from None
        told = _told(answer.body)
        token = told.get("id_token")
        if answer.status != OK or not isinstance(token, str):
            if told.get("error") == "invalid_grant":
                raise LoginExpired("the provider does not know this code any more", hint="Log in again.")
            message = f"the provider gave no token ({answer.status}, {str(told.get('error'))[:60]!r})"
            raise IssuerUnreachable(message, hint="See access.oidc: client_id, client_secret, scopes.")
        return token

    def _proof(self, secret: str | None) -> dict[str, str]:
        """Return the `client_secret_basic` header, which every provider must support."""
        if secret is None:
            raise IssuerUnreachable("the secret of the client cannot be had", hint="See access.oidc.client_secret.")
        pair = f"{quote(self._settings.client_id, safe='')}:{quote(secret, safe='')}"
        return {"authorization": f"Basic {b64encode(pair.encode()).decode()}"}

    async def _place(self, name: str) -> str:
        place = (await self._tokens.about()).get(name)
        if not isinstance(place, str) or not place.startswith(("https://", "http://")):
            raise IssuerUnreachable(f"the issuer does not say its {name}", hint="See access.oidc.issuer.")
        return place


def provider_of(settings: Settings, tokens: Tokens | None) -> IdentityProvider | None:
    """Return the identity provider; None if the settings configure none with browser login."""
    oidc = settings.access.oidc
    if oidc is None or tokens is None or not oidc.client_id:
        return None

    return IdentityProvider(settings, oidc, tokens, settings.http.outgoing())


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _told(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}
