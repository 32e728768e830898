"""`pointsman templates`."""

from __future__ import annotations

from tests.cli.conftest import Prompt


def test_templates_are_listed_tried_and_used(prompt: Prompt) -> None:
    listed = prompt("templates", "list", "--tag", "moderation", "--json").json["templates"]
    assert [one["id"] for one in listed] == ["moderate-posts"]
    assert prompt("templates", "show", "moderate-posts").out.startswith("# ")
    assert prompt("templates", "try", "moderate-posts", "--json").json["output"]["status"] == "published"
    assert prompt("templates", "use", "moderate-posts", "--as", "posts").out == "posts@1\n"
    assert prompt("workflows", "get", "posts").code == 0
    assert prompt("templates", "use", "nothing").code == 2
