"""What commands are about to change is in the audit log first, as requests to the server are.

One table says which commands do, and which of their arguments name what it is done to: never values, which may be
secret. Commands that take whole records out of the store are in it too.
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
    """Whoever runs a command: who can open the store can do everything."""
    return Caller(name=os_user(), role="admin", entrance="shell")


class Change(NamedTuple):
    """A command that changes something."""

    told: tuple[str, ...] = ()
    """The parameters that name what it is done to, in this order, where they are given."""
    only_with: tuple[str, ...] = ()
    """It changes something only with one of these options."""
    not_with: str = ""
    """With this option it changes nothing."""
    is_told_afterwards: bool = False
    """The store must be empty before."""


_ONE: Final = ("execution",)
_WHOSE: Final = ("user", "session", "workflow", "execution", "shared", "namespace")

CHANGES: Final[dict[str, Change]] = {
    "answer": Change(("execution", "node", "by")),
    "steer": Change(("execution", "goto", "by")),
    "delegate": Change(("execution", "node", "to", "by")),
    "resume": Change(_ONE),
    "retry": Change(("execution", "step", "to", "by")),
    "fork": Change(("execution", "at", "to", "by")),
    "move": Change(("execution", "to", "by"), not_with="check_only"),
    "signal": Change(("execution", "name")),
    "publish": Change(("name",)),
    "pause": Change(("execution", "by")),
    "cancel": Change(("execution", "by")),
    "delete": Change(("executions", "session")),
    "bulk": Change(("verb", "workflow", "statuses", "session", "parent", "since", "until", "by"), only_with=("yes",)),
    "gc": Change(not_with="dry_run"),
    "run": Change(("workflow", "by"), not_with="dry"),
    "chat": Change(("workflow", "session", "by")),
    "export": Change(("execution",)),
    "backup": Change(("file",)),
    "import": Change(("file",)),
    "restore": Change(("file",), is_told_afterwards=True),
    "doctor": Change(only_with=("fix",)),
    "schedules add": Change(("workflow", "id_")),
    "schedules pause": Change(("schedule",)),
    "schedules resume": Change(("schedule",)),
    "schedules delete": Change(("schedule",)),
    "schedules run": Change(("schedule",)),
    "keys add": Change(("name", "role")),
    "keys revoke": Change(("name",)),
    "secrets set": Change(("name", "by")),
    "secrets delete": Change(("name",)),
    "secrets allow": Change(("name", "hosts", "tools", "workflows", "groups", "by")),
    "secrets disallow": Change(("name", "hosts", "tools", "workflows", "groups", "by")),
    "secrets rotate": Change(("new_key",)),
    "notifications retry": Change(("notice",)),
    "memory set": Change(("key", *_WHOSE)),
    "memory append": Change(("key", *_WHOSE)),
    "memory delete": Change(("key", "everything", *_WHOSE)),
    "memory restore": Change(("key", "number", *_WHOSE)),
    "memory reindex": Change(),
    "workflows save": Change(("file",)),
    "workflows clone": Change(("workflow", "new")),
    "workflows delete": Change(("workflow",)),
    "workflows design": Change(("name",), only_with=("save",)),
    "workflows edit": Change(("workflow",), only_with=("apply",)),
    "workflows rollback": Change(("workflow", "revision")),
    "workflows share": Change(("workflow", "audience", "groups", "owner"), only_with=("audience", "groups", "owner")),
}


class Deed(NamedTuple):
    """What the running command does, as the audit log tells it."""

    what: str
    target: str
    is_told_afterwards: bool


def deed_of(context: click.Context | None) -> Deed | None:
    """None: it changes nothing that is told."""
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
    return Deed(f"pointsman {path}", target, change.is_told_afterwards)


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, cast("tuple[object, ...]", value)))
    return "yes" if value is True else str(value)


class Prompted(Pointsman):
    """The installation of a command: what the command changes is told once its store is open, and told again when it
    was refused."""

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

    async def _tell_end(self, deed: Deed, error: object) -> None:
        if self._told and isinstance(error, PointsmanError):
            with suppress(OperatorError):  # What the command was refused for is what there is to say.
                await self.audit.refused(at_the_prompt(), deed.what, self._told, error.code)
        elif deed.is_told_afterwards and error is None:
            await self.audit.asked(at_the_prompt(), deed.what, target=deed.target)
