"""The step cache: a node with `cache` is answered with the result of an equal earlier step.

    attempt ─▶ known? ─▶ yes: its result, as a success without cost, marked `cached`
                      └▶ no:  perform it; store the result once its success is in the journal

Steps are equal when definition, node, configuration, resolved input, conversation, script, and the available models and
tools are equal. Entries live beside the memory tiers in a scope that no memory node can name. Losing one costs a
repetition, nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from pointsman.engine.actions import WorkAction
from pointsman.engine.commands import Execute
from pointsman.engine.events.steps import Event, StepSucceeded
from pointsman.engine.reports import Usage, WorkDone
from pointsman.engine.state import SCRIPT_OPTION, ExecutionState
from pointsman.ports import Memory
from pointsman.runtime.dependencies import ExecutorsFor

SCOPE: Final = "cache"


class CacheKey(NamedTuple):
    """Location of a cached result: its owner, and the hash of everything it depends on."""

    namespace: str
    key: str


def place_of(state: ExecutionState, command: Execute, does: WorkAction, executors: ExecutorsFor) -> CacheKey | None:
    """Return the cache key of a command; None: the node has no cache, or the command is not its own work."""
    if does.cache == "off" or command.phase != "work":
        return None
    # An execution without a session is a session of its own, as for memory nodes.
    owners = {"execution": state.id, "session": state.setup.session or state.id, "long_term": state.setup.workflow}
    spec = does.spec
    definition = (
        state.setup.definition,
        *([state.setup.options[SCRIPT_OPTION]] if SCRIPT_OPTION in state.setup.options else ()),
    )
    basis = executors.basis(command, spec)
    depends = (*definition, spec.node, spec.kind, spec.config, spec.settings, command.input, command.messages, basis)
    digest = sha256(msgspec.json.encode(depends, order="deterministic")).hexdigest()
    return CacheKey(f"{does.cache}/{owners[does.cache]}", digest)


async def answer_to(command: Execute, place: CacheKey, memory: Memory) -> WorkDone | None:
    """Return the result of an equal earlier step as the result of this one; None if there is none."""
    found = await memory.get(SCOPE, place.namespace, place.key)
    if found is None:
        return None
    known = msgspec.convert(found, WorkDone)
    return replace(known, step=command.step, attempt=command.attempt, cached=True)


async def remember(report: WorkDone, decided: Sequence[Event], place: CacheKey, memory: Memory) -> None:
    """Cache the result of a step that succeeded, without its cost and warnings, which belong to that step alone.

    The mark that the scripted model answered stays with the result.
    """
    if not any(type(event) is StepSucceeded and event.step == report.step for event in decided):
        return
    scripted = report.usage is not None and report.usage.scripted
    kept = replace(report, usage=Usage(scripted=True) if scripted else None, warnings=())
    await memory.put(SCOPE, place.namespace, place.key, msgspec.to_builtins(kept))
