"""`send_email` against a real server: encrypted, let in or not, refused now or for good, hanging and hanging up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest
from pydantic import ValidationError

from pointsman.app import Pointsman, Workflow
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall
from pointsman.settings import Settings, shown
from pointsman.tools.tool import ToolFailed
from pointsman.values import Json, JsonObject
from tests.tools.mail.server import PASSWORD, MailServer, mail_server

pytestmark = pytest.mark.integration

LETTER: JsonObject = {"to": "ann@example.org", "subject": "Größe", "body": "# Report\n\nDear [Name], **all** well."}


def installed(server: MailServer, **more: object) -> Pointsman:
    mail = {"host": "127.0.0.1", "port": server.port, "security": "none", "sender": "Desk <desk@example.org>", **more}
    secrets = {"MAIL": PASSWORD}
    return Pointsman(
        "memory:", settings=Settings.model_validate({"allow_email_sending": True, "mail": mail, "secrets": secrets})
    )


def with_login(server: MailServer, security: str, **more: object) -> Pointsman:
    known = {"username": "desk", "password": "secret.MAIL", "certificates": server.certificates}
    return installed(server, security=security, **{**known, **more})


async def sent(app: Pointsman, *, key: str = "k1", **changes: Json) -> JsonObject:
    call = ToolCall(id="1", name="send_email", arguments={**LETTER, **changes})
    return cast("JsonObject", await app.tools.call(call, key=key))


async def refusal(app: Pointsman, **changes: Json) -> Failure:
    with pytest.raises(ToolFailed) as caught:
        await sent(app, key="k1", **changes)
    return caught.value.failure


async def test_a_mail_arrives_as_plain_text(tmp_path: Path) -> None:
    async with mail_server(tmp_path) as server:
        told = await sent(installed(server), to=["ann@example.org", "bo@example.org"], cc="ann@example.org")
        (message,) = server.taken
        assert told == {"messageId": message["Message-ID"], "accepted": ["ann@example.org", "bo@example.org"]}
        assert server.envelopes == [("desk@example.org", ["ann@example.org", "bo@example.org"])]
        assert (message["From"], message["Subject"]) == ("Desk <desk@example.org>", "Größe")
        assert (message["To"], message["Cc"]) == ("ann@example.org, bo@example.org", "ann@example.org")
        assert message.get_content().strip().splitlines() == ["Report", "", "Dear, all well."]


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_a_mail_is_sent_encrypted_and_authenticated(tmp_path: Path, security: str) -> None:
    async with mail_server(tmp_path, tls=security, login=security == "starttls") as server:
        app = with_login(server, security) if security == "starttls" else with_login(server, security, username="")
        await sent(app)
        assert len(server.taken) == 1


async def test_a_wrong_password_is_reported_without_the_password(tmp_path: Path) -> None:
    async with mail_server(tmp_path, tls="starttls", login=True) as server:
        failure = await refusal(with_login(server, "starttls", password="not-the-word"))
        assert (failure.code, failure.retryable) == ("mail-login-refused", False)
        assert "not-the-word" not in repr(failure)
        assert (await refusal(with_login(server, "starttls", password="secret.NONE"))).code == "secret-missing"
        assert server.taken == []


async def test_an_untrusted_certificate_is_refused(tmp_path: Path) -> None:
    for security in ("starttls", "tls"):
        async with mail_server(tmp_path, tls=security) as server:
            failure = await refusal(with_login(server, security, certificates=""))
            assert (failure.code, server.taken) == ("mail-unreachable", [])


async def test_nothing_is_sent_without_encryption(tmp_path: Path) -> None:
    async with mail_server(tmp_path) as server:
        assert (await refusal(installed(server, security="starttls"))).code == "mail-unreachable"
        assert server.taken == []


@pytest.mark.parametrize("step", ["mail", "rcpt ann@example.org", "data"])
@pytest.mark.parametrize(
    ("said", "code", "retryable"),
    [("451 come back later", "mail-deferred", True), ("550 not here", "mail-refused", False)],
)
async def test_a_refusal_of_the_server_is_a_failure(
    tmp_path: Path, step: str, said: str, code: str, retryable: bool
) -> None:
    async with mail_server(tmp_path) as server:
        server.refuses[step] = said
        failure = await refusal(installed(server))
        assert (failure.code, failure.retryable) == (code, retryable)
        assert said[4:] in failure.message
        assert server.taken == []


async def test_other_recipients_receive_a_mail_that_one_refuses(tmp_path: Path) -> None:
    async with mail_server(tmp_path) as server:
        server.refuses["rcpt bo@example.org"] = "550 no such user"
        told = await sent(installed(server), to=["ann@example.org", "bo@example.org"])
        assert told["accepted"] == ["ann@example.org"]
        assert told["refused"] == {"bo@example.org": "550 no such user"}
        assert server.envelopes[0][1] == ["ann@example.org"]


@pytest.mark.parametrize("step", ["mail", "rcpt ann@example.org", "data"])
async def test_a_server_that_hangs_or_disconnects_is_a_retryable_failure(tmp_path: Path, step: str) -> None:
    async with mail_server(tmp_path) as server:
        server.hangs = step
        failure = await refusal(installed(server, timeout="0.2s"))
        assert (failure.code, failure.retryable) == ("mail-unreachable", True)
        server.hangs, server.drops = "", step
        failure = await refusal(installed(server))
        assert (failure.code, failure.retryable) == ("mail-unreachable", True)
        assert server.taken == []
    assert (await refusal(installed(server))).code == "mail-unreachable"


@pytest.mark.parametrize(
    "address",
    [
        "ann",
        "ann@",
        "@example.org",
        "ann@example",
        "ann@example..org",
        "ann@-example.org",
        "a nn@example.org",
        "ann@example.org,bo@example.org",
        "ann@example.org\r\nBcc: eve@example.org",
        "ann@example.org\n",
        "Ann <ann@example.org>",
        "<ann@example.org>",
        '"ann@evil"@example.org',
        "ann@example.org>",
        "änn@example.org",
        "ann@[127.0.0.1]",
        "a" * 65 + "@example.org",
        "ann@" + "a" * 64 + ".org",
        "ann.@example.org",
        "ann@exa\u2028mple.org",
    ],
)
async def test_an_invalid_address_is_refused(tmp_path: Path, address: str) -> None:
    async with mail_server(tmp_path) as server:
        assert (await refusal(installed(server), to=address)).code == "tool-arguments"
        assert (await refusal(installed(server), cc=["bo@example.org", address])).code == "tool-arguments"
        assert (server.taken, server.envelopes) == ([], [])


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r", "\u2028", "\x0b", "\x85", "\0"])
async def test_a_subject_cannot_become_a_header(tmp_path: Path, end: str) -> None:
    async with mail_server(tmp_path) as server:
        assert (await refusal(installed(server), subject=f"Hi{end}Bcc: eve@example.org")).code == "tool-arguments"
        assert server.taken == []


async def test_a_body_cannot_end_the_mail_or_begin_another(tmp_path: Path) -> None:
    body = "before\r\n.\r\nMAIL FROM:<eve@example.org>\r\nafter\n.\nend\r.\rlast"
    async with mail_server(tmp_path) as server:
        await sent(installed(server), body=body, format="text")
        (message,) = server.taken
        assert message.get_content().split() == body.split()
        assert message.keys() == [
            "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "Content-Type",
            "Content-Transfer-Encoding", "MIME-Version",
        ]  # fmt: skip


async def test_an_international_domain_is_used_in_its_ascii_form(tmp_path: Path) -> None:
    async with mail_server(tmp_path) as server:
        assert (await sent(installed(server), to="ann@bücher.example"))["accepted"] == ["ann@xn--bcher-kva.example"]


async def test_a_repeated_call_has_the_same_message_id(tmp_path: Path) -> None:
    async with mail_server(tmp_path) as server:
        app = installed(server)
        for key in ("one", "one", "two"):
            await sent(app, key=key)
        first, again, other = (message["Message-ID"] for message in server.taken)
        assert first == again != other
        assert str(first).endswith("@example.org>")


async def test_only_allowed_recipients_receive_mail(tmp_path: Path) -> None:
    async with mail_server(tmp_path) as server:
        app = installed(server, recipients=["*@example.org"])
        assert (await sent(app, to="ANN@EXAMPLE.ORG"))["accepted"] == ["ANN@example.org"]
        assert (await refusal(app, to=["ann@example.org", "eve@evil.example"])).code == "mail-not-allowed"
        assert len(server.taken) == 1


@pytest.mark.requirement("S2-42")
async def test_no_mail_is_sent_without_permission(tmp_path: Path) -> None:
    async with mail_server(tmp_path) as server:
        mail = {"host": "127.0.0.1", "port": server.port, "security": "none", "sender": "desk@example.org"}
        for settings in ({"mail": mail}, {"allow_email_sending": True}, {"mail": mail, "allow_email_sending": False}):
            app = Pointsman("memory:", settings=Settings.model_validate(settings))
            assert (await refusal(app)).code == "tool-disabled"
        assert server.taken == []


@pytest.mark.requirement("S2-46")
async def test_a_failed_mail_can_leave_the_execution_running(tmp_path: Path) -> None:
    node: JsonObject = {
        "id": "mail",
        "type": "tool",
        "execution": {"errorHandler": "continue"},
        "config": {"tool": "send_email", "parameters": LETTER},
        "outputs": {"sent": "result.error == null"},
    }
    workflow = Workflow.of({"id": "post", "nodes": [node], "edges": [], "output": {"email_sent": "sent == true"}})
    async with mail_server(tmp_path) as server:
        for refused, said in (("550 no", False), ("", True)):
            server.refuses = {"data": refused} if refused else {}
            async with installed(server) as app:
                assert await (await app.start(workflow)).output() == {"email_sent": said}


@pytest.mark.parametrize(
    "said",
    [
        {"host": "h", "sender": "no address"},
        {"host": "h", "sender": "Desk\r\nBcc: x@y.zz <desk@example.org>"},
        {"host": "h", "sender": "desk@example.org", "security": "none", "username": "desk"},
        {"host": "", "sender": "desk@example.org"},
        {"host": "h", "sender": "desk@example.org", "port": 70_000},
    ],
)
def test_impossible_settings_are_refused(said: JsonObject) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"mail": said})


def test_the_password_is_not_shown_with_the_settings() -> None:
    mail = {"host": "h", "sender": "desk@example.org", "username": "desk", "password": PASSWORD}
    assert PASSWORD not in json.dumps(shown(Settings.model_validate({"mail": mail})))
