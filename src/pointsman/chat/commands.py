"""Commands as people type them: separates what is to be written from the address to which the result is sent.

"Write a proposal, send to john@example.com"  ->  goal "Write a proposal", e-mail "john@example.com"
"Compare the offers of ann@example.com"       ->  the whole text, and no e-mail: it does not ask to send anything
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Final

from pointsman.errors import CallerError
from pointsman.tools.mail import AddressWrong, address_of
from pointsman.values import JsonObject

CHARS_MAX: Final = 100_000
PHRASE_CHARS_MAX: Final = 120
"""Maximum distance between an address and a phrase before it that asks to send something there."""

_ADDRESS: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){0,10}")
_VERB: Final = r"(?:send|sent|e-?mail|mail|forward|deliver)"
_OPENING: Final = r"(?:^|(?P<stop>[.!?])\s|[,;:\n]|\s-\s|\b(?:and|then)\b)\s*(?:and\s+|then\s+|please\s+|also\s+)*"
_IT: Final = r"(?:it|this|that|them)"
_ASKED: Final = (
    re.compile(
        rf"{_OPENING}{_VERB}(?:\s+(?!to\b|at\b)[\w'-]+){{0,5}}(?:\s+to(?:\s+\w+\s+at)?|\s+at)?\s*$", re.IGNORECASE
    ),
    re.compile(rf"\s(?:(?:send|forward|deliver)(?:\s+{_IT})?|e?-?mail\s+{_IT})\s+to\s*$", re.IGNORECASE),
    re.compile(r"\sto\s*:?\s*$", re.IGNORECASE),
)
"""A clause of its own; a clause without a comma; an address at the end ("… to ann@example.org")."""
_ANOTHER: Final = re.compile(r"\s*(?:,|;|&|\band\b|\bor\b)\s*[<(\"']*[\w.+-]{1,64}@", re.IGNORECASE)


class CommandUnclear(CallerError):
    """The command contains no task, or is ambiguous. Nothing was started."""

    code: ClassVar[str] = "command-unclear"


@dataclass(frozen=True, slots=True)
class Command:
    """A parsed command."""

    goal: str
    email: str | None = None

    @property
    def input(self) -> JsonObject:
        return {"goal": self.goal, "email": self.email}


def parse_command(text: str) -> Command:
    """Parse a command. Raises `CommandUnclear`."""
    if len(text) > CHARS_MAX:
        hint = "Store the material where a tool of the workflow can read it, and send its address."
        raise CommandUnclear(f"the command has {len(text)} characters; the maximum is {CHARS_MAX}", hint=hint)
    for found in _ADDRESS.finditer(text):
        ends = not text[found.end() :].strip(" .!?>)\"'\n")
        goal = _without_phrase(text[: found.start()].rstrip("<(\"'"), at_the_end=ends)
        if goal is not None:
            if _ANOTHER.match(text, found.end()):
                raise CommandUnclear(
                    "the command contains several addresses", hint="Use one address; it can be that of a mailing list."
                )
            return command_of(_joined(goal, text[found.end() :]), found[0])
    return command_of(text)


def command_of(goal: str, email: str | None = None) -> Command:
    """Return a command from its parts. Raises `CommandUnclear`."""
    goal, email = goal.strip(), (email or "").strip()
    if not goal:
        raise CommandUnclear("the command contains no task", hint="Write, for example: Write a proposal for …")
    try:
        return Command(goal, address_of(email) if email else None)
    except AddressWrong as why:
        raise CommandUnclear(str(why), hint=why.hint) from None


def _without_phrase(before: str, *, at_the_end: bool) -> str | None:
    """Return the text before a phrase that asks to send the result; None if no such phrase precedes the address."""
    begins = max(0, len(before) - PHRASE_CHARS_MAX)
    for pattern in _ASKED if at_the_end else _ASKED[:2]:
        found = pattern.search(before, begins)
        if found is not None:
            stop = found.groupdict().get("stop") or ""
            return before[: found.start()].rstrip(" ,;:-\n\t") + stop
    return None


def _joined(goal: str, after: str) -> str:
    """Return the goal with the text after the address."""
    rest = after.lstrip(" .,;!?>)\"'\n\t")
    if not rest:
        return goal.rstrip(".")
    return f"{goal} {rest}" if goal else rest
