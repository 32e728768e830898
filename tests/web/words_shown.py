"""All words of a page, including those for screen readers, and the words among them that are in another language."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Page

WORDS: Final = Path(__file__).parents[2] / "web" / "src" / "i18n"

SAID: Final = """() => {
  const said = new Set();
  const isOther = (one) => one.closest('[lang]')?.lang !== document.documentElement.lang;
  const data = 'script, style, code, pre, kbd, textarea, .font-mono, .cm-content';
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const at = texts.currentNode.parentElement;
    const text = texts.currentNode.textContent.trim();
    if (text && !isOther(at) && !at.closest(data)) said.add(text.replace(/\\s+/g, ' '));
  }
  const heard = ['aria-label', 'title', 'placeholder', 'alt', 'aria-description', 'aria-roledescription',
    'aria-valuetext', 'aria-placeholder'];
  for (const one of document.querySelectorAll(heard.map((name) => `[${name}]`).join()))
    for (const name of heard) {
      const text = one.getAttribute(name)?.trim();
      if (text && !isOther(one) && !one.closest('.font-mono')) said.add(text.replace(/\\s+/g, ' '));
    }
  said.add(document.title);
  return [...said];
}"""
"""Texts of the page and accessible names, without those marked as another language, as code, or as input."""

FUNCTION_WORDS: Final = {
    "en": r"the|of|is|are|and|to|with|not|from|this|that|by|or|it|its|has|have|been|be|does|do|no|there|your|you|use",
    "de": r"der|die|das|und|ist|sind|nicht|ein|eine|einen|zu|mit|von|wird|werden|oder|auf|Sie",
}
"""Short words that occur in every sentence of a language and in no other language here."""

FILLED: Final = re.compile(r"\{\{.*?\}\}")
KEY: Final = re.compile(r"[a-z]+[A-Za-z]*(\.[A-Za-z_]+)+")


def texts(words: Any) -> Iterator[str]:
    if isinstance(words, str):
        yield words
    else:
        for one in words.values():
            yield from texts(one)


@cache
def catalogue(language: str) -> frozenset[str]:
    files = sorted((WORDS / language).rglob("*.json"))
    return frozenset(one for file in files for one in texts(json.loads(file.read_text("utf-8"))))


@cache
def foreign(language: str) -> tuple[frozenset[str], re.Pattern[str]]:
    """Return the texts that occur only in the other language: whole texts, and texts with placeholders."""
    other = "en" if language == "de" else "de"
    mine = catalogue(language)
    theirs = catalogue(other) - mine
    plain = frozenset(one for one in theirs if not FILLED.search(one))
    filled = [one for one in theirs if FILLED.search(one) and re.search(r"[A-Za-z]{3}", FILLED.sub("", one))]
    patterns = [".+".join(re.escape(part) for part in FILLED.split(one)) for one in filled]
    return plain, re.compile("|".join(f"(?:{one})" for one in patterns))


@cache
def own(language: str) -> re.Pattern[str]:
    """Return the texts of the language itself, with any value for placeholders."""
    said = (one for one in catalogue(language) if re.search(r"\w{3}", FILLED.sub("", one)))
    patterns = (".*".join(re.escape(part) for part in FILLED.split(one)) for one in said)
    return re.compile("|".join(f"(?:{one})" for one in patterns))


@cache
def sections(language: str) -> frozenset[str]:
    return frozenset(file.stem for file in (WORDS / language).rglob("*.json"))


def wrong_words(said: list[str], language: str) -> list[str]:
    """Return words of the other language, and keys of texts that do not exist."""
    plain, filled = foreign(language)
    sentence = re.compile(rf"(?<![\w'/-])(?:{FUNCTION_WORDS['en' if language == 'de' else 'de']})(?![\w'/-])")
    return [
        one
        for one in said
        if one in plain
        or (KEY.fullmatch(one) and one.partition(".")[0] in sections(language))
        or (not own(language).fullmatch(one) and (filled.fullmatch(one) or sentence.search(one)))
    ]


IDS: Final = """() => {
  const found = new Set();
  const id = /\\b(wf-70\\d\\d|n-[a-z]+)\\b/;
  const elsewhere = 'script, style, code, pre, textarea, .font-mono, .cm-content, [lang=en]';
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const at = texts.currentNode.parentElement;
    const text = texts.currentNode.textContent;
    if (id.test(text) && !text.startsWith('Scripted answer') && !at.closest(elsewhere)) found.add(text);
  }
  for (const one of document.querySelectorAll('[aria-label]'))
    if (id.test(one.getAttribute('aria-label'))) found.add(one.getAttribute('aria-label'));
  if (id.test(document.title)) found.add(document.title);
  return [...found];
}"""
"""Ids in place of a name: not those beside a name in their own font, and not those in tooltips."""


async def ids_on(page: Page) -> list[str]:
    return list(await page.evaluate(IDS))


async def said_on(page: Page) -> list[str]:
    return list(await page.evaluate(SAID))
