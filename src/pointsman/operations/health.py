"""Health of an app: conditions that an operator should fix before they cause failures, and damage of the store.

The findings, shown by `doctor`, concern the machine, the sandbox, stuck executions, secrets that cannot be decrypted,
lost notices, and the deployment: readable files, unprotected connections, keys without expiry, left-over files.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from msgspec.structs import replace

from pointsman.auth.audit import Audit
from pointsman.auth.keys import Keys
from pointsman.auth.vault import VAULT
from pointsman.context import AppContext
from pointsman.errors import OperatorError, PointsmanError
from pointsman.executions.deletion import PAGE, summaries
from pointsman.executions.fork_migrate_replay import interrupted, undo_interrupted
from pointsman.models.transport import is_scripted
from pointsman.operations.model_connections import connected_records
from pointsman.operations.workers import workers_report
from pointsman.runtime.passivation import Passivation
from pointsman.settings import FILE, Settings, config_directory
from pointsman.store.errors import LeaderExists
from pointsman.store.records import ExecutionQuery, Summary
from pointsman.store.sqlite.connection import path_of
from pointsman.tools.files import UNFINISHED
from pointsman.tools.sandbox.interpreter import interpreter
from pointsman.tools.sandbox.process import Sandbox, SandboxMissing, find_sandbox
from pointsman.triggers.notifications import Outbox
from pointsman.values import ExecutionId, JsonObject

Severity: TypeAlias = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """A condition the operator should know about, and what to do about it."""

    severity: Severity
    code: str
    message: str
    hint: str = ""
    fixable: bool = False
    """Whether `doctor --fix` can apply the hint without risk."""

    def to_json(self) -> JsonObject:
        return {
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "fixable": self.fixable,
            "mendable": self.fixable,  # Its former name.
        }


ROOM_BYTES_MIN: Final = 256 * 1024 * 1024
"""Below this much free space the disk is likely to fill up soon."""
STUCK_S: Final = 3600.0
"""A running execution that has written nothing for so long is probably not being executed."""
OVERDUE_S: Final = 60.0
WAITED_S: Final = 86_400.0
"""An event awaited for so long may be one that no system publishes."""
LISTED_MAX: Final = 5


async def findings(app: AppContext) -> list[HealthFinding]:
    """Return all findings, the most severe first. Reads lists, not journals; `damage` reads everything."""
    found = [HealthFinding("warning", "store", text) for text in app.store.warnings()]
    found += _room(app)
    found += _model_and_tools(app)
    found += [finding async for finding in _servers(app)]
    found += [one async for one in _sandbox(app)]
    found += [finding async for finding in _executions(app)]
    found += [one async for one in deployment(app)]
    found += [finding async for finding in _workers(app)]
    found += [finding async for finding in secret_problems(app)]
    unused = await app.store.removal.sweep(dry_run=True)
    if unused.blobs:
        message = f"{unused.blobs} contents ({unused.bytes} bytes) are unused"
        found.append(HealthFinding("note", "unused-contents", message, "`pointsman gc` deletes them.", fixable=True))
    if copies := await interrupted(app):
        message = f"{_names([copy.executions[0] for copy in copies])}: a fork or import of them was interrupted"
        hint = "`pointsman gc` deletes the remains; fork or import again."
        found.append(HealthFinding("note", "interrupted-copies", message, hint, fixable=True))
    order = ("error", "warning", "note")
    return sorted(found, key=lambda one: order.index(one.severity))


async def repair(app: AppContext, findings: list[HealthFinding]) -> list[HealthFinding]:
    """Fix what can be fixed without risk. Return the findings that were fixed."""
    fixed = [finding for finding in findings if finding.fixable]
    if fixed:
        await undo_interrupted(app)
        await app.store.removal.sweep()
    return fixed


def _room(app: AppContext) -> Iterator[HealthFinding]:
    if not app.settings.store_url.startswith("sqlite:"):
        return
    directory = path_of(app.settings.store_url).parent
    free = shutil.disk_usage(Path(directory)).free
    if free < ROOM_BYTES_MIN:
        message = f"{directory} has {free // 1000000} MB of free space"
        yield HealthFinding("error", "little-room", message, "Free disk space: a full disk stops every execution.")


def _model_and_tools(app: AppContext) -> Iterator[HealthFinding]:
    if app.services.model is not None and is_scripted(app.services.model):
        message = "the scripted model is set for every agent: the answers are made up"
        yield HealthFinding("warning", "scripted-model", message, "Remove `scripted`, and set a model of a provider.")
    elif not app.settings.has_provider() and not connected_records(app):
        message = "no model provider is configured: workflows that call a model are refused"
        hint = "`pointsman models connect openai` connects one; or use made-up answers: --model scripted."
        yield HealthFinding("warning", "no-provider", message, hint)
    elif not app.services.models.choice.default:
        message = "no default model is set: agents without a model cannot run"
        hint = "`pointsman models default MODEL` chooses one, or `model` in pointsman.toml."
        yield HealthFinding("note", "no-default-model", message, hint)
    for broken in app.tools.broken_modules:
        yield HealthFinding("error", broken.code, str(broken), broken.hint)
    for name in app.tools.names():
        try:
            app.tools.find(name)
        except PointsmanError as why:
            yield HealthFinding("error", "tool", f"tool {name!r}: {why}", why.hint)


async def _servers(app: AppContext) -> AsyncIterator[HealthFinding]:
    """Yield a finding for each MCP server that does not answer. Connects to every server."""
    await app.tools.prepare_all()
    for failure in app.tools.servers().values():
        if failure is not None:
            printed = (failure.details or {}).get("stderr")
            message = f"{failure.message}\n{printed}" if printed else failure.message
            yield HealthFinding("error", failure.code, message, failure.hint)


async def sandbox_in_use(settings: Settings) -> str:
    """Return the name of the sandbox for code and commands; empty if there is none. Runs a program
    in it to find out."""
    try:
        return (await asyncio.to_thread(_sandbox_of, settings)).name
    except SandboxMissing:
        return ""


def _sandbox_of(settings: Settings) -> Sandbox:
    return find_sandbox(settings.sandbox.box)


async def _sandbox(app: AppContext) -> AsyncIterator[HealthFinding]:
    try:
        await asyncio.to_thread(_sandbox_of, app.settings)
        interpreter()
    except SandboxMissing as why:
        severity = "error" if app.settings.commands else "note"
        yield HealthFinding(severity, "sandbox-missing", f"{why}: everything that needs it is refused", why.hint)
    for finding in _commands(app):
        yield finding


def _commands(app: AppContext) -> Iterator[HealthFinding]:
    for name, command in app.settings.commands.items():
        if not os.access(command.program, os.X_OK):
            hint = f"Install it, or correct `commands.{name}.argv` in the settings."
            yield HealthFinding(
                "error",
                "command-missing",
                f"the program {command.program!r} of the command {name!r} does not exist",
                hint,
            )


async def _executions(app: AppContext) -> AsyncIterator[HealthFinding]:
    """Yield findings about executions that should proceed but do not."""
    now = app.clock.now()
    stuck, overdue, orphans = list[Summary](), list[Summary](), list[Summary]()
    waiting: defaultdict[str, list[Summary]] = defaultdict(list)
    open_ = frozenset({"pending", "running", "waiting", "paused", "interrupted"})
    async for summary in summaries(app, ExecutionQuery(statuses=open_, limit=PAGE)):
        if summary.parent is not None and await app.store.executions.find(summary.parent) is None:
            orphans.append(summary)
        elif summary.wakes is not None and summary.wakes < now - OVERDUE_S:
            overdue.append(summary)
        elif summary.status == "running" and summary.wakes is None and summary.updated < now - STUCK_S:
            stuck.append(summary)
        elif summary.wakes is None and summary.updated < now - WAITED_S:
            for event in summary.awaits:
                waiting[event].append(summary)
    for event, executions in sorted(waiting.items()):
        hint = f"`pointsman publish {event}` sends it to all of them; `pointsman cancel EXECUTION` cancels one."
        yield HealthFinding(
            "note", "unheard", f"{_named(executions)}: waiting for the event {event!r} for over a day", hint
        )
    resume = "`pointsman resume EXECUTION` continues one; a running worker (`pointsman worker`) continues all of them."
    if overdue or stuck:
        yield await _leader(app)
    if overdue:
        yield HealthFinding(
            "warning", "overdue", f"{_named(overdue)}: a timer is overdue, and no worker handled it", resume
        )
    if stuck:
        yield HealthFinding("warning", "stuck", f"{_named(stuck)}: no row was written for an hour", resume)
    if orphans:
        hint = "`pointsman cancel EXECUTION`, then `pointsman delete EXECUTION`."
        yield HealthFinding("warning", "orphans", f"{_named(orphans)}: the execution that started it was deleted", hint)


async def _leader(app: AppContext) -> HealthFinding:
    """Return whether a leader executes for the store. The check acquires the leadership
    for a moment."""
    try:
        leadership = await app.store.lead("doctor")
    except LeaderExists as why:
        return HealthFinding("note", "kept", str(why), "Check there why it does not continue them.")
    await leadership.release()
    message = "no worker leads the store: timers do not fire, and interrupted executions do not continue"
    return HealthFinding("warning", "nobody-keeps", message, "Run `pointsman worker`.")


async def _workers(app: AppContext) -> AsyncIterator[HealthFinding]:
    """Yield a finding for each queue without workers, and for processes that differ or share limits by name only."""
    report = await workers_report(app)
    for queue in report["queues"]:
        if queue["waiting"] and not queue["workers"]:
            message = f"{queue['waiting']} steps wait, because no worker of the queue {queue['queue']!r} runs"
            hint = f"Start one: pointsman worker --queue {queue['queue']}"
            yield HealthFinding("warning", "queue-unserved", message, hint)
    versions = sorted({worker["version"] for worker in report["workers"]})
    if len(versions) > 1:
        message = f"processes of different releases share the store: {', '.join(versions)}"
        hint = "Executions continue. Finish the upgrade: stop the processes of the older release."
        yield HealthFinding("note", "versions-differ", message, hint)
    runtimes = [] if app.store.claims is None else await app.store.claims.runtimes()
    drivers = [one.facts for one in runtimes if one.facts.role in ("server", "worker") and not one.facts.queues]
    engines = sorted({facts.engine or "no engine" for facts in drivers})
    if len(engines) > 1:
        message = f"processes of one store use different engines: {', '.join(engines)}"
        hint = "Each execution has one owner, and all continue. Give all servers and workers the same `runtime`."
        yield HealthFinding("warning", "engines-differ", message, hint)
    served = {facts.engine for facts in drivers if facts.role == "server" and facts.engine}
    for engine in sorted(served - {facts.engine for facts in drivers if facts.role == "worker"}):
        message = f"no worker of this store uses {engine}: what servers start here waits"
        hint = "Start one with the same store: pointsman worker --runtime …. Workers of other stores do not help."
        yield HealthFinding("warning", "no-workers", message, hint)
    limited = [name for name, one in app.settings.providers.items() if one.concurrency or one.calls_max]
    if len(drivers) > 1 and limited:
        message = (
            f"`concurrency` and `calls_max` of {_names(sorted(limited))} count in each of {len(drivers)} processes"
        )
        hint = (
            "Divide them by the number of processes. `day`, and with `shared` also the intervals, count in the store."
        )
        yield HealthFinding("note", "limits-multiply", message, hint)


async def secret_problems(app: AppContext) -> AsyncIterator[HealthFinding]:
    """Yield a finding for each problem. Otherwise such a secret is noticed only when a call fails, and a lost
    notification only by the person who waits for it.
    """
    with suppress(OperatorError):  # The store is unavailable: the last values count.
        await app[VAULT].refresh()
    closed: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for name, why in sorted(app[VAULT].closed.items()):
        closed[why.code, why.hint].append(name)
    for (code, hint), names in closed.items():
        secrets = _names([f"secret.{name}" for name in names])
        message = f"{secrets}: stored, but cannot be decrypted here ({code})"
        yield HealthFinding("error", "secret-closed", message, hint)
    letters = [stored.letter for stored in await Outbox(app).list()]
    dead = Counter(letter.to for letter in letters if letter.state == "dead")
    for to, count in sorted(dead.items()):
        why = next(letter.error for letter in letters if letter.state == "dead" and letter.to == to)
        hint = "`pointsman notifications list` lists them, `pointsman notifications retry ID` sends one again."
        yield HealthFinding("warning", "notices-given-up", f"{count} notices to {to!r} were given up: {why}", hint)


OTHERS: Final = stat.S_IROTH | stat.S_IWOTH
LEFTOVER_AGE_S: Final = 3600.0
"""Age after which the files of an unknown execution count as left over; a younger one may just be starting."""


async def deployment(app: AppContext) -> AsyncIterator[HealthFinding]:
    """Yield the findings. Network and keys are checked only if the store has API keys: before that, the product serves
    one user."""
    for finding in _readable_by_others(app.settings):
        yield finding
    keys = await Keys(app.store.entries, app.clock).all()
    if keys:
        for one in _reached(app.settings):
            yield one
        if endless := [key.name for key in keys if key.expires is None]:
            hint = "Create new ones with `pointsman keys add NAME --days 90`, and revoke these."
            yield HealthFinding("note", "endless-keys", f"keys that never expire: {_names(sorted(endless))}", hint)
        if expired := [key.name for key in keys if not key.is_good_at(app.clock.now())]:
            hint = "`pointsman keys revoke NAME` deletes one."
            yield HealthFinding("note", "expired-keys", f"keys that have expired: {_names(sorted(expired))}", hint)
    if left := await _left_over(app):
        directory = app.settings.files.directory if app.settings.files else ""
        message = f"{directory}: {_names(sorted(left))} belong to no execution of this store"
        hint = "If no other store uses that directory, delete them."
        yield HealthFinding("note", "left-over-files", message, hint)


def _readable_by_others(settings: Settings) -> Iterator[HealthFinding]:
    """Yield a finding for each private file that every user of this machine can read or change; none on Windows, where
    the mode of a file does not state who can."""
    if sys.platform == "win32":
        return
    private = [path for path in (config_directory() / FILE, Path(FILE)) if _says_secrets(path)]
    if settings.store_url.startswith("sqlite:"):
        private.append(path_of(settings.store_url))
    for path in private:
        mode = _mode(path)
        if mode is None or not mode & OTHERS or _is_shut(path.absolute().parent):
            continue
        severity = "warning" if mode & stat.S_IWOTH or path.name == FILE else "note"
        can = "change" if mode & stat.S_IWOTH else "read"
        yield HealthFinding(severity, "open-file", f"all users of this machine can {can} {path}", f"chmod o-rwx {path}")


def _says_secrets(path: Path) -> bool:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any(word in text for word in ("[secrets]", "keys", "password", "secret"))


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except OSError:
        return None


def _is_shut(directory: Path) -> bool:
    """Return whether a parent directory denies other users access."""
    return any(not (_mode(above) or 0) & stat.S_IXOTH for above in (directory, *directory.parents))


def _reached(settings: Settings) -> Iterator[HealthFinding]:
    server = settings.server
    local = server.host in ("localhost", "::1") or server.host.startswith("127.")
    if server.names and not server.proxies:
        message = "`server.names` is set, so a proxy is expected, but `server.proxies` is empty"
        hint = 'All callers appear with the address of the proxy. Set its address: proxies = ["127.0.0.1/32"].'
        yield HealthFinding("note", "proxy-unknown", message, hint)
    if not local and not server.proxies:
        message = f"the server listens on {server.host} without TLS: keys are sent unencrypted"
        hint = "Listen on 127.0.0.1, and use a proxy with TLS: docs/how-to/deploying.md."
        yield HealthFinding("warning", "no-tls", message, hint)


async def _left_over(app: AppContext) -> list[str]:
    """Return the directories of executions that this store does not contain. Another store may, so they are reported,
    not deleted."""
    if app.settings.files is None:
        return []
    there = await asyncio.to_thread(_directories, app.settings.files.directory, app.clock.now() - LEFTOVER_AGE_S)
    return [name for name in there if await app.store.executions.find(ExecutionId(name)) is None]


def _directories(root: str, before: float) -> list[str]:
    """Return the directories of executions with plain names that were last changed before this time."""
    try:
        with os.scandir(Path(root).expanduser()) as entries:
            return sorted(
                entry.name
                for entry in entries
                if entry.is_dir(follow_symlinks=False)
                and not entry.name.startswith(("x-", UNFINISHED))
                and entry.stat(follow_symlinks=False).st_mtime < before
            )
    except OSError:
        return []


def _named(some: list[Summary]) -> str:
    return _names([one.execution for one in some])


def _names(some: Sequence[str]) -> str:
    shown = ", ".join(some[:LISTED_MAX])
    return shown if len(some) <= LISTED_MAX else f"{shown} and {len(some) - LISTED_MAX} more"


async def damage(app: AppContext) -> list[str]:
    """Return every contradiction in the store, one sentence each. Reads everything."""
    names: list[str] = []
    names += await app.store.verify()
    names += await Audit(app.store.entries, app.clock).damage()
    async for listed in summaries(app, ExecutionQuery(limit=PAGE)):
        if (wrong := await _contradiction(app, listed)) is not None:
            names.append(wrong)
    return names


async def _contradiction(app: AppContext, listed: Summary) -> str | None:
    """Return a sentence if the list contradicts the journal of an execution."""
    try:
        state = await app.runtime.load(listed.execution)
    except PointsmanError as why:
        return f"execution {listed.execution!r} is in the list, but cannot be read: {why}"
    true = Passivation(state).summary(listed.execution, state)
    if state.outbox or state.steps_without_worker or listed.wakes == state.at:
        true = replace(true, wakes=listed.wakes)  # Due now or soon: the time in the list may differ.
    if listed.status == "running":  # Its entry may lack the last tool calls.
        true = replace(true, spent=replace(true.spent, tool_calls=listed.spent.tool_calls))
    if _as_listed(true) == _as_listed(listed):
        return None
    now = await app.store.executions.find(listed.execution)
    if now is None or now != listed:
        return None  # Another process changed it between the two reads.
    return f"the list entry of execution {listed.execution!r} differs from its journal"


def _as_listed(summary: Summary) -> Summary:
    """Return the summary without fields that may change without an update of the list."""
    return replace(summary, updated=summary.started, owner="", worker="", gates=None)


async def store_answers(app: AppContext) -> bool:
    """Return whether the store can be read now."""
    try:
        await app.store.executions.list(ExecutionQuery(limit=1))
    except PointsmanError:
        return False
    return True
