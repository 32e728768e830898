"""Find and mask secrets in text, bytes and JSON, in every encoding that the clients of this product write.

    secret ──▶ forms (UTF-8, Latin-1, UTF-16, base64 at three offsets, hex …) ──▶ views ──▶ needles
    data ────▶ views: escapes, entities, percent, quoted-printable are undone; quotes and spaces are dropped
                  └──▶ search for the needles ──▶ map each hit back to the data ──▶ ***

Both sides pass through the same views, so the search does not depend on which characters a client escapes or on the
number of escape levels. It ignores the case of ASCII letters except in base64, where another case is another value, and
in needles of fewer than 8 characters. The cost is linear in the data; without secrets it is zero.
"""

from __future__ import annotations

import base64
import html
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from contextvars import ContextVar, Token
from email.errors import HeaderParseError
from email.header import decode_header
from functools import lru_cache
from typing import Final, NamedTuple, cast
from unicodedata import normalize
from urllib.parse import quote, quote_plus, unquote

from pointsman.values import Json

MASK: Final = "***"
CHARS_MIN: Final = 4
"""Shorter secrets cannot be masked, because they occur in ordinary text. They are refused if a handle names them."""
ANYWHERE_CHARS_MIN: Final = 8
"""A shorter value is masked only in the result of a call that received it."""
LINE_CHARS_MIN: Final = 8
"""Shorter lines of a secret, and shorter leaves of a JSON secret, are not treated as secrets themselves."""
BASE64_CHARS_MIN: Final = 7
"""Fewer characters of base64 occur by chance in a megabyte of it."""
ROUNDS_MAX: Final = 4
"""How many levels of nested escapes are undone."""

_IGNORED: Final = b" \t\r\n\v\f+_\\'\""
"""Bytes that encodings add, drop or replace: line wrapping, form encoding, MIME words, every kind of quoting."""
_JUNK: Final = re.compile(rb"[ \t\r\n\v\f+_\\'\"]+")
_NOT_SECRET: Final = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]+-----")
_PASSWORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/@\s:]*:([^/\s]+)@")

_RUN: Final = rb"(?<!\\)\\+"
"""Matches only from the first backslash of a run: a match from each would be quadratic."""
_PAIR: Final = _RUN + rb"u[dD][89abAB][0-9a-fA-F]{2}\\+u[dD][c-fC-F][0-9a-fA-F]{2}"
_BRACED: Final = rb"u\{(?:10[0-9a-fA-F]{4}|[0-9a-fA-F]{1,5})\}"
_LONG: Final = rb"U00(?:10|0[0-9a-fA-F])[0-9a-fA-F]{4}"
_SHORT: Final = rb"u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[0-3][0-7]{2}|[nrtvf]"
_BACKSLASH: Final = _PAIR + rb"|" + _RUN + rb"(?:" + rb"|".join((_SHORT, _BRACED, _LONG)) + rb")"
_ENTITY: Final = rb"&(?:amp;)*(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
_PERCENT: Final = rb"%(?:25)*[0-9a-fA-F]{2}"
_WORDS: Final = rb"=\?[\w.-]{1,40}\?[bBqQ]\?[^?\s]*\?=(?:\s+=\?[\w.-]{1,40}\?[bBqQ]\?[^?\s]*\?=)*"
_QUOTED: Final = _WORDS + rb"|=\r?\n|=[0-9A-F]{2}"
_UNFINISHED: Final = re.compile(
    rb"(?:(?<!\\)\\+(?:u[dD][89abAB][0-9a-fA-F]{2}(?:\\*(?:u[0-9a-fA-F]{0,3})?)?|u[0-9a-fA-F]{0,3}|u\{[0-9a-fA-F]{0,6}"
    rb"|U[0-9a-fA-F]{0,7}|x[0-9a-fA-F]?|[0-3][0-7]?)?"
    rb"|%(?:2|25)*[0-9a-fA-F]?|&#?[A-Za-z0-9]{0,31}|=[0-9A-F]?"
    rb"|=\?[\w.-]{0,40}(?:\?(?:[bBqQ](?:\?[^?\s]{0,80}(?:\?=?\s{0,4})?)?)?)?)\Z"
)


class _View(NamedTuple):
    """One way to undo encodings."""

    triggers: re.Pattern[bytes] | None
    """Data without a match look the same in this view and in the plain one."""
    token: re.Pattern[bytes] | None


def _view(*tokens: bytes, trigger: bytes) -> _View:
    return _View(re.compile(trigger), re.compile(b"|".join(tokens)))


_VIEWS: Final = (
    _View(None, None),
    _view(_BACKSLASH, _ENTITY, trigger=rb"[\\&]"),
    _view(_PERCENT, _BACKSLASH, _ENTITY, trigger=rb"%[0-9a-fA-F]{2}"),
    _view(_QUOTED, _PERCENT, _BACKSLASH, _ENTITY, trigger=rb"=(?:\?|\r?\n|[0-9A-F]{2})"),
)
"""Several, because an escape in one encoding may be plain text in another: `=AB` in an address."""

Span = tuple[int, int]


def _decoded(token: bytes) -> bytes:
    """Return the text of one escape, as UTF-8; an escaped single byte stays that byte."""
    match token[:1]:
        case b"\\":
            return _unescaped(token.lstrip(b"\\"))
        case b"&":
            inner = token.rpartition(b"amp;")[2].removeprefix(b"&").decode("ascii")
            return html.unescape(f"&{inner}").encode(errors="surrogatepass")
        case b"%":
            return bytes((int(token[-2:], 16),))
        case _ if token.startswith(b"=?"):
            return _mime_words(token)
        case _:
            return bytes((int(token[1:], 16),)) if token[1:].strip() else b""


def _unescaped(escape: bytes) -> bytes:
    match escape[:1]:
        case b"U":
            return chr(int(escape[1:], 16)).encode(errors="surrogatepass")
        case b"u" if escape.endswith(b"}"):
            return chr(int(escape[2:-1], 16)).encode(errors="surrogatepass")
        case b"u":
            units = [int(one, 16) for one in re.split(rb"\\+u", escape[1:])]
            packed = b"".join(unit.to_bytes(2, "big") for unit in units)
            return packed.decode("utf-16-be", "surrogatepass").encode(errors="surrogatepass")
        case b"x":
            return bytes((int(escape[1:], 16),))
        case b"0" | b"1" | b"2" | b"3":
            return bytes((int(escape, 8),))
        case _:
            return b"\n"


def _mime_words(words: bytes) -> bytes:
    try:
        pieces = decode_header(words.decode("ascii"))
        texts = [
            one.decode(kind or "ascii", "replace") if isinstance(one, bytes) else one
            for one, kind in cast("list[tuple[bytes | str, str | None]]", pieces)
        ]
    except (HeaderParseError, LookupError, ValueError):
        return words
    return "".join(texts).encode(errors="surrogatepass")


class _Map:
    """Map from the bytes of a rewritten text to those of its source."""

    def __init__(self) -> None:
        self.into: list[Span] = []
        self.out: list[Span] = []
        self._starts: list[int] = []

    def add(self, into: Span, out: Span) -> None:
        self.into.append(into)
        self.out.append(out)
        self._starts.append(out[0])

    def back(self, span: Span) -> Span:
        """Return the span of the source that became this span of the rewritten text."""
        return self._source_span(span[0])[0], self._source_span(span[1] - 1)[1]

    def _source_span(self, at: int) -> Span:
        """Return the span of the source that became one byte."""
        number = bisect_right(self._starts, at) - 1
        if number < 0:
            return at, at + 1
        (begin, end), (_, out_end) = self.into[number], self.out[number]
        if at < out_end:
            return begin, end
        return end + at - out_end, end + at - out_end + 1


def _rewritten(data: bytes, token: re.Pattern[bytes], decode: Callable[[bytes], bytes]) -> tuple[bytes, _Map]:
    parts, mapped, at, size = list[bytes](), _Map(), 0, 0
    for match in token.finditer(data):
        plain, new = data[at : match.start()], decode(match[0])
        parts += (plain, new)
        size += len(plain)
        mapped.add(match.span(), (size, size + len(new)))
        size += len(new)
        at = match.end()
    parts.append(data[at:])
    return b"".join(parts), mapped


def _view_of(data: bytes, view: _View) -> bytes:
    """Return the data in one view."""
    if view.token is not None:
        for _ in range(ROUNDS_MAX):
            new = view.token.sub(lambda match: _decoded(match[0]), data)
            if new == data:
                break
            data = new
    return data.translate(None, _IGNORED)


def _seen_with_maps(data: bytes, view: _View) -> tuple[bytes, list[_Map]]:
    """Return the data in one view, and the maps back to the data."""
    maps: list[_Map] = []
    if view.token is not None:
        for _ in range(ROUNDS_MAX):
            new, mapped = _rewritten(data, view.token, _decoded)
            if new == data:
                break
            data = new
            maps.append(mapped)
    data, mapped = _rewritten(data, _JUNK, lambda _: b"")
    return data, [*maps, mapped]


def _seen_so_far(data: bytes, view: _View) -> tuple[bytes, list[_Map], int]:
    """Return the data in one view without an unfinished escape at the end, the maps back, and where that escape begins.
    For data that arrives in pieces."""
    maps: list[_Map] = []
    cut = len(data)
    for _ in range(ROUNDS_MAX if view.token is not None else 0):
        if (unfinished := _UNFINISHED.search(data)) is not None:
            at = unfinished.start()
            cut = min(cut, _back((at, at + 1), maps)[0])
            data = data[:at]
        new, mapped = _rewritten(data, cast("re.Pattern[bytes]", view.token), _decoded)
        if new == data:
            break
        data = new
        maps.append(mapped)
    data, mapped = _rewritten(data, _JUNK, lambda _: b"")
    return data, [*maps, mapped], cut


def _back(span: Span, maps: list[_Map]) -> Span:
    for one in reversed(maps):
        span = one.back(span)
    return span


class Redaction:
    """Redaction of a set of secrets. Immutable; created once per set (`redaction_of`)."""

    def __init__(self, secrets: Iterable[str]) -> None:
        needles: set[bytes] = set()
        folded: set[bytes] = set()
        exact: set[bytes] = set()
        for secret in secrets:
            for part in _parts(secret):
                for needle, ignores_case in _needles(part):
                    if ignores_case and len(needle) >= ANYWHERE_CHARS_MIN:
                        folded.add(needle.lower())
                    else:
                        needles.add(needle)
                if len(_view_of(part.encode(errors="surrogatepass"), _VIEWS[0])) < CHARS_MIN:
                    exact.add(part.encode(errors="surrogatepass"))
        # Longest first: one secret may begin with another.
        self._needles = sorted(needles, key=len, reverse=True)
        self._folded = sorted(folded, key=len, reverse=True)
        """Needles in lower case, for which the case of the data does not count."""
        self._exact = sorted(exact, key=len, reverse=True)
        self._shortest = min(map(len, [*needles, *folded, *exact]), default=0)
        self._longest = max(map(len, [*needles, *folded]), default=0)
        self._by_first: dict[int, list[bytes]] = {}
        self._folded_by_first: dict[int, list[bytes]] = {}
        for listed, by_first in ((self._needles, self._by_first), (self._folded, self._folded_by_first)):
            for needle in listed:
                by_first.setdefault(needle[0], []).append(needle)

    def __bool__(self) -> bool:
        """Return whether there is anything to mask."""
        return self._shortest > 0

    def stream(self) -> Stream:
        """Return a redaction of a text that arrives in pieces."""
        return Stream(self)

    def text(self, text: str) -> str:
        """Return the text with its secrets masked; the same object if it has none."""
        if len(text) < self._shortest or not self:
            return text
        data = text.encode(errors="surrogatepass")
        spans = self.spans(data)
        return text if not spans else _masked(data, _of_characters(data, spans)).decode(errors="surrogatepass")

    def data(self, data: bytes) -> bytes:
        """Return the bytes with their secrets masked."""
        spans = self.spans(data)
        return _masked(data, spans) if spans else data

    def json(self, value: Json) -> Json:
        """Return the JSON value with secrets masked, also in keys; the same object if it has none."""
        if not self or (not self._exact and self._is_clean(value)):
            return value
        return self._tree(value)

    def finds(self, data: bytes) -> bool:
        """Return whether the data contain a secret."""
        if not self or len(data) < self._shortest:
            return False
        return self._has_exact(data) or any(self._hits(_view_of(data, view)) for view in self._views(data))

    def spans(self, data: bytes) -> list[Span]:
        """Return the spans of the secrets, in order and without overlaps."""
        if not self or len(data) < self._shortest:
            return []
        spans: list[Span] = []
        for view in self._views(data):
            if self._hits(_view_of(data, view)):
                visible, maps = _seen_with_maps(data, view)
                lower = visible.lower()
                for needle in self._needles:
                    spans += (_back(span, maps) for span in _all(visible, needle))
                for needle in self._folded:
                    spans += (_back(span, maps) for span in _all(lower, needle))
        for needle in self._exact:
            spans += _all(data, needle)
        return _joined(spans)

    def beginning(self, data: bytes) -> int:
        """Return where the end of the data may be the beginning of a secret that more data would complete; their length
        if it is not."""
        if not self:
            return len(data)
        begin = len(data)
        for view in _VIEWS:
            visible, maps, cut = _seen_so_far(data, view)
            at = self._prefix_at(visible)
            begin = min(begin, cut if at is None else _back((at, at + 1), maps)[0])
        for needle in self._exact:
            begin = min(begin, _overlap(data, needle))
        return begin

    def _prefix_at(self, visible: bytes) -> int | None:
        begin = max(0, len(visible) - self._longest)
        lower = visible[begin:].lower()
        for at in range(begin, len(visible)):
            tail, low = visible[at:], lower[at - begin :]
            if any(needle.startswith(tail) for needle in self._by_first.get(tail[0], ())):
                return at
            if any(needle.startswith(low) for needle in self._folded_by_first.get(low[0], ())):
                return at
        return None

    def _views(self, data: bytes) -> Iterator[_View]:
        return (view for view in _VIEWS if view.triggers is None or view.triggers.search(data) is not None)

    def _hits(self, visible: bytes) -> bool:
        if any(needle in visible for needle in self._needles):
            return True
        lower = visible.lower() if self._folded else b""
        return any(needle in lower for needle in self._folded)

    def _has_exact(self, data: bytes) -> bool:
        return any(needle in data for needle in self._exact)

    def _is_clean(self, value: Json) -> bool:
        """Return whether the whole tree, written as JSON, contains no secret: one search instead of one per text."""
        import msgspec  # Deferred until the first secret is masked, to keep the start of commands fast.

        try:
            written = msgspec.json.encode(value)
        except (ValueError, TypeError, msgspec.MsgspecError):  # A lone surrogate, or a number beyond 64 bits.
            return False
        return not self.finds(written)

    def _tree(self, value: Json) -> Json:
        match value:
            case str():
                return self.text(value)
            case list():
                return MASK if self._is_bytes(value) else [self._tree(element) for element in value]
            case dict():
                return {self.text(name): self._tree(member) for name, member in value.items()}
            case int() | float() if not isinstance(value, bool):
                return MASK if self.finds(json.dumps(value).encode()) else value
            case _:
                return value

    def _is_bytes(self, value: list[Json]) -> bool:
        """Return whether a list of numbers contains the bytes of a secret."""
        if len(value) < LINE_CHARS_MIN or not all(type(element) is int for element in value):
            return False
        return self.finds(json.dumps(value).encode())


NOTHING: Final = Redaction(())


class Stream:
    """Redaction of a text that arrives in pieces: a possible beginning of a secret is held until the next piece."""

    def __init__(self, redaction: Redaction) -> None:
        self.redaction = redaction
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return the text that is safe to show now; possibly empty."""
        if not self.redaction:
            return piece
        text = self.redaction.text(self._held + piece)
        data = text.encode(errors="surrogatepass")
        at = _whole(data, self.redaction.beginning(data))
        self._held = data[at:].decode(errors="surrogatepass")
        return data[:at].decode(errors="surrogatepass")

    def end(self) -> str:
        """Return the held text at the end of the input."""
        remainder, self._held = self._held, ""
        return remainder


@lru_cache(maxsize=256)
def redaction_of(secrets: frozenset[str]) -> Redaction:
    """Return the redaction of these secrets, created once per set."""
    return Redaction(secrets) if secrets else NOTHING


_hidden: ContextVar[tuple[Redaction, ...]] = ContextVar("hidden", default=())


class hiding:  # noqa: N801 - used as a function: a generator would cost each call microseconds
    """Mask these secrets, and those of the enclosing blocks, before any text is cut, until the block ends."""

    __slots__ = ("_secrets", "_token")

    def __init__(self, *secrets: Redaction) -> None:
        self._secrets = secrets
        self._token: Token[tuple[Redaction, ...]] | None = None

    def __enter__(self) -> None:
        around = _hidden.get()
        more = [secret for secret in self._secrets if secret and secret not in around]
        if more:
            self._token = _hidden.set((*around, *more))

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _hidden.reset(self._token)


def hidden() -> tuple[Redaction, ...]:
    """Return the redactions of the `hiding` blocks around the caller."""
    return _hidden.get()


def masked(text: str) -> str:
    """Return the text without the secrets of the `hiding` blocks around the caller."""
    for redaction in _hidden.get():
        text = redaction.text(text)
    return text


def head(text: str, chars_max: int) -> str:
    """Return the beginning of a masked text. Masking after a cut could not find a secret that the cut splits."""
    return masked(text)[:chars_max]


def unfinished(text: str) -> str:
    """Return a masked text that its source cut at the end, without a possible beginning of a secret."""
    for redaction in _hidden.get():
        text = redaction.stream().feed(text)
    return text


def masked_cut(text: str, chars_max: int) -> str:
    """Return the masked text. A text of `chars_max` or more was cut by its source: a beginning of a secret at its end
    is dropped."""
    return masked(text) if len(text) < chars_max else unfinished(text)


def tail(text: str, chars_max: int) -> str:
    """Return the end of a masked text."""
    return masked(text)[-chars_max:]


def _parts(secret: str) -> Iterator[str]:
    """Yield the secret and its parts that are secret by themselves: lines, leaves of a JSON secret, a password in a
    URL."""
    if len(secret) < CHARS_MIN:
        return
    yield secret
    yield from _lines(secret)
    if secret.lstrip()[:1] in ("{", "["):
        try:
            tree = cast("Json", json.loads(secret))
        except (ValueError, RecursionError):
            tree = None
        for leaf in _leaves(tree):
            if len(leaf.strip()) >= LINE_CHARS_MIN:
                yield leaf
                yield from _lines(leaf)
    for match in _PASSWORD.finditer(secret):
        yield from {one for one in (match[1], unquote(match[1])) if len(one) >= CHARS_MIN}


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a text with several lines."""
    lines = [line.strip() for line in text.splitlines()]
    if len(lines) > 1:
        yield from (one for one in lines if len(one) >= LINE_CHARS_MIN and not _NOT_SECRET.fullmatch(one))


def _leaves(value: Json) -> Iterator[str]:
    match value:
        case str() if not _NOT_SECRET.fullmatch(value.strip()):
            yield value
        case list():
            for element in value:
                yield from _leaves(element)
        case dict():
            for member in value.values():
                yield from _leaves(member)
        case _:
            return


def _needles(part: str) -> Iterator[tuple[bytes, bool]]:
    """Yield the part as it appears in each view, in each encoding of the whole, and whether its case is ignored."""
    for form in _forms(part):
        for view in _VIEWS:
            visible = _view_of(form, view)
            if len(visible) >= CHARS_MIN:
                yield visible, True
    # Another program may have escaped it before encoding it in base64 or hexadecimal.
    texts = {part, json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1]}
    # OAuth 2.0 does: base64 of `quote_plus(client)` and `quote_plus(secret)` with a colon between them.
    texts |= {quoted(part.encode(errors="surrogatepass"), safe="") for quoted in (quote, quote_plus)}
    for form in {byte for text in texts for byte in _bytes_of(text)}:
        yield form.hex().encode(), True
        yield from ((form.hex(sign).encode(), True) for sign in ":-")
        for piece in _base64(form):
            visible = _view_of(piece, _VIEWS[0])
            if len(visible) >= BASE64_CHARS_MIN:
                yield visible, False
    # Bytes as JSON: `Buffer` in JavaScript, `list(data)` in Python.
    yield from ((",".join(map(str, form)).encode(), True) for form in _bytes_of(part) if len(form) >= LINE_CHARS_MIN)
    for piece in _base32(part.encode(errors="surrogatepass")):
        if len(piece) >= ANYWHERE_CHARS_MIN:
            yield piece, True


def _forms(part: str) -> set[bytes]:
    lower = part.lower()
    # Host names are written in lower case, names of variables and headers in upper case; `ß` becomes `SS`.
    forms = {*_bytes_of(part), *(one.encode(errors="surrogatepass") for one in (lower, part.upper()))}
    plain = part.encode(errors="surrogatepass")
    # UTF-8 that another program read as Latin-1 and wrote as UTF-8 again.
    forms |= {one.decode("latin-1").encode() for one in (plain, *_bytes_of(part)) if not one.isascii()}
    if not part.isascii():
        with suppress(UnicodeError):
            forms.add(lower.encode("idna"))
        # Python escapes `é` as `\xe9`, like a byte of Latin-1, and `€` as `\u20ac`: the view shows a mixture of both.
        forms.add(part.encode("ascii", "backslashreplace"))
        forms |= {normalize(form, part).encode(errors="surrogatepass") for form in ("NFC", "NFD")}
    return forms


def _bytes_of(text: str) -> set[bytes]:
    encodings = {text.encode(errors="surrogatepass")}
    encodings |= {text.encode(wide, "surrogatepass") for wide in ("utf-16-le", "utf-16-be")}
    for narrow in ("latin-1", "ascii"):
        data = text.encode(narrow, "replace")
        if 2 * (data.count(b"?") - text.count("?")) < len(text):  # Most characters survived the encoding.
            encodings.add(data)
    return encodings


def _base64(data: bytes) -> Iterator[bytes]:
    """Yield the base64 characters that depend on the data alone, for each of the three possible offsets."""
    for offset in range(3):
        whole = base64.b64encode(bytes(offset) + data)
        begin, end = -(-8 * offset // 6), 8 * (offset + len(data)) // 6
        piece = whole[begin:end]
        yield piece
        yield piece.translate(bytes.maketrans(b"+/", b"-_"))


def _base32(data: bytes) -> Iterator[bytes]:
    """Yield the base32 characters that depend on the data alone, in both alphabets, for each of the five offsets."""
    for offset in range(5):
        begin, end = -(-8 * offset // 5), 8 * (offset + len(data)) // 5
        for encode in (base64.b32encode, base64.b32hexencode):
            yield encode(bytes(offset) + data)[begin:end]


def _all(data: bytes, needle: bytes) -> Iterator[Span]:
    at = data.find(needle)
    while at >= 0:
        yield at, at + len(needle)
        at = data.find(needle, at + 1)


def _overlap(data: bytes, needle: bytes) -> int:
    """Return where the longest suffix of the data begins that is a prefix of the needle."""
    for at in range(max(0, len(data) - len(needle) + 1), len(data)):
        if needle.startswith(data[at:]):
            return at
    return len(data)


def _joined(spans: list[Span]) -> list[Span]:
    joined: list[Span] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return joined


def _masked(data: bytes, spans: list[Span]) -> bytes:
    parts, at = list[bytes](), 0
    for begin, end in spans:
        parts += (data[at:begin], MASK.encode())
        at = end
    parts.append(data[at:])
    return b"".join(parts)


def _of_characters(data: bytes, spans: list[Span]) -> list[Span]:
    """Return the spans, widened to whole UTF-8 characters."""
    in_bytes: list[Span] = []
    for begin, end in spans:
        while end < len(data) and _is_inside(data, end):
            end += 1
        in_bytes.append((_whole(data, begin), end))
    return _joined(in_bytes)


def _whole(data: bytes, at: int) -> int:
    """Return the position, moved to the beginning of its UTF-8 character."""
    while 0 < at < len(data) and _is_inside(data, at):
        at -= 1
    return at


def _is_inside(data: bytes, at: int) -> bool:
    return data[at] & 0xC0 == 0x80
