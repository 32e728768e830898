"""Result of an execution: its output for pipes, a summary with next steps for people, an exit code for scripts."""

from __future__ import annotations

import json
import shlex
from typing import Final, cast

import click

from pointsman.cli.error_boundary import CANCELLED, FAILED, is_debugging
from pointsman.cli.printing import escape_controls, print_json, say, shown
from pointsman.cli.times import when_and_distance
from pointsman.executions.concurrency_limits import QueuePosition
from pointsman.executions.views import SCRIPTED, short_digest
from pointsman.settings import masked_address
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
WAITING_LABEL: Final = click.style("waiting", fg="yellow", bold=True)
WARNING_LABEL: Final = click.style("warning", fg="yellow")
MADE_UP: Final = "answers are made up"
"""Part of the summary of an execution with the scripted model."""
COLOURS: Final = {"completed": "green", "failed": "red", "cancelled": "red", "running": "blue"}


def code_of(status: str, *, stopped: bool = False) -> int:
    """Return the exit code for a status; 0 for an execution that another process runs."""
    return CANCELLED if stopped else CODES.get(status, 0)


def warn_scripted() -> None:
    """Warn that the scripted model answers."""
    say(f"warning: {SCRIPTED['message']}")


def print_outcome(view: JsonObject, *, as_json: bool, stopped: bool, store: str | None, lasting: bool) -> int:
    """Print the result of `run` and similar commands; return the exit code."""
    status = str(view["status"])
    if as_json:
        print_json(view)
    else:
        if status == "completed" and view["output"] is not None:
            click.echo(output_text(view["output"]))
        for line in outcome_lines(view, stopped=stopped, store=store, lasting=lasting):
            click.echo(line, err=True)
    return code_of(status, stopped=stopped)


def output_text(output: Json) -> str:
    """Return a text unchanged, any other value as JSON."""
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, indent=2)


def at_store(store: str | None) -> str:
    """Return the option with which a suggested command finds the same store."""
    return f" --store {shlex.quote(masked_address(store))}" if store is not None else ""


def queued_lines(standing: QueuePosition | None, there: str) -> list[str]:
    """Return the queue position of an execution, and the commands to leave the queue."""
    if standing is None:
        return []
    group, execution = standing.group, standing.execution
    most = "one execution" if group.most == 1 else f"{group.most} executions"
    ahead = f"; {standing.ahead} queued before this one" if standing.ahead else ""
    return [
        f"queued: {group.name!r} runs {most} at a time, now {', '.join(standing.holders)}{ahead}",
        f"  → Ctrl-C keeps it in the queue. Wait again: pointsman resume {execution}{there}",
        f"  → Remove it from the queue: pointsman cancel {execution}{there}",
    ]


def outcome_lines(view: JsonObject, *, stopped: bool, store: str | None, lasting: bool) -> list[str]:
    """Return errors, warnings, open gates and waits with the next command, and a summary."""
    execution, status = str(view["executionId"]), str(view["status"])
    there = at_store(store)
    failures = _objects(view["errors"]) if status in ("failed", "interrupted", "paused") else []
    lines = [*dict.fromkeys(_failure(failure) for failure in failures)]
    lines += [
        f"{WARNING_LABEL} {shown(warning['message'])}"
        for warning in _objects(view["warnings"])
        if warning["code"] != SCRIPTED["code"]  # The summary contains it, and `run` printed it at the start.
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
        lines.append(f"{WAITING_LABEL} at {shown(one['nodeId'])!r} for the event {shown(one['event'])!r}")
        if lasting:
            lines.append(f"  → pointsman signal {execution} {shown(one['event'])} JSON{there}")
    for one in _objects(view["waitingFor"]):
        lines.append(f"{WAITING_LABEL} at {shown(one['nodeId'])!r} for {shown(one['reason'])}")
    lines += _timer_lines(_objects(view["timers"]))
    if view["waitingFor"] and lasting:
        lines.append("  → This process cannot continue it. A process that can: the one that started the execution,")
        lines.append(f"    `pointsman serve` or `worker`; or run there: pointsman resume {execution}{there}")
    lines.append(_summary(view, stopped=stopped))
    if not lasting and status in ("waiting", "paused", "interrupted", "failed", "running"):
        lines.append(
            "  → The store was in memory, so this execution is lost. Use a store on disk: --store sqlite:///file.db"
        )
    elif stopped:
        lines.append(f"  → Continue: pointsman resume {execution}{there}")
    elif status == "failed" and view["compensation"] is not None:
        lines.append("  → It was compensated, so it cannot be retried. Fix the cause, then run the workflow again.")
    elif status in NEXT:
        lines.append(f"  → {NEXT[status].format(execution=execution)}{there}")
    return lines


TIMERS: Final = {
    "wait": "until {at}",
    "delay": "until {at}, then it starts",
    "retry": "until {at}, then it is retried",
    "event": "for its event until {at} at the latest",
    "join": "for its branches until {at} at the latest",
}
"""Purpose of a timer -> description of the wait. Gates show their own deadline."""


def _timer_lines(timers: list[JsonObject]) -> list[str]:
    """Return a line for each timer of a step. `_gate` shows the timers of gates."""
    waits = [timer for timer in timers if timer["purpose"] in TIMERS]
    return [
        f"{WAITING_LABEL} at {shown(wait['nodeId'])!r} "
        f"{shown(TIMERS[str(wait['purpose'])].format(at=when_and_distance(wait['at'])))}"
        for wait in waits
    ]


NEXT: Final = {
    "failed": "Fix the cause, then run: pointsman retry {execution}",
    "paused": "Continue: pointsman resume {execution}",
    "stopped": "The process that ran it has ended. Continue: pointsman resume {execution}",
    "interrupted": "Continue with a higher limit: pointsman resume {execution} --limit NAME=NUMBER",
}


def _summary(view: JsonObject, *, stopped: bool) -> str:
    status = "stopped" if stopped else str(view["status"])
    usage = cast(JsonObject, view["usage"])
    duration = cast(float, view["durationMs"]) / 1000
    parts = [_plural(view["steps"], "step"), f"{duration:.1f} s"]
    if usage["modelCalls"]:
        cached = f" ({usage['cacheReadTokens']} cached)" if usage["cacheReadTokens"] else ""
        tokens = f"{usage['inputTokens']}{cached} → {usage['outputTokens']} tokens"
        parts.append(
            f"{_plural(usage['modelCalls'], 'model call')}, {tokens}, {cost_text(usage['costUsd'], view['model'])}"
        )
    if view["model"]:
        parts.append(f"model: {shown(view['model'])}")
    if view["scripted"]:
        parts.append(click.style(MADE_UP, fg="yellow"))
    styled = click.style(status, fg=COLOURS.get(status, "yellow"), bold=True)
    return f"{styled} {view['executionId']} ({'; '.join(parts)})"


def cost_text(cost: Json, model: Json) -> str:
    """Return the cost as text; an unknown cost is not zero."""
    if model == "scripted":
        return "free"
    return f"${cost:.4f}" if isinstance(cost, int | float) else "no price known"


def _plural(number: Json, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _failure(failure: JsonObject) -> str:
    node = f" in {shown(failure['nodeId'])!r}" if failure.get("nodeId") else ""
    details = cast("JsonObject", failure.get("details") or {})
    node += "".join(f" › {shown(one['nodeId'])!r}" for one in _objects(details.get("within") or []))
    hint = f"\n  → {shown(failure['hint'])}" if failure.get("hint") else ""
    more = "".join(f"\n{line}" for line in _details(details))
    return (
        f"{click.style('error', fg='red', bold=True)} [{failure['code']}]{node} {shown(failure['message'])}{hint}{more}"
    )


def _details(details: JsonObject) -> list[str]:
    """Return details of a failure: the position in the author's code, with --debug its traceback and output, and the
    unusable answer of a model or service."""
    lines: list[str] = []
    if isinstance(source := details.get("expression"), str) and isinstance(column := details.get("column"), int):
        before = source[: column - 1].rpartition("\n")
        line = source[len(before[0]) + len(before[1]) :].partition("\n")[0]
        lines += [f"  {escape_controls(line)}", f"  {' ' * len(escape_controls(before[2]))}^"]
    for name, label in (("body", "the provider answered"), ("data", "the service answered")):
        if isinstance(detail := details.get(name), str) and detail:
            lines.append(f"  {label}: {shown(detail, chars_max=600)}")
    if isinstance(answer := details.get("answer"), str):
        lines.append(f"  the last answer of the model: {shown(answer, chars_max=600)}")
    traceback = details.get("traceback")
    if not isinstance(traceback, str):
        return lines
    if isinstance(where := details.get("where"), str):
        lines.append(f"  at {shown(where)}")
    if not is_debugging():
        return [*lines, "  --debug shows the traceback"]
    lines += [f"  {escape_controls(line)}" for line in traceback.splitlines()]
    if isinstance(printed := details.get("output"), str):
        lines += ["  it printed:", *(f"  {escape_controls(line)}" for line in printed.splitlines())]
    return lines


def _gate(gate: JsonObject) -> list[str]:
    """Return the message, data, approvers and votes of a gate."""
    lines = [f"{WAITING_LABEL} at {shown(gate['nodeId'])!r}: {shown(gate['message'])}", *shown_lines(gate)]
    if gate["form"] is not None:
        lines.append(f"  data schema: {shown(gate['form'], chars_max=600)}")
    approvers = cast("JsonObject | None", gate["approvers"])
    if approvers is not None:
        users, groups = (cast("list[str]", approvers.get(key, [])) for key in ("users", "groups"))
        approver_names = ", ".join([*users, *(f"group {group}" for group in groups)]) or "anyone"
        lines.append(f"  approvers: {shown(approver_names)}; votes needed: {approvers['quorum']}")
    if gate["deadline"] is not None:
        lines.append(f"  answer by {when_and_distance(gate['deadline'])}")
    if votes := _objects(gate["votes"]):
        voted = ", ".join(f"{vote['by']} {vote['action']}" for vote in votes)
        lines.append(f"  voted: {shown(voted)}")
    return lines


def shown_lines(gate: JsonObject) -> list[str]:
    """Return the shown data of a gate; for tool calls each call, and how to decide them separately."""
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
            f'  to decide each call: {{"action": "edit", "data": {{{shown(data)}}}}}',
            "  true makes the call, false skips it, an object makes it with other arguments",
        ]
    return lines


def _results(gate: JsonObject) -> str:
    """Return a template of the answer with the results of client tools."""
    results = ", ".join(f'"{number}": RESULT' for number in cast("JsonObject", gate["shown"]))
    return f'\'{{"action": "return", "data": {{{results}}}}}\''


def _options(gate: JsonObject) -> list[str]:
    return [escape_controls(str(option.get("value", option.get("action")))) for option in _objects(gate["options"])]


def address(gate: JsonObject, gates: list[JsonObject], execution: str) -> tuple[str, str]:
    """Return the execution and the name that identify a gate among the open ones: the name of its node if unique, else
    the id of the gate; if several sub-workflows have that id, with the sub-workflow's execution."""
    if sum(one["nodeId"] == gate["nodeId"] for one in gates) == 1:
        return execution, shown(gate["nodeId"])
    if sum(one["gateId"] == gate["gateId"] for one in gates) > 1:
        execution = str(gate.get("executionId", execution))
    return execution, shlex.quote(shown(gate["gateId"]))


def _objects(value: Json) -> list[JsonObject]:
    return cast("list[JsonObject]", value)
