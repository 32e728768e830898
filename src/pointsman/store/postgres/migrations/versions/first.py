"""The first tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import BYTEA, JSONB, TSVECTOR
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

revision = "1"
down_revision = None

NAME = sa.Text(collation="C")
"""Ids and keys: compared by their bytes, on every server."""
DOUBLE: TypeEngine[float] = sa.Double()

T = TypeVar("T")


def column(name: str, kind: TypeEngine[T]) -> sa.Column[T]:
    return sa.Column(name, kind, nullable=False)


def table(name: str, *columns: SchemaItem, key: Sequence[str]) -> None:
    op.create_table(name, *columns, sa.PrimaryKeyConstraint(*key))


def upgrade() -> None:
    """Make all tables."""
    make_journal()
    make_lists()
    make_inboxes()
    make_contents()
    make_keeper()
    for packed in ("rows", "blobs", "effects"):
        # What is large is compressed already.
        op.execute(f"ALTER TABLE {packed} ALTER COLUMN data SET STORAGE EXTERNAL")


def make_journal() -> None:
    op.create_table(
        "executions",
        sa.Column("no", sa.BigInteger(), sa.Identity(always=True), primary_key=True),
        sa.Column("id", NAME, nullable=False, unique=True),  # /deleted/no: its number is never given again
    )
    table(
        "rows",
        column("execution", sa.BigInteger()),  # executions.no
        column("seq", sa.Integer()),
        column("at", DOUBLE),  # unix seconds
        column("shape", sa.Integer()),  # how many lifts existed when it was written
        column("form", sa.SmallInteger()),  # codec.Form: how data is packed
        column("data", BYTEA()),
        column("hash", BYTEA()),  # SHA-256 of the hash before it and this row
        key=("execution", "seq"),
    )
    op.execute(
        "CREATE VIEW journal AS SELECT e.id AS execution, r.seq, to_timestamp(r.at) AS at,"
        " CASE r.form WHEN 0 THEN convert_from(r.data, 'UTF8') END AS events"
        " FROM rows AS r JOIN executions AS e ON e.no = r.execution"
    )
    table(
        "blobs",
        column("hash", BYTEA()),  # SHA-256 of the plain content
        column("form", sa.SmallInteger()),
        column("data", BYTEA()),
        column("held_until", DOUBLE),  # unix seconds: kept so long for somebody who has not begun to use it
        key=("hash",),
    )
    table("blob_uses", column("execution", NAME), column("hash", BYTEA()), key=("execution", "hash"))
    op.create_index("blob_uses_by_hash", "blob_uses", ["hash"])
    table(
        "effects",
        column("execution", NAME),
        column("attempt", NAME),
        column("number", sa.Integer()),
        column("form", sa.SmallInteger()),
        column("data", BYTEA()),
        key=("execution", "attempt", "number"),
    )


def make_lists() -> None:
    table(
        "summaries",
        column("execution", NAME),
        column("workflow", NAME),
        column("revision", sa.Integer()),
        column("status", NAME),
        column("started", DOUBLE),
        column("updated", DOUBLE),
        sa.Column("parent", NAME),
        sa.Column("session", NAME),
        column("owner", NAME),
        sa.Column("wakes", DOUBLE),  # unix seconds; NULL: nothing wakes it
        column("awaits", JSONB()),
        sa.Column("gates", JSONB()),  # its open gates; NULL: it never had one
        key=("execution",),
    )
    op.create_index(
        "summaries_by_wake", "summaries", ["wakes", "execution"], postgresql_where=sa.text("wakes IS NOT NULL")
    )
    awaiting = sa.text("awaits <> '[]'")
    op.create_index("summaries_by_awaited", "summaries", ["awaits"], postgresql_using="gin", postgresql_where=awaiting)
    op.create_index("summaries_by_change", "summaries", ["updated"])
    op.create_index("summaries_by_start", "summaries", ["started", "execution"])
    op.create_index("summaries_by_status", "summaries", ["status", "started", "execution"])
    op.create_index("summaries_by_workflow", "summaries", ["workflow", "started", "execution"])
    for name in ("parent", "session"):
        where = sa.text(f"{name} IS NOT NULL")
        op.create_index(f"summaries_by_{name}", "summaries", [name, "started"], postgresql_where=where)
    table(
        "workflows",
        column("id", NAME),
        column("revision", sa.Integer()),
        column("version", NAME),
        column("name", sa.Text()),
        column("dialect", NAME),
        column("created", DOUBLE),
        column("author", sa.Text()),
        column("digest", NAME),
        column("text", sa.Text()),
        column("native", BYTEA()),
        column("enabled", sa.Boolean()),
        key=("id", "revision"),
    )
    table("deleted_workflows", column("id", NAME), key=("id",))


def make_inboxes() -> None:
    op.create_index(
        "summaries_by_asked",
        "summaries",
        ["gates"],
        postgresql_using="gin",
        postgresql_ops={"gates": "jsonb_path_ops"},
        postgresql_where=sa.text("gates <> '[]'"),
    )


def make_contents() -> None:
    table(
        "memory",
        column("scope", NAME),
        column("namespace", NAME),
        column("key", NAME),
        column("value", BYTEA()),
        column("words", TSVECTOR()),
        key=("scope", "namespace", "key"),
    )
    op.create_index("memory_by_words", "memory", ["words"], postgresql_using="gin")
    table(
        "messages",
        column("session", NAME),
        column("number", sa.Integer()),  # 1, 2, …
        column("message", BYTEA()),
        key=("session", "number"),
    )
    op.execute("CREATE SEQUENCE versions_of_entries")
    table(
        "entries",
        column("kind", NAME),
        column("key", NAME),
        column("value", BYTEA()),
        column("version", sa.BigInteger()),
        key=("kind", "key"),
    )
    table("closed_sessions", column("session", NAME), key=("session",))


def make_keeper() -> None:
    op.create_table(
        "keeper",
        sa.Column("one", sa.Boolean(), sa.CheckConstraint("one"), primary_key=True),
        column("epoch", sa.BigInteger()),  # raised by each that becomes the keeper
        column("holder", sa.Text()),  # empty: nobody keeps the store
        column("since", DOUBLE),
    )
    op.execute("INSERT INTO keeper (one, epoch, holder, since) VALUES (true, 0, '', 0)")
