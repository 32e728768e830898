"""Settings of databases that may be read.

[sql.shop]
url = "postgresql://reader@db.example.org/shop"      or sqlite:///shop.db; or a handle `secret.SHOP_URL`
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pointsman.definition.model.base import Duration
from pointsman.values import Seconds

NAME: Final = r"^[A-Za-z_][\w-]{0,63}$"
_HANDLE: Final = "secret."
_SQLITE: Final = "sqlite:///"
_POSTGRES: Final = ("postgresql://", "postgres://")


class DatabaseDescription(BaseModel):
    """One database."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    url: str = Field(repr=False)
    description: str = ""
    """Description of its contents, for models."""
    timeout: Duration = Duration(Seconds(10.0))
    """Of a whole question, connecting included."""
    rows_max: int = Field(default=200, ge=1, le=100_000)
    bytes_max: int = Field(default=100_000, ge=1, le=10_000_000)
    """Of all rows of an answer, as JSON."""

    @model_validator(mode="after")
    def _is_known(self) -> DatabaseDescription:
        if not self.url.startswith((_SQLITE, *_POSTGRES, _HANDLE)) or self.url == _SQLITE:
            raise ValueError("`url` must be sqlite:///file.db, postgresql://… or a handle secret.NAME")
        return self


def engine_of(url: str) -> Literal["SQLite", "PostgreSQL"] | None:
    """Return the database system of an address; None: it is not supported."""
    if url.startswith(_SQLITE):
        return "SQLite"
    return "PostgreSQL" if url.startswith(_POSTGRES) else None


def file_of(url: str) -> Path:
    """Return the file of a SQLite address."""
    return Path(unquote(url.removeprefix(_SQLITE))).expanduser().absolute()
