"""Typed credentials: secrets whose value is made from parts, such as an access token of OAuth 2.

    parts, sealed as JSON ─┬─ basic: user and password ──────────────────────▶ "Basic …"  ─┐
                           └─ oauth2: client secret ─▶ token server ─▶ token ▶ "Bearer …" ─┴▶ `secret.NAME` in a header

A credential is used as any other secret, with the same rules of hosts, tools and workflows. Its value is a whole header
value: `headers: {Authorization: "{secret.NAME}"}`. Tokens are renewed before they expire.

Authorization-code flow: `begin_visit` stores a visit under the hash of its state, and returns the address of the
authorization server; the browser comes back with the code and the state. A visit is used once, within ten minutes, by
the admin who began it, for the credential and the token server that it was begun with. The verifier of PKCE is hashed
from the state, so that the store holds nothing that a reader of it could use.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias, cast
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from pointsman.errors import CallerError, OperatorError, PointsmanError
from pointsman.redaction import head
from pointsman.values import Instant, Json, JsonObject

if TYPE_CHECKING:
    from pointsman.tools.egress.http_calls import Outgoing

CredentialType: TypeAlias = Literal["basic", "oauth2-client", "oauth2-code"]
Parts: TypeAlias = Mapping[str, str]
"""Secret parts by name: `password`; `clientSecret`, `accessToken`, `refreshToken`."""
VISIT: Final = "oauth-visit"
"""Kind of the entries of visits; their keys are hashes of states."""
VISIT_S: Final = 600.0
RENEW_BEFORE_S: Final = 60.0
"""A token is renewed when it expires within this time."""
LIFETIME_S: Final = 3600.0
"""Lifetime of a token whose server does not state one."""
TOKEN_CHARS_MAX: Final = 20_000
REASON_CHARS_MAX: Final = 120
OK: Final = 200


class CredentialInvalid(CallerError):
    """A part of a credential is missing or invalid."""

    code: ClassVar[str] = "credential-invalid"


class CredentialNotConnected(OperatorError):
    """The credential has no access token yet, or the token server refused one."""

    code: ClassVar[str] = "credential-not-connected"


class AuthorizationRefused(CallerError):
    """The answer of the authorization server does not belong to a visit of this admin, or it is a refusal."""

    code: ClassVar[str] = "authorization-refused"


class Credential(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is stored of a credential beside its sealed parts."""

    type: CredentialType
    user: str = ""
    authorize_url: str = ""
    token_url: str = ""
    client_id: str = ""
    scopes: tuple[str, ...] = ()
    expires: Instant = Instant(0.0)
    """When the access token expires; 0: there is none."""
    renewing: Instant = Instant(0.0)
    """Until then, another process renews the token."""

    @property
    def is_oauth(self) -> bool:
        return self.type != "basic"

    @property
    def fingerprint(self) -> str:
        """Hash of what an admin entered, which a visit is bound to."""
        entered = [self.type, self.authorize_url, self.token_url, self.client_id, *self.scopes]
        return _hash("\n".join(entered))

    def must_renew(self, now: float) -> bool:
        """Return whether a token must be fetched: it expires soon, and no other process is fetching one."""
        return bool(self.is_oauth and self.expires) and self.expires - now < RENEW_BEFORE_S and self.renewing <= now


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """A browser that was sent to an authorization server."""

    secret: str
    who: str
    redirect: str
    fingerprint: str
    until: float


def header_value(name: str, credential: Credential, parts: Parts) -> str:
    """Return the value of the header. Raises `CredentialNotConnected` if there is no token."""
    if credential.type == "basic":
        pair = f"{credential.user}:{parts.get('password', '')}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"
    token = parts.get("accessToken", "")
    if not token:
        raise CredentialNotConnected(f"the credential {name!r} has no access token", hint="Connect it under Secrets.")
    return f"Bearer {token}"


def read_parts(text: str) -> Parts:
    """Read the sealed parts."""
    return cast("Parts", json.loads(text))


def check_credential(credential: Credential, parts: Parts) -> None:
    """Raise `CredentialInvalid` for a part that is missing or invalid."""
    match credential.type:
        case "basic":
            if not credential.user or ":" in credential.user or not parts.get("password"):
                raise CredentialInvalid("user and password are required", hint="The user contains no colon.")
        case "oauth2-client" | "oauth2-code":
            _check_address("tokenUrl", credential.token_url)
            if not credential.client_id:
                raise CredentialInvalid("the client id is missing", hint="Enter what the service registered.")
            if credential.type == "oauth2-code":
                _check_address("authorizeUrl", credential.authorize_url)
            elif not parts.get("clientSecret"):
                raise CredentialInvalid("the client secret is missing", hint="Enter what the service registered.")


def _check_address(field: str, address: str) -> None:
    try:
        parts = urlsplit(address)
        fits = (
            parts.scheme in ("https", "http")
            and bool(parts.hostname)
            and not parts.fragment
            and "@" not in parts.netloc
        )
    except ValueError:
        fits = False
    if not fits or not address.isprintable() or " " in address:
        raise CredentialInvalid(f"{field} is not a web address", hint="Write https://host/path.")


class TokenServer:
    """Fetches access tokens. Its addresses obey `[http]` in the settings."""

    def __init__(self, outgoing: Callable[[], Outgoing]) -> None:
        """`outgoing` is called at the first request, because it loads an HTTP client."""
        self._outgoing = outgoing

    async def renewed(self, credential: Credential, parts: Parts, now: float) -> tuple[Credential, Parts]:
        """Return the credential with a new token. Raises `CredentialNotConnected`."""
        if credential.type == "oauth2-client":
            form = {"grant_type": "client_credentials"}
            if credential.scopes:
                form["scope"] = " ".join(credential.scopes)
        elif parts.get("refreshToken"):
            form = {"grant_type": "refresh_token", "refresh_token": parts["refreshToken"]}
        else:
            raise CredentialNotConnected("the access token expired", hint="Connect the credential again under Secrets.")
        return await self._fetched(credential, parts, form, now)

    async def exchanged(
        self, credential: Credential, parts: Parts, visit: Visit, code: str, state: str, now: float
    ) -> tuple[Credential, Parts]:
        """Return the credential with the tokens for a code. Raises `CredentialNotConnected`."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": visit.redirect,
            "code_verifier": verifier_of(state),
        }
        return await self._fetched(credential, parts, form, now)

    async def _fetched(
        self, credential: Credential, parts: Parts, form: dict[str, str], now: float
    ) -> tuple[Credential, Parts]:
        from pointsman.tools.egress.http_calls import HttpCall  # Deferred: it loads an HTTP client.

        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        if secret := parts.get("clientSecret"):
            pair = f"{quote(credential.client_id, safe='')}:{quote(secret, safe='')}"
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form = {**form, "client_id": credential.client_id}
        host = urlsplit(credential.token_url).hostname
        call = HttpCall(method="POST", url=credential.token_url, headers=headers, body=urlencode(form).encode())
        try:
            answer = await self._outgoing().send(call)
        except PointsmanError as why:
            raise CredentialNotConnected(f"the token server {host!r}: {why}", hint=why.hint) from None
        reply = _object(answer.body)
        token = reply.get("access_token")
        if answer.status != OK or not isinstance(token, str) or not 8 <= len(token) <= TOKEN_CHARS_MAX:
            reason = _reason(reply) or f"status {answer.status}"
            hint = "Check client id, secret and scopes, or connect the credential again."
            raise CredentialNotConnected(f"the token server {host!r} refused: {reason}", hint=hint)
        lifetime = reply.get("expires_in")
        seconds = float(lifetime) if isinstance(lifetime, int | float) and 0 < lifetime < 1e9 else LIFETIME_S
        refresh = reply.get("refresh_token")
        kept = {"refreshToken": refresh} if isinstance(refresh, str) and refresh else {}
        renewed = msgspec.structs.replace(credential, expires=Instant(now + seconds), renewing=Instant(0.0))
        return renewed, {**parts, **kept, "accessToken": token}


def _object(body: bytes) -> JsonObject:
    try:
        found: Json = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _reason(reply: JsonObject) -> str:
    """Return the error code of a token server; its description may repeat what was sent."""
    error = reply.get("error")
    return head(error, REASON_CHARS_MAX) if isinstance(error, str) and error.isprintable() else ""


def new_visit(name: str, who: str, credential: Credential, redirect: str, now: float) -> tuple[str, str, Visit, str]:
    """Return state, key of the entry, visit, and the address to send the browser to."""
    state = secrets.token_urlsafe(32)
    visit = Visit(secret=name, who=who, redirect=redirect, fingerprint=credential.fingerprint, until=now + VISIT_S)
    asked = {
        "response_type": "code",
        "client_id": credential.client_id,
        "redirect_uri": redirect,
        "state": state,
        "code_challenge": _hash(verifier_of(state)),
        "code_challenge_method": "S256",
        **({"scope": " ".join(credential.scopes)} if credential.scopes else {}),
    }
    joint = "&" if urlsplit(credential.authorize_url).query else "?"
    return state, visit_key(state), visit, f"{credential.authorize_url}{joint}{urlencode(asked)}"


def visit_key(state: str) -> str:
    """Return the key under which the visit of a state is stored."""
    return _hash(f"visit {state}")


def verifier_of(state: str) -> str:
    """Return the verifier of PKCE."""
    return _hash(f"verifier {state}")


def _hash(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
