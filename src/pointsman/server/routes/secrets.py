"""Secrets that the store keeps sealed. Their values go in, and never come out."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from fastapi import Depends, Path, Response
from pydantic import Field

from pointsman.app.access.callers import Caller
from pointsman.app.access.uses import secrets_elsewhere, uses_of
from pointsman.app.access.vault import secret_view
from pointsman.app.marks import NOTHING, moved
from pointsman.app.paging import page_by
from pointsman.app.searching import says
from pointsman.server.desk import AtDesk, Must
from pointsman.server.matching import etag_of, held
from pointsman.server.operation import Operations
from pointsman.server.replies import JsonReply
from pointsman.server.routes.answers import answers, refusals
from pointsman.server.routes.parameters import ETAG, After, IfMatch, IfNew, Limit, Order, Words
from pointsman.server.shapes import Answer, Body, sample
from pointsman.values import JsonObject

router = Operations(tags=["access"])

Admin = Annotated[Caller, Depends(Must("admin", "see or change secrets"))]
SecretName = Annotated[str, Path(min_length=1, max_length=100, description="`NAME` of the handle `secret.NAME`.")]
SECRET: Final[JsonObject] = {
    "name": "WEATHER",
    "changedAt": 1_763_700_000.0,
    "changedBy": "ada",
    "etag": '"0b1f6c0ad1e2c3d4"',
}


class SecretBody(Body):
    """A secret to be kept."""

    model_config = sample(value="…")
    value: str = Field(description="8 to 60 000 characters. It is never told again.")


class SecretEntry(Answer):
    """A secret, without its value."""

    model_config = sample(**SECRET)
    name: str
    changed_at: float
    changed_by: str
    etag: str = Field(description=ETAG)


class OtherSecret(Answer):
    """A secret that is not the store's. It wins over one of the store that has the same name."""

    model_config = sample(name="MAIL", source="environment")
    name: str
    source: Literal["settings", "environment"]


class SecretPage(Answer):
    """Secrets by name."""

    model_config = sample(secrets=[SECRET], elsewhere=[{"name": "MAIL", "source": "environment"}], next=None)
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
    desk: AtDesk,
    caller: Admin,
    search: Words = "",
    order: Order = "asc",
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """By name, and who changed each when. Not their values, which nobody can read again. With `search` only those with
    all these words in their name or that of who changed them."""
    marked = await desk.app.vault.marked()
    found = ({**secret_view(one), "etag": etag_of(mark)} for one, mark in marked if says(search, one.name, one.by))
    page = await page_by("name", found, after=after, limit=limit, backwards=order == "desc")
    elsewhere = sorted(secrets_elsewhere(desk.app.settings).items())
    return JsonReply(
        {
            "secrets": [*page.entries],
            "elsewhere": [{"name": name, "source": source} for name, source in elsewhere],
            "next": page.next,
        }
    )


@router.get("/api/secrets/{name}/uses", responses=answers(SecretUses), summary="Who uses a secret")
async def secret_uses(desk: AtDesk, caller: Admin, name: SecretName) -> Response:
    """Saved workflows and agents, as they are now, and settings that name its handle. There need be no such secret."""
    return JsonReply(await uses_of(desk.app, name))


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
    desk: AtDesk,
    caller: Admin,
    name: SecretName,
    body: SecretBody,
    if_match: IfMatch = None,
    if_new: IfNew = None,
) -> Response:
    """Kept sealed, in place of what had this name; the next call that names it gets it."""
    after = NOTHING if if_new else _held(name, await desk.app.vault.mark(name), if_match)
    await desk.app.vault.set(name, body.value, by=caller.name, after=after)
    return Response(status_code=204, headers={"etag": etag_of(await desk.app.vault.mark(name))})


@router.delete(
    "/api/secrets/{name}",
    status_code=204,
    responses=refusals("no-such-secret", "revision-moved"),
    summary="Delete a secret",
)
async def delete_secret(desk: AtDesk, caller: Admin, name: SecretName, if_match: IfMatch = None) -> Response:
    """Steps that name it fail from now on."""
    mark = await desk.app.vault.mark(name)
    await desk.app.vault.delete(name, after=None if mark == NOTHING else _held(name, mark, if_match))
    return Response(status_code=204)


def _held(name: str, mark: str, if_match: str | None) -> str | None:
    return held(if_match, None if mark == NOTHING else etag_of(mark), mark, moved(f"the secret {name!r}"))
