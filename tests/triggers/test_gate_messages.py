"""Messages to people about gates: mail, Slack and Teams, with answer links, reminders and digests."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.settings import Settings
from pointsman.settings.sections import NotificationSettings
from pointsman.triggers import notifications
from pointsman.triggers.answer_links import ANSWER_LINKS
from pointsman.triggers.notice_formats import ITEMS_MAX, Item, NoticeLink, Notices, as_mail, as_slack, as_teams
from pointsman.triggers.notifications import Notifier
from pointsman.values import Json, JsonObject
from tests.installation import HandClock, noting, opened
from tests.tools.mail.server import PASSWORD, MailServer, mail_server

pytestmark = pytest.mark.integration

ADA: JsonObject = {"name": "ada", "address": "ada@example.org"}
BEN: JsonObject = {"name": "ben", "address": "ben@example.org", "groups": ["board"], "language": "de"}
LETTER = """\
pointsman: 1
id: letter
nodes:
  - id: ask
    type: human
    config:
      message: {en: "Send it?", de: "Abschicken?"}
      approvers: {byLink: true%s}
      options: [{value: approve}, {value: reject}]
      timeout: 2h
      onTimeout: reject
      %s
"""


def letter(approvers: str = "", more: str = "") -> Workflow:
    return Workflow.parse(LETTER % (approvers, more))


def by_mail(server: MailServer, *recipients: JsonObject, security: str = "none", **more: Json) -> Settings:
    return Settings.model_validate(
        {
            "server": {"url": "https://desk.example.org"},
            "mail": {
                "host": "127.0.0.1",
                "port": server.port,
                "security": security,
                "certificates": server.certificates,
                "username": "desk" if security == "starttls" else "",
                "password": PASSWORD if security == "starttls" else "",
                "sender": "Pointsman <pointsman@example.org>",
            },
            "notifications": {"people": {"format": "mail", "recipients": [*recipients], "answer_links": True, **more}},
        }
    )


class Desk:
    """An app, its notifier and its clock."""

    def __init__(self, app: Pointsman, clock: HandClock) -> None:
        self.app = app
        self.clock = clock
        self.notifier = Notifier(app.context)

    async def round(self, after_s: float = 0.0) -> None:
        self.clock.move(after_s)
        await self.notifier.round(self.clock.now())

    async def start(self, workflow: Workflow) -> Any:
        execution = await self.app.start(workflow)
        await execution.settled()
        return execution


@asynccontextmanager
async def desk(path: Path, settings: Settings, clock: HandClock | None = None) -> AsyncGenerator[Desk]:
    at = clock or HandClock()
    async with opened(path, at, settings=settings) as app:
        found = Desk(app, at)
        await found.round()
        yield found


def to(message: EmailMessage) -> str:
    return str(message["To"])


def plain(message: EmailMessage) -> str:
    part = message.get_body(("plain",))
    assert part is not None
    return str(part.get_content())


def html(message: EmailMessage) -> str:
    part = message.get_body(("html",))
    assert part is not None
    return str(part.get_content())


def token_in(message: EmailMessage) -> str:
    found = re.search(r"https://desk\.example\.org/answer#(\S+)", plain(message))
    assert found is not None
    return found[1]


@pytest.mark.parametrize("tls", ["none", "starttls", "tls"])
async def test_a_gate_is_mailed_with_a_link_over_each_kind_of_connection(tmp_path: Path, tls: str) -> None:
    async with (
        mail_server(tmp_path, tls=tls, login=tls == "starttls") as server,
        desk(tmp_path, by_mail(server, ADA, security=tls)) as one,
    ):
        execution = await one.start(letter(", users: [ada]"))
        await one.round(2)
        await one.round(2)
        link = await one.app.context[ANSWER_LINKS].read(token_in(server.taken[0]))
    (message,) = server.taken
    assert (to(message), str(message["Subject"])) == ("ada@example.org", "Your answer is needed: Send it?")
    assert f"https://desk.example.org/executions/{execution.id}" in plain(message)
    assert 'href="https://desk.example.org/answer#' in html(message)
    assert (link.caller.name, link.question.execution) == ("ada", execution.id)


async def test_each_recipient_gets_mail_in_their_language_if_the_gate_asks_them(tmp_path: Path) -> None:
    async with mail_server(tmp_path) as server, desk(tmp_path, by_mail(server, ADA, BEN)) as one:
        await one.start(letter(", groups: [board]"))
        await one.round(2)
    (message,) = server.taken
    assert (to(message), str(message["Subject"])) == ("ben@example.org", "Ihre Antwort wird gebraucht: Abschicken?")
    assert "Der Link ist nur für ben bestimmt." in plain(message)


async def test_the_next_level_of_an_escalation_is_mailed_at_the_deadline(tmp_path: Path) -> None:
    clock = HandClock()
    more = "escalation: [{approvers: {users: [ben], byLink: true}, timeout: 3h}]"
    async with mail_server(tmp_path) as server:
        settings = by_mail(server, ADA, BEN)
        async with desk(tmp_path, settings, clock) as one:
            execution = await one.start(letter(", users: [ada]", more))
            await one.round(2)
            assert [*map(to, server.taken)] == ["ada@example.org"]
        async with desk(tmp_path, settings, clock) as one:
            found = await one.app.open(execution.id)
            clock.move(7200)
            await found.settled()
            await one.round(2)
            link = await one.app.context[ANSWER_LINKS].read(token_in(server.taken[-1]))
    assert [*map(to, server.taken)] == ["ada@example.org", "ben@example.org"]
    assert link.caller.groups == ("board",)


@pytest.mark.parametrize("approvers", [", users: [ada]", "none"])
async def test_a_link_needs_the_key_of_the_document(tmp_path: Path, approvers: str) -> None:
    source = LETTER.replace("{byLink: true%s}", "{users: [ada]}") % ""
    async with mail_server(tmp_path) as server, desk(tmp_path, by_mail(server, ADA)) as one:
        await one.start(Workflow.parse(source) if approvers == "none" else letter(approvers))
        await one.round(2)
    (message,) = server.taken
    assert ("answer#" in plain(message)) is (approvers != "none")


async def test_a_link_needs_the_setting_of_the_operator(tmp_path: Path) -> None:
    async with mail_server(tmp_path) as server, desk(tmp_path, by_mail(server, ADA, answer_links=False)) as one:
        await one.start(letter())
        await one.round(2)
    (message,) = server.taken
    assert "answer#" not in plain(message) + html(message)


async def test_reminders_follow_until_the_gate_is_answered(tmp_path: Path) -> None:
    async with mail_server(tmp_path) as server:
        settings = by_mail(server, ADA, reminder_interval="10m", reminders_max=2)
        async with desk(tmp_path, settings) as one:
            await one.start(letter())
            other = await one.start(letter())
            await one.round(2)
            assert len(server.taken) == 2
            await other.answer("ask", "approve")
            for _ in range(5):
                await one.round(600)
            subjects = [str(message["Subject"]) for message in server.taken[2:]]
            assert subjects == ["Reminder: your answer is needed: Send it?"] * 2
            states = {notice.letter.state for notice in await one.notifier.outbox.list()}
            assert states == {"sent"}, "the reminder of the answered gate is deleted"


async def test_a_crash_after_sending_keeps_the_reminder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = HandClock()
    async with mail_server(tmp_path) as server:
        settings = by_mail(server, ADA, reminder_interval="10m")
        async with desk(tmp_path, settings, clock) as one:
            await one.start(letter())

            async def crash(*_: object) -> None:
                raise OSError("the power is gone")

            monkeypatch.setattr(one.notifier.outbox, "change", crash)
            monkeypatch.setattr(one.notifier.outbox, "_added", crash)
            with pytest.raises(OSError, match="power"):
                await one.round(2)
        monkeypatch.undo()
        async with desk(tmp_path, settings, clock) as one:
            await one.round(2)
            await one.round(600)
    assert str(server.taken[-1]["Subject"]).startswith("Reminder")


async def test_a_digest_is_one_mail_for_each_recipient_and_period(tmp_path: Path) -> None:
    async with (
        mail_server(tmp_path) as server,
        desk(tmp_path, by_mail(server, ADA, BEN, digest_interval="1h", events=["gate", "completed"])) as one,
    ):
        for _ in range(3):
            await one.start(letter())
        answered = await one.start(letter())
        await one.start(noting())
        await one.round(60)
        assert server.taken == [], "the period has not ended"
        await answered.answer("ask", "approve")
        await one.round(3600)
        mails = {to(message): message for message in server.taken}
        assert sorted(mails) == ["ada@example.org", "ben@example.org"]
        assert str(mails["ada@example.org"]["Subject"]) == "4 notices"
        assert str(mails["ben@example.org"]["Subject"]) == "4 Mitteilungen"
        assert plain(mails["ada@example.org"]).count("answer#") == 3, "not for the answered gate"
        links = re.findall(r"answer#(\S+)", plain(mails["ada@example.org"]))
        assert len({(await one.app.context[ANSWER_LINKS].read(token)).question for token in links}) == 3


async def test_refused_mail_is_retried_or_given_up_as_its_code_says(tmp_path: Path) -> None:
    async with mail_server(tmp_path) as server, desk(tmp_path, by_mail(server, ADA)) as one:
        server.refuses["data"] = "451 later"
        await one.start(letter())
        await one.round(2)
        (notice,) = await one.notifier.outbox.list()
        assert (notice.letter.state, notice.letter.attempts) == ("pending", 1)
        assert "mail-deferred" in notice.letter.error
        server.refuses["data"] = "554 never"
        await one.round(10)
        (notice,) = await one.notifier.outbox.list()
        assert notice.letter.state == "dead"
        assert "554: never" in notice.letter.error


@pytest.mark.parametrize("kind", ["slack", "teams", "json"])
async def test_a_channel_receives_its_format_with_a_link(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies: list[bytes] = []

    async def post(url: str, body: bytes, headers: object, *, private: bool, rules: object) -> int:
        bodies.append(body)
        return 200

    monkeypatch.setattr(notifications, "post", post)
    destination = {
        "format": kind,
        "url": "https://chat.example.org/hook",
        "recipients": [{"name": "board-channel"}],
        "answer_links": True,
    }
    settings = Settings.model_validate(
        {"server": {"url": "https://desk.example.org/"}, "notifications": {"chat": destination}}
    )
    async with desk(tmp_path, settings) as one:
        await one.start(letter())
        await one.round(2)
        (body,) = bodies
        found = re.search(rb"https://desk\.example\.org/answer#([\w=.-]+)", body)
        assert found is not None
        link = await one.app.context[ANSWER_LINKS].read(found[1].decode())
    assert link.caller.name == "board-channel"


HOSTILE = '<script>alert(1)</script> [x](https://evil.example) *b* <!channel> & "q"\nBcc: eve@example.org'


def hostile() -> Notices:
    return Notices(
        [Item("Kind", HOSTILE, ["Workflow: <b>w</b>"], [NoticeLink("Answer", "https://d.example/answer#t")])], "en"
    )


def test_texts_of_workflows_are_plain_text_in_mail() -> None:
    recipient = NotificationSettings.model_validate({"format": "mail", "recipients": [ADA]}).recipients[0]
    settings = Settings.model_validate({"mail": {"host": "h", "sender": "p@example.org"}}).mail
    assert settings is not None
    message = as_mail(hostile(), recipient, settings, key="k", at=0.0)
    assert message["Bcc"] is None
    assert "<script>" not in html(message)
    assert "&lt;script&gt;" in html(message)
    assert "&lt;b&gt;w" in html(message)


def test_texts_of_workflows_are_plain_text_in_slack_and_teams() -> None:
    slack = as_slack(hostile())
    assert slack["blocks"] == [
        {
            "type": "section",
            "text": {"type": "plain_text", "text": f"Kind\n\n{HOSTILE}\n\nWorkflow: <b>w</b>", "emoji": False},
        },
        {"type": "section", "text": {"type": "mrkdwn", "text": "<https://d.example/answer#t|Answer>"}},
    ]
    assert "<!channel>" not in str(slack["text"])
    teams: Any = as_teams(hostile())
    runs = [one for one in teams["attachments"][0]["content"]["body"] if one["type"] == "RichTextBlock"]
    assert runs[1]["inlines"] == [{"type": "TextRun", "text": HOSTILE, "weight": "Bolder"}]


def test_a_digest_names_how_many_notices_it_leaves_out() -> None:
    many = Notices([*hostile().items] * (ITEMS_MAX + 3), "de")
    blocks: Any = as_slack(many)["blocks"]
    assert len(blocks) <= 50, "the limit of Slack"
    assert blocks[-1]["text"]["text"] == "und 3 weitere"
    assert many.subject == f"{ITEMS_MAX + 3} Mitteilungen"


MAIL: JsonObject = {"format": "mail", "recipients": [ADA]}
HOOK: JsonObject = {"url": "https://chat.example.org"}


@pytest.mark.parametrize(
    ("destination", "message"),
    [
        ({"format": "mail"}, "`mail` needs `recipients`"),
        ({**MAIL, **HOOK}, "has no `url`"),
        ({**MAIL, "recipients": [ADA, ADA]}, "a name twice"),
        ({**MAIL, "recipients": [{"name": "a", "address": "a\nBcc: b@example.org"}]}, "is not a mail address"),
        ({"format": "slack"}, "needs a `url`"),
        ({**HOOK, "recipients": [ADA]}, "without `address`"),
        ({**HOOK, "answer_links": True}, "`answer_links` needs `recipients`"),
        ({**HOOK, "digest_interval": "1h"}, "is for the formats"),
        ({**MAIL, "reminder_interval": "5s"}, "at least one minute"),
        (MAIL, "set [mail]"),
        ({**HOOK, "recipients": [{"name": "a"}], "answer_links": True}, "needs `url` under [server]"),
    ],
)
def test_destinations_that_cannot_work_are_refused(destination: JsonObject, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Settings.model_validate({"notifications": {"people": destination}})
