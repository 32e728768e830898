"""What a dry run prints: the way, what would be called, what it would cost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, cast

import click

from pointsman.app import Pointsman, Workflow
from pointsman.cli.app_opening import known
from pointsman.cli.printing import print_json, shown
from pointsman.cli.results import code_of
from pointsman.executions.driving import Answer
from pointsman.executions.dry_run import dry_view
from pointsman.values import Json, JsonObject

Reads: TypeAlias = Callable[[Pointsman, Workflow | str], Awaitable[Json]]
"""The input for a workflow."""


async def dry_run(
    app: Pointsman, found: Workflow | str | None, read: Reads, answers: Sequence[Answer], *, as_json: bool
) -> int:
    """Run it dry and print what came of it; the exit code."""
    async with app:
        workflow = await known(app, found)
        view = dry_view(await app.dry_run(workflow, await read(app, workflow), answers=answers))
    if as_json:
        print_json(view)
    else:
        for line in lines_of(view):
            click.echo(line)
    return code_of(str(view["status"]))


def lines_of(view: JsonObject) -> list[str]:
    """For people."""
    lines = [f"path: {shown(' → '.join(cast('list[str]', view['path'])), chars_max=1000)}"]
    for one in cast("list[JsonObject]", view["waits"]):
        place = one["nodeId"] or one["event"]
        lines.append(f"waits at {shown(place)} ({one['kind']}); taken for: {shown(one['answered'] or 'its end')}")
    lines += [_call(one) for one in cast("list[JsonObject]", view["calls"])]
    for one in cast("list[JsonObject]", view["errors"]):
        lines.append(f"{click.style('error', fg='red')} [{one['code']}] {shown(one['message'])}")
    cost = cast(JsonObject, view["cost"])
    unpriced = ", ".join(cast("list[str]", cost["unpriced"]))
    said = f"unknown, no price for {unpriced}" if unpriced else _range(cost["lowUsd"], cost["highUsd"])
    return [*lines, f"{view['status']} after {view['steps']} steps; nothing was called; cost: {said}"]


def _call(one: JsonObject) -> str:
    most = one["callsMax"]
    times = f"{one['calls']}×" if most == one["calls"] else f"{one['calls']}× to {most or 'any number'}×"
    text = f"{shown(one['nodeId'])}: {times} {one['kind']} {shown(one['name'])}"
    if one["kind"] != "model":
        return text
    tokens = f"about {one['inputTokens']} → {one['outputTokens']} tokens"
    return f"{text}, {tokens}, {_range(one['costUsd'], one['costMaxUsd'])}"


def _range(low: Json, high: Json) -> str:
    if not isinstance(low, int | float):
        return "no price known"
    if not isinstance(high, int | float):
        return f"${low:.4f} or more"
    if low == high == 0:
        return "free"
    return f"${low:.4f}" if low == high else f"${low:.4f} to ${high:.4f}"
