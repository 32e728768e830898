"""What became of an execution: its output for pipes, its story for people, its exit code for scripts."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime
from typing import Final, cast

import click

from pointsman.cli.error_boundary import CANCELLED, FAILED, is_debugging
from pointsman.cli.printing import harmless, print_json, say, shown
from pointsman.executions.concurrency_limits import QueuePosition
from pointsman.executions.views import SCRIPTED, short_digest
from pointsman.store.errors import masked_address
from pointsman.values import Json, JsonObject

WAITING: Final = 3
INTERRUPTED: Final = 4
CODES: Final = {
    "completed": 0,
    "failed": FAILED,
    "waiting": WAITING,
    "paused": WAITING,
    "interrupted": INTERRUPTED,
    "cancelled": CANCELLED,
}
WAITING_WORD: Final = click.style("waiting", fg="yellow", bold=True)
WARNING_WORD: Final = click.style("warning", fg="yellow")
MADE_UP: Final = "answers are made up"
"""In the last line of an execution that the scripted model answers in."""
COLOURS: Final = {"completed": "green", "failed": "red", "cancelled": "red", "running": "blue"}


def code_of(status: str, *, stopped: bool = False) -> int:
    """The exit code for a status; one that still runs goes on in another process."""
    return CANCELLED if stopped else CODES.get(status, 0)


def say_scripted() -> None:
    """Warn that the scripted model answers."""
    say(f"warning: {SCRIPTED['message']}")


def print_outcome(view: JsonObject, *, as_json: bool, stopped: bool, store: str | None, lasting: bool) -> int:
    """Print an execution as `run` leaves it; the exit code."""
    status = str(view["status"])
    if as_json:
        print_json(view)
    else:
        if status == "completed" and view["output"] is not None:
            click.echo(output_text(view["output"]))
        for line in story(view, stopped=stopped, store=store, lasting=lasting):
            click.echo(line, err=True)
    return code_of(status, stopped=stopped)


def output_text(output: Json) -> str:
    """A text as it is, the rest as JSON."""
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, indent=2)


def at_store(store: str | None) -> str:
    """What a command line needs so that it finds the same store."""
    return f" --store {shlex.quote(masked_address(store))}" if store is not None else ""


def queued_lines(standing: QueuePosition | None, there: str) -> list[str]:
    """Whose end an execution waits for that has no place yet, and how to leave the line."""
    if standing is None:
        return []
    group, execution = standing.group, standing.execution
    times = "once" if group.most == 1 else f"{group.most} times"
    before = f", and {standing.ahead} stand in line before it" if standing.ahead else ""
    return [
        f"waiting for a place: {group.name!r} runs {times} at a time, now as {', '.join(standing.holders)}{before}",
        f"  → Ctrl-C leaves it in line: pointsman resume {execution}{there} waits again.",
        f"  → To take it out: pointsman cancel {execution}{there}",
    ]


def story(view: JsonObject, *, stopped: bool, store: str | None, lasting: bool) -> list[str]:
    """What happened and what to do next, line by line."""
    execution, status = str(view["executionId"]), str(view["status"])
    there = at_store(store)
    failures = _objects(view["errors"]) if status in ("failed", "interrupted", "paused") else []
    lines = [*dict.fromkeys(_failure(one) for one in failures)]
    lines += [
        f"{WARNING_WORD} {shown(one['message'])}"
        for one in _objects(view["warnings"])
        if one["code"] != SCRIPTED["code"]  # The summary says it, and `run` said it at the start.
    ]
    gates = _objects(view["waiting"])
    for gate in gates:
        lines += _gate(gate)
        target, name = address(gate, gates, execution)
        choice = _results(gate) if gate["about"] == "client" else "|".join(_options(gate)) or "ACTION"
        if lasting:
            lines.append(f"  → pointsman answer {target} {name} {choice} --digest {short_digest(gate)}{there}")
        else:
            lines.append(f"  → --answer {name}={choice}")
    for one in _objects(view["awaiting"]):
        lines.append(f"{WAITING_WORD} at {shown(one['nodeId'])!r} for the event {shown(one['event'])!r}")
        if lasting:
            lines.append(f"  → pointsman signal {execution} {shown(one['event'])} JSON{there}")
    for one in _objects(view["waitingFor"]):
        lines.append(f"{WAITING_WORD} at {shown(one['nodeId'])!r} for {shown(one['reason'])}")
    lines += _timer_lines(_objects(view["timers"]))
    if view["waitingFor"] and lasting:
        lines.append(
            "  → This process lacks it. A process that has it goes on: one that started the execution and still"
        )
        lines.append(f"    runs, `pointsman serve` or `keep` with it, or there: pointsman resume {execution}{there}")
    lines.append(_summary(view, stopped=stopped))
    if not lasting and status in ("waiting", "paused", "interrupted", "failed", "running"):
        lines.append(
            "  → The store was memory, so this execution is gone. Give one that lasts: --store sqlite:///file.db"
        )
    elif stopped:
        lines.append(f"  → Go on with it: pointsman resume {execution}{there}")
    elif status == "failed" and view["compensation"] is not None:
        lines.append(
            "  → What it had done was undone, so it cannot be retried. Once its cause is mended, run it again."
        )
    elif status in NEXT:
        lines.append(f"  → {NEXT[status].format(execution=execution)}{there}")
    return lines


TIMERS: Final = {
    "wait": "until {at}",
    "delay": "until {at}, when it starts",
    "retry": "until {at}, when it is tried again",
    "event": "for its event until {at} at the latest",
    "join": "for its branches until {at} at the latest",
}
"""Texts of what a step waits for, by the purpose of its timer; gates show their own."""


def _timer_lines(timers: list[JsonObject]) -> list[str]:
    """Return a line for each timer of a step. `_gate` shows the timers of gates."""
    return [
        f"{WAITING_WORD} at {shown(one['nodeId'])!r} {shown(TIMERS[str(one['purpose'])].format(at=when(one['at'])))}"
        for one in timers
        if one["purpose"] in TIMERS
    ]


def when(at: Json) -> str:
    """Format an instant in local time."""
    return datetime.fromtimestamp(cast(float, at), UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


NEXT: Final = {
    "failed": "Once its cause is mended: pointsman retry {execution}",
    "paused": "Go on with it: pointsman resume {execution}",
    "stopped": "The process that worked on it has ended. Go on with it: pointsman resume {execution}",
    "interrupted": "Go on with a higher limit: pointsman resume {execution} --limit NAME=NUMBER",
}


def _summary(view: JsonObject, *, stopped: bool) -> str:
    status = "stopped" if stopped else str(view["status"])
    usage = cast(JsonObject, view["usage"])
    duration = cast(float, view["durationMs"]) / 1000
    parts = [_counted(view["steps"], "step"), f"{duration:.1f} s"]
    if usage["modelCalls"]:
        cached = f" ({usage['cacheReadTokens']} cached)" if usage["cacheReadTokens"] else ""
        tokens = f"{usage['inputTokens']}{cached} → {usage['outputTokens']} tokens"
        parts.append(
            f"{_counted(usage['modelCalls'], 'model call')}, {tokens}, {cost_text(usage['costUsd'], view['model'])}"
        )
    if view["model"]:
        parts.append(f"model: {shown(view['model'])}")
    if view["scripted"]:
        parts.append(click.style(MADE_UP, fg="yellow"))
    styled = click.style(status, fg=COLOURS.get(status, "yellow"), bold=True)
    return f"{styled} {view['executionId']} ({'; '.join(parts)})"


def cost_text(cost: Json, model: Json) -> str:
    """Unknown is not zero; what the scripted model says costs nothing."""
    if model == "scripted":
        return "free"
    return f"${cost:.4f}" if isinstance(cost, int | float) else "no price known"


def _counted(number: Json, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _failure(failure: JsonObject) -> str:
    node = f" in {shown(failure['nodeId'])!r}" if failure.get("nodeId") else ""
    details = cast("JsonObject", failure.get("details") or {})
    node += "".join(f" › {shown(one['nodeId'])!r}" for one in _objects(details.get("within") or []))
    hint = f"\n  → {shown(failure['hint'])}" if failure.get("hint") else ""
    more = "".join(f"\n{line}" for line in _evidence(details))
    return (
        f"{click.style('error', fg='red', bold=True)} [{failure['code']}]{node} {shown(failure['message'])}{hint}{more}"
    )


def _evidence(details: JsonObject) -> list[str]:
    """What helps to find the cause: where the author's code failed, with its traceback where somebody debugs, what it
    printed, and what a model answered instead of what it was asked for."""
    lines: list[str] = []
    if isinstance(source := details.get("expression"), str) and isinstance(column := details.get("column"), int):
        before = source[: column - 1].rpartition("\n")
        line = source[len(before[0]) + len(before[1]) :].partition("\n")[0]
        lines += [f"  {harmless(line)}", f"  {' ' * len(harmless(before[2]))}^"]
    for name, told in (("body", "the provider answered"), ("data", "the service answered")):
        if isinstance(said := details.get(name), str) and said:
            lines.append(f"  {told}: {shown(said, chars_max=600)}")
    if isinstance(answer := details.get("answer"), str):
        lines.append(f"  the last answer of the model: {shown(answer, chars_max=600)}")
    traceback = details.get("traceback")
    if not isinstance(traceback, str):
        return lines
    if isinstance(where := details.get("where"), str):
        lines.append(f"  at {shown(where)}")
    if not is_debugging():
        return [*lines, "  --debug shows the traceback"]
    lines += [f"  {harmless(line)}" for line in traceback.splitlines()]
    if isinstance(printed := details.get("output"), str):
        lines += ["  it printed:", *(f"  {harmless(line)}" for line in printed.splitlines())]
    return lines


def _gate(gate: JsonObject) -> list[str]:
    """What a person is asked, and who is."""
    lines = [f"{WAITING_WORD} at {shown(gate['nodeId'])!r}: {shown(gate['message'])}", *looked_at(gate)]
    if gate["form"] is not None:
        lines.append(f"  data by this schema: {shown(gate['form'], chars_max=600)}")
    approvers = cast("JsonObject | None", gate["approvers"])
    if approvers is not None:
        users, groups = (cast("list[str]", approvers.get(key, [])) for key in ("users", "groups"))
        asked = ", ".join([*users, *(f"group {group}" for group in groups)]) or "anyone"
        lines.append(f"  asked: {shown(asked)}; votes needed: {approvers['quorum']}")
    if gate["deadline"] is not None:
        lines.append(f"  answer by {when(gate['deadline'])}")
    if votes := _objects(gate["votes"]):
        voted = ", ".join(f"{vote['by']} {vote['action']}" for vote in votes)
        lines.append(f"  voted: {shown(voted)}")
    return lines


def looked_at(gate: JsonObject) -> list[str]:
    """What there is to look at before one answers; of calls of tools each, and how they are decided one by one."""
    if gate["shown"] is None:
        return []
    if gate["about"] not in ("calls", "client"):
        return [f"  {shown(gate['shown'], chars_max=600)}"]
    calls = cast("dict[str, JsonObject]", gate["shown"])
    lines = [
        f"  {shown(number)}: {shown(call['tool'])} {shown(call['arguments'], chars_max=600)}"
        for number, call in calls.items()
    ]
    if gate["about"] == "calls":
        data = ", ".join(f'"{number}": true' for number in calls)
        lines += [
            f'  one by one: {{"action": "edit", "data": {{{shown(data)}}}}}',
            "  true makes a call, false does not, an object makes it with other arguments",
        ]
    return lines


def _results(gate: JsonObject) -> str:
    """How the results of calls that the caller carries out are typed."""
    results = ", ".join(f'"{number}": RESULT' for number in cast("JsonObject", gate["shown"]))
    return f'\'{{"action": "return", "data": {{{results}}}}}\''


def _options(gate: JsonObject) -> list[str]:
    return [harmless(str(option.get("value", option.get("action")))) for option in _objects(gate["options"])]


def address(gate: JsonObject, gates: list[JsonObject], execution: str) -> tuple[str, str]:
    """The execution and the name under which a gate can be answered while these are open: its node's where it is the
    only one, else its own id, and where sub-workflows have the same one, at the sub-workflow."""
    if sum(one["nodeId"] == gate["nodeId"] for one in gates) == 1:
        return execution, shown(gate["nodeId"])
    if sum(one["gateId"] == gate["gateId"] for one in gates) > 1:
        execution = str(gate.get("executionId", execution))
    return execution, shlex.quote(shown(gate["gateId"]))


def _objects(value: Json) -> list[JsonObject]:
    return cast("list[JsonObject]", value)
