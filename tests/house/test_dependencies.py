"""Each imported package is declared in the extra that its users install, and no other package is declared."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from pointsman.extras import EXTRAS
from tests.house.sources import ROOT, files, parse

PACKAGE = "src/pointsman"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
OPTIONAL = PROJECT["optional-dependencies"]

WITHOUT_IMPORT = {
    "tzdata": "the time zones of `zoneinfo` where the system has none",
    "python-multipart": "Starlette reads uploaded forms with it",
}
"""Distribution -> why it is declared although no module imports it."""

HOMES = {
    "server": "server",
    "mcp": "server",
    "runtime/restate.py": "restate",
    "store/postgres": "postgres",
    "tools/mail.py": "tools",
    "tools/page_reader.py": "tools",
    "tools/mcp": "tools",
    "tools/sql/postgres.py": "postgres",
    "tools/sandbox": "code",
    "tools/toolsets.py": "agents",
    "testing/pytest_plugin.py": "testing",
    "models": "agents",
    "operations/otel.py": "otel",
    "operations/metrics.py": "server",
    "auth/oidc_login.py": "server",
    "store/sqlite/database.py": "embeddings",
    "runtime/temporal.py": "temporal",
}
"""Path below the package -> the extra whose packages its modules may import besides those of the core."""


def plain(name: str) -> str:
    return name.lower().replace("_", "-")


def names(requirements: list[str]) -> set[str]:
    return {plain(re.split(r"[\[<>=!;, ]", one, maxsplit=1)[0]) for one in requirements} - {"pointsman"}


@cache
def distributions() -> dict[str, set[str]]:
    """Module -> the distributions that install it."""
    found = {module: {*map(plain, names)} for module, names in packages_distributions().items()}
    return found | {"pydantic_monty": {"pydantic-monty"}}  # It only requires the distributions with its modules.


@cache
def imported() -> dict[str, set[str]]:
    """Module file below the package -> the modules of other packages that it imports."""
    paths = files("src/pointsman")
    return {path.relative_to(PACKAGE).as_posix(): {*imports(path)} for path in paths}


def imports(path: Path) -> Iterator[str]:
    """Yield the modules from other packages that a file imports, including those inside functions and for types."""
    for node in ast.walk(parse(path)):
        found = []
        if isinstance(node, ast.Import):
            found = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found = [node.module or ""]
        for name in found:
            if (root := name.partition(".")[0]) not in sys.stdlib_module_names and root != "pointsman":
                yield root


def extra_of(place: str) -> str:
    return next((extra for home, extra in HOMES.items() if place == home or place.startswith(f"{home}/")), "")


def test_each_module_imports_only_the_core_and_the_packages_of_its_extra() -> None:
    core = names(PROJECT["dependencies"])
    undeclared: list[str] = []
    for place, roots in imported().items():
        extra = extra_of(place)
        declared = core | names(OPTIONAL.get(extra, []))
        if extra == "agents":
            declared |= names(OPTIONAL["groq"])
        undeclared += [f"{place}: {root}" for root in roots if not declared & distributions().get(root, {plain(root)})]
    assert undeclared == [], "declare their distributions in pyproject.toml"


def test_tests_and_benchmarks_import_only_declared_packages() -> None:
    """`bench/peers` runs other products, each in an environment of its own."""
    declared = names(PROJECT["dependencies"]).union(*(names(OPTIONAL[extra]) for extra in OPTIONAL))
    interop = (ROOT / "tests/interop/requirements.in").read_text("utf-8").splitlines()
    declared |= names([line for line in interop if not line.startswith("#")])
    paths = [path for folder in ("tests", "bench") for path in files(folder) if "peers" not in path.parts]
    undeclared = {
        f"{path}: {root}"
        for path in paths
        for root in imports(path)
        if root not in ("tests", "bench") and not declared & distributions().get(root, {plain(root)})
    }
    assert undeclared == set(), "declare their distributions in pyproject.toml"


def test_every_declared_package_is_imported() -> None:
    roots = set[str]().union(*imported().values())
    used = set[str]().union(*(distributions().get(root, {plain(root)}) for root in roots))
    optional = (names(OPTIONAL[extra]) for extra in OPTIONAL if extra not in ("dev", "docs", "build"))
    assert names(PROJECT["dependencies"]).union(*optional) - used == WITHOUT_IMPORT.keys()


def test_table_of_extras_matches_the_project_file() -> None:
    for extra, modules in EXTRAS.items():
        installed = set[str]().union(*(distributions()[one.partition(".")[0]] for one in modules))
        assert names(OPTIONAL[extra]) - installed == set(), extra
    assert OPTIONAL["all"] == [f"pointsman[{','.join([*EXTRAS][:5])}]"]
