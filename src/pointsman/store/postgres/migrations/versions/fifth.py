"""What workers must have to perform the steps of an execution, and the process that wrote its last row."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "5"
down_revision = "4"


def upgrade() -> None:
    op.add_column("summaries", sa.Column("needs", JSONB(), nullable=False, server_default="[]"))
    op.add_column("summaries", sa.Column("worker", sa.Text(collation="C"), nullable=False, server_default=""))
