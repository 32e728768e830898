"""Encodings of a text by clients, libraries and services, by name, for tests of redaction."""

from __future__ import annotations

import base64
import html
import json
import quopri
import shlex
from collections.abc import Callable, Mapping
from email.header import Header
from email.message import EmailMessage
from http.cookies import SimpleCookie
from typing import Final
from unicodedata import normalize
from urllib.parse import quote, quote_plus, urlencode
from xml.sax.saxutils import escape

import httpx2
import msgspec
import yaml


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _mail(text: str) -> str:
    message = EmailMessage()
    lines = text.splitlines()  # A subject has one line.
    message["Subject"] = f"key {lines[len(lines) > 1]} end"
    message.set_content(f"dear Ada, the key is {text} and more words after it\n", cte="quoted-printable")
    return message.as_string()


def _mail_base64(text: str) -> str:
    message = EmailMessage()
    message.set_content(f"{'x' * 41} {text} and more words after it\n", cte="base64")
    return message.as_string()


def _query(text: str) -> str:
    return str(httpx2.URL("https://example.org/path").copy_with(params={"key": text, "page": "1"}))


ENCODINGS: Final[Mapping[str, Callable[[str], str]]] = {
    "as it is": str,
    "percent": quote,
    "percent, every character that may be": lambda text: quote(text, safe=""),
    "percent, small letters": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "percent, a few kept": lambda text: quote(text, safe="!#$&'()*+,/:;=?@[]~"),
    "percent twice": lambda text: quote(quote(text, safe=""), safe=""),
    "percent of Latin-1": lambda text: quote(text, safe="", encoding="latin-1", errors="replace"),
    "form": quote_plus,
    "form body": lambda text: urlencode({"password": text, "user": "ada"}),
    "query of the client": _query,
    "JSON": json.dumps,
    "JSON, beyond ASCII": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON of msgspec": lambda text: msgspec.json.encode(text).decode(),
    "JSON, slashes escaped": lambda text: json.dumps(text).replace("/", "\\/"),
    "JSON, everything escaped": lambda text: "".join(
        f"\\u{int.from_bytes(unit, 'big'):04X}"
        for unit in (text.encode("utf-16-be")[at : at + 2] for at in range(0, len(text.encode("utf-16-be")), 2))
    ),
    "JSON in JSON": lambda text: json.dumps({"body": json.dumps({"key": text})}),
    "JSON in a query": lambda text: quote(json.dumps({"key": text})),
    "repr": repr,
    "repr of bytes": lambda text: repr(text.encode()),
    "HTML": html.escape,
    "HTML twice": lambda text: html.escape(html.escape(text)),
    "HTML, numbers": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "HTML, hexadecimal numbers": lambda text: "".join(f"&#x{ord(char):X};" for char in text),
    "XML": lambda text: escape(text, {'"': "&quot;", "'": "&apos;"}),
    "quoted-printable": lambda text: quopri.encodestring(f"{'y' * 70} {text}".encode()).decode(),
    "mail": _mail,
    "mail in base64": _mail_base64,
    "header of a mail": lambda text: Header(f"the key {text} goes on", "utf-8", maxlinelen=40).encode(),
    "header of a mail, quoted": lambda text: (
        "=?utf-8?q?"
        + "".join("_" if char == " " else "".join(f"={byte:02X}" for byte in char.encode()) for char in text)
        + "?="
    ),
    "client authentication of OAuth": lambda text: _b64(f"client:{quote_plus(text)}".encode()),
    "shell": shlex.quote,
    "shell, double quotes": lambda text: '"' + "".join(f"\\{char}" if char in '"\\$`' else char for char in text) + '"',
    "SQL": lambda text: "'" + text.replace("'", "''") + "'",
    "SQL of MySQL": lambda text: "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace('"', '\\"') + "'",
    "UTF-8 read as Latin-1": lambda text: text.encode().decode("latin-1"),
    "UTF-16": lambda text: text.encode("utf-16-le").decode("latin-1"),
    "base64": lambda text: _b64(text.encode()),
    "base64 after a user": lambda text: _b64(f"ada:{text}".encode()),
    "base64 after a longer user": lambda text: _b64(f"ada.b:{text}".encode()),
    "base64 between others": lambda text: _b64(f"ada.bc:{text}:more".encode()),
    "base64 of Latin-1": lambda text: _b64(f"ada:{text}".encode("latin-1", "replace")),
    "base64 of UTF-16": lambda text: _b64(text.encode("utf-16-le")),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(f"a:{text}??>>".encode()).decode().rstrip("="),
    "base64 in an address": lambda text: quote(_b64(f"user:{text}".encode()), safe=""),
    "base64 in lines": lambda text: base64.encodebytes(f"{'z' * 50}{text}{'z' * 50}".encode()).decode(),
    "base64 of JSON": lambda text: _b64(json.dumps({"key": text}).encode()),
    "hexadecimal digits": lambda text: text.encode().hex(),
    "hexadecimal digits, capitals": lambda text: text.encode().hex().upper(),
    "hexadecimal digits, mixed": lambda text: "".join(
        digit.upper() if at % 3 else digit for at, digit in enumerate(text.encode().hex())
    ),
    "hexadecimal digits with colons": lambda text: text.encode().hex(":"),
    "hexadecimal digits with blanks": lambda text: text.encode().hex(" ").upper(),
    "percent, mixed letters": lambda text: "".join(
        f"%{byte:02x}" if at % 2 else f"%{byte:02X}" for at, byte in enumerate(text.encode())
    ),
    "hexadecimal digits with dashes": lambda text: text.encode().hex("-"),
    "escapes of Python": ascii,
    "escapes of a terminal that is not UTF-8": lambda text: text.encode("ascii", "backslashreplace").decode(),
    "escapes of JavaScript": lambda text: "".join(f"\\u{{{ord(char):x}}}" for char in text),
    "octal escapes": lambda text: "".join(f"\\{byte:03o}" for byte in text.encode()),
    "cookie": lambda text: SimpleCookie({"key": text}).output(),
    "YAML": lambda text: yaml.safe_dump({"key": text}, default_style='"', width=30),
    "numbers of bytes": lambda text: json.dumps(list(text.encode())),
    "numbers of bytes, short": lambda text: json.dumps({"data": [*text.encode()]}, separators=(",", ":")),
    "decomposed": lambda text: normalize("NFD", text),
    "capitals": str.upper,
    "small letters": str.lower,
    "capitals in percent": lambda text: quote(text.upper(), safe=""),
    "base32": lambda text: base64.b32encode(f"a:{text}".encode()).decode(),
    "base32, small letters": lambda text: base64.b32encode(f"ada:{text}".encode()).decode().lower(),
    "base32 with digits first": lambda text: base64.b32hexencode(text.encode()).decode(),
    "within a longer text": lambda text: f"Bearer {text}, and so on",
    "in the name of a host": lambda text: (
        str(httpx2.URL(f"https://{text}.example.org/")) if text.isascii() and text.replace("-", "").isalnum() else text
    ),
}
TOKEN: Final = "sK-Live-51cAnArY0123456789aBcDeF"
PASSWORD: Final = "p/ss+w o=r'd\"\\n&<%41>;é€😀$x"
LATIN: Final = "Grüße/aus+Köln=&1"
PEM: Final = """-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkq/hkiG9w0BAQEF+AASCB
KcwggSjAgEAAoIBAQC7VJTUt9Us8cKj
-----END PRIVATE KEY-----
"""
ACCOUNT: Final = json.dumps({"type": "service", "private_key": PEM, "client_secret": "leaf-of-the-account-77"})
SECRETS: Final[Mapping[str, str]] = {
    "TOKEN": TOKEN,
    "PASSWORD": PASSWORD,
    "LATIN": LATIN,
    "PEM": PEM,
    "ACCOUNT": ACCOUNT,
}


def written(secret: str, encoding: str) -> str:
    """The secret in one of the encodings."""
    return ENCODINGS[encoding](secret)
