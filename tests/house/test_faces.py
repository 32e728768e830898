"""Faces translate requests and call verbs: no layer below the domains, no check of rights, no audit entry."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import pytest

from pointsman.auth.audit import Audit
from tests.house.sources import files, parse

BEHIND: Final = {"runtime", "store", "executors", "dialects", "models", "tools", "ports", "engine"}
FACES: Final = ("src/pointsman/cli", "src/pointsman/mcp", "src/pointsman/server")
STREAMING: Final = "src/pointsman/server/streaming/"
"""The broker of the streams reads committed rows and live output: it has no verb to call for them."""
TYPES_OF: Final[dict[str, set[str]]] = {
    "pointsman.auth.policy": set(),
    "pointsman.auth.audit": {"Audit", "AuditEntryView", "AuditPage", "AuditState"},
    "pointsman.auth.sharing": {"AUDIENCES", "Audience", "Sharing", "SharingView", "sharing_etag", "sharing_view"},
}
"""Types of answers, which faces document and print. `Audit` counts failed logins, which have no caller."""
WRITING: Final = {name for name in vars(Audit) if name.startswith("record_")}
"""Methods of `Audit` that write entries."""


@pytest.mark.parametrize("face", FACES)
def test_every_face_has_modules_to_check(face: str) -> None:
    assert files(face)


def test_faces_never_reach_behind_the_app() -> None:
    reached: set[str] = set()
    for path in files(*FACES):
        if str(path).startswith(STREAMING):
            continue
        for node in ast.walk(parse(path)):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            reached |= {
                f"{path}: {name}"
                for name in modules
                if {*name.split(".")[:2]} > {"pointsman"} and name.split(".")[1] in BEHIND
            }
    assert reached == set(), "call a verb through `app.acting_as(caller)` instead"


def test_faces_import_no_check_of_rights() -> None:
    imported = {
        f"{path}: {node.module}.{one.name}"
        for path in files(*FACES)
        for node in ast.walk(parse(path))
        if isinstance(node, ast.ImportFrom) and node.module in TYPES_OF
        for one in node.names
        if one.name not in TYPES_OF[node.module]
    }
    assert imported == set(), "check rights in the body of the verb: see auth/verbs.py"


def test_the_front_door_has_at_most_250_lines() -> None:
    assert len(Path("src/pointsman/app.py").read_text().splitlines()) <= 250, "it forwards to the domains"


def test_faces_write_no_audit_entry() -> None:
    assert {"record_request", "record_refusal", "record_outcome"} == WRITING
    written = {
        f"{path}: audit.{called.attr}"
        for path in files(*FACES)
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call) and isinstance(called := node.func, ast.Attribute) and called.attr in WRITING
        if isinstance(called.value, ast.Attribute) and called.value.attr == "audit"
    }
    assert written == set(), "the decorator `@verb` writes the entry: see auth/verbs.py"


OF_THE_PROCESS: Final = {
    "keep_leading": "the worker role",
    "leading": "the worker role",
    "working": "the worker role",
    "serving_queues": "the worker role",
    "logging_to": "logs",
    "telemetry_of": "telemetry",
    "model_state": "the warning about scripted answers at the start of a server",
    "watch_deltas": "partial output of executions that this process runs",
    "watch_progress": "progress of executions that this process runs",
    "readiness": "GET /ready, without a caller",
    "once": "idempotency keys, under the rights of the verb that they protect",
    "join": "the stream of an execution that the route has checked",
    "SseBroker": "streams",
    "Measuring": "metrics",
    "Workbench": "the session of an MCP client",
    "find_publication": "the link of a visitor without an account, which it verifies",
    "chat_page_view": "the chat of a verified link",
    "conversation_for_visitor": "a conversation whose name the server signed for the visitor",
    "form_view": "the form of a verified link",
    "run_view": "a run whose name the server signed for the visitor",
}
"""Functions that faces may give the context: services of the process. All others are called by verbs."""


def test_faces_give_the_context_to_services_of_the_process_only() -> None:
    given = {
        f"{path}: {getattr(node.func, 'id', getattr(node.func, 'attr', '?'))}"
        for path in files(*FACES)
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call)
        if any(isinstance(one, ast.Attribute) and one.attr == "context" for one in node.args)
    }
    assert {one for one in given if one.rpartition(": ")[2] not in OF_THE_PROCESS} == set(), (
        "call a verb, or name the service in OF_THE_PROCESS with a reason"
    )


EMBEDDED: Final = {
    *(
        "public_events",
        "dry_run",
        "executions",
        "fork",
        "library",
        "look",
        "memory",
        "move",
        "open",
        "places",
        "publish",
    ),
    *("reach", "replay", "save", "schedule", "source", "start", "state_and_events", "storage", "triggers", "view"),
}
"""Members of the app for programs that embed it: they check no rights. Faces call verbs instead."""


def test_faces_use_no_member_of_the_app_that_checks_no_rights() -> None:
    used = {
        f"{path}: app.{node.attr}"
        for path in files(*FACES)
        if not str(path).startswith(STREAMING)
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Attribute) and node.attr in EMBEDDED
        if getattr(node.value, "id", getattr(node.value, "attr", "")) == "app"
    }
    assert used == set()
