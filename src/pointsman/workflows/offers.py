"""Offers: which saved workflows callers with a key find as MCP tools and as OpenAI models.

Each workflow is offered to all callers who may run it, unless its owner switches an offer off. The owner's choice is a
part of the publication of the workflow (`triggers.publications`). An offer gives nobody a right: roles and sharing
decide who may run a workflow, and callers without a key are refused.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from pointsman.store.api import ConfigStore

PUBLICATION: Final = "publication"
"""Kind of the entries, by workflow. Their members `mcp` and `model` are the offers."""

Offer: TypeAlias = Literal["mcp", "model"]


async def withheld(entries: ConfigStore, offer: Offer) -> frozenset[str]:
    """Return the workflows whose owners switched this offer off."""
    return frozenset(
        entry.key
        for entry in await entries.list(PUBLICATION)
        if isinstance(entry.value, dict) and entry.value.get(offer) is False
    )
