"""Tests with other libraries are left out where these are not installed; `test_packages.py` reports that."""

from __future__ import annotations

from importlib.util import find_spec

INSTALLED = find_spec("langgraph") is not None and find_spec("langchain_core") is not None

collect_ignore = [] if INSTALLED else ["test_langchain.py"]
