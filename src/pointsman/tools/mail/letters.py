"""Letters as models write them, made fit to be sent: without headers of their own, unfilled places and markup.

Subject: Report          (gone)
# Findings               Findings
Dear [Name], **read**    Dear, read
[the site](https://x)    the site (https://x)
"""

from __future__ import annotations

import re
from typing import Final

_HEADER: Final = re.compile(r"\**(subject|to|from|cc|bcc|date|reply-to)\**\s*:\**[^\n]*", re.IGNORECASE)
_FENCE: Final = re.compile(r"\s*(```|~~~)")
_RULE: Final = re.compile(r"\s*([-*_])\s*(\1\s*){2,}")
_TABLE_RULE: Final = re.compile(r"[\s|:-]*-[\s|:-]*")
_HEADING: Final = re.compile(r"\s{0,3}#{1,6}\s+(.*?)\s*#*\s*")
_BULLET: Final = re.compile(r"(\s*)[*+]\s+")
_IMAGE: Final = re.compile(r"!\[([^\]\n]{0,500})\]\([^()\n]{0,2000}\)")
_LINK: Final = re.compile(r"\[([^\[\]\n]{1,500})\]\((\S{1,2000}?)\)")
_PLACE: Final = re.compile(
    r"\[\s*(?:your|recipient|client|company|insert|name|date|address|phone|email|title|position|contact)[^\[\]\n]{0,80}\]"
    r"|\{\{[^{}\n]{0,80}\}\}|<\s*(?:your|insert|recipient|name)[^<>\n]{0,80}>",
    re.IGNORECASE,
)
_STRONG: Final = re.compile(r"(\*\*|__)(?=\S)([^\n]{1,2000}?)(?<=\S)\1")
_SOFT: Final = re.compile(r"(?<![\w*\\])([*_])(?=[^\s*_])([^\n*_]{1,500}?)(?<=\S)\1(?![\w*])")
_CODE: Final = re.compile(r"`([^`\n]{1,500})`")
_ESCAPED: Final = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|>~])")
_BLANKS: Final = re.compile(r"\n{3,}")


def plain_letter(text: str) -> str:
    """The text as a person would have typed it."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n").split("\n")
    kept: list[str] = []
    fenced = False
    for line in _without_headers(lines):
        if _FENCE.match(line):
            fenced = not fenced
        elif fenced:
            kept.append(line)
        elif not (_RULE.fullmatch(line) or ("|" in line and _TABLE_RULE.fullmatch(line))):
            kept.append(_line(line))
    return _BLANKS.sub("\n\n", "\n".join(line.rstrip() for line in kept)).strip()


def _without_headers(lines: list[str]) -> list[str]:
    """Without the headers that a letter begins with."""
    begins = 0
    while begins < len(lines) and (not lines[begins].strip() or _HEADER.fullmatch(lines[begins].strip())):
        begins += 1
    return lines[begins:]


def _line(line: str) -> str:
    heading = _HEADING.fullmatch(line)
    said = heading[1] if heading else _BULLET.sub(r"\1- ", line, count=1) if _BULLET.match(line) else line
    said = said.removeprefix("> ") if said.startswith(">") else said
    said = _LINK.sub(_linked, _IMAGE.sub(r"\1", said))
    said = _CODE.sub(r"\1", _SOFT.sub(r"\2", _STRONG.sub(r"\2", said)))
    bare = _PLACE.sub("", said)
    if bare != said:
        bare = re.sub(r" +([,.;:!?])", r"\1", re.sub(r"(?<=\S) {2,}", " ", bare))
    return _ESCAPED.sub(r"\1", bare)


def _linked(link: re.Match[str]) -> str:
    return link[2] if link[1] in (link[2], link[2].removeprefix("mailto:")) else f"{link[1]} ({link[2]})"
