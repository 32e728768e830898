"""Broken documents and formulas: they produce typed problems only, no crash and no long computation.

Formulas are valid examples of the reference, cut, duplicated and mixed with invalid parts. They are parsed, and valid
results are evaluated on a small state within the budget.
"""

from __future__ import annotations

import time
from contextlib import suppress
from math import inf
from random import Random
from typing import Final

from pointsman.errors import PointsmanError
from pointsman.values import JsonObject
from tests.expressions.worlds import value
from tests.reliability.findings import Finding
from tests.soak.documents import examine as examine_documents

HANG_S: Final = 0.25
"""Limit of CPU time of one formula, far above the slowest known one."""
SHARE_OF_DOCUMENTS: Final = 0.1
"""A document costs a hundred times as much as a formula."""

STATE: Final[JsonObject] = {
    "items": [{"n": 1, "name": "one", "price": 2.5}, {"n": 2, "name": "two", "price": 4}],
    "text": "aaab",
    "log": ["a"],
    "a": {"b": [{"c": 2}]},
    "b": False,
    "c": 2,
}

GOOD: Final = (
    "input.n > 3 and state.log[0] == 'a'",
    "len(items) * 2 + sum(map(items, x => x.price))",
    "filter(items, x => x.n % 2 == 0)[-1].name",
    "nodes.check.result.score >= 80 ? 'good' : 'bad'",
    "{name: upper(item.name), tags: [1, 2.5, null, true]}",
    "$.a.b[?(@.c > 1)]",
    "'text with {braces}' + string(12)",
    "not (a or b) and c in [1, 2, 3]",
    "matches(text, '^a+b')",
    "sort(items)[0:3]",
)
ODD: Final = (
    "((((", "]]", "'", '"', "\\", "\u0000", "\ud800", "🌍", "__class__", ".__init__.__globals__", "10**10**10", "1e999",
    "%s%n", "=>", "..", "[::]", "{{", "}}", "${HOME}", "/*", "null.null", "0x", "９", "- - - -", "!" * 50, "(" * 300,
)  # fmt: skip


def formula(random: Random) -> str:
    """Return a valid formula after one to four random changes."""
    text = random.choice(GOOD)
    for _ in range(random.randint(1, 4)):
        at, end = sorted((random.randrange(len(text) + 1), random.randrange(len(text) + 1)))
        match random.randrange(5):
            case 0:
                text = text[:at] + text[end:]
            case 1:
                text = text[:end] + text[at:]
            case 2:
                text = text[:at] + random.choice(ODD) + text[at:]
            case 3:
                text = text[:at] + random.choice(GOOD) + text[end:]
            case _:
                text = (
                    text[:at] + chr(random.choice((random.randrange(32, 127), random.randrange(0x3000)))) + text[end:]
                )
    return text


def least_time(text: str) -> float:
    """Return the CPU seconds. A slow case is measured again, because the garbage collector may have run."""
    least = inf
    for _ in range(3):
        began = time.thread_time()
        with suppress(Exception):
            value(text, {**STATE})
        least = min(least, time.thread_time() - began)
        if least <= HANG_S:
            break
    return least


def examine_formulas(count: int, seed: int) -> tuple[list[str], int, float]:
    """Return exceptions without a code and slow formulas, the number of refused ones, and the CPU seconds of the
    slowest."""
    violations, refused, slowest = list[str](), 0, 0.0
    for number in range(count):
        text = formula(Random(f"{seed}:{number}"))
        try:
            value(text, {**STATE})
        except PointsmanError:
            refused += 1
        except Exception as why:
            violations.append(f"formula {seed}:{number} {text[:80]!r} raised {why!r}")
        took = least_time(text)
        slowest = max(slowest, took)
        if took > HANG_S:
            violations.append(f"formula {seed}:{number} {text[:80]!r} took {took * 1000:.0f} ms")
    return violations, refused, slowest


def examine(size: int, seed: int) -> Finding:
    """Test `size` documents and formulas together."""
    documents = max(1, int(size * SHARE_OF_DOCUMENTS))
    violations, refused, slowest = examine_formulas(size - documents, seed)
    try:
        figures = examine_documents(documents, seed)
        violations += [f"a problem without a place: {line}" for line in figures.misplaced]
        slowest = max(slowest, figures.slowest_s)
        refused += figures.refused
    except AssertionError as why:
        violations.append(str(why))
    figure = f"{documents} documents, {size - documents} formulas: {refused} refused with a reason, "
    return Finding(f"{figure}slowest {slowest * 1000:.0f} ms, {len(violations)} violations", tuple(violations))
