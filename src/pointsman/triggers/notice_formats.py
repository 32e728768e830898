"""Notices as messages for people: texts in English and German, written as mail, for Slack and for Teams.

    notices ─▶ Item: title, facts, links ─┬▶ mail: plain text and HTML
                                          ├▶ Slack: blocks
                                          └▶ Teams: an adaptive card

Texts of workflows are data: each format writes them as plain text, so that they cannot add markup, links or headers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.message import EmailMessage
from html import escape
from string import Template
from typing import Final, NamedTuple

from pointsman.redaction import head
from pointsman.settings.sections import RecipientSettings
from pointsman.tools.mail import MailMessage, MailSettings, message_of, sender_of
from pointsman.values import Json, JsonObject

SUBJECT_CHARS_MAX: Final = 150
TITLE_CHARS_MAX: Final = 1000
"""Limit of a text; Slack accepts 3 000 characters, of which escapes may need five for each."""
ITEMS_MAX: Final = 20
"""Notices in one message; Slack accepts 50 blocks."""

TEST_EVENT: Final = "workflow.test"
"""The event of a message that an admin sends as a test."""
TEXTS: Final[Mapping[str, Mapping[str, str]]] = {
    "en": {
        "gate": "Your answer is needed",
        "reminder": "Reminder: your answer is needed",
        "completed": "Completed",
        "failed": "Failed",
        "cancelled": "Cancelled",
        "interrupted": "Stopped at a limit",
        "test": "Test",
        "digest": "$count notices",
        "more": "and $count more",
        "workflow": "Workflow: $name",
        "deadline": "Answer by: $time",
        "scripted": "A scripted model took part: the content may be made up.",
        "answer": "Answer",
        "open": "Open",
        "link": "The link is for $name alone. It accepts one answer, and is valid until $time. Do not forward it.",
    },
    "de": {
        "gate": "Ihre Antwort wird gebraucht",
        "reminder": "Erinnerung: Ihre Antwort wird gebraucht",
        "completed": "Abgeschlossen",
        "failed": "Fehlgeschlagen",
        "cancelled": "Abgebrochen",
        "interrupted": "An einer Grenze angehalten",
        "test": "Test",
        "digest": "$count Mitteilungen",
        "more": "und $count weitere",
        "workflow": "Ablauf: $name",
        "deadline": "Antwort bis: $time",
        "scripted": "Ein Skript-Modell war beteiligt: Der Inhalt kann erfunden sein.",
        "answer": "Antworten",
        "open": "Öffnen",
        "link": "Der Link ist nur für $name bestimmt. Er nimmt eine Antwort an und gilt bis $time. Bitte nicht "
        "weiterleiten.",
    },
}


def text(key: str, language: str, **values: object) -> str:
    """Return a text in a language; in English if there is none."""
    return Template(TEXTS.get(language, TEXTS["en"])[key]).substitute(values)


class NoticeLink(NamedTuple):
    """A link of a notice."""

    label: str
    url: str


class Item(NamedTuple):
    """One notice of a message."""

    kind: str
    """Heading: what happened, or is needed."""
    title: str
    facts: Sequence[str]
    links: Sequence[NoticeLink]


def item_of(body: JsonObject, language: str, *, page: str, answer: NoticeLink | None, note: str) -> Item:
    """Return a notice as text. `page`: the address of its execution; `note`: about the answer link."""
    about = _about(body)
    error = body.get("error")
    title = body.get("message") or (error.get("message") if isinstance(error, dict) else None) or body.get("reason")
    facts = [text("workflow", language, name=body["workflowId"])]
    if isinstance(deadline := body.get("deadline"), int | float):
        facts.append(text("deadline", language, time=moment(deadline)))
    if body.get("scripted"):
        facts.append(text("scripted", language))
    if note:
        facts.append(note)
    links = ([answer] if answer else []) + ([NoticeLink(text("open", language), page)] if page else [])
    return Item(text(about, language), head(str(title or body["workflowId"]), TITLE_CHARS_MAX), facts, links)


def _about(body: JsonObject) -> str:
    if body["event"] == "workflow.human.required":
        return "reminder" if body.get("reminder") else "gate"
    return {
        "workflow.complete": "completed",
        "workflow.failed": "failed",
        "workflow.cancelled": "cancelled",
        "workflow.interrupted": "interrupted",
        TEST_EVENT: "test",
    }[str(body["event"])]


def moment(at: float) -> str:
    """Return a time for people of any time zone."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


class Notices(NamedTuple):
    """The notices of one message."""

    items: Sequence[Item]
    language: str

    @property
    def shown(self) -> Sequence[Item]:
        return self.items[:ITEMS_MAX]

    @property
    def more(self) -> str:
        """A line about the notices that are not shown; empty: all are."""
        left = len(self.items) - len(self.shown)
        return text("more", self.language, count=left) if left else ""

    @property
    def subject(self) -> str:
        if len(self.items) > 1:
            return text("digest", self.language, count=len(self.items))
        (item,) = self.items
        return head(" ".join(f"{item.kind}: {item.title}".split()), SUBJECT_CHARS_MAX)


def as_mail(
    notices: Notices, recipient: RecipientSettings, settings: MailSettings, *, key: str, at: float
) -> EmailMessage:
    """Return the mail: plain text, and the same as HTML. `key`: a repeated mail has the same id."""
    plain = "\n\n".join([*map(_as_text, notices.shown), *([notices.more] if notices.more else [])])
    subject = "".join(one if one.isprintable() else " " for one in notices.subject)
    letter = MailMessage(to=[recipient.address], subject=subject, body=plain)
    message = message_of(letter, sender=sender_of(settings.sender), key=key, at=datetime.fromtimestamp(at, UTC))
    paragraphs = [*map(_as_html, notices.shown), *([f"<p>{escape(notices.more)}</p>"] if notices.more else [])]
    page = f'<!doctype html><html lang="{escape(notices.language)}"><body>{"<hr>".join(paragraphs)}</body></html>'
    message.add_alternative(page, subtype="html", charset="utf-8")
    return message


def _as_text(item: Item) -> str:
    links = [f"{link.label}: {link.url}" for link in item.links]
    return "\n".join([item.kind, "", item.title, "", *item.facts, *links])


def _as_html(item: Item) -> str:
    title = "<br>".join(map(escape, item.title.split("\n")))
    links = " &nbsp; ".join(f'<a href="{escape(link.url)}">{escape(link.label)}</a>' for link in item.links)
    facts = "<br>".join(map(escape, item.facts))
    return f"<p>{escape(item.kind)}</p><p><strong>{title}</strong></p><p>{links}</p><p>{facts}</p>"


def as_slack(notices: Notices) -> JsonObject:
    """Return the body for an incoming webhook of Slack."""
    blocks: list[Json] = []
    for item in notices.shown:
        lines = "\n".join([item.kind, "", item.title, "", *item.facts])
        blocks.append({"type": "section", "text": {"type": "plain_text", "text": lines, "emoji": False}})
        if item.links:
            links = " · ".join(map(_slack_link, item.links))
            blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": links}})
    if notices.more:
        blocks.append({"type": "section", "text": {"type": "plain_text", "text": notices.more}})
    return {"text": _slack(notices.subject), "blocks": blocks}


def _slack(words: str) -> str:
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _slack_link(link: NoticeLink) -> str:
    return f"<{_slack(link.url)}|{_slack(link.label)}>"


def as_teams(notices: Notices) -> JsonObject:
    """Return the body for a webhook of Microsoft Teams: a message with an adaptive card."""
    body: list[Json] = []
    for item in notices.shown:
        body += [
            _teams(item.kind, separator=True),
            _teams(item.title, weight="Bolder"),
            *(_teams(fact, size="Small") for fact in item.facts),
        ]
        actions: list[Json] = [{"type": "Action.OpenUrl", "title": one.label, "url": one.url} for one in item.links]
        if actions:
            body.append({"type": "ActionSet", "actions": actions})
    if notices.more:
        body.append(_teams(notices.more))
    card: JsonObject = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "fallbackText": notices.subject,
        "body": body,
    }
    content: JsonObject = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [content]}


def _teams(words: str, *, separator: bool = False, **look: str) -> JsonObject:
    """Return a paragraph. Texts of runs are not read as Markdown, unlike those of text blocks."""
    run: JsonObject = {"type": "TextRun", "text": words, **look}
    return {"type": "RichTextBlock", "separator": separator, "inlines": [run]}
