"""Every English text of the server that the app shows has a German translation, and no translation is unused."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from pointsman.definition.model.nodes import CONFIG_OF, TYPE_ALIASES
from pointsman.definition.model.schema import native_schema
from pointsman.server.application import openapi_document
from pointsman.values import JsonObject
from pointsman.workflows.builtin import IDS, shipped
from tests.house.sources import ROOT, files, read_text

WORDS = ROOT / "web" / "src" / "i18n"
PROPER_NAMES = {"language", "method"}
"""Fields whose values are the same in all languages: Python, GET."""
TRANSLATE = "add the English text and its German translation to web/src/i18n/given/de/{}"
REMOVE = "remove it from web/src/i18n/given/de/{}: the English text no longer exists"
NAME_TYPES = "name each type of node under `node` in web/src/i18n/{en,de}/graph.json"


def read(path: Path) -> JsonObject:
    return cast("JsonObject", json.loads(path.read_text(encoding="utf-8")))


def fields() -> Iterator[tuple[str, JsonObject]]:
    """Yield each field of the language that a form can show, with its schema."""
    schema = native_schema()
    for part in (schema, *cast("dict[str, JsonObject]", schema["$defs"]).values()):
        yield from cast("dict[str, JsonObject]", part.get("properties", {})).items()


def chosen(field: JsonObject) -> Iterator[str]:
    """Yield its options."""
    yield from cast("list[str]", field.get("enum", []))
    for option in cast("list[JsonObject]", field.get("anyOf", [])):
        yield from chosen(option)
    if isinstance(items := field.get("items"), dict):
        yield from chosen(items)


def explained(page: str) -> set[str]:
    """Return the codes that a page of the reference explains."""
    text = (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    return set(re.findall(r"^#+ `([a-z0-9-]+)`", text, re.MULTILINE))


def failure_codes() -> Iterator[str]:
    """Yield the codes of failures of steps and tools in the source."""
    for path in files("src"):
        yield from re.findall(r'\b(?:Failure|ToolFailed)\(\s*code="([a-z-]+)"', read_text(path))


def misfit_codes() -> Iterator[str]:
    """Yield the reasons why an execution cannot continue with another definition."""
    for path in files("src"):
        yield from re.findall(r'\bMigrationMismatch\(\s*"([a-z-]+)"', read_text(path))


def test_every_help_text_of_a_field_has_a_german_one() -> None:
    said = {str(field["description"]) for _, field in fields() if "description" in field}
    german = cast("dict[str, str]", read(WORDS / "given" / "de" / "language.json")["about"])
    assert said - set(german) == set(), TRANSLATE.format("language.json")
    assert set(german) - said == set(), REMOVE.format("language.json")
    assert all(german.values())


def test_every_choice_of_a_field_has_a_german_word() -> None:
    choices: defaultdict[str, set[str]] = defaultdict(set)
    for name, field in fields():
        choices[name] |= set(chosen(field))
    wanted = {name: values for name, values in choices.items() if values and name not in PROPER_NAMES}
    german = cast("dict[str, dict[str, str]]", read(WORDS / "given" / "de" / "language.json")["choices"])
    said = {(name, value) for name, values in wanted.items() for value in values}
    told = {(name, value) for name, values in german.items() for value in values}
    assert said - told == set(), TRANSLATE.format("language.json")
    assert told - said == set(), REMOVE.format("language.json")


def test_every_field_has_a_title_in_both_languages() -> None:
    names = {name for name, _ in fields() if name.isidentifier()}
    for language in ("en", "de"):
        titles = set(cast("dict[str, str]", read(WORDS / language / "fields.json")["field"]))
        assert names - titles == set(), f"give it a title in web/src/i18n/{language}/fields.json"
        assert titles - names == set(), f"remove it from web/src/i18n/{language}/fields.json: no such field exists"


def test_every_type_of_node_has_a_name_in_both_languages() -> None:
    for language in ("en", "de"):
        names = set(cast("dict[str, str]", read(WORDS / language / "graph.json")["node"]))
        assert names == {*CONFIG_OF, *TYPE_ALIASES, "frame"}, NAME_TYPES  # A frame is a note that surrounds nodes.


def test_every_operation_has_a_german_summary() -> None:
    paths = cast("dict[str, dict[str, JsonObject]]", openapi_document()["paths"])
    said = {str(one["summary"]) for path in paths.values() for one in path.values()}
    german = cast("dict[str, str]", read(WORDS / "given" / "de" / "operations.json"))
    assert said - set(german) == set(), TRANSLATE.format("operations.json")
    assert set(german) - said == set(), REMOVE.format("operations.json")
    assert all(german.values())


def inputs_of_built_in_workflows() -> Iterator[str]:
    """Yield the texts of built-in workflows about the fields of their inputs."""
    for id in IDS:
        source = shipped(id)
        schema = (source.definition.input_schema if source is not None else None) or {}
        for field in cast("dict[str, JsonObject]", schema.get("properties", {})).values():
            yield from (str(field[name]) for name in ("title", "description") if name in field)


def test_workflows_that_come_along_ask_in_german() -> None:
    said = set(inputs_of_built_in_workflows())
    german = cast("dict[str, str]", read(WORDS / "given" / "de" / "builtin.json"))
    assert len(said) > 10
    assert said - set(german) == set(), TRANSLATE.format("builtin.json")
    assert set(german) - said == set(), REMOVE.format("builtin.json")
    assert all(german.values())


def test_every_error_code_has_a_german_text() -> None:
    failures = set(failure_codes())
    assert len(failures) > 30
    german = read(WORDS / "given" / "de" / "codes.json")
    misfits = set(misfit_codes())
    assert len(misfits) > 5
    told = explained("problems.md") | explained("errors.md") | failures | misfits
    assert told - set(german) == set(), TRANSLATE.format("codes.json")
    assert all(german.values())
