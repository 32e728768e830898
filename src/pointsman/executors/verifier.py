"""Verifiers: a model judges a value by criteria. The quality gate of a loop that revises until the value passes.

    value ─▶ judged ─┬─ pass
                     ├─ retry, with the issues    (at most `maxRetries` times in a row)
                     └─ fail                      (also after the same judgement `stallLimit` times)

The judgement of the last version is part of the input, so the counts survive a crash.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.reports import ToolCallsProposed, WorkDone, WorkFailed
from pointsman.executors.agent_loop import AgentLoop
from pointsman.executors.conversation import AgentSettings, agent_settings
from pointsman.executors.effect_ledger import EffectLedger, ExecutorDeps, attempt
from pointsman.models.transcript import as_text, text_of
from pointsman.ports import ExecutionPort
from pointsman.values import Json, JsonObject

RETRIES: Final = 3
"""Most retries in a row if the node sets no limit."""

_STANDARD: Final = (
    "You verify work. Judge by the criteria and by what you are shown, and by nothing else. Name each issue so that "
    "its author can repair it. Verdicts: pass (it meets the criteria), retry (it can be repaired), fail (it cannot)."
)
_ADVERSARIAL: Final = (
    "Take the work to be wrong, and try to refute it: look for claims without support, contradictions, omissions and "
    "errors in every part. Let it pass only where no attempt succeeds."
)
_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "required": ["verdict", "score", "issues", "reason"],
    "properties": {
        "verdict": {"type": "string", "enum": ["pass", "retry", "fail"]},
        "score": {"type": "number", "minimum": 0, "maximum": 100, "description": "How far it meets the criteria."},
        "issues": {"type": "array", "items": {"type": "string"}},
        "reason": {"type": "string"},
    },
}


class VerifierLimits(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Limits that override a model's verdict."""

    mode: str | None = None
    max_tool_rounds: int | None = None
    threshold: float | None = None
    max_retries: int | None = None
    stall_limit: int | None = None


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """The judgement of one version."""

    verdict: str = ""
    score: int | float = 0
    issues: list[str] = []
    reason: str = ""
    retries: int = 0
    """Number of retries in a row, including this one."""
    stalls: int = 0
    """How often in a row the judgement was the same as before."""


class VerifierExecutor:
    """Input: {"criteria", "system"?, "value", "before"?}. Result: a `Judgement`; `next` is its verdict."""

    def __init__(self, deps: ExecutorDeps) -> None:
        self._deps = deps

    async def execute(
        self, command: Execute, spec: WorkSpec, run: ExecutionPort
    ) -> WorkDone | WorkFailed | ToolCallsProposed:
        async def verify(ledger: EffectLedger) -> WorkDone:
            settings, bounds = _settings(spec), msgspec.convert(spec.config, VerifierLimits)
            before = _before(command.input.get("before"))
            await self._deps.tools.prepare(settings.tools or ())
            checking = replace(command, input=_input(command, bounds, before), messages=())
            loop = AgentLoop(checking, spec, run, settings=settings, tools=self._deps.tools, ledger=ledger)
            done = await loop.perform()
            judgement = judged(msgspec.convert(done.result, Judgement), before, bounds)
            return replace(done, result=msgspec.to_builtins(judgement), next=judgement.verdict, text=None, messages=())

        return await attempt(self._deps, command, spec, run, verify)


def judged(judgement: Judgement, before: Judgement, bounds: VerifierLimits) -> Judgement:
    """Return the effective judgement: a score below the threshold does not pass, and retries are limited."""
    verdict, reason = judgement.verdict, judgement.reason
    if verdict == "pass" and bounds.threshold is not None and judgement.score < bounds.threshold:
        verdict, reason = "retry", f"{reason} (scores {judgement.score:g} of {bounds.threshold:g})".lstrip()
    if verdict != "retry":
        return replace(judgement, verdict=verdict)
    retries = before.retries + 1
    stalls = before.stalls + 1 if before.retries and _same(judgement, before) else 0
    most = RETRIES if bounds.max_retries is None else bounds.max_retries
    if retries > most:
        return replace(judgement, verdict="fail", reason=f"{reason} (after {before.retries} revisions)".lstrip())
    if bounds.stall_limit is not None and stalls + 1 >= bounds.stall_limit:
        return replace(judgement, verdict="fail", reason=f"{reason} (the same {stalls + 1} times)".lstrip())
    return replace(judgement, verdict=verdict, reason=reason, retries=retries, stalls=stalls)


def _same(one: Judgement, other: Judgement) -> bool:
    return one.score == other.score and {*map(_plain, one.issues)} == {*map(_plain, other.issues)}


def _plain(issue: str) -> str:
    return " ".join(issue.lower().split())


def _settings(spec: WorkSpec) -> AgentSettings:
    settings = agent_settings(spec)
    rounds = msgspec.convert(spec.config, VerifierLimits).max_tool_rounds
    return replace(settings, max_iterations=rounds, output_schema=_SCHEMA, result=None, purpose="validation")


def _before(value: Json) -> Judgement:
    """Return the judgement of the last version; an empty one for a first version or an invalid value (its failure)."""
    try:
        return msgspec.convert(value, Judgement)
    except msgspec.ValidationError:
        return Judgement()


def _input(command: Execute, bounds: VerifierLimits, before: Judgement) -> JsonObject:
    fields = command.input
    task = _ADVERSARIAL if bounds.mode == "adversarial" else ""
    system = "\n\n".join(part for part in (text_of(fields.get("system")) or _STANDARD, task) if part)
    parts = [f"Criteria:\n{text_of(fields.get('criteria'))}", f"The work:\n{as_text(fields.get('value'))}"]
    if before.verdict == "retry" and before.issues:
        listed = "\n".join(f"- {issue}" for issue in before.issues)
        parts.append(f"Of the version before you said:\n{listed}")
    return {"system": system, "prompt": "\n\n".join(parts)}
