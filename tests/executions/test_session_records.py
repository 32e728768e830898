"""Records of a session, which later processes read from the journals."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import cast

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.auth.subjects import InputInvalid, UnknownSession
from pointsman.chat.conversations import SessionRecords, free_session, records_of
from pointsman.chat.verbs import parse_command
from pointsman.settings import Settings
from pointsman.store.records import Summary
from pointsman.values import Json, JsonObject, json_of
from pointsman.workflows.scripts import load_script
from tests.tools.mail.server import MailServer, mail_server

EXAMPLE = Path(__file__).parents[2] / "examples" / "agentforge"
COMMAND = "Write a proposal for optimizing warehouse operations, send to john@example.com"


def pipeline(store: str, server: MailServer | None = None, **more: object) -> Pointsman:
    """Return an app that may send mail if there is a server."""
    settings: dict[str, object] = {"delays": False, "store": store, **more}
    if server is not None:
        settings["mail"] = {
            "host": "127.0.0.1",
            "port": server.port,
            "security": "none",
            "sender": "Desk <desk@example.org>",
        }
        settings = {"allow_email_sending": True, **settings}
    return Pointsman(
        settings=Settings.model_validate(settings), model="scripted", script=load_script(EXAMPLE / "script.yaml")
    )


async def ran(app: Pointsman, command: str = COMMAND) -> tuple[str, JsonObject]:
    """Return the session of a completed command, and the view of its execution."""
    session = await free_session(app.context)
    asked = parse_command(command)
    execution = await app.start(Workflow.load(EXAMPLE / "agentforge.yaml"), asked.input, session=session)
    assert await execution.settled() == "completed"
    return session, json_of(await execution.view())


def listed(found: SessionRecords, name: str) -> list[JsonObject]:
    return cast("list[JsonObject]", json_of(found).get(name, []))


@pytest.mark.requirement("S2-06")
async def test_a_new_session_has_an_unused_name(monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter(["ses_00000001", "ses_00000001", "ses_00000002"])
    async with pipeline("memory:") as app:
        assert re.fullmatch(r"ses_[0-9a-f]{8}", await free_session(app.context))
        monkeypatch.setattr("pointsman.chat.conversations.new_session", lambda: next(names))
        first, _ = await ran(app)
        second, _ = await ran(app)
    assert (first, second) == ("ses_00000001", "ses_00000002")


@pytest.mark.integration
@pytest.mark.requirement("S2-07", "S2-21", "S2-27", "S2-32", "S2-45", "S2-63")
async def test_records_are_found_by_their_session_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'records.db'}"
    async with mail_server(tmp_path) as server, pipeline(store, server) as app:
        session, view = await ran(app)
        await ran(app, "Write a memo")
    async with Pointsman(settings=Settings(store=store)) as later:
        found = await records_of(later.context, session)
    assert list(found) == ["session_id", "sessions", "plans", "research", "documents", "actions"]
    (began,) = listed(found, "sessions")
    assert (began["session_id"], began["goal"], began["email"], began["status"]) == (
        session,
        "Write a proposal for optimizing warehouse operations",
        "john@example.com",
        "completed",
    )
    assert datetime.fromisoformat(str(began["created_at"])).timestamp() == pytest.approx(
        cast(float, view["startedAt"]), abs=0.001
    )
    output = cast(JsonObject, view["output"])
    assert [one["value"] for one in listed(found, "plans")] == [output["plan"]]
    assert [one["value"] for one in listed(found, "research")] == [output["research"]]
    assert [one["value"] for one in listed(found, "documents")] == [output["writer"], output["reviewer"]]
    report, sent = listed(found, "actions")
    assert (report["type"], report["confidence_score"], report["details"]) == (
        "confidence_report",
        75,
        output["confidence"],
    )
    assert (sent["type"], sent["to"], sent["execution_id"]) == ("email_sent", "john@example.com", view["executionId"])
    assert str(began["created_at"]) < str(report["created_at"]) <= str(sent["created_at"])


async def test_a_field_is_its_own_collection_by_default() -> None:
    document: JsonObject = {
        "id": "plain",
        "nodes": [
            {"id": "a", "type": "transform", "config": {"set": {"draft": "1 + 1"}}},
            {"id": "b", "type": "transform", "config": {"set": {"draft": "draft + 1"}}},
        ],
        "edges": [{"source": "a", "target": "b"}],
    }
    async with pipeline("memory:") as app:
        execution = await app.start(Workflow.of(document), {}, session="ann")
        await execution.settled()
        found = await records_of(app.context, "ann")
        assert [(one["node"], one["value"]) for one in listed(found, "draft")] == [("a", 2), ("b", 3)]
        with pytest.raises(UnknownSession):
            await records_of(app.context, "bob")
        for name in ("", "a\x00b", "x" * 1000):
            with pytest.raises(InputInvalid):
                await records_of(app.context, name)


async def test_records_of_a_hidden_workflow_are_hidden() -> None:
    async def nobody(execution: Summary) -> bool:
        return execution.workflow != "agentforge"

    async with pipeline("memory:") as app:
        session, _ = await ran(app)
        with pytest.raises(UnknownSession):
            await records_of(app.context, session, sees=nobody)


@pytest.mark.integration
@pytest.mark.requirement("S2-42", "S2-43", "S2-44", "S2-49", "S2-67", "S2-O8", "T2-14")
async def test_the_document_is_mailed_with_its_metrics_to_the_recipient_of_the_command(tmp_path: Path) -> None:
    async with mail_server(tmp_path) as server, pipeline("memory:", server) as app:
        _, view = await ran(app)
        (letter,) = server.taken
    assert letter["To"] == "john@example.com"
    assert letter["Subject"] == "AgentForge Report: " + "Write a proposal for optimizing warehouse operations"[:50]
    body = str(letter.get_content()).replace("\r\n", "\n")
    assert body.startswith("Warehouse Optimization Proposal (REVISED)\n"), "the reviewer's document, as plain text"
    assert body.rstrip().endswith("Quality Metrics:\n- Confidence: 75%\n- Hallucination Risk: medium")
    assert cast(JsonObject, view["output"])["email_sent"] is True


@pytest.mark.integration
@pytest.mark.requirement("S2-42")
@pytest.mark.parametrize(
    ("command", "settings"),
    [("Write a memo", {}), (COMMAND, {"allow_email_sending": False}), (COMMAND, {"mail": None})],
)
async def test_no_mail_is_sent_without_a_recipient_or_permission(
    tmp_path: Path, command: str, settings: dict[str, object]
) -> None:
    async with mail_server(tmp_path) as server:
        if "allow_email_sending" in settings:
            app = pipeline("memory:")
        elif settings:
            app = pipeline("memory:", None, allow_email_sending=True)
        else:
            app = pipeline("memory:", server)
        async with app:
            session, view = await ran(app, command)
            actions = listed(await records_of(app.context, session), "actions")
        assert server.taken == []
    assert cast(JsonObject, view["output"])["email_sent"] is False
    assert [one["type"] for one in actions] == ["confidence_report"]
    assert ("mail" in cast("list[Json]", view["path"])) is (command == COMMAND)


@pytest.mark.integration
@pytest.mark.requirement("S2-45", "S2-46")
async def test_a_refused_mail_is_reported_and_the_document_is_kept(tmp_path: Path) -> None:
    async with mail_server(tmp_path) as server, pipeline("memory:", server) as app:
        server.refuses = {"data": "550 no"}
        session, view = await ran(app)
        actions = listed(await records_of(app.context, session), "actions")
    output = cast(JsonObject, view["output"])
    assert (output["email_sent"], str(output["final"])[:11]) == (False, "# Warehouse")
    assert [one["type"] for one in actions] == ["confidence_report"]
    (error,) = cast("list[JsonObject]", view["errors"])
    assert (error["code"], error["nodeId"]) == ("mail-refused", "mail")
    assert "The mail to john@example.com was not sent" in json.dumps(view["progress"])
