"""Redaction masks secrets in every encoding and at every position, and changes nothing else."""

from __future__ import annotations

import base64
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointsman.redaction import MASK, NOTHING, Redaction, Stream, redaction_of
from pointsman.values import Json
from tests.encodings import ACCOUNT, ENCODINGS, LATIN, PASSWORD, PEM, SECRETS, TOKEN, written


def pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def streamed(redaction: Redaction, text: str, size: int) -> str:
    stream = Stream(redaction)
    return "".join(stream.feed(piece) for piece in pieces(text, size)) + stream.end()


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_masked_in_every_encoding(name: str, encoding: str) -> None:
    secret = SECRETS[name]
    redaction = redaction_of(frozenset({secret}))
    text = written(secret, encoding)
    for around in ("{}", "before {} after", 'x="{}";', "{{}}{}/", "%{}%", "={}&"):
        whole = around.format(text)
        shown = redaction.text(whole)
        assert MASK in shown
        assert not redaction.finds(shown.encode(errors="surrogatepass"))
        if name in ("TOKEN", "PASSWORD", "LATIN") and "base64" not in encoding and "mail" not in encoding:
            assert text not in shown
            assert all(part not in shown for part in pieces(secret, 8)[:-1])


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("size", [1, 3, 7])
def test_a_secret_that_comes_in_pieces_is_masked(encoding: str, size: int) -> None:
    redaction = redaction_of(frozenset({TOKEN, PASSWORD}))
    for secret in (TOKEN, PASSWORD):
        if encoding == "mail":
            continue  # Mails are not streamed.
        whole = f"it is {written(secret, encoding)} and that was it"
        shown = streamed(redaction, whole, size)
        assert MASK in shown
        assert not redaction.finds(shown.encode(errors="surrogatepass"))


def test_text_without_a_secret_streams_without_delay() -> None:
    stream = Stream(redaction_of(frozenset({TOKEN})))
    assert [stream.feed(word) for word in ("Good ", "morning, ", "Ada. ")] == ["Good ", "morning, ", "Ada. "]
    assert stream.end() == ""


def test_each_line_of_a_key_and_each_leaf_of_a_json_secret_is_masked() -> None:
    redaction = redaction_of(frozenset({PEM, ACCOUNT}))
    assert redaction.text("MIIEvQIBADANBgkq/hkiG9w0BAQEF+AASCB") == MASK
    assert redaction.text("only leaf-of-the-account-77!") == f"only {MASK}!"
    assert redaction.text("-----BEGIN PRIVATE KEY-----") == "-----BEGIN PRIVATE KEY-----"


def test_the_password_of_an_address_is_masked() -> None:
    redaction = redaction_of(frozenset({"postgresql://reader:p%40ssw0rd-9@db.example.org/shop"}))
    assert redaction.text("wrong password p@ssw0rd-9 of reader") == f"wrong password {MASK} of reader"
    assert redaction.text("db.example.org/shop of reader") == "db.example.org/shop of reader"


def test_keys_values_and_numbers_of_a_tree_are_masked() -> None:
    redaction = redaction_of(frozenset({TOKEN, "1234567890"}))
    tree: Json = {TOKEN: [TOKEN, {"deep": f"x{TOKEN}y"}], "number": 1234567890, "other": [1, True, None, 1.5]}
    assert redaction.json(tree) == {
        MASK: [MASK, {"deep": f"x{MASK}y"}],
        "number": MASK,
        "other": [1, True, None, 1.5],
    }


def test_a_list_of_the_bytes_of_a_secret_is_masked() -> None:
    redaction = redaction_of(frozenset({TOKEN, LATIN}))
    tree: Json = {"token": [*TOKEN.encode()], "latin": [0, *LATIN.encode("latin-1"), 0], "other": [*b"no secret"]}
    assert redaction.json(tree) == {"token": MASK, "latin": MASK, "other": [*b"no secret"]}


def test_text_without_a_secret_is_returned_unchanged() -> None:
    redaction = redaction_of(frozenset({TOKEN}))
    tree: Json = {"text": "100 % of C:\\new & more = %41 é", "list": [1, 2.5, None, True, "x"]}
    assert redaction.json(tree) is tree
    assert NOTHING.json(tree) is tree
    assert not NOTHING


def test_binary_data_in_base64_are_not_changed_by_short_secrets() -> None:
    blob = base64.b64encode(bytes(range(256)) * 400).decode()
    assert redaction_of(frozenset({"test", "abcde"})).text(blob) == blob


@given(st.text(min_size=8, max_size=40), st.text(max_size=60), st.text(max_size=60), st.integers(1, 9))
def test_no_secret_survives_in_any_text(secret: str, before: str, after: str, size: int) -> None:
    redaction = Redaction([secret])
    for text in (secret, json.dumps(secret), json.dumps(secret, ensure_ascii=False)):
        whole = f"{before}|{text}|{after}"
        assert not redaction.finds(redaction.text(whole).encode(errors="surrogatepass"))
        assert not redaction.finds(streamed(redaction, whole, size).encode(errors="surrogatepass"))


@given(st.text(max_size=300))
def test_a_text_without_the_secret_is_not_changed(text: str) -> None:
    redaction = redaction_of(frozenset({"zQ9-0123456789-zQ9"}))
    assert redaction.text(text) == text
    assert streamed(redaction, text, 5) == text


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_a_tree_without_the_secret_is_not_changed(tree: Json) -> None:
    assert redaction_of(frozenset({"zQ9-0123456789-zQ9"})).json(tree) == tree


def test_the_cost_is_linear_in_the_text() -> None:
    """Also for texts with beginnings of secrets, and for nested escapes."""
    redaction = redaction_of(frozenset({"a" * 40, TOKEN}))

    def seconds(text: str) -> float:
        begun = time.process_time()
        redaction.text(text)
        return time.process_time() - begun

    for unit in ("a" * 39 + "b", "%25" * 10 + "41", "\\" * 40, "&amp;" * 8, "=3D" * 10, "=?utf-8?q?a" * 4):
        small, large = (min(seconds(unit * count) for _ in range(3)) for count in (1_000, 8_000))
        assert large < max(small, 0.005) * 24, f"{unit[:20]!r}: {small:.4f} s, then {large:.4f} s"
