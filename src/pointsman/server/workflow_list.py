"""The list of saved workflows as the server answers it."""

from __future__ import annotations

from pydantic import Field

from pointsman.server.routes.parameters import ETAG
from pointsman.server.schemas.requests import Answer, sample
from pointsman.server.schemas.responses import ENTRY, WORKFLOW, ExecutionEntry, WorkflowEntryAnswer


class CatalogueEntryAnswer(WorkflowEntryAnswer):
    """A saved workflow in the list of all."""

    etag: str = Field(description=ETAG)
    last_execution: ExecutionEntry | None = Field(
        default=None, description="With `last`: the one that began last, of those that the caller sees."
    )


class CataloguePage(Answer):
    """Saved workflows, without their documents."""

    model_config = sample(workflows=[{**WORKFLOW, "etag": '"2-9f86d081884c7d65"', "lastExecution": ENTRY}], next=None)
    workflows: list[CatalogueEntryAnswer]
    next: str | None = Field(default=None, description="The `after` of the next page; null: this was the last.")
