"""Texts become documents: positions, repairs, and clear messages for unreadable texts."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import pairwise
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointsman.definition.problems import Problem, pointer_to
from pointsman.definition.reading.documents import BYTES_MAX, YAML_BYTES_MAX, Document, read_document
from pointsman.definition.reading.json_reader import SKIPPED_DEPTH_MAX, JsonPositions
from pointsman.definition.reading.results import Parts
from pointsman.values import Json, JsonObject
from tests.definition.documents import FULL
from tests.definition.test_workflow import JUNK


def the_problem(document: Document) -> Problem:
    (problem,) = document.problems
    return problem


def value_of(data: bytes | str, *, name: str = "") -> Json:
    document = read_document(data, name=name)
    assert document.problems == ()
    return document.value


def test_plain_json_is_json() -> None:
    assert read_document('{"a": [1, -2.5e3, "x", null, true, {}]}').format == "json"
    assert value_of('{"a": [1, -2.5e3, "x", null, true, {}]}') == {"a": [1, -2500.0, "x", None, True, {}]}


@pytest.mark.requirement("S1-30")
def test_comments_and_trailing_commas_are_read() -> None:
    document = read_document('// first\n{"a": 1, /* two */ "b": [1, 2,], "url": "http://x" ,}\n// last')
    assert (document.format, document.problems) == ("jsonc", ())
    assert document.value == {"a": 1, "b": [1, 2], "url": "http://x"}


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
)
def test_every_unicode_encoding_is_recognised(encoding: str) -> None:
    assert value_of('{"a": "Grüße 🎈"}'.encode(encoding)) == {"a": "Grüße 🎈"}


def test_invalid_bytes_are_reported() -> None:
    problem = the_problem(read_document(b'{"a": "\xe9"}'))
    assert (problem.code, problem.message) == ("unreadable", "byte 7 is not valid UTF-8")


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", b"PK\x03\x04\x14\x00\x00\x00", b"%PDF-1.7\n\x00\x01"]
)
def test_binary_files_are_refused(data: bytes) -> None:
    assert the_problem(read_document(data)).code == "unreadable"


@pytest.mark.parametrize("data", ["", "  \n\t", b"", b"\xef\xbb\xbf", "# only a comment\n", "---\n"])
def test_an_empty_document_is_refused(data: bytes | str) -> None:
    document = read_document(data)
    assert document.value is None
    assert [problem.code for problem in document.problems] in (["empty"], [])


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ('{"a": 1\n "b": 2}', 1, 8, "a comma or '}' is missing"),
        ('{"a": 1,\n "b" 2}', 2, 6, "a colon is missing behind the key 'b'"),
        ('{"a":', 1, 6, "the text ends where a value should be"),
        ('{"a": [1, 2', 1, 12, "the text ends before ']'"),
        ('{"a": "x', 1, 7, "a text does not end"),
        ('{"a": 12abc}', 1, 7, "'12abc}' is not a number"),
        ('{"a": tru}', 1, 7, "'tru' is not a value"),
        ('{"a": 1} }', 1, 10, "there is text after the end of the document"),
        ('{"a": 1 /* x', 1, 9, "a comment does not end"),
        ("{,}", 1, 2, "a key in double quotes is missing"),
    ],
)
def test_broken_json_is_reported_at_its_position(text: str, line: int, column: int, message: str) -> None:
    document = read_document(text)
    problem = the_problem(document)
    assert (problem.line, problem.column, problem.message) == (line, column, message)
    assert (document.value, document.is_readable) == (None, False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "say "hi" now", "b": 2}', {"a": 'say "hi" now', "b": 2}),
        ('{"a": ""quoted" text", "b": 2}', {"a": '"quoted" text', "b": 2}),
        ('{"a": 1\n "b": [1\n 2]}', {"a": 1, "b": [1, 2]}),
        ("{'a': 'b'}", {"a": "b"}),
        ("{a: 1, b_c: True, d: None}", {"a": 1, "b_c": True, "d": None}),
        ('{"a": "two\nlines\tand a tab"}', {"a": "two\nlines\tand a tab"}),
        (r'{"a": "\d+\."}', {"a": r"\d+\."}),
    ],
)
def test_typical_json_mistakes_of_models_have_a_fix(text: str, value: Json) -> None:
    document = read_document(text)
    assert not document.is_readable
    assert document.repaired is not None
    assert value_of(document.repaired) == value
    assert "repaired" in the_problem(document).hint


@pytest.mark.parametrize("text", ['{"a": [1, 2', '{"a": "b" "c"}', '{"a": }', '{"a": NaN}', '{"a" 1}'])
def test_ambiguous_mistakes_have_no_fix(text: str) -> None:
    assert read_document(text).repaired is None


@pytest.mark.parametrize("text", ['{"a": 1, "b": 2, "a": 3}', "a: 1\nb: 2\na: 3\n"])
def test_a_duplicate_key_is_an_error_with_both_positions(text: str) -> None:
    problem = the_problem(read_document(text))
    assert (problem.code, problem.severity, problem.pointer) == ("duplicate-key", "error", "/a")
    assert "the first is in line 1" in problem.message
    assert (problem.line, problem.column) in ((1, 18), (3, 1))


def test_duplicates_deep_inside_have_their_pointer() -> None:
    problem = the_problem(read_document('{"n": [{}, {"c": {"x": 1, "x": 2}}]}'))
    assert problem.pointer == "/n/1/c/x"


@pytest.mark.parametrize(
    "text", ['{"a": NaN}', '{"a": [Infinity]}', '{"a": -Infinity}', "a: .nan", "a: [.inf]", "a: -.Inf"]
)
def test_invalid_numbers_are_refused(text: str) -> None:
    assert the_problem(read_document(text)).code == "not-a-number"


@pytest.mark.parametrize("text", ['{"a": 1e999}', '{"a": ' + "9" * 5000 + "}", "a: 1e999"])
def test_numbers_beyond_the_range_are_refused(text: str) -> None:
    assert the_problem(read_document(text)).code == "number-too-large"


def test_numbers_of_thirty_digits_stay_exact() -> None:
    assert value_of('{"a": 123456789012345678901234567890}') == {"a": 123456789012345678901234567890}


@pytest.mark.parametrize(
    "text", ["[" * 300, "[" * 200_000, '{"a":' * 300, "a: " + "[" * 300 + "]" * 300, "[" * 300 + "]" * 300]
)
def test_a_document_nested_too_deeply_is_refused(text: str) -> None:
    assert the_problem(read_document(text)).code == "too-deep"


def test_two_hundred_levels_of_nesting_are_read() -> None:
    text = "[" * 200 + "]" * 200
    assert read_document(text).problems == ()


def test_a_document_that_is_too_large_is_refused_before_it_is_read() -> None:
    assert the_problem(read_document(b" " * (BYTES_MAX + 1))).code == "too-large"
    assert the_problem(read_document("a" * (YAML_BYTES_MAX + 1))).code == "too-large"


@pytest.mark.parametrize("text", ['{"a": "\\ud800"}', '{"\\udc00": 1}', 'a: "\\ud800"'])
def test_half_a_surrogate_pair_is_refused(text: str) -> None:
    assert the_problem(read_document(text)).code == "lone-surrogate"


def test_a_surrogate_pair_is_one_character() -> None:
    assert value_of('{"a": "\\ud83c\\udf88", }') == {"a": "🎈"}


@pytest.mark.requirement("T1-21")
def test_a_schema_sketch_is_recognised() -> None:
    document = read_document('{"status": "running" | "paused" | 3, "nodes": [...], ...}')
    assert {problem.code for problem in document.problems} == {"schema-sketch"}
    assert [problem.column for problem in document.problems] == [22, 33, 48, 54]
    assert [problem.pointer for problem in document.problems] == ["/status", "/status", "/nodes", ""]
    assert "sketch of a schema" in document.problems[0].hint


def test_yaml_follows_version_1_2() -> None:
    text = "on: off\nno: [yes, NO, ~, null, true, False, 012, 0o14, 0x1F, 1_000, 1e3, .5, 12:30, 2020-01-01]\n1: one\n"
    assert value_of(text) == {
        "on": "off",
        "no": ["yes", "NO", None, None, True, False, 12, 12, 31, "1_000", 1000.0, 0.5, "12:30", "2020-01-01"],
        "1": "one",
    }


def test_quoted_yaml_strings_stay_strings() -> None:
    assert value_of("a: ['1', \"true\", '']\nb: |\n  two\n  lines\n") == {"a": ["1", "true", ""], "b": "two\nlines\n"}


def test_yaml_anchors_and_merge_keys_are_read() -> None:
    text = "base: &b {x: 1, y: 2}\nc: {<<: *b, y: 3}\nd: {y: 4, <<: [*b, {z: 5}]}\ne: *b\n"
    assert value_of(text) == {
        "base": {"x": 1, "y": 2},
        "c": {"x": 1, "y": 3},
        "d": {"y": 4, "x": 1, "z": 5},
        "e": {"x": 1, "y": 2},
    }


def test_an_alias_bomb_is_refused() -> None:
    names = "abcdefghij"
    bomb = "a: &a [" + ",".join("x" * 9) + "]\n"
    bomb += "".join(f"{n}: &{n} [{','.join([f'*{p}'] * 9)}]\n" for p, n in pairwise(names))
    assert the_problem(read_document(bomb)).code == "alias-bomb"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a: !!python/object:os.system x", "yaml-tag"),
        ("a: !secret x", "yaml-tag"),
        ("--- {a: 1}\n--- {b: 1}\n", "several-documents"),
        ("a: *nowhere", "unreadable"),
        ("? [a, b]\n: 1", "unreadable"),
        ("a: b: c", "unreadable"),
        ("\ta: 1", "unreadable"),
        ("a: [1, 2", "unreadable"),
        ("a: {<<: 3}", "unreadable"),
        ('{"a": 1} {"b": 2}', "several-documents"),
    ],
)
def test_yaml_that_is_not_json_data_is_refused(text: str, code: str) -> None:
    problem = the_problem(read_document(text))
    assert problem.code == code
    assert problem.line is not None


def test_yaml_flow_style_is_read_in_yaml_files() -> None:
    assert value_of("{a: 1, b: [x]}", name="w.yaml") == {"a": 1, "b": ["x"]}


@pytest.mark.parametrize("fence", ["```json\n{}\n```", "~~~\n{}\n~~~", "```yaml\n{}\n```"])
def test_a_code_block_is_unpacked_with_a_note(fence: str) -> None:
    document = read_document(f"Here is it:\n\n{fence}\nEnjoy!".replace("{}", '{"a": 1}'))
    assert document.value == {"a": 1}
    assert [(problem.code, problem.severity) for problem in document.problems] == [("fenced", "note")]
    assert document.position("/a") == (4, 2)


def test_of_several_code_blocks_the_largest_is_read_with_a_warning() -> None:
    small, large = '```json\n{"id": "a"}\n```\n', "```yaml\nid: the-larger-one\nnodes: []\n```\n"
    for text, line in ((small + large, 5), (large + small, 2)):
        document = read_document(f"{text}```sh\necho this is a command, and no document at all\n```\n")
        assert cast("JsonObject", document.value)["id"] == "the-larger-one"
        [problem] = document.problems
        assert (problem.code, problem.severity) == ("fenced", "warning")
        assert f"of 2 Markdown code blocks the largest was read, which begins at line {line}" in problem.message


def test_code_blocks_without_a_language_count_if_they_look_like_data() -> None:
    drawing = "```\n┌──────────────────────────────┐\n│ 1. Load the graph definition │\n```\n"
    steps = "```\n1. Load the definition of the graph\n2. Execute the nodes of the queue\n```\n"
    document = read_document(f'{drawing}{steps}```json\n{{"id": "a"}}\n```\n')
    assert document.value == {"id": "a"}
    assert [(problem.code, problem.severity) for problem in document.problems] == [("fenced", "note")]
    assert read_document(f"{drawing}```\nid: a\n```\n").value == {"id": "a"}


def value_position(document: Document, pointer: str) -> tuple[int, int]:
    return document.line_and_column(document.offset(pointer))


def test_positions_of_keys_and_values_are_recorded() -> None:
    for text in ('{\n  "a": {"b": [10,\n   20]}\n}', "\na:   {b: [10,\n    20]}\n"):
        document = read_document(text)
        assert document.position("/a/b/1") == value_position(document, "/a/b/1")
        assert document.position("/a")[0] == 2
        assert value_position(document, "/a")[1] > document.position("/a")[1]
        assert document.position("/a/b/1/none/of/this") == document.position("/a/b/1")


def test_positions_count_characters_and_any_line_break() -> None:
    document = read_document('{"ü🎈":1,\r\n"b":\r2}')
    assert (document.position("/b"), value_position(document, "/b")) == ((2, 1), (3, 1))


def test_every_position_of_a_large_document_is_right() -> None:
    text = json.dumps(FULL, indent=1)
    document = read_document(text)
    lines = text.splitlines()
    for pointer, word in (
        ("/nodes/1/config/prompt", '"prompt"'),
        ("/edges/3/target", '"target"'),
        ("/x-mine", '"x-mine"'),
    ):
        line, column = document.position(pointer)
        assert lines[line - 1][column - 1 :].startswith(word)


@settings(max_examples=150, deadline=None)
@given(JUNK)
def test_every_json_value_is_read_the_same_by_both_readers(value: Json) -> None:
    text = json.dumps({"value": value}, ensure_ascii=False)
    assert value_of(text) == {"value": value}
    assert value_of(f"{text}// and a comment") == {"value": value}


def pointers_in(value: Json, at: str = "") -> Iterator[str]:
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from pointers_in(part, at + pointer_to(key))


@settings(max_examples=40, deadline=None)
@given(JUNK, st.integers(0, SKIPPED_DEPTH_MAX + 2), st.sampled_from([None, 1]), st.randoms(use_true_random=False))
def test_positions_in_plain_json_equal_those_of_the_exact_reader(
    value: Json, depth: int, indent: int | None, chance: random.Random
) -> None:
    for _ in range(depth):
        value = {"before": [1, {"a": "}"}], 'in/si~de"\\': [value], "behind": {}}
    text = json.dumps({"value": value}, indent=indent)
    plain, exact = read_document(text), read_document(f"{text}// and a comment")
    pointers = [*pointers_in(plain.value)]
    chance.shuffle(pointers)
    for pointer in pointers:
        assert plain.position(pointer) == exact.position(pointer)
        assert plain.offset(pointer) == exact.offset(pointer)


def test_a_position_is_computed_from_its_surroundings_only(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    parts_of = JsonPositions.read

    def counted(places: JsonPositions, offset: int) -> Parts:
        read.append(offset)
        return parts_of(places, offset)

    monkeypatch.setattr(JsonPositions, "read", counted)
    document = read_document(json.dumps({"nodes": [{"id": f"n{i}", "config": {"prompt": "Go."}} for i in range(500)]}))
    assert not read, "a document without problems has no positions"
    document.position("/nodes/250/config/prompt")
    document.position("/nodes/250/config/system")
    assert len(read) == len(("", "nodes", "250", "config"))


SPARKS = [
    "{",
    "}",
    "[",
    "]",
    '"',
    ":",
    ",",
    "\\",
    "'",
    "|",
    "...",
    "/*",
    "//",
    "\n",
    "\t",
    "- ",
    "*a",
    "&a",
    "!!x",
    "<<: ",
    "? ",
]


@settings(max_examples=250, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_mutated_documents_are_read_or_refused(seed: int, as_yaml: bool) -> None:
    chance = random.Random(seed)
    text = json.dumps(FULL, indent=2)[: chance.randrange(50, 4000)]
    if as_yaml:
        text = text.replace('"', "").replace("{", "").replace("}", "").replace(",", "")
    for _ in range(chance.randrange(1, 8)):
        at, length = chance.randrange(len(text)), chance.randrange(6)
        text = text[:at] + chance.choice([*SPARKS, chr(chance.randrange(0x110000))]) + text[at + length :]
    document = read_document(text)
    for problem in document.problems:
        assert problem.message
        assert problem.line is not None
        assert 1 <= problem.line <= text.count("\n") + text.count("\r") + 1
    if document.repaired is not None:
        assert read_document(document.repaired).value is not None


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes | str) -> None:
    document = read_document(data)
    assert document.is_readable or document.problems[0].message


@pytest.mark.parametrize(
    "text",
    [
        f'{{"a": {"7" * 101}}}',
        f'{{"a": 0.{"7" * 101}}}',
        f'{{"a": {"7" * 101}, /* not plain */ "b": 1}}',
        f"a: {'7' * 101}",
        f"a: 0.{'7' * 101}",
        f"a: 0x{'f' * 101}",
        f"a: -{'7' * 5_000}",
    ],
)
def test_number_of_more_than_a_hundred_digits_is_refused_in_every_format(text: str) -> None:
    document = read_document(text)
    assert [one.code for one in document.problems] == ["number-too-large"]
    assert "100" in document.problems[0].message
    assert "as a text" in document.problems[0].hint


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("a: [1, 2", 1, "the list is not closed", "Add ']'."),
        ("a: 1\nb: {x: 1, ", 2, "the object is not closed", "Add '}'."),
        ("a: [1, 2\nb: 3", 2, "a comma or ']' is missing in the list that begins in line 1, column 4", "Close it"),
        ("a: [1, 2}", 1, "a comma or ']' is missing in the list", "Close it with ']'"),
        ("a: b: c", 1, "a text that contains ': ' has no quotes", "in quotes"),
        ("a:\n  - id: s\n     type: x", 3, "the key 'type' is not allowed at this position", "Indent it like"),
        ("a:\n  b: 1\n c: 2", 3, "this line does not belong to the object that begins in line 1", "equally"),
        ("a:\n  - b: 1\n   - c: 2", 3, "this line does not belong to the list that begins in line 2", "equally"),
        ("a:\n- x\nb\nc: 1", 3, "this line is neither `key: value` nor a list entry", "in quotes"),
        ('a: 1\nb: "x\nc: 1', 2, "a quoted text is not closed", "Add the closing quote."),
        ("a:\n\tb: 1", 2, "a tab is used as indentation", "spaces"),
        ("a: @x", 1, "a text cannot begin with '@'", "in quotes"),
        ('a: "b" c', 1, "there is further text after a value", "in quotes"),
        ("a: - b", 1, "a list entry is not allowed at this position", "new line"),
    ],
)
def test_an_error_in_yaml_states_the_place_and_the_repair(text: str, line: int, message: str, hint: str) -> None:
    problem = the_problem(read_document(text.encode(), name="flow.yaml"))
    assert (problem.code, problem.line) == ("unreadable", line)
    assert message in problem.message
    assert hint in problem.hint
