"""Letters of models are made fit to be sent."""

from __future__ import annotations

import pytest

from pointsman.tools.mail import plain_letter
from tests.growth import check_linear


@pytest.mark.requirement("S2-O8")
@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("Subject: Report\nTo: x@example.org\n\nDear Ann,", "Dear Ann,"),
        ("**Subject:** Report\n\nText", "Text"),
        ("Text\nTo: stays where it is no header", "Text\nTo: stays where it is no header"),
        ("# One\n\n\n\n### Two ###\ntext", "One\n\nTwo\ntext"),
        ("**strong** and *soft* and __strong__ and _soft_ and `code`", "strong and soft and strong and soft and code"),
        ("snake_case_name and 2*3*4 and a * b", "snake_case_name and 2*3*4 and a * b"),
        ("[the site](https://x.example/a_b_c) ![chart](c.png)", "the site (https://x.example/a_b_c) chart"),
        ("[https://x.example](https://x.example)", "https://x.example"),
        ("[ann@x.example](mailto:ann@x.example)", "mailto:ann@x.example"),
        ("* one\n  + two\n- three\n1. four", "- one\n  - two\n- three\n1. four"),
        ("Dear [Recipient Name],\nyours\n[Your Name]\n{{signature}}", "Dear,\nyours"),
        ("as in [3] and [sic]", "as in [3] and [sic]"),
        ("above\n\n---\n\nbelow\n***", "above\n\nbelow"),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", "| a | b |\n| 1 | 2 |"),
        ("> quoted", "quoted"),
        ("```python\nx = a ** b ** c\n```\nafter", "x = a ** b ** c\nafter"),
        (r"5 \* 3 \_x\_", "5 * 3 _x_"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("", ""),
    ],
)
def test_a_message_is_cleaned(written: str, sent: str) -> None:
    assert plain_letter(written) == sent


@pytest.mark.parametrize("piece", ["*", "_", "[", "](", "`", "<your ", "{{", "![", "- - ", "|-", "> ", "# ", "**a"])
def test_cleaning_takes_linear_time(piece: str) -> None:
    check_linear(lambda size: plain_letter(piece * size), 5_000)
