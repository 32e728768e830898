"""Settings of the vault: with which keys the secrets of the store are sealed."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class VaultSettings(BaseModel):
    """Where the keys are. `POINTSMAN_VAULT_KEYS` in the environment wins, then `keys`, then the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    keys: tuple[str, ...] = Field(default=(), repr=False)
    """The newest first: it seals, all of them open."""
    key_file: Path | None = None
    """A key a line, the newest first, for its owner's eyes only; none: `vault.key` beside the user's settings."""
