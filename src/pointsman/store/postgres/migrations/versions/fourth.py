"""What work took and paid for is added up as it is kept."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import BYTEA

revision = "4"
down_revision = "3"

AMOUNTS = (
    "steps",
    "retries",
    "failures",
    "cached",
    "micros",
    "model_calls",
    "tool_calls",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "nanos",
    "priced_calls",
    "unpriced_calls",
    "scripted_calls",
)


def upgrade() -> None:
    op.create_table(
        "usage",
        *names("day", "execution", "owner"),  # the execution may be gone
        *amounts_of_a_place(),
        sa.PrimaryKeyConstraint("day", "execution", "place"),
    )
    op.create_table(
        "usage_sums",
        *names("day"),
        *amounts_of_a_place(),
        sa.Column("entries", sa.BigInteger(), nullable=False),  # so many rows of usage are in it
        sa.PrimaryKeyConstraint("day", "place"),
    )


def names(*columns: str) -> Iterator[sa.Column[str]]:
    """Compared by their bytes, on every server."""
    for column in columns:
        yield sa.Column(column, sa.Text(collation="C"), nullable=False)


def amounts_of_a_place() -> Iterator[sa.Column[str] | sa.Column[int] | sa.Column[bytes]]:
    yield from names("workflow", "node", "model", "key")
    yield sa.Column("revision", sa.Integer(), nullable=False)
    # A digest of these: they may be longer than what an index takes.
    yield sa.Column("place", BYTEA(), nullable=False)
    for amount in AMOUNTS:
        yield sa.Column(amount, sa.BigInteger(), nullable=False)
