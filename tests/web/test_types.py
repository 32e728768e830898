"""The types of the web app match the API of the server."""

from __future__ import annotations

import shutil

import pytest

from tests.web.types import MAKER, REQUESTS, TYPES, made_requests, made_types


@pytest.mark.skipif(shutil.which("node") is None or not MAKER.exists(), reason="no Node, or no packages of the web app")
def test_the_types_of_the_web_app_match_the_api() -> None:
    assert TYPES.read_text("utf-8") == made_types(), "run: python -m tests.web.types"


def test_component_tests_check_requests_against_the_present_api() -> None:
    assert REQUESTS.read_text("utf-8") == made_requests(), "run: python -m tests.web.types"
