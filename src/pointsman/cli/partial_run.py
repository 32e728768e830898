"""What `run` takes to try a part of a workflow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TypedDict

import click

from pointsman.cli.options import Pair, value_of
from pointsman.values import ExecutionId, Json, JsonObject


class Tried(TypedDict):
    """What a start is given then."""

    execution: ExecutionId | None
    trial: JsonObject | None


def trial_options(command: Callable[..., int]) -> Callable[..., int]:
    """`--until`, `--pin`, `--break`, given on as `tried`: with one of them it is one, which lists leave out."""

    @wraps(command)
    def folded(
        *, until: tuple[str, ...], pins: tuple[tuple[str, str], ...], breaks: tuple[str, ...], **others: object
    ) -> int:
        return command(tried=_named(_said(until, pins, breaks)), **others)

    for option in (
        click.option(
            "--break",
            "breaks",
            multiple=True,
            metavar="NODE",
            help="Pause before a node; `resume` goes on to the next such node, `resume --step` by a step. Repeatable.",
        ),
        click.option(
            "--pin",
            "pins",
            type=Pair(),
            multiple=True,
            metavar="NODE=JSON",
            help="What a node brings, without being performed. Repeatable.",
        ),
        click.option(
            "--until",
            multiple=True,
            metavar="NODE",
            help="Perform only what leads to a node, and end behind it. Repeatable.",
        ),
    ):
        folded = option(folded)
    return folded


def _said(until: Sequence[str], pins: Sequence[tuple[str, str]], breaks: Sequence[str]) -> JsonObject:
    """What was asked for; empty: it is no trial."""
    from pointsman.executions.partial_runs import trial_of  # Most runs are none.

    pinned: dict[str, Json] = {node: value_of(text, what=f"what {node!r} brings") for node, text in pins}
    return trial_of(pinned=pinned, until=until, breakpoints=breaks) if pinned or until or breaks else {}


def _named(trial: JsonObject) -> Tried:
    """A trial has an id of its own kind; what is none gets one as any."""
    if not trial:
        return Tried(execution=None, trial=None)
    from pointsman.executions.partial_runs import trial_id  # As above.

    return Tried(execution=trial_id(), trial=trial)
