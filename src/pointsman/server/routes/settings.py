"""Operations on the settings: read them, and change those that take effect at once, with the mail server."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Path, Response
from pydantic import Field

from pointsman.operations.settings_changes import (
    MAIL,
    MailSecurity,
    MailServerRequest,
    SettingsView,
    SettingView,
    TestedMail,
)
from pointsman.operations.verbs import OperationVerbs
from pointsman.server.context import CallerSession
from pointsman.server.operation import Operations
from pointsman.server.problems import JsonReply
from pointsman.server.routes.parameters import IfMatch, Match
from pointsman.server.schemas.answers import answers, example, refusals
from pointsman.server.schemas.requests import Body, JsonValue, sample

router = Operations(prefix="/api/settings", tags=["operations"])

SettingName = Annotated[str, Path(min_length=1, max_length=60, description="Name of the setting.")]
SETTING: Final[SettingView] = {
    "name": "language",
    "value": "de",
    "source": "app",
    "effect": "now",
    "fixedBy": "",
    "entered": "de",
    "changedAt": 1_763_700_000.0,
    "changedBy": "ada",
    "etag": '"0b1f6c0ad1e2c3d4"',
}
example(SettingView, SETTING)
example(SettingsView, {"version": "1.0.0", "store": "sqlite:///pointsman.db", "settings": [SETTING]})
example(TestedMail, {"sent": True, "error": ""})


@router.get("", verb=OperationVerbs.settings, responses=answers(SettingsView), summary="Read the settings")
async def read_settings(session: CallerSession) -> Response:
    """The settings in effect, each with its source; secrets are masked.

    Those with the effect `now` can be changed here, unless a file, a variable or an option has them. The others are
    changed there, and need a restart.
    """
    return JsonReply(await session.operations.settings())


class SettingBody(Body):
    """The value of a setting."""

    model_config = sample(value="de")
    value: JsonValue = Field(description="The value, as pointsman.toml states it.")


class MailServerBody(Body):
    """A mail server."""

    model_config = sample(
        host="smtp.example.com", username="desk", password="0badcafe", sender="Desk <desk@example.com>"
    )
    host: str = Field(min_length=1, max_length=253)
    port: int | None = Field(default=None, ge=1, le=65_535, description="Absent: the usual port of the security.")
    security: MailSecurity = Field(default="starttls", description="`starttls`, `tls`: encrypted, or not sent.")
    username: str = Field(default="", max_length=320, description="Empty: without login.")
    password: str | None = Field(
        default=None, max_length=1_000, description="Never shown again. Absent: the stored one."
    )
    sender: str = Field(min_length=3, max_length=500, description="`Name <address>`, or an address.")
    recipients: list[Annotated[str, Field(min_length=1, max_length=320)]] = Field(
        default_factory=lambda: ["*"],
        max_length=100,
        description="Patterns of the addresses that the tool `send_email` may write to.",
    )
    requires_approval: bool = Field(
        default=False, description="Whether a person must approve each mail of the tool `send_email`."
    )

    def request(self) -> MailServerRequest:
        """Return the request of the domain."""
        return MailServerRequest(
            host=self.host.strip(),
            port=self.port,
            security=self.security,
            username=self.username.strip(),
            password=self.password,
            sender=self.sender.strip(),
            recipients=tuple(self.recipients),
            requires_approval=self.requires_approval,
        )


class TryMailServerBody(MailServerBody):
    """A mail server, and who receives the test message."""

    model_config = sample(host="smtp.example.com", sender="desk@example.com", to="ada@example.com")
    to: str = Field(min_length=3, max_length=320, description="Mail address of the recipient.")


@router.put(
    "/mail",
    verb=OperationVerbs.save_mail_server,
    responses=answers(SettingView, "setting-invalid", "setting-fixed", "revision-moved", "vault-locked", body=True),
    summary="Save the mail server",
)
async def save_mail_server(session: CallerSession, body: MailServerBody, match: Match = None) -> Response:
    """Enter the server of notices by mail and of the tool `send_email`, with its password encrypted.

    Takes effect at once, in every process. A server of the settings file cannot be replaced.
    """
    view = await session.operations.save_mail_server(body.request(), match=match)
    return JsonReply(view, headers={"etag": view["etag"]})


@router.post(
    "/mail/test",
    verb=OperationVerbs.try_mail_server,
    responses=answers(TestedMail, "setting-invalid", "setting-fixed", body=True),
    summary="Test a mail server",
)
async def try_mail_server(session: CallerSession, body: TryMailServerBody) -> Response:
    """Send one test message. Nothing is saved. The answer states why it was not sent."""
    return JsonReply(await session.operations.try_mail_server(body.request(), body.to.strip()))


@router.delete(
    "/mail",
    verb=OperationVerbs.unset_setting,
    status_code=204,
    responses=refusals("no-such-setting", "revision-moved"),
    summary="Delete the mail server",
)
async def delete_mail_server(session: CallerSession, if_match: IfMatch = None) -> Response:
    """Delete the mail server that was entered, with its password."""
    await session.operations.unset_setting(MAIL, match=if_match)
    return Response(status_code=204)


@router.put(
    "/{name}",
    verb=OperationVerbs.change_setting,
    responses=answers(SettingView, "no-such-setting", "setting-invalid", "setting-fixed", "revision-moved", body=True),
    summary="Change a setting",
)
async def change_setting(session: CallerSession, name: SettingName, body: SettingBody, match: Match = None) -> Response:
    """Enter a setting that takes effect at once, in every process."""
    view = await session.operations.change_setting(name, body.value, match=match)
    return JsonReply(view, headers={"etag": view["etag"]})


@router.delete(
    "/{name}",
    verb=OperationVerbs.unset_setting,
    status_code=204,
    responses=refusals("no-such-setting", "revision-moved"),
    summary="Reset a setting",
)
async def unset_setting(session: CallerSession, name: SettingName, if_match: IfMatch = None) -> Response:
    """Delete what was entered for a setting. Its default takes effect."""
    await session.operations.unset_setting(name, match=if_match)
    return Response(status_code=204)
