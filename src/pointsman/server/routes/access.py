"""Operations on access: API keys, secrets, people and their rights, sharing, and the audit log."""

from __future__ import annotations

from typing import Annotated, Final, cast

from fastapi import Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field
from typing_extensions import TypedDict

from pointsman.auth.administration import AccessVerbs
from pointsman.auth.audit import AuditEntryView, AuditPage, AuditState
from pointsman.auth.callers import CallerView, Role, caller_view
from pointsman.auth.credentials import Credential, CredentialType
from pointsman.auth.keys import NAME_CHARS_MAX, KeyPage, KeyView, NewKeyView
from pointsman.auth.oidc_login import CODE_CHARS_MAX
from pointsman.auth.people import PeoplePage, PersonView
from pointsman.auth.sharing import Audience, Sharing, SharingView, sharing_etag, sharing_view
from pointsman.auth.vault import VALUE_CHARS_MAX, SecretView
from pointsman.etags import etag_of
from pointsman.redaction import ANYWHERE_CHARS_MIN as CHARS_MIN
from pointsman.server.context import CallerSession, CurrentCaller
from pointsman.server.operation import Operations, described, least_of
from pointsman.server.problems import JsonReply
from pointsman.server.routes.parameters import After, Id, IfMatch, Limit, Match, OfRole, Order, Words
from pointsman.server.schemas.answers import answers, example, refusals, text_answer
from pointsman.server.schemas.requests import Body, sample, with_schema_rule
from pointsman.workflows.access_verbs import (
    OtherSecretView,
    RuleParts,
    SecretPage,
    SecretUses,
    SecretVerbs,
    SharingVerbs,
)

router = Operations(tags=["access"])


KeyName = Annotated[str, Path(min_length=1, max_length=NAME_CHARS_MAX, description="The key's name.")]
DAYS_MAX: Final = 36_500


class KeyBody(Body):
    """A new key."""

    model_config = sample(name="ada", role="editor", groups=["desk"])
    name: str = Field(min_length=1, max_length=NAME_CHARS_MAX)
    role: Role = "operator"
    groups: list[str] = Field(default_factory=list, max_length=100)
    days: float | None = Field(
        default=None, gt=0, le=DAYS_MAX, description="Days until it expires; absent: it never expires."
    )


KEY: Final[KeyView] = {
    "name": "ada",
    "role": "editor",
    "groups": ["desk"],
    "createdAt": 1_763_700_000.0,
    "expiresAt": None,
    "usedAt": None,
}
example(KeyView, KEY)
example(KeyPage, {"keys": [KEY], "next": None})
example(NewKeyView, {"name": "ada", "role": "editor", "key": "pm_…"})
example(
    CallerView,
    {"name": "ada", "role": "editor", "groups": ["desk"], "entrance": "login", "expiresAt": 1_763_743_200.0},
)


@router.get("/api/me", responses=answers(CallerView), summary="Read the caller")
async def me(caller: CurrentCaller) -> Response:
    """The caller's name, role and groups, and how it was authenticated."""
    return JsonReply(caller_view(caller))


@router.get("/api/settings/keys", verb=AccessVerbs.keys, responses=answers(KeyPage), summary="List keys")
async def list_keys(
    *,
    session: CallerSession,
    search: Words = "",
    role: OfRole = None,
    order: Order = "asc",
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """Keys by name, with the time of their last use.

    The keys themselves are not returned. With `search`, only keys with all these words in name or groups.
    """
    page = await session.access.keys(search=search, role=role, after=after, limit=limit, backwards=order == "desc")
    return JsonReply(page)


@router.post(
    "/api/settings/keys",
    verb=AccessVerbs.add_key,
    status_code=201,
    responses=answers(NewKeyView, "key-exists", status=201, body=True),
    summary="Create a key",
)
async def create_key(session: CallerSession, body: KeyBody) -> Response:
    """The key is returned only in this answer: the server stores its hash."""
    token = await session.access.add_key(body.name, body.role, groups=body.groups, days=body.days)
    key: NewKeyView = {"name": body.name, "role": body.role, "key": token}
    return JsonReply(key, status=201, headers={"cache-control": "no-store"})


@router.delete(
    "/api/settings/keys/{name}",
    verb=AccessVerbs.revoke_key,
    status_code=204,
    responses=refusals("no-such-key", "last-admin"),
    summary="Revoke a key",
)
async def revoke_key(session: CallerSession, name: KeyName) -> Response:
    """Revoke the key and end its logins within a second. The last admin key cannot be revoked."""
    await session.access.revoke_key(name)
    return Response(status_code=204)


ENTRY: Final[AuditEntryView] = {
    "id": "17.0",
    "at": 1_763_700_000.0,
    "who": "ada",
    "entrance": "key",
    "what": "PUT /api/workflows/{id}",
    "target": "id=letter",
    "origin": "192.0.2.7",
    "refused": None,
}

LINES: Final = "application/jsonl"
LINE: Final = '{"row":1,"hash":"9f86d081884c7d65","entries":[{"who":"ada","what":"PUT /api/workflows/{id}"}]}\n'


example(AuditEntryView, ENTRY)
example(AuditPage, {"entries": [ENTRY], "deeds": [ENTRY], "next": None})
example(AuditState, {"rows": 17, "hash": "9f86d081884c7d65", "damage": []})


@router.get("/api/audit", verb=AccessVerbs.audit_entries, responses=answers(AuditPage), summary="Read the audit log")
async def read_audit(
    *,
    session: CallerSession,
    who: Annotated[str | None, Query(max_length=200, description="Only entries of this caller.")] = None,
    what: Annotated[
        str | None, Query(max_length=200, description="Only entries with this text in the operation or target.")
    ] = None,
    since: Annotated[
        float | None, Query(ge=0, le=1e11, description="Only entries since this time (Unix seconds).")
    ] = None,
    until: Annotated[
        float | None, Query(ge=0, le=1e11, description="Only entries until this time (Unix seconds).")
    ] = None,
    before: Annotated[
        str | None, Query(max_length=20, pattern="^[0-9]+$", description="`next` of the previous page.")
    ] = None,
    limit: Limit = 50,
) -> Response:
    """All requested changes, newest first. A page may contain slightly more or fewer entries than `limit`."""
    entries, following = await session.access.audit_entries(
        who=who, what=what, since=since, until=until, before=before, limit=limit
    )
    page: AuditPage = {"entries": entries, "deeds": entries, "next": following}
    return JsonReply(page)


@router.get(
    "/api/audit/state", verb=AccessVerbs.audit_state, responses=answers(AuditState), summary="Check the audit log"
)
async def read_audit_state(session: CallerSession) -> Response:
    """Whether each row is unchanged and follows the row that it was written after. Reads the whole log."""
    return JsonReply(await session.access.audit_state())


@router.get(
    "/api/audit/export",
    verb=AccessVerbs.export_audit,
    responses=text_answer(LINES, LINE) | refusals(),
    response_class=Response,
    summary="Export the audit log",
)
async def export_audit(session: CallerSession) -> Response:
    """All rows, oldest first: one JSON object per line, with the hashes that chain them."""
    headers = {"content-disposition": 'attachment; filename="audit.jsonl"', "cache-control": "no-store"}
    return StreamingResponse(await session.access.export_audit(), media_type=LINES, headers=headers)


Group = Annotated[str, Field(min_length=1, max_length=200)]
GROUPS_MAX = 100
Name = Annotated[str, Path(min_length=1, max_length=120, description="The agent's name.")]


class SharingBody(Body):
    """Who may see and use it."""

    model_config = with_schema_rule(
        sample(audience="groups", groups=["desk"]),
        oneOf=[
            {
                "properties": {"audience": {"const": "groups"}, "groups": {"minItems": 1}},
                "required": ["audience", "groups"],
            },
            {"properties": {"audience": {"enum": ["private", "everyone"]}, "groups": {"maxItems": 0}}},
        ],
    )
    audience: Audience = Field(
        description="`private`: only its owner; `groups`: also members of `groups`; `everyone`: all callers."
    )
    groups: list[Group] = Field(
        default_factory=list, max_length=GROUPS_MAX, description="Groups; only with the audience `groups`."
    )
    owner: str | None = Field(default=None, min_length=1, max_length=200, description="The new owner.")


example(SharingView, {"owner": "ada", "audience": "groups", "groups": ["desk"]})


@router.get(
    "/api/workflows/{id}/sharing",
    verb=SharingVerbs.of_workflow,
    responses=answers(SharingView, "unknown-workflow"),
    summary="Read the sharing of a workflow",
)
async def read_sharing(session: CallerSession, id: Id) -> Response:
    """The owner of a workflow, and its audience."""
    return sharing_reply(await session.sharing.of_workflow(id))


@router.put(
    "/api/workflows/{id}/sharing",
    verb=SharingVerbs.share_workflow,
    responses=answers(SharingView, "unknown-workflow", "revision-moved", "sharing-invalid", body=True),
    summary="Share a workflow",
)
async def change_sharing(session: CallerSession, id: Id, body: SharingBody, if_match: IfMatch = None) -> Response:
    """Allowed for its owner and admins. Takes effect with the next request, also for its executions."""
    groups = tuple(body.groups)
    return sharing_reply(
        await session.sharing.share_workflow(id, body.audience, groups=groups, owner=body.owner, match=if_match)
    )


@router.get(
    "/api/agents/{name}/sharing",
    verb=SharingVerbs.of_agent,
    responses=answers(SharingView, "no-such-agent"),
    summary="Read the sharing of an agent",
)
async def read_agent_sharing(session: CallerSession, name: Name) -> Response:
    """The owner of an agent, and its audience."""
    return sharing_reply(await session.sharing.of_agent(name))


@router.put(
    "/api/agents/{name}/sharing",
    verb=SharingVerbs.share_agent,
    responses=answers(SharingView, "no-such-agent", "revision-moved", body=True),
    summary="Share an agent",
)
async def change_agent_sharing(
    session: CallerSession, name: Name, body: SharingBody, if_match: IfMatch = None
) -> Response:
    """Allowed for its owner and admins. Other callers can neither see the agent nor run workflows that use it."""
    groups = tuple(body.groups)
    return sharing_reply(
        await session.sharing.share_agent(name, body.audience, groups=groups, owner=body.owner, match=if_match)
    )


def sharing_reply(sharing: Sharing) -> Response:
    return JsonReply(sharing_view(sharing), headers={"etag": etag_of(sharing_etag(sharing))})


SecretName = Annotated[str, Path(min_length=1, max_length=100, description="`NAME` of the handle `secret.NAME`.")]
SECRET: Final[SecretView] = {
    "name": "WEATHER",
    "changedAt": 1_763_700_000.0,
    "changedBy": "ada",
    "stored": True,
    "credential": None,
    "hosts": ["api.weather.example"],
    "tools": [],
    "workflows": [],
    "groups": [],
    "etag": '"0b1f6c0ad1e2c3d4"',
}

OTHER: Final[OtherSecretView] = {
    "name": "MAIL",
    "source": "environment",
    "hosts": [],
    "tools": ["send_letter"],
    "workflows": [],
    "groups": [],
}

Listed = Annotated[list[Annotated[str, Field(min_length=1, max_length=300)]], Field(max_length=200)]
HOSTS: Final = (
    "Hosts that http nodes of documents may send it to: `api.example.com` (https), `*.example.com`,"
    " `http://localhost:8080`, `api.example.com:*`; `*`: anywhere."
)
TOOLS: Final = "Patterns of tools whose parameters may name it in documents."
WORKFLOWS: Final = "Saved workflows that may use it, by id or `id@revision`. Empty: any."
GROUPS: Final = "Only saved workflows whose `allowedGroups` are all among these may use it. Empty: any."


class SecretBody(Body):
    """A secret, or the destinations to which documents may send it. Absent members keep their values."""

    model_config = sample(value="sk-weather-0badcafe", hosts=["api.weather.example"])
    value: str | None = Field(
        default=None,
        description="8 to 60 000 characters. It is never shown again.",
        json_schema_extra={"minLength": CHARS_MIN, "maxLength": VALUE_CHARS_MAX},
    )
    hosts: Listed | None = Field(default=None, description=HOSTS)
    tools: Listed | None = Field(default=None, description=TOOLS)
    workflows: Listed | None = Field(default=None, description=WORKFLOWS)
    groups: Listed | None = Field(default=None, description=GROUPS)

    def parts(self) -> RuleParts:
        """Return the given parts of the rule."""
        listed = {name: getattr(self, name) for name in ("hosts", "tools", "workflows", "groups")}
        return cast("RuleParts", {name: value for name, value in listed.items() if value is not None})


example(SecretView, SECRET)
example(OtherSecretView, OTHER)
example(SecretPage, {"secrets": [SECRET], "elsewhere": [OTHER], "next": None})
example(SecretUses, {"workflows": ["letter"], "agents": [], "settings": ["mail"]})


@router.get("/api/secrets", verb=SecretVerbs.list, responses=answers(SecretPage), summary="List secrets")
async def list_secrets(
    *,
    session: CallerSession,
    search: Words = "",
    order: Order = "asc",
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """Secrets by name, with their last changes.

    Values cannot be read. With `search`, only secrets with all these words in their name or in the name of the person
    who changed them.
    """
    page = await session.secrets.list(search=search, after=after, limit=limit, backwards=order == "desc")
    return JsonReply(page)


@router.get(
    "/api/secrets/{name}/uses", verb=SecretVerbs.uses, responses=answers(SecretUses), summary="List uses of a secret"
)
async def list_secret_uses(session: CallerSession, name: SecretName) -> Response:
    """Saved workflows and agents in their latest revision, and settings, that name its handle.

    The secret need not exist.
    """
    return JsonReply(await session.secrets.uses(name))


@router.put(
    "/api/secrets/{name}",
    verb=SecretVerbs.set,
    status_code=204,
    responses=refusals(
        "name-invalid", "secret-invalid", "revision-moved", "vault-locked", "vault-key-invalid", body=True
    ),
    summary="Set a secret",
)
async def set_secret(
    *,
    session: CallerSession,
    name: SecretName,
    body: SecretBody,
    match: Match = None,
) -> Response:
    """Store its value, encrypted, in place of the previous one, and the destinations to which documents may send it.

    The next call that names the secret uses the new value. Without hosts and tools, documents cannot send it anywhere.
    """
    etag = await session.secrets.set(name, body.value, match=match, **body.parts())
    return Response(status_code=204, headers={"etag": etag})


class CredentialBody(Body):
    """A credential: a secret whose value is made from parts. Its value is a whole `Authorization` header."""

    model_config = sample(
        type="oauth2-client",
        tokenUrl="https://id.example.com/token",
        clientId="pointsman",
        clientSecret="0badcafe0badcafe",
        scopes=["orders.read"],
        hosts=["api.example.com"],
    )
    type: CredentialType = Field(
        description="`basic`: user and password. `oauth2-client`: client credentials of"
        " OAuth 2. `oauth2-code`: a login of an admin at the service, by the authorization-code flow with PKCE."
    )
    user: str = Field(default="", max_length=500, description="The user, of `basic`.")
    password: str = Field(default="", max_length=10_000, description="The password, of `basic`. Empty: it stays.")
    authorize_url: str = Field(default="", max_length=2_000, description="The address of the login, of `oauth2-code`.")
    token_url: str = Field(default="", max_length=2_000, description="The address of tokens, of both OAuth types.")
    client_id: str = Field(default="", max_length=500, description="What the service registered.")
    client_secret: str = Field(default="", max_length=10_000, description="As registered. Empty: it stays, or none.")
    scopes: Listed = Field(default_factory=list, description="What is requested of the service.")
    hosts: Listed = Field(default_factory=list, description=HOSTS)
    tools: Listed = Field(default_factory=list, description=TOOLS)
    workflows: Listed = Field(default_factory=list, description=WORKFLOWS)
    groups: Listed = Field(default_factory=list, description=GROUPS)

    def credential(self) -> Credential:
        """Return what is stored beside the secret parts."""
        return Credential(
            type=self.type,
            user=self.user,
            authorize_url=self.authorize_url.strip(),
            token_url=self.token_url.strip(),
            client_id=self.client_id.strip(),
            scopes=tuple(self.scopes),
        )

    def secret_parts(self) -> dict[str, str]:
        """Return the secret parts of its type."""
        return {"password": self.password} if self.type == "basic" else {"clientSecret": self.client_secret}

    def rule(self) -> RuleParts:
        """Return the rule of where documents may send it."""
        return {"hosts": self.hosts, "tools": self.tools, "workflows": self.workflows, "groups": self.groups}


class CodeBody(Body):
    """What the authorization server sent with the browser."""

    model_config = sample(code="0badcafe", state="0badcafe0badcafe")
    code: str = Field(min_length=1, max_length=CODE_CHARS_MAX)
    state: str = Field(min_length=1, max_length=200)


class AuthorizationAddress(TypedDict):
    """Where a browser connects a credential."""

    address: str
    """Page of the authorization server."""
    redirect: str
    """Page of this server to which it returns; the service must know it."""


example(
    AuthorizationAddress,
    {"address": "https://id.example.com/authorize?…", "redirect": "https://flows.example.com/connected/SHOP"},
)


@router.put(
    "/api/secrets/{name}/credential",
    verb=SecretVerbs.set_credential,
    status_code=204,
    responses=refusals(
        "name-invalid",
        "secret-invalid",
        "credential-invalid",
        "credential-not-connected",
        "revision-moved",
        "vault-locked",
        "vault-key-invalid",
        body=True,
    ),
    summary="Set a credential",
)
async def set_credential(
    *,
    session: CallerSession,
    name: SecretName,
    body: CredentialBody,
    match: Match = None,
) -> Response:
    """Store a secret whose value is made from parts, and the destinations to which documents may send it.

    Documents write `Authorization: "{secret.NAME}"`. Tokens are fetched from the token server, whose address obeys
    `[http]` in the settings, and renewed before they expire.
    """
    etag = await session.secrets.set_credential(
        name, body.credential(), body.secret_parts(), match=match, **body.rule()
    )
    return Response(status_code=204, headers={"etag": etag})


@router.post(
    "/api/secrets/{name}/authorization",
    verb=SecretVerbs.begin_authorization,
    responses=answers(AuthorizationAddress, "no-such-secret", "credential-invalid"),
    summary="Begin the login of a credential",
)
async def begin_authorization(session: CallerSession, request: Request, name: SecretName) -> Response:
    """Return the page of the service at which an admin connects a credential of the type `oauth2-code`.

    The browser returns to a page of this server, which completes the login.
    """
    redirect = redirect_of(request, name)
    address = await session.secrets.begin_authorization(name, redirect)
    view: AuthorizationAddress = {"address": address, "redirect": redirect}
    return JsonReply(view, headers={"cache-control": "no-store"})


@router.put(
    "/api/secrets/{name}/authorization",
    verb=SecretVerbs.complete_authorization,
    status_code=204,
    responses=refusals("no-such-secret", "authorization-refused", "credential-not-connected", body=True),
    summary="Complete the login of a credential",
)
async def complete_authorization(session: CallerSession, name: SecretName, body: CodeBody) -> Response:
    """Exchange the code of the service for tokens, which are stored encrypted.

    A state is accepted once, within ten minutes, from the admin who began the login, for the same credential.
    """
    await session.secrets.complete_authorization(name, body.code, body.state)
    return Response(status_code=204)


def redirect_of(request: Request, name: str) -> str:
    """Return the page of this server to which the service sends the browser, with the host name that the browser
    used. Each credential has its own, so that the answer of one service cannot be passed off as that of another."""
    return str(request.base_url.replace(path=f"/connected/{name}", query="", fragment=""))


@router.delete(
    "/api/secrets/{name}",
    verb=SecretVerbs.delete,
    status_code=204,
    responses=refusals("no-such-secret", "revision-moved"),
    summary="Delete a secret",
)
async def delete_secret(session: CallerSession, name: SecretName, if_match: IfMatch = None) -> Response:
    """Steps that name it fail from now on."""
    await session.secrets.delete(name, match=if_match)
    return Response(status_code=204)


class RightView(TypedDict):
    """An operation, and the least privileged role that may call it."""

    method: str
    path: str
    says: str
    tag: str
    role: Role | None
    """null: it requires no key, or authenticates callers by itself."""


class RightsPage(TypedDict):
    """Permissions by role."""

    rights: list[RightView]


PERSON: Final[PersonView] = {
    "name": "ada",
    "role": "editor",
    "groups": ["desk"],
    "ways": ["key"],
    "logins": 1,
    "seenAt": 1_763_700_000.0,
}
example(PersonView, PERSON)
example(PeoplePage, {"people": [PERSON], "next": None})
RIGHT: Final[RightView] = {
    "method": "PUT",
    "path": "/api/workflows/{id}",
    "says": "Save a workflow",
    "tag": "workflows",
    "role": "editor",
}
example(RightView, RIGHT)
example(RightsPage, {"rights": [RIGHT]})


@router.get("/api/people", verb=AccessVerbs.people, responses=answers(PeoplePage), summary="List people")
async def list_people(
    *,
    session: CallerSession,
    search: Words = "",
    role: OfRole = None,
    order: Order = "asc",
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """People with a key or a login through the identity provider, by name, with the number of browsers in which they
    are logged in. With `search`, only people with all these words in name or groups."""
    page = await session.access.people(search=search, role=role, after=after, limit=limit, backwards=order == "desc")
    return JsonReply(page)


@router.get("/api/rights", responses=answers(RightsPage), summary="List permissions by role")
async def list_rights(request: Request, caller: CurrentCaller) -> Response:
    """Each operation with the least privileged role that may call it.

    A role includes the permissions of all roles before it.
    """
    rights: list[RightView] = [
        {
            "method": method,
            "path": route.path.replace(":path", ""),
            "says": route.summary or "",
            "tag": str(route.tags[0]) if route.tags else "",
            "role": least_of(route),
        }
        for route in described(cast("tuple[Operations, ...]", request.app.state.routers))
        for method in sorted(route.methods or ())
    ]
    page: RightsPage = {"rights": rights}
    return JsonReply(page)
