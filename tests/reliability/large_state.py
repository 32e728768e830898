"""A state at its size limit passes through a step, the store and another process unchanged; one byte more is refused.

Each part runs in its own process, so that its peak memory is measured alone; it must stay below four times the limit.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import resource
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple, cast

from pointsman import Pointsman, Workflow
from pointsman.tools.functions import tool
from pointsman.values import Json, JsonObject
from tests.quick_starts import run_module
from tests.reliability.findings import Finding

STATUS: Final = Path("/proc/self/status")
MEGABYTE: Final = 1_000_000
PEAK_LIMITS_MAX: Final = 4
"""Maximum peak memory, in limits of the state."""


def document(limit_mb: int) -> JsonObject:
    return {
        "id": "large",
        "config": {"limits": {"stateSize": f"{limit_mb}MB"}},
        "nodes": [
            {"id": "bring", "type": "tool", "config": {"tool": "bring"}, "outputs": {"kept": "result"}},
            {"id": "ask", "type": "human", "config": {"message": "Go on?", "options": [{"value": "yes"}]}},
            {"id": "note", "type": "transform", "config": {"set": {"noted": "length(kept)"}}},
        ],
        "edges": [{"source": "bring", "target": "ask"}, {"source": "ask", "target": "note"}],
        "output": {"kept": "kept", "noted": "noted"},
    }


class Report(NamedTuple):
    """The report of one process."""

    status: str
    failure: str
    digest: str
    """Digest of the value that was read back."""
    peak_mb: float
    """Peak memory beyond the memory after all imports."""
    name: str


def value(parts: int) -> list[Json]:
    """Return text that does not compress, in parts."""
    return [hashlib.shake_256(f"{number}".encode()).hexdigest(MEGABYTE // 2) for number in range(parts)]


def digest(found: Json) -> str:
    """Return the digest of a value without a second copy of it."""
    hashed = hashlib.sha256()
    for part in cast("list[str]", found):
        hashed.update(part.encode())
    return hashed.hexdigest()


def peak_mb() -> float:
    """Return the peak memory of this process alone. On Linux, `getrusage` begins with the peak of the parent."""
    if STATUS.exists():
        told = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
        return int(told["VmHWM"].split()[0]) / 1e3
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3


async def begin(store: str, limit_mb: int, parts: int) -> Report:
    async def bring() -> object:
        """Return the value."""
        return value(parts)

    bringing = tool(output_bytes_max=4 * limit_mb * MEGABYTE)(bring)
    async with Pointsman(store, tools=[bringing], model="scripted") as pointsman:
        before = peak_mb()
        execution = await pointsman.start(Workflow.of(document(limit_mb)), {})
        status = await execution.settled()
        failure = execution.state.outcome.failure
        return Report(status, failure.code if failure else "", "", peak_mb() - before, execution.id)


async def go_on(store: str, name: str) -> Report:
    async with Pointsman(store, model="scripted") as pointsman:
        before = peak_mb()
        execution = await pointsman.open(name)
        await execution.answer("ask", "yes")
        status = await execution.settled()
        return Report(status, "", "", peak_mb() - before, name)


async def look(store: str, name: str) -> Report:
    async with Pointsman(store, model="scripted") as pointsman:
        before = peak_mb()
        state, _ = await pointsman.state_and_events(name)
        peak = peak_mb() - before
        return Report(state.status, "", digest(cast("JsonObject", state.outcome.output)["kept"]), peak, name)


def in_a_process(*words: str) -> Report:
    """Run a part in a process and return its report; a crash raises its last output."""
    done = run_module("tests.reliability.large_state", *words)
    return (
        Report(*json.loads(done.stdout)) if done.returncode == 0 else Report("broke", done.stderr[-500:], "", 0.0, "")
    )


def examine(size: int, seed: int) -> Finding:
    """Test one state at a limit of `size` megabytes and one beyond it."""
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{folder}/store.db"
        began = in_a_process("begin", store, f"{size}", f"{parts_of(size)}")
        went_on = in_a_process("go_on", store, began.name)
        seen = in_a_process("look", store, began.name)
        too_large = in_a_process("begin", f"{store}-other", f"{size}", f"{size + 1}")
    return judged(size, began, went_on, seen, too_large)


def parts_of(limit_mb: int) -> int:
    """Return the number of parts of one megabyte; the rest is left for names and punctuation."""
    return limit_mb - 1


def judged(limit_mb: int, began: Report, went_on: Report, seen: Report, too_large: Report) -> Finding:
    violations: list[str] = []
    parts = parts_of(limit_mb)
    for which, status in ((began, "waiting"), (went_on, "completed"), (seen, "completed")):
        if which.status != status:
            violations.append(f"{parts} MB: {which.status} instead of {status}: {which.failure}")
    if seen.digest != digest(value(parts)):
        violations.append(f"{parts} MB came back as something else")
    if (too_large.status, too_large.failure) != ("failed", "state-too-large"):
        violations.append(f"{limit_mb + 1} MB: {too_large.status} {too_large.failure!r}, not refused by name")
    peaks = {"begun": began.peak_mb, "gone on": went_on.peak_mb, "read": seen.peak_mb, "refused": too_large.peak_mb}
    violations += [f"{what} with {mb:.0f} MB" for what, mb in peaks.items() if mb >= PEAK_LIMITS_MAX * limit_mb]
    shown = ", ".join(f"{what} {mb:.0f} MB" for what, mb in peaks.items())
    return Finding(f"{parts} MB exact; at most {shown}; {len(violations)} violations", tuple(violations))


VERBS: Final = {"go_on": go_on, "look": look}

if __name__ == "__main__":
    verb, address, *what = sys.argv[1:]
    found = asyncio.run(begin(address, *map(int, what)) if verb == "begin" else VERBS[verb](address, *what))
    sys.stdout.write(json.dumps(found))
