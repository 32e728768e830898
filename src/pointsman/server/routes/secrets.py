"""Operations on secrets, which the store keeps encrypted; values can be written, never read."""

from __future__ import annotations

from typing import Annotated, Final, cast

from fastapi import Path, Response
from pydantic import Field

from pointsman.auth.vault import VALUE_CHARS_MAX, SecretView
from pointsman.redaction import ANYWHERE_CHARS_MIN as CHARS_MIN
from pointsman.server.context import CallerSession
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import After, IfMatch, IfNew, Limit, Order, Words
from pointsman.server.routes.response_docs import answers, refusals
from pointsman.server.schemas.requests import Body, sample
from pointsman.server.schemas.views import example
from pointsman.workflows.access_verbs import RuleParts, SecretVerbs
from pointsman.workflows.secret_uses import OtherSecretView, SecretPage, SecretUses

router = Operations(tags=["access"])

SecretName = Annotated[str, Path(min_length=1, max_length=100, description="`NAME` of the handle `secret.NAME`.")]
SECRET: Final[SecretView] = {
    "name": "WEATHER",
    "changedAt": 1_763_700_000.0,
    "changedBy": "ada",
    "stored": True,
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
    """A secret, or where documents may send it. What is left out stays as it is."""

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
    """By name, and who changed each when. Not their values, which nobody can read again. With `search` only those with
    all these words in their name or that of who changed them."""
    page = await session.secrets.list(search=search, after=after, limit=limit, backwards=order == "desc")
    return JsonReply(page)


@router.get(
    "/api/secrets/{name}/uses", verb=SecretVerbs.uses, responses=answers(SecretUses), summary="Who uses a secret"
)
async def secret_uses(session: CallerSession, name: SecretName) -> Response:
    """Saved workflows and agents, as they are now, and settings that name its handle. There need be no such secret."""
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
    if_match: IfMatch = None,
    if_new: IfNew = None,
) -> Response:
    """Store its value sealed, in place of the one before, and where documents may send it. The next call that names
    the secret gets the new value. Without hosts and tools, documents cannot send it anywhere."""
    etag = await session.secrets.set(name, body.value, match=if_match, is_new=if_new is not None, **body.parts())
    return Response(status_code=204, headers={"etag": etag})


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
