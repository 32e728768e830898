"""Read-only commands for executions: list, show, events, logs, timeline, records."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias, Unpack, cast

import click

from pointsman.chat.conversations import SESSIONS
from pointsman.cli.app_opening import go, installation, session_at_prompt
from pointsman.cli.error_boundary import is_debugging
from pointsman.cli.options import json_option, store_option
from pointsman.cli.printing import escape_controls, message_lines, print_json, print_line, shown
from pointsman.cli.references import complete_workflow, execution_argument
from pointsman.cli.results import COLOURS, cost_text, outcome_lines, output_text
from pointsman.cli.times import TIME, TIME_HELP, distance, when, when_and_distance
from pointsman.executions.lists import ExecutionEntry
from pointsman.executions.public_events import DIALECTS, Dialect, view_in
from pointsman.executions.timeline import NodeUsageView, SpanView, TimelineView
from pointsman.executions.verbs import ExecutionFilters
from pointsman.values import Json, JsonObject, json_of

STATUSES: Final = (
    "pending",
    "running",
    "stopped",
    "waiting",
    "paused",
    "completed",
    "failed",
    "cancelled",
    "interrupted",
)


words_option: Final = click.option(
    "--words", type=click.Choice(DIALECTS), help="As JSON, with the names that a dialect uses for statuses and events."
)


@click.command("list")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(STATUSES),
    help="Only executions with this status. Repeatable.",
)
@click.option("--workflow", metavar="ID", shell_complete=complete_workflow, help="Only executions of this workflow.")
@click.option("--session", metavar="ID", help="Only executions of this conversation.")
@click.option("--search", metavar="WORDS", help="Only executions with all these words in input, output or error.")
@click.option("--trials", is_flag=True, help="Include partial runs.")
@click.option("--since", type=TIME, help=f"Only executions started then or later: {TIME_HELP}.")
@click.option("--until", type=TIME, help="Only executions started before.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Maximum number of entries.")
@json_option
@store_option
def list_(
    *,
    statuses: tuple[str, ...],
    workflow: str | None,
    session: str | None,
    search: str | None,
    trials: bool,
    since: float | None,
    until: float | None,
    limit: int,
    as_json: bool,
    store: str | None,
) -> None:
    """List executions, newest first. Times are local, with their offset from UTC."""
    filters: ExecutionFilters = {
        "statuses": statuses,
        "workflow": workflow,
        "session": session,
        "trials": trials,
        "since": since,
        "until": until,
        "limit": limit,
    }
    page = go(_list(store, search, **filters))
    if as_json:
        print_json({"executions": [*map(json_of, page)]})
        return
    if not page:
        click.echo("no executions", err=True)
    for entry in page:
        status = entry["status"]
        styled = click.style(f"{status:11}", fg=COLOURS.get(status, "yellow"))
        inside = "  sub-workflow" if entry["parent"] else ""
        inside += "  scripted" if entry["scripted"] else ""
        inside += "".join(f"  for {shown(reason)}" for reason in entry["waitingFor"])
        started = f"{when(entry['startedAt'])}  {distance(entry['startedAt']):10}"
        click.echo(f"{entry['executionId']}  {styled}  {started}  {shown(entry['workflowId'])}{inside}")


async def _list(store: str | None, search: str | None, **filters: Unpack[ExecutionFilters]) -> list[ExecutionEntry]:
    async with installation(store) as app:
        executions = session_at_prompt(app).executions
        if search is not None:
            return (await executions.search(search, **filters))["executions"]
        return (await executions.list(**filters))["executions"]


@click.command()
@execution_argument
@words_option
@json_option
@store_option
def show(execution: str, *, words: Dialect | None, as_json: bool, store: str | None) -> None:
    """Show the state of an execution: its path, open gates and output.

    With --debug also the printed and logged output of its tools.
    """
    view = go(_view(store, execution))
    if words is not None:
        view = view_in(words, view)
        as_json = True
    if as_json:
        print_json(view)
        return
    path = cast("list[str]", view["path"])
    name = " ".join(str(view[key]) for key in ("workflowId", "version") if view[key])
    click.echo(f"{shown(name)}, started {when_and_distance(view['startedAt'])}{_by_trigger(view)}")
    click.echo(f"path: {shown(' → '.join(path), chars_max=1000) or 'no step is finished'}")
    for name, value in cast(JsonObject, view["state"]).items():
        click.echo(f"  {shown(name)}: {shown(value, chars_max=200)}")
    for artifact in cast("list[JsonObject]", view["artifacts"]):
        click.echo(f"file      {shown(artifact['path'])}  {artifact['bytes']} bytes")
    for one in cast("list[JsonObject]", view["progress"]):
        click.echo("\n".join(message_lines(str(one["message"]))))
    for answer in cast("list[JsonObject]", view["answers"]):
        click.echo("\n".join(_answer(answer)))
    if view["output"] is not None:
        click.echo(f"output:\n{output_text(view['output'])}")
    for event in go(_gathered(store, execution, after=0, follow=False, words=None)) if is_debugging() else ():
        if printed := event.get("printed"):
            click.echo(f"{shown(event['step'])} printed:")
            click.echo("\n".join(f"  {escape_controls(line)}" for line in str(printed).splitlines()))
    for line in outcome_lines(view, stopped=False, store=store, lasting=True):
        click.echo(line)


def _by_trigger(view: JsonObject) -> str:
    """Return a note about what started the execution: a trigger by its id, or a request by its sender."""
    trigger = view["trigger"]
    if not isinstance(trigger, dict):
        return ""
    name = trigger.get("id") or trigger.get("by")
    return f" by {shown(trigger['kind'])}" + (f" {shown(name)!r}" if name else "")


def _answer(answer: JsonObject) -> list[str]:
    """Return lines about how a gate was answered, and what the answer changed."""
    author = "timeout" if answer["cause"] == "timeout" else answer["by"] or "anonymous"
    text = ": ".join(str(part) for part in (answer["action"], answer["comment"]) if part)
    changes = cast("list[JsonObject]", answer["changes"])
    return [
        f"{shown(answer['nodeId'])}: {shown(text)} ({shown(author)}, {when(answer['at'])})",
        *(f"  {shown(change['path'])}: {shown(change['before'])} → {shown(change['after'])}" for change in changes),
    ]


async def _view(store: str | None, execution: str) -> JsonObject:
    async with installation(store) as app:
        return json_of(await session_at_prompt(app).executions.inspect(execution))


@click.command()
@execution_argument
@click.option("--jsonl", is_flag=True, help="One JSON object per line.")
@click.option("--follow", is_flag=True, help="Wait for more events until the execution ends or waits.")
@click.option("--after", type=click.IntRange(0), default=0, metavar="SEQ", help="Only rows after this one.")
@words_option
@json_option
@store_option
def events(
    execution: str,
    *,
    jsonl: bool,
    follow: bool,
    after: int,
    words: Dialect | None,
    as_json: bool,
    store: str | None,
) -> None:
    """Print the journal of an execution: all events, in order.

    With --follow, --jsonl prints each event as it arrives, --json all of them at the end.
    """
    if as_json and jsonl:
        raise click.UsageError("--json and --jsonl exclude each other")
    if as_json:
        gathered = go(_gathered(store, execution, after=after, follow=follow, words=words))
        print_json({"events": cast("list[Json]", gathered)})
        return
    go(_events(store, execution, after=after, follow=follow, jsonl=jsonl, words=words))


async def _gathered(
    store: str | None, execution: str, *, after: int, follow: bool, words: Dialect | None
) -> list[JsonObject]:
    async with installation(store) as app:
        executions = session_at_prompt(app).executions
        events = await executions.follow(execution, after=after, follow=follow, words=words)
        return [event async for event in events]


async def _events(
    store: str | None, execution: str, *, after: int, follow: bool, jsonl: bool, words: Dialect | None
) -> None:
    async with installation(store) as app:
        executions = session_at_prompt(app).executions
        async for event in await executions.follow(execution, after=after, follow=follow, words=words):
            if jsonl or words is not None:
                print_line(event)
                continue
            facts = {key: value for key, value in event.items() if key not in HEAD and value not in (None, "", [], {})}
            details = "  ".join(f"{key}={shown(value, chars_max=60)}" for key, value in facts.items())
            place = click.style(f"{event['seq']:>5}.{event['n']}", dim=True)
            kind = click.style(f"{event['kind']:17}", fg="cyan")
            click.echo(f"{place}  {kind} {shown(event.get('step', ''))}  {details}".rstrip())


HEAD: Final = frozenset({"seq", "n", "at", "kind", "step", "node", "scope"})


@click.command()
@execution_argument
@json_option
@store_option
def timeline(execution: str, *, as_json: bool, store: str | None) -> None:
    """Show all steps as bars: work, waits, retries, one lane per node and branch; and the usage of each node."""
    view = go(_timeline(store, execution))
    if as_json:
        print_json(view)
        return
    for line in (*bar_lines(view), "", *account_lines(view)):
        click.echo(line)


async def _timeline(store: str | None, execution: str) -> TimelineView:
    async with installation(store) as app:
        return await session_at_prompt(app).executions.timeline(execution)


LABEL_CHARS_MAX: Final = 34
BARS_CHARS_MAX: Final = 80
LANES_MAX: Final = 200
BAR_MARKS: Final = {"work": "█", "gate": "◆", "wait": "·", "child": "▓", "parallel": "─"}
BAR_COLOURS: Final = {"failed": "red", "retried": "yellow", "cancelled": "bright_black", "open": "blue"}

Lane = tuple[str, str]


def bar_lines(timeline: TimelineView) -> list[str]:
    """Return the lanes, the scale, and a legend of the marks."""
    spans = timeline["spans"]
    whole = max(timeline["durationMs"], 0.001)
    lanes = _lanes(spans)
    label = min(LABEL_CHARS_MAX, max((len(_label(lane)) for lane in lanes.values()), default=0))
    width = max(20, min(BARS_CHARS_MAX, shutil.get_terminal_size().columns - label - 12))
    lines = [
        f"{_label(lane)[:label]:{label}} │{_bar(lane, whole, width)}│ {_took(lane, whole)}"
        for lane in [*lanes.values()][:LANES_MAX]
    ]
    if len(lanes) > LANES_MAX:
        lines.append(f"… and {len(lanes) - LANES_MAX} more lanes: `--json` lists them all")
    lines.append(f"{'':{label}} 0{seconds(whole):>{width}}")
    used = {span["kind"] for span in spans}
    lines.append("  ".join(f"{mark} {kind}" for kind, mark in BAR_MARKS.items() if kind in used))
    return lines


def _lanes(spans: list[SpanView]) -> dict[Lane, list[SpanView]]:
    """Group spans by node and branch, in the order they began; the lanes of a branch are adjacent."""
    lanes: dict[Lane, list[SpanView]] = {}
    for span in spans:
        lanes.setdefault((str(span["scope"]), span["node"]), []).append(span)
    first: dict[str, float] = {}
    for (scope, _), lane in lanes.items():
        first.setdefault(scope, lane[0]["startMs"])

    def place(item: tuple[Lane, list[SpanView]]) -> tuple[float, str, float]:
        scope, began = item[0][0], item[1][0]["startMs"]
        return (began, "", began) if scope == "[]" else (first[scope], scope, began)

    return dict(sorted(lanes.items(), key=place))


def _label(lane: list[SpanView]) -> str:
    scope = cast("list[JsonObject]", lane[0]["scope"])
    inside = "".join(f"{level['parallel']}[{level['branch']}] " for level in scope)
    return shown("  " * len(scope) + inside + lane[0]["name"])


def _bar(lane: list[SpanView], whole: float, width: int) -> str:
    cells = [" "] * width
    for span in lane:
        begin = span["startMs"]
        end = whole if span["endMs"] is None else span["endMs"]
        first = min(width - 1, int(begin / whole * width))
        last = max(first + 1, min(width, round(end / whole * width)))
        colour = BAR_COLOURS.get(span["status"])
        mark = BAR_MARKS[span["kind"]]
        cells[first:last] = [click.style(mark, fg=colour) if colour else mark] * (last - first)
    return "".join(cells)


def _took(lane: list[SpanView], whole: float) -> str:
    total = sum((whole if s["endMs"] is None else s["endMs"]) - s["startMs"] for s in lane)
    return seconds(total)


def seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.2f} s" if milliseconds >= 100 else f"{milliseconds:.1f} ms"


def _key(node: NodeUsageView) -> str:
    """Return the numbers of the keys that were used; without any (scripted runs), the number that the agent names."""
    if node["keysUsed"]:
        return ",".join(map(str, node["keysUsed"]))
    return "–" if node["keyIndex"] is None else str(node["keyIndex"])


def account_lines(timeline: TimelineView) -> list[str]:
    """Return a table of the usage of each node, with a total."""
    callers = [node for node in timeline["nodes"] if node["modelCalls"] or node["toolCalls"]]
    if not callers:
        return ["no model or tool was called"]
    names = max(5, *(len(shown(node["name"])) for node in callers))
    lines = [
        f"{'node':{names}}  {'calls':>5}  {'tools':>5}  {'tokens in':>9}  {'out':>7}  {'key':>4}  {'time':>9}  cost"
    ]
    for node in callers:
        key = _key(node)
        took = seconds(node["seconds"] * 1000)
        lines.append(
            f"{shown(node['name']):{names}}  {node['modelCalls']:>5}  {node['toolCalls']:>5}  {node['inputTokens']:>9}"
            f"  {node['outputTokens']:>7}  {key:>4}  {took:>9}  {cost_text(node['costUsd'], timeline['model'])}"
        )
    calls, tools = (sum(node[key] for node in callers) for key in ("modelCalls", "toolCalls"))
    tokens_in, tokens_out = (sum(node[key] for node in callers) for key in ("inputTokens", "outputTokens"))
    costs = [node["costUsd"] for node in callers if node["costUsd"] is not None]
    lines.append(
        f"{'all':{names}}  {calls:>5}  {tools:>5}  {tokens_in:>9}"
        f"  {tokens_out:>7}  {'':>4}  {'':>9}  {cost_text(sum(costs) if costs else None, timeline['model'])}"
    )
    return lines


RECORD_HEAD = ("session_id", "execution_id", "node", "created_at")


@click.command()
@click.argument("session")
@json_option
@store_option
def records(session: str, *, as_json: bool, store: str | None) -> None:
    """List the records of a session: its executions, and their writes by collection, oldest first."""
    view = go(_records(store, session))
    if as_json:
        print_json(view)
        return
    for name in (SESSIONS, *sorted(set(view) - {SESSIONS, "session_id"})):
        click.echo(click.style(name, bold=True))
        for one in cast("list[JsonObject]", view[name]):
            click.echo(f"  {one['created_at']}  {shown(one.get('node') or one['execution_id']):14}  {_record(one)}")


def _record(record: JsonObject) -> str:
    """Return the members of a record as one line."""
    facts: dict[str, Json] = {
        key: value for key, value in record.items() if key not in RECORD_HEAD and value is not None
    }
    if set(facts) == {"value"}:
        value = facts["value"]
        return shown(" ".join(value.split()) if isinstance(value, str) else value, chars_max=90)
    return "  ".join(f"{key}={shown(value, chars_max=40)}" for key, value in facts.items())


async def _records(store: str | None, session: str) -> JsonObject:
    async with installation(store) as app:
        return json_of(await session_at_prompt(app).conversations.records(session))


LogLevel: TypeAlias = Literal["info", "warning", "error"]
LEVEL_COLOURS: Final[dict[LogLevel, str | None]] = {"info": None, "warning": "yellow", "error": "red"}


class LogLine(NamedTuple):
    """One line of the log of an execution."""

    seq: int
    """The row of the journal."""
    at: float
    level: LogLevel
    node: str
    """Empty: the execution as a whole."""
    message: str

    def to_json(self) -> JsonObject:
        return {
            "seq": self.seq,
            "at": self.at,
            "level": self.level,
            "nodeId": self.node or None,
            "message": self.message,
        }


@click.command()
@execution_argument
@click.option("--follow", "-f", is_flag=True, help="Wait for more lines until the execution ends or waits.")
@click.option("--jsonl", is_flag=True, help="One JSON object per line.")
@json_option
@store_option
def logs(execution: str, *, follow: bool, jsonl: bool, as_json: bool, store: str | None) -> None:
    """Print what happened in an execution: steps, messages, printed output of tools, warnings, errors, answers.

    `events` prints the whole journal, `timeline` the durations.
    """
    if as_json and jsonl:
        raise click.UsageError("--json and --jsonl exclude each other")
    lines = go(_logs(store, execution, follow=follow, mode="json" if as_json else "jsonl" if jsonl else "text"))
    if as_json:
        print_json({"lines": [*lines]})


async def _logs(
    store: str | None, execution: str, *, follow: bool, mode: Literal["json", "jsonl", "text"]
) -> list[JsonObject]:
    """Print each line as it arrives; with `json`, return all of them instead."""
    lines: list[JsonObject] = []
    async with installation(store) as app:
        executions = session_at_prompt(app).executions
        async for event in await executions.follow(execution, after=0, follow=follow, words=None):
            for line in log_lines(event):
                if mode == "json":
                    lines.append(line.to_json())
                elif mode == "jsonl":
                    print_line(line.to_json())
                else:
                    _print(line)
    return lines


def _print(line: LogLine) -> None:
    level = click.style(f"{line.level:7}", fg=LEVEL_COLOURS[line.level])
    node = f"{shown(line.node)}: " if line.node else ""
    click.echo(f"{click.style(when(line.at), dim=True)}  {level}  {node}{shown(line.message)}")


def log_lines(event: JsonObject) -> Iterator[LogLine]:
    """Yield the lines for one event of a journal; most kinds of events have none."""
    message = _message(event)
    texts: list[tuple[LogLevel, str]] = []
    texts.extend(("info", f"printed: {text}") for text in str(event.get("printed") or "").splitlines())
    if message is not None:
        texts.extend((message[0], text) for text in message[1].splitlines())
    node = str(event.get("node", ""))
    for level, text in texts:
        yield LogLine(cast(int, event["seq"]), cast(float, event["at"]), level, node, text)


def _message(event: JsonObject) -> tuple[LogLevel, str] | None:
    """Return the level and the text of an event that people want to see."""
    match event["kind"]:
        case "step_failed":
            level: LogLevel = "error" if event.get("final", True) else "warning"
            return level, f"attempt {event['attempt']} failed: {_failure(event)}"
        case "leaving_failed":
            return "error", _failure(event)
        case "failed":
            return "error", f"the execution failed: {_failure(event)}"
        case "warned" | "limit_hit" | "interrupted":
            return "warning", str(event["message"])
        case "emitted" if event["name"] == "progress":
            return "info", shown(event.get("data"))
        case "gate_opened":
            return "info", f"waits for a person: {event['message']}"
        case "gate_closed":
            author = "the timeout" if event.get("cause") == "timeout" else event.get("by") or "anonymous"
            comment = f": {event['comment']}" if event.get("comment") else ""
            return "info", f"{author} answered {event['action']}{comment}"
        case "gate_voted":
            return "info", f"{event['by']} voted {event['action']}"
        case kind:
            text = _SIMPLE.get(str(kind))
            return None if text is None else ("info", text.format_map(_Fields(event)))


class _Fields(dict[str, Json]):
    """Members of an event for a text; absent ones are empty."""

    def __missing__(self, key: str) -> str:
        return ""


_SIMPLE: Final = {
    "started": "the execution of {workflow} started",
    "admitted": "the concurrency limit admits the execution",
    "step_started": "started",
    "attempt_started": "attempt {attempt} ({reason})",
    "step_succeeded": "completed",
    "step_cancelled": "cancelled",
    "event_awaited": "waits for the event {name}",
    "event_taken": "received its event",
    "worker_awaited": "{message}",
    "loop_round": "round {round}",
    "paused": "the execution was paused",
    "resumed": "the execution was resumed",
    "retried": "the execution is retried",
    "forked": "the execution was forked",
    "moved": "the execution continues with another definition",
    "steered": "a person changed the data",
    "compensation_began": "compensation begins",
    "cancelled": "the execution was cancelled {reason}",
    "completed": "the execution completed",
}
"""Kind of an event -> text, with members of the event."""


def _failure(event: JsonObject) -> str:
    failure = cast(JsonObject, event["failure"])
    return f"[{failure['code']}] {failure['message']}"
