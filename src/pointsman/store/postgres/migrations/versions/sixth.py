"""Whether the scripted model answers in an execution."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "6"
down_revision = "5"


def upgrade() -> None:
    op.add_column("summaries", sa.Column("scripted", sa.Boolean(), nullable=False, server_default=sa.false()))
