"""`send_email`: a letter by the operator's mail server."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from pointsman.engine.failures import Failure
from pointsman.ports import ToolSpec
from pointsman.tools.failures import ToolFailed
from pointsman.tools.mail.addresses import AddressWrong, address_of, line_of, sender_of
from pointsman.tools.mail.config import MailSettings
from pointsman.tools.mail.letters import plain_letter
from pointsman.tools.mail.message import Letter, message_of
from pointsman.tools.tool import Limits, ToolContext
from pointsman.values import Json, JsonObject

NAME: Final = "send_email"
ADDRESSES_MAX: Final = 20
LIMITS: Final = Limits()

_ADDRESS: Final[JsonObject] = {"type": "string", "minLength": 3, "maxLength": 320}
_ADDRESSES: Final[JsonObject] = {
    "anyOf": [_ADDRESS, {"type": "array", "items": _ADDRESS, "minItems": 1, "maxItems": ADDRESSES_MAX}]
}
PARAMETERS: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "to": _ADDRESSES,
        "cc": _ADDRESSES,
        "subject": {"type": "string", "minLength": 1, "maxLength": 500},
        "body": {"type": "string", "minLength": 1, "maxLength": 1_000_000},
        "format": {"enum": ["markdown", "text"], "description": "`markdown` (default) is sent as plain text."},
    },
    "required": ["to", "subject", "body"],
    "additionalProperties": False,
}


class SendEmailTool:
    """One letter per call. Not idempotent: a call that is repeated after a crash may send it twice, under one id."""

    def __init__(
        self, settings: MailSettings, *, resolved: Callable[[str], str | None], now: Callable[[], datetime]
    ) -> None:
        """`resolved`: what a handle stands for."""
        self.name = NAME
        self.limits = LIMITS
        self._settings = settings
        self._resolved = resolved
        self._now = now
        self.spec = ToolSpec(
            name=NAME,
            description="Send an e-mail as plain text.",
            parameters=PARAMETERS,
            requires_approval=settings.requires_approval,
        )

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """{"messageId", "accepted", "refused"?}. Raises `ToolFailed`."""
        from pointsman.tools.mail.sending import send  # Most processes send nothing.

        try:
            letter = self._letter(arguments)
        except AddressWrong as why:
            raise ToolFailed(Failure(code="tool-arguments", message=str(why), hint=why.hint)) from why
        for address in letter.recipients:
            if not self._settings.allows(address):
                hint = "The operator can add it: [mail] `recipients`."
                raise ToolFailed(Failure(code="mail-not-allowed", message=f"{address!r} is not written to", hint=hint))
        message = message_of(letter, sender=sender_of(self._settings.sender), key=context.key, at=self._now())
        return await send(message, self._settings, password=self._password(), recipients=letter.recipients)

    def _letter(self, arguments: JsonObject) -> Letter:
        body = str(arguments["body"])
        return Letter(
            to=_addresses(arguments["to"]),
            cc=_addresses(arguments.get("cc")),
            subject=line_of(str(arguments["subject"]), "the subject"),
            body=body if arguments.get("format") == "text" else plain_letter(body),
        )

    def _password(self) -> str:
        if not self._settings.password:
            return ""
        found = self._resolved(self._settings.password)
        if found is None:
            hint = f"`mail.password` names {self._settings.password!r}: set it."
            raise ToolFailed(
                Failure(code="secret-missing", message="there is no password of the mail server", hint=hint)
            )
        return found


def _addresses(said: Json) -> list[str]:
    listed = said if isinstance(said, list) else [] if said is None else [said]
    return [*dict.fromkeys(address_of(str(one)) for one in listed)]
