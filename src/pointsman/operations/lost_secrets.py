"""Health findings about secrets that cannot be decrypted, and notifications that were given up."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from pointsman.auth.vault import VAULT
from pointsman.context import AppContext
from pointsman.errors import OperatorError
from pointsman.operations.findings import HealthFinding
from pointsman.triggers.notifications import Outbox

LISTED_MAX: Final = 5


async def unheard(app: AppContext) -> AsyncIterator[HealthFinding]:
    """Yield a finding for each problem. Otherwise such a secret is noticed only when a call fails, and a lost
    notification only by the person who waits for it.
    """
    with suppress(OperatorError):  # The store is unavailable: the last values count.
        await app[VAULT].refresh()
    closed: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for name, why in sorted(app[VAULT].closed.items()):
        closed[why.code, why.hint].append(name)
    for (code, hint), names in closed.items():
        message = f"{_named(names)}: kept in the store, and cannot be opened here ({code})"
        yield HealthFinding("error", "secret-closed", message, hint)
    letters = [kept.letter for kept in await Outbox(app).list()]
    dead = Counter(letter.to for letter in letters if letter.state == "dead")
    for to, count in sorted(dead.items()):
        why = next(letter.error for letter in letters if letter.state == "dead" and letter.to == to)
        hint = "`pointsman notifications list` shows them, `pointsman notifications retry ID` sends one again."
        yield HealthFinding("warning", "notices-given-up", f"{count} notices to {to!r} were given up: {why}", hint)


def _named(names: list[str]) -> str:
    shown = ", ".join(f"secret.{name}" for name in names[:LISTED_MAX])
    return shown if len(names) <= LISTED_MAX else f"{shown} and {len(names) - LISTED_MAX} more"
