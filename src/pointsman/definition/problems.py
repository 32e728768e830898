"""Findings of validation: a code, a position in the author's document, a message, the next step, and a repair.

A problem is a value, not an exception, so that each check reports all its findings. Errors block execution, not saves.

A repair is a safe fix as JSON Patch. Its paths are native pointers; the caller maps them to the author's document.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Final, Literal, TypeAlias

from typing_extensions import TypedDict

from pointsman.errors import AuthorError
from pointsman.values import Json, JsonObject

Severity: TypeAlias = Literal["error", "warning", "note"]

JsonPatchOp: TypeAlias = JsonObject
"""One operation of RFC 6902: {op, path, value}. The paths are pointers into the author's document."""


class ProblemView(TypedDict):
    """One finding, with its position in the author's document."""

    code: str
    severity: Severity
    pointer: str
    """RFC 6901, in the document as its author wrote it."""
    line: int | None
    column: int | None
    """Counted from 1, in characters."""
    message: str
    hint: str
    fix: list[JsonPatchOp] | None
    """A JSON patch (RFC 6902) of the author's document that corrects it."""


class CheckReport(TypedDict):
    """The findings of a check."""

    ok: bool
    """True without errors: warnings and notes do not prevent a run."""
    dialect: str | None
    """Null: the document cannot be read."""
    problems: list[ProblemView]


_RANK = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One finding. `pointer` (RFC 6901) points into the document as its author wrote it, in every dialect."""

    code: str
    severity: Severity
    pointer: str
    message: str
    hint: str = ""
    fix: tuple[JsonPatchOp, ...] | None = None
    line: int | None = None
    column: int | None = None
    """1-based, counted in characters."""
    file: str = ""
    """The Python file that `line` is in, of a workflow that is built in code."""

    def to_json(self) -> ProblemView:
        """Return the problem in the format of `check --json`."""
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


MESSAGE_CHARS_MAX: Final = 1_000
"""Upper limit for a message: it quotes the document, in which a name may have a megabyte."""
PROBLEMS_MAX: Final = 1_000
"""Problems reported for one document. `limited` counts the rest."""
COMPARISONS_MAX: Final = 20_000
"""Names compared for the suggestions of one check: more would take longer than the rest of the check."""


def _problem(
    code: str,
    severity: Severity,
    pointer: str,
    message: str,
    hint: str,
    fix: tuple[JsonPatchOp, ...] | None,
) -> Problem:
    return Problem(
        code=code, severity=severity, pointer=pointer, message=shortened(message), hint=shortened(hint), fix=fix
    )


def shortened(text: str) -> str:
    """Return the text, cut to `MESSAGE_CHARS_MAX` characters."""
    return text if len(text) <= MESSAGE_CHARS_MAX else f"{text[:MESSAGE_CHARS_MAX]}…"


def error(
    code: str, pointer: str, message: str, *, hint: str = "", fix: tuple[JsonPatchOp, ...] | None = None
) -> Problem:
    """Return a finding that blocks execution."""
    return _problem(code, "error", pointer, message, hint, fix)


def warning(
    code: str, pointer: str, message: str, *, hint: str = "", fix: tuple[JsonPatchOp, ...] | None = None
) -> Problem:
    """Return a finding that may be intended."""
    return _problem(code, "warning", pointer, message, hint, fix)


def note(
    code: str, pointer: str, message: str, *, hint: str = "", fix: tuple[JsonPatchOp, ...] | None = None
) -> Problem:
    """Return a piece of information for the author: nothing is wrong."""
    return _problem(code, "note", pointer, message, hint, fix)


def sort_problems(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Sort by position (line and column if known, else pointer), then by severity, and remove duplicates."""
    unique = {(p.code, p.severity, p.pointer, p.line, p.column, p.message): p for p in problems}
    return tuple(sorted(unique.values(), key=_order))


def limited(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Remove duplicates and keep at most `PROBLEMS_MAX`: errors
    before warnings before notes. A note counts the rest."""
    unique = list({(p.code, p.severity, p.pointer, p.line, p.column, p.message): p for p in problems}.values())
    if len(unique) <= PROBLEMS_MAX:
        return tuple(unique)
    unique.sort(key=lambda problem: _RANK[problem.severity])
    return (*unique[:PROBLEMS_MAX], more_problems(len(unique) - PROBLEMS_MAX))


def more_problems(count: int) -> Problem:
    """Return the note that counts the problems that are not listed."""
    message = f"{count} more problems are not listed" if count > 1 else "1 more problem is not listed"
    return note("more-problems", "", message, hint="Correct those that are listed, and check again.")


def _order(problem: Problem) -> tuple[int, int, tuple[tuple[int, str], ...], int, str, str]:
    place = (problem.line or 0, problem.column or 0)
    return (*place, _natural(problem.pointer), _RANK[problem.severity], problem.code, problem.message)


def _natural(pointer: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that puts `/nodes/9` before `/nodes/10`."""
    return tuple(
        (int(part), "") if part.isascii() and part.isdigit() and len(part) < 19 else (-1, part)
        for part in pointer.split("/")
    )


def check_report(problems: Iterable[Problem], *, dialect: str | None) -> CheckReport:
    """Return what `check --json` prints."""
    listed = sort_problems(problems)
    ok = not any(problem.severity == "error" for problem in listed)
    return {"ok": ok, "dialect": dialect, "problems": [problem.to_json() for problem in listed]}


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return a sentence that names the nearest candidate, or an empty text."""
    near = near_to(word, candidates, most=1)
    return f"Did you mean {near[0]!r}?" if near else ""


class Suggestions:
    """Finder of "did you mean" suggestions, with a budget of comparisons."""

    def __init__(self, comparisons: int = COMPARISONS_MAX) -> None:
        self._left = comparisons

    def nearest(self, word: str, candidates: Iterable[str]) -> str | None:
        """Return the candidate spelled most like a word; None if no candidate is near or the budget is used up."""
        if self._left <= 0:
            return None
        some = list(islice(candidates, COMPARISONS_MAX))
        self._left -= len(some) + sum(map(len, some)) // 50
        near = near_to(word, some, most=1)
        return near[0] if near else None


def near_to(word: str, candidates: Iterable[str], *, most: int) -> list[str]:
    """Return the candidates spelled most like a word, the nearest first. Style (case, `_`, `-`) is ignored."""
    from difflib import get_close_matches  # imported here because only documents with misspelled names need it

    flat = {_flat(candidate): candidate for candidate in sorted(candidates)}
    wanted = _flat(word[:100])
    if most == 1 and wanted in flat:
        return [flat[wanted]]
    return [flat[near] for near in get_close_matches(wanted, list(flat), n=most, cutoff=0.7)]


def _flat(word: str) -> str:
    return word.replace("_", "").replace("-", "").lower()


def pointer_to(*parts: str | int) -> str:
    """Return a JSON pointer made of these parts, escaped."""
    pointer = ""
    for part in parts:
        text = str(part)
        if "~" in text or "/" in text:
            text = text.replace("~", "~0").replace("/", "~1")
        pointer += "/" + text
    return pointer


def pointer_parts(pointer: str) -> tuple[str, ...]:
    """Return the parts of a JSON pointer, unescaped."""
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])


def placed(problem: Problem, *, line: int, column: int) -> Problem:
    """Return the same finding with its position in the text."""
    return dataclasses.replace(problem, line=line, column=column)


Repair = tuple[JsonPatchOp, ...]


_DIGITS: Final = re.compile(r"\d+")
NAME_CHARS_MAX: Final = 100
"""Maximum length of a name that is compared."""


def remove_at(*pointers: str) -> Repair:
    return tuple({"op": "remove", "path": pointer} for pointer in pointers)


def replace_at(pointer: str, value: Json) -> Repair:
    return ({"op": "replace", "path": pointer, "value": value},)


def add_at(pointer: str, value: Json) -> Repair:
    return ({"op": "add", "path": pointer, "value": value},)


def rename_key(pointer: str, key: str, near: str, value: Json) -> Repair:
    """Rename a key of the object at the pointer; `value` is its value."""
    return add_at(pointer + pointer_to(near), value) + remove_at(pointer + pointer_to(key))


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the suggestion for a name, of a few candidates. Checks call `Subject.nearest`, which has a budget."""
    return renamed(word, Suggestions().nearest(word, candidates))


def renamed(word: str, near: str | None) -> str | None:
    """Return the suggestion if it is probably correct: not `node-5`
    for `node-6`, because numbers are not typing errors."""
    return None if near is None or _DIGITS.sub("", near) == _DIGITS.sub("", word[:NAME_CHARS_MAX]) else near


def question(near: str | None, otherwise: str) -> str:
    """Return the hint for a result of `Subject.nearest`."""
    return otherwise if near is None else f"Did you mean {near!r}?"


def rename_fix(pointer: str, near: str | None) -> Repair | None:
    """Replace the unknown name with the suggestion."""
    return None if near is None else replace_at(pointer, near)


class WorkflowInvalid(AuthorError):
    """The workflow has errors; `problems` lists all of them."""

    code: ClassVar[str] = "workflow-invalid"

    def __init__(self, message: str, *, problems: tuple[Problem, ...], hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.problems = problems


def invalid(problems: tuple[Problem, ...]) -> WorkflowInvalid:
    """Return the exception for a workflow that has errors."""
    errors = [problem for problem in problems if problem.severity == "error"]
    first = errors[0]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    place = f"line {first.line}: " if first.line is not None else ""
    if first.file:
        place = f"{first.file}:{first.line}: "
    return WorkflowInvalid(f"{place}{first.message}{more}", problems=problems, hint=first.hint)
