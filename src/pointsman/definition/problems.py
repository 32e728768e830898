"""What validation found: a code, a place in the author's document, a message, and the next step.

A problem is data and never an exception: every check reports all it sees. Errors block execution, not saving.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from pointsman.values import JsonObject

Severity: TypeAlias = Literal["error", "warning", "note"]

JsonPatchOp: TypeAlias = JsonObject
"""One operation of RFC 6902: {op, path, value}. Paths are pointers into the author's document."""

_RANK = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One finding. `pointer` (RFC 6901) is a place in the document its author wrote, whatever the dialect."""

    code: str
    severity: Severity
    pointer: str
    message: str
    hint: str = ""
    fix: tuple[JsonPatchOp, ...] | None = None
    line: int | None = None
    column: int | None = None
    """1-based, counted in characters."""

    def to_json(self) -> JsonObject:
        """The shape of `check --json`."""
        return {
            "code": self.code,
            "severity": self.severity,
            "pointer": self.pointer,
            "line": self.line,
            "column": self.column,
            "message": self.message,
            "hint": self.hint,
            "fix": None if self.fix is None else list(self.fix),
        }


def error(
    code: str, pointer: str, message: str, *, hint: str = "", fix: tuple[JsonPatchOp, ...] | None = None
) -> Problem:
    """A finding that blocks execution."""
    return Problem(code=code, severity="error", pointer=pointer, message=message, hint=hint, fix=fix)


def warning(
    code: str, pointer: str, message: str, *, hint: str = "", fix: tuple[JsonPatchOp, ...] | None = None
) -> Problem:
    """A finding that may be intended."""
    return Problem(code=code, severity="warning", pointer=pointer, message=message, hint=hint, fix=fix)


def note(
    code: str, pointer: str, message: str, *, hint: str = "", fix: tuple[JsonPatchOp, ...] | None = None
) -> Problem:
    """Something the author should know; nothing is wrong."""
    return Problem(code=code, severity="note", pointer=pointer, message=message, hint=hint, fix=fix)


@dataclass(slots=True)
class Problems:
    """Collects findings in the order they were made; reads them in the order a person would."""

    found: list[Problem] = field(default_factory=list[Problem])

    def add(self, *problems: Problem) -> None:
        self.found.extend(problems)

    def extend(self, problems: Iterable[Problem]) -> None:
        self.found.extend(problems)

    @property
    def has_errors(self) -> bool:
        return any(problem.severity == "error" for problem in self.found)

    def sorted(self) -> tuple[Problem, ...]:
        return sort_problems(self.found)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)


def sort_problems(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """By place (line and column where known, else pointer), then the worst first; each finding once."""
    unique = {(p.code, p.severity, p.pointer, p.line, p.column, p.message): p for p in problems}
    return tuple(sorted(unique.values(), key=_order))


def _order(problem: Problem) -> tuple[int, int, tuple[tuple[int, str], ...], int, str, str]:
    place = (problem.line or 0, problem.column or 0)
    return (*place, _natural(problem.pointer), _RANK[problem.severity], problem.code, problem.message)


def _natural(pointer: str) -> tuple[tuple[int, str], ...]:
    """`/nodes/9` before `/nodes/10`."""
    return tuple(
        (int(part), "") if part.isascii() and part.isdigit() and len(part) < 19 else (-1, part)
        for part in pointer.split("/")
    )


def problems_to_json(problems: Iterable[Problem], *, dialect: str | None) -> JsonObject:
    """What `check --json` prints."""
    found = sort_problems(problems)
    ok = not any(problem.severity == "error" for problem in found)
    return {"ok": ok, "dialect": dialect, "problems": [problem.to_json() for problem in found]}


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """A sentence naming the nearest candidate, or an empty text."""
    near = near_to(word, candidates, most=1)
    return f"Did you mean {near[0]!r}?" if near else ""


def near_to(word: str, candidates: Iterable[str], *, most: int) -> list[str]:
    """The candidates spelled most like a word, the nearest first. Style (case, `_`, `-`) counts little."""
    from difflib import get_close_matches  # only authors who mistyped something pay for its import

    flat = {_flat(candidate): candidate for candidate in sorted(candidates)}
    wanted = _flat(word[:100])
    if most == 1 and wanted in flat:
        return [flat[wanted]]
    return [flat[near] for near in get_close_matches(wanted, list(flat), n=most, cutoff=0.7)]


def _flat(word: str) -> str:
    return word.replace("_", "").replace("-", "").lower()


def pointer_to(*parts: str | int) -> str:
    """A JSON pointer from its parts, escaped."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)


def pointer_parts(pointer: str) -> tuple[str, ...]:
    """The parts of a JSON pointer, unescaped."""
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])


def placed(problem: Problem, *, line: int, column: int) -> Problem:
    """The same finding with its place in the text."""
    return replace(problem, line=line, column=column)
