"""Settings of secrets: their values, where they may go, and the keys that seal those of the store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from pointsman.ports import SecretRule
from pointsman.tools.egress.secret_hosts import read_host


def _host(text: str) -> str:
    read_host(text)
    return text


class SecretSettings(BaseModel):
    """A secret of the settings. `NAME = "value"` is one without hosts, so documents cannot send it anywhere."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    value: str = Field(default="", repr=False)
    """Empty: the environment or the store has it, and this says where it may go."""
    hosts: tuple[Annotated[str, AfterValidator(_host)], ...] = ()
    """Hosts that http nodes may send it to: `api.example.com`, `*.example.com`, `http://localhost:8080`."""
    tools: tuple[str, ...] = ()
    """Patterns of tools whose parameters may name it."""
    workflows: tuple[str, ...] = ()
    """Saved workflows that may use it, by id or `id@revision`. Empty: any."""
    groups: tuple[str, ...] = ()
    """Only saved workflows whose `allowedGroups` are all among these may use it. Empty: any."""

    @property
    def rule(self) -> SecretRule:
        return SecretRule(hosts=self.hosts, tools=self.tools, workflows=self.workflows, groups=self.groups)


class VaultSettings(BaseModel):
    """Where the keys are. `POINTSMAN_VAULT_KEYS` in the environment wins, then `keys`, then the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    keys: tuple[str, ...] = Field(default=(), repr=False)
    """The newest first: it seals, all of them open."""
    key_file: Path | None = None
    """A key a line, the newest first, for its owner's eyes only; none: `vault.key` beside the user's settings."""
