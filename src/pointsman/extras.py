"""Extras: parts of Pointsman whose packages `pip install 'pointsman[NAME]'` adds. The core does not need them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import ClassVar, Final

from pointsman.errors import OperatorError

EXTRAS: Final[Mapping[str, tuple[str, ...]]] = {
    "server": (
        "fastapi",
        "starlette",
        "uvicorn",
        "httptools",
        "python_multipart",
        "annotated_types",
        "joserfc",
        "mcp",
        "mcp_types",
        "prometheus_client",
    ),
    "agents": ("pydantic_ai", "openai", "genai_prices", "httptools"),
    "tools": ("aiosmtplib", "resiliparse", "mcp"),
    "code": ("pydantic_monty",),
    "postgres": ("psycopg",),
    "restate": ("restate", "hypercorn"),
    "otel": ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
    "temporal": ("temporalio",),
    "embeddings": ("sqlite_vec",),
    "testing": ("pytest",),
}
"""Extra -> the modules that it installs and Pointsman imports. `[all]` installs the first five."""


class ExtraMissing(OperatorError):
    """A part was used whose extra is not installed."""

    code: ClassVar[str] = "extra-missing"


def is_installed(extra: str) -> bool:
    """Return whether every module of an extra can be imported. Imports only parent packages."""
    return all(map(is_importable, EXTRAS[extra]))


def is_importable(module: str) -> bool:
    """Return whether a module exists, without importing it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # The parent package of a nested module is missing.
        return False


def need(extra: str, part: str) -> None:
    """Raise `ExtraMissing` if an extra is not installed. `part` begins the sentence: "The server"."""
    if not is_installed(extra):
        raise _missing(extra, part)


def missing_for(why: ModuleNotFoundError) -> ExtraMissing | None:
    """Return the error for an import that failed because an extra is not installed; None: no extra has the module."""
    package = (why.name or "").partition(".")[0]
    for extra, modules in EXTRAS.items():
        if package in {module.partition(".")[0] for module in modules}:
            return _missing(extra, "This")
    return None


def install_hint(extra: str) -> str:
    return f"Install it: pip install 'pointsman[{extra}]'."


def _missing(extra: str, part: str) -> ExtraMissing:
    return ExtraMissing(f"{part} needs the extra {extra!r}, which is not installed", hint=install_hint(extra))
