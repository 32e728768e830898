"""Commands in natural language: the goal without the request to send it, and the mail address."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointsman.chat.verbs import CHARS_MAX, Command, CommandInvalid, command_of, parse_command


@pytest.mark.requirement("S2-03", "T2-20")
@pytest.mark.parametrize(
    ("text", "goal", "email"),
    [
        (
            "Write a proposal for optimizing warehouse operations, send to john@example.com",
            "Write a proposal for optimizing warehouse operations",
            "john@example.com",
        ),
        ("Write a memo and email it to bob@example.org.", "Write a memo", "bob@example.org"),
        ("Write a memo, please send the final report to <bob@example.org>", "Write a memo", "bob@example.org"),
        ("Write a memo. Send it to bob@example.org. Keep it short.", "Write a memo. Keep it short.", "bob@example.org"),
        ("Write a memo send to bob@example.org", "Write a memo", "bob@example.org"),
        ("WRITE A MEMO; MAIL IT TO bob@example.org!", "WRITE A MEMO", "bob@example.org"),
        ("Write a letter to bob@example.org", "Write a letter", "bob@example.org"),
        ("Email bob@example.org a memo about ships", "a memo about ships", "bob@example.org"),
        ("Plan it, and forward this to me at a.b+c@mail.example.org", "Plan it", "a.b+c@mail.example.org"),
        (
            "Answer ann@example.org politely, send to bob@example.org",
            "Answer ann@example.org politely",
            "bob@example.org",
        ),
    ],
)
def test_goal_and_address_are_read_from_a_command(text: str, goal: str, email: str) -> None:
    assert parse_command(text) == Command(goal, email)


@pytest.mark.requirement("S2-04")
@pytest.mark.parametrize(
    "text",
    [
        "Write a proposal for optimizing warehouse operations",
        "Compare the offers of ann@example.com and bob@example.com",
        "Write a plan that helps ann@example.org grow",
        "Explain how to send mail",
    ],
)
def test_the_whole_command_is_the_goal_without_a_recipient(text: str) -> None:
    assert parse_command(text).input == {"goal": text, "email": None}


@pytest.mark.requirement("S2-04")
@pytest.mark.parametrize("text", ["", "  \n", "send to bob@example.org", ", mail it to bob@example.org."])
def test_a_command_without_a_goal_is_refused(text: str) -> None:
    with pytest.raises(CommandInvalid, match="contains no task"):
        parse_command(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Write a memo, send to bob@example.org and ann@example.org", "several addresses"),
        ("Write a memo, send to bob@example.org, ann@example.org", "several addresses"),
        ("Write a memo, send to bob@nowhere", "'bob@nowhere' is not a mail address"),
        ("x" * (CHARS_MAX + 1), "characters"),
    ],
)
def test_an_ambiguous_command_is_refused(text: str, says: str) -> None:
    with pytest.raises(CommandInvalid, match=says):
        parse_command(text)


def test_the_parts_of_a_command_obey_the_same_rules() -> None:
    assert command_of(" a memo ", "") == Command("a memo", None)
    assert command_of("a memo", "Bob@EXAMPLE.org").email == "Bob@example.org"
    with pytest.raises(CommandInvalid):
        command_of("a memo", "bob@example.org\r\nBcc: eve@example.org")


@given(st.text(alphabet=st.sampled_from('ab@. ,;-\n"<>tosendmail'), max_size=300))
def test_any_text_is_a_command_or_refused(text: str) -> None:
    try:
        found = parse_command(text)
    except CommandInvalid:
        return
    assert found.goal == found.goal.strip() != ""
    assert found.email is not None or found.goal == text.strip()
