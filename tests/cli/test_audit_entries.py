"""Commands that change something have an audit entry; commands that only read have none."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from pointsman.cli.entry import root
from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written
from tests.cli.test_serving import STORE

ASIDE: frozenset[str] = frozenset({"test", "demo"})
"""They use temporary stores."""
GO_BETWEENS: frozenset[str] = frozenset({"worker", "serve", "mcp"})
LOOK: frozenset[str] = frozenset(
    {
        "folders list",
        "audit",
        "check",
        "completion",
        "convert",
        "datasets list",
        "datasets show",
        "events",
        "inbox",
        "keys list",
        "list",
        "logs",
        "memory get",
        "memory history",
        "memory list",
        "memory search",
        "notifications list",
        "records",
        "replay",
        "schedules list",
        "schedules next",
        "schema",
        "secrets list",
        "show",
        "templates list",
        "templates show",
        "templates try",
        "timeline",
        "usage",
        "verify",
        "workflows diff",
        "workflows get",
        "workflows list",
        "workflows versions",
    }
)
OUTSIDE: frozenset[str] = frozenset({"init", "secrets init", "tools import"})
"""They write files only."""

BY_VERBS: frozenset[str] = frozenset(
    {
        "answer",
        "backup",
        "bulk",
        "cancel",
        "chat",
        "delegate",
        "delete",
        "doctor",
        "export",
        "fork",
        "gc",
        "import",
        "keys add",
        "keys revoke",
        "datasets delete",
        "datasets save",
        "eval",
        "models connect",
        "models default",
        "models disconnect",
        "memory append",
        "memory delete",
        "memory reindex",
        "memory restore",
        "memory set",
        "move",
        "notifications retry",
        "notifications revoke-links",
        "pause",
        "publish",
        "restore",
        "resume",
        "retry",
        "run",
        "schedules add",
        "schedules delete",
        "schedules pause",
        "schedules resume",
        "schedules run",
        "secrets allow",
        "secrets delete",
        "secrets disallow",
        "secrets rotate",
        "secrets set",
        "settings mail",
        "settings set",
        "settings unset",
        "templates use",
        "folders add",
        "folders delete",
        "folders rename",
        "folders share",
        "workflows clone",
        "workflows delete",
        "workflows design",
        "workflows edit",
        "workflows move",
        "workflows publish",
        "workflows rollback",
        "workflows save",
        "workflows unpublish",
        "signal",
        "steer",
        "workflows share",
    }
)
"""They call a verb of a domain, which writes the entry."""


def commands() -> dict[str, click.Command]:
    """Return every command by its path."""
    found: dict[str, click.Command] = {}

    def walk(group: click.Group, path: str) -> None:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            found[f"{path}{name}"] = command
            if isinstance(command, click.Group):
                walk(command, f"{path}{name} ")

    walk(root, "")
    return found


@pytest.fixture(autouse=True)
def login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "grace")


def told(prompt: Prompt, store: list[str] = STORE) -> list[tuple[str, str, str | None]]:
    """Return command, target and refusal of each audit entry, oldest first."""
    deeds = prompt("audit", "--json", *store).json["deeds"]
    assert {(one["who"], one["entrance"]) for one in deeds} <= {("grace", "shell")}
    return [(one["what"].removeprefix("pointsman "), one["target"], one["refused"]) for one in reversed(deeds)]


def test_every_command_declares_whether_it_changes_data() -> None:
    said = ASIDE | GO_BETWEENS | LOOK | OUTSIDE | BY_VERBS
    assert {path for path, one in commands().items() if not isinstance(one, click.Group)} == said


def test_a_changed_setting_is_audited_without_its_value(prompt: Prompt) -> None:
    assert prompt("settings", "set", "language", "de", *STORE).code == 0
    assert told(prompt) == [("settings set", "name=language", None)]


def test_commands_on_executions_are_audited_with_their_user(prompt: Prompt) -> None:
    flow = written("letter.yaml", flows.APPROVAL)
    execution = prompt("run", flow, "-i", "goal=ships", *STORE, "--json").json["executionId"]
    other = prompt("run", flow, "-i", "goal=tides", *STORE, "--json").json["executionId"]
    assert prompt("show", execution, *STORE).code == 0
    assert prompt("answer", execution, "review", "approve", "--as", "ann", *STORE).code == 0
    assert prompt("cancel", other, "--reason", "a secret reason", *STORE).code == 0
    assert told(prompt) == [
        ("run", f"workflow=letter.yaml, executionId={execution}", None),
        ("run", f"workflow=letter.yaml, executionId={other}", None),
        ("answer", f"execution={execution}, node=review, by=ann", None),
        ("cancel", f"execution={other}", None),
    ]
    assert prompt("verify", *STORE).code == 0


def test_commands_on_workflows_and_the_store_are_audited(prompt: Prompt) -> None:
    flow = written("letter.yaml", flows.APPROVAL)
    for command in (
        ("workflows", "save", flow),
        ("workflows", "share", "letter"),
        ("workflows", "share", "letter", "--with", "groups", "--group", "desk"),
        ("schedules", "add", "letter", "--every", "1h", "--id", "hourly"),
        ("schedules", "delete", "hourly"),
        ("memory", "set", "color", "hidden", "--shared", "team"),
        ("gc", "--dry-run"),
        ("gc",),
        ("workflows", "delete", "letter"),
    ):
        printed = prompt(*command, *STORE)
        assert printed.code == 0, printed.err
    assert told(prompt) == [
        ("workflows save", "file=letter.yaml, id=letter, revision=1", None),
        ("workflows share", "workflow=letter, audience=groups, groups=desk", None),
        ("schedules add", "workflow=letter, id=hourly", None),
        ("schedules delete", "schedule=hourly", None),
        ("memory set", "key=color, shared=team", None),
        ("gc", "", None),
        ("workflows delete", "workflow=letter", None),
    ]


def test_refused_commands_are_audited_with_the_reason(prompt: Prompt) -> None:
    prompt("list", *STORE)
    assert prompt("cancel", "exec-none", *STORE).code == 2
    assert told(prompt) == [("cancel", "execution=exec-none", "unknown-execution")]


def test_a_restore_is_audited_after_the_entries_of_the_backup(prompt: Prompt) -> None:
    prompt("workflows", "save", written("letter.yaml", flows.APPROVAL), *STORE)
    assert prompt("backup", "monday.backup", *STORE).code == 0
    there = ["--store", "sqlite:///there.db"]
    assert prompt("restore", "monday.backup", *there).code == 0
    assert told(prompt, there) == [
        ("workflows save", "file=letter.yaml, id=letter, revision=1", None),
        ("backup", "file=monday.backup", None),
        ("restore", "file=monday.backup", None),
    ]
    assert prompt("restore", "monday.backup", *there).code == 1
    assert len(told(prompt, there)) == 3, "nothing was restored"
    assert prompt("verify", *there).code == 0


def test_secrets_never_enter_the_audit_log(prompt: Prompt) -> None:
    assert prompt("secrets", "init").code == 0
    assert prompt("secrets", "set", "MAIL", *STORE, stdin="hunter2-of-mail\n").code == 0
    assert told(prompt) == [("secrets set", "name=MAIL", None)]
    assert b"hunter2" not in b"".join(path.read_bytes() for path in Path().glob("store.db*"))
