"""The libraries of this folder are installed, or the tests that need them are visibly left out."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


@pytest.mark.parametrize("name", ["langchain_core", "langgraph"])
def test_a_library_that_workflows_run_is_installed(name: str) -> None:
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed: make .venv/interop.stamp")
