"""A list of executions knows what each has spent."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    for name in ("tokens", "model_calls", "tool_calls"):
        op.add_column("summaries", sa.Column(name, sa.BigInteger()))  # NULL: it was written before this was counted
    op.add_column("summaries", sa.Column("cost_usd", sa.Double()))
    uncounted = sa.text("tokens IS NULL")
    op.create_index("summaries_uncounted", "summaries", ["started", "execution"], postgresql_where=uncounted)
