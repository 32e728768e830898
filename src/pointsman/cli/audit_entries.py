"""Audit entries of commands, written before a command changes anything, as for requests to the server.

The table `CHANGES` lists the audited commands and the parameters that name their target. Values are never recorded:
they may be secret. Commands that export whole records from the store are audited too.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, NamedTuple, Self, cast

import click

from pointsman.app import Pointsman
from pointsman.auth.callers import Caller
from pointsman.cli.options import os_user
from pointsman.errors import OperatorError, PointsmanError


def at_the_prompt() -> Caller:
    """Return the caller of a command, an admin: a user who can open the store can do everything."""
    return Caller(name=os_user(), role="admin", entrance="shell")


class AuditedCommand(NamedTuple):
    """Audit rule of a command that changes or exports data."""

    told: tuple[str, ...] = ()
    """Parameters that name the target, in the order of the entry; parameters that are not given are omitted."""
    only_with: tuple[str, ...] = ()
    """Options of which at least one must be given for the command to be audited; empty: always."""
    not_with: str = ""
    """Option with which the command changes nothing, so that it is not audited."""
    is_told_afterwards: bool = False
    """Write the entry after the command instead: `restore` requires an empty store."""


_ONE: Final = ("execution",)

CHANGES: Final[dict[str, AuditedCommand]] = {
    "answer": AuditedCommand(("execution", "node", "by")),
    "steer": AuditedCommand(("execution", "goto", "by")),
    "delegate": AuditedCommand(("execution", "node", "to", "by")),
    "resume": AuditedCommand(_ONE),
    "retry": AuditedCommand(("execution", "step", "to", "by")),
    "fork": AuditedCommand(("execution", "at", "to", "by")),
    "move": AuditedCommand(("execution", "to", "by"), not_with="check_only"),
    "signal": AuditedCommand(("execution", "name")),
    "pause": AuditedCommand(("execution", "by")),
    "delete": AuditedCommand(("executions", "session")),
    "bulk": AuditedCommand(
        ("verb", "workflow", "statuses", "session", "parent", "since", "until", "by"), only_with=("yes",)
    ),
    "run": AuditedCommand(("workflow", "by"), not_with="dry"),
    "chat": AuditedCommand(("workflow", "session", "by")),
}


class CommandAudit(NamedTuple):
    """Audit entry of the running command."""

    what: str
    target: str
    is_told_afterwards: bool


def deed_of(context: click.Context | None) -> CommandAudit | None:
    """Return the audit entry of the running command; None if it is not audited."""
    path = "" if context is None else context.command_path.partition(" ")[2]
    change = CHANGES.get(path)
    if context is None or change is None:
        return None
    given = context.params
    if (change.only_with and not any(given[name] for name in change.only_with)) or given.get(change.not_with):
        return None
    target = ", ".join(
        f"{name.rstrip('_')}={_text(given[name])}"
        for name in change.told
        if given[name] not in (None, "", (), False) and not (name == "by" and given[name] == os_user())
    )
    return CommandAudit(f"pointsman {path}", target, change.is_told_afterwards)


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, cast("tuple[object, ...]", value)))
    return "yes" if value is True else str(value)


class Prompted(Pointsman):
    """App of a command. Writes the command's audit entry once the store is open, and a second one if the command is
    refused."""

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        deed, self._told = deed_of(click.get_current_context(silent=True)), ""
        self._deed = deed
        if deed is not None and not deed.is_told_afterwards:
            try:
                self._told = await self.audit.asked(at_the_prompt(), deed.what, target=deed.target)
            except BaseException:
                await super().__aexit__()
                raise
        return self

    async def __aexit__(self, *ended: object) -> None:
        try:
            if self._deed is not None:
                await self._tell_end(self._deed, ended[1] if len(ended) > 1 else None)
        finally:
            await super().__aexit__(*ended)

    async def _tell_end(self, deed: CommandAudit, error: object) -> None:
        if self._told and isinstance(error, PointsmanError):
            with suppress(OperatorError):  # The error of the command takes precedence.
                await self.audit.refused(at_the_prompt(), deed.what, self._told, error.code)
        elif deed.is_told_afterwards and error is None:
            await self.audit.asked(at_the_prompt(), deed.what, target=deed.target)
