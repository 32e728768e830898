"""Operations on secrets, which the store keeps encrypted; values can be written, never read."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from fastapi import Depends, Path, Response
from msgspec.structs import replace
from pydantic import Field

from pointsman.auth.callers import Caller
from pointsman.auth.secrets import SecretRule
from pointsman.auth.vault import VALUE_CHARS_MAX, rule_view, secret_view
from pointsman.etags import NOTHING, moved
from pointsman.paging import page_by
from pointsman.redaction import ANYWHERE_CHARS_MIN as CHARS_MIN
from pointsman.searching import says
from pointsman.server.context import CurrentServer, RequireRole
from pointsman.server.if_match import etag_of, held
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import ETAG, After, IfMatch, IfNew, Limit, Order, Words
from pointsman.server.routes.response_docs import answers, refusals
from pointsman.server.schemas.requests import Answer, Body, sample
from pointsman.values import JsonObject
from pointsman.workflows.secret_uses import secrets_elsewhere, uses_of

router = Operations(tags=["access"])

Admin = Annotated[Caller, Depends(RequireRole("admin", "see or change secrets"))]
SecretName = Annotated[str, Path(min_length=1, max_length=100, description="`NAME` of the handle `secret.NAME`.")]
SECRET: Final[JsonObject] = {
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

OTHER: Final[JsonObject] = {
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

    def rule(self, before: SecretRule) -> SecretRule | None:
        """Return the previous rule with the given changes; None: the body changes no part of it."""
        listed = {name: getattr(self, name) for name in ("hosts", "tools", "workflows", "groups")}
        given = {name: tuple(value) for name, value in listed.items() if value is not None}
        return replace(before, **given) if given else None


class SecretEntry(Answer):
    """A secret, without its value."""

    model_config = sample(**SECRET)
    name: str
    changed_at: float
    changed_by: str
    stored: bool = Field(description="False: the environment or the settings have its value.")
    hosts: list[str] = Field(description=HOSTS)
    tools: list[str] = Field(description=TOOLS)
    workflows: list[str] = Field(description=WORKFLOWS)
    groups: list[str] = Field(description=GROUPS)
    etag: str = Field(description=ETAG)


class OtherSecret(Answer):
    """A secret that is not the store's. It wins over one of the store that has the same name."""

    model_config = sample(**OTHER)
    name: str
    source: Literal["settings", "environment"]
    hosts: list[str] = Field(description=HOSTS)
    tools: list[str] = Field(description=TOOLS)
    workflows: list[str] = Field(description=WORKFLOWS)
    groups: list[str] = Field(description=GROUPS)


class SecretPage(Answer):
    """Secrets by name."""

    model_config = sample(secrets=[SECRET], elsewhere=[OTHER], next=None)
    secrets: list[SecretEntry]
    elsewhere: list[OtherSecret] = Field(description="All of them, on each page.")
    next: str | None = Field(description="The `after` of the next page; null: this was the last.")


class SecretUses(Answer):
    """Who names a secret."""

    model_config = sample(workflows=["letter"], agents=[], settings=["mail"])
    workflows: list[str]
    agents: list[str]
    settings: list[str]


@router.get("/api/secrets", responses=answers(SecretPage), summary="List secrets")
async def list_secrets(
    *,
    desk: CurrentServer,
    caller: Admin,
    search: Words = "",
    order: Order = "asc",
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """By name, and who changed each when. Not their values, which nobody can read again. With `search` only those with
    all these words in their name or that of who changed them."""
    await desk.app.vault.refresh()
    marked = await desk.app.vault.marked()
    found = ({**secret_view(one), "etag": etag_of(mark)} for one, mark in marked if says(search, one.name, one.by))
    page = await page_by("name", found, after=after, limit=limit, backwards=order == "desc")
    elsewhere = sorted(secrets_elsewhere(desk.app.settings).items())
    return JsonReply(
        {
            "secrets": [*page.entries],
            "elsewhere": [
                {"name": name, "source": source, **rule_view(desk.app.settings.rule(name))}
                for name, source in elsewhere
            ],
            "next": page.next,
        }
    )


@router.get("/api/secrets/{name}/uses", responses=answers(SecretUses), summary="Who uses a secret")
async def secret_uses(desk: CurrentServer, caller: Admin, name: SecretName) -> Response:
    """Saved workflows and agents, as they are now, and settings that name its handle. There need be no such secret."""
    return JsonReply(await uses_of(desk.app.context, name))


@router.put(
    "/api/secrets/{name}",
    status_code=204,
    responses=refusals(
        "name-invalid", "secret-invalid", "revision-moved", "vault-locked", "vault-key-invalid", body=True
    ),
    summary="Set a secret",
)
async def set_secret(
    *,
    desk: CurrentServer,
    caller: Admin,
    name: SecretName,
    body: SecretBody,
    if_match: IfMatch = None,
    if_new: IfNew = None,
) -> Response:
    """Store its value sealed, in place of the one before, and where documents may send it. The next call that names
    the secret gets the new value. Without hosts and tools, documents cannot send it anywhere."""
    vault = desk.app.vault
    after = NOTHING if if_new else _held(name, await vault.mark(name), if_match)
    await vault.set(name, body.value, rule=body.rule(await vault.kept_rule(name)), by=caller.name, after=after)
    return Response(status_code=204, headers={"etag": etag_of(await desk.app.vault.mark(name))})


@router.delete(
    "/api/secrets/{name}",
    status_code=204,
    responses=refusals("no-such-secret", "revision-moved"),
    summary="Delete a secret",
)
async def delete_secret(desk: CurrentServer, caller: Admin, name: SecretName, if_match: IfMatch = None) -> Response:
    """Steps that name it fail from now on."""
    mark = await desk.app.vault.mark(name)
    await desk.app.vault.delete(name, after=None if mark == NOTHING else _held(name, mark, if_match))
    return Response(status_code=204)


def _held(name: str, mark: str, if_match: str | None) -> str | None:
    return held(if_match, None if mark == NOTHING else etag_of(mark), mark, moved(f"the secret {name!r}"))
