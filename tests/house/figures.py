"""Figures about structure and prose of the sources: import circles, small modules, class names, stilted words.

python -m tests.house.figures        print every figure with its present bound and its goal
python -m tests.house.figures TEXT   list the places of the figures whose names contain the text
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import grimp

from tests.house.sources import files, parse, read_text

SMALL_LINES: Final = 80
"""A module below this number of lines with one importer needs a reason."""

WORDS: Final = 10_000
"""Rates of prose are per this number of words."""

PARTICIPLES: Final = re.compile(
    r"^(Told|Kept|Seen|Asked|Given|Said|Heard|Shown|Came|Left|Made|Held|Taken|Begun|Done|Put|Read)$"
)


class Bound(NamedTuple):
    """The largest value that the tests accept, and the goal. A change may lower a bound, never raise it."""

    most: float
    goal: float


STILTED: Final[dict[str, tuple[str, Bound]]] = {
    "whoever, somebody, nobody, anybody, everybody": (
        r"\b(whoever|somebody|nobody|anybody|everybody)\b",
        Bound(2.5, 2),
    ),
    "tell, say, hear": (r"\b(told|tells?|says?|said|hears?|heard)\b", Bound(6, 6)),
    "'who' without a noun before it": (r"(?:^|[.:;] )[Ww]ho [a-z]+s?\b|\b(?:to|of|for|by) who [a-z]+", Bound(1.2, 1)),
    "an opening 'What' without a noun": (r"^\s*What ", Bound(8, 4)),
    "'is no X', 'is none'": (r"\b(?:is|are|was) (?:no [a-z]+|none)\b", Bound(5.5, 5)),
    "go on, come of, become of": (r"\b(?:goes|go|went|going) on\b|\b(?:came|become|became|comes) of\b", Bound(2.5, 3)),
}
DOCS_BOUNDS: Final = dict(zip(STILTED, (2, 6, 1, 4, 2, 3), strict=True))
"""The largest rate of each pattern of `STILTED` in the pages of docs/, per 10 000 words."""
STRUCTURE: Final = {
    "modules in import circles": Bound(0, 0),
    "modules under 80 lines with one importer": Bound(20, 15),
    "class names used twice": Bound(5, 5),
    "classes and modules named by a bare participle": Bound(2, 0),
}


@cache
def imports() -> grimp.ImportGraph:
    """Return the imports between all modules, including those under `TYPE_CHECKING` and inside functions."""
    return grimp.build_graph("pointsman", include_external_packages=False, exclude_type_checking_imports=False)


def modules_in_circles() -> set[str]:
    """The modules that import themselves through others."""
    graph = imports()
    return {
        module
        for module in graph.modules
        if any(graph.chain_exists(target, module) for target in graph.find_modules_directly_imported_by(module))
    }


def small_modules() -> set[str]:
    graph = imports()
    return {
        str(path)
        for path in files("src")
        if path.name != "__init__.py"
        and read_text(path).count("\n") < SMALL_LINES
        and module_of(path) in graph.modules
        and len(graph.find_modules_that_directly_import(module_of(path))) == 1
    }


def module_of(path: Path) -> str:
    return ".".join(path.with_suffix("").parts[1:])


def class_names() -> Counter[str]:
    return Counter(node.name for path in files("src") for node in parse(path).body if isinstance(node, ast.ClassDef))


def participles() -> set[str]:
    named = {name for name in class_names() if PARTICIPLES.match(name)}
    return named | {str(path) for path in files("src") if PARTICIPLES.match(path.stem.capitalize())}


@cache
def structure() -> dict[str, set[str]]:
    """The places of each figure of `STRUCTURE`."""
    return {
        "modules in import circles": modules_in_circles(),
        "modules under 80 lines with one importer": small_modules(),
        "class names used twice": {name for name, count in class_names().items() if count > 1},
        "classes and modules named by a bare participle": participles(),
    }


def prose(path: Path) -> list[str]:
    """The docstrings and comments of a Python file."""
    found = [
        node.value.value
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    tokens = tokenize.generate_tokens(io.StringIO(read_text(path)).readline)
    return found + [token.string for token in tokens if token.type == tokenize.COMMENT]


def pages() -> list[Path]:
    """The pages of docs/ without the list of requirements."""
    return [path for path in Path("docs").rglob("*.md") if "requirements" not in path.name]


def text_of(page: Path) -> str:
    """The text of a page without code."""
    return re.sub(r"```.*?```", "", read_text(page), flags=re.DOTALL)


@cache
def rates() -> dict[str, float]:
    """The rate of each pattern of `STILTED` in docstrings and comments, per 10 000 words."""
    return rates_in([text for path in files("src") for text in prose(path)])


@cache
def docs_rates() -> dict[str, float]:
    """The rate of each pattern of `STILTED` in the pages of docs/."""
    return rates_in([text_of(page) for page in pages()])


def rates_in(texts: list[str]) -> dict[str, float]:
    words = sum(len(text.split()) for text in texts)
    return {
        name: WORDS * sum(len(re.findall(pattern, text, re.MULTILINE)) for text in texts) / words
        for name, (pattern, _) in STILTED.items()
    }


def places(part: str) -> Iterator[str]:
    """Yield the places of the figures whose names contain a text."""
    for name, found in structure().items():
        yield from (f"{name}: {place}" for place in sorted(found) if part in name)
    texts = [(path, text) for path in files("src") for text in prose(path)] + [
        (page, text_of(page)) for page in pages()
    ]
    for name, (pattern, _) in STILTED.items():
        for path, text in texts if part in name else ():
            for match in re.finditer(pattern, text, re.MULTILINE):
                near = text[max(0, match.start() - 30) : match.end() + 30].replace("\n", " ")
                yield f"{name}: {path}: … {near} …"


def main(part: str = "") -> None:
    if part:
        print(*places(part), sep="\n")  # noqa: T201 - a command
        return
    for name, value in structure().items():
        print(f"{name}: {len(value)} (bound {STRUCTURE[name].most:g}, goal {STRUCTURE[name].goal:g})")  # noqa: T201 - as above
    for name, rate in rates().items():
        bound = STILTED[name][1]
        print(f"{name}: {rate:.1f} (bound {bound.most:g}, goal {bound.goal:g})")  # noqa: T201 - as above
    for name, rate in docs_rates().items():
        print(f"docs: {name}: {rate:.1f} (bound {DOCS_BOUNDS[name]})")  # noqa: T201 - as above


if __name__ == "__main__":
    main(*sys.argv[1:2])
